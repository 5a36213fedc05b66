//! A column family, and the door in front of it.

use std::sync::Arc;

use rocksdb::{AsColumnFamilyRef, BoundColumnFamily, WriteBatch};

use crate::batch;
use crate::door::Door;

/// A column family of an open database. Write batches accept it like RocksDB's own handles.
#[derive(Clone)]
pub struct ColumnFamily<'a> {
    bound: Arc<BoundColumnFamily<'a>>,
    door: Arc<Door>,
}

impl<'a> ColumnFamily<'a> {
    pub(crate) fn new(bound: Arc<BoundColumnFamily<'a>>, door: Arc<Door>) -> ColumnFamily<'a> {
        ColumnFamily { bound, door }
    }

    pub(crate) fn door(&self) -> &Arc<Door> {
        &self.door
    }

    /// The family's name.
    pub fn name(&self) -> &str {
        &self.door.name
    }
}

impl AsColumnFamilyRef for ColumnFamily<'_> {
    fn inner(&self) -> *mut librocksdb_sys::rocksdb_column_family_handle_t {
        self.bound.inner()
    }
}

/// RocksDB's id of a family, taken from a write batch.
pub(crate) fn id_of(family: &impl AsColumnFamilyRef) -> u32 {
    let (mut batch, mut number) = (WriteBatch::default(), 0);
    batch.put_cf(family, b"", b"");
    // For the default family, whose records have no id, `walk` gives 0.
    let walked = batch::walk(batch.data(), |id, _, _| number = id);
    walked.expect("a put is a record that is known");
    number
}
