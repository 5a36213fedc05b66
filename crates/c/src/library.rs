//! Which library this is; and what a whole process needs once.
//!
//! Invariant: every kind of guard is known before a name of one is read.

use std::ffi::c_char;
use std::sync::Once;

/// The version of what this header declares. trommel_abi_version gives that of the library.
pub const TROMMEL_ABI_VERSION: u32 = 1;

/// Which version of the header the library was built for. A program that finds another one than its
/// own TROMMEL_ABI_VERSION must not use the library.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn trommel_abi_version() -> u32 {
    TROMMEL_ABI_VERSION
}

/// The version of Trommel, such as "0.2.0". It lives as long as the program.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn trommel_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Makes the guards of `trommel-guards` known by their names.
pub(crate) fn know_guards() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| trommel_guards::register().expect("nobody else has these names"));
}
