//! The LSM-tree.
#![expect(dead_code, reason = "the parts are landing one by one")]

mod block;
mod block_cursor;
mod cache;
mod cursor;
mod disk;
mod entry;
mod error;
mod fences;
mod keys;
mod memory;
mod memtable;
mod merge;
mod record;
mod run;
mod skiplist;
mod storage;
mod table;
mod table_cursor;
mod table_format;
mod table_writer;
mod value;
mod wal;

pub use cursor::Reads;
pub use disk::Disk;
pub use entry::{Entry, KEY_BYTES_MAX, Kind, Sequence, VALUE_BYTES_MAX, order};
pub use error::{Error, Result};
pub use memory::{Fault, Memory};
pub use storage::{Append, ReadAt, Storage};
pub use value::Value;
