//! Filters that lie on disk as sub-filters, each of which can be read and probed alone.
//! ```text
//! file     | sub-filter 0 | sub-filter 1 | ... | sub-filter n-1 | directory |
//!          opening a table reads the directory
//! memory     sub-filter 0   sub-filter 1                          directory
//!          later, single sub-filters are loaded and dropped
//!
//! sampled gets -> SubFilterPolicy -> which table gains a sub-filter, which ones lose one
//! ```
//! The store reads, checks and drops sub-filters. The kind defines the layout; the policy decides
//! which sub-filters are worth their memory. Nothing here reads a file.
//!
//! Invariant: a filter without some of its sub-filters says "maybe" more often, and never "no"
//! wrongly.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::base::filter::{HashedKey, Trace};
use crate::base::kind::FilterOptions;
use crate::base::tuning::FilterTuning;
use crate::base::wire::Corrupt;

/// What a kind of sub-filters provides beyond [`FilterKind`](crate::FilterKind).
pub trait SubFilterKind: Send + Sync {
    /// Options of what a table keeps on disk, if `bits_per_key` of `options` is the average in
    /// memory.
    fn on_disk(&self, options: FilterOptions) -> FilterOptions;

    /// The directory lies in the last bytes of a filter: at most this many.
    fn directory_bytes_max(&self) -> usize;

    /// Checks a directory. `tail` has the last bytes of a filter of `filter_bytes` bytes.
    fn read_directory(
        &self,
        tail: &[u8],
        filter_bytes: u64,
    ) -> Result<Box<dyn SubFilterDirectory>, Corrupt>;

    /// Creates the policy that decides which sub-filters are in memory.
    fn policy(&self, tuning: &FilterTuning) -> Box<dyn SubFilterPolicy>;

    /// The policy sees one of this many gets; at least 1.
    fn sample_gets(&self, tuning: &FilterTuning) -> u32;
}

/// The layout of one filter's sub-filters.
pub trait SubFilterDirectory: Send + Sync {
    /// The number of sub-filters.
    fn count(&self) -> u8;
    /// The memory of one sub-filter, in bytes.
    fn part_bytes(&self) -> u64;
    /// The false positive rate of one sub-filter; that of several is the product.
    fn part_rate(&self) -> f64;
    /// The byte range of a sub-filter in the filter.
    fn range(&self, number: u8) -> Range<u64>;
    /// The memory of the directory, in bytes.
    fn size_bytes(&self) -> usize;
    /// Makes a sub-filter of its bytes, after verifying their checksum.
    fn part(&self, number: u8, bytes: Vec<u8>) -> Result<Box<dyn SubFilter>, Corrupt>;
}

/// A sub-filter in memory.
pub trait SubFilter: Send + Sync {
    /// Its number in its filter.
    fn number(&self) -> u8;
    /// Its memory, in bytes.
    fn size_bytes(&self) -> usize;
    /// False: the table has no entry of the key. True: it may have one.
    fn may_contain(&self, key: &HashedKey<'_>) -> bool;
    /// Same as `may_contain`. Reports to `trace` which memory it reads.
    fn may_contain_traced(&self, key: &HashedKey<'_>, trace: &mut dyn Trace) -> bool;
}

/// What a policy must know of a table's sub-filters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableSubFilters {
    /// The memory of one sub-filter, in bytes.
    pub sub_filter_bytes: u64,
    /// The false positive rate of one sub-filter; that of several is the product.
    pub sub_filter_rate: f64,
    /// The number of sub-filters available on disk.
    pub count: u8,
}

/// A proposal to load one sub-filter and drop others that are worth less. It is not applied yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjustment {
    /// The table that would gain a sub-filter.
    pub load: u64,
    /// The tables that would lose one sub-filter each, without repetition.
    pub drop: Vec<u64>,
}

/// Decides how many sub-filters of each table are in memory. The store numbers the tables.
pub trait SubFilterPolicy: Send {
    /// Sets the memory budget of all sub-filters, in bytes.
    fn set_budget_bytes(&mut self, bytes: u64);
    /// The memory budget of all sub-filters, in bytes.
    fn budget_bytes(&self) -> u64;
    /// The memory that the loaded sub-filters take, in bytes.
    fn loaded_bytes(&self) -> u64;
    /// Adds a table that has `loaded` sub-filters in memory.
    fn insert(&mut self, table: u64, of: TableSubFilters, loaded: u8);
    /// Forgets all tables for which `stays` is false, and returns them.
    fn retain(&mut self, stays: &dyn Fn(u64) -> bool) -> Vec<u64>;
    /// Records that one of a table's sub-filters is damaged, so it has one fewer available.
    fn lose_one(&mut self, table: u64);
    /// Returns the tables with 0, 1, 2, ... sub-filters in memory.
    fn queues(&self) -> Vec<Vec<u64>>;
    /// The number of needless reads expected over all counted queries.
    fn expected_needless_reads(&self) -> f64;
    /// The number of counted queries.
    fn counted_questions(&self) -> f64;
    /// Counts a get of the store: time advances by one.
    fn tick(&mut self);
    /// Counts a query of a table that had no entry for it.
    fn note_empty_query(&mut self, table: u64);
    /// The needless reads that one more sub-filter of the table would save per byte. 0: none is
    /// available.
    fn worth(&self, table: u64) -> f64;
    /// Proposes which sub-filters to drop so that the table gains one. None: it would not pay.
    fn adjustment(&self, table: u64) -> Option<Adjustment>;
    /// Records that an adjustment was made.
    fn apply(&mut self, adjustment: &Adjustment);
    /// Drops sub-filters until the budget is kept. Returns a table for each sub-filter dropped.
    fn shrink(&mut self) -> Vec<u64>;
}
