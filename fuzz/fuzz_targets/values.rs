//! The target `values`: its body is in `crates/fuzzing/src/values.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("values", bytes));
