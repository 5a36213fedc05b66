//! The target `log`: its body is in `crates/fuzzing/src/log.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("log", bytes));
