//! An entry: user key, sequence number, kind, value; and the order of entries.
//! ```text
//! order    key a, seq 9  <  key a, seq 4  <  key b, seq 7      (keys up, ages from new to old)
//! ```
//! Invariant: no two entries of a store share key and sequence number.

use std::cmp::Ordering;

use crate::entries::expiry::EXPIRY_BYTES;
use crate::entries::value_ref::VALUE_REF_BYTES_MAX;

/// The largest number of a file, flush or write that is believed. It is far beyond what a store can
/// reach, and far below what its encodings hold.
pub(crate) const NUMBER_MAX: u64 = 1 << 60;

/// The longest key a store takes, in bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// The longest value a store takes, in bytes. (What is kept until a time has that time beside it.)
pub const VALUE_BYTES_MAX: usize = 1 << 30;
/// The longest batch a store takes, in bytes: of keys, values, and [`WRITE_BYTES`] for each write.
pub const BATCH_BYTES_MAX: usize = u32::MAX as usize - 64;
/// What each write of a batch takes beside its key and value, in bytes, at most: kind and lengths.
pub const WRITE_BYTES: usize = 16;

/// One per write. A snapshot is a sequence number that merges must respect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sequence(pub(crate) u64);

impl Sequence {
    /// Above every sequence number that is ever given.
    pub(crate) const MAX: Sequence = Sequence(u64::MAX);
}

/// What an entry does to its key. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The key has this value.
    Put = 0,
    /// The key is gone.
    Delete = 1,
    /// All keys from this one up to the value (excluded) are gone. In logs, never among the entries
    /// of a memtable or a table.
    DeleteRange = 2,
    /// As `Put`, until a time, which the value begins with (`expiry.rs`).
    PutWithExpiry = 3,
    /// The value is an operand: the key has what the merge operator makes of it and of what the key
    /// had before.
    Merge = 4,
    /// As `Put`; the value says where the value is (`value_ref.rs`).
    PutApart = 5,
    /// As `PutWithExpiry`; behind the time the value says where the value is.
    PutApartWithExpiry = 6,
}

impl Kind {
    /// The longest value as it is stored.
    pub(crate) fn stored_bytes_max(self) -> usize {
        match self {
            Kind::Put | Kind::Merge => VALUE_BYTES_MAX,
            Kind::PutWithExpiry => VALUE_BYTES_MAX + EXPIRY_BYTES,
            Kind::Delete => 0,
            Kind::DeleteRange => KEY_BYTES_MAX,
            Kind::PutApart => VALUE_REF_BYTES_MAX,
            Kind::PutApartWithExpiry => VALUE_REF_BYTES_MAX + EXPIRY_BYTES,
        }
    }

    /// Whether the value as it is stored begins with a time.
    #[inline]
    pub(crate) fn has_expiry(self) -> bool {
        matches!(self, Kind::PutWithExpiry | Kind::PutApartWithExpiry)
    }

    /// Whether the value is in a file of values.
    #[inline]
    pub(crate) fn is_apart(self) -> bool {
        matches!(self, Kind::PutApart | Kind::PutApartWithExpiry)
    }

    /// None: no kind has this number.
    pub(crate) fn from_number(number: u8) -> Option<Kind> {
        // Each entry that is passed in a block is decoded: this is one comparison.
        match number {
            0 => Some(Kind::Put),
            1 => Some(Kind::Delete),
            2 => Some(Kind::DeleteRange),
            3 => Some(Kind::PutWithExpiry),
            4 => Some(Kind::Merge),
            5 => Some(Kind::PutApart),
            6 => Some(Kind::PutApartWithExpiry),
            _ => None,
        }
    }
}

/// An entry that is read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The user's key.
    pub(crate) key: &'a [u8],
    /// When it was written.
    pub(crate) sequence: Sequence,
    /// What it does.
    pub(crate) kind: Kind,
    /// The value; empty for a deletion.
    pub(crate) value: &'a [u8],
}

impl Entry<'_> {
    /// Its place among the entries.
    pub(crate) fn order(&self, other: &Entry<'_>) -> Ordering {
        order((self.key, self.sequence), (other.key, other.sequence))
    }
}

/// Keys up; of one key, the newest first.
#[inline]
pub(crate) fn order(a: (&[u8], Sequence), b: (&[u8], Sequence)) -> Ordering {
    a.0.cmp(b.0).then(b.1.cmp(&a.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_entries_of_a_key_come_first() {
        let key = |key: &'static [u8], sequence| (key, Sequence(sequence));
        assert_eq!(order(key(b"a", 9), key(b"a", 4)), Ordering::Less);
        assert_eq!(order(key(b"a", 4), key(b"b", 9)), Ordering::Less);
        assert_eq!(Kind::from_number(1), Some(Kind::Delete));
        assert_eq!(Kind::from_number(6), Some(Kind::PutApartWithExpiry));
        assert_eq!(Kind::from_number(7), None);
        for number in 0..7 {
            assert_eq!(Kind::from_number(number).map(|kind| kind as u8), Some(number));
        }
    }
}
