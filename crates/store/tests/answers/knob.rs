//! The knob: what the guard `grf` takes for each key, as a store grows from its first flush on.
//! ```text
//! flushes     1 2 3 ... 9    10 ... 19 20 ...        100 ... 199 200 ...
//! tree        one level      two levels, z = 1, 2    three levels, z = 1, 2
//!             after each flush, and after its merges
//! bits        at most 1.1 times the knob, and 2 KiB
//! ```
//! Invariant: this holds where merges keep up with flushes, at each step.

use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::Memory;
use trommel::{Background, Db, Options, SyncPolicy};

const FLUSH_KEYS: u64 = 4000;
const FLUSHES: u64 = 205;
/// A few keys already need a directory, a root and their tables.
const FIXED_BYTES: f64 = 2048.0;

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn open(bits_per_key: f64) -> Db {
    let options = Options::new()
        .bits_per_key(bits_per_key)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

#[test]
fn no_filling_exceeds_the_knob_by_more_than_a_tenth() {
    for bits_per_key in [8.0, 12.0, 16.0] {
        let db = open(bits_per_key);
        let mut fullest: f64 = 0.0;
        for flush in 0..FLUSHES {
            for number in flush * FLUSH_KEYS..(flush + 1) * FLUSH_KEYS {
                db.put(key(number), b"").expect("puts");
            }
            db.flush().expect("flushes");
            let keys = (flush + 1) * FLUSH_KEYS;
            let mut check = |when| {
                let bytes = db.stats().expect("open").guard.memory_bytes as f64 - FIXED_BYTES;
                let share = bytes * 8.0 / keys as f64 / bits_per_key;
                assert!(share <= 1.1, "{when} {keys} keys: {share} times {bits_per_key} bits");
                fullest = fullest.max(share);
            };
            check("flushed");
            db.settle().expect("settles");
            check("settled");
        }
        assert!(fullest > 1.0, "the budget is spent: {fullest}");
    }
}
