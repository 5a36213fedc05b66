//! A part of the filter is built in little more memory than it takes: what it will take is reserved
//! at once, and is never copied.
//! ```text
//! push     what is reserved, and the keys of a chapter
//! finish   the directory; the memory behind the last group is given back
//! ```
//! Invariant: nothing but the part grows with the keys.

use allocation_counter::measure;
use trommel_filters::{FlushNumber, GrfOptions, KeySample, Part, PartBuilder};

/// So many keys that those of a chapter are few.
const KEYS: u64 = 12_000_000;
/// Building may take so many times the memory of the part.
const PEAK_MOST: f64 = 1.15;

/// Ascending keys with uneven gaps.
fn keys() -> impl Iterator<Item = [u8; 8]> {
    let gaps = (0..KEYS).map(|n| 1 + (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24));
    gaps.scan(0, |sum, gap| {
        *sum += gap;
        Some(u64::to_be_bytes(*sum))
    })
}

/// Bytes at once while keys are pushed; what the builder says of them; those allocated to finish.
fn built(expected: u64) -> (Part, [u64; 3]) {
    let mut builder = PartBuilder::new(&GrfOptions::default());
    builder = builder.with_sample(&KeySample::default(), expected);
    let pushed = measure(|| keys().for_each(|key| builder.push(&key))).bytes_max;
    let (told, mut part) = (builder.peak_bytes() as u64, None);
    let finished = measure(|| part = Some(builder.finish(FlushNumber(1)))).bytes_total;
    (part.expect("it is finished"), [pushed, told, finished])
}

#[test]
fn a_part_is_built_in_little_more_memory_than_it_takes() {
    let (part, used) = built(KEYS);
    let bytes = part.size().base_bytes as f64;
    let shares = used.map(|used| used as f64 / bytes);
    assert!(shares.iter().all(|&share| share <= PEAK_MOST), "{shares:?} of {bytes} bytes");
}

#[test]
fn more_keys_than_expected_take_little_more_memory() {
    let (part, [_, told, _]) = built(KEYS - KEYS / 10);
    let share = told as f64 / part.size().base_bytes as f64;
    assert!(share <= PEAK_MOST, "{share}");
}
