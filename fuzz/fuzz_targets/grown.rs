//! The target `grown`: its body is in `crates/fuzzing/src/grown.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("grown", bytes));
