//! The value files that a memtable's entries refer to.
//!
//! Invariant: a memtable holds these files from its first such entry on, until its entries are in
//! tables and no version contains it.

use std::collections::BTreeMap;

use crate::entries::value_ref::ValueRef;
use crate::files::value_file::ValueFile;
use crate::files::value_file::format::record_bytes;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};

/// The value files of one memtable, each with the bytes that its entries refer to.
#[derive(Default)]
pub(crate) struct HeldValues {
    files: Mutex<BTreeMap<u64, (Arc<ValueFile>, u64)>>,
    /// The sum of all bytes.
    bytes: AtomicU64,
}

impl HeldValues {
    /// Notes that an entry refers to a value of this file.
    pub(crate) fn hold(&self, file: &Arc<ValueFile>, at: &ValueRef) {
        self.bytes.fetch_add(record_bytes(at), Ordering::Relaxed);
        let mut held = lock(&self.files);
        let (_, bytes) = held.entry(at.file).or_insert_with(|| (Arc::clone(file), 0));
        *bytes += record_bytes(at);
    }

    /// The bytes that entries refer to.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the files, each with the bytes that entries refer to.
    pub(crate) fn all(&self) -> Vec<(Arc<ValueFile>, u64)> {
        lock(&self.files).values().map(|(file, bytes)| (Arc::clone(file), *bytes)).collect()
    }
}
