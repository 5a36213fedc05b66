//! One direction of a scan: merges the cursors of memtables and runs, and opens a run only when
//! needed.
//! ```text
//! guard          next entry may be at or before the smallest current key -> position its runs
//!                one filter for all: its cursor     else: a bound for each run (read/scan_lazy.rs)
//! heap           memtable, run, run                                     <- positioned sources
//! waiting        run, run, run, ...                                     <- not read yet
//! deleted        [from, until): a source without newer entries skips to the end of the range
//! ```
//! Invariant: before a key is returned, every run that may hold a key at or before it is
//! positioned. Ties count, because a newer run may hold a newer entry of the same key.

use std::borrow::Cow;
use std::collections::VecDeque;

use trommel_filters::{Codes, FlushNumber, KeyRange, Query, Span};

use crate::entries::cursor::{Cursor, RunsRead};
use crate::entries::entry::{Entry, Kind, Sequence};
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keys::successor;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::files::placed_run::PlacedRun;
use crate::files::query_blocks::Fetched;
use crate::files::read_ahead::Approach;
use crate::files::run::Run;
use crate::files::value_file::pending_read::PendingRead;
use crate::guard::locator::LocatorGuard;
use crate::guard::parts::{Parts, PartsCursor};
use crate::guard::{Answer, Guard};
use crate::read::lookup::{PointQuery, count_reads};
use crate::read::scan_cursor::ScanCursor;
use crate::read::scan_heap::{Age, Source, Sources};
use crate::read::scan_lazy::{self, PositionSource, Sorted, WaitingRuns};
use crate::read::scan_tombstones::ScanDeleted;
use crate::sync::{Arc, giving_up};
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::QueryStats;
use crate::tree::version::{HeldVersion, Holder, Version};

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    /// Returns the bound at which the direction starts. None: there is none.
    fn near(self, bounds: &KeyBounds) -> Option<&[u8]> {
        match self {
            Direction::Forward => Some(&bounds.from),
            Direction::Backward => bounds.to.as_deref(),
        }
    }

    /// Returns the bound at which the direction ends. None: there is none.
    pub(crate) fn far(self, bounds: &KeyBounds) -> Option<&[u8]> {
        match self {
            Direction::Forward => bounds.to.as_deref(),
            Direction::Backward => Some(bounds.from.as_slice()).filter(|from| !from.is_empty()),
        }
    }

    /// Whether everything from `bound` on lies outside the bounds. Forward, these are keys at or
    /// after `bound`; backward, keys before it.
    pub(crate) fn ends_before(self, bound: &[u8], bounds: &KeyBounds) -> bool {
        match self {
            Direction::Forward => !bounds.ends_after(bound),
            Direction::Backward => bound <= bounds.from.as_slice(),
        }
    }

    /// Whether a key comes after another one in this direction.
    #[inline]
    fn is_after(self, key: &[u8], before: &[u8]) -> bool {
        match self {
            Direction::Forward => key > before,
            Direction::Backward => key < before,
        }
    }
}

/// One direction of a scan over one version.
pub(crate) struct Side {
    version: HeldVersion,
    at: Sequence,
    direction: Direction,
    /// Some: runs are read only as far as their blocks are in here or in the cache.
    blocks: Option<Arc<Fetched>>,
    sources: Sources,
    /// Runs that wait for the cursor of a global guard: their places in the version's runs, and
    /// their spans.
    waiting: Vec<(usize, Span)>,
    guard: Lazy,
    /// The remaining prefetch steps for the runs that wait.
    approaches: std::slice::Iter<'static, Approach>,
    deleted: ScanDeleted,
    /// The key that was returned last.
    key: Vec<u8>,
    /// Whether a key was returned.
    begun: bool,
    /// The cursors have not moved past the key's entries yet. The next entry may be in a block that
    /// is never needed.
    holds_key: bool,
    /// The value of the key that was found last, until it is taken. None: the next entry, which
    /// belongs to the key, has it. Passing the value from call to call would write and reread it in
    /// pieces of different sizes, which stalls the processor.
    value: Option<Value>,
    probes: u64,
    /// Counts keys without a value, to ask the caller now and then.
    passed_over: u32,
    runs_reached: bool,
    /// The costs of reading operands, what lies below them, and value files.
    of_operands: QueryStats,
    keys_only: bool,
    /// What the value that was found last is. Set once the scan has met a value apart.
    value_kind: ValueKind,
    /// Some: the scan has met a value apart.
    ahead: Option<Box<ValuesAhead>>,
}

/// What a value is that a scan has found.
#[derive(Default)]
enum ValueKind {
    #[default]
    Plain,
    /// A reference.
    Apart,
    /// Made of operands.
    Made,
}

/// The value of a key.
enum FoundValue {
    Here(Value),
    /// Made of operands, which outlive the value below them.
    Made(Value),
    /// A reference, and the read of its value if a queue does it.
    Apart(Value, Option<PendingRead>),
}

/// Entries that were found before they are asked for (`values_ahead.rs`).
#[derive(Default)]
struct ValuesAhead {
    found: VecDeque<(Vec<u8>, Result<FoundValue>)>,
    /// Bytes of values apart among them.
    bytes: u64,
    /// How many entries may be found ahead now.
    depth: usize,
    /// The key that was returned last, once a key behind the first value apart was returned.
    given: Option<Vec<u8>>,
}

/// Decides when a waiting run must be positioned.
enum Lazy {
    /// Nothing waits.
    Done,
    Forward(Box<PartsCursor<false>>),
    Backward(Box<PartsCursor<true>>),
    /// Each run has a bound of its own.
    Runs(WaitingRuns),
}

impl Side {
    pub(crate) fn new(
        version: Arc<Version>,
        at: Sequence,
        direction: Direction,
        bounds: &KeyBounds,
        blocks: Option<Arc<Fetched>>,
    ) -> Result<Self> {
        let runs_reached = !version.runs.is_empty();
        let sources = Sources::new(direction, version.runs.len() + version.sealed.len() + 1);
        let deleted = ScanDeleted::new(Arc::clone(&version), at);
        let mut side = Side {
            version: HeldVersion::new(version, Holder::Scan),
            at,
            direction,
            blocks,
            sources,
            waiting: Vec::new(),
            guard: Lazy::Done,
            approaches: Approach::ALL.iter(),
            deleted,
            key: Vec::new(),
            begun: false,
            holds_key: false,
            value: None,
            probes: 0,
            passed_over: 0,
            runs_reached,
            of_operands: QueryStats::default(),
            keys_only: false,
            value_kind: ValueKind::Plain,
            ahead: None,
        };
        side.position_memtables(bounds)?;
        side.ask_guard(bounds)?;
        Ok(side)
    }

    /// Makes the side skip all values and read no value file.
    pub(crate) fn keys_only(self) -> Self {
        Side { keys_only: true, ..self }
    }

    pub(crate) fn merge_epoch(&self) -> u64 {
        self.version.merge_epoch
    }

    fn position_memtables(&mut self, bounds: &KeyBounds) -> Result<()> {
        let version = Arc::clone(&self.version);
        let sealed = version.sealed.iter().map(|sealed| (&sealed.memtable, sealed.last));
        let active = std::iter::once((&version.active.memtable, Sequence::MAX));
        for (number, (memtable, greatest)) in active.chain(sealed).enumerate() {
            if !memtable.is_empty() {
                let age = Age { memtable: Some(number), greatest };
                self.add_source(ScanCursor::Memtable(memtable.cursor()), None, age, bounds)?;
            }
        }
        Ok(())
    }

    fn ask_guard(&mut self, bounds: &KeyBounds) -> Result<()> {
        let Some(range) = bounds.closed() else { return Ok(()) };
        let version = Arc::clone(&self.version);
        match &version.guard {
            Guard::Global(parts) => self.ask_global(parts, bounds, &range),
            Guard::Locator(guard) => self.ask_locator(guard, bounds, &range),
            Guard::Open | Guard::PerTable => self.ask_runs(&PositionSource::Tables, bounds, &range),
        }
    }

    /// For a bounded range, positions the runs that the filter names. Otherwise the filter's cursor
    /// is asked as the scan proceeds.
    fn ask_global(
        &mut self,
        parts: &Parts,
        bounds: &KeyBounds,
        range: &KeyRange<'_>,
    ) -> Result<()> {
        let bounded = bounds.to.is_some() && self.direction.far(bounds).is_some();
        let version = Arc::clone(&self.version);
        let answer = if bounded { version.guard.ask(&Query::Range(*range)) } else { Answer::All };
        self.probes = u64::from(self.runs_reached);
        let listed = match &answer {
            Answer::Codes(codes) => !codes.is_all(),
            Answer::All | Answer::Point(_) | Answer::Range(_) => false,
        };
        if !listed {
            let spans = version.runs.iter().map(PlacedRun::span);
            self.waiting = spans.enumerate().collect();
            self.guard = match self.direction {
                Direction::Forward => {
                    Lazy::Forward(Box::new(PartsCursor::new(parts, Some(range.lower()))))
                }
                Direction::Backward => {
                    Lazy::Backward(Box::new(PartsCursor::new(parts, range.upper())))
                }
            };
            return Ok(());
        }
        for placed in version.runs.iter().filter(|placed| answer.may_be_in(placed.span())) {
            let overlapping = placed.run.overlapping(range.lower(), bounds.to.as_deref());
            if overlapping.iter().any(|table| answer.may_hold(table)) {
                self.add_run(&placed.run, bounds)?;
            }
        }
        Ok(())
    }

    /// Asks the filter for a bounded range. If the filter has a complete view of all runs, the scan
    /// uses it. Otherwise the filter is asked where each run continues.
    fn ask_locator(
        &mut self,
        guard: &LocatorGuard,
        bounds: &KeyBounds,
        range: &KeyRange<'_>,
    ) -> Result<()> {
        let mut codes = Codes::new();
        match bounds.to {
            Some(_) => guard.ask(&Query::Range(*range), &mut codes),
            None => codes.push_all(),
        }
        let cursor =
            if codes.is_empty() { None } else { guard.cursor(&self.version.runs, self.at, bounds) };
        match cursor {
            Some(cursor) => {
                let greatest = self.version.runs.iter().map(|placed| placed.run.greatest()).max();
                let age = Age { memtable: None, greatest: greatest.unwrap_or(Sequence::MAX) };
                self.add_source(ScanCursor::View(Box::new(cursor)), None, age, bounds)?;
            }
            None => self.ask_runs(&PositionSource::Locator { guard, codes }, bounds, range)?,
        }
        self.probes = u64::from(self.runs_reached);
        Ok(())
    }

    /// Positions the runs of which it is unknown where they continue; the others wait.
    fn ask_runs(
        &mut self,
        source: &PositionSource<'_>,
        bounds: &KeyBounds,
        range: &KeyRange<'_>,
    ) -> Result<()> {
        let version = Arc::clone(&self.version);
        let Sorted { unknown, waiting, probes } =
            scan_lazy::sort(source, &version.runs, self.direction, bounds, range);
        self.probes = probes;
        if !waiting.is_empty() {
            self.guard = Lazy::Runs(waiting);
        }
        let key = self.direction.near(bounds);
        for approach in Approach::ALL.iter().filter(|_| unknown.len() > 1) {
            approach.prefetch(unknown.iter().map(|place| (&*version.runs[*place].run, key)));
        }
        unknown.into_iter().try_for_each(|place| self.add_run(&version.runs[place].run, bounds))
    }

    fn add_run(&mut self, run: &Arc<Run>, bounds: &KeyBounds) -> Result<()> {
        let age = Age { memtable: None, greatest: run.greatest() };
        let behind = self.deleted.behind(age, bounds);
        if behind.is_some_and(|from| bounds.to.as_deref().is_some_and(|end| end <= from)) {
            return Ok(());
        }
        let behind = behind.filter(|_| self.direction == Direction::Forward);
        let bounds = &behind.map_or(Cow::Borrowed(bounds), |from| {
            Cow::Owned(KeyBounds { from: from.to_vec(), to: bounds.to.clone() })
        });
        let cursor = run.cursor().with_blocks(self.blocks.clone());
        self.add_source(ScanCursor::Run(Box::new(cursor)), Some(run), age, bounds)
    }

    /// Adds a source. `run`: the run that it reads; None for a memtable, and for a view of all
    /// runs.
    fn add_source(
        &mut self,
        mut cursor: ScanCursor,
        run: Option<&Arc<Run>>,
        age: Age,
        bounds: &KeyBounds,
    ) -> Result<()> {
        match (self.direction, &bounds.to) {
            (Direction::Forward, _) => cursor.seek(&bounds.from)?,
            (Direction::Backward, Some(end)) => cursor.seek_before(end)?,
            (Direction::Backward, None) => cursor.seek_last()?,
        }
        let is_view = cursor.runs_read().is_some();
        self.sources.add(Source { cursor, run: run.cloned(), is_view, age, useful: false });
        Ok(())
    }

    /// Returns the value of the key that was found last. Requires: it was not taken yet.
    #[inline(always)]
    pub(crate) fn take_value(&mut self) -> Value {
        match self.value.take() {
            Some(value) => value,
            None => self.sources.value(),
        }
    }

    /// Lends the value of the key that was found last. Copying callers need no handle, which would
    /// change the reference count of the block twice. Requires: the value was not taken yet.
    #[inline(always)]
    pub(crate) fn lend_value<T>(&mut self, lend: impl FnOnce(&[u8]) -> T) -> T {
        match self.value.take() {
            Some(value) => lend(&value),
            None => lend(self.sources.entry().map(|entry| entry.value).unwrap_or_default()),
        }
    }

    /// Moves to the next key within the bounds that is neither deleted nor expired. Returns false
    /// if there is none. Then its value can be taken, which may be a reference: see `value_kind`.
    /// For a scan of keys only, the value may be anything.
    fn find(&mut self, bounds: &KeyBounds, tree: &OpenTree) -> Result<bool> {
        // Runs that are positioned after a deleted key begin behind it.
        let mut behind: Option<Box<KeyBounds>> = None;
        self.value = None;
        loop {
            let bounds = behind.as_deref().unwrap_or(bounds);
            if !matches!(self.guard, Lazy::Done) {
                self.ask_ahead(bounds);
            }
            self.pass_key()?;
            self.position_waiting(bounds)?;
            let Some(Entry { key, sequence, kind, .. }) = self.sources.entry() else {
                return Ok(false);
            };
            let outside = match self.direction {
                Direction::Forward => bounds.to.as_deref().is_some_and(|end| key >= end),
                Direction::Backward => key < bounds.from.as_slice(),
            };
            if outside {
                return Ok(false);
            }
            if self.begun && !self.direction.is_after(key, &self.key) {
                return Err(self.sources.disorder(&self.key, &self.version));
            }
            self.begun = true;
            key.clone_into(&mut self.key);
            let is_seen = self.sees_first_entry(sequence);
            if is_seen && kind == Kind::Put || self.find_unusual(is_seen.then_some(kind), tree)? {
                return Ok(true);
            }
            if !matches!(self.guard, Lazy::Done) {
                behind = Some(self.behind_key(bounds));
            }
        }
    }

    /// Returns the part of the bounds behind the current key.
    #[inline(never)]
    fn behind_key(&self, bounds: &KeyBounds) -> Box<KeyBounds> {
        let KeyBounds { from, to } = bounds.clone();
        Box::new(match self.direction {
            Direction::Forward => KeyBounds { from: successor(&self.key), to },
            Direction::Backward => KeyBounds { from, to: Some(self.key.clone()) },
        })
    }

    /// Finds the value of the current key if its first entry is not a plain put that is visible.
    /// `first`: the kind of that entry, if it is visible. Returns false if the key has no value.
    #[inline(never)]
    fn find_unusual(&mut self, first: Option<Kind>, tree: &OpenTree) -> Result<bool> {
        let newest = match first {
            Some(kind) => Some((kind, self.sources.value())),
            None => self.newest_visible()?,
        };
        self.value = match newest {
            Some((kind, stored)) => self.unusual(kind, stored, tree)?,
            None => None,
        };
        if self.value.is_some() {
            return Ok(true);
        }
        self.passed_over = self.passed_over.wrapping_add(1);
        if giving_up::is_given_up_after(self.passed_over) {
            return Err(Error::Cancelled);
        }
        Ok(false)
    }

    /// Moves the bounds behind the keys that the side has passed, once it was given up.
    #[cold]
    pub(crate) fn leave_behind(&self, bounds: &mut KeyBounds) {
        match self.direction {
            Direction::Forward => bounds.pass_front(&self.key),
            Direction::Backward => bounds.pass_back(&self.key),
        }
    }

    /// Returns the value of a key whose newest entry has this kind.
    fn unusual(&mut self, kind: Kind, stored: Value, tree: &OpenTree) -> Result<Option<Value>> {
        let unexpired = |value: Value| value.unless_expired(&*tree.env.clock);
        match kind {
            Kind::Put => Ok(Some(stored)),
            Kind::PutWithExpiry => Ok(unexpired(stored)),
            Kind::Merge if self.keys_only => Ok(Some(Value::empty())),
            Kind::Merge => self.merged_value(tree).map(Some),
            Kind::PutApart => self.found_apart(stored, tree).map(Some),
            Kind::PutApartWithExpiry => {
                unexpired(stored).map(|stored| self.found_apart(stored, tree)).transpose()
            }
            Kind::Delete | Kind::DeleteRange => Ok(None),
        }
    }

    /// Returns the value of the current key, whose newest entry is an operand.
    fn merged_value(&mut self, tree: &OpenTree) -> Result<Value> {
        let query = PointQuery { version: &self.version, key: &self.key, at: self.at };
        let made = tree.merged_value(query, &mut self.of_operands)?;
        if self.ahead.is_some() {
            self.value_kind = ValueKind::Made;
        }
        Ok(made)
    }

    /// Prefetches memory of waiting runs step by step, while keys are returned. A scan that
    /// continues after its first key will need them.
    fn ask_ahead(&mut self, bounds: &KeyBounds) {
        if self.key.is_empty() {
            return;
        }
        let Some(approach) = self.approaches.next() else { return };
        let (runs, near) = (&self.version.runs, self.direction.near(bounds));
        match &self.guard {
            Lazy::Runs(waiting) => {
                approach.prefetch(
                    waiting.iter().map(|(bound, place)| (&*runs[place].run, Some(bound))),
                );
            }
            _ => {
                approach.prefetch(self.waiting.iter().map(|(place, _)| (&*runs[*place].run, near)))
            }
        }
    }

    /// Positions every waiting run whose next entry may come at or before the key in hand.
    fn position_waiting(&mut self, bounds: &KeyBounds) -> Result<()> {
        let far = self.direction.far(bounds);
        while !matches!(self.guard, Lazy::Done) {
            let current = self.sources.entry().map(|entry| entry.key);
            // Entries of runs that are already positioned tell nothing new.
            let waiting = &self.waiting;
            let wanted = |code: Span| waiting.iter().any(|(_, span)| span.meets(code));
            let code = match &mut self.guard {
                Lazy::Done => break,
                Lazy::Runs(waiting) => {
                    let Some((place, bound)) = waiting.take_due(current, bounds) else {
                        return Ok(());
                    };
                    if waiting.is_empty() {
                        self.guard = Lazy::Done;
                    }
                    self.position_run_at(place, bound, bounds)?;
                    continue;
                }
                Lazy::Forward(cursor) => cursor.next_due(current.or(far), wanted),
                Lazy::Backward(cursor) => cursor.next_due(current.or(far), wanted),
            };
            let Some(code) = code else { return Ok(()) };
            self.position_runs_of(code, bounds)?;
            match &mut self.guard {
                _ if self.waiting.is_empty() => self.guard = Lazy::Done,
                // Most entries are of the last level. Once its run is positioned, they tell nothing
                // new.
                Lazy::Forward(cursor) if code.lo() == FlushNumber(0) => cursor.mute(code),
                Lazy::Backward(cursor) if code.lo() == FlushNumber(0) => cursor.mute(code),
                _ => {}
            }
        }
        Ok(())
    }

    /// Positions a waiting run at its bound: everything that it has left for the scan lies from
    /// there on.
    fn position_run_at(&mut self, place: usize, bound: Vec<u8>, bounds: &KeyBounds) -> Result<()> {
        let bounds = match self.direction {
            Direction::Forward => KeyBounds { from: bound, to: bounds.to.clone() },
            Direction::Backward => KeyBounds { from: bounds.from.clone(), to: Some(bound) },
        };
        let run = Arc::clone(&self.version.runs[place].run);
        self.add_run(&run, &bounds)
    }

    /// Positions the runs that may hold an entry with this code: those with tables in the range of
    /// the cursor's part whose spans meet it.
    fn position_runs_of(&mut self, code: Span, bounds: &KeyBounds) -> Result<()> {
        let part = match &self.guard {
            Lazy::Forward(cursor) => cursor.bounds(),
            Lazy::Backward(cursor) => cursor.bounds(),
            Lazy::Done | Lazy::Runs(_) => return Ok(()),
        };
        let version = Arc::clone(&self.version);
        let mut place = 0;
        while place < self.waiting.len() {
            let (run, span) = self.waiting[place];
            let run = &version.runs[run].run;
            let has = || run.within(&part).iter().any(|table| table.span.meets(code));
            if span.meets(code) && has() {
                self.waiting.remove(place);
                self.add_run(run, bounds)?;
            } else {
                place += 1;
            }
        }
        Ok(())
    }

    /// Adds the costs of this side to those of a scan.
    pub(crate) fn add_costs(mut self, costs: &mut QueryStats) {
        costs.reached_runs |= u64::from(self.runs_reached);
        costs.guard_probes += self.probes;
        costs.blocks_read += self.of_operands.blocks_read;
        costs.disk_reads += self.of_operands.disk_reads;
        costs.bytes_read += self.of_operands.bytes_read;
        let mut positioned = 0;
        for source in self.sources.iter_mut() {
            count_reads(costs, &source.cursor.reads());
            let is_in_hand =
                self.holds_key && source.cursor.entry().is_some_and(|entry| entry.key == self.key);
            let useful = u64::from(source.useful || is_in_hand);
            let own = RunsRead { positioned: 1, useful };
            if source.run.is_some() || source.is_view {
                let runs = source.cursor.runs_read().unwrap_or(own);
                positioned += runs.positioned;
                costs.true_positives += runs.useful;
                costs.false_positives += runs.positioned - runs.useful;
            }
        }
        costs.true_negatives += self.version.runs.len() as u64 - positioned;
    }
}

mod values_ahead;
mod versions;
