//! Reads: gets, scans, queues, change feeds. Nothing here changes the store, or uses `write`.

pub(crate) mod batch_scan;
pub(crate) mod changes;
pub(crate) mod estimate;
pub(crate) mod get;
pub(crate) mod indexed_batch;
pub(crate) mod lookup;
pub(crate) mod multi_get;
pub(crate) mod operands;
pub(crate) mod queue;
pub(crate) mod queue_get;
pub(crate) mod queue_range;
pub(crate) mod scan;
pub(crate) mod scan_cursor;
pub(crate) mod scan_direction;
pub(crate) mod scan_heap;
pub(crate) mod scan_lazy;
pub(crate) mod scan_tombstones;
pub(crate) mod value_reader;
