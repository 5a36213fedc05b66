//! What the commit of a transaction costs that has read much, beside gets of as many keys that are
//! not there; and the blocks that it reads, in a store without a cache.
//! ```text
//! transactions get many keys | others write: 100 flushes | commits and missing gets, in turns
//! target/release/examples/validate 100000
//! ```
//! Invariant: nobody writes what was read, so every commit succeeds, and every block that is read
//! for it is one too many.

use std::path::Path;
use std::sync::Arc;

use trommel::storage::Memory;
use trommel::{Background, Db, Environment, GuardKind, Options, Result, SyncPolicy, Transaction};

const VALUE: [u8; 100] = [7; 100];
/// Keys of the store, for each that is read.
const KEYS_PER_READ: u64 = 10;
const FLUSHES: u64 = 100;
/// Keys that are read, for each that others write before a flush.
const READS_PER_WRITE: u64 = 100;
/// Transactions, and as many rounds.
const ROUNDS: usize = 7;

fn main() {
    let count = std::env::args().nth(1).map(|count| count.parse().expect("how many reads"));
    let count = count.unwrap_or(100_000);
    for last_merge in [false, true] {
        compare(count, last_merge).expect("it is done");
    }
}

/// SplitMix64: the same in every run.
fn spread(n: u64) -> [u8; 8] {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_be_bytes()
}

/// A store, and keys that it has and has not.
struct World {
    db: Db,
    storage: Memory,
    reads: u64,
}

impl World {
    fn new(reads: u64, block_cache_bytes: usize) -> Result<World> {
        let options = Options::new()
            .guard(GuardKind::Grf)
            .size_ratio(20)
            .block_cache_bytes(block_cache_bytes)
            .compression(false)
            .sync(SyncPolicy::Never)
            .background(Background::Stepped);
        let storage = Memory::new();
        let environment = Environment::new().storage(Arc::new(storage.clone()));
        let db = Db::open_with(Path::new("db"), options, environment)?;
        for n in 0..reads * KEYS_PER_READ {
            db.put(spread(n), VALUE)?;
        }
        db.flush()?;
        db.compact()?;
        // What is then due at once is not what is measured.
        db.put("one more", VALUE)?;
        db.flush()?;
        while db.step()? {}
        Ok(World { db, storage, reads })
    }

    /// Entries of the last level's run.
    fn largest(&self) -> Result<Option<u64>> {
        let runs = self.db.stats()?.levels.into_iter().flat_map(|level| level.runs);
        Ok(runs.map(|run| run.entries).max())
    }

    /// A transaction that has read, and has something to write.
    fn reader(&self, nth: usize) -> Result<Transaction> {
        let transaction = self.db.transaction();
        for n in 0..self.reads {
            let found = transaction.get(spread(n * KEYS_PER_READ))?;
            assert!(found.is_some(), "key {n} is there");
        }
        transaction.put(format!("result {nth}"), "1")?;
        Ok(transaction)
    }

    /// Keys that nobody reads, in many flushes, and merges as they are due.
    fn write(&self, last_merge: bool) -> Result<()> {
        let (first, count) = (self.reads * KEYS_PER_READ, self.reads / READS_PER_WRITE);
        let before = self.largest()?;
        for flush in 0..FLUSHES {
            for n in 0..count {
                self.db.put(spread(first + flush * count + n), VALUE)?;
            }
            self.db.flush()?;
            while self.db.step()? {}
            if last_merge && flush == FLUSHES / 2 {
                self.db.compact()?;
            }
        }
        let is_merged = self.largest()? != before;
        assert_eq!(is_merged, last_merge, "whether the last level was merged into");
        Ok(())
    }

    /// Gets of keys that are not there.
    fn miss(&self) -> Result<()> {
        let first = 2 * self.reads * KEYS_PER_READ;
        (first..first + self.reads).try_for_each(|n| {
            let found = self.db.get(spread(n))?;
            assert!(found.is_none(), "key {n} is not there");
            Ok(())
        })
    }
}

fn compare(reads: u64, last_merge: bool) -> Result<()> {
    let world = World::new(reads, 1 << 30)?;
    let transactions: Vec<Transaction> =
        (0..ROUNDS).map(|nth| world.reader(nth)).collect::<Result<_>>()?;
    world.write(last_merge)?;
    // Everything is cached from here on.
    world.db.range(..).try_for_each(|entry| entry.map(drop))?;
    world.miss()?;
    let mut ratios = Vec::with_capacity(ROUNDS);
    let mut least = [f64::INFINITY; 2];
    for transaction in transactions {
        let start = thread_ns();
        transaction.commit()?;
        let between = thread_ns();
        world.miss()?;
        let times = [between - start, thread_ns() - between].map(|time| time as f64 / reads as f64);
        ratios.push(times[0] / times[1]);
        least = [least[0].min(times[0]), least[1].min(times[1])];
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let [each, missing] = least;
    let (blocks, runs) = blocks_read(reads, last_merge)?;
    println!(
        "{reads} reads, {FLUSHES} flushes of others, {}: the commit takes {:.2} ({:.2} to {:.2}) of as many \
         missing gets, {each:.0} ns of CPU a key, a get {missing:.0}; it reads {blocks} blocks; {runs} runs",
        if last_merge {
            "a merge into the last level between"
        } else {
            "merges above the last level"
        },
        ratios[ROUNDS / 2],
        ratios[0],
        ratios[ROUNDS - 1],
    );
    Ok(())
}

/// Operations of the disk during a commit where no block is cached, but for the one that writes the
/// log: each reads a block.
fn blocks_read(reads: u64, last_merge: bool) -> Result<(u64, usize)> {
    let world = World::new(reads, 0)?;
    let operations = || world.storage.operations();
    let before = operations();
    let transaction = world.reader(0)?;
    let read = operations() - before;
    assert!(read >= reads, "no block is cached: {read} operations read {reads} keys");
    world.write(last_merge)?;
    let before = operations();
    transaction.commit()?;
    let written = operations() - before;
    Ok((written - 1, world.db.stats()?.run_count()))
}

/// The processor's time that this thread has had, in nanoseconds.
fn thread_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}
