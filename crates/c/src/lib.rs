//! Trommel for C and C++: the functions that the header `include/trommel.h` declares. The header is
//! generated from the comments here.
//! ```text
//! C          trommel_put(db, keyspace, key, key_len, value, value_len, &error)
//!               |  pointers -> slices and handles; null where none may be: an error
//! border.rs  catch_unwind( store.put(key, value) )
//!               |  Ok -> true or a handle       Err, panic -> false or NULL, and the error
//! C          <--'
//! ```
//! Invariants: no panic leaves the library. A handle is a `Box` that its free function takes back.
//! A handle of one store is never used on another.
//!
//! # Pointers
//!
//! Callers of every function must guarantee the following, since nothing can check it. A handle
//! comes from this library and is not freed yet. A pointer beside a length points to as many bytes.
//! Texts end with a zero. Places for results can be written. Null where it is not allowed is an
//! error.

#![expect(non_camel_case_types, reason = "types have the names that C sees")]

#[cfg(panic = "abort")]
compile_error!("a panic is to be an error of the call: build this library with panic = \"unwind\"");

#[macro_use]
mod border;
pub mod backup;
pub mod batch;
pub mod bounds;
pub mod changes;
pub mod db;
pub mod error;
pub mod filter;
pub mod follow;
mod json;
pub mod keyspace;
pub mod library;
pub mod options;
pub mod read;
pub mod scan;
pub mod snapshot;
pub mod text;
pub mod tools;
pub mod transaction;
pub mod value;
pub mod write;

/// Checks the header's promises about threads at compile time.
const _: () = {
    const fn moves<T: Send>() {}
    const fn is_shared<T: Send + Sync>() {}
    moves::<scan::trommel_scan>();
    moves::<batch::trommel_batch>();
    moves::<changes::trommel_changes>();
    moves::<filter::trommel_filter_builder>();
    is_shared::<backup::trommel_backups>();
    is_shared::<db::trommel_db>();
    is_shared::<error::trommel_error>();
    is_shared::<filter::trommel_filter>();
    is_shared::<follow::trommel_follower>();
    is_shared::<follow::trommel_moment>();
    is_shared::<keyspace::trommel_keyspace>();
    is_shared::<options::trommel_options>();
    is_shared::<snapshot::trommel_snapshot>();
    is_shared::<text::trommel_names>();
    is_shared::<transaction::trommel_savepoint>();
    is_shared::<transaction::trommel_transaction>();
    is_shared::<value::trommel_value>();
};
