//! The target `block`: its body is in `crates/fuzzing/src/block.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("block", bytes));
