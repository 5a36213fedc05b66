//! A query: one key, or a closed range of keys.
//! ```text
//! Point(k)          k
//! Range(lo, hi)     lo <= key <= hi       (no hi: up to the last key there is)
//! ```
//! Invariant: the lower bound of a `KeyRange` is at most its upper one. Exclusive bounds are
//! queried as inclusive ones: a filter may say "maybe" too often, never "no" too often.

use alloc::vec::Vec;
use core::ops::Bound;

/// A closed range of keys, ordered bytewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange<'a> {
    lower: &'a [u8],
    upper: Option<&'a [u8]>,
}

impl<'a> KeyRange<'a> {
    /// The range from `lower` to `upper`, both included. An `upper` of `None` means no upper bound.
    /// Returns None if `upper` is below `lower`.
    pub fn new(lower: &'a [u8], upper: Option<&'a [u8]>) -> Option<Self> {
        let upside_down = upper.is_some_and(|upper| upper < lower);
        (!upside_down).then_some(Self { lower, upper })
    }

    /// The range of all keys.
    pub fn all() -> Self {
        Self { lower: &[], upper: None }
    }

    /// The range that holds only `key`.
    pub fn of_key(key: &'a [u8]) -> Self {
        Self { lower: key, upper: Some(key) }
    }

    /// The closed range between two bounds; it includes an excluded bound, too. None if the bounds
    /// are out of order, or are one key that is excluded.
    pub fn of_bounds(lower: Bound<&'a [u8]>, upper: Bound<&'a [u8]>) -> Option<Self> {
        let (lower, is_lower_out) = match lower {
            Bound::Included(key) => (key, false),
            Bound::Excluded(key) => (key, true),
            Bound::Unbounded => (&[][..], false),
        };
        let (upper, is_upper_out) = match upper {
            Bound::Included(key) => (Some(key), false),
            Bound::Excluded(key) => (Some(key), true),
            Bound::Unbounded => (None, false),
        };
        let holds_one = upper == Some(lower);
        Self::new(lower, upper).filter(|_| !(holds_one && (is_lower_out || is_upper_out)))
    }

    /// The range of every key that begins with `prefix`. It also includes the first key above
    /// those, which is written to `end`.
    pub fn of_prefix(prefix: &'a [u8], end: &'a mut Vec<u8>) -> Self {
        // No key is above those that begin with a prefix of 0xff bytes only.
        let Some(last) = prefix.iter().rposition(|&byte| byte < u8::MAX) else {
            return Self { lower: prefix, upper: None };
        };
        end.clear();
        end.extend_from_slice(&prefix[..=last]);
        end[last] += 1;
        Self { lower: prefix, upper: Some(end) }
    }

    /// The first key of the range.
    pub fn lower(&self) -> &'a [u8] {
        self.lower
    }

    /// The last key of the range; None if it has no upper bound.
    pub fn upper(&self) -> Option<&'a [u8]> {
        self.upper
    }

    /// Whether `key` lies in the range. Exact: compares keys.
    pub fn covers(&self, key: &[u8]) -> bool {
        self.lower <= key && self.upper.is_none_or(|upper| key <= upper)
    }
}

/// The query that every filter answers: which sorted runs may hold this?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query<'a> {
    /// One key.
    Point(&'a [u8]),
    /// Every key of a closed range.
    Range(KeyRange<'a>),
}

impl<'a> Query<'a> {
    /// Returns the query as a range. A point becomes the range of its key alone.
    pub fn range(&self) -> KeyRange<'a> {
        match *self {
            Query::Point(key) => KeyRange::of_key(key),
            Query::Range(range) => range,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_never_upside_down() {
        assert_eq!(KeyRange::new(b"b", Some(b"a")), None);
        let range = KeyRange::new(b"a", Some(b"b")).expect("in order");
        assert!(range.covers(b"a") && range.covers(b"a\0") && range.covers(b"b"));
        assert!(!range.covers(b"") && !range.covers(b"b\0"));
        assert!(KeyRange::all().covers(&[0xff; 100]));
    }

    #[test]
    fn bounds_leave_no_key_out() {
        use Bound::{Excluded, Included, Unbounded};
        let range = |lower, upper| KeyRange::of_bounds(lower, upper);
        assert_eq!(range(Unbounded, Unbounded), Some(KeyRange::all()));
        let of_a = Some(KeyRange::of_key(b"a"));
        assert_eq!(range(Included(b"a"), Included(b"a")), of_a);
        assert_eq!(range(Included(b"a"), Excluded(b"a")), None);
        assert_eq!(range(Excluded(b"a"), Included(b"a")), None);
        assert_eq!(range(Excluded(b"b"), Included(b"a")), None);
        let closed = KeyRange::new(b"a", Some(b"c"));
        assert_eq!(range(Excluded(b"a"), Excluded(b"c")), closed);
        assert_eq!(range(Unbounded, Excluded(b"c")), KeyRange::new(b"", Some(b"c")));
        assert_eq!(range(Excluded(b"a"), Unbounded), KeyRange::new(b"a", None));
    }

    #[test]
    fn a_prefix_has_all_that_begin_with_it() {
        let mut end = Vec::new();
        for (prefix, upper) in [
            (&b"ab"[..], Some(&b"ac"[..])),
            (b"a\xff\xff", Some(b"b")),
            (b"\xff\xff", None),
            (b"", None),
        ] {
            let range = KeyRange::of_prefix(prefix, &mut end);
            assert_eq!((range.lower(), range.upper()), (prefix, upper));
            assert!(range.covers(prefix) && range.covers(&[prefix, &[0xff; 9]].concat()));
        }
    }
}
