//! The target `manifest`: its body is in `crates/fuzzing/src/manifest.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("manifest", bytes));
