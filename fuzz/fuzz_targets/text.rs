//! The target `text`: its body is in `crates/fuzzing/src/text.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("text", bytes));
