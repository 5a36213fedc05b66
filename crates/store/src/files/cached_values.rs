//! Values of one file that were read lately, in the cache of blocks, under its budget.
//! ```text
//! reference -> the slot of its offset -> place u64 | checksum u32 | 0 | value     whose it is
//! slots     one for so many bytes of the file, round and round     two values may want the same
//! ```
//! Invariant: what is given is the value of that reference: a slot's memory tells its place and
//! checksum, and no other value of the file has that place.

use std::ops::Range;

use crate::entries::block::Block;
use crate::entries::expiry::Expiry;
use crate::entries::value::Value;
use crate::entries::value_ref::ValueRef;
use crate::files::cache::{BlockSlots, CacheShare};
use crate::files::value_file::ReadValue;
use crate::storage::life::Life;
use crate::sync::{Arc, OnceLock};

/// What a slot has before the value.
const PREFIX_BYTES: usize = 16;
/// A slot for so many bytes of a file, as few values are shorter.
const SLOT_SPAN: u64 = 4 << 10;
/// The most slots of a file: they take 512 KiB.
const SLOTS_MAX: u64 = 1 << 16;
/// A value that takes more than one in so many parts of the cache is not kept: it would push out
/// too much that is asked for more often.
const SHARE_OF_CACHE: usize = 8;

/// The values of a file that are kept.
#[derive(Default)]
pub(crate) struct CachedValues {
    /// Made for the first value.
    slots: OnceLock<BlockSlots>,
}

fn slot(at: &ValueRef) -> usize {
    (at.offset / SLOT_SPAN % SLOTS_MAX) as usize
}

fn prefix(at: &ValueRef) -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..8].copy_from_slice(&at.offset.to_le_bytes());
    prefix[8..12].copy_from_slice(&at.checksum.to_le_bytes());
    prefix
}

impl CachedValues {
    /// The value of a reference, which expires then. None: it is not here.
    pub(crate) fn get(&self, at: &ValueRef, expiry: Option<Expiry>) -> Option<Value> {
        let block = self.slots.get()?.get(slot(at))?;
        let bytes = block.raw();
        let is_it = bytes.starts_with(&prefix(at)) && (bytes.len() - PREFIX_BYTES) as u64 == at.len;
        is_it.then(|| Value::apart_in_block(block, PREFIX_BYTES, expiry))
    }

    /// Keeps a value that was read, unless it is too long. `len`: of its file, at least. What lies
    /// before the value in `read` is lost.
    pub(crate) fn keep(
        &self,
        (share, life): (&Arc<CacheShare>, Arc<Life>),
        len: u64,
        at: &ValueRef,
        read: &mut ReadValue,
    ) {
        if read.range.len() > share.bytes_max() as usize / SHARE_OF_CACHE {
            return;
        }
        let slots = self.slots.get_or_init(|| {
            let count = (len / SLOT_SPAN + 1).min(SLOTS_MAX) as usize;
            BlockSlots::new(Arc::clone(share), life, count)
        });
        slots.insert(slot(at), &with_prefix(at, read));
    }
}

/// A value behind its prefix. What was read has room for it, mostly, where its record's head was.
fn with_prefix(at: &ValueRef, read: &mut ReadValue) -> Block {
    let Range { start, end } = read.range.clone();
    match start.checked_sub(PREFIX_BYTES) {
        Some(from) => {
            read.bytes[from..start].copy_from_slice(&prefix(at));
            Block::of_bytes(&read.bytes[from..end])
        }
        None => Block::of_bytes(&[&prefix(at), &read.bytes[start..end]].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::cache::BlockCache;

    fn at(offset: u64, len: usize) -> ValueRef {
        let (file, checksum) = (7, offset as u32 + 1);
        ValueRef { file, offset, len: len as u64, checksum, packed_bytes: None }
    }

    fn read(before: usize, value: &[u8]) -> ReadValue {
        let bytes = [&vec![9; before], value, b"behind"].concat();
        ReadValue { bytes, range: before..before + value.len() }
    }

    /// Keeps values of a file of 1 MiB in a cache of 64 KiB.
    struct Kept {
        cache: Arc<BlockCache>,
        share: Arc<CacheShare>,
        values: CachedValues,
    }

    impl Kept {
        fn new() -> Self {
            let cache = Arc::new(BlockCache::new(64 << 10));
            Kept { share: cache.share(), cache, values: CachedValues::default() }
        }

        fn keep(&self, at: &ValueRef, read: &mut ReadValue) {
            let life = Arc::new(Life::new("store".as_ref()));
            self.values.keep((&self.share, life), 1 << 20, at, read);
        }

        fn get(&self, at: &ValueRef) -> Option<Vec<u8>> {
            self.values.get(at, None).map(|value| value.to_vec())
        }
    }

    #[test]
    fn a_value_is_kept_whatever_lies_before_it() {
        let kept = Kept::new();
        for (number, before) in [0, 3, PREFIX_BYTES, 40].into_iter().enumerate() {
            let (at, value) = (at(28 + 5000 * number as u64, 100), [number as u8; 100]);
            assert_eq!(kept.get(&at), None);
            let mut read = read(before, &value);
            kept.keep(&at, &mut read);
            assert_eq!(read.bytes[read.range.clone()], value, "it is as it was");
            assert_eq!(kept.get(&at), Some(value.to_vec()), "{before} bytes before it");
        }
        let expiry = Expiry::of_stored(&5u64.to_le_bytes());
        let value = kept.values.get(&at(28, 100), Some(expiry)).expect("it is kept");
        assert_eq!(value.expiry(), Some(expiry));
        assert!(kept.cache.size_bytes() > 400);
        drop(kept.values);
        assert_eq!(kept.cache.size_bytes(), 0, "they go with their file");
    }

    #[test]
    fn another_value_of_the_same_slot_is_not_given() {
        let kept = Kept::new();
        let (one, other) = (at(100, 50), at(200, 50));
        assert_eq!(slot(&one), slot(&other));
        kept.keep(&one, &mut read(16, &[1; 50]));
        assert_eq!(kept.get(&other), None, "another place");
        assert_eq!(kept.get(&ValueRef { checksum: 3, ..one }), None, "another checksum");
        assert_eq!(kept.get(&ValueRef { len: 49, ..one }), None, "another length");
        kept.keep(&other, &mut read(16, &[2; 50]));
        assert_eq!(kept.get(&one), Some(vec![1; 50]), "the first one stays");
        let far = at(100 + SLOT_SPAN * SLOTS_MAX, 50);
        assert_eq!((slot(&far), kept.get(&far)), (slot(&one), None));
    }

    #[test]
    fn a_long_value_pushes_nothing_out() {
        let kept = Kept::new();
        let (short, fits, long) = (at(100, 50), at(9000, 8 << 10), at(30_000, (8 << 10) + 1));
        kept.keep(&short, &mut read(16, &[1; 50]));
        kept.keep(&fits, &mut read(16, &[2; 8 << 10]));
        kept.keep(&long, &mut read(16, &[3; (8 << 10) + 1]));
        assert!(kept.get(&short).is_some() && kept.get(&fits).is_some());
        assert_eq!(kept.get(&long), None);
    }

    #[test]
    fn no_cache_keeps_no_value() {
        let share = Arc::new(BlockCache::new(0)).share();
        let (values, at) = (CachedValues::default(), at(28, 50));
        let life = Arc::new(Life::new("store".as_ref()));
        values.keep((&share, life), 1 << 20, &at, &mut read(16, &[1; 50]));
        assert!(values.get(&at, None).is_none());
    }
}
