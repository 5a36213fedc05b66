//! A value as it is handed out: a handle on the memory where it already lies.
//! ```text
//! Value -> Block + range             read from a table; the block may leave the cache meanwhile
//!       -> Arc<SkipList> + place     written lately; the memtable may be flushed meanwhile
//!       -> Arc<[u8]>                 of a batch that is not written yet, or made of operands
//!       -> Arc<ApartValue>           read from a file of values, or kept in the cache since then
//! ```
//! Invariant: the bytes are never copied, and never change while the handle lives.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::entries::block::Block;
use crate::entries::expiry::{EXPIRY_BYTES, Expiry};
use crate::entries::read_value::ReadValue;
use crate::entries::skiplist::HeldBytes;
use crate::storage::clock::Clock;

/// The bytes of a value. It keeps what holds them alive: a block, or a memtable. Copy the bytes
/// (`to_vec`) to keep them for long.
#[derive(Clone, Default)]
pub struct Value {
    place: ValueBytes,
}

#[derive(Clone, Default)]
enum ValueBytes {
    #[default]
    Empty,
    /// Where it begins in the block, and where it ends: a block is shorter than 4 GiB.
    Block(Block, u32, u32),
    /// The same, with a time before it, which is none of the value's bytes.
    BlockBehindExpiry(Block, u32, u32),
    Memtable(HeldBytes),
    /// What is stored begins with a time, which is none of the value's bytes.
    MemtableBehindExpiry(HeldBytes),
    Shared(Arc<[u8]>),
    /// The same, with a time before it.
    SharedBehindExpiry(Arc<[u8]>),
    /// In a place of its own, so that other values are handed out in few words.
    Apart(Arc<ApartValue>),
}

/// A value that is apart from its key.
struct ApartValue {
    read: Arc<ReadValue>,
    expiry: Option<Expiry>,
}

// A get hands it through some functions on its way out.
const _: () = assert!(size_of::<Value>() <= 4 * size_of::<usize>());

impl Value {
    /// No bytes.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Requires: the block has these bytes.
    #[inline]
    pub(crate) fn in_block(block: Block, range: Range<usize>) -> Self {
        Value { place: ValueBytes::Block(block, range.start as u32, range.end as u32) }
    }

    /// From when on its key has this value no more. None: it does not expire, or the value was read
    /// from a batch that is not written yet.
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

    /// One that was made of operands, on top of a value that expires then.
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

    /// What was read of a file of values.
    pub(crate) fn apart(read: Arc<ReadValue>, expiry: Option<Expiry>) -> Value {
        Value { place: ValueBytes::Apart(Arc::new(ApartValue { read, expiry })) }
    }

    /// The value that the user gave, of one that is stored with a time before it, unless that has
    /// come.
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

/// With any bytes, those of another value too.
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
