//! What a probe of the blocked Bloom filter costs, beside the crate `fastbloom`.
//! ```text
//! for query in queries: hash it once (XXH3) -> filter says maybe or no -> count
//! ```
//! Both filters get the same keys, the same hash and the same bits per key, and run in the same
//! loop. `cargo bench -p trommel-filters --bench blocked_bloom`; compare the two lines of one
//! group.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fastbloom::BloomFilter;
use trommel_filters::{
    AlignedBytes, BlockedBloom, BlockedBloomBuilder, HashUse, TableFilterBuilder, hash_key,
};

const BITS_PER_KEY: f64 = 10.0;
/// More than a branch predictor learns by heart.
const QUERIES: u64 = 1 << 18;

/// The n-th number of a fixed, evenly spread sequence (SplitMix64).
fn spread(n: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn hash_of(key: u64) -> u64 {
    hash_key(&key.to_be_bytes(), HashUse::Table)
}

fn ours(key_count: u64) -> BlockedBloom<AlignedBytes> {
    let mut builder = BlockedBloomBuilder::new(BITS_PER_KEY);
    (0..key_count).for_each(|n| builder.add_hash(hash_of(spread(n))));
    let bytes = AlignedBytes::from_slice(&builder.finish());
    BlockedBloom::read(bytes).expect("bytes that the builder made")
}

fn theirs(key_count: u64) -> BloomFilter {
    let bits = (key_count as f64 * BITS_PER_KEY) as usize;
    let mut filter = BloomFilter::with_num_bits(bits).expected_items(key_count as usize);
    (0..key_count).for_each(|n| {
        filter.insert_hash(hash_of(spread(n)));
    });
    filter
}

fn count_maybe(queries: &[u64], may_contain_hash: impl Fn(u64) -> bool) -> usize {
    queries.iter().filter(|&&query| may_contain_hash(hash_of(query))).count()
}

fn probes(criterion: &mut Criterion) {
    for key_count in [100_000, 1_000_000] {
        let (ours, theirs) = (ours(key_count), theirs(key_count));
        let absent: Vec<u64> = (key_count..key_count + QUERIES).map(spread).collect();
        let present: Vec<u64> = (0..QUERIES).map(|n| spread(spread(n) % key_count)).collect();
        for (kind, queries) in [("negative", &absent), ("positive", &present)] {
            let mut group = criterion.benchmark_group(format!("{kind}, {key_count} keys"));
            group.throughput(Throughput::Elements(QUERIES)).sample_size(40);
            group.bench_function(BenchmarkId::from_parameter("trommel"), |bencher| {
                bencher
                    .iter(|| count_maybe(black_box(queries), |hash| ours.may_contain_hash(hash)));
            });
            group.bench_function(BenchmarkId::from_parameter("fastbloom"), |bencher| {
                bencher.iter(|| count_maybe(black_box(queries), |hash| theirs.contains_hash(hash)));
            });
            group.finish();
        }
    }
}

criterion_group!(benches, probes);
criterion_main!(benches);
