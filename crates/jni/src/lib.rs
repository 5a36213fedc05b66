//! Trommel for Java: the native half of the Java package in `java/trommel-java`.
//! ```text
//! Java        Keyspace.get(key) --> Native.get(handle, key, key.length)
//!                                       |  static; takes numbers and arrays only
//! border.rs   catch_unwind( ... )       |  Ok -> a number, an array     Err, panic -> an exception
//! env.rs      bytes in, bytes out       |
//! reader.rs, rows.rs, write.rs, ...     v  the store
//! ```
//! Invariants: no panic leaves the library. A handle is a `Box`. Java frees it once the object that
//! owns it is unreachable, so never during a call. Closing frees what the handle refers to.
//!
//! # Handles
//!
//! `dev.trommel.Native` guarantees what cannot be checked here. A handle comes from this library,
//! has the type that the call takes, and is not freed yet. A handle of rows or of a filter's
//! builder is used by one thread at a time. Lengths are those of the arrays.

#[cfg(panic = "abort")]
compile_error!("a panic is to be an exception: build this library with panic = \"unwind\"");

#[macro_use]
mod border;
mod batch;
mod bytes;
mod env;
mod error;
mod filter;
mod ingest;
mod library;
mod options;
mod reader;
mod rows;
mod sorted;
mod store;
mod transaction;
mod write;

/// What Java's documentation says of threads, checked by the compiler.
const _: () = {
    const fn moves<T: Send>() {}
    const fn is_shared<T: Send + Sync>() {}
    moves::<rows::Rows>();
    moves::<filter::Builder>();
    is_shared::<reader::Reader>();
    is_shared::<transaction::Place>();
    is_shared::<filter::Filter>();
};
