//! The LSM-tree.
#![expect(dead_code, reason = "the parts are landing one by one")]

mod entry;
mod error;
mod storage;
