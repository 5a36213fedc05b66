//! The version of this library, and what a process sets up once.
//!
//! Invariant: every kind of guard is registered before a name of one is parsed.

use std::sync::Once;

use jni_sys::jbyteArray;

/// Registers the guards of `trommel-guards` under their names.
pub(crate) fn know_guards() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| trommel_guards::register().expect("nobody else has these names"));
}

native! {
    "version" fn version(env) -> jbyteArray {
        env.new_bytes(env!("CARGO_PKG_VERSION").as_bytes())
    }
}

native! {
    /// For tests: a call that panics.
    "panic" fn panic(_env) -> () {
        assert!(std::hint::black_box(false), "forced by a test");
        Ok(())
    }
}
