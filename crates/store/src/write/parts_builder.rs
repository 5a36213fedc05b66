//! The parts of a global filter that a merge into the last level builds. Also carries newer runs
//! over into parts that are about to be installed, be they from a merge or rebuilt from runs.
//! ```text
//! keys of the output   a b c | d e f | g h ...   one part for each partition, fed by one submerge
//!                                                after the other
//! runs that stay       b     |   e   |   h       their keys are carried over, each with its own
//!                                                flush
//! ```
//! Invariant: a part is queried only when every run of its version is in it. Runs that appear
//! during the merge are carried over in passes outside the lock, with the last pass under it
//! (ordering rule 3).

use trommel_filters::{
    EmptyQueries, FlushNumber, GrfOptions, KeyList, KeySample, Part, PartBuilder, QueryMix,
};

use crate::entries::key_bounds::KeyBounds;
use crate::error::Result;
use crate::files::distinct_keys::Keys;
use crate::files::placed_run::PlacedRun;
use crate::guard::allotment::Allotment;
use crate::guard::rebuild::{BASE_CODE_END, insert_run, part_builder};
use crate::plan::flush_size::OverlayShare;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;

/// Keys that are collected before they are added, so that the clock is read once for all of them.
const KEYS_WAITING: usize = 4096;

/// Builds the parts of a key range from the keys that survive a merge, which its submerges supply.
///
/// Parts are built in key order: the submerges take turns. A submerge that runs ahead of its turn
/// keeps its keys until then. So a merge on n threads has the keys of about n - 1 submerges in
/// memory.
pub(crate) struct PartsBuilder {
    /// The submerge whose keys are next.
    turn: AtomicUsize,
    building: Mutex<Building>,
}

struct Building {
    options: PartOptions,
    overlay_share: Option<OverlayShare>,
    expected: Expected,
    /// The finished parts, each with its lower bound.
    done: Vec<(Vec<u8>, Part)>,
    /// The lower bound of the part that is being built.
    lower: Vec<u8>,
    builder: PartBuilder,
    /// Submerges that ended before their turn.
    ended: Vec<SubmergeKeys>,
    peak_bytes: usize,
}

/// The options of parts, by their lower bounds.
pub(crate) struct PartOptions {
    pub(crate) options: GrfOptions,
    /// Decides the bits per key of each part. None: the options do.
    pub(crate) allotment: Option<Allotment>,
}

impl PartOptions {
    fn at(&self, lower: &[u8]) -> GrfOptions {
        let allotted = self.allotment.as_ref().map(|allotment| allotment.bits_at(lower));
        let bits_per_key = allotted.unwrap_or(self.options.bits_per_key);
        GrfOptions { bits_per_key, ..self.options }
    }
}

/// What is known of a part before it is built.
pub(crate) struct Expected {
    /// A sample of the keys that are merged.
    pub(crate) sample: KeySample,
    /// The number of keys in all parts, and in one part, approximately.
    pub(crate) all_keys: u64,
    pub(crate) keys: u64,
    pub(crate) query_mix: QueryMix,
    pub(crate) empty_queries: EmptyQueries,
}

impl Expected {
    fn prepare(&self, builder: PartBuilder) -> PartBuilder {
        let builder = builder.query_mix(self.query_mix).with_sample(&self.sample, self.keys);
        builder.with_empty_queries(&self.empty_queries, &self.sample, self.all_keys)
    }
}

/// The keys of a submerge that are to be added to the parts, in order.
pub(crate) struct SubmergeKeys {
    /// The submerge's place, in key order.
    place: usize,
    keys: KeyList,
    last: Option<Vec<u8>>,
    cuts: Vec<PartCut>,
}

/// A part begins at `lower`, before collected key number `at`.
struct PartCut {
    at: usize,
    lower: Vec<u8>,
}

impl SubmergeKeys {
    /// For submerge number `place`.
    pub(crate) fn new(place: usize) -> Self {
        let (keys, last, cuts) = Default::default();
        SubmergeKeys { place, keys, last, cuts }
    }

    /// Adds the key of an entry that is about to be written. Requires: the entries before it were.
    pub(crate) fn push(&mut self, key: &[u8], parts: &PartsBuilder, tree: &OpenTree) {
        match &mut self.last {
            Some(last) if last == key => return,
            Some(last) => key.clone_into(last),
            None => self.last = Some(key.to_vec()),
        }
        // Without this key: a damaged one may be out of order, which only its writer finds.
        if self.keys.len() >= KEYS_WAITING && parts.turn.load(Ordering::Acquire) == self.place {
            tree.counters.time_guard(|| lock(&parts.building).take(self));
        }
        self.keys.push(key);
    }

    /// Begins a new part at `key`: earlier keys are before it, and later ones are not.
    pub(crate) fn cut(&mut self, key: &[u8]) {
        self.cuts.push(PartCut { at: self.keys.len(), lower: key.to_vec() });
    }
}

impl PartsBuilder {
    /// `overlay_share`: the share of all entries that runs above the last level will have. None: it
    /// is not known.
    pub(crate) fn new(
        options: PartOptions,
        overlay_share: Option<OverlayShare>,
        expected: Expected,
        from: &[u8],
    ) -> Self {
        let builder = expected.prepare(part_builder(&options.at(from), overlay_share));
        let building = Building {
            options,
            overlay_share,
            expected,
            done: Vec::new(),
            lower: from.to_vec(),
            builder,
            ended: Vec::new(),
            peak_bytes: 0,
        };
        PartsBuilder { turn: AtomicUsize::new(0), building: Mutex::new(building) }
    }

    /// Ends a submerge, which has supplied all its keys.
    pub(crate) fn end(&self, keys: SubmergeKeys, tree: &OpenTree) {
        let mut building = lock(&self.building);
        building.ended.push(keys);
        // Only this function advances the turn, under this lock.
        let mut turn = self.turn.load(Ordering::Relaxed);
        while let Some(at) = building.ended.iter().position(|ended| ended.place == turn) {
            let mut keys = building.ended.swap_remove(at);
            tree.counters.time_guard(|| building.take(&mut keys));
            turn += 1;
        }
        self.turn.store(turn, Ordering::Release);
    }

    /// Returns all parts, in key order. Requires: all submerges have ended, and this is the first
    /// call.
    pub(crate) fn finish(&self, tree: &OpenTree) -> Vec<(Vec<u8>, Part)> {
        let mut building = lock(&self.building);
        assert!(building.ended.is_empty(), "a submerge has not ended");
        building.cut(&[]);
        tree.counters.rebuilt(building.peak_bytes);
        std::mem::take(&mut building.done)
    }
}

impl Building {
    /// Takes the keys that a submerge has collected. Requires: it is its turn.
    fn take(&mut self, submerge: &mut SubmergeKeys) {
        let mut at = 0;
        for cut in submerge.cuts.drain(..) {
            Keys { list: &submerge.keys, places: at..cut.at }.give_to(&mut self.builder);
            self.cut(&cut.lower);
            at = cut.at;
        }
        Keys { list: &submerge.keys, places: at..submerge.keys.len() }.give_to(&mut self.builder);
        submerge.keys.clear();
    }

    /// Ends the current part. The next one begins at `lower`.
    fn cut(&mut self, lower: &[u8]) {
        let next = part_builder(&self.options.at(lower), self.overlay_share);
        let next = self.expected.prepare(next);
        let builder = std::mem::replace(&mut self.builder, next);
        self.peak_bytes = self.peak_bytes.max(self.done_bytes() + builder.peak_bytes());
        let lower = std::mem::replace(&mut self.lower, lower.to_vec());
        self.done.push((lower, builder.finish(BASE_CODE_END)));
    }

    fn done_bytes(&self) -> usize {
        self.done.iter().map(|(_, part)| part.size().base_bytes as usize).sum()
    }
}

/// Parts of a key range that are about to be installed, and the flushes that they include.
pub(crate) struct PreparedParts {
    pub(crate) range: KeyBounds,
    pub(crate) parts: Vec<(Vec<u8>, Part)>,
    /// The ids of the merge's inputs. The parts have their keys from the merge's output.
    pub(crate) inputs: Vec<u64>,
    /// The parts include the entries of all flushes below this one.
    pub(crate) watermark: FlushNumber,
}

impl PreparedParts {
    /// Inserts the entries of `now` that the parts do not include yet, from old to new. Flushes
    /// decide this, not runs: other merges may have put entries that are included into new runs.
    pub(crate) fn carry_over(&mut self, tree: &OpenTree, now: &Version) -> Result<()> {
        let is_missing = |placed: &&PlacedRun| {
            placed.span().hi() > self.watermark && !self.inputs.contains(&placed.id)
        };
        let missing: Vec<_> = now.runs.iter().rev().filter(is_missing).cloned().collect();
        missing.iter().try_for_each(|placed| self.insert(tree, placed, now))?;
        self.watermark = now.layout.next_flush;
        Ok(())
    }

    /// Inserts the keys that a run of `now` has in the range, of flushes from the watermark on.
    /// Requires: the run is newer than those whose keys the parts include.
    pub(crate) fn insert(
        &mut self,
        tree: &OpenTree,
        placed: &PlacedRun,
        now: &Version,
    ) -> Result<()> {
        let layout = &now.layout;
        let lowers: Vec<Vec<u8>> = self.parts[1..].iter().map(|(l, _)| l.clone()).collect();
        for (mut bounds, (lower, part)) in KeyBounds::between(&lowers).zip(&mut self.parts) {
            bounds.from.clone_from(lower);
            bounds.to = bounds.to.or_else(|| self.range.to.clone());
            if let Some(run) = placed.run.clip(&bounds)? {
                let among = (&**layout, &tree.shape_within(layout, &bounds));
                *part =
                    tree.counters.time_guard(|| insert_run(part, &run, among, self.watermark))?;
            }
        }
        Ok(())
    }
}
