//! `bench write`: the cost of writing, from one or several threads.
//! ```text
//! writers   put, put, put ...   each timed     } the clock of `ops_per_s` stops at the last put
//! beside    the folder's size, now and then    } the peak counts until all has settled
//! after     every key is read back
//! ```
//! Invariants: writers share the keys without overlap. Only with updates each writer draws from all
//! keys. Filling the store before updates is not measured.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde::Serialize;
use trommel::limits::VALUE_BYTES_MAX;
use trommel::options::{FilterTuning, Granularity};
use trommel::stats::Stats;
use trommel::{Background, Db, GuardKind, Options, Policy, SyncPolicy};
use trommel_guards::ElasticOptions;

use crate::bench::amplification::{ExpectedWrites, expected_writes};
use crate::bench::fill::fill;
use crate::bench::folder_size::FolderSize;
use crate::bench::pace::Pace;
use crate::bench::put_ns::PutNs;
use crate::bench::unsynced::environment;
use crate::error::{LabError, Result};
use crate::keys::rng::{Rng, scattered_key, scramble};
use crate::keys::values::fill_value;
use crate::progress::Progress;
use crate::replay::{RunRecorder, RunToRecord};

/// The order in which keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePattern {
    /// Each key once, in random order.
    Random,
    /// Each key once, in ascending order.
    Sequential,
    /// Stored keys, drawn at random.
    Update,
    /// Each key once, in random order. A writer deletes every second of its keys again, after
    /// writing a two-hundredth of its keys more.
    ShortLived,
}

impl WritePattern {
    /// Returns the name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            WritePattern::Random => "random",
            WritePattern::Sequential => "sequential",
            WritePattern::Update => "update",
            WritePattern::ShortLived => "short-lived",
        }
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct WritePlan {
    /// The store's guard.
    pub guard: GuardKind,
    /// Memory of the guard, in bits per key.
    pub bits_per_key: f64,
    /// Whether runs share that memory as Monkey divides it.
    pub monkey: bool,
    /// How many bits of a key's fingerprint are of a hash, which serves point queries only.
    pub point_bits: u8,
    /// Settings of the tables' filters besides their memory.
    pub filter: FilterTuning,
    /// Options of the guard `elastic`.
    pub elastic: ElasticOptions,
    /// Writer threads.
    pub threads: usize,
    /// When a write is durable.
    pub sync: SyncPolicy,
    /// Whether syncs are waited for at all. If not, `sync` acts as `never`.
    pub synced: bool,
    /// Writes of all writers together, which is also the number of keys in the store at the end.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Bytes of keys and values written per second by all writers together. A write that earlier
    /// ones delayed is timed from when it was due. None: no limit.
    pub bytes_per_second: Option<u64>,
    /// The order of the keys.
    pub pattern: WritePattern,
    /// Capacity of the memtable, in bytes.
    pub write_buffer_bytes: usize,
    /// T, the size ratio.
    pub size_ratio: u32,
    /// The merge policy.
    pub policy: Policy,
    /// How much of a level one merge rewrites.
    pub granularity: Granularity,
    /// Bytes of a partition of the last level.
    pub partition_bytes: u64,
    /// Threads that flush and merge.
    pub merge_threads: usize,
    /// Whether the only writer flushes and merges between its writes. Then no background thread
    /// does.
    pub is_stepped: bool,
    /// Bytes of a table.
    pub table_bytes: u64,
    /// Whether merges drop tombstones that hide nothing, where the guard can tell.
    pub eager_tombstones: bool,
    /// Seed of keys and values.
    pub seed: u64,
    /// The store's folder: a new one.
    pub folder: PathBuf,
    /// What to record of the tree during the writes.
    pub record: Option<RunToRecord>,
}

/// What `bench write` measured. Field names are an interface.
#[derive(Clone, Debug, Serialize)]
pub struct WriteReport {
    /// The guard.
    pub guard: &'static str,
    /// Writer threads.
    pub threads: u64,
    /// When a write is durable: always, interval, never; none: no file is synced at all.
    pub sync: &'static str,
    /// The order of the keys: random, sequential, update, short-lived.
    pub pattern: &'static str,
    /// Writes.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// The requested bytes per second; null: no limit.
    pub bytes_per_s_asked: Option<u64>,
    /// Bits per key that were asked for.
    pub bits_per_key: f64,
    /// Capacity of the memtable, in bytes.
    pub write_buffer_bytes: u64,
    /// T, the size ratio.
    pub size_ratio: u64,
    /// The merge policy.
    pub policy: &'static str,
    /// How much of a level one merge rewrote: full, partitioned, partial.
    pub granularity: &'static str,
    /// Bytes of a partition of the last level.
    pub partition_bytes: u64,
    /// Threads that flush and merge.
    pub merge_threads: u64,
    /// Who flushes and merges: threads, or the writer between its writes (stepped).
    pub background: &'static str,
    /// Bytes of a table.
    pub table_bytes: u64,
    /// Whether merges dropped tombstones that hide nothing, where the guard could tell.
    pub eager_tombstones: bool,
    /// Seed of keys and values.
    pub seed: u64,
    /// Seconds from the first write to the end of the last.
    pub seconds: f64,
    /// Seconds that flushes and merges took after that.
    pub settle_seconds: f64,
    /// Writes per second of all writers together.
    pub ops_per_s: f64,
    /// The time of one write.
    pub put_ns: PutNs,
    /// Bytes of tables written, per byte of keys and values written. Logs do not count.
    pub write_amplification: f64,
    /// Bytes of tables written per byte flushed: how often an entry is written, whatever else
    /// tables contain.
    pub table_writes: f64,
    /// The closed form of `table_writes` for as many flushes, if no entry replaces another.
    pub table_writes_expected: f64,
    /// Dostoevsky's formula of `table_writes` for a tree of as many levels.
    pub table_writes_dostoevsky: f64,
    /// The peak size of the store's folder, logs included, per byte of keys and values that it
    /// holds at the end.
    pub space_amplification_peak: f64,
    /// The same per byte that the folder takes at the end, so compression does not lower it.
    pub space_peak_per_end: f64,
    /// How often and how long writers were stalled by flushes or merges.
    pub stalls: Stalls,
    /// Nanoseconds spent on building and updating the guard, per write: the median of the rounds.
    pub guard_ns_per_key: f64,
    /// How often all keys were written to a new store.
    pub rounds: u64,
    /// Each round's `guard_ns_per_key`.
    pub guard_ns_per_key_rounds: Vec<f64>,
    /// Each round's `ops_per_s`.
    pub ops_per_s_rounds: Vec<f64>,
    /// Nanoseconds per write, from the first write until all merges have ended.
    pub ns_per_key: f64,
    /// Each round's `ns_per_key`.
    pub ns_per_key_rounds: Vec<f64>,
    /// Keys in the store at the end.
    pub keys_left: u64,
    /// Entries of all runs at the end per key in the store. Above 1, runs also have tombstones and
    /// entries that tombstones or updates hide.
    pub entries_per_key_left: f64,
    /// Bytes of tables at the end per byte of keys and values in the store.
    pub space_amplification_end: f64,
    /// Memory of the guard at the end, in bits per entry of the runs.
    pub guard_bits_per_key: f64,
    /// Flushes.
    pub flushes: u64,
    /// Merges.
    pub merges: u64,
    /// Keys that did not have the right value at the end. Must be 0.
    pub wrong_answers: u64,
}

/// Stalls of writers, who wait for flushes and merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// How long, in all, in seconds.
    pub seconds: f64,
}

impl WritePlan {
    /// Returns how many places later a short-lived key is deleted.
    fn life(&self) -> u64 {
        self.keys.div_ceil(200).next_multiple_of(self.threads as u64)
    }

    /// Returns the place whose key is deleted once the key of `place` is written.
    fn deleted_after(&self, place: u64) -> Option<u64> {
        let is_short_lived = |place: &u64| (place / self.threads as u64) % 2 == 1;
        let old = place.checked_sub(self.life()).filter(is_short_lived);
        old.filter(|_| self.pattern == WritePattern::ShortLived)
    }

    /// Returns the places of all keys that are deleted.
    fn deleted(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.keys).filter_map(|place| self.deleted_after(place))
    }

    /// Returns at most `count` of the written keys, spread evenly over their places.
    pub fn some_keys(&self, count: u64) -> Vec<Vec<u8>> {
        let places = (0..count.min(self.keys)).map(|nth| nth * self.keys / count.min(self.keys));
        places.map(|place| key_of(self, place).to_vec()).collect()
    }
}

/// Runs the benchmark.
pub fn bench_write(plan: &WritePlan, progress: &mut dyn Progress) -> Result<WriteReport> {
    check(plan)?;
    let db = Db::open_with(&plan.folder, options(plan), environment(plan.synced))?;
    let recorder =
        plan.record.as_ref().map(|record| RunRecorder::begin(record, &db)).transpose()?;
    if plan.pattern == WritePattern::Update {
        fill(&db, (plan.keys, plan.value_bytes), |place| key_of(plan, place), progress)?;
    }
    let before = db.stats()?;
    let written = AtomicU64::new(0);
    progress.stage("writing", plan.keys);
    let start = Instant::now();
    let mut size = FolderSize::new(&plan.folder);
    let times = std::thread::scope(|scope| {
        let db = &db;
        let written = &written;
        let writer = |thread| scope.spawn(move || write_share(db, plan, thread, written));
        let writers: Vec<_> = (0..plan.threads).map(writer).collect();
        let mut reported = 0;
        while !writers.iter().all(|writer| writer.is_finished()) {
            let now = written.load(Ordering::Relaxed);
            progress.advance(now - reported);
            reported = now;
            progress.look(db);
            size.look_and_wait();
        }
        let joined = writers.into_iter().map(|writer| writer.join().expect("no writer panics"));
        joined.collect::<Result<Vec<_>>>()
    })?;
    // The end comes from the last writer's own clock, since this thread was asleep.
    let seconds = times
        .iter()
        .map(|share| share.ended)
        .max()
        .map_or(0.0, |ended| ended.duration_since(start).as_secs_f64());
    let settling = Instant::now();
    settle(&db, &mut size, progress)?;
    let settle_seconds = settling.elapsed().as_secs_f64();
    recorder.map_or(Ok(0), |recorder| recorder.end(&db))?;
    let stats = db.stats()?;
    let wrong_answers = count_wrong(&db, plan, progress)?;
    let times = times.into_iter().flat_map(|share| share.nanoseconds).collect();
    let seconds = [seconds, settle_seconds];
    Ok(report(plan, [&before, &stats], seconds, PutNs::of(times), &size, wrong_answers))
}

fn check(plan: &WritePlan) -> Result<()> {
    let wrong = |problem: &str| Err(LabError::Plan(problem.to_string()));
    if !(1..=256).contains(&plan.threads) {
        return wrong("1 to 256 threads");
    }
    if plan.is_stepped && plan.threads > 1 {
        return wrong("one thread, if it flushes and merges itself");
    }
    if plan.bytes_per_second == Some(0) {
        return wrong("at least one byte per second");
    }
    if plan.keys == 0 || plan.keys > 1 << 32 {
        return wrong("1 to 4294967296 keys");
    }
    if plan.value_bytes > VALUE_BYTES_MAX {
        return wrong("a value has at most 1 GiB");
    }
    let is_used = std::fs::read_dir(&plan.folder).is_ok_and(|mut files| files.next().is_some());
    if is_used {
        let problem = "the folder is not empty: bench makes its stores anew".to_string();
        return Err(LabError::Folder { path: plan.folder.clone(), problem });
    }
    Ok(())
}

fn options(plan: &WritePlan) -> Options {
    Options::new()
        .guard(plan.guard)
        .bits_per_key(plan.bits_per_key)
        .monkey(plan.monkey)
        .point_bits(plan.point_bits)
        .filter(plan.filter.clone().with(plan.elastic.clone()))
        .size_ratio(plan.size_ratio)
        .policy(plan.policy.clone())
        .granularity(plan.granularity)
        .partition_bytes(plan.partition_bytes)
        .background(match plan.is_stepped {
            true => Background::Stepped,
            false => Background::Threads(plan.merge_threads),
        })
        .table_bytes(plan.table_bytes)
        .write_buffer_bytes(plan.write_buffer_bytes)
        .sync(if plan.synced { plan.sync } else { SyncPolicy::Never })
        .eager_tombstones(plan.eager_tombstones)
        .learn_questions(false)
}

fn report(
    plan: &WritePlan,
    [before, after]: [&Stats; 2],
    [seconds, settle_seconds]: [f64; 2],
    put_ns: PutNs,
    size: &FolderSize,
    wrong_answers: u64,
) -> WriteReport {
    let tables = |stats: &Stats| (stats.bytes_flushed + stats.bytes_merged) as f64;
    let user_bytes = (after.bytes_written_user - before.bytes_written_user) as f64;
    let expected = expected_between(plan, before.flushes, after.flushes);
    let guard_ns_per_key = (after.guard.seconds - before.guard.seconds) * 1e9 / plan.keys as f64;
    let ops_per_s = plan.keys as f64 / seconds;
    let ns_per_key = (seconds + settle_seconds) * 1e9 / plan.keys as f64;
    let keys_left = plan.keys - plan.deleted().count() as u64;
    let held_bytes = keys_left as f64 * (KEY_BYTES + plan.value_bytes) as f64;
    let entries = after.entries() as f64;
    WriteReport {
        guard: plan.guard.name(),
        threads: plan.threads as u64,
        sync: if plan.synced { sync_name(plan.sync) } else { "none" },
        pattern: plan.pattern.name(),
        keys: plan.keys,
        value_bytes: plan.value_bytes as u64,
        bytes_per_s_asked: plan.bytes_per_second,
        bits_per_key: plan.bits_per_key,
        write_buffer_bytes: plan.write_buffer_bytes as u64,
        size_ratio: u64::from(plan.size_ratio),
        policy: plan.policy.name(),
        granularity: plan.granularity.name(),
        partition_bytes: plan.partition_bytes,
        merge_threads: plan.merge_threads as u64,
        background: if plan.is_stepped { "stepped" } else { "threads" },
        table_bytes: plan.table_bytes,
        eager_tombstones: plan.eager_tombstones,
        seed: plan.seed,
        seconds,
        settle_seconds,
        ops_per_s,
        put_ns,
        write_amplification: (tables(after) - tables(before)) / user_bytes,
        table_writes: (tables(after) - tables(before))
            / (after.bytes_flushed - before.bytes_flushed) as f64,
        table_writes_expected: expected.exact,
        table_writes_dostoevsky: expected.dostoevsky,
        space_amplification_peak: size.peak() as f64 / held_bytes,
        space_peak_per_end: size.peak() as f64 / size.last().max(1) as f64,
        stalls: Stalls {
            count: after.stalls - before.stalls,
            seconds: after.stall_seconds - before.stall_seconds,
        },
        guard_ns_per_key,
        rounds: 1,
        guard_ns_per_key_rounds: vec![guard_ns_per_key],
        ops_per_s_rounds: vec![ops_per_s],
        ns_per_key,
        ns_per_key_rounds: vec![ns_per_key],
        keys_left,
        entries_per_key_left: entries / keys_left as f64,
        space_amplification_end: after.table_file_bytes as f64 / held_bytes,
        guard_bits_per_key: after.guard.memory_bytes as f64 * 8.0 / entries.max(1.0),
        flushes: after.flushes - before.flushes,
        merges: after.merges - before.merges,
        wrong_answers,
    }
}

/// Returns how often an entry is written by the flushes after the first `first` ones.
fn expected_between(plan: &WritePlan, first: u64, last: u64) -> ExpectedWrites {
    let nothing = ExpectedWrites { exact: 0.0, dostoevsky: 0.0 };
    let WritePlan { policy, granularity, size_ratio, .. } = plan;
    let of =
        |flushes| expected_writes(policy, *granularity, *size_ratio, flushes).unwrap_or(nothing);
    let (before, all) = (of(first), of(last));
    let written = all.exact * last as f64 - before.exact * first as f64;
    ExpectedWrites { exact: written / (last - first).max(1) as f64, ..all }
}

fn sync_name(sync: SyncPolicy) -> &'static str {
    match sync {
        SyncPolicy::Always => "always",
        SyncPolicy::Interval(_) => "interval",
        _ => "never",
    }
}

const KEY_BYTES: usize = size_of::<u64>();

/// Returns the key of a place in the list of keys. Different places have different keys.
fn key_of(plan: &WritePlan, place: u64) -> [u8; KEY_BYTES] {
    match plan.pattern {
        WritePattern::Sequential => place.to_be_bytes(),
        _ => scattered_key(plan.seed, place),
    }
}

/// Returns the places that a writer writes, in order.
fn places(plan: &WritePlan, thread: usize) -> impl Iterator<Item = u64> {
    let (keys, pattern) = (plan.keys, plan.pattern);
    let mut rng = Rng::new(plan.seed ^ scramble(thread as u64 + 1));
    let own = (thread as u64..keys).step_by(plan.threads);
    own.map(move |place| match pattern {
        WritePattern::Update => rng.below(keys),
        _ => place,
    })
}

/// Fills `value` with the value of a key, before or after an update.
fn value_of(value: &mut Vec<u8>, key: [u8; KEY_BYTES], updated: bool, value_bytes: usize) {
    let named = u64::from_be_bytes(key) ^ u64::from(updated);
    let seed = if updated { scramble(named) } else { named };
    fill_value(value, &seed.to_be_bytes(), value_bytes);
}

/// The times of one writer.
struct Share {
    nanoseconds: Vec<u64>,
    ended: Instant,
}

fn write_share(db: &Db, plan: &WritePlan, thread: usize, written: &AtomicU64) -> Result<Share> {
    let is_update = plan.pattern == WritePattern::Update;
    let mut nanoseconds = Vec::with_capacity(plan.keys as usize / plan.threads + 1);
    let mut value = Vec::new();
    let bytes_per_writes = ((KEY_BYTES + plan.value_bytes) * plan.threads) as f64;
    let mut pace = Pace::new(plan.bytes_per_second.map(|bytes| bytes as f64 / bytes_per_writes));
    for place in places(plan, thread) {
        let key = key_of(plan, place);
        value_of(&mut value, key, is_update, plan.value_bytes);
        let start = pace.wait();
        db.put(key, &value)?;
        if let Some(old) = plan.deleted_after(place) {
            db.delete(key_of(plan, old))?;
        }
        nanoseconds.push(start.elapsed().as_nanos() as u64);
        while plan.is_stepped && db.step()? {}
        written.fetch_add(1, Ordering::Relaxed);
    }
    Ok(Share { nanoseconds, ended: Instant::now() })
}

/// Flushes and waits until merges have ended, while it tracks the peak size of the folder.
fn settle(db: &Db, size: &mut FolderSize, progress: &mut dyn Progress) -> Result<()> {
    std::thread::scope(|scope| {
        let settling = scope.spawn(|| db.flush().and_then(|()| db.settle()));
        while !settling.is_finished() {
            progress.look(db);
            size.look_and_wait();
        }
        settling.join().expect("flushes and merges do not panic")
    })?;
    size.look();
    Ok(())
}

/// Reads every key and counts those whose value is wrong.
fn count_wrong(db: &Db, plan: &WritePlan, progress: &mut dyn Progress) -> Result<u64> {
    progress.stage("checking", plan.keys);
    let is_update = plan.pattern == WritePattern::Update;
    let mut updated = vec![false; if is_update { plan.keys as usize } else { 0 }];
    if is_update {
        let all = (0..plan.threads).flat_map(|thread| places(plan, thread));
        all.for_each(|place| updated[place as usize] = true);
    }
    let mut is_gone = vec![false; plan.keys as usize];
    plan.deleted().for_each(|place| is_gone[place as usize] = true);
    let left = (0..plan.keys).filter(|place| !is_gone[*place as usize]);
    let mut expected: Vec<_> = left.map(|place| (key_of(plan, place), place)).collect();
    expected.sort_unstable();
    let (mut wrong, mut value) = (0, Vec::new());
    let mut found = db.range(..);
    for (key, place) in expected {
        let is_updated = updated.get(place as usize).copied().unwrap_or(false);
        value_of(&mut value, key, is_updated, plan.value_bytes);
        let is_right = match found.next().transpose()? {
            Some((found_key, found_value)) => found_key == key && *found_value == value[..],
            None => false,
        };
        wrong += u64::from(!is_right);
    }
    progress.advance(plan.keys);
    Ok(wrong + found.count() as u64)
}

mod rounds;
pub use rounds::bench_writes;

#[cfg(test)]
mod tests;
