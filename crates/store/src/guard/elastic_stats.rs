//! The state of the guard `elastic`, as plain data.
//! ```text
//! tables_by_sub_filters   [3, 120, 80, 12, 2]     3 tables without one, ... 2 with four of them
//! ```
//! Invariant: `sub_filter_bytes` is at most `budget_bytes`.

/// Which sub-filters of `elastic` filters are in memory, and how well they are expected to work.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ElasticStats {
    /// The most bytes that sub-filters may take: the guard's memory without the directories.
    pub budget_bytes: u64,
    /// The bytes that sub-filters take.
    pub sub_filter_bytes: u64,
    /// The number of tables with 0, 1, 2, … sub-filters in memory: cold tables first, hot ones
    /// last.
    pub tables_by_sub_filters: Vec<u64>,
    /// Sub-filters that were read since the opening, because their tables were asked often.
    pub loads: u64,
    /// Sub-filters that were dropped to make room for others, or because the tree had fewer
    /// entries.
    pub drops: u64,
    /// The number of gets in the sample.
    pub counted_gets: u64,
    /// The expected false positive rate of a query for a key that the table does not have. Tables
    /// are weighted by how often they were asked.
    pub expected_rate: f64,
}
