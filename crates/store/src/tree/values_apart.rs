//! Reads the value that a reference stands for.
//! ```text
//! entry in a memtable -> reference -> file, held by the memtable -> record, checked -> value
//!       in a table                       held by the table      -> the cache, for gets -> value
//!                                        or: read ahead, or by a queue beside other reads
//! ```
//! Invariant: whoever reads a reference has pinned the version with it. So the value's file is
//! held.

use std::io;
use std::ops::Range;

use crate::entries::entry::Kind;
use crate::entries::memtable::FoundEntry;
use crate::entries::read_value::ReadValue;
use crate::entries::value::Value;
use crate::entries::value_ref::ValueRef;
use crate::error::{Error, Result};
use crate::files::value_file::ValueFile;
use crate::files::value_file::format::record_bytes;
use crate::files::value_file::pending_read::PendingRead;
use crate::storage::read_queue::ReadBuffer;
use crate::storage::traits::ReadAt;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::QueryStats;

/// The longest value that a queue reads beside others, in bytes.
const AWAITED_LEN_MAX: u64 = 2 << 20;

/// A value apart that a get waits for, with its file.
pub(crate) struct AwaitedValue {
    /// The reference as it is stored.
    stored: Value,
    at: ValueRef,
    file: Arc<ValueFile>,
    reader: Arc<dyn ReadAt>,
    span: Range<u64>,
}

impl AwaitedValue {
    /// Returns the file, and the offset and the length of the read.
    pub(crate) fn place(&self) -> (Arc<dyn ReadAt>, u64, usize) {
        let len = self.span.end - self.span.start;
        (Arc::clone(&self.reader), self.span.start, len as usize)
    }
}

/// What a get must do for its value.
pub(crate) enum Apart {
    /// Nothing: the value was in the cache.
    Here(Value),
    Awaited(AwaitedValue),
    /// Call `value_of`: the value is not apart, or too long to be read beside others, or there is
    /// an error.
    No,
}

impl OpenTree {
    /// Returns what a get must do for the value of `found`. Requires: as `value_apart`.
    pub(crate) fn apart(&self, found: &FoundEntry) -> Apart {
        let stored = match found.kind {
            Kind::PutApart => Some(found.value.clone()),
            Kind::PutApartWithExpiry => found.value.clone().unless_expired(&*self.env.clock),
            _ => None,
        };
        stored.and_then(|stored| self.apart_at(stored)).unwrap_or(Apart::No)
    }

    fn apart_at(&self, stored: Value) -> Option<Apart> {
        let at = self.ref_of(&stored).ok()?;
        if let Some(value) = self.table_files.cached_values.get(&at, stored.expiry()) {
            return Some(Apart::Here(value));
        }
        if at.len > AWAITED_LEN_MAX {
            return None;
        }
        let store = &self.table_files.values.store;
        let file = store.held(at.file).ok()?;
        let span = file.span_of(&at).ok()?;
        let reader = Arc::clone(file.reader(store.files()).ok()?);
        Some(Apart::Awaited(AwaitedValue { stored, at, file, reader, span }))
    }

    /// Returns the value that was read. After an error it is read again, since its file may have
    /// been rewritten meanwhile.
    pub(crate) fn arrived_value(
        &self,
        awaited: &AwaitedValue,
        bytes: io::Result<ReadBuffer>,
        costs: &mut QueryStats,
    ) -> Result<Value> {
        match awaited.file.value_of_bytes(bytes, &awaited.at) {
            Ok(read) => Ok(self.read_value(&awaited.stored, &awaited.at, read, costs)),
            Err(_) => self.value_at_once(awaited, costs),
        }
    }

    /// Reads the value now, or takes it from the cache.
    pub(crate) fn value_at_once(
        &self,
        awaited: &AwaitedValue,
        costs: &mut QueryStats,
    ) -> Result<Value> {
        self.cached_value_apart(&awaited.stored, None, costs)
    }

    /// Counts a value that was read for a get, and caches it.
    fn read_value(
        &self,
        stored: &Value,
        at: &ValueRef,
        read: ReadValue,
        costs: &mut QueryStats,
    ) -> Value {
        let read = Arc::new(read);
        count_read(at, costs);
        self.table_files.cached_values.keep(at, &read);
        Value::apart(read, stored.expiry())
    }

    /// Reads the value of a stored reference. `pending`: its read, if it was read ahead. Requires:
    /// the version with the reference is pinned.
    #[cold]
    pub(crate) fn value_apart(
        &self,
        stored: &Value,
        pending: Option<PendingRead>,
        costs: &mut QueryStats,
    ) -> Result<Value> {
        let at = self.ref_of(stored)?;
        let value = self.read_apart(&at, pending)?;
        count_read(&at, costs);
        Ok(Value::apart(Arc::new(value), stored.expiry()))
    }

    /// Reads a value, unless it was read ahead. A failed read-ahead is repeated.
    fn read_apart(&self, at: &ValueRef, pending: Option<PendingRead>) -> Result<ReadValue> {
        let store = &self.table_files.values.store;
        let file = store.held(at.file)?;
        if let Some(pending) = pending
            && let Ok(value) = file.value_of_bytes(pending.bytes(), at)
        {
            return Ok(value);
        }
        file.read(store.files(), at)
    }

    /// Like `value_apart`, for a get: the value may come from the cache, and goes into it if it was
    /// read.
    #[cold]
    pub(crate) fn cached_value_apart(
        &self,
        stored: &Value,
        pending: Option<PendingRead>,
        costs: &mut QueryStats,
    ) -> Result<Value> {
        let at = self.ref_of(stored)?;
        let cached = &self.table_files.cached_values;
        if let Some(value) = cached.get(&at, stored.expiry()) {
            return Ok(value);
        }
        let read = self.read_apart(&at, pending)?;
        Ok(self.read_value(stored, &at, read, costs))
    }

    /// Starts to read a value ahead, whether or not it is cached. Returns its bytes, and the
    /// pending read, unless the system reads ahead by itself.
    pub(crate) fn will_read_value(&self, stored: &Value) -> (u64, Option<PendingRead>) {
        let store = &self.table_files.values.store;
        let Ok(at) = self.ref_of(stored) else { return (0, None) };
        let file = store.held(at.file).ok();
        (at.len, file.and_then(|file| file.will_read(store.files(), &at)))
    }

    /// Like `will_read_value`, for a get. Returns 0 bytes if there is nothing to read.
    pub(crate) fn will_get_value(&self, stored: &Value) -> (u64, Option<PendingRead>) {
        let cached = &self.table_files.cached_values;
        match self.ref_of(stored) {
            Ok(at) if cached.get(&at, None).is_none() => self.will_read_value(stored),
            _ => (0, None),
        }
    }

    /// Whether a value of this length must be written apart.
    #[inline]
    pub(crate) fn is_apart(&self, value: &[u8]) -> bool {
        let threshold = self.table_files.options.value_threshold;
        threshold > 0 && value.len() >= threshold
    }

    /// Decodes the reference in a stored value, after its time of expiry.
    pub(crate) fn ref_of(&self, stored: &[u8]) -> Result<ValueRef> {
        ValueRef::decode(stored).map_err(|wrong| {
            let what = format!("a reference to a value: {wrong}");
            Error::corrupt(self.table_files.folder.path(), 0, what)
        })
    }
}

/// Adds the value's record to the cost of a query.
fn count_read(at: &ValueRef, costs: &mut QueryStats) {
    costs.value_reads += 1;
    costs.bytes_read += record_bytes(at);
}
