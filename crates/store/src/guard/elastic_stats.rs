//! What the guard `elastic` has in memory, as plain data.
//! ```text
//! tables_by_units   [3, 120, 80, 12, 2]     3 tables without a unit, ... 2 with four of them
//! ```
//! Invariant: `unit_bytes` is at most `budget_bytes`.

/// Which units of `elastic` filters are in memory, and what is expected of them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ElasticStats {
    /// Memory that units may take, in bytes: what the guard may take less the directories of units.
    pub budget_bytes: u64,
    /// Memory that they take, in bytes.
    pub unit_bytes: u64,
    /// How many tables have 0, 1, 2, … units in memory: the cold ones first, the hot ones last.
    pub tables_by_units: Vec<u64>,
    /// Units read since the store was opened because tables were asked often.
    pub loads: u64,
    /// Units dropped for others' sake, or because there was less to remember.
    pub drops: u64,
    /// Gets that were counted: a sample.
    pub counted_gets: u64,
    /// The share of needless reads that is expected of questions for keys that a table has not, as
    /// tables were asked.
    pub expected_rate: f64,
}
