//! Filters that lie on disk in parts, each of which can be read and asked alone.
//! ```text
//! file     | part 0 | part 1 | ... | part n-1 | directory |
//!          read when a table is opened: the directory
//! memory     part 0   part 1                    directory
//!            loaded and dropped later: parts, one at a time
//!
//! gets, a sample of them -> SubFilterPolicy -> which table gains a part, which ones lose one
//! ```
//! The store reads, checks and drops parts; the kind says what lies where, and the policy what is
//! worth its memory. Nothing here reads a file.
//!
//! Invariant: parts that are not in memory make a filter say "maybe" more often, and never "no".

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::base::filter::{HashedKey, Trace};
use crate::base::kind::FilterOptions;
use crate::base::tuning::FilterTuning;
use crate::base::wire::Corrupt;

/// What a kind of filter in parts brings beside what every kind does.
pub trait SubFilterKind: Send + Sync {
    /// The options of what a table has on disk, if `bits_per_key` of these are to be in memory on
    /// average.
    fn on_disk(&self, options: FilterOptions) -> FilterOptions;

    /// As many bytes at a filter's end have the directory, or all of them, if there are fewer.
    fn directory_bytes_max(&self) -> usize;

    /// Checks a directory: the last bytes of a filter of so many bytes.
    fn read_directory(
        &self,
        tail: &[u8],
        filter_bytes: u64,
    ) -> Result<Box<dyn SubFilterDirectory>, Corrupt>;

    /// The policy that decides what is in memory.
    fn policy(&self, tuning: &FilterTuning) -> Box<dyn SubFilterPolicy>;

    /// One get in so many is counted; at least 1.
    fn sample_gets(&self, tuning: &FilterTuning) -> u32;
}

/// Where the parts of one filter are.
pub trait SubFilterDirectory: Send + Sync {
    /// How many parts there are.
    fn count(&self) -> u8;
    /// Memory of one part.
    fn part_bytes(&self) -> u64;
    /// False positive rate of one part; that of several is the product.
    fn part_rate(&self) -> f64;
    /// Where in the filter a part is.
    fn range(&self, number: u8) -> Range<u64>;
    /// Memory of the directory.
    fn size_bytes(&self) -> usize;
    /// A part over its bytes, after its checksum was checked.
    fn part(&self, number: u8, bytes: Vec<u8>) -> Result<Box<dyn SubFilter>, Corrupt>;
}

/// A part of a filter.
pub trait SubFilter: Send + Sync {
    /// Which one it is.
    fn number(&self) -> u8;
    /// The memory that it takes.
    fn size_bytes(&self) -> usize;
    /// False: the table has no entry of the key. True: it may have one.
    fn may_contain(&self, key: &HashedKey<'_>) -> bool;
    /// As above, and `trace` sees the memory that is read.
    fn may_contain_traced(&self, key: &HashedKey<'_>, trace: &mut dyn Trace) -> bool;
}

/// What a policy has to know of a table's parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableSubFilters {
    /// Memory of one part.
    pub sub_filter_bytes: u64,
    /// False positive rate of one part; that of several is the product.
    pub sub_filter_rate: f64,
    /// How many parts there are to be had.
    pub count: u8,
}

/// A part that is worth more in memory than others. Nothing has changed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjustment {
    /// The table that has one part more then.
    pub load: u64,
    /// The tables that have one part less then, each of them once.
    pub drop: Vec<u64>,
}

/// Decides how many parts of each table are in memory. Tables have numbers, which are the store's.
pub trait SubFilterPolicy: Send {
    /// Sets how much memory all parts may take.
    fn set_budget_bytes(&mut self, bytes: u64);
    /// How much memory all parts may take.
    fn budget_bytes(&self) -> u64;
    /// How much memory they take.
    fn loaded_bytes(&self) -> u64;
    /// Adds a table, with so many parts in memory.
    fn insert(&mut self, table: u64, of: TableSubFilters, loaded: u8);
    /// Forgets all tables but those that stay, and gives their numbers.
    fn retain(&mut self, stays: &dyn Fn(u64) -> bool) -> Vec<u64>;
    /// A table has one part less to be had: it is damaged.
    fn lose_one(&mut self, table: u64);
    /// The tables with 0, 1, 2, ... parts in memory.
    fn queues(&self) -> Vec<Vec<u64>>;
    /// How many needless reads are expected of all questions that were counted.
    fn expected_needless_reads(&self) -> f64;
    /// How many questions were counted.
    fn counted_questions(&self) -> f64;
    /// A get was counted.
    fn tick(&mut self);
    /// A table was asked in vain.
    fn asked(&mut self, table: u64);
    /// What a part more of a table spares for its bytes. 0: there is none to be had.
    fn worth(&self, table: u64) -> f64;
    /// Which parts are to be dropped so that a table has one more. None: it is not worth it.
    fn adjustment(&self, table: u64) -> Option<Adjustment>;
    /// Does what an adjustment says.
    fn apply(&mut self, adjustment: &Adjustment);
    /// Takes parts away until the budget is kept: each table that is named loses one.
    fn shrink(&mut self) -> Vec<u64>;
}
