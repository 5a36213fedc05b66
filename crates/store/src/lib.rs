//! The LSM-tree.
#![expect(dead_code, reason = "the parts are landing one by one")]

mod block;
mod block_cursor;
mod cursor;
mod disk;
mod entry;
mod error;
mod memory;
mod memtable;
mod record;
mod skiplist;
mod storage;
mod value;
mod wal;

pub use cursor::Reads;
pub use disk::Disk;
pub use entry::{Entry, KEY_BYTES_MAX, Kind, Sequence, VALUE_BYTES_MAX, order};
pub use error::{Error, Result};
pub use memory::{Fault, Memory};
pub use storage::{Append, ReadAt, Storage};
pub use value::Value;
