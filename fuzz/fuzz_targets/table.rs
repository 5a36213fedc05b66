//! The target `table`: its body is in `crates/fuzzing/src/table.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trommel_fuzzing::run("table", bytes));
