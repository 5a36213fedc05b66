//! Trommel's range filters for [SlateDB](slatedb): a scan of a range in which nothing lies, or a
//! get of a key that is nowhere, reads no block of the object store.
//! ```text
//! SST being written ── entries in order ──> FilterBuilder ──> bytes in the SST
//! get, scan ── key, prefix or range ──> TrommelFilterPolicy's filter ── no ──> the SST is not read
//! ```
//! ```
//! # use std::sync::Arc;
//! use slatedb::Db;
//! use trommel_slatedb::TrommelFilterPolicy;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), slatedb::Error> {
//! # let object_store = Arc::new(slatedb::object_store::memory::InMemory::new());
//! let db = Db::builder("/my/database", object_store)
//!     .with_filter_policies(vec![Arc::new(TrommelFilterPolicy::cell(14.0))])
//!     .build()
//!     .await?;
//! db.put(b"user7/time1", b"in").await?;
//! assert!(db.scan_prefix(b"user8/", ..).await?.next().await?.is_none());
//! # db.close().await
//! # }
//! ```
//!
//! Writers, readers and compactors of one database are given the same policies: a compactor without
//! them writes SSTs without filters. Policies of several kinds go together; an SST is read only if
//! none of them denies what is asked for.
//!
//! Invariant: bytes that this crate cannot read deny nothing.

mod filter;
mod policy;

pub use policy::TrommelFilterPolicy;
pub use trommel_guards::{PrefixLevel, PrefixLevels, PrefixRule};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
