//! Chucky: one cuckoo filter for all runs of a tree, with short codes for each key's run.
//! ```text
//! key ──> two buckets ─── code ─────────> slots of its entries   codebook: Huffman of combinations
//!                     └── fingerprints ─> which of them match    longer in older levels
//! ```
//! (Dayan, Twitto: "Chucky: A Succinct Cuckoo Filter for LSM-Tree", SIGMOD 2021.) `ChuckyPlain` is
//! the same filter with whole numbers for slots, as in SlimDB.
//!
//! * [`model`]: the theory. [`combinations`], [`lengths`]: the parts of a code
//! * [`codebook`], [`symbol`], [`recoding`]: Chucky's encoding of buckets
//! * [`plain`]: SlimDB's encoding; [`bucket`]: the interface of both
//! * [`place`], [`pages`], [`held`], [`cuckoo`]: the filter
//!
//! Invariant: a key that was noted in a slot, and not away since, has an entry with that slot: see
//! [`cuckoo`].

mod alignment;
mod bucket;
mod codebook;
mod combinations;
mod cuckoo;
mod hasher;
mod held;
mod lengths;
mod model;
mod pages;
mod place;
mod plain;
mod recoding;
mod symbol;
#[cfg(test)]
mod tests;

pub use alignment::Alignment;
pub use cuckoo::Cuckoo;
pub use model::LevelModel;

use bucket::{BUCKET_SLOTS, BucketCodec};
use trommel_filters::hash::grouped;
use trommel_filters::{AnyRunLocatorBuilder, RunLocatorBuilder, RunLocatorKind, RunSlot, TreePlan};

/// `chucky`: a cuckoo filter with a short code for the runs of each bucket's keys; answers points
/// only.
pub const CHUCKY: &dyn RunLocatorKind =
    &CuckooKind { name: "chucky", builder: |plan| Box::new(ChuckyBuilder::new(plan)) };

/// `chucky-plain`: the same filter with uncompressed run numbers.
pub const CHUCKY_PLAIN: &dyn RunLocatorKind =
    &CuckooKind { name: "chucky-plain", builder: |plan| Box::new(ChuckyPlainBuilder::new(plan)) };

struct CuckooKind {
    name: &'static str,
    builder: fn(&TreePlan) -> Box<dyn AnyRunLocatorBuilder>,
}

impl RunLocatorKind for CuckooKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn knows_ranges(&self) -> bool {
        false
    }

    fn builder(&self, plan: &TreePlan) -> Box<dyn AnyRunLocatorBuilder> {
        (self.builder)(plan)
    }

    fn takes_hashes(&self) -> bool {
        true
    }
}

/// Chucky.
pub type Chucky = Cuckoo<codebook::Combinations>;

/// The cuckoo filter with uncompressed level ids.
pub type ChuckyPlain = Cuckoo<plain::Integers>;

/// Builds a [`Chucky`].
pub type ChuckyBuilder = CuckooBuilder<codebook::Combinations>;

/// Builds a [`ChuckyPlain`].
pub type ChuckyPlainBuilder = CuckooBuilder<plain::Integers>;

/// Statistics of a filter's structure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChuckyShape {
    /// The number of combinations whose buckets have room for fingerprints.
    pub frequent_combinations: usize,
    /// The probability that a bucket has one of these when all runs are full.
    pub frequent_share: f64,
    /// The number of buckets whose fingerprints are in the overflow table.
    pub overflowed_buckets: usize,
    /// The number of entries without a place in their buckets.
    pub unplaced_entries: u64,
}

/// The sizes of the code tables, which all filters of one plan share (Figure 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChuckyTables {
    /// The number of combinations with a Huffman code.
    pub frequent_combinations: usize,
    /// The Huffman codes and their decoded form, in bytes.
    pub huffman_bytes: usize,
    /// The decoding table, combinations by number, in bytes.
    pub decoding_bytes: usize,
    /// The recoding table, in bytes.
    pub recoding_bytes: usize,
}

impl ChuckyTables {
    /// Returns the tables of a plan. The larger its filter, the more combinations are worth a code.
    pub fn of(plan: &TreePlan) -> Self {
        let buckets = place::Geometry::new(plan.entries).buckets();
        codebook::CodeBook::of_plan(plan, buckets).tables()
    }
}

impl Chucky {
    /// Returns statistics of its structure.
    pub fn shape(&self) -> ChuckyShape {
        let (frequent_combinations, frequent_share) = self.codec().book().frequent();
        let (unplaced_entries, overflowed_buckets) = self.misplaced();
        ChuckyShape { frequent_combinations, frequent_share, overflowed_buckets, unplaced_entries }
    }

    /// M: bits per entry, that is the plan's memory without tables and empty places.
    pub fn entry_bits(&self) -> f64 {
        f64::from(self.codec().bucket_bits()) / BUCKET_SLOTS as f64
    }

    /// Fingerprint bits in a slot. Requires: a slot of the plan.
    pub fn fingerprint_bits(&self, slot: RunSlot) -> u32 {
        self.codec().fingerprint_bits(slot.0)
    }
}

/// The number of hashes that are collected before they are noted together, by neighbouring buckets.
const PENDING_MAX: usize = 1 << 18;

/// Builds a filter from the keys of the oldest run, or from their hashes.
#[derive(Clone, Debug)]
pub struct CuckooBuilder<C> {
    filter: Cuckoo<C>,
    pending: Vec<u64>,
}

impl<C: BucketCodec> CuckooBuilder<C> {
    fn note_pending(&mut self) {
        for hash in grouped(&self.pending, |hash| hash) {
            self.filter.note_oldest(hash);
        }
        self.pending.clear();
    }
}

impl<C: BucketCodec> RunLocatorBuilder for CuckooBuilder<C> {
    type Filter = Cuckoo<C>;

    fn new(plan: &TreePlan) -> Self {
        CuckooBuilder { filter: Cuckoo::of_plan(plan), pending: Vec::new() }
    }

    fn push(&mut self, key: &[u8]) {
        RunLocatorBuilder::push_hash(self, Cuckoo::<C>::key_hash(key));
    }

    fn push_hash(&mut self, hash: u64) {
        self.pending.push(hash);
        if self.pending.len() == PENDING_MAX {
            self.note_pending();
        }
    }

    fn finish(mut self) -> Cuckoo<C> {
        self.note_pending();
        self.filter
    }
}
