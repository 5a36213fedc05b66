//! The version of this library, and its initialization per process.
//!
//! Invariant: every kind of guard is registered before the name of one is read.

use std::ffi::c_char;
use std::sync::Once;

/// The ABI version that this header declares. trommel_abi_version returns that of the library.
pub const TROMMEL_ABI_VERSION: u32 = 1;

/// Returns the ABI version for which the library was built. A program must not use a library with
/// another version than its own TROMMEL_ABI_VERSION.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn trommel_abi_version() -> u32 {
    TROMMEL_ABI_VERSION
}

/// Returns the version of Trommel, such as "0.2.0". The text lives as long as the program.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn trommel_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Registers the guards of `trommel-guards` by name.
pub(crate) fn know_guards() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| trommel_guards::register().expect("nobody else has these names"));
}
