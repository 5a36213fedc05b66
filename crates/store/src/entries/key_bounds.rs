//! A range of keys: what a scan returns, a merge rewrites, or a part of the filter covers.
//! ```text
//! keys        ...  c  |  d  f  m  |  p  ...
//! [d, p)              from        to             to: `None`, unbounded
//! ```
//! Invariant: `from` is inclusive, `to` is exclusive.

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use trommel_filters::KeyRange;

use crate::entries::keys::successor;

/// A range of keys, from an inclusive key to an exclusive one. A store accepts every range of the
/// standard library for it: `"a".."b"`, `"a"..="b"`, `"a"..`, `..`, or a pair of [`Bound`]s.
/// [`KeyBounds::prefix`] has no such form.
///
/// ```
/// use trommel::KeyBounds;
///
/// let rows = KeyBounds::prefix("user:7:");
/// assert!(rows.contains(b"user:7:name"));
/// assert!(!rows.contains(b"user:70:name"));
/// assert_eq!(rows, KeyBounds::from("user:7:".."user:7;"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBounds {
    pub(crate) from: Vec<u8>,
    /// `None`: unbounded.
    pub(crate) to: Option<Vec<u8>>,
}

macro_rules! bounds_from {
    ($($range:ty),+) => {
        $(impl<K: AsRef<[u8]>> From<$range> for KeyBounds {
            fn from(range: $range) -> Self {
                KeyBounds::of(&range)
            }
        })+
    };
}

bounds_from!(
    Range<K>,
    RangeInclusive<K>,
    RangeFrom<K>,
    RangeTo<K>,
    RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);

impl From<RangeFull> for KeyBounds {
    fn from(_: RangeFull) -> Self {
        KeyBounds::all()
    }
}

impl From<&KeyBounds> for KeyBounds {
    fn from(bounds: &KeyBounds) -> Self {
        bounds.clone()
    }
}

impl KeyBounds {
    /// The keys with a prefix. An empty prefix: all keys.
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Self {
        let from = prefix.as_ref().to_vec();
        // The end is the least key behind the prefix: the last byte below 0xff grows by one, and
        // all 0xff bytes behind it go.
        let to = from.iter().rposition(|&byte| byte != 0xff).map(|last| {
            let mut end = from[..=last].to_vec();
            end[last] += 1;
            end
        });
        KeyBounds { from, to }
    }

    /// The inclusive lower bound.
    pub fn start(&self) -> &[u8] {
        &self.from
    }

    /// The exclusive upper bound. `None`: unbounded.
    pub fn end(&self) -> Option<&[u8]> {
        self.to.as_deref()
    }

    /// Converts a standard range to an inclusive start and an exclusive end. The successor of a key
    /// is the key and a zero byte.
    fn of<K: AsRef<[u8]>>(bounds: &impl RangeBounds<K>) -> Self {
        let after = |key: &K| successor(key.as_ref());
        let from = match bounds.start_bound() {
            Bound::Included(key) => key.as_ref().to_vec(),
            Bound::Excluded(key) => after(key),
            Bound::Unbounded => Vec::new(),
        };
        let to = match bounds.end_bound() {
            Bound::Included(key) => Some(after(key)),
            Bound::Excluded(key) => Some(key.as_ref().to_vec()),
            Bound::Unbounded => None,
        };
        KeyBounds { from, to }
    }

    /// Converts to a closed range, which may contain one more key. `None`: the range is empty.
    pub(crate) fn closed(&self) -> Option<KeyRange<'_>> {
        if !self.ends_after(&self.from) {
            return None;
        }
        KeyRange::new(&self.from, self.upper())
    }

    /// Returns an inclusive upper bound: k if the range ends before k and a zero byte, else its
    /// end.
    #[inline]
    pub(crate) fn upper(&self) -> Option<&[u8]> {
        self.to.as_deref().map(|to| to.strip_suffix(&[0]).unwrap_or(to))
    }

    pub(crate) fn pass_front(&mut self, key: &[u8]) {
        key.clone_into(&mut self.from);
        self.from.push(0);
    }

    pub(crate) fn pass_back(&mut self, key: &[u8]) {
        key.clone_into(self.to.get_or_insert_default());
    }

    /// Replaces the range, and reuses its memory.
    pub(crate) fn set(&mut self, from: &[u8], to: Option<&[u8]>) {
        from.clone_into(&mut self.from);
        match to {
            Some(to) => to.clone_into(self.to.get_or_insert_default()),
            None => self.to = None,
        }
    }

    /// The range of all keys.
    pub fn all() -> Self {
        KeyBounds::default()
    }

    pub(crate) fn is_all(&self) -> bool {
        self.from.is_empty() && self.to.is_none()
    }

    /// Whether a key is before the range's end.
    #[inline]
    pub(crate) fn ends_after(&self, key: &[u8]) -> bool {
        self.to.as_deref().is_none_or(|to| key < to)
    }

    /// Whether a key is in the range.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.from <= *key && self.ends_after(key)
    }

    /// Returns the range behind this one. `None`: this one is unbounded.
    pub(crate) fn behind(&self) -> Option<KeyBounds> {
        self.to.clone().map(|from| KeyBounds { from, to: None })
    }

    /// Returns the parts of `outer` before and behind this range. Requires: `outer` contains this
    /// range.
    pub(crate) fn beside(&self, outer: &KeyBounds) -> Vec<KeyBounds> {
        let before = KeyBounds { from: outer.from.clone(), to: Some(self.from.clone()) };
        let behind = self.to.clone().map(|from| KeyBounds { from, to: outer.to.clone() });
        let has_keys = |range: &KeyBounds| range.ends_after(&range.from);
        [Some(before), behind].into_iter().flatten().filter(has_keys).collect()
    }

    /// Splits all keys at `cuts`, which ascend.
    pub(crate) fn between(cuts: &[Vec<u8>]) -> impl Iterator<Item = KeyBounds> + '_ {
        let from = |place: usize| place.checked_sub(1).map_or_else(Vec::new, |at| cuts[at].clone());
        (0..=cuts.len())
            .map(move |place| KeyBounds { from: from(place), to: cuts.get(place).cloned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(bounds: impl Into<KeyBounds>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let bounds: KeyBounds = bounds.into();
        let range = bounds.closed()?;
        Some((range.lower().to_vec(), range.upper().map(<[u8]>::to_vec)))
    }

    #[test]
    fn bounds_become_from_and_to() {
        let (a, b) = (&b"a"[..], &b"b"[..]);
        assert_eq!(closed(a..=b), Some((a.to_vec(), Some(b.to_vec()))));
        assert_eq!(closed(a..b), Some((a.to_vec(), Some(b.to_vec()))));
        assert_eq!(closed(a..), Some((a.to_vec(), None)));
        assert_eq!(closed(..), Some((vec![], None)));
        assert_eq!(closed(a..=a), Some((a.to_vec(), Some(a.to_vec()))));
        assert_eq!(closed(a..a), None);
        assert_eq!(closed(b..=a), None);
        assert_eq!(closed((Bound::Excluded(a), Bound::Included(a))), None);
    }

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        let end = |prefix: &[u8]| KeyBounds::prefix(prefix).to;
        assert_eq!(end(b"user:"), Some(b"user;".to_vec()));
        assert_eq!(end(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!((end(b"\xff\xff"), end(b"")), (None, None));
        let rows = KeyBounds::prefix([0x61, 0xff]);
        assert!(rows.contains(&[0x61, 0xff]) && rows.contains(&[0x61, 0xff, 0xff, 0xff]));
        assert!(!rows.contains(&[0x61, 0xfe, 0xff]) && !rows.contains(&[0x62]));
    }

    fn bounds(from: &str, to: Option<&str>) -> KeyBounds {
        KeyBounds { from: from.into(), to: to.map(Into::into) }
    }

    #[test]
    fn cuts_divide_all_keys() {
        let cuts = [b"d".to_vec(), b"p".to_vec()];
        let between: Vec<_> = KeyBounds::between(&cuts).collect();
        assert_eq!(between, [bounds("", Some("d")), bounds("d", Some("p")), bounds("p", None)]);
        assert!(KeyBounds::between(&[]).eq([KeyBounds::all()]));
    }

    #[test]
    fn the_end_is_not_in_it() {
        let range = bounds("d", Some("p"));
        assert!(range.contains(b"d") && range.contains(b"ozz"));
        assert!(!range.contains(b"c") && !range.contains(b"p"));
        assert_eq!(range.behind(), Some(bounds("p", None)));
        assert_eq!(KeyBounds::all().behind(), None);
    }

    #[test]
    fn what_is_beside_a_range() {
        let (range, all) = (bounds("d", Some("p")), KeyBounds::all());
        assert_eq!(range.beside(&range), []);
        assert_eq!(range.beside(&all), [bounds("", Some("d")), bounds("p", None)]);
        assert_eq!(range.beside(&bounds("c", Some("p"))), [bounds("c", Some("d"))]);
        assert_eq!(all.beside(&all), []);
    }
}
