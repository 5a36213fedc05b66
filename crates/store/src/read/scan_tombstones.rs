//! Range tombstones in one direction of a scan.
//! ```text
//! memtables   of each, the tombstones that are visible to the scan
//! runs        of each table, its own
//! answer      the newest tombstone over a key, and the range in which it is the newest
//!
//! sealed      |--9--||--8--|   |--7--|                  at a: 9, from a to b
//! run         a     b      c   d   with 5 and less      a source with nothing above 7 skips to c
//! ```
//! If the newest tombstone over a key is in a memtable, that memtable decides how far a source may
//! skip. This applies to sources that have nothing newer than the memtable's first tombstone. They
//! skip all adjacent tombstones in which the memtable has only hidden entries. The memtable's own
//! entries are treated in the same way.
//!
//! Invariant: no tombstone that is visible to the scan is missing, since all were published before
//! the scan took its number. A source skips only entries that such a tombstone hides.

use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::memtable::Memtable;
use crate::entries::memtable_tombstones::RangesAt;
use crate::entries::tombstones::Stretch;
use crate::read::scan_heap::Age;
use crate::sync::Arc;
use crate::tree::version::Version;

/// What is deleted around the key of the last query.
#[derive(Default)]
struct Known {
    newest: Option<Sequence>,
    /// The index in `memtables` of the one that has the newest tombstone. None: a run has it.
    deleter: Option<usize>,
    /// The range in which it is the newest.
    keys: KeyBounds,
}

/// A memtable with tombstones that are visible to the scan.
struct Deleter {
    /// Its number among the memtables; the newest one has 0.
    number: usize,
    memtable: Arc<Memtable>,
    at: RangesAt,
}

/// The range tombstones of a version.
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

    /// Returns the newest visible tombstone over a key.
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

    /// Whether no run has anything newer than the tombstone in the range around the last key.
    /// Requires: the key is deleted.
    pub(crate) fn hides_all_runs(&self, deleted: Sequence) -> bool {
        let (from, until) = (self.known_from(), self.known_until());
        let mut runs = self.version.runs.iter().map(|placed| &placed.run);
        runs.all(|run| run.greatest() < deleted || !run.may_have_in(from, until))
    }

    /// Returns the first key at which a run may have visible entries. None: the bounds do not begin
    /// in a deleted range that hides the whole run.
    pub(crate) fn behind(&mut self, run: Age, bounds: &KeyBounds) -> Option<&[u8]> {
        let deleted = self.covering_tombstone(&bounds.from)?;
        (run.greatest < deleted).then(|| self.until(&bounds.from, run))
    }

    /// Returns the memtable with the newest tombstone over the last key. None if the source is
    /// neither that memtable nor older than all of its tombstones.
    fn deleter(&self, source: Age) -> Option<&Deleter> {
        let deleter = &self.memtables[self.known.as_ref()?.deleter?];
        let is_older = || source.greatest < deleter.memtable.ranges().first();
        (source.memtable == Some(deleter.number) || is_older()).then_some(deleter)
    }

    /// Whether the tombstone that hides a memtable's entry at the last key says anything about
    /// entries around it. (It does not if a log has replayed writes out of order.)
    pub(crate) fn hides_much(&self, memtable: Age) -> bool {
        self.deleter(memtable).is_some()
    }

    /// Returns the range around the last key in which a memtable may have entries newer than its
    /// tombstone. None: it has none. Requires: the memtable's entry at the key is hidden, and
    /// `hides_much`.
    pub(crate) fn shown(&self, key: &[u8], memtable: Age) -> Option<Stretch<'_>> {
        let own = |deleter: &&Deleter| memtable.memtable == Some(deleter.number);
        let Deleter { memtable, at, .. } = self.deleter(memtable).filter(own)?;
        memtable.ranges().shows(*at, key).then(|| memtable.ranges().stretch(*at, key))
    }

    /// Returns the first key of the range around the last one that a source may skip. Requires: the
    /// source has no visible entry in the deleted range.
    pub(crate) fn from(&self, key: &[u8], source: Age) -> &[u8] {
        match self.deleter(source) {
            Some(Deleter { memtable, at, .. }) => memtable.ranges().hidden_from(*at, key),
            None => self.known_from(),
        }
    }

    /// Returns the end of that range, exclusive.
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
