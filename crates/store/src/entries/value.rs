//! A value as it is returned: a handle on the memory where it already lies.
//! ```text
//! Value -> Block + range             read from a table; the block may leave the cache meanwhile
//!       -> Arc<SkipList> + place     in a memtable, which may be flushed meanwhile
//!       -> Arc<[u8]>                 from an unwritten batch, or made of operands
//!       -> Arc<ApartValue>           read from a value file, or from the cache
//! ```
//! Invariant: the bytes are not copied, and do not change while the handle lives.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::entries::block::Block;
use crate::entries::expiry::{EXPIRY_BYTES, Expiry};
use crate::entries::read_value::ReadValue;
use crate::entries::skiplist::HeldBytes;
use crate::storage::clock::Clock;

/// The bytes of a value. It keeps a block or a memtable alive that contains them. Copy the bytes
/// (`to_vec`) to keep them for long.
#[derive(Clone, Default)]
pub struct Value {
    place: ValueBytes,
}

#[derive(Clone, Default)]
enum ValueBytes {
    #[default]
    Empty,
    /// Start and end of the value in the block, which is shorter than 4 GiB.
    Block(Block, u32, u32),
    /// The same. A time of expiry precedes the value in the block.
    BlockBehindExpiry(Block, u32, u32),
    Memtable(HeldBytes),
    /// The stored value begins with a time of expiry, which is not part of the value.
    MemtableBehindExpiry(HeldBytes),
    Shared(Arc<[u8]>),
    /// The same. A time of expiry precedes the value.
    SharedBehindExpiry(Arc<[u8]>),
    /// Allocated separately, so that other values stay small.
    Apart(Arc<ApartValue>),
}

/// A value that was read from a value file.
struct ApartValue {
    read: Arc<ReadValue>,
    expiry: Option<Expiry>,
}

// A get passes the value through several functions.
const _: () = assert!(size_of::<Value>() <= 4 * size_of::<usize>());

impl Value {
    /// An empty value.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A value within a block. Requires: the block has these bytes.
    #[inline]
    pub(crate) fn in_block(block: Block, range: Range<usize>) -> Self {
        Value { place: ValueBytes::Block(block, range.start as u32, range.end as u32) }
    }

    /// The time when the value expires. `None`: it does not expire, or was read from an unwritten
    /// batch.
    pub fn expiry(&self) -> Option<Expiry> {
        match &self.place {
            ValueBytes::BlockBehindExpiry(block, start, _) => {
                let start = *start as usize;
                Some(Expiry::of_stored(block.bytes(start - EXPIRY_BYTES..start)))
            }
            ValueBytes::MemtableBehindExpiry(held) => Some(Expiry::of_stored(held.as_slice())),
            ValueBytes::SharedBehindExpiry(bytes) => Some(Expiry::of_stored(bytes)),
            ValueBytes::Apart(value) => value.expiry,
            ValueBytes::Empty
            | ValueBytes::Block(..)
            | ValueBytes::Memtable(_)
            | ValueBytes::Shared(_) => None,
        }
    }

    /// A value made of operands, with the expiry of the value below them.
    pub(crate) fn made(bytes: Vec<u8>, expiry: Option<Expiry>) -> Value {
        let place = match expiry {
            None => ValueBytes::Shared(bytes.into()),
            Some(expiry) => {
                let time = expiry.milliseconds().to_le_bytes();
                ValueBytes::SharedBehindExpiry([&time[..], &bytes].concat().into())
            }
        };
        Value { place }
    }

    /// A value from a value file.
    pub(crate) fn apart(read: Arc<ReadValue>, expiry: Option<Expiry>) -> Value {
        Value { place: ValueBytes::Apart(Arc::new(ApartValue { read, expiry })) }
    }

    /// Removes the time of expiry from a stored value. `None`: the value has expired.
    pub(crate) fn unless_expired(self, clock: &dyn Clock) -> Option<Value> {
        if Expiry::of_stored(&self).has_come(clock.since_epoch()) {
            return None;
        }
        let place = match self.place {
            ValueBytes::Block(block, start, end) => {
                ValueBytes::BlockBehindExpiry(block, start + EXPIRY_BYTES as u32, end)
            }
            ValueBytes::Memtable(held) => ValueBytes::MemtableBehindExpiry(held),
            other => other,
        };
        Some(Value { place })
    }

    #[inline]
    pub(crate) fn in_memtable(held: HeldBytes) -> Self {
        Value { place: ValueBytes::Memtable(held) }
    }
}

impl From<Arc<[u8]>> for Value {
    fn from(bytes: Arc<[u8]>) -> Self {
        Value { place: ValueBytes::Shared(bytes) }
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.place {
            ValueBytes::Empty => &[],
            ValueBytes::Block(block, start, end)
            | ValueBytes::BlockBehindExpiry(block, start, end) => {
                block.bytes(*start as usize..*end as usize)
            }
            ValueBytes::Memtable(held) => held.as_slice(),
            ValueBytes::MemtableBehindExpiry(held) => {
                held.as_slice().get(EXPIRY_BYTES..).unwrap_or_default()
            }
            ValueBytes::Shared(bytes) => bytes,
            ValueBytes::SharedBehindExpiry(bytes) => bytes.get(EXPIRY_BYTES..).unwrap_or_default(),
            ValueBytes::Apart(value) => value.read.as_slice(),
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Compares the bytes with any other bytes, also those of a value.
impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Value {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Value {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::block::BlockBuilder;
    use crate::entries::entry::{Entry, Kind, Sequence};
    use crate::entries::skiplist::SkipList;
    use std::sync::Arc;

    #[test]
    fn values_of_any_place_are_their_bytes() {
        let entry = Entry { key: b"k", sequence: Sequence(1), kind: Kind::Put, value: b"drum" };
        let mut builder = BlockBuilder::new();
        builder.add(&entry);
        let block = Block::new(&builder.finish()).unwrap();
        let (_, _, range) = block.get(b"k", Sequence::MAX).unwrap();
        let in_block = Value::in_block(block, range);
        let list = Arc::new(SkipList::new(0));
        list.insert(&entry);
        let (_, _, held) = list.find(b"k", Sequence::MAX).unwrap();
        let in_memtable = Value::in_memtable(held);
        drop(list);
        assert_eq!(in_block, in_memtable);
        assert!(in_block == b"drum" && in_memtable == *b"drum" && in_block == b"drum".to_vec());
        assert_eq!(format!("{in_block:?}"), format!("{:?}", b"drum"));
        assert_eq!(in_block.as_ref(), &*in_memtable.clone());
        assert!(Value::empty().is_empty() && Value::empty() != in_block);
    }
}
