//! Which library this is; and what a whole process needs once.
//!
//! Invariant: every kind of guard is known before a name of one is read.

use std::sync::Once;

use jni_sys::jbyteArray;

/// Makes the guards of `trommel-guards` known by their names.
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
    /// For tests: a call in which the library panics.
    "panic" fn panic(_env) -> () {
        assert!(std::hint::black_box(false), "forced by a test");
        Ok(())
    }
}
