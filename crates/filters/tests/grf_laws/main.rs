//! The laws of the global range filter, against a twin too plain to be wrong.
//! ```text
//! Tree   base keys, flushes  ->  Part      the filter
//!                            ->  Twin      key -> numbers of the flushes that have it
//! ```
//! The law: whatever the twin finds for a query, a code of the filter's answer contains its flush
//! number; and a cursor gives such a code at or before the key. "No" is proof, "maybe" proves
//! nothing. Codes that merges rewrite are in `huffman.rs`, the law of counts is in `counts.rs`,
//! that of many keys asked for at once in `many.rs`, that of many keys added at once in `words.rs`.
//! More codes than a chunk can have are in `joined.rs`.

mod counts;
mod huffman;
mod joined;
mod many;
mod twin;
mod words;

use proptest::prelude::*;
use trommel_filters::{
    Codes, Fingerprints, FlushNumber, GrfOptions, KeyRange, LineCounter, Part, PartBuilder, Query,
    Shape, Span,
};
use twin::*;

#[test]
fn an_empty_part_holds_nothing() {
    let part = Part::empty(&options(12.0));
    assert!(answer(&part, &Query::Point(b"drum")).is_empty());
    assert!(answer(&part, &Query::Range(KeyRange::all())).is_empty());
    assert_eq!(part.cursor(b"").next_due(None, |_| true), None);
    assert_eq!(part.cursor_back(None).next_due(None, |_| true), None);
    assert_eq!(part.base_end(), FlushNumber(0));
    assert_eq!((part.size().base_entries, part.size().overlay_entries), (0, 0));
}

#[test]
fn one_key_is_found_wherever_it_is() {
    for key in [&b""[..], b"\0", b"a", b"drumdrumdrum", &[0xff; 8], &[0xff; 40]] {
        let keys = vec![key.to_vec()];
        assert_tree(&keys, &[]);
        assert_tree(&[], std::slice::from_ref(&keys));
        assert_tree(&keys, &[keys.clone(), keys.clone()]);
    }
}

#[test]
fn keys_that_are_prefixes_of_each_other() {
    let keys = [
        "a",
        "a\0",
        "a\0\0",
        "a\0b",
        "ab",
        "b",
        "",
        "\0",
        "\0\0",
        "abc",
        "ab\0\0\0\0\0\0\0\0\0\0c",
    ];
    let keys = sorted(keys.iter().map(|key| key.as_bytes().to_vec()));
    assert_dealt(&keys);
    assert_tree(&keys, std::slice::from_ref(&keys));
}

#[test]
fn uniform_numbers() {
    let mut random = Random(1);
    assert_dealt(&numbers(6000, || random.next() >> 14));
}

/// Ends of networks, which touch at round numbers: neighbours are told apart without last bits.
#[test]
fn ends_of_networks() {
    let four = |end: u64| (end as u32).to_be_bytes().to_vec();
    let sixteen = |end: u64| {
        let last_bits = if end & 1 == 0 { 0 } else { u64::MAX };
        [end.to_be_bytes(), last_bits.to_be_bytes()].concat()
    };
    assert_dealt(&sorted(networks(1, 9).into_iter().map(number_key)));
    assert_dealt(&sorted(networks(2, 10).into_iter().map(four)));
    assert_dealt(&sorted(networks(3, 8).into_iter().map(sixteen)));
}

/// Both ends of networks of 2^`granularity` addresses and more; some stretches have finer ones.
fn networks(seed: u64, granularity: u32) -> Vec<u64> {
    let (mut random, mut begin, mut ends) = (Random(seed), 5u64 << 28, Vec::new());
    for _ in 0..900 {
        let round = if begin >> 13 & 3 == 0 { granularity / 2 } else { granularity };
        begin = begin.next_multiple_of(1 << round);
        let next = begin + ((1 + random.next() % 40) << round);
        ends.extend([begin, next - 1]);
        begin = next + (u64::from(random.next().is_multiple_of(11)) << round);
    }
    ends
}

#[test]
fn dense_numbers() {
    assert_dealt(&sorted((0..5000).map(number_key)));
    assert_dealt(&sorted((0..5000u64).map(|id| number_key(u64::MAX - id))));
    assert_dealt(&sorted((0..2500u64).map(|id| (id as u32).to_be_bytes().to_vec())));
}

#[test]
fn tight_clusters_far_apart() {
    let mut random = Random(2);
    let centres: Vec<u64> = (0..40).map(|_| random.next()).collect();
    assert_dealt(&numbers(6000, || {
        let width = 1 << random.below(30);
        centres[random.below(40) as usize].wrapping_add(random.below(width))
    }));
}

#[test]
fn runs_of_zeros_and_ones() {
    let zeros = (0..90).map(|len| vec![0; len]);
    let ones = (0..90).map(|len| vec![0xff; len]);
    let mixed = (0..90).map(|len| [vec![0xff; len], vec![0; 90 - len], vec![1]].concat());
    assert_dealt(&sorted(zeros.chain(ones).chain(mixed)));
}

#[test]
fn words_with_long_common_prefixes() {
    let mut random = Random(3);
    let word = |random: &mut Random| {
        let path: String =
            (0..random.below(6)).map(|_| format!("/node{}", random.below(4))).collect();
        format!("https://example.org{path}/{}", random.below(500)).into_bytes()
    };
    assert_dealt(&sorted((0..4000).map(|_| word(&mut random))));
    let mut keys = sorted((0..3000).map(|_| word(&mut random)));
    keys.insert(0, b"ftp://a".to_vec());
    assert_dealt(&keys);
}

#[test]
fn names_of_files_in_deep_folders() {
    // More groups than a stretch of separators has, which share less than a byte tells, more, and
    // nothing.
    let mut random = Random(12);
    let word = |random: &mut Random, len: usize| -> Key {
        (0..len).map(|_| b'a' + random.below(26) as u8).collect()
    };
    let mut names = Vec::new();
    for place in 0..12 {
        let root = word(&mut random, [3, 60, 240, 250, 270, 600][place % 6]);
        for _ in 0..8 {
            let folder = word(&mut random, 20);
            let files = random.below(80);
            names.extend((0..files).map(|_| {
                let len = random.below(9) as usize;
                let zeros = vec![0; random.below(10) as usize / 8];
                [&root[..], b"/", &folder, b"/index_", &word(&mut random, len), &zeros].concat()
            }));
        }
    }
    assert_dealt(&sorted(names));
}

#[test]
fn groups_that_tie_in_their_first_eight_bytes() {
    let mut random = Random(4);
    let tenants = [&b"tenant-0"[..], b"tenant-1", b"tenant-1tenant-1", b"tenant-2"];
    let key = |random: &mut Random| {
        [tenants[random.below(4) as usize], &(random.next() >> 40).to_be_bytes()].concat()
    };
    assert_dealt(&sorted((0..8000).map(|_| key(&mut random))));
}

#[test]
fn keys_that_look_alike_are_told_apart_by_hash() {
    // Ten keys begin with the same random word each: no bits that a fingerprint in key order keeps
    // tell them apart.
    let mut random = Random(17);
    let stems: Vec<u64> = (0..600).map(|_| random.next()).collect();
    let key = |stem: u64, rest: u64| [stem.to_be_bytes(), rest.to_be_bytes()].concat();
    let draw =
        |random: &mut Random| sorted((0..6000).map(|i| key(stems[i % stems.len()], random.next())));
    let keys = draw(&mut random);
    let (base, flushes) = deal(&keys, 12, 5);
    assert_all_kinds(12.0, &base, &flushes);
    let (part, _) = tree(12.0, &base, &flushes);
    let missing = draw(&mut random);
    let is_maybe = |key: &&Key| !answer(&part, &Query::Point(key)).is_empty();
    let wrongly = missing.iter().filter(is_maybe).count();
    assert!(wrongly < missing.len() / 25, "{wrongly} of {}", missing.len());
}

#[test]
fn keys_up_to_64_kib() {
    let long = |len: usize, last: u8| [vec![b'x'; len], vec![last]].concat();
    let lens = [0, 1, 7, 8, 9, 100, 4000, 20_000, 65_000, 65_535];
    let keys = sorted(lens.iter().flat_map(|&len| [long(len, 0), long(len, 1), long(len, 0xff)]));
    let (base, flushes) = deal(&keys, 3, 6);
    assert_all_kinds(12.0, &base, &flushes);
    assert_all_kinds(12.0, &keys, &[]);
}

#[test]
fn many_long_keys_that_share_much() {
    let mut random = Random(8);
    let stem: Key = (0..3000).map(|_| random.next() as u8).collect();
    let keys = sorted((0..700).map(|_| {
        let len = random.below(3000) as usize;
        [&stem[..len], &random.next().to_be_bytes()[..random.below(9) as usize]].concat()
    }));
    let (base, flushes) = deal(&keys, 5, 6);
    assert_all_kinds(12.0, &base, &flushes);
}

#[test]
fn keys_appended_above_and_below_the_base() {
    let base: Vec<Key> = (10_000..12_000).map(number_key).collect();
    let above: Vec<Vec<Key>> =
        (0..6).map(|i| (12_000 + i * 300..12_300 + i * 300).map(number_key).collect()).collect();
    let below: Vec<Vec<Key>> =
        (0..6).map(|i| (9_700 - i * 300..10_000 - i * 300).map(number_key).collect()).collect();
    assert_tree(&base, &above);
    assert_tree(&base, &below);
    assert_tree(&base, &[above.concat(), sorted(below.concat())]);
    let far: Vec<Key> = (40..64).map(|bit| number_key(1 << bit)).collect();
    assert_tree(&base, &[far, vec![vec![], vec![0xff; 20]]]);
}

#[test]
fn appended_ids_are_told_apart() {
    let base: Vec<Key> = (10_000..12_000).map(number_key).collect();
    let appended: Vec<Key> = (12_000..14_000).filter(|id| id % 2 == 0).map(number_key).collect();
    let (part, _) = tree(12.0, &base, &[appended]);
    for id in (12_000..14_000).filter(|id| id % 2 == 1) {
        assert!(answer(&part, &Query::Point(&number_key(id))).is_empty(), "{id}");
    }
}

// Pitfalls that a prototype met.

#[test]
fn a_range_from_after_the_last_cell_of_a_block_into_the_gap_before_the_next() {
    let mut random = Random(9);
    let keys = numbers(3000, || random.next());
    let (base, flushes) = deal(&keys, 4, 11);
    let (part, twin) = tree(12.0, &base, &flushes);
    for pair in base.windows(2) {
        let [_, _, from, _] = neighbours(&pair[0]);
        let [_, _, _, to] = neighbours(&pair[1]);
        assert_range(&part, &twin, &from, Some(&to));
    }
}

#[test]
fn keys_past_their_groups_common_prefix() {
    // Two dense stretches far apart, of a length at which a group ends with the first one; a flush
    // fills the space between them: its keys lie in that group and have not its prefix.
    for len in [760, 820, 880, 940] {
        let dense = |from: u64| (from..from + len).map(number_key);
        let base: Vec<Key> = dense(1 << 40).chain(dense(1 << 50)).collect();
        let between: Vec<Key> = (1..500).map(|i| number_key((1 << 40) + (i << 41))).collect();
        let between_alone = std::slice::from_ref(&between);
        let (part, twin) = tree(12.0, &base, between_alone);
        for low in &base[len as usize - 300..len as usize] {
            assert_range(&part, &twin, low, Some(&between[0]));
            assert_range(&part, &twin, low, Some(&between[250]));
        }
        assert_all_kinds(12.0, &base, between_alone);
    }
}

#[test]
fn a_cursor_within_the_base_goes_on_to_keys_without_its_prefix() {
    // All base keys share a first byte; after it, the flushed keys look like keys of the last
    // block.
    let base: Vec<Key> = (0..400).map(|i| number_key(1 << 56 | i << 46)).collect();
    let without = |first: u64| number_key(first << 56 | 395 << 46);
    assert_tree(&base, &[vec![without(2)]]);
    assert_tree(&base, &[vec![without(0)]]);
    assert_tree(&base, &[vec![without(0), without(2), without(0xff)]]);
}

#[test]
fn a_cursor_from_the_end_begins_beyond_the_farthest_keys() {
    // Far above and far below the base, where keys lie in the last and the first bucket of an edge.
    let base: Vec<Key> = (0..50).map(|i| number_key((1 << 40) + i)).collect();
    let far = |i: u64| [number_key(i), number_key(u64::MAX - i), vec![0xff; 20], vec![]];
    let flushes: Vec<Vec<Key>> = (0..3).map(|i| sorted(far(i))).collect();
    assert_all_kinds(12.0, &base, &flushes);
    let (part, twin) = tree(12.0, &base, &flushes);
    assert_backward(&part, &twin, None);
    assert_forward(&part, &twin, b"");
}

#[test]
fn the_last_fraction_of_a_block_of_few_keys_has_bounds() {
    // A key that lacks its group's prefix has the last fraction of the last block: with many bits
    // and few keys that is beyond all places between the block's keys.
    for len in (760..900).step_by(3) {
        let dense = |from: u64| (from..from + len).map(number_key);
        let base: Vec<Key> = dense(1 << 40).chain(dense(1 << 50)).collect();
        let between = vec![number_key(1 << 45)];
        for fingerprints in Fingerprints::ALL {
            let options = GrfOptions { fingerprints, ..options(24.0) };
            let (part, twin) =
                tree_with(&options, &base, std::slice::from_ref(&between), Schedule::LazyLeveling);
            assert_forward(&part, &twin, &base[len as usize - 1]);
            assert_backward(&part, &twin, Some(&base[len as usize]));
        }
    }
}

#[test]
fn the_tail_of_a_line_begins_where_numbers_have_no_positions() {
    // A line over numbers that take all of their 32 bits; flushed keys just behind it, before the
    // next group.
    let (first, last) = (0x7f << 56, 0x80ff_ffff_ffff_ffff);
    for len in (760..1000).step_by(9) {
        let line = (0..len).map(|i| number_key(first + (last - first) / len * i));
        let next = (0..len).map(|i| number_key((0xc0 << 56) + (i << 40)));
        let base: Vec<Key> = line.chain([number_key(last)]).chain(next).collect();
        let behind: Vec<Key> = (1..200).map(|i| number_key(last + (i << 22))).collect();
        for bits in [1.0, 6.0, 12.0] {
            let options = GrfOptions { fingerprints: Fingerprints::Spline, ..options(bits) };
            let (part, twin) =
                tree_with(&options, &base, std::slice::from_ref(&behind), Schedule::LazyLeveling);
            for key in behind.iter().step_by(20) {
                assert_forward(&part, &twin, key);
            }
        }
    }
}

#[test]
fn the_last_cell_of_the_last_block_has_an_end() {
    let base: Vec<Key> = (0..130).map(|i| number_key(i << 20)).collect();
    let above: Vec<Key> = (129..400).map(|i| number_key((i << 20) + 5)).collect();
    assert_tree(&base, &[above]);
}

#[test]
fn shifts_by_a_whole_word_and_skips_beyond_one() {
    // Neighbours that share all but the last bit, and neighbours that share nothing.
    let far = |i: u64| number_key(i << 57);
    let pair = |i: u64| number_key((i << 57) | 1);
    assert_tree(&sorted((0..128).flat_map(|i| [far(i), pair(i)])), &[]);
    let deep = |len: usize| [vec![0x55; len], vec![0xaa; 3]].concat();
    assert_tree(&sorted((0..100).map(|len| deep(len * 11))), &[]);
}

#[test]
fn a_key_flushed_twice_has_both_codes_and_one_flush_has_one_entry() {
    let keys: Vec<Key> = (0..100).map(|i| number_key(i * 1000)).collect();
    assert_all_kinds(12.0, &[], &[keys.clone(), keys.clone()]);
    let (part, _) = tree(12.0, &[], &[keys.clone(), keys.clone()]);
    assert_eq!(part.size().overlay_entries, 200);
    assert_eq!(
        insert(&part, BASE_END.0, &keys, &Shape::default()).size().overlay_entries,
        200,
        "inserted again"
    );
}

#[test]
fn zero_extended_duplicates_are_one_cell_and_counted() {
    let keys = sorted([&b"a"[..], b"a\0", b"a\0\0"].map(<[u8]>::to_vec));
    assert_all_kinds(12.0, &keys, &[]);
    let (part, _) = tree(12.0, &keys, &[]);
    assert_eq!(part.size().base_entries, 3);
    assert!(answer(&part, &Query::Point(b"b")).is_empty());
}

// Codes, sharing, and wide answers.

#[test]
fn an_old_part_answers_as_before() {
    let mut random = Random(12);
    let base = numbers(5000, || random.next());
    let part = base_of(&options(12.0), &base);
    let size = part.size();
    let asked = numbers(2000, || random.next());
    let spans = |part: &Part| -> Vec<Vec<Span>> {
        asked.iter().map(|key| answer(part, &Query::Point(key)).as_slice().to_vec()).collect()
    };
    let before = spans(&part);
    let newer = insert(&part, 9, &asked, &Shape::default());
    assert_eq!(spans(&part), before);
    assert_eq!(part.size(), size);
    let entries = newer.size().overlay_entries;
    assert!((1900..=2000).contains(&entries), "{entries}: a few keys may share a place");
    assert_ne!(spans(&newer), before);
}

#[test]
fn flush_numbers_far_apart_and_out_of_order_are_kept() {
    let keys: Vec<Key> = (0..300).map(|i| number_key(i << 30)).collect();
    let numbers = [1 << 40, 7, 1 << 60, 8, u64::MAX - 1, 9, (1 << 24) + 6, (1 << 24) + 7, 5];
    let base: Vec<Key> = (0..200).map(|i| number_key(i << 31)).collect();
    for base in [&[][..], &base] {
        let mut part = base_of(&options(12.0), base);
        let mut twin: Twin = base.iter().map(|key| (key.clone(), [BASE_FLUSH].into())).collect();
        for (place, number) in numbers.into_iter().enumerate() {
            let some: Vec<Key> = keys.iter().skip(place).step_by(5).cloned().collect();
            part = insert(&part, number, &some, &shape_before(number));
            for key in some {
                twin.entry(key).or_default().insert(number);
            }
        }
        assert_laws(&part, &twin);
    }
}

#[test]
fn a_list_may_grow_without_bound() {
    let base: Vec<Key> = (0..100).map(|i| number_key(i << 50)).collect();
    let flushes: Vec<Vec<Key>> = (0..30)
        .map(|i| (0..3000).map(|j| number_key((3 << 50) + (j * 30 + i) * 7)).collect())
        .collect();
    let (part, twin) = tree(12.0, &base, &flushes);
    twin.keys().step_by(7).for_each(|key| assert_point(&part, &twin, key));
    assert_forward(&part, &twin, &number_key(3 << 50));
    assert_backward(&part, &twin, None);
}

#[test]
fn a_wide_range_is_answered_with_all() {
    let mut random = Random(13);
    let (base, flushes) = deal(&numbers(20_000, || random.next()), 30, 4);
    let (part, _) = tree(12.0, &base, &flushes);
    assert!(answer(&part, &Query::Range(KeyRange::all())).is_all());
}

#[test]
fn a_trace_sees_the_lines_of_a_probe() {
    let mut random = Random(14);
    let (base, flushes) = deal(&numbers(50_000, || random.next()), 10, 4);
    let (part, _) = tree(12.0, &base, &flushes);
    let mut lines = LineCounter::default();
    let (mut total, asked) = (0, 500);
    for key in numbers(asked, || random.next()) {
        let (mut traced, query) = (Codes::new(), Query::Point(&key));
        part.candidates_traced(&query, &mut traced, &mut lines);
        assert_eq!(traced.as_slice(), answer(&part, &query).as_slice());
        total += lines.take();
    }
    let mean = total as f64 / asked as f64;
    assert!((4.0..20.0).contains(&mean), "{mean} lines a probe");
}

#[test]
fn the_builder_tells_its_peak() {
    let mut builder = PartBuilder::new(&options(12.0));
    (0..100_000u64).for_each(|i| builder.push(&number_key(i * i)));
    let peak = builder.peak_bytes() as u64;
    let size = builder.finish(BASE_END).size();
    assert!(peak >= size.base_bytes / 2, "{peak} {size:?}");
}

#[test]
#[should_panic(expected = "out of order")]
fn flushed_keys_out_of_order_are_our_mistake() {
    let mut inserter = Part::empty(&options(12.0)).inserter(FlushNumber(1), &Shape::default());
    inserter.push(b"b");
    inserter.push(b"b");
    inserter.finish();
}

fn small_alphabet() -> impl Strategy<Value = Key> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(0x7f), Just(0x80), Just(0xff)];
    prop::collection::vec(byte, 0..12)
}

fn near_numbers() -> impl Strategy<Value = Key> {
    (0u64..4, 0u64..300).prop_map(|(high, low)| number_key(high << 40 | low))
}

fn check_random(base: Vec<Key>, flushes: Vec<Vec<Key>>, bits_per_key: f64) {
    let flushes: Vec<Vec<Key>> = flushes.into_iter().map(sorted).collect();
    assert_all_kinds(bits_per_key, &sorted(base), &flushes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn keys_of_few_letters(
        base in prop::collection::vec(small_alphabet(), 0..300),
        flushes in prop::collection::vec(prop::collection::vec(small_alphabet(), 0..60), 0..5),
        bits_per_key in 5.0..20.0,
    ) {
        check_random(base, flushes, bits_per_key);
    }

    #[test]
    fn numbers_close_together(
        base in prop::collection::vec(near_numbers(), 0..400),
        flushes in prop::collection::vec(prop::collection::vec(near_numbers(), 0..60), 0..5),
        bits_per_key in 5.0..20.0,
    ) {
        check_random(base, flushes, bits_per_key);
    }
}
