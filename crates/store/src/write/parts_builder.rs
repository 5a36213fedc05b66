//! The parts of a global filter that a merge into the last level builds, and those that are read
//! from the runs.
//! ```text
//! keys of the output   a b c | d e f | g h ...   one part for each partition, fed by one submerge
//!                                                after the other
//! runs that stay       b     |   e   |   h       their keys are carried over, each with its own
//!                                                flush
//! ```
//! Invariant: a part is queried when every run of its version is in it. Runs that come during a
//! merge are carried over in passes outside the lock, the last one under it (ordering rule 3).

use trommel_filters::{
    Asked, FlushNumber, GrfOptions, KeyList, KeySample, Part, PartBuilder, Questions,
};

use crate::entries::key_bounds::KeyBounds;
use crate::error::Result;
use crate::files::distinct_keys::Keys;
use crate::files::placed_run::PlacedRun;
use crate::guard::allotment::Allotment;
use crate::guard::rebuild::{OLDEST_RUN, insert_run, part_builder};
use crate::plan::flush_size::OverlayShare;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;

/// Keys wait until there are so many, so that the clock is read once for them.
const KEYS_WAITING: usize = 4096;

/// Builds the parts of a key range from the keys that outlive a merge, which its submerges give.
///
/// Parts are built in key order: the submerges take turns. One that runs before its turn keeps its
/// keys until then. So a merge over n threads has the keys of about n - 1 submerges in memory.
pub(crate) struct PartsBuilder {
    /// The submerge whose keys are next.
    turn: AtomicUsize,
    building: Mutex<Building>,
}

struct Building {
    options: PartOptions,
    overlay_share: Option<OverlayShare>,
    expected: Expected,
    /// Parts that are built, and where they begin.
    done: Vec<(Vec<u8>, Part)>,
    /// Where the part begins that is being built.
    lower: Vec<u8>,
    builder: PartBuilder,
    /// Submerges that ended before their turn.
    ended: Vec<SubmergeKeys>,
    peak_bytes: usize,
}

/// The options of parts, by where they begin.
pub(crate) struct PartOptions {
    pub(crate) options: GrfOptions,
    /// Decides about their bits. None: the options do.
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
    /// Of the keys that are merged.
    pub(crate) sample: KeySample,
    /// The keys of all parts, and of one, about.
    pub(crate) all_keys: u64,
    pub(crate) keys: u64,
    pub(crate) asked: Asked,
    pub(crate) questions: Questions,
}

impl Expected {
    fn prepare(&self, builder: PartBuilder) -> PartBuilder {
        let builder = builder.asked(self.asked).with_sample(&self.sample, self.keys);
        builder.with_questions(&self.questions, &self.sample, self.all_keys)
    }
}

/// The keys of a submerge on their way into the parts, in order.
pub(crate) struct SubmergeKeys {
    /// The submerge's place, in key order.
    place: usize,
    keys: KeyList,
    last: Option<Vec<u8>>,
    cuts: Vec<PartCut>,
}

/// A part begins at `lower`, before key number `at` of those that wait.
struct PartCut {
    at: usize,
    lower: Vec<u8>,
}

impl SubmergeKeys {
    /// Of submerge number `place`.
    pub(crate) fn new(place: usize) -> Self {
        let (keys, last, cuts) = Default::default();
        SubmergeKeys { place, keys, last, cuts }
    }

    pub(crate) fn push(&mut self, key: &[u8], parts: &PartsBuilder, tree: &OpenTree) {
        match &mut self.last {
            Some(last) if last == key => return,
            Some(last) => key.clone_into(last),
            None => self.last = Some(key.to_vec()),
        }
        self.keys.push(key);
        if self.keys.len() >= KEYS_WAITING && parts.turn.load(Ordering::Acquire) == self.place {
            tree.counters.time_guard(|| lock(&parts.building).take(self));
        }
    }

    /// The next part begins at `key`: the keys so far are before it, and the next ones are not.
    pub(crate) fn cut(&mut self, key: &[u8]) {
        self.cuts.push(PartCut { at: self.keys.len(), lower: key.to_vec() });
    }
}

impl PartsBuilder {
    /// `overlay_share`: the share of all entries that runs above the last level will have; None:
    /// that is not known.
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

    /// A submerge has given all its keys.
    pub(crate) fn end(&self, keys: SubmergeKeys, tree: &OpenTree) {
        let mut building = lock(&self.building);
        building.ended.push(keys);
        // Only this function moves the turn, under this lock.
        let mut turn = self.turn.load(Ordering::Relaxed);
        while let Some(at) = building.ended.iter().position(|ended| ended.place == turn) {
            let mut keys = building.ended.swap_remove(at);
            tree.counters.time_guard(|| building.take(&mut keys));
            turn += 1;
        }
        self.turn.store(turn, Ordering::Release);
    }

    /// All parts, in key order. Requires: all submerges have ended, and this
    /// is the first call.
    pub(crate) fn finish(&self, tree: &OpenTree) -> Vec<(Vec<u8>, Part)> {
        let mut building = lock(&self.building);
        assert!(building.ended.is_empty(), "a submerge has not ended");
        building.cut(&[]);
        tree.counters.rebuilt(building.peak_bytes);
        std::mem::take(&mut building.done)
    }
}

impl Building {
    /// Takes the keys that a submerge has by now. Requires: it is its turn.
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

    /// Ends a part; the next one begins at `lower`.
    fn cut(&mut self, lower: &[u8]) {
        let next = part_builder(&self.options.at(lower), self.overlay_share);
        let next = self.expected.prepare(next);
        let builder = std::mem::replace(&mut self.builder, next);
        self.peak_bytes = self.peak_bytes.max(self.done_bytes() + builder.peak_bytes());
        let lower = std::mem::replace(&mut self.lower, lower.to_vec());
        self.done.push((lower, builder.finish(OLDEST_RUN)));
    }

    fn done_bytes(&self) -> usize {
        self.done.iter().map(|(_, part)| part.size().base_bytes as usize).sum()
    }
}

/// Parts of a key range on their way into a version: which of its flushes they have.
pub(crate) struct PreparedParts {
    pub(crate) range: KeyBounds,
    pub(crate) parts: Vec<(Vec<u8>, Part)>,
    /// The ids of the merge's inputs, whose keys the parts have from its output.
    pub(crate) inputs: Vec<u64>,
    /// The entries of all flushes below this one are in the parts.
    pub(crate) watermark: FlushNumber,
}

impl PreparedParts {
    /// Inserts the entries of `now` that are not carried over yet, from old to new. Their flushes
    /// decide, not their runs: other merges may have made new runs of entries that are in already.
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
    /// Requires: it is newer than those whose keys are in the parts.
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
