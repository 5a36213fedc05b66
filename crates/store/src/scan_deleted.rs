//! Deleted ranges, as one direction of a scan meets them.
//! ```text
//! memtables   of each what is seen at the scan's number
//! runs        of each table its own                  -> the newest deletion around a key, and how far it is the newest
//! ```
//! Invariant: of the deletions that the scan sees none is missing: they were published before it took its number.

use crate::entry::Sequence;
use crate::memtable::Memtable;
use crate::memtable_ranges::RangesAt;
use crate::run::Run;
use crate::scan::Bounds;
use crate::sync::Arc;
use crate::tombstones::Stretch;
use crate::version::Version;

/// What is deleted around the key that was asked for last.
#[derive(Default)]
struct Known {
    newest: Option<Sequence>,
    from: Option<Vec<u8>>,
    until: Option<Vec<u8>>,
}

/// The deleted ranges of a version.
pub(crate) struct ScanDeleted {
    version: Arc<Version>,
    at: Sequence,
    memtables: Vec<(Arc<Memtable>, RangesAt)>,
    known: Option<Known>,
}

impl ScanDeleted {
    pub(crate) fn new(version: Arc<Version>, at: Sequence) -> Self {
        let sealed = version.sealed.iter().map(|sealed| &sealed.memtable);
        let memtables = std::iter::once(&version.active.memtable).chain(sealed);
        let seen = memtables
            .filter_map(|memtable| Some((Arc::clone(memtable), memtable.ranges().at(at)?)));
        let memtables = seen.collect();
        ScanDeleted { version, at, memtables, known: None }
    }

    /// The newest deletion that is in force for a key.
    #[inline]
    pub(crate) fn covering(&mut self, key: &[u8]) -> Option<Sequence> {
        if self.memtables.is_empty() && !self.version.deletes_ranges {
            return None;
        }
        let is_within = |known: &Known| {
            known.from.as_deref().is_none_or(|from| from <= key)
                && known.until.as_deref().is_none_or(|until| key < until)
        };
        match &self.known {
            Some(known) if is_within(known) => known.newest,
            _ => self.look_up(key),
        }
    }

    #[cold]
    fn look_up(&mut self, key: &[u8]) -> Option<Sequence> {
        let memtables = self.memtables.iter();
        let in_memory = memtables.map(|(memtable, at)| memtable.ranges().stretch(*at, key));
        let in_runs = self.version.stretches(key, self.at);
        let Stretch { newest, from, until } =
            in_memory.chain(in_runs).fold(Stretch::default(), Stretch::and);
        let known = self.known.get_or_insert_default();
        known.newest = newest;
        replace(&mut known.from, from);
        replace(&mut known.until, until);
        newest
    }

    /// Whether no run has anything newer than the deletion among the keys around the last one. Requires: they are deleted.
    pub(crate) fn hides_all_runs(&self, deleted: Sequence) -> bool {
        let (from, until) = (self.from(), self.until());
        let mut runs = self.version.runs.iter().map(|placed| &placed.run);
        runs.all(|run| run.greatest() < deleted || !run.may_have_in(from, until))
    }

    /// Where what a run has within the bounds begins at the earliest, if it is behind a deleted range that they begin in.
    pub(crate) fn behind(&mut self, run: &Run, bounds: &Bounds) -> Option<&[u8]> {
        let deleted = self.covering(&bounds.lower)?;
        (run.greatest() < deleted).then(|| self.until())
    }

    /// The first key of those around the last one that are deleted as it is. Requires: it is deleted.
    pub(crate) fn from(&self) -> &[u8] {
        let from = self.known.as_ref().and_then(|known| known.from.as_deref());
        from.expect("what is deleted begins somewhere")
    }

    /// The first key behind those around the last one that are deleted as it is. Requires: it is deleted.
    pub(crate) fn until(&self) -> &[u8] {
        let until = self.known.as_ref().and_then(|known| known.until.as_deref());
        until.expect("what is deleted ends somewhere")
    }
}

/// Keeps a key in the memory of the one before it.
fn replace(kept: &mut Option<Vec<u8>>, key: Option<&[u8]>) {
    match key {
        Some(key) => key.clone_into(kept.get_or_insert_default()),
        None => *kept = None,
    }
}
