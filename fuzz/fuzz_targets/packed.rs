//! The target `packed`: its body is in `crates/fuzzing/src/packed.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("packed", bytes));
