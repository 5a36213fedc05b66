//! The target `filter`: its body is in `crates/fuzzing/src/filters.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("filter", bytes));
