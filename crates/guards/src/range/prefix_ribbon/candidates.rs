//! Guesses suitable prefix lengths from a sample of keys and ranges.
//! ```text
//! keys      user01234567time01234567     after 12 bytes all keys have the same byte: a part
//!           user76543210time89012345     ends there
//! ranges    user01234567time01234567     share 20 bytes from end to end: prefixes of 21 and
//!        to user01234567time01235567     22 bytes tell whether they hold keys
//!
//! candidates   21   21+all   12+21   12+21+all   12+all   ...   sep:/+all, if all have a slash
//! ```
//! Invariant: these are guesses. Whoever uses one has measured it.

use trommel_filters::KeyRange;

use super::alphabet::PLACES_MAX;
use super::levels::{PrefixLevel, PrefixLevels};
use crate::range::base::number::common_bytes;
use crate::range::base::prefix_rule::PrefixRule;

/// Parts that end early are rarely queried: only this many ends are used, the last ones.
const ENDS_MAX: usize = 2;
/// How many bytes longer than the common prefix of ranges. With one more byte a range has few
/// prefixes; with two, a key next to the range has another prefix than the range.
const BYTES_BEYOND: [usize; 2] = [1, 2];
/// Ranges may be of two sorts, parts and stretches within a part. So the lengths are taken at which
/// a quarter, and three quarters, of the ranges have shorter common prefixes.
const QUARTERS: [usize; 2] = [1, 3];

/// Returns the levels that are worth measuring, in an order that depends only on the sample.
/// Requires: at least one key.
pub(crate) fn candidates(keys: &[impl AsRef<[u8]>], ranges: &[KeyRange<'_>]) -> Vec<PrefixLevels> {
    let fixed = |len: usize| u8::try_from(len).ok().map(PrefixRule::Fixed);
    let lens: Vec<Option<PrefixRule>> = lens_of(ranges).into_iter().map(fixed).collect();
    let ends = ends_of_parts(keys);
    let ends = ends[ends.len().saturating_sub(ENDS_MAX)..].iter().filter_map(|&len| fixed(len));
    let mut all = vec![PrefixLevels::default()];
    for head in [None].into_iter().chain(ends.chain(separator(keys)).map(Some)) {
        for len in lens.iter().chain([&None]) {
            let rules = head.into_iter().chain(*len).map(PrefixLevel::Prefix);
            let parts: Vec<PrefixLevel> = rules.collect();
            let with_keys = [&parts[..], &[PrefixLevel::WholeKey]].concat();
            // None: the part does not end before the prefix of the range.
            all.extend([parts, with_keys].into_iter().filter_map(PrefixLevels::new));
        }
    }
    all
}

/// Returns lengths of prefixes of which a range meets few.
fn lens_of(ranges: &[KeyRange<'_>]) -> Vec<usize> {
    let shared =
        |range: &KeyRange<'_>| range.upper().map_or(0, |it| common_bytes(range.lower(), it));
    let mut all: Vec<usize> = ranges.iter().map(shared).collect();
    all.sort_unstable();
    let quarters = QUARTERS.iter().filter_map(|quarter| all.get(all.len() * quarter / 4));
    let lens = quarters.flat_map(|len| BYTES_BEYOND.map(|more| len + more));
    let mut lens: Vec<usize> = lens.filter(|&len| len <= PLACES_MAX).collect();
    lens.sort_unstable();
    lens.dedup();
    lens
}

/// Returns lengths at which parts end: all keys continue with the same byte, but not before.
fn ends_of_parts(keys: &[impl AsRef<[u8]>]) -> Vec<usize> {
    let mut keys = keys.iter().map(AsRef::as_ref);
    let first = keys.next().unwrap_or_default();
    let mut is_alike = vec![true; first.len().min(PLACES_MAX)];
    for key in keys {
        is_alike.truncate(key.len());
        let places = is_alike.iter_mut().zip(first.iter().zip(key));
        places.for_each(|(is_alike, (one, other))| *is_alike &= one == other);
    }
    (1..is_alike.len()).filter(|&len| is_alike[len] && !is_alike[len - 1]).collect()
}

/// Returns the byte that ends a part of every key, if it is the same for all. It is the first one
/// that is neither a letter nor a digit.
fn separator(keys: &[impl AsRef<[u8]>]) -> Option<PrefixRule> {
    let first = |key: &[u8]| key.iter().copied().find(|byte| !byte.is_ascii_alphanumeric());
    let mut found = keys.iter().map(|key| first(key.as_ref()));
    let byte = found.next()??;
    found.all(|other| other == Some(byte)).then_some(PrefixRule::Separator(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(keys: &[impl AsRef<[u8]>], ranges: &[(&[u8], &[u8])]) -> Vec<String> {
        let range = |&(lower, upper)| KeyRange::new(lower, Some(upper)).expect("in order");
        let ranges: Vec<KeyRange<'_>> = ranges.iter().map(range).collect();
        candidates(keys, &ranges).iter().map(PrefixLevels::to_string).collect()
    }

    #[test]
    fn a_part_ends_before_what_all_keys_have() {
        let key =
            |nth: u64| format!("user{:08}time{:08}", nth * 2_477, nth * 7_919_993 % 100_000_000);
        let keys: Vec<String> = (0..1000).map(key).collect();
        assert_eq!(ends_of_parts(&keys), [12]);
        let ends: (&[u8], &[u8]) = (b"user00000007time01234567", b"user00000007time01235567");
        let found = texts(&keys, &[ends; 3]);
        let expected = "6+all 21 21+all 22 22+all all 12+21 12+21+all 12+22 12+22+all 12 12+all";
        assert_eq!(found.join(" "), expected);
        let part: (&[u8], &[u8]) = (b"user00000007", b"user00000008");
        let found = texts(&keys, &[ends, part]);
        assert!(found.contains(&"12+21".to_string()), "{found:?}");
    }

    #[test]
    fn a_separator_is_one_that_all_keys_have() {
        let keys = ["user7/time1", "user12/time", "user9/"];
        assert_eq!(separator(&keys), Some(PrefixRule::Separator(b'/')));
        assert!(texts(&keys, &[]).contains(&"sep:/+all".to_string()));
        assert_eq!(separator(&["user7/time1", "user7"]), None);
        assert_eq!(separator(&["user7/time1", "user7:time"]), None);
    }

    #[test]
    fn keys_without_parts_have_few_candidates() {
        let keys: Vec<[u8; 8]> =
            (0..1000u64).map(|nth| nth.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()).collect();
        assert_eq!(ends_of_parts(&keys), []);
        assert_eq!(separator(&keys), None);
        let range: (&[u8], &[u8]) = (b"abcd", b"abzz");
        assert_eq!(texts(&keys, &[range]).join(" "), "6+all 3 3+all 4 4+all all");
        assert_eq!(texts(&[[b'x'; 99]], &[(&[b'x'; 98], &[b'x'; 99])]).join(" "), "6+all all");
    }
}
