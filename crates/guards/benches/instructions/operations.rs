//! What is counted: building, inserting into and probing a global range filter, and building and
//! probing filters of one table.
//! ```text
//! keys --9 of 10--> build --> base      uniform: 50 random bits
//!      --1 of 10--> insert, in flushes  clustered: a thousand clusters, densities a million apart
//!                      |
//!                      v
//!                 probe: point miss, point hit, empty range;
//!     of uniform keys, point misses in batches
//! ```
//! Left to choose, the filter takes `spline` fingerprints for these uniform keys, and `coded` for
//! the clustered ones. Whole numbers alone make keys and queries, so that they are the same on
//! every machine. Invariant: what an operation answers is checked, after it was counted.

use std::hint::black_box;

use trommel_filters::{
    AlignedBytes, BlockedBloom, BlockedBloomBuilder, Bloom, BloomBuilder, Codes, FilterKind,
    FilterOptions, FlushNumber, GrfOptions, Inserter, KeyList, KeyRange, Part, PartBuilder, Query,
    RunLocator, RunLocatorBuilder, RunSlot, Shape, SlotSet, TableFilter, TableFilterBuilder,
    TreePlan, Untraced, read_filter,
};
use trommel_guards::{BinaryFuse, BinaryFuseBuilder, Chucky, ChuckyBuilder, kinds};

/// Enough for every path through the filter, few enough for seconds under callgrind.
const KEYS: usize = 300_000;
const FLUSHES: usize = 99;
/// Seeks with a cursor.
const WALKS: usize = 2000;
const QUERIES: usize = 20_000;
/// Neighbouring keys in a range.
const RANGE_KEYS: u64 = 64;
/// Keys that are asked for at once.
const BATCH: usize = 16;
/// Keys that a builder gets at once.
const KEYS_OF_BLOCK: usize = 100;
const KEY_BITS: u32 = 50;
const CLUSTERS: u64 = 1000;
/// More needless answers than this: the queries are not what they are meant to be, or the filter is
/// broken.
const NEEDLESS_MAX: usize = QUERIES / 20;
/// The same of filters of one table that know ranges: suffixes of SuRF have whole bits, and never
/// more than there is room for.
const RANGES_NEEDLESS_MAX: usize = QUERIES / 10;
const BLOOM_BITS_PER_KEY: f64 = 12.0;
/// Cells of about a byte, as they are usually asked for.
const FUSE_BITS_PER_KEY: f64 = 9.3;
const RANGES_BITS_PER_KEY: f64 = 16.0;
/// The first flush after the base was built.
const ORIGIN: u64 = 1000;

type Key = [u8; 8];

/// Runs every operation, and prints the processor and then each operation's name and how often it
/// is done.
pub(crate) fn run_all() {
    println!("{}", processor());
    for source in [Source::Uniform, Source::clusters()] {
        run_grf(&source);
    }
    run_grf_out_of_distribution();
    run_all_points();
    run_chucky();
    for kind in [kinds::SNARF, kinds::CELL, kinds::GAP, kinds::CODED, kinds::SURF_REAL] {
        run_ranges(kind);
    }
}

/// Which of the code paths the processor takes: see `fastest` in the crate.
fn processor() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let v3 = has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt") && has!("movbe");
        if v3 && has!("avx2") {
            return "x86_64-v3";
        }
    }
    std::env::consts::ARCH
}

/// Callgrind counts from the call of this function to its return.
#[inline(never)]
fn counted_work(work: &mut dyn FnMut()) {
    work();
    black_box(()); // So that the call is none that replaces this function's frame.
}

/// Counts `work`, which does the operation so many times.
fn count(name: &str, times: usize, mut work: impl FnMut()) {
    counted_work(&mut work);
    println!("{name} {times}");
}

/// A generator: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Where keys and queries come from.
enum Source {
    Uniform,
    /// Start and bits of each cluster.
    Clusters(Vec<(u64, u32)>),
}

impl Source {
    fn clusters() -> Source {
        let mut random = Random(7);
        let cluster = |_| (random.next() >> (64 - KEY_BITS), 18 + random.below(20) as u32);
        Source::Clusters((0..CLUSTERS).map(cluster).collect())
    }

    fn name(&self) -> &'static str {
        match self {
            Source::Uniform => "uniform",
            Source::Clusters(_) => "clustered",
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Source::Uniform => random.next() >> (64 - KEY_BITS),
            Source::Clusters(clusters) => {
                let (start, bits) = clusters[random.below(CLUSTERS) as usize];
                // Denser towards the start.
                let thinned = random.below(8);
                start + (random.next() >> (64 - bits) >> thinned)
            }
        }
    }

    /// Keys in order, without doubles.
    fn keys(&self, random: &mut Random) -> Vec<u64> {
        let mut keys: Vec<u64> = (0..KEYS).map(|_| self.draw(random)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The first keys of ranges of so many neighbours that hold none of `keys`.
    fn misses(&self, keys: &[u64], width: u64, random: &mut Random) -> Vec<u64> {
        let mut misses = Vec::with_capacity(QUERIES);
        while misses.len() < QUERIES {
            let low = self.draw(random);
            let next = keys.partition_point(|&key| key < low);
            if keys.get(next).is_none_or(|&key| key - low >= width) {
                misses.push(low);
            }
        }
        misses
    }
}

fn hits(keys: &[u64], random: &mut Random) -> Vec<u64> {
    (0..QUERIES).map(|_| keys[random.below(keys.len() as u64) as usize]).collect()
}

/// Nine of ten keys, and the others by flush.
fn split(keys: &[u64], random: &mut Random) -> (Vec<Key>, Vec<Vec<Key>>) {
    let (mut base, mut flushes) = (Vec::new(), vec![Vec::new(); FLUSHES]);
    for key in keys.iter().map(|key| key.to_be_bytes()) {
        match random.below(10) {
            0 => flushes[random.below(FLUSHES as u64) as usize].push(key),
            _ => base.push(key),
        }
    }
    (base, flushes)
}

fn run_grf(source: &Source) {
    let mut random = Random(41);
    let keys = source.keys(&mut random);
    let (base, flushes) = split(&keys, &mut random);
    let name = |operation: &str| format!("grf-{}-{operation}", source.name());
    let mut part = Part::empty(&GrfOptions::default());
    count(&name("build"), base.len(), || part = build(&base));
    let newer = flushes.iter().map(Vec::len).sum();
    if matches!(source, Source::Uniform) {
        count(&name("build-by-key"), base.len(), || part = build_by_key(&base));
        count(&name("insert-by-key"), newer, || drop(insert_by_key(part.clone(), &flushes)));
    }
    count(&name("insert"), newer, || part = insert(part.clone(), &flushes));

    let misses = source.misses(&keys, 1, &mut random);
    let mut maybe = 0;
    count(&name("point-miss"), QUERIES, || maybe = maybe_points(&part, &misses));
    assert!(maybe <= NEEDLESS_MAX, "{}: {maybe} points", source.name());
    let hits = hits(&keys, &mut random);
    count(&name("point-hit"), QUERIES, || maybe = maybe_points(&part, &hits));
    assert_eq!(maybe, QUERIES, "{}: a stored key was denied", source.name());
    if matches!(source, Source::Uniform) {
        count(&name("point-batch"), QUERIES, || maybe = maybe_batches(&part, &misses));
        assert!(maybe <= NEEDLESS_MAX, "{}: {maybe} points in batches", source.name());
    }
    let lows = source.misses(&keys, RANGE_KEYS, &mut random);
    count(&name("empty-range"), QUERIES, || maybe = maybe_ranges(&part, &lows));
    assert!(maybe <= NEEDLESS_MAX, "{}: {maybe} ranges", source.name());
    let mut given = 0;
    count(&name("walk-1"), WALKS, || given = walks(&part, &keys, &lows[..WALKS], 1));
    assert!(given >= WALKS, "{}: {given} codes for as many seeks", source.name());
    count(&name("walk-50"), WALKS, || given = walks(&part, &keys, &lows[..WALKS], 50));
    assert!(given >= 2 * WALKS, "{}: {given} codes for long walks", source.name());
}

/// A uniform base, into a thousandth of whose range all newer keys are inserted, and where all
/// questions are asked.
fn run_grf_out_of_distribution() {
    const STRETCH_BITS: u32 = KEY_BITS - 10;
    let (source, mut random) = (Source::Uniform, Random(43));
    let (base, _) = split(&source.keys(&mut random), &mut random);
    let mut draw = || 1 << (KEY_BITS - 1) | random.next() >> (64 - STRETCH_BITS);
    let mut flushes = vec![Vec::new(); FLUSHES];
    let mut newer: Vec<u64> = (0..KEYS / 10).map(|_| draw()).collect();
    newer.sort_unstable();
    newer.dedup();
    for (at, key) in newer.iter().enumerate() {
        flushes[at % FLUSHES].push(key.to_be_bytes());
    }
    let misses: Vec<u64> = (0..QUERIES).map(|_| draw()).collect();
    let mut part = build(&base);
    count("grf-elsewhere-insert", newer.len(), || part = insert(part.clone(), &flushes));
    let mut maybe = 0;
    count("grf-elsewhere-point-miss", QUERIES, || maybe = maybe_points(&part, &misses));
    assert!(maybe <= NEEDLESS_MAX, "elsewhere: {maybe} points");
    let mut given = 0;
    count("grf-elsewhere-walk-1", WALKS, || given = walks(&part, &newer, &misses[..WALKS], 1));
    assert!(given >= WALKS - 1, "elsewhere: {given} codes for as many seeks");
}

/// As the store builds it of keys of eight bytes.
fn build(keys: &[Key]) -> Part {
    built(|builder| builder.push_words(keys))
}

/// As the store builds it of other keys.
fn build_by_key(keys: &[Key]) -> Part {
    built(|builder| keys.iter().for_each(|key| builder.push(key)))
}

fn built(push: impl FnOnce(&mut PartBuilder)) -> Part {
    let mut builder = PartBuilder::new(&GrfOptions::default());
    push(&mut builder);
    builder.finish(FlushNumber(ORIGIN))
}

fn insert(part: Part, flushes: &[Vec<Key>]) -> Part {
    inserted(part, flushes, |inserter, keys| inserter.push_words(keys))
}

fn insert_by_key(part: Part, flushes: &[Vec<Key>]) -> Part {
    inserted(part, flushes, |inserter, keys| keys.iter().for_each(|key| inserter.push(key)))
}

fn inserted(mut part: Part, flushes: &[Vec<Key>], push: impl Fn(&mut Inserter, &[Key])) -> Part {
    for (number, keys) in (ORIGIN..).zip(flushes) {
        let mut inserter = part.inserter(
            FlushNumber(number),
            &Shape::of_round(part.base_end(), FlushNumber(number), 10),
        );
        push(&mut inserter, keys);
        part = inserter.finish();
    }
    part
}

fn maybe_points(part: &Part, queries: &[u64]) -> usize {
    let mut codes = Codes::new();
    let may_hold = |key: &&u64| {
        codes.clear();
        part.candidates(&Query::Point(&key.to_be_bytes()), &mut codes);
        !codes.is_empty()
    };
    queries.iter().filter(may_hold).count()
}

fn maybe_batches(part: &Part, queries: &[u64]) -> usize {
    let mut maybe = 0;
    for batch in queries.chunks(BATCH) {
        let mut keys = [Key::default(); BATCH];
        keys.iter_mut().zip(batch).for_each(|(key, query)| *key = query.to_be_bytes());
        let slices = keys.each_ref().map(|key| &key[..]);
        part.candidates_many(&slices[..batch.len()], |_, codes| {
            maybe += usize::from(!codes.is_empty());
        });
    }
    maybe
}

fn maybe_ranges(part: &Part, lows: &[u64]) -> usize {
    let mut codes = Codes::new();
    let may_hold = |low: &&u64| {
        codes.clear();
        let high = (**low + (RANGE_KEYS - 1)).to_be_bytes();
        let low = low.to_be_bytes();
        let range = KeyRange::new(&low, Some(&high)).expect("it begins before it ends");
        part.candidates(&Query::Range(range), &mut codes);
        !codes.is_empty()
    };
    lows.iter().filter(may_hold).count()
}

/// A scan's questions to the filter: where the first entry is, then up to each next key; codes that
/// were given are not wanted again. Gives how many there were.
fn walks(part: &Part, keys: &[u64], lows: &[u64], steps: usize) -> usize {
    let mut given = Vec::new();
    let walk = |low: &u64| {
        given.clear();
        let mut cursor = part.cursor(&low.to_be_bytes());
        given.extend(cursor.next_due(None, |_| true));
        let first = keys.partition_point(|key| key < low);
        for key in keys[first..].iter().take(steps) {
            let key = key.to_be_bytes();
            while let Some(code) = cursor.next_due(Some(&key), |code| !given.contains(&code)) {
                given.push(code);
            }
        }
        given.len()
    };
    lows.iter().map(walk).sum()
}

/// A filter that knows points alone.
fn run_points<F, B>(
    kind: &'static dyn FilterKind,
    read: impl Fn(AlignedBytes) -> F,
    new: impl Fn() -> B,
) where
    F: TableFilter,
    B: TableFilterBuilder,
{
    let (source, mut random) = (Source::Uniform, Random(41));
    let keys = source.keys(&mut random);
    let name = |operation: &str| format!("{}-{operation}", kind.name());
    let mut bytes = Vec::new();
    count(&name("build"), keys.len(), || {
        let mut builder = new();
        keys.iter().for_each(|key| builder.add(&key.to_be_bytes()).expect("any order will do"));
        bytes = builder.finish();
    });
    let filter = read(AlignedBytes::from_slice(&bytes));
    let may_hold = |key: &&u64| filter.may_contain(&key.to_be_bytes());
    let mut maybe = 0;
    let misses = source.misses(&keys, 1, &mut random);
    count(&name("point-miss"), QUERIES, || maybe = misses.iter().filter(may_hold).count());
    assert!(maybe <= NEEDLESS_MAX, "{}: {maybe} points", kind.name());
    let hits = hits(&keys, &mut random);
    count(&name("point-hit"), QUERIES, || maybe = hits.iter().filter(may_hold).count());
    assert_eq!(maybe, QUERIES, "{}: a stored key was denied", kind.name());
}

fn run_all_points() {
    macro_rules! run {
        ($kind:ident, $filter:ident, $builder:ident, $bits:expr) => {
            run_points(
                kinds::$kind,
                |bytes| $filter::read(bytes).expect("just built"),
                || $builder::new($bits),
            )
        };
    }
    run!(BLOCKED_BLOOM, BlockedBloom, BlockedBloomBuilder, BLOOM_BITS_PER_KEY);
    run!(BLOOM, Bloom, BloomBuilder, BLOOM_BITS_PER_KEY);
    run!(BINARY_FUSE, BinaryFuse, BinaryFuseBuilder, FUSE_BITS_PER_KEY);
}

/// A filter of all runs that is built from the oldest one's keys, and told of newer keys and of
/// moves.
fn run_chucky() {
    let (source, mut random) = (Source::Uniform, Random(41));
    let keys = source.keys(&mut random);
    let (newer, oldest) = keys.split_at(keys.len() / 5);
    let plan = TreePlan {
        runs_of_levels: vec![4, 4, 4, 1],
        waiting_runs: 0,
        size_ratio: 5,
        entries: keys.len() as u64,
        bits_per_key: 11.0,
    };
    let mut filter = ChuckyBuilder::new(&plan).finish();
    count("chucky-build", oldest.len(), || {
        let mut builder = ChuckyBuilder::new(&plan);
        oldest.iter().for_each(|key| builder.push(&key.to_be_bytes()));
        filter = builder.finish();
    });
    let mut note = |name, from, to| {
        count(name, newer.len(), || {
            newer.iter().for_each(|key| filter.note(&key.to_be_bytes(), from, to));
        });
    };
    note("chucky-insert", None, Some(RunSlot(0)));
    note("chucky-move", Some(RunSlot(0)), Some(RunSlot(9)));
    let misses = source.misses(&keys, 1, &mut random);
    let mut maybe = 0;
    count("chucky-point-miss", QUERIES, || maybe = maybe_by_locator(&filter, &misses));
    assert!(maybe <= NEEDLESS_MAX, "chucky: {maybe} points");
    let hits = hits(&keys, &mut random);
    count("chucky-point-hit", QUERIES, || maybe = maybe_by_locator(&filter, &hits));
    assert_eq!(maybe, QUERIES, "chucky: a stored key was denied");
}

fn maybe_by_locator(filter: &Chucky, queries: &[u64]) -> usize {
    let may_hold = |key: &&u64| {
        let mut slots = SlotSet::default();
        filter.candidates(&Query::Point(&key.to_be_bytes()), &mut slots, &mut Untraced);
        !slots.is_empty()
    };
    queries.iter().filter(may_hold).count()
}

/// A filter of one table that knows ranges, of uniform keys.
fn run_ranges(kind: &'static dyn FilterKind) {
    let (source, mut random) = (Source::Uniform, Random(41));
    let keys = source.keys(&mut random);
    let name = |operation: &str| format!("{}-{operation}", kind.name());
    let mut bytes = Vec::new();
    let batches = batches(&keys);
    count(&name("build"), keys.len(), || bytes = build_ranges(kind, &batches));
    let filter =
        read_filter(AlignedBytes::from_slice(&bytes), &kinds::TABLE_FILTERS).expect("just built");
    let may_hold = |key: &&u64| filter.may_contain(&key.to_be_bytes());
    let mut maybe = 0;
    let misses = source.misses(&keys, 1, &mut random);
    count(&name("point-miss"), QUERIES, || maybe = misses.iter().filter(may_hold).count());
    assert!(maybe <= RANGES_NEEDLESS_MAX, "{}: {maybe} points", kind.name());
    let hits = hits(&keys, &mut random);
    count(&name("point-hit"), QUERIES, || maybe = hits.iter().filter(may_hold).count());
    assert_eq!(maybe, QUERIES, "{}: a stored key was denied", kind.name());
    let lows = source.misses(&keys, RANGE_KEYS, &mut random);
    let may_overlap = |low: &&u64| {
        let (low, high) = (low.to_be_bytes(), (**low + (RANGE_KEYS - 1)).to_be_bytes());
        filter.may_overlap(&KeyRange::new(&low, Some(&high)).expect("it begins before it ends"))
    };
    count(&name("empty-range"), QUERIES, || maybe = lows.iter().filter(may_overlap).count());
    assert!(maybe <= RANGES_NEEDLESS_MAX, "{}: {maybe} ranges", kind.name());
}

/// Keys as the store brings them to a builder: those of a block at once.
fn batches(keys: &[u64]) -> Vec<KeyList> {
    let batch = |keys: &[u64]| {
        let mut batch = KeyList::default();
        keys.iter().for_each(|key| batch.push(&key.to_be_bytes()));
        batch
    };
    keys.chunks(KEYS_OF_BLOCK).map(batch).collect()
}

fn build_ranges(kind: &'static dyn FilterKind, batches: &[KeyList]) -> Vec<u8> {
    let mut builder = FilterOptions::new(kind, RANGES_BITS_PER_KEY).builder();
    batches.iter().for_each(|batch| builder.add_batch(batch).expect("keys in order"));
    builder.finish()
}
