//! How a reference becomes a value.
//! ```text
//! entry in a memtable -> reference -> file, held by the memtable -> record, checked -> value
//!       in a table                       held by the table      -> the cache, for gets -> value
//! ```
//! Invariant: who reads a reference has pinned the version that it was found in. So its file is
//! held.

use crate::entries::value::Value;
use crate::entries::value_ref::ValueRef;
use crate::error::{Error, Result};
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::QueryStats;

impl OpenTree {
    /// The value of a reference, as it is stored. Requires: the version that it was found in is
    /// pinned.
    #[cold]
    pub(crate) fn value_apart(&self, stored: &Value, costs: &mut QueryStats) -> Result<Value> {
        let at = self.ref_of(stored)?;
        let store = &self.table_files.values.store;
        let value = store.held(at.file)?.read(store.files(), &at)?;
        costs.disk_reads += 1;
        costs.bytes_read += value.bytes.len() as u64;
        Ok(Value::apart(value.bytes, value.range, stored.expiry()))
    }

    /// As `value_apart`, for a get: the value may be in the cache, and stays there if it was read.
    #[cold]
    pub(crate) fn cached_value_apart(
        &self,
        stored: &Value,
        costs: &mut QueryStats,
    ) -> Result<Value> {
        let at = self.ref_of(stored)?;
        let cached = &self.table_files.cached_values;
        if let Some(value) = cached.get(&at, stored.expiry()) {
            return Ok(value);
        }
        let store = &self.table_files.values.store;
        let mut read = store.held(at.file)?.read(store.files(), &at)?;
        costs.disk_reads += 1;
        costs.bytes_read += read.bytes.len() as u64;
        cached.keep(&at, &mut read);
        Ok(Value::apart(read.bytes, read.range, stored.expiry()))
    }

    /// Whether a value that is written now is to be apart.
    #[inline]
    pub(crate) fn is_apart(&self, value: &[u8]) -> bool {
        let threshold = self.table_files.options.value_threshold;
        threshold > 0 && value.len() >= threshold
    }

    /// The reference of a value as it is stored, behind its time.
    pub(crate) fn ref_of(&self, stored: &[u8]) -> Result<ValueRef> {
        ValueRef::decode(stored).map_err(|wrong| {
            let what = format!("a reference to a value: {wrong}");
            Error::corrupt(self.table_files.folder.path(), 0, what)
        })
    }
}
