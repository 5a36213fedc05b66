//! Internals: codes fill buckets, and buckets decode to what was written.

use trommel_filters::hash::scattered;
use trommel_filters::{RunLocator, RunLocatorBuilder, RunSlot, SlotSet, TreePlan, Untraced};

use super::bucket::{BUCKET_SLOTS, BucketCodec, Decoded, Lanes};
use super::codebook::{CodeBook, Combinations};
use super::combinations::multisets;
use super::place::Geometry;
use super::plain::Integers;

fn plan(runs_of_levels: &[u8], size_ratio: u32, bits_per_key: f64) -> TreePlan {
    let runs_of_levels = runs_of_levels.to_vec();
    TreePlan { runs_of_levels, waiting_runs: 0, size_ratio, entries: 4_000_000, bits_per_key }
}

/// The number of buckets in the filter of such a plan.
fn buckets(plan: &TreePlan) -> usize {
    Geometry::new(plan.entries).buckets()
}

/// Plans of all kinds, from few to nearly all combinations frequent.
fn plans() -> Vec<TreePlan> {
    let mut plans = vec![plan(&[1], 5, 10.0), plan(&[1, 1], 2, 8.0), plan(&[9, 9, 9], 10, 12.0)];
    for bits_per_key in [4.0, 8.0, 9.25, 10.0, 10.75, 13.5, 16.0, 30.0, 1e9, f64::NAN] {
        plans.push(plan(&[4, 4, 4, 1], 5, bits_per_key));
        plans.push(plan(&[7, 4, 4, 4, 4, 1], 5, bits_per_key));
    }
    plans.push(plan(&[20, 30, 30, 30, 1], 31, 10.0));
    plans.push(plan(&[255, 1], 10, 10.0));
    plans.push(plan(&[1; 256], 2, 10.0));
    plans
}

/// Lanes with these slots.
fn lanes_of(codec: &impl BucketCodec, slots: [u8; BUCKET_SLOTS], seed: u64) -> Lanes {
    let fingerprint = |lane: usize| {
        let fingerprint = scattered(seed << 2 | lane as u64) as u32;
        fingerprint >> (u32::BITS - codec.fingerprint_bits(slots[lane]))
    };
    Lanes { slots, fingerprints: std::array::from_fn(fingerprint) }
}

/// All combinations if there are few slots, else some.
fn some_combinations(slots: usize) -> Vec<[u8; BUCKET_SLOTS]> {
    let mut some = Vec::new();
    if slots <= 12 {
        multisets(slots, BUCKET_SLOTS, &mut |list| some.push(list.try_into().unwrap()));
        return some;
    }
    for seed in 0..5000 {
        // Both ends are drawn more often than the middle.
        let slot = |nth: u64| {
            let random = scattered(seed << 2 | nth);
            let drawn = random as usize % slots;
            if random >> 63 == 0 { drawn } else { slots - 1 - drawn * drawn / slots / 4 }
        };
        let mut combination = [0, 1, 2, 3].map(|nth| slot(nth) as u8);
        combination.sort_unstable();
        some.push(combination);
    }
    some.push([(slots - 1) as u8; BUCKET_SLOTS]);
    some
}

fn buckets_say_what_was_written<C: BucketCodec>(plan: &TreePlan) -> (usize, usize) {
    let codec = C::new(plan, buckets(plan));
    assert!(codec.bucket_bits() <= super::pages::BUCKET_BITS_MAX);
    let blank = codec.encode(&Lanes::empty(codec.last_slot()));
    assert_eq!((blank.value, blank.overflowed), (0, false), "{plan:?}");
    let oldest = lanes_of(&codec, [codec.last_slot(); BUCKET_SLOTS], 77);
    let shifted = oldest.fingerprints.iter().zip(codec.oldest_shifts());
    let bits =
        shifted.fold(0, |bits, (fingerprint, shift)| bits | u128::from(*fingerprint) << shift);
    let encoded = codec.encode(&oldest);
    assert_eq!((encoded.value, encoded.overflowed), (bits, false), "{plan:?}, the oldest run");
    let combinations = some_combinations(plan.slots());
    let (count, mut whole) = (combinations.len(), 0);
    for (seed, slots) in (0..).zip(combinations) {
        let lanes = lanes_of(&codec, slots, seed);
        let encoded = codec.encode(&lanes);
        assert!(encoded.value >> codec.bucket_bits() == 0, "{plan:?}, {slots:?}");
        match codec.decode(encoded.value) {
            Decoded::Whole(decoded) => {
                assert_eq!((decoded, encoded.overflowed), (lanes, false), "{plan:?}");
                whole += 1;
            }
            Decoded::Overflowed(named) => {
                assert!(encoded.overflowed && named.is_none_or(|named| named == slots), "{plan:?}");
            }
        }
        for lane in 0..BUCKET_SLOTS {
            let mut found = SlotSet::default();
            let fingerprint =
                lanes.fingerprints[lane] << (u32::BITS - codec.fingerprint_bits(slots[lane]));
            if codec.matches(encoded.value, fingerprint, &mut found, &mut Untraced) {
                assert!(found.contains(RunSlot(slots[lane])), "{plan:?}, {slots:?}");
                let equals = |lane: usize| {
                    lanes.fingerprints[lane]
                        == fingerprint >> (u32::BITS - codec.fingerprint_bits(slots[lane]))
                };
                let expected = (0..BUCKET_SLOTS).filter(|&lane| equals(lane));
                let expected = expected.map(|lane| slots[lane]);
                let expected: std::collections::BTreeSet<u8> = expected.collect();
                assert_eq!(found.len(), expected.len(), "{plan:?}, {slots:?}");
            } else {
                assert!(encoded.overflowed && found.is_empty());
            }
        }
    }
    (whole, count)
}

#[test]
fn buckets_of_all_plans_say_what_was_written() {
    for plan in plans() {
        let (whole, count) = buckets_say_what_was_written::<Combinations>(&plan);
        assert!(whole > 0 && whole <= count);
        let (whole, count) = buckets_say_what_was_written::<Integers>(&plan);
        assert_eq!(whole, count, "whole numbers never overflow");
    }
}

#[test]
fn fingerprints_are_longer_in_older_levels() {
    for plan in plans() {
        let codec = Combinations::new(&plan, buckets(&plan));
        let lengths: Vec<u32> =
            (0..plan.slots()).map(|slot| codec.fingerprint_bits(slot as u8)).collect();
        assert!(lengths.is_sorted() && lengths[0] >= 5, "{plan:?}: {lengths:?}");
        assert!(lengths.last() <= Some(&32));
    }
}

#[test]
fn nearly_all_buckets_have_a_frequent_combination() {
    // With empty places and tables deducted, entries have 8, 10, 12 and 16 bits.
    for bits_per_key in [8.9, 11.0, 13.1, 17.3] {
        for runs_of_levels in [&[4, 4, 4, 4, 4, 1][..], &[7, 4, 4, 4, 4, 4, 1], &[1; 6]] {
            let plan = plan(runs_of_levels, 5, bits_per_key);
            let book = CodeBook::of_plan(&plan, buckets(&plan));
            let (count, share) = book.frequent();
            assert!(share >= 0.9999, "{runs_of_levels:?}, {bits_per_key}: {count}, {share}");
        }
    }
}

#[test]
fn equal_plans_share_their_codes() {
    let of = |plan: TreePlan| CodeBook::of_plan(&plan, buckets(&plan));
    let first = of(plan(&[3, 3, 1], 4, 10.1));
    assert!(std::sync::Arc::ptr_eq(&first, &of(plan(&[3, 3, 1], 4, 10.1))));
    let a_little_larger = TreePlan { entries: 4_000_001, ..plan(&[3, 3, 1], 4, 10.1) };
    assert!(std::sync::Arc::ptr_eq(&first, &of(a_little_larger)));
    assert!(!std::sync::Arc::ptr_eq(&first, &of(plan(&[3, 3, 1], 4, 11.0))));
    let waiting = TreePlan { waiting_runs: 1, ..plan(&[3, 3, 1], 4, 10.1) };
    assert!(!std::sync::Arc::ptr_eq(&first, &of(waiting)));
}

#[test]
fn buckets_have_whole_bits_within_bounds() {
    let bits = |bits_per_key: f64| {
        let plan = plan(&[4, 4, 1], 5, bits_per_key);
        Combinations::new(&plan, buckets(&plan)).bucket_bits()
    };
    assert_eq!([f64::NAN, -1.0, 0.0, 1e300].map(bits), [24, 24, 24, 119]);
    assert!((28..=30).contains(&bits(8.0)), "{}: four slots, of twenty one free", bits(8.0));
}

/// A full filter. `levels`: the share of keys in each level, in thousandths.
fn filled(plan: &TreePlan, levels: [u64; 3]) -> super::Chucky {
    let keys_of = |level: usize| plan.entries * levels[level] / 1000;
    let mut builder = super::ChuckyBuilder::new(plan);
    (0..keys_of(2)).for_each(|key| builder.push_hash(scattered(key)));
    let mut filter = builder.finish();
    for level in [0, 1] {
        let runs = u64::from(plan.runs_of_levels[level])
            - u64::from(plan.waiting_runs) * u64::from(level == 0);
        for key in 0..keys_of(level) {
            let slot = plan.slot(level, (key % runs) as usize);
            filter.note_hash(scattered((key << 32) + level as u64 + 1), None, slot);
        }
    }
    filter
}

#[test] // Tables once came on top of the budget, and figures plotted the budget.
fn filter_and_tables_take_what_was_asked_for() {
    for entries in [1_000_000, 1_370_000] {
        for bits_per_key in [8.0, 12.0] {
            for (runs_of_levels, waiting_runs) in
                [(vec![22, 9, 1], 12), (vec![22, 1, 1], 20), (vec![4, 4, 1], 0)]
            {
                let plan = TreePlan {
                    runs_of_levels,
                    waiting_runs,
                    size_ratio: 10,
                    entries,
                    bits_per_key,
                };
                let filter = filled(&plan, [9, 90, 901]);
                let taken = filter.size().bytes as f64 * 8.0 / entries as f64;
                assert!((0.95..=1.05).contains(&(taken / bits_per_key)), "{plan:?}: {taken}");
            }
        }
    }
}
