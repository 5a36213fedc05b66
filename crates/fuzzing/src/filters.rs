//! The filter of a table, of whichever kind, out of any bytes.
//! ```text
//! input   bytes of the filter; the last ones name its kind; those of fingerprints are asked with
//!         their checksum put right, too
//! ```
//! Invariant: a filter that is read answers every question, and the same over aligned memory. What
//! its bounds say agrees with itself: nothing is bounded from outside what was asked for.

use trommel_filters::hash::checksum;
use trommel_filters::{
    AlignedBytes, AnyFilter, BlockedBloom, Bloom, Corrupt, CountBounds, HashedKey, KeyRange,
    LowerBound, Ribbon, Surf, UpperBound, read_filter,
};
use trommel_guards::{
    Arf, BinaryFuse, Elastic, FingerprintFilter, PrefixBloom, PrefixRibbon, Rencoder, Rosetta, Xor,
    kinds,
};

pub(crate) fn body(input: &[u8]) {
    ask(input);
    if let Some(sealed) = sealed(input) {
        ask(&sealed);
    }
}

/// A filter of fingerprints whose directory and model have the right checksum.
fn sealed(input: &[u8]) -> Option<Vec<u8>> {
    /// Where the trailer has the length of the groups, in units of 8 bytes, and the kind.
    const GROUPS_AT: usize = 28;
    const KIND_AT: usize = 4;
    let (_, groups) = input.split_at_checked(input.len().checked_sub(GROUPS_AT)?)?;
    let units = u32::from_le_bytes(*groups.first_chunk()?) as usize;
    let (_, kind) = input.split_at(input.len() - KIND_AT);
    if !matches!(u16::from_le_bytes(*kind.first_chunk()?), 10..=12 | 18) {
        return None;
    }
    let (from, to) = (units.checked_mul(8)?, units.checked_mul(8)?.checked_add(8)?);
    let seal = checksum(input.get(to..)?).to_le_bytes();
    let mut sealed = input.to_vec();
    sealed[from..to].copy_from_slice(&seal);
    Some(sealed)
}

fn ask(input: &[u8]) {
    let plain = read_plain(input.to_vec());
    let aligned = read_filter(AlignedBytes::from_slice(input), &kinds::TABLE_FILTERS);
    let (plain, aligned) = match (plain, aligned) {
        (Ok(plain), Ok(aligned)) => (plain, aligned),
        (Err(wrong), Err(other)) => {
            assert!(wrong == other && wrong.at <= input.len(), "{wrong}, {other}");
            return;
        }
        (plain, _) => panic!("read over one memory alone: {}", plain.is_ok()),
    };
    assert_eq!((plain.kind(), plain.size_bytes()), (aligned.kind(), input.len()));
    let keys = || input.chunks(5).chain([&b""[..], &[0xff; 9]]);
    for (key, other) in keys().zip(keys().skip(1)) {
        assert_eq!(plain.may_contain(key), aligned.may_contain(key), "{key:?}");
        let hashed = HashedKey::new(key);
        assert_eq!(plain.may_contain(key), plain.may_contain_hashed(&hashed), "{key:?}");
        assert_eq!(ask_bounds(&*plain, key), ask_bounds(&*aligned, key), "{key:?}");
        let (lower, upper) = (key.min(other), key.max(other));
        for upper in [Some(lower), Some(upper), None] {
            let range = KeyRange::new(lower, upper).expect("the lesser bound first");
            assert_eq!(ask_range(&*plain, &range), ask_range(&*aligned, &range), "{range:?}");
        }
    }
    if let (Ok(plain), Ok(aligned)) =
        (BlockedBloom::read(input), BlockedBloom::read(AlignedBytes::from_slice(input)))
    {
        for hash in (0..64).map(|shift| u64::MAX >> shift) {
            assert_eq!(plain.may_contain_hash(hash), aligned.may_contain_hash(hash), "{hash:x}");
        }
    }
}

/// As the kinds read, over bytes that lie anywhere.
fn read_plain(bytes: Vec<u8>) -> Result<Box<dyn AnyFilter>, Corrupt> {
    let wrong = |at| Corrupt { at, what: "the tag of a filter that is known" };
    let short = Corrupt { at: 0, what: "the trailer of a filter" };
    let at = bytes.len().checked_sub(4).ok_or(short)?;
    Ok(match u16::from_le_bytes([bytes[at], bytes[at + 1]]) {
        1 => Box::new(BlockedBloom::read(bytes)?),
        2 => Box::new(Bloom::read(bytes)?),
        3 => Box::new(Ribbon::read(bytes)?),
        4 => Box::new(BinaryFuse::read(bytes)?),
        5 => Box::new(Xor::read(bytes)?),
        6..=9 => Box::new(Surf::read(bytes)?),
        10..=12 | 18 => Box::new(FingerprintFilter::read(bytes)?),
        13 => Box::new(Rosetta::read(bytes)?),
        14 => Box::new(Rencoder::read(bytes)?),
        15 => Box::new(PrefixBloom::read(bytes)?),
        16 => Box::new(Arf::read(bytes)?),
        17 => Box::new(Elastic::read(bytes)?),
        19 => Box::new(PrefixRibbon::read(bytes)?),
        _ => return Err(wrong(at)),
    })
}

fn ask_bounds(filter: &dyn AnyFilter, key: &[u8]) -> (Option<LowerBound>, Option<UpperBound>) {
    let lower = filter.lower_bound(key);
    if let Some(LowerBound::From { key: bound, unsure }) = &lower {
        assert!(bound.as_slice() >= key && (!unsure || bound == key), "{bound:?} from {key:?}");
    }
    let upper = filter.upper_bound(key);
    if let Some(UpperBound::Before { end, unsure }) = &upper {
        let after = [key, &[0]].concat();
        assert!(*end <= after && (!unsure || *end == after), "before {end:?} from {key:?}");
    }
    (lower, upper)
}

fn ask_range(filter: &dyn AnyFilter, range: &KeyRange<'_>) -> (bool, Option<CountBounds>) {
    let count = filter.count(range);
    if let Some(CountBounds { least, estimate, most }) = count {
        assert!(least <= estimate && estimate <= most, "{count:?} of {range:?}");
    }
    (filter.may_overlap(range), count)
}
