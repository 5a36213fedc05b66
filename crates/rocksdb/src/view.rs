//! What a door knows at one moment: the filter, and the recent keys that it does not have.
//! ```text
//! filter    all keys of the state `since`, and what was added
//! recents   lists of recent keys, the oldest first; writers note in the last one
//! ```
//! Invariant: if there is a filter, every key that may be found by whoever reads now, or at a
//! snapshot that is not older than `since`, is in the filter or in one of the lists.

use std::sync::Arc;

use trommel_filters::{HashUse, KeyRange, hash_key};

use crate::filter::Filter;
use crate::keys::cut;
use crate::pause::{Rule, is_broken};
use crate::recent::Recent;

/// What is known at one moment.
pub(crate) struct View {
    /// None: nothing is denied.
    pub(crate) filter: Option<Arc<Filter>>,
    /// Never empty.
    pub(crate) recents: Vec<Arc<Recent>>,
}

/// A range of keys that a question is about: both ends are included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'k> {
    lower: &'k [u8],
    upper: &'k [u8],
}

impl<'k> Asked<'k> {
    /// From `lower` up to the key before `end`. None: no key lies there as bytes are ordered.
    pub(crate) fn before(lower: &'k [u8], end: &'k [u8]) -> Option<Asked<'k>> {
        // The key before one that ends with a zero is known.
        let upper = end.strip_suffix(&[0]).unwrap_or(end);
        Asked::through(lower, upper).filter(|_| lower < end)
    }

    /// From `lower` to `upper`. None: no key lies there as bytes are ordered.
    pub(crate) fn through(lower: &'k [u8], upper: &'k [u8]) -> Option<Asked<'k>> {
        (lower <= upper).then_some(Asked { lower: cut(lower), upper: cut(upper) })
    }
}

/// The hash by which recent keys are noted.
#[inline]
pub(crate) fn hash_of(key: &[u8]) -> u64 {
    hash_key(key, HashUse::Table)
}

impl View {
    /// That in which writers note keys.
    pub(crate) fn current(&self) -> &Arc<Recent> {
        self.recents.last().expect("there is always one")
    }

    /// The filter, if it knows what a snapshot with this number sees. None: who reads now.
    fn filter_at(&self, snapshot: Option<u64>) -> Option<&Filter> {
        let knows = |since: u64| snapshot.is_none_or(|at| at >= since || is_broken(Rule::Since));
        self.filter.as_deref().filter(|filter| knows(filter.since))
    }

    /// Whether there is surely no such key.
    pub(crate) fn denies_key(&self, key: &[u8], snapshot: Option<u64>) -> bool {
        let Some(filter) = self.filter_at(snapshot) else { return false };
        let key = cut(key);
        if filter.may_contain(key) {
            return false;
        }
        let hash = hash_of(key);
        !self.recents.iter().any(|recent| recent.may_contain(hash))
    }

    /// Whether there is surely no key in the range.
    pub(crate) fn denies_range(&self, asked: Asked<'_>, snapshot: Option<u64>) -> bool {
        let Some(filter) = self.filter_at(snapshot) else { return false };
        let Some(range) = KeyRange::new(asked.lower, Some(asked.upper)) else { return false };
        if filter.may_overlap(range) {
            return false;
        }
        !self.recents.iter().any(|recent| recent.may_overlap(asked.lower, asked.upper))
    }

    /// Whether this and the other one deny by the same scan, so that what one denies now, the other
    /// one denied if nothing came between.
    pub(crate) fn has_scan_of(&self, other: &View) -> bool {
        let since = |view: &View| view.filter.as_ref().map(|filter| filter.since);
        since(self).is_some() && since(self) == since(other)
    }

    /// The bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, |filter| filter.size_bytes());
        filter + self.recents.iter().map(|recent| recent.size_bytes()).sum::<usize>()
    }
}
