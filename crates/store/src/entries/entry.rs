//! An entry: user key, sequence number, kind and value; and the order of entries.
//! ```text
//! order    key a, seq 9  <  key a, seq 4  <  key b, seq 7      keys ascend; of a key, newest first
//! ```
//! Invariant: no two entries of a store have the same key and sequence number.

use std::cmp::Ordering;

use crate::entries::expiry::EXPIRY_BYTES;
use crate::entries::value_ref::VALUE_REF_BYTES_MAX;

/// The greatest number of a file, flush or write that a reader accepts. It is far beyond what a
/// store can reach, and far below what the encodings can hold.
pub(crate) const NUMBER_MAX: u64 = 1 << 60;

/// The maximum length of a key, in bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// The maximum length of a value, in bytes. A time of expiry beside the value does not count.
pub const VALUE_BYTES_MAX: usize = 1 << 30;
/// The maximum length of a batch, in bytes: its keys, its values, and [`WRITE_BYTES`] for each
/// write.
pub const BATCH_BYTES_MAX: usize = u32::MAX as usize - 64;
/// The maximum overhead of a write in a batch, in bytes: its kind and its lengths.
pub const WRITE_BYTES: usize = 16;

/// The sequence number of a write. A snapshot is a sequence number that merges must respect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sequence(pub(crate) u64);

impl Sequence {
    /// Greater than every sequence number of a write.
    pub(crate) const MAX: Sequence = Sequence(u64::MAX);
}

/// What an entry does to its key. These numbers are stored on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The key has this value.
    Put = 0,
    /// The key is deleted.
    Delete = 1,
    /// All keys from this one up to the value (exclusive) are deleted. Logs have such entries;
    /// memtables and tables keep range tombstones beside their entries.
    DeleteRange = 2,
    /// A `Put` with a time of expiry, with which the stored value begins (`expiry.rs`).
    PutWithExpiry = 3,
    /// The value is a merge operand. The merge operator applies it to what the key had before.
    Merge = 4,
    /// A `Put` whose stored value is a reference into a value file (`value_ref.rs`).
    PutApart = 5,
    /// A `PutWithExpiry` whose stored value is the time, then a reference into a value file.
    PutApartWithExpiry = 6,
}

impl Kind {
    /// The maximum length of a stored value, in bytes.
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

    /// Whether the stored value begins with a time of expiry.
    #[inline]
    pub(crate) fn has_expiry(self) -> bool {
        matches!(self, Kind::PutWithExpiry | Kind::PutApartWithExpiry)
    }

    /// Whether the value lies in a value file.
    #[inline]
    pub(crate) fn is_apart(self) -> bool {
        matches!(self, Kind::PutApart | Kind::PutApartWithExpiry)
    }

    /// Returns the kind with this number. `None`: there is none.
    pub(crate) fn from_number(number: u8) -> Option<Kind> {
        // Every entry that a search passes in a block is decoded, so this must compile to one
        // comparison.
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

/// A borrowed entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The user's key.
    pub(crate) key: &'a [u8],
    /// When the entry was written.
    pub(crate) sequence: Sequence,
    /// What the entry does to its key.
    pub(crate) kind: Kind,
    /// The stored value; empty for a deletion.
    pub(crate) value: &'a [u8],
}

impl Entry<'_> {
    /// Compares two entries by the order of entries.
    pub(crate) fn order(&self, other: &Entry<'_>) -> Ordering {
        order((self.key, self.sequence), (other.key, other.sequence))
    }
}

/// The order of entries: keys ascend; of one key, the newest comes first.
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
