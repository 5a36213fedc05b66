//! RocksDB's read options, and those among them that concern the door.

use rocksdb::{IterateBounds, ReadTier};

use crate::base::Base;
use crate::snapshot::Snapshot;

/// Options with which RocksDB's answers depend on more than the present keys.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Plain {
    Tier = 1,
    Tailing = 2,
    Timed = 4,
    Undeleted = 8,
    Skips = 16,
}

/// Options of a read, with the methods of [`rocksdb::ReadOptions`].
#[derive(Default)]
pub struct ReadOptions {
    pub(crate) inner: rocksdb::ReadOptions,
    pub(crate) lower: Option<Vec<u8>>,
    /// Exclusive.
    pub(crate) upper: Option<Vec<u8>>,
    pub(crate) snapshot: Option<u64>,
    /// Whether the snapshot may be dropped while an iterator with these options exists.
    pub(crate) snapshot_may_end: bool,
    pub(crate) is_one_prefix: bool,
    plain: u8,
}

impl ReadOptions {
    /// Whether the door may answer.
    pub(crate) fn may_ask(&self) -> bool {
        self.plain == 0
    }

    fn set_plain(&mut self, why: Plain, is_plain: bool) {
        self.plain &= !(why as u8);
        self.plain |= if is_plain { why as u8 } else { 0 };
    }

    /// See [`rocksdb::ReadOptions::set_snapshot`]. The door can answer if the snapshot is not older
    /// than its last scan.
    pub fn set_snapshot<B: Base>(&mut self, snapshot: &Snapshot<'_, B>) {
        self.snapshot = Some(snapshot.sequence_number());
        self.snapshot_may_end = true;
        self.inner.set_snapshot(snapshot.inner());
    }

    /// See [`rocksdb::ReadOptions::set_iterate_lower_bound`].
    pub fn set_iterate_lower_bound<K: Into<Vec<u8>>>(&mut self, key: K) {
        let key = key.into();
        self.inner.set_iterate_lower_bound(&key[..]);
        self.lower = Some(key);
    }

    /// See [`rocksdb::ReadOptions::set_iterate_upper_bound`]. It enables the door to answer.
    pub fn set_iterate_upper_bound<K: Into<Vec<u8>>>(&mut self, key: K) {
        let key = key.into();
        self.inner.set_iterate_upper_bound(&key[..]);
        self.upper = Some(key);
    }

    /// See [`rocksdb::ReadOptions::set_iterate_range`].
    pub fn set_iterate_range(&mut self, range: impl IterateBounds) {
        (self.lower, self.upper) = range.into_bounds();
        self.inner.set_iterate_range(..);
        if let Some(lower) = &self.lower {
            self.inner.set_iterate_lower_bound(&lower[..]);
        }
        if let Some(upper) = &self.upper {
            self.inner.set_iterate_upper_bound(&upper[..]);
        }
    }

    /// See [`rocksdb::ReadOptions::set_prefix_same_as_start`].
    pub fn set_prefix_same_as_start(&mut self, is_one: bool) {
        self.is_one_prefix = is_one;
        self.inner.set_prefix_same_as_start(is_one);
    }

    /// See [`rocksdb::ReadOptions::set_total_order_seek`].
    pub fn set_total_order_seek(&mut self, is_total: bool) {
        self.inner.set_total_order_seek(is_total);
    }

    /// See [`rocksdb::ReadOptions::set_read_tier`]. The door answers only with all tiers.
    pub fn set_read_tier(&mut self, tier: ReadTier) {
        self.set_plain(Plain::Tier, tier != ReadTier::All);
        self.inner.set_read_tier(tier);
    }

    /// See [`rocksdb::ReadOptions::set_tailing`]. The door does not answer tailing iterators.
    pub fn set_tailing(&mut self, is_tailing: bool) {
        self.set_plain(Plain::Tailing, is_tailing);
        self.inner.set_tailing(is_tailing);
    }

    /// See [`rocksdb::ReadOptions::set_timestamp`]. The door does not answer then.
    pub fn set_timestamp<S: Into<Vec<u8>>>(&mut self, time: S) {
        self.set_plain(Plain::Timed, true);
        self.inner.set_timestamp(time);
    }

    /// See [`rocksdb::ReadOptions::set_iter_start_ts`]. The door does not answer then.
    pub fn set_iter_start_ts<S: Into<Vec<u8>>>(&mut self, time: S) {
        self.set_plain(Plain::Timed, true);
        self.inner.set_iter_start_ts(time);
    }

    /// See [`rocksdb::ReadOptions::set_ignore_range_deletions`]. The door does not answer then,
    /// since keys that it has forgotten come back.
    #[expect(deprecated, reason = "RocksDB's is, and a reader may still set it")]
    pub fn set_ignore_range_deletions(&mut self, ignores: bool) {
        self.set_plain(Plain::Undeleted, ignores);
        self.inner.set_ignore_range_deletions(ignores);
    }

    /// See [`rocksdb::ReadOptions::set_max_skippable_internal_keys`]. The door does not answer
    /// then, unless `keys` is 0.
    pub fn set_max_skippable_internal_keys(&mut self, keys: u64) {
        self.set_plain(Plain::Skips, keys > 0);
        self.inner.set_max_skippable_internal_keys(keys);
    }

    /// See [`rocksdb::ReadOptions::fill_cache`].
    pub fn fill_cache(&mut self, fills: bool) {
        self.inner.fill_cache(fills);
    }

    /// See [`rocksdb::ReadOptions::set_verify_checksums`].
    pub fn set_verify_checksums(&mut self, verifies: bool) {
        self.inner.set_verify_checksums(verifies);
    }

    /// See [`rocksdb::ReadOptions::set_readahead_size`], in bytes.
    pub fn set_readahead_size(&mut self, bytes: usize) {
        self.inner.set_readahead_size(bytes);
    }

    /// See [`rocksdb::ReadOptions::set_auto_readahead_size`].
    pub fn set_auto_readahead_size(&mut self, is_auto: bool) {
        self.inner.set_auto_readahead_size(is_auto);
    }

    /// See [`rocksdb::ReadOptions::set_deadline`].
    pub fn set_deadline(&mut self, microseconds: u64) {
        self.inner.set_deadline(microseconds);
    }

    /// See [`rocksdb::ReadOptions::set_io_timeout`].
    pub fn set_io_timeout(&mut self, microseconds: u64) {
        self.inner.set_io_timeout(microseconds);
    }

    /// See [`rocksdb::ReadOptions::set_pin_data`].
    pub fn set_pin_data(&mut self, pins: bool) {
        self.inner.set_pin_data(pins);
    }

    /// See [`rocksdb::ReadOptions::set_async_io`].
    pub fn set_async_io(&mut self, is_async: bool) {
        self.inner.set_async_io(is_async);
    }

    /// See [`rocksdb::ReadOptions::set_background_purge_on_iterator_cleanup`].
    pub fn set_background_purge_on_iterator_cleanup(&mut self, purges: bool) {
        self.inner.set_background_purge_on_iterator_cleanup(purges);
    }
}
