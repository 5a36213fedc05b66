//! The filter of a table, of whichever kind, out of any bytes.
//! ```text
//! input   bytes of the filter; the last ones name its kind
//! ```
//! Invariant: a filter that is read answers every question, and the same over aligned memory. What
//! its bounds say agrees with itself: nothing is bounded from outside what was asked for.

use trommel_filters::{AlignedBytes, AnyFilter, BlockedBloom, CountBounds, HashedKey, KeyRange, LowerBound, TableFilter, UpperBound};

pub(crate) fn body(input: &[u8]) {
    let plain = AnyFilter::read(input.to_vec());
    let aligned = AnyFilter::read(AlignedBytes::from_slice(input));
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
        assert_eq!(ask_bounds(&plain, key), ask_bounds(&aligned, key), "{key:?}");
        let (lower, upper) = (key.min(other), key.max(other));
        for upper in [Some(lower), Some(upper), None] {
            let range = KeyRange::new(lower, upper).expect("the lesser bound first");
            assert_eq!(ask_range(&plain, &range), ask_range(&aligned, &range), "{range:?}");
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

fn ask_bounds<B: AsRef<[u8]>>(
    filter: &AnyFilter<B>,
    key: &[u8],
) -> (Option<LowerBound>, Option<UpperBound>) {
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

fn ask_range<B: AsRef<[u8]>>(
    filter: &AnyFilter<B>,
    range: &KeyRange<'_>,
) -> (bool, Option<CountBounds>) {
    let count = filter.count(range);
    if let Some(CountBounds { least, estimate, most }) = count {
        assert!(least <= estimate && estimate <= most, "{count:?} of {range:?}");
    }
    (filter.may_overlap(range), count)
}
