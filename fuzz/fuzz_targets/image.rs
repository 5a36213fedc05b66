//! The target `image`: its body is in `crates/fuzzing/src/image.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("image", bytes));
