//! Values from value files that gets have read recently, kept in the block cache under its budget.
//! ```text
//! reference -> a group of slots -> file u64 | offset u64 -> value    the first two identify it
//! groups    twice as many slots as the whole cache has room for values
//! ```
//! A value whose file was removed stays until it is evicted.
//!
//! Invariant: a lookup returns the value of exactly that reference. A slot stores file and offset,
//! file numbers are never reused, and the bytes at an offset of a file never change.

use std::ops::Range;

use crate::entries::block::Block;
use crate::entries::expiry::Expiry;
use crate::entries::read_value::ReadValue;
use crate::entries::value::Value;
use crate::entries::value_ref::ValueRef;
use crate::files::cache::{BlockSlots, CacheShare};
use crate::storage::life::Life;
use crate::sync::{Arc, OnceLock};

/// Bytes of a slot's memory beside the value.
const PREFIX_BYTES: usize = 16;
/// Slots in a group, any of which may have a value. They lie on one or two cache lines.
const GROUP: usize = 8;
/// The shortest value that slots are provided for.
const VALUE_BYTES_MIN: usize = 1 << 10;
/// Maximum number of slots of a key space. They take 8 MiB.
const SLOTS_MAX: usize = 1 << 20;
/// A value that takes more than one part in this many of the cache is not kept. It would evict too
/// much that is requested more often.
const SHARE_OF_CACHE: usize = 8;

/// The cached values of a key space.
pub(crate) struct CachedValues {
    share: Arc<CacheShare>,
    life: Arc<Life>,
    group_count: usize,
    /// Allocated for the first value.
    slots: OnceLock<BlockSlots>,
}

fn prefix(at: &ValueRef) -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    let (file, offset) = prefix.split_at_mut(size_of::<u64>());
    file.copy_from_slice(&at.file.to_le_bytes());
    offset.copy_from_slice(&at.offset.to_le_bytes());
    prefix
}

impl CachedValues {
    /// Creates an empty cache of values. `threshold` is the length from which on values are apart.
    pub(crate) fn new(share: Arc<CacheShare>, life: Arc<Life>, threshold: usize) -> Self {
        let values = share.bytes_max() as usize / threshold.max(VALUE_BYTES_MIN);
        let group_count = (2 * values).clamp(1, SLOTS_MAX).div_ceil(GROUP);
        CachedValues { share, life, group_count, slots: OnceLock::new() }
    }

    /// Returns the slots that may have a value.
    fn group(&self, at: &ValueRef) -> Range<usize> {
        // Multiples of 2^64 divided by the golden ratio are spread evenly.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (at.file.rotate_left(40) ^ at.offset).wrapping_mul(SPREAD);
        let first = ((u128::from(mixed) * self.group_count as u128) >> 64) as usize * GROUP;
        first..first + GROUP
    }

    /// Returns the value of a reference, with this expiry. `None`: it is not cached.
    pub(crate) fn get(&self, at: &ValueRef, expiry: Option<Expiry>) -> Option<Value> {
        let (slots, prefix) = (self.slots.get()?, prefix(at));
        let is_it = |block: &Block| block.raw() == prefix;
        let block = self.group(at).find_map(|slot| slots.get_if(slot, is_it))?;
        Some(Value::apart(Arc::clone(block.value()?), expiry))
    }

    /// Caches a value, unless it is cached already or too long, or its group is full. (If two
    /// threads read the same value at once, both copies may be kept.)
    pub(crate) fn keep(&self, at: &ValueRef, read: &Arc<ReadValue>) {
        if read.range.len() > self.share.bytes_max() as usize / SHARE_OF_CACHE {
            return;
        }
        let slots = self.slots.get_or_init(|| {
            let count = self.group_count * GROUP;
            BlockSlots::new(Arc::clone(&self.share), Arc::clone(&self.life), count, false)
        });
        let is_it = |block: &Block| block.raw() == prefix(at);
        if self.group(at).any(|slot| slots.get_if(slot, is_it).is_some()) {
            return;
        }
        if let Some(slot) = self.group(at).find(|slot| slots.is_empty(*slot)) {
            slots.insert(slot, &Block::of_value(&prefix(at), Arc::clone(read)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::cache::BlockCache;

    fn at(file: u64, offset: u64, len: usize) -> ValueRef {
        ValueRef { file, offset, len: len as u64, checksum: 0, packed_bytes: None }
    }

    fn read(before: usize, value: &[u8]) -> Arc<ReadValue> {
        let bytes = [&vec![9; before], value, b"behind"].concat();
        Arc::new(ReadValue { bytes, range: before..before + value.len() })
    }

    fn cached(cache: &Arc<BlockCache>, threshold: usize) -> CachedValues {
        CachedValues::new(cache.share(), Arc::new(Life::new("store".as_ref())), threshold)
    }

    fn cache_of(bytes: u64) -> Arc<BlockCache> {
        Arc::new(BlockCache::new(bytes))
    }

    fn get(values: &CachedValues, at: &ValueRef) -> Option<Vec<u8>> {
        values.get(at, None).map(|value| value.to_vec())
    }

    #[test]
    fn a_value_is_kept_whatever_lies_before_it() {
        let cache = cache_of(64 << 10);
        let values = cached(&cache, 1 << 10);
        for (number, before) in [0, 3, PREFIX_BYTES, 40].into_iter().enumerate() {
            let (at, value) = (at(7, 28 + 5000 * number as u64, 100), [number as u8; 100]);
            assert_eq!(get(&values, &at), None);
            values.keep(&at, &read(before, &value));
            assert_eq!(get(&values, &at), Some(value.to_vec()), "{before} bytes before it");
        }
        let expiry = Expiry::of_stored(&5u64.to_le_bytes());
        let value = values.get(&at(7, 28, 100), Some(expiry)).expect("it is kept");
        assert_eq!(value.expiry(), Some(expiry));
        assert!(cache.size_bytes() > 400);
        drop(values);
        assert_eq!(cache.size_bytes(), 0, "they go with their store");
    }

    #[test]
    fn another_value_of_the_same_group_is_not_given() {
        let cache = cache_of(64 << 10);
        // There is only one group.
        let values = cached(&cache, 1 << 20);
        let all: Vec<ValueRef> = (0..12).map(|number| at(number / 3, number % 3, 50)).collect();
        for (number, at) in all.iter().enumerate() {
            assert_eq!((values.group(at), get(&values, at)), (0..GROUP, None));
            values.keep(at, &read(16, &[number as u8; 50]));
        }
        for (number, at) in all.iter().enumerate() {
            let kept = (number < GROUP).then(|| vec![number as u8; 50]);
            assert_eq!(get(&values, at), kept, "the first ones stay");
        }
    }

    #[test]
    fn nearly_all_values_of_a_full_cache_have_a_slot() {
        const COUNT: usize = 1000;
        let cache = cache_of(COUNT as u64 * (4096 + 200));
        let values = cached(&cache, 4096);
        // Placed as in files, back to back.
        let all: Vec<ValueRef> = (0..COUNT as u64)
            .map(|number| at(number / 300, 28 + number % 300 * 4116, 4096))
            .collect();
        all.iter().for_each(|at| values.keep(at, &read(16, &[1; 4096])));
        let kept = all.iter().filter(|at| get(&values, at).is_some()).count();
        assert!(kept > COUNT * 95 / 100, "{kept} of {COUNT}");
    }

    #[test]
    fn a_long_value_pushes_nothing_out() {
        let cache = cache_of(64 << 10);
        let values = cached(&cache, 1 << 10);
        let lengths = [50, 8 << 10, (8 << 10) + 1];
        let kept = lengths.map(|len| {
            let at = at(7, 30 * len as u64, len);
            values.keep(&at, &read(16, &vec![1; len]));
            get(&values, &at).is_some()
        });
        assert_eq!(kept, [true, true, false]);
    }

    #[test]
    fn a_cache_without_bounds_has_bounded_slots() {
        let (values, at) = (cached(&cache_of(u64::MAX), 1 << 10), at(7, 28, 3));
        values.keep(&at, &read(16, &[1; 3]));
        assert_eq!(get(&values, &at), Some(vec![1; 3]));
        assert_eq!(values.group_count * GROUP, SLOTS_MAX);
    }

    #[test]
    fn no_cache_keeps_no_value() {
        let (values, at) = (cached(&cache_of(0), 1 << 10), at(7, 28, 0));
        values.keep(&at, &read(16, &[]));
        assert!(values.get(&at, None).is_none());
    }
}
