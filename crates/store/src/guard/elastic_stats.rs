//! What the guard `elastic` has in memory, as plain data.
//! ```text
//! tables_by_sub_filters   [3, 120, 80, 12, 2]     3 tables without one, ... 2 with four of them
//! ```
//! Invariant: `sub_filter_bytes` is at most `budget_bytes`.

/// Which sub-filters of `elastic` filters are in memory, and what is expected of them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ElasticStats {
    /// Memory that sub-filters may take, in bytes: what the guard may take less their directories.
    pub budget_bytes: u64,
    /// Memory that they take, in bytes.
    pub sub_filter_bytes: u64,
    /// How many tables have 0, 1, 2, … sub-filters in memory: cold ones first, hot ones last.
    pub tables_by_sub_filters: Vec<u64>,
    /// Sub-filters read since the store was opened because tables were asked often.
    pub loads: u64,
    /// Sub-filters dropped for others' sake, or because there was less to remember.
    pub drops: u64,
    /// Gets that were counted: a sample.
    pub counted_gets: u64,
    /// The share of needless reads that is expected of questions for keys that a table has not, as
    /// tables were asked.
    pub expected_rate: f64,
}
