//! What a door knows at one moment: the filter, and the recent keys that the filter lacks.
//! ```text
//! filter    all keys of the state `since`, and added keys
//! recents   lists of recent keys, the oldest first; writers note in the last one
//! ```
//! Invariant: if there is a filter, it or one of the lists has every key that a current reader may
//! find. The same is true for a snapshot that is not older than `since`.

use std::sync::Arc;

use trommel_filters::{HashUse, KeyRange, hash_key};

use crate::filter::Filter;
use crate::index::Ends;
use crate::keys::{KEY_BYTES_MAX, cut};
use crate::pause::{Rule, is_broken};
use crate::recent::Recent;

/// What a door knows at one moment.
pub(crate) struct View {
    /// None: nothing is denied.
    pub(crate) filter: Option<Arc<Filter>>,
    /// Never empty.
    pub(crate) recents: Vec<Arc<Recent>>,
}

/// A queried range of keys, both ends included.
pub(crate) struct Asked<'k> {
    lower: &'k [u8],
    upper: [u8; KEY_BYTES_MAX],
    upper_len: usize,
}

impl<'k> Asked<'k> {
    /// The range from `lower` to the last key before `end`. None: it is empty in bytewise order.
    pub(crate) fn before(lower: &'k [u8], end: &[u8]) -> Option<Asked<'k>> {
        let (last, rest) = end.split_last().filter(|_| lower < end)?;
        // If `end` ends with a zero byte, the key before it is `end` without that byte.
        let Some(less) = last.checked_sub(1) else { return Asked::through(lower, rest) };
        if rest.len() >= KEY_BYTES_MAX {
            return Asked::through(lower, end);
        }
        // After cutting, no key below `end` is above this one. `end` itself stays out, since
        // present keys often begin with it, as with successive prefixes.
        let mut upper = [u8::MAX; KEY_BYTES_MAX];
        upper[..rest.len()].copy_from_slice(rest);
        upper[rest.len()] = less;
        Some(Asked { lower: cut(lower), upper, upper_len: KEY_BYTES_MAX })
    }

    /// The range from `lower` to `last`. None: it is empty in bytewise order.
    pub(crate) fn through(lower: &'k [u8], last: &[u8]) -> Option<Asked<'k>> {
        let (cut, mut upper) = (cut(last), [0; KEY_BYTES_MAX]);
        upper[..cut.len()].copy_from_slice(cut);
        let asked = Asked { lower: self::cut(lower), upper, upper_len: cut.len() };
        (lower <= last).then_some(asked)
    }

    fn upper(&self) -> &[u8] {
        &self.upper[..self.upper_len]
    }
}

/// The hash of a recent key.
#[inline]
pub(crate) fn hash_of(key: &[u8]) -> u64 {
    hash_key(key, HashUse::Table)
}

impl View {
    /// The list in which writers note keys.
    pub(crate) fn current(&self) -> &Arc<Recent> {
        self.recents.last().expect("there is always one")
    }

    /// Returns the filter, if it covers what this snapshot sees. No snapshot: a reader now.
    fn filter_at(&self, snapshot: Option<u64>) -> Option<&Filter> {
        let knows = |since: u64| snapshot.is_none_or(|at| at >= since || is_broken(Rule::Since));
        self.filter.as_deref().filter(|filter| knows(filter.since))
    }

    /// True proves that the key does not exist.
    pub(crate) fn denies_key(&self, key: &[u8], snapshot: Option<u64>) -> bool {
        let Some(filter) = self.filter_at(snapshot) else { return false };
        let key = cut(key);
        let hash = hash_of(key);
        if filter.may_contain(key, hash) {
            return false;
        }
        !self.recents.iter().any(|recent| recent.may_contain(hash)) || is_broken(Rule::Recents)
    }

    /// True proves that no key lies in the range.
    pub(crate) fn denies_range(&self, asked: &Asked<'_>, snapshot: Option<u64>) -> bool {
        let Some(filter) = self.filter_at(snapshot) else { return false };
        let Some(range) = KeyRange::new(asked.lower, Some(asked.upper())) else { return false };
        if filter.may_overlap(range) {
            return false;
        }
        let mut ends = Ends::new(asked.lower, asked.upper());
        let mut recents = self.recents.iter();
        !recents.any(|recent| recent.may_overlap(&mut ends)) || is_broken(Rule::Recents)
    }

    /// Whether both views have filters of the same scan. Then a key that the later view denies was
    /// absent at the time of the other one, too.
    pub(crate) fn has_scan_of(&self, other: &View) -> bool {
        let since = |view: &View| view.filter.as_ref().map(|filter| filter.since);
        since(self).is_some() && since(self) == since(other)
    }

    /// Memory in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, |filter| filter.size_bytes());
        filter + self.recents.iter().map(|recent| recent.size_bytes()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_leaves_no_key_before_its_end_out() {
        let ends: [&[u8]; 6] = [b"b", b"a\0", b"a\x01", b"a\xff", &[0xff; 600], b"\0"];
        let long = [&b"a\0"[..], &[0xff; 700]].concat();
        let keys: [&[u8]; 9] =
            [b"", b"a", b"a\0", b"a\0\xff", &long, b"a\xfe\xff", b"\0", &[0xff; 599], b"b"];
        for end in ends {
            for lower in keys {
                let asked = Asked::before(lower, end);
                assert_eq!(asked.is_some(), lower < end);
                let Some(asked) = asked else { continue };
                for key in keys.into_iter().filter(|key| (lower..end).contains(key)) {
                    assert!(
                        asked.lower <= cut(key) && cut(key) <= asked.upper(),
                        "{end:?} {key:?}"
                    );
                }
            }
        }
    }
}
