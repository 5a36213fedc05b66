//! The LSM-tree.
#![expect(dead_code, reason = "the parts are landing one by one")]

mod disk;
mod entry;
mod error;
mod memory;
mod record;
mod storage;
mod wal;

pub use disk::Disk;
pub use entry::{Entry, KEY_BYTES_MAX, Kind, Sequence, VALUE_BYTES_MAX, order};
pub use error::{Error, Result};
pub use memory::{Fault, Memory};
pub use storage::{Append, ReadAt, Storage};
