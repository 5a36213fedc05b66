//! Trommel's range filters for [SlateDB](slatedb): a scan of an empty range, or a get of an absent
//! key, reads no block of the object store.
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
//! Give the same policies to writers, readers and compactors of a database: a compactor without
//! them writes SSTs without filters. Policies of several kinds can be combined. An SST is read only
//! if no filter denies the query.
//!
//! Invariant: bytes that this crate cannot read deny nothing.

mod filter;
mod policy;

pub use policy::TrommelFilterPolicy;
pub use trommel_guards::{PrefixLevel, PrefixLevels, PrefixRule};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
