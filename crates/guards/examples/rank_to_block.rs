//! Finds a key's data block, either by fence pointers or by the key's rank in the filter's base.
//! ```text
//! cargo run --release -p trommel-guards --example rank_to_block -- --keys 5000000 --way both
//! # and with --queries 40000: the difference
//! valgrind --tool=callgrind .../rank_to_block --keys 1000000 --queries 20000 --way fences
//! ```
//! `fences`: the first eight bytes of each block's first key, every 64th of them sampled. `rank`:
//! the bounds of the key's rank in the base, and then the block of that rank, by the number of
//! entries before each block. Blocks have 12 to 18 entries, like blocks of 4 KiB with values of 256
//! bytes. Every answer is verified.

#[path = "tools/mod.rs"]
mod tools;

use std::hint::black_box;

use tools::{Random, now_ns, read_arguments, set};
use trommel_filters::{FlushNumber, GrfOptions, Part, PartBuilder};

const ROUNDS: usize = 7;
const SAMPLE_EVERY: usize = 64;

/// The blocks of a run.
struct Blocks {
    /// The first key of each block.
    heads: Vec<u64>,
    samples: Vec<u64>,
    /// The entries before each block, as 32-bit numbers.
    ranks: Vec<u32>,
}

impl Blocks {
    fn new(keys: &[u64], random: &mut Random) -> Blocks {
        let (mut heads, mut ranks, mut at) = (Vec::new(), Vec::new(), 0);
        while at < keys.len() {
            heads.push(keys[at]);
            ranks.push(at as u32);
            at += 12 + random.next() as usize % 7;
        }
        let samples = heads.iter().copied().step_by(SAMPLE_EVERY).collect();
        Blocks { heads, samples, ranks }
    }

    fn by_fences(&self, key: u64) -> usize {
        let sample = self.samples.partition_point(|head| *head <= key);
        let low = sample.saturating_sub(1) * SAMPLE_EVERY;
        let high = (sample * SAMPLE_EVERY).min(self.heads.len());
        (low + self.heads[low..high].partition_point(|head| *head <= key)).saturating_sub(1)
    }

    /// Blocks have similar sizes: starts where a rank would be if sizes were equal, and steps to
    /// where it is.
    fn by_rank(&self, rank: u64) -> usize {
        let rank = rank as u32;
        let last = self.ranks.len() - 1;
        let mean = self.ranks[last] as f64 / last.max(1) as f64;
        let guess = ((f64::from(rank) / mean) as usize).min(last);
        let mut step = 1;
        let (mut low, mut high) = (guess, guess + 1);
        while self.ranks[low] > rank {
            low = low.saturating_sub(step);
            step *= 2;
        }
        step = 1;
        while high <= last && self.ranks[high] <= rank {
            high = (high + step).min(last + 1);
            step *= 2;
        }
        low + self.ranks[low..high].partition_point(|before| *before <= rank) - 1
    }
}

struct Timing {
    nanoseconds: f64,
    /// Keys that more than one block may have.
    unsure: usize,
}

fn ask_fences(blocks: &Blocks, queries: &[(u64, usize)]) -> Timing {
    let start = now_ns();
    for (key, block) in queries {
        assert_eq!(black_box(blocks.by_fences(*key)), *block, "fences");
    }
    Timing { nanoseconds: (now_ns() - start) / queries.len() as f64, unsure: 0 }
}

fn ask_ranks(part: &Part, blocks: &Blocks, queries: &[(u64, usize)]) -> Timing {
    let start = now_ns();
    let mut unsure = 0;
    for (key, block) in queries {
        let rank = part.rank_bounds(&key.to_be_bytes());
        let first = blocks.by_rank(rank.least);
        let last = blocks.by_rank(rank.most.saturating_sub(1).max(rank.least));
        assert!((first..=last).contains(block), "rank: {block} in {first}..={last}");
        unsure += usize::from(black_box(last) > first);
    }
    Timing { nanoseconds: (now_ns() - start) / queries.len() as f64, unsure }
}

fn main() {
    let (mut count, mut queries, mut bits) = (1_000_000usize, 200_000usize, 12.0f64);
    let mut way = String::from("both");
    let usage = "rank_to_block [--keys N] [--queries N] [--bits B] [--way fences|rank|both]";
    read_arguments(usage, |name, value| match name {
        "--keys" => set(&mut count, value),
        "--queries" => set(&mut queries, value),
        "--bits" => set(&mut bits, value),
        "--way" if ["fences", "rank", "both"].contains(&value) => set(&mut way, value),
        _ => None,
    });
    let mut random = Random(1);
    let mut keys: Vec<u64> = (0..count.max(1)).map(|_| random.next()).collect();
    keys.sort_unstable();
    keys.dedup();
    let blocks = Blocks::new(&keys, &mut random);
    let options = GrfOptions { bits_per_key: bits, ..GrfOptions::default() };
    let mut builder = PartBuilder::new(&options);
    keys.iter().for_each(|key| builder.push(&key.to_be_bytes()));
    let part = builder.finish(FlushNumber(1));
    let drawn = (0..queries.max(1)).map(|_| {
        let place = random.next() as usize % keys.len();
        let block = blocks.ranks.partition_point(|before| *before as usize <= place) - 1;
        (keys[place], block)
    });
    let drawn: Vec<(u64, usize)> = drawn.collect();
    let per_key = |bytes: usize| 8.0 * bytes as f64 / keys.len() as f64;
    println!(
        "{} keys in {} blocks; bits per key: heads and samples {:.2}, ranks {:.2}",
        keys.len(),
        blocks.heads.len(),
        per_key(8 * (blocks.heads.len() + blocks.samples.len())),
        per_key(4 * blocks.ranks.len()),
    );
    let (mut fences, mut ranks) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        if way != "rank" {
            fences.push(ask_fences(&blocks, &drawn));
        }
        if way != "fences" {
            ranks.push(ask_ranks(&part, &blocks, &drawn));
        }
    }
    for (name, mut found) in [("fences", fences), ("rank", ranks)] {
        found.sort_by(|one, other| one.nanoseconds.total_cmp(&other.nanoseconds));
        if let Some(median) = found.get(found.len() / 2) {
            let unsure = 100.0 * median.unsure as f64 / drawn.len() as f64;
            let time = median.nanoseconds;
            println!("{name}: {time:.1} ns, two blocks may have the key: {unsure:.2} %");
        }
    }
}
