//! The bits of the GRF paper: encodings of varying length (section 4.2), compressed bit blocks
//! (Figure 9), what both take (4.4).
//! ```text
//! quotients    1 1 | 0 1 0001 001 010 001 011       remainders  11 10
//!              ~ quotient bit, after a zero for each that was skipped
//!                ~     ~~~~ indicators: a zero for each position before the last
//!                           ~~~~~~~~~~~ positions         ~~~ suffix of the fingerprint,
//!     a bit for each position
//! ```
//! Invariant: `decode` undoes `encode`.

use crate::digits::positions;

/// Bits of a position where T = 4: the paper writes 2 as 010 (two bits would do).
const POSITION_BITS: usize = 3;

/// An entry of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// The fingerprint without its suffix.
    prefix: u64,
    /// The extra bits, one for each position but the last.
    suffix: String,
    /// What is stored of the shape encoding.
    kse: Vec<u64>,
}

impl Entry {
    fn fingerprint(&self, prefix_bits: usize) -> String {
        binary(self.prefix, prefix_bits) + &self.suffix
    }
}

fn binary(number: u64, bits: usize) -> String {
    format!("{number:0bits$b}")
}

/// Indicators first, then positions; the last position is known.
fn encoded_positions(kse: &[u64]) -> (String, String) {
    let inner = &kse[..kse.len() - 1];
    let indicators = "0".repeat(inner.len()) + "1";
    let written = inner.iter().map(|&position| binary(position, POSITION_BITS));
    (indicators, written.collect())
}

/// The quotient part and the remainders of some entries, ascending. The paper's K is
/// `1 << remainder_bits`.
fn encode(entries: &[Entry], remainder_bits: usize) -> (String, Vec<u64>) {
    let (mut quotients, mut remainders, mut last) = (String::new(), Vec::new(), 0);
    for entry in entries {
        let quotient = entry.prefix >> remainder_bits;
        quotients += &"0".repeat((quotient - last) as usize);
        let (indicators, written) = encoded_positions(&entry.kse);
        quotients += &["1", &indicators, &written, &entry.suffix].concat();
        remainders.push(entry.prefix & ((1 << remainder_bits) - 1));
        last = quotient;
    }
    (quotients, remainders)
}

/// Cuts the next `len` bits.
fn take<'a>(bits: &mut &'a str, len: usize) -> &'a str {
    let (head, tail) = bits.split_at(len);
    *bits = tail;
    head
}

/// The zeros up to the next set bit; both are cut.
fn take_unary(bits: &mut &str) -> usize {
    let zeros = bits.find('1').expect("a set bit ends every count");
    take(bits, zeros + 1).len() - 1
}

fn decode(mut quotients: &str, remainders: &[u64], remainder_bits: usize) -> Vec<Entry> {
    let (mut quotient, mut entries) = (0, Vec::new());
    for remainder in remainders {
        quotient += take_unary(&mut quotients) as u64;
        let inner = take_unary(&mut quotients);
        let number = |bits| u64::from_str_radix(bits, 2).expect("bits are bits");
        let mut kse: Vec<u64> =
            (0..inner).map(|_| number(take(&mut quotients, POSITION_BITS))).collect();
        kse.push(1);
        let suffix = take(&mut quotients, inner).to_owned();
        entries.push(Entry { prefix: quotient << remainder_bits | remainder, suffix, kse });
    }
    assert!(quotients.is_empty(), "{quotients} is left");
    entries
}

// GRF, section 4.2: 231 is 0010, 0011 and 1 (its 001 is known); 211 is 001(010)(001) with
// indicators in front.
#[test]
fn section_4_2_231_and_211_as_bits() {
    let single = |kse: &[u64]| -> Vec<String> {
        let inner = kse[..kse.len() - 1].iter();
        let written = inner.map(|&position| "0".to_owned() + &binary(position, POSITION_BITS));
        written.chain(["1".to_owned()]).collect()
    };
    assert_eq!(single(&positions("231")), ["0010", "0011", "1"]);
    assert_eq!(single(&positions("211")), ["0010", "0001", "1"]);
    let grouped = encoded_positions(&positions("211"));
    assert_eq!(grouped, ("001".to_owned(), "010001".to_owned()));
}

// GRF, Figure 9: K = 4; 3 in the last level, then 6 with 1211 and suffix 011: fingerprint 0110011.
#[test]
fn figure_9_the_block_is_read_as_the_text_says() {
    let quotients = ["1", "1", "0", "1", "0001", "001", "010", "001", "011"].concat();
    let entries = decode(&quotients, &[3, 2], 2);
    let last_level = Entry { prefix: 3, suffix: String::new(), kse: vec![1] };
    assert_eq!(entries[0], last_level);
    assert_eq!(entries[0].fingerprint(4), "0011");
    assert_eq!((entries[1].prefix, &entries[1].kse), (6, &positions("1211")));
    assert_eq!(entries[1].fingerprint(4), "0110011");
    assert_eq!(encode(&entries, 2), (quotients, vec![3, 2]));
}

// GRF, section 4.3.2: when k has come to level 1, 1211 becomes 211, and its suffix loses the last
// bit.
#[test]
fn section_4_3_2_an_entry_that_descends_loses_a_position_and_a_bit() {
    let entry = |kse: &str, suffix: &str| Entry {
        prefix: 6,
        suffix: suffix.to_owned(),
        kse: positions(kse),
    };
    let stages = [("1211", "011"), ("211", "01"), ("11", "0"), ("1", "")];
    let bits = stages.map(|(kse, suffix)| {
        let entries = [entry(kse, suffix)];
        let (quotients, remainders) = encode(&entries, 2);
        assert_eq!(decode(&quotients, &remainders, 2), entries);
        quotients.len()
    });
    // Each level takes an indicator, a position and a bit of the suffix.
    assert_eq!(bits.map(|bits| bits - bits_of_last_level()), [15, 10, 5, 0]);
}

/// A skipped quotient, the quotient bit, the indicator.
fn bits_of_last_level() -> usize {
    3
}

#[test]
fn blocks_of_many_entries_are_read_back() {
    let kses = ["1", "31", "231", "0121", "11", "3301"].map(positions);
    let entries: Vec<Entry> = (0..200u64)
        .map(|place| {
            let kse = kses[(place * 7 % 6) as usize].clone();
            let suffix = binary(place % 2, 1).repeat(kse.len() - 1);
            Entry { prefix: place * place / 9, suffix, kse }
        })
        .collect();
    for remainder_bits in [1, 2, 5] {
        let (quotients, remainders) = encode(&entries, remainder_bits);
        assert_eq!(decode(&quotients, &remainders, remainder_bits), entries);
    }
}

/// Section 4.4: bits of all keys for indicators, positions and `extra` bits of suffix per level,
/// divided by the keys: of the last m-th level m indicators, m - 1 of the others.
fn bits_per_key(size_ratio: f64, extra: f64) -> f64 {
    let of_level = |m: i32| {
        let inner = f64::from(m - 1);
        (1.0 + inner * (1.0 + extra + size_ratio.log2())) / size_ratio.powi(m - 1)
    };
    (1..40).map(of_level).sum()
}

// GRF, section 4.4: T/(T-1) + T(2 + log T)/(T-1)^2. The paper says 1.6 for T = 10; it is 1.77, and
// 1.64 without suffixes.
#[test]
fn section_4_4_bits_per_key_of_encodings_and_suffixes() {
    for ratio in [2.0f64, 4.0, 10.0] {
        let closed = ratio / (ratio - 1.0) + ratio * (2.0 + ratio.log2()) / (ratio - 1.0).powi(2);
        assert!((bits_per_key(ratio, 1.0) - closed).abs() < 1e-6, "{ratio}: {closed}");
    }
    assert!((bits_per_key(10.0, 1.0) - 1.77).abs() < 0.005);
    assert!((bits_per_key(10.0, 0.0) - 1.64).abs() < 0.005);
}

/// Bits of the codes of a tree just before its last merge, per entry above the last level: `runs`
/// in each of `inner_levels`, a last level nine times as large, positions of `position_bits`.
fn paper_code_bits(inner_levels: i32, runs: f64, position_bits: f64) -> f64 {
    let entries = |above_last: i32| (runs + 1.0).powi(inner_levels - above_last);
    let all: f64 = (1..=inner_levels).map(entries).sum();
    let of_entry = |above: i32| 1.0 + f64::from(above) * (1.0 + position_bits);
    let inner: f64 = (1..=inner_levels).map(|above| entries(above) * of_entry(above)).sum();
    inner / all
}

#[test] // The figures that docs/papers/grf.md gives: T = 10, two inner levels of nine runs each.
fn bits_per_code_just_before_the_last_merge() {
    let whole_bits = paper_code_bits(2, 9.0, 4.0);
    let fractional = paper_code_bits(2, 9.0, 10f64.log2());
    assert!((whole_bits - 6.45).abs() < 0.01, "{whole_bits}");
    assert!((fractional - 5.71).abs() < 0.01, "{fractional}");
}
