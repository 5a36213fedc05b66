//! Memory that a probe reads is prefetched before the probe knows that it is needed.
//! ```text
//! directory, samples --about--> lines prefetched, all at once       read in vain: costs little
//!                    --surely-> lines read                         not prefetched: the probe waits
//! ```
//! Invariant: guesses change no answer (`laws.rs`); here they are shown to be right where keys are
//! spread evenly. Lines are counted, not nanoseconds: counts repeat.

use trommel_filters::{
    AlignedBytes, Codes, FilterOptions, FlushNumber, GrfOptions, HashedKey, LineCounter, Part,
    PartBuilder, Query, Shape, Surf, SurfBuilder, SurfKind, SurfOptions, SurfSuffix, TableFilter,
    TableFilterBuilder, read_filter,
};
use trommel_guards::kinds;

const KEYS: usize = 200_000;
const QUERIES: usize = 2_000;
/// The first flush after the base was built.
const FIRST_FLUSH: u64 = 1_000;

/// A generator: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

fn uniform_keys(random: &mut Random) -> Vec<u64> {
    let mut keys: Vec<u64> = (0..KEYS).map(|_| random.next()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn some_of(keys: &[u64], random: &mut Random) -> Vec<[u8; 8]> {
    let one = |_| keys[random.next() as usize % keys.len()].to_be_bytes();
    (0..QUERIES).map(one).collect()
}

/// Lines that a query reads, and those of them that were not prefetched before.
fn lines_per_query(
    queries: &[[u8; 8]],
    mut ask: impl FnMut(&[u8], &mut LineCounter),
) -> (f64, f64) {
    let (mut lines, mut not_prefetched) = (0, 0);
    let mut counter = LineCounter::default();
    for query in queries {
        ask(query, &mut counter);
        not_prefetched += counter.not_prefetched();
        lines += counter.take();
    }
    let per_query = |count: usize| count as f64 / queries.len() as f64;
    (per_query(lines), per_query(not_prefetched))
}

#[test]
fn the_suffix_of_a_surf_is_prefetched_before_its_leaf_is_known() {
    let mut random = Random(1);
    let keys = uniform_keys(&mut random);
    let hits = some_of(&keys, &mut random);
    let lines = |kind, real| {
        let suffix = SurfSuffix::Bits { hash: 0, real };
        let options = SurfOptions { suffix, ..SurfOptions::default() };
        let mut builder = SurfBuilder::new(kind, 0.0, &options);
        keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("sorted"));
        let bytes = AlignedBytes::from_slice(&builder.finish());
        let filter = Surf::read(bytes).expect("what was built");
        lines_per_query(&hits, |key, counter| {
            assert!(filter.may_contain_traced(&HashedKey::new(key), counter));
        })
    };
    let (base, base_unasked) = lines(SurfKind::Base, 0);
    let (real, real_unasked) = lines(SurfKind::Real, 8);
    assert!(real > base + 0.5, "suffixes lie on lines of their own: {base}, {real}");
    assert!(real_unasked < base_unasked + 0.2, "{base_unasked}, {real_unasked}");
}

#[test]
fn the_block_of_a_table_s_key_is_prefetched_before_its_group_is_read() {
    let mut random = Random(2);
    let keys = uniform_keys(&mut random);
    let hits = some_of(&keys, &mut random);
    for kind in [kinds::SNARF, kinds::CELL, kinds::GAP, kinds::CODED] {
        let mut builder = FilterOptions::new(kind, 16.0).builder();
        keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("sorted"));
        let bytes = AlignedBytes::from_slice(&builder.finish());
        let filter = read_filter(AlignedBytes::from_slice(&bytes), &kinds::TABLE_FILTERS)
            .expect("what was built");
        let (lines, not_prefetched) = lines_per_query(&hits, |key, counter| {
            assert!(filter.may_contain_traced(&HashedKey::new(key), counter));
        });
        // The directory's own lines are what is left.
        assert!(
            lines > 4.0 && not_prefetched < 2.8,
            "{}: {not_prefetched} of {lines}",
            kind.name()
        );
    }
}

#[test]
fn base_and_overlay_are_prefetched_before_the_group_is_read() {
    let mut random = Random(3);
    let keys = uniform_keys(&mut random);
    let mut builder = PartBuilder::new(&GrfOptions::default());
    keys.iter().filter(|&&key| key % 10 != 0).for_each(|key| builder.push(&key.to_be_bytes()));
    let mut part: Part = builder.finish(FlushNumber(FIRST_FLUSH));
    for flush in 0..20 {
        let number = FlushNumber(FIRST_FLUSH + flush);
        let shape = Shape::of_round(part.base_end(), number, 10);
        let mut inserter = part.inserter(number, &shape);
        let newer = keys.iter().filter(|&&key| key % 10 == 0 && key / 10 % 20 == flush);
        newer.for_each(|key| inserter.push(&key.to_be_bytes()));
        part = inserter.finish();
    }
    let hits = some_of(&keys, &mut random);
    let mut codes = Codes::new();
    let (lines, not_prefetched) = lines_per_query(&hits, |key, counter| {
        codes.clear();
        part.candidates_traced(&Query::Point(key), &mut codes, counter);
        assert!(!codes.is_empty(), "a stored key was denied");
    });
    // The directory's own lines and the chunk's are what is left.
    assert!(lines > 8.0 && not_prefetched < 4.0, "{not_prefetched} of {lines}");
}
