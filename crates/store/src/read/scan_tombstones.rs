//! Deleted ranges, as one direction of a scan meets them.
//! ```text
//! memtables   of each what is seen at the scan's number
//! runs        of each table its own
//! answer      the newest deletion around a key, and how far it is the newest
//!
//! sealed      |--9--||--8--|   |--7--|                  at a: 9, from a to b
//! run         a     b      c   d   with 5 and less      what is older than 7 goes on at c
//! ```
//! Where a memtable's deletion is the newest around a key, that memtable says how far a source may
//! skip. This is for sources with nothing newer than the memtable's first deletion. They skip all
//! neighbouring deletions among which the memtable has no entry that is not hidden. It says the
//! same of its own entries.
//!
//! Invariant: of the deletions that the scan sees none is missing: they were published before it
//! took its number. What a source is taken past is hidden by a deletion that the scan sees.

use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::memtable::Memtable;
use crate::entries::memtable_tombstones::RangesAt;
use crate::entries::tombstones::Stretch;
use crate::read::scan_heap::Age;
use crate::sync::Arc;
use crate::tree::version::Version;

/// What is deleted around the key that was asked for last.
#[derive(Default)]
struct Known {
    newest: Option<Sequence>,
    /// The place in the list of the memtable that has it. None: a run has it.
    deleter: Option<usize>,
    /// As far as it is the newest.
    keys: KeyBounds,
}

/// A memtable with deletions that the scan sees.
struct Deleter {
    /// The newest is the first.
    number: usize,
    memtable: Arc<Memtable>,
    at: RangesAt,
}

/// The deleted ranges of a version.
pub(crate) struct ScanDeleted {
    version: Arc<Version>,
    at: Sequence,
    memtables: Vec<Deleter>,
    known: Option<Known>,
}

impl ScanDeleted {
    pub(crate) fn new(version: Arc<Version>, at: Sequence) -> Self {
        let sealed = version.sealed.iter().map(|sealed| &sealed.memtable);
        let memtables = std::iter::once(&version.active.memtable).chain(sealed);
        let seen = memtables.enumerate().filter_map(|(number, memtable)| {
            let at = memtable.ranges().at(at)?;
            Some(Deleter { number, memtable: Arc::clone(memtable), at })
        });
        let memtables = seen.collect();
        ScanDeleted { version, at, memtables, known: None }
    }

    /// The newest deletion that is in force for a key.
    #[inline]
    pub(crate) fn covering_tombstone(&mut self, key: &[u8]) -> Option<Sequence> {
        if self.memtables.is_empty() && !self.version.deletes_ranges {
            return None;
        }
        match &self.known {
            Some(known) if known.keys.contains(key) => known.newest,
            _ => self.look_up(key),
        }
    }

    #[cold]
    fn look_up(&mut self, key: &[u8]) -> Option<Sequence> {
        let in_runs = self.version.stretches(key, self.at);
        let mut all = in_runs.fold(Stretch::default(), Stretch::and);
        let mut deleter = None;
        for (place, Deleter { memtable, at, .. }) in self.memtables.iter().enumerate() {
            let stretch = memtable.ranges().stretch(*at, key);
            if stretch.newest > all.newest {
                deleter = Some(place);
            }
            all = all.and(stretch);
        }
        let Stretch { newest, from, until } = all;
        let known = self.known.get_or_insert_default();
        (known.newest, known.deleter) = (newest, deleter);
        known.keys.set(from.unwrap_or_default(), until);
        newest
    }

    /// Whether no run has anything newer than the deletion among the keys around the last one.
    /// Requires: they are deleted.
    pub(crate) fn hides_all_runs(&self, deleted: Sequence) -> bool {
        let (from, until) = (self.known_from(), self.known_until());
        let mut runs = self.version.runs.iter().map(|placed| &placed.run);
        runs.all(|run| run.greatest() < deleted || !run.may_have_in(from, until))
    }

    /// Where what a run has within the bounds begins at the earliest, if it is behind a deleted
    /// range that they begin in.
    pub(crate) fn behind(&mut self, run: Age, bounds: &KeyBounds) -> Option<&[u8]> {
        let deleted = self.covering_tombstone(&bounds.from)?;
        (run.greatest < deleted).then(|| self.until(&bounds.from, run))
    }

    /// The memtable with the newest deletion around the last key, if this source's entries are its
    /// own or older than all that it deletes.
    fn deleter(&self, source: Age) -> Option<&Deleter> {
        let deleter = &self.memtables[self.known.as_ref()?.deleter?];
        let is_older = || source.greatest < deleter.memtable.ranges().first();
        (source.memtable == Some(deleter.number) || is_older()).then_some(deleter)
    }

    /// Whether what hides an entry of a memtable at the last key tells of others around it. (If
    /// not, a log has told of writes that were not in order.)
    pub(crate) fn hides_much(&self, memtable: Age) -> bool {
        self.deleter(memtable).is_some()
    }

    /// The keys around the last one among which a memtable may have entries that are newer than the
    /// deletion there. None: it has none. Requires: an entry of its at the key is hidden, and so
    /// are others.
    pub(crate) fn shown(&self, key: &[u8], memtable: Age) -> Option<Stretch<'_>> {
        let own = |deleter: &&Deleter| memtable.memtable == Some(deleter.number);
        let Deleter { memtable, at, .. } = self.deleter(memtable).filter(own)?;
        memtable.ranges().shows(*at, key).then(|| memtable.ranges().stretch(*at, key))
    }

    /// The first of the keys around the last one at which a source is to be passed. Requires:
    /// nothing that it has among those that are deleted as the last one is seen.
    pub(crate) fn from(&self, key: &[u8], source: Age) -> &[u8] {
        match self.deleter(source) {
            Some(Deleter { memtable, at, .. }) => memtable.ranges().hidden_from(*at, key),
            None => self.known_from(),
        }
    }

    /// The first key behind them.
    pub(crate) fn until(&self, key: &[u8], source: Age) -> &[u8] {
        match self.deleter(source) {
            Some(Deleter { memtable, at, .. }) => memtable.ranges().hidden_until(*at, key),
            None => self.known_until(),
        }
    }

    fn known_from(&self) -> &[u8] {
        &self.known.as_ref().expect("a key was asked for").keys.from
    }

    fn known_until(&self) -> &[u8] {
        let until = self.known.as_ref().and_then(|known| known.keys.to.as_deref());
        until.expect("what is deleted ends somewhere")
    }
}
