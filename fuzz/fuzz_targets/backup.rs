//! The target `backup`: its body is in `crates/fuzzing/src/backup.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("backup", bytes));
