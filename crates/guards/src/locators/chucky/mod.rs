//! Chucky: one cuckoo filter for all runs of a tree, with short codes for where each key is.
//! ```text
//! key ──> two buckets ─── code ─────> slots of its entries   codebook: Huffman, of combinations
//!                     └── prints ───> which of them match    longer in older levels
//! ```
//! (Dayan, Twitto: "Chucky: A Succinct Cuckoo Filter for LSM-Tree", SIGMOD 2021.) `ChuckyPlain` is
//! the same filter with whole numbers for the slots, as SlimDB has it.
//!
//! * [`model`]: what theory says. [`combinations`], [`lengths`]: the parts of a code
//! * [`codebook`], [`symbol`], [`recoding`]: how Chucky writes buckets
//! * [`plain`]: how SlimDB writes them; [`bucket`]: the seam
//! * [`place`], [`pages`], [`held`], [`cuckoo`]: the filter
//!
//! Invariant: a key that was noted in a slot, and not away, has an entry with that slot: see
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

/// `chucky`: a cuckoo filter with a short code for the runs of each bucket's keys; points alone.
pub const CHUCKY: &dyn RunLocatorKind =
    &CuckooKind { name: "chucky", builder: |plan| Box::new(ChuckyBuilder::new(plan)) };

/// `chucky-plain`: the same with numbers of runs as they are.
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

/// The same filter with level ids as whole numbers.
pub type ChuckyPlain = Cuckoo<plain::Integers>;

/// Makes a [`Chucky`].
pub type ChuckyBuilder = CuckooBuilder<codebook::Combinations>;

/// Makes a [`ChuckyPlain`].
pub type ChuckyPlainBuilder = CuckooBuilder<plain::Integers>;

/// What a filter looks like inside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChuckyShape {
    /// Combinations of a bucket's slots that leave room for fingerprints.
    pub frequent_combinations: usize,
    /// How likely a bucket has one of these when all runs are full.
    pub frequent_share: f64,
    /// Buckets whose fingerprints are in the overflow table.
    pub overflowed_buckets: usize,
    /// Entries that found no place.
    pub unplaced_entries: u64,
}

/// The tables beside a filter that codes need, which all filters of one plan share (Figure 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChuckyTables {
    /// Combinations with a Huffman code.
    pub frequent_combinations: usize,
    /// Bytes of the Huffman codes, and of what they are decoded to.
    pub huffman_bytes: usize,
    /// Bytes of the decoding table: combinations by number.
    pub decoding_bytes: usize,
    /// Bytes of the recoding table.
    pub recoding_bytes: usize,
}

impl ChuckyTables {
    /// Those of a plan: the larger its filter, the more combinations are worth a code.
    pub fn of(plan: &TreePlan) -> Self {
        let buckets = place::Geometry::new(plan.entries).buckets();
        codebook::CodeBook::of_plan(plan, buckets).tables()
    }
}

impl Chucky {
    /// What it looks like inside.
    pub fn shape(&self) -> ChuckyShape {
        let (frequent_combinations, frequent_share) = self.codec().book().frequent();
        let (unplaced_entries, overflowed_buckets) = self.misplaced();
        ChuckyShape { frequent_combinations, frequent_share, overflowed_buckets, unplaced_entries }
    }

    /// M: bits of an entry, what the plan gives without tables and free places.
    pub fn entry_bits(&self) -> f64 {
        f64::from(self.codec().bucket_bits()) / BUCKET_SLOTS as f64
    }

    /// Bits of the fingerprints in a slot. Requires: a slot of the plan.
    pub fn print_bits(&self, slot: RunSlot) -> u32 {
        self.codec().print_bits(slot.0)
    }
}

/// Hashes that wait until they are noted together, those of neighbouring buckets one after the
/// other.
const PENDING_MAX: usize = 1 << 18;

/// Makes a filter from the keys of the oldest run, or from their hashes.
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
