//! Fingerprints of varying length (GRF, section 4.3.2): which way to round.
//! ```text
//! C(k) = 0.612     M = 256          156.7    up 10011101        down 10011100
//!                  M' = 256 * 2^3  1253.4    up 10011100110     down 10011100101
//!                                               ~~~~~~~~           ~~~~~~~~
//!                                      another prefix               the same
//! ```
//! Invariant: what is compared are prefixes; so one fingerprint must be the prefix of every longer
//! one of the same key.

const M: f64 = 256.0;
const EXTRA_BITS: u32 = 3;

fn rounded_up(share: f64, extra: u32) -> u64 {
    (share * M * f64::from(1u32 << extra)).ceil() as u64
}

fn rounded_down(share: f64, extra: u32) -> u64 {
    (share * M * f64::from(1u32 << extra)) as u64
}

// GRF, section 4.3.2: 0.612 * 2048 is rounded up to 10011100110; 0.613 differs with M' and not with
// M.
#[test]
fn section_4_3_2_0_612_and_0_613_as_printed() {
    assert_eq!(rounded_up(0.612, EXTRA_BITS), 0b100_1110_0110);
    assert_eq!(rounded_up(0.613, EXTRA_BITS), 0b100_1110_1000);
    assert_eq!(rounded_up(0.612, 0), 0b1001_1101);
    assert_eq!(rounded_up(0.613, 0), 0b1001_1101);
}

#[test] // GRF, section 4.3.2: 10011101 is greater than 10010111111, by their first five bits.
fn section_4_3_2_prefixes_keep_the_order() {
    let (one, other) = (0b1001_1101u64, 0b100_1011_1111u64);
    assert!(one < other >> EXTRA_BITS << 3, "as numbers, the longer one is greater");
    assert!(one > other >> EXTRA_BITS);
    assert_eq!((one >> 3, other >> (EXTRA_BITS + 3)), (0b10011, 0b10010));
}

/// The keys of a thousand whose short fingerprint is not the prefix of the long one.
fn lost(rounded: fn(f64, u32) -> u64) -> usize {
    let is_lost = |share: f64| rounded(share, EXTRA_BITS) >> EXTRA_BITS != rounded(share, 0);
    (0..1000).map(|place| (f64::from(place) + 0.5) / 1000.0).filter(|&share| is_lost(share)).count()
}

// The deviation: rounding up, as printed, loses seven keys of eight when the extra bits go.
// Rounding down loses none.
#[test]
fn rounding_up_is_no_prefix_and_rounding_down_is() {
    // The key of the example: stored as 10011101 when built from the last level, asked for as
    // 10011100...
    assert_eq!(rounded_up(0.612, EXTRA_BITS) >> EXTRA_BITS, 0b1001_1100);
    assert_ne!(rounded_up(0.612, EXTRA_BITS) >> EXTRA_BITS, rounded_up(0.612, 0));
    let expected = 1000 * 7 / 8;
    assert!(lost(rounded_up).abs_diff(expected) < 20, "{} of 1000", lost(rounded_up));
    assert_eq!(lost(rounded_down), 0);
}

#[test]
fn rounded_down_fingerprints_of_the_example_are_still_told_apart() {
    assert_ne!(rounded_down(0.612, EXTRA_BITS), rounded_down(0.613, EXTRA_BITS));
    assert_eq!(rounded_down(0.612, 0), rounded_down(0.613, 0));
}
