//! The guard whose filter knows which run each key is in now: Chucky and Remix.
//! ```text
//! query -> filter -> slots -> spans of the runs that have them now
//!                             and of runs without a slot
//! ```
//! Such a filter describes one version only. So each version has its own filter, a clone that
//! shares most pages with the previous one. Readers of older versions get right answers, too.
//!
//! Invariant: for a run with a slot, the filter has each key of the run in that slot. A level may
//! have more runs than slots, or a run may exceed the filter's room. Such runs have no slot and are
//! always searched, until they are merged.

use trommel_filters::{
    AnyRunLocator, Codes, KeyList, Move, Query, RunLocatorKind, RunLocatorSize, RunSlot, SlotSet,
    Span, Trace, TreePlan,
};

use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::plan::flush_size::FlushSize;
use crate::plan::layout::Layout;
use crate::plan::options::Options;
use crate::plan::policy::Schedule;

/// The most slots of a tree.
const SLOTS_MAX: usize = 256;
/// A filter takes at most this many times the entries that it was built for.
const ROOM_FACTOR: u64 = 2;
/// The reciprocal of the share of a filter's room that keys of dropped tables may take before the
/// filter is rebuilt.
const LEFT_OVER_PART: u64 = 32;
/// A rebuilt filter has this many times the room that it needs until the next merge of everything,
/// up to a full last level. So a level that grows by a unit per merge needs some five filters.
const GROWTH: f64 = 1.25;

/// A run of the version, and its slot.
#[derive(Clone, Copy)]
struct SlottedRun {
    id: u64,
    span: Span,
    slot: Option<RunSlot>,
}

/// The filter, and the slots of a version's runs.
#[derive(Clone)]
pub(crate) struct LocatorGuard {
    kind: &'static dyn RunLocatorKind,
    filter: Box<dyn AnyRunLocator>,
    plan: TreePlan,
    runs: Vec<SlottedRun>,
    /// The slot of a run that a merge is writing.
    reserved: Option<RunSlot>,
    /// Whether the filter is a sorted view of every entry of all runs.
    is_whole: bool,
}

impl LocatorGuard {
    /// Makes the guard of a tree without runs.
    pub(crate) fn empty(kind: &'static dyn RunLocatorKind, options: &Options) -> Self {
        let plan = plan(options, 1, 0);
        let filter = kind.builder(&plan).finish();
        LocatorGuard { reserved: None, ..LocatorGuard::of_oldest(kind, filter, plan) }
    }

    /// Makes the guard of a tree that is to have only its oldest run. The filter has the run's
    /// keys, and the run's slot is reserved.
    pub(crate) fn of_oldest(
        kind: &'static dyn RunLocatorKind,
        filter: Box<dyn AnyRunLocator>,
        plan: TreePlan,
    ) -> Self {
        let last = plan.runs_of_levels.len() - 1;
        let reserved = plan.slot(last, usize::from(plan.runs_of_levels[last]) - 1);
        LocatorGuard { kind, filter, plan, runs: Vec::new(), reserved, is_whole: false }
    }

    /// Makes the guard of a tree that has only this run, by reading the run's keys.
    fn of_run(
        kind: &'static dyn RunLocatorKind,
        plan: TreePlan,
        oldest: &PlacedRun,
        source: &mut KeySource,
    ) -> Result<Self> {
        let mut builder = kind.builder(&plan);
        source.tables(oldest.run.tables(), kind, |key| match key {
            KeyOrHash::Hash(hash) => builder.push_hash(hash),
            KeyOrHash::Key(key) => builder.push(key),
        })?;
        let mut guard = LocatorGuard::of_oldest(kind, builder.finish(), plan);
        guard.settle_run(oldest.id, oldest.span());
        Ok(guard)
    }

    /// Asks the filter once.
    #[inline]
    pub(crate) fn ask(&self, query: &Query<'_>, codes: &mut Codes) {
        let mut slots = SlotSet::default();
        self.filter.candidates(query, &mut slots);
        self.resolve(slots, codes);
    }

    /// Like `ask`; `trace` sees the memory that is read.
    pub(crate) fn ask_traced(&self, query: &Query<'_>, codes: &mut Codes, trace: &mut dyn Trace) {
        let mut slots = SlotSet::default();
        self.filter.candidates_traced(query, &mut slots, trace);
        self.resolve(slots, codes);
    }

    /// Adds the spans of the runs in these slots, and of the runs without a slot.
    #[inline]
    fn resolve(&self, slots: SlotSet, codes: &mut Codes) {
        for run in &self.runs {
            if run.slot.is_none_or(|slot| slots.contains(slot)) {
                codes.push(run.span);
            }
        }
    }

    /// Returns a key such that the run has no key from `from` up to it, exclusive. None: the run
    /// has no key from `from` on.
    pub(crate) fn lower_bound(&self, run: u64, from: &[u8]) -> Option<Vec<u8>> {
        let Some(slot) = self.slot_of(run) else { return Some(from.to_vec()) };
        self.filter.lower_bound(slot, from)
    }

    /// Returns a key such that the run has no key from it up to `before`. None: the run has no key
    /// before `before`.
    pub(crate) fn upper_bound(&self, run: u64, before: &[u8]) -> Option<Vec<u8>> {
        let Some(slot) = self.slot_of(run) else { return Some(before.to_vec()) };
        self.filter.upper_bound(slot, before)
    }

    pub(crate) fn kind(&self) -> &'static dyn RunLocatorKind {
        self.kind
    }

    pub(crate) fn size(&self) -> RunLocatorSize {
        let mut size = self.filter.size();
        size.bytes += self.runs.capacity() * size_of::<SlottedRun>();
        size
    }

    /// Adds a run of this many entries. Returns the slot in which its keys must then be noted.
    /// None: there is no slot, or far too little room.
    pub(crate) fn add_run(
        &mut self,
        id: u64,
        level: usize,
        span: Span,
        entries: u64,
    ) -> Option<RunSlot> {
        let slot = self.free_slot(level).filter(|_| self.has_room(entries));
        self.runs.push(SlottedRun { id, span, slot });
        self.is_whole = false;
        slot
    }

    pub(crate) fn note_all(&mut self, keys: &KeyList, of: &dyn Fn(usize) -> Move) {
        self.filter.note_all(keys, of);
    }

    /// Reserves a slot for the output of a merge into a level. This is the slot of its largest
    /// input there, whose keys need not move (Chucky, section 4.1), or else a free one.
    pub(crate) fn reserve(&mut self, level: usize, inputs: &[PlacedRun]) -> Option<RunSlot> {
        let there = inputs.iter().filter(|placed| placed.level == level);
        let slotted =
            there.filter_map(|placed| Some((placed.run.entry_count(), self.slot_of(placed.id)?)));
        let largest = slotted.max_by_key(|(entries, _)| *entries);
        self.reserved = largest.map(|(_, slot)| slot).or_else(|| self.free_slot(level));
        self.reserved
    }

    /// Reserves the slot of the oldest run for the output of a merge of all runs. None: the filter
    /// must be rebuilt. It need not be if its room fits `plan`, is not far too large, and has few
    /// keys of tables that were dropped unread.
    pub(crate) fn reserve_oldest(
        &mut self,
        plan: &TreePlan,
        inputs: &[PlacedRun],
    ) -> Option<RunSlot> {
        let oldest = inputs.last().and_then(|placed| self.slot_of(placed.id));
        let RunLocatorSize { entries, room, .. } = self.filter.size();
        let known: u64 = inputs.iter().map(|placed| placed.run.entry_count()).sum();
        let is_fit = self.kind.takes_hashes()
            && plan.runs_of_levels == self.plan.runs_of_levels
            && (plan.entries..=plan.entries.saturating_mul(2)).contains(&room)
            && entries.saturating_sub(known) <= room / LEFT_OVER_PART;
        self.reserved = oldest.filter(|_| is_fit);
        self.reserved
    }

    /// Returns the slot of a run.
    pub(crate) fn slot_of(&self, id: u64) -> Option<RunSlot> {
        self.runs.iter().find(|run| run.id == id).and_then(|run| run.slot)
    }

    /// Whether the guard knows a run.
    pub(crate) fn knows(&self, id: u64) -> bool {
        self.runs.iter().any(|run| run.id == id)
    }

    /// Forgets the inputs of a merge, whose keys are all in the reserved slot now.
    pub(crate) fn remove_runs(&mut self, ids: &[u64]) {
        for run in self.runs.iter().filter(|run| ids.contains(&run.id)) {
            if let Some(slot) = run.slot.filter(|_| run.slot != self.reserved) {
                self.filter.vacate(slot);
            }
        }
        self.runs.retain(|run| !ids.contains(&run.id));
        self.is_whole = false;
    }

    /// Updates the spans to this layout. The one run that is unknown gets the reserved slot.
    pub(crate) fn settle(&mut self, layout: &Layout) {
        for run in &layout.runs {
            let (id, span) = (run.id, run.span());
            match self.runs.iter_mut().find(|known| known.id == id) {
                Some(known) => known.span = span,
                None => self.settle_run(id, span),
            }
        }
        self.reserved = None;
    }

    /// Adds the run of the reserved slot.
    fn settle_run(&mut self, id: u64, span: Span) {
        self.runs.push(SlottedRun { id, span, slot: self.reserved.take() });
        self.is_whole = false;
    }

    /// Notes the keys of all runs that the guard does not know, from old to new, except those of
    /// `leaving`.
    pub(crate) fn catch_up(&mut self, runs: &[PlacedRun], leaving: &[u64]) -> Result<()> {
        let missing = |placed: &&PlacedRun| !self.knows(placed.id) && !leaving.contains(&placed.id);
        let missing: Vec<&PlacedRun> = runs.iter().rev().filter(missing).collect();
        let mut source = KeySource::default();
        missing.into_iter().try_for_each(|placed| self.note_run(placed, &mut source))
    }

    /// Notes the keys of a run.
    fn note_run(&mut self, placed: &PlacedRun, source: &mut KeySource) -> Result<()> {
        let entries = placed.run.entry_count();
        let slot = self.add_run(placed.id, placed.level, placed.span(), entries);
        let Some(slot) = slot else { return Ok(()) };
        let kind = self.kind();
        source.tables(placed.run.tables(), kind, |key| match key {
            KeyOrHash::Hash(hash) => self.filter.note_hash(hash, None, Some(slot)),
            KeyOrHash::Key(key) => self.filter.note(key, None, Some(slot)),
        })
    }

    /// Whether this many more entries fit without far exceeding the room of a filter of hashes.
    /// Beyond that, its lists of overflowing entries would take long to search.
    fn has_room(&self, entries: u64) -> bool {
        if !self.kind.takes_hashes() {
            return true;
        }
        let RunLocatorSize { entries: noted, room, .. } = self.filter.size();
        noted + entries <= room.saturating_mul(ROOM_FACTOR)
    }

    /// Returns the first slot of a level that no run has.
    fn free_slot(&self, level: usize) -> Option<RunSlot> {
        let taken = |slot: RunSlot| self.runs.iter().any(|run| run.slot == Some(slot));
        let slots = (0..SLOTS_MAX).map_while(|nth| self.plan.slot(level, nth));
        slots.into_iter().find(|&slot| !taken(slot) && self.reserved != Some(slot))
    }
}

/// Returns the guard with a flushed run, given by id and span, and its keys. The first run of a
/// tree is its oldest run.
pub(crate) fn with_flush(
    guard: &LocatorGuard,
    options: &Options,
    (id, span): (u64, Span),
    keys: &KeyList,
) -> LocatorGuard {
    if guard.runs.is_empty() {
        let plan = plan(options, 1, 2 * keys.len() as u64);
        let mut builder = guard.kind.builder(&plan);
        keys.iter().for_each(|key| builder.push(key));
        let mut next = LocatorGuard::of_oldest(guard.kind, builder.finish(), plan);
        next.settle_run(id, span);
        return next;
    }
    let mut next = guard.clone();
    if let Some(slot) = next.add_run(id, 0, span, keys.len() as u64) {
        next.note_all(keys, &|_| (None, Some(slot)));
    }
    next
}

/// Like [`with_flush`], for a run of distinct keys, which are read from its tables.
pub(crate) fn with_run(
    guard: &LocatorGuard,
    options: &Options,
    new: &PlacedRun,
) -> Result<LocatorGuard> {
    let mut source = KeySource::default();
    if guard.runs.is_empty() {
        let plan = plan(options, 1, 2 * new.run.entry_count());
        return LocatorGuard::of_run(guard.kind, plan, new, &mut source);
    }
    let mut next = guard.clone();
    next.note_run(new, &mut source)?;
    Ok(next)
}

/// The number of entries that a tree is expected to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedEntries {
    /// Until the next merge of everything.
    pub(crate) needed: u64,
    /// When the last level is full.
    pub(crate) full: u64,
}

impl ExpectedEntries {
    /// Estimates for a tree with this many entries in its oldest run. If no flush is known, the
    /// newer runs are expected to reach as many. A merge of everything adds some flushes meanwhile.
    pub(crate) fn new(oldest: u64, size: FlushSize, schedule: &Schedule<'_>) -> Self {
        let share = size.overlay_share(oldest, schedule).map_or(0.5, |share| share.now);
        let meanwhile = size.entries().unwrap_or(0.0) * schedule.ratio(0) as f64;
        let needed = oldest as f64 / (1.0 - share.clamp(0.0, 0.9)) + meanwhile;
        let full = size.entries().zip(size.last_level(oldest, schedule)).map(|(flush, level)| {
            flush * schedule.unit_flushes(level) * schedule.ratio(level) as f64
        });
        let needed = needed.ceil() as u64;
        ExpectedEntries { needed, full: full.map_or(needed, |full| (full as u64).max(needed)) }
    }

    /// Returns the room of a new filter.
    pub(crate) fn room(self) -> u64 {
        ((self.needed as f64 * GROWTH) as u64).min(self.full).max(self.needed)
    }
}

/// Returns the plan of a tree with this many entries and levels, at least two. With a single level,
/// newer runs wait above the oldest.
pub(crate) fn plan(options: &Options, levels: usize, entries: u64) -> TreePlan {
    let levels = levels.max(2);
    let schedule = options.schedule();
    let fair = (SLOTS_MAX - 1) / levels;
    // The usual runs are those that the policy leaves, and one being written. More wait while
    // merges lag behind.
    let (usual, most) = (schedule.inner_runs(0) + 1, 2 * schedule.ratio(0) + 2);
    let of_level = |level: usize| match level + 1 == levels {
        true => schedule.last_runs(level).min(fair),
        false if level == 0 => most.min(fair),
        // The last level may have runs beside the oldest one.
        false => schedule.inner_runs(level).max(schedule.last_runs(level) - 1).min(fair),
    };
    TreePlan {
        runs_of_levels: (0..levels).map(|level| of_level(level) as u8).collect(),
        waiting_runs: most.min(fair).saturating_sub(usual) as u8,
        size_ratio: options.size_ratio,
        entries,
        bits_per_key: options.bits_per_key,
    }
}

/// Rebuilds the guard of a tree from its runs. Also returns the source: hashes of the runs' keys
/// suffice for some kinds.
pub(crate) fn rebuild(
    kind: &'static dyn RunLocatorKind,
    options: &Options,
    (layout, runs): (&Layout, &[PlacedRun]),
) -> Result<(LocatorGuard, KeySource)> {
    let mut source = KeySource::default();
    let Some((oldest, newer)) = runs.split_last() else {
        return Ok((LocatorGuard::empty(kind, options), source));
    };
    if kind.has_sorted_view()
        && let Some(guard) = sorted::of_runs(kind, options, (layout, runs))?
    {
        let tables = runs.iter().map(|placed| placed.run.tables().len()).sum();
        return Ok((guard, KeySource::keys(tables)));
    }
    let plan = plan_of(options, layout);
    let mut guard = LocatorGuard::of_run(kind, plan, oldest, &mut source)?;
    newer.iter().rev().try_for_each(|placed| guard.note_run(placed, &mut source))?;
    Ok((guard, source))
}

/// Returns the plan of a tree in its present state.
fn plan_of(options: &Options, layout: &Layout) -> TreePlan {
    let (oldest, inner) = layout.runs.split_last().expect("a tree with runs");
    let size = FlushSize::of_tree(layout, inner, options.division().granularity);
    let expected = ExpectedEntries::new(oldest.entries(), size, &options.schedule());
    // The oldest run has a level of its own.
    let levels = inner.iter().map(|run| run.level + 2).max();
    let levels = layout.level_count().max(levels.unwrap_or(1));
    plan(options, levels, expected.room())
}

mod followed;
pub(crate) use followed::followed;

mod keys;
use keys::KeyOrHash;
pub(crate) use keys::KeySource;

mod sorted;
pub(crate) use sorted::of_runs as sorted_of_runs;
