//! The name by which programs look for the shared library. The versions of its symbols cannot be
//! given here: rustc passes the linker a list of symbols of its own, which GNU ld does not combine
//! with versions, and beside which lld passes over them. `link.sh` links the library with them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtrommel.so.0.2");
    }
}
