//! The LSM-tree.
#![expect(dead_code, reason = "the parts are landing one by one")]

mod disk;
mod entry;
mod error;
mod memory;
mod storage;
