//! What is asked: a key, or a closed range of keys.
//! ```text
//! Point(k)          k
//! Range(lo, hi)     lo <= key <= hi       (no hi: up to the last key there is)
//! ```
//! Invariant: a `KeyRange` is never upside down. Exclusive bounds are asked as inclusive ones:
//! a filter may say "maybe" too often, never "no" too often.

/// A closed range of keys, ordered bytewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange<'a> {
    lower: &'a [u8],
    upper: Option<&'a [u8]>,
}

impl<'a> KeyRange<'a> {
    /// From `lower` to `upper`, both included; `None` as upper bound means no bound.
    /// None if no key lies between them.
    pub fn new(lower: &'a [u8], upper: Option<&'a [u8]>) -> Option<Self> {
        let upside_down = upper.is_some_and(|upper| upper < lower);
        (!upside_down).then_some(Self { lower, upper })
    }

    /// Every key there is.
    pub fn all() -> Self {
        Self { lower: &[], upper: None }
    }

    /// The range that holds one key alone.
    pub fn of_key(key: &'a [u8]) -> Self {
        Self { lower: key, upper: Some(key) }
    }

    /// The first key of the range.
    pub fn lower(&self) -> &'a [u8] {
        self.lower
    }

    /// The last key of the range; None if it has no upper bound.
    pub fn upper(&self) -> Option<&'a [u8]> {
        self.upper
    }

    /// Whether `key` lies in the range. Exact: this is a comparison, not a filter.
    pub fn covers(&self, key: &[u8]) -> bool {
        self.lower <= key && self.upper.is_none_or(|upper| key <= upper)
    }
}

/// The one question: which sorted runs may hold this?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query<'a> {
    /// One key.
    Point(&'a [u8]),
    /// Every key of a closed range.
    Range(KeyRange<'a>),
}

impl<'a> Query<'a> {
    /// The query as a range: a point is the range of its key alone.
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
}
