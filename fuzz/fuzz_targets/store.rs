//! The target `store`: its body is in `crates/fuzzing/src/store.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("store", bytes));
