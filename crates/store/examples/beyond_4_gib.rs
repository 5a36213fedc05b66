//! Goes beyond 4 GiB, where a length of 32 bits ends: in a memtable, a log, a table and a merge;
//! and to the longest value, and beyond.
//! ```text
//! cargo run --release -p trommel --example beyond_4_gib -- DIR
//!
//! value of 5 GiB  put from a stream ---> read as a stream, all of it and around 4 GiB, in little
//!                 memory ---> opened again ---> deleted, its room freed
//! rows of 1 MiB   put ---> closed in peace ---> opened from its log, written to ---> flushed:
//!                 one table ---> merged, copied
//! values of 1 GiB put, replaced, flushed, merged, read; one byte more is refused
//! ```
//! It takes 8 GiB of memory, 13 GiB of disk in DIR, which it makes and removes, and some minutes.
//! Invariant: it ends well only if every row was read back as it was written, after each step.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use trommel::limits::VALUE_BYTES_MAX;
use trommel::{Background, Db, Error, Options, SyncPolicy};

const GIB: u64 = 1 << 30;
const ROW_BYTES: usize = 1 << 20;
/// Rows of a little more than 4 GiB together.
const ROWS: u64 = (4 * GIB + GIB / 16) / ROW_BYTES as u64;
/// Longest values, beside one with a time: beyond 4 GiB in a table.
const VALUES: u64 = 4;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Bytes that do not compress, other ones for each seed.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state: u64 = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = vec![0; len];
    bytes
        .chunks_mut(8)
        .for_each(|chunk| chunk.copy_from_slice(&next().to_le_bytes()[..chunk.len()]));
    bytes
}

/// One memtable has all of it, and one table: no value is apart, and no log too long.
fn options() -> Options {
    Options::new()
        .value_threshold(0)
        .max_log_bytes(u64::MAX)
        .write_buffer_bytes(16 << 30)
        .table_bytes(u64::MAX)
        .partition_bytes(u64::MAX)
        .block_cache_bytes(64 << 20)
        .sync(SyncPolicy::Never)
        .background(Background::Threads(1))
}

fn require(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Tells what is done, and how long the step before took.
struct Steps(Instant);

impl Steps {
    fn next(&mut self, what: &str) {
        println!("{:7.1} s  {what}", self.0.elapsed().as_secs_f64());
    }
}

/// All rows, one after the other, and some of them asked for.
fn check_rows(db: &Db, replaced: &[u64]) -> Outcome {
    let seed = |row: u64| if replaced.contains(&row) { row + ROWS } else { row };
    let mut row = 0u64;
    for entry in db.range(..) {
        let (key, value) = entry?;
        require(key == row.to_be_bytes(), "a row is missing, or there are too many")?;
        require(*value == bytes(seed(row), ROW_BYTES), "a row has another value")?;
        row += 1;
    }
    require(row == ROWS, "rows are missing at the end")?;
    for row in (0..ROWS).step_by(97).chain([ROWS - 1]) {
        let found = db.get(row.to_be_bytes())?.ok_or("a row is not found")?;
        require(*found == bytes(seed(row), ROW_BYTES), "a get gives another value")?;
    }
    Ok(())
}

fn tables(db: &Db) -> Vec<(u64, u64)> {
    let levels = db.stats().expect("open").levels;
    levels.iter().flat_map(|level| &level.runs).map(|run| (run.tables, run.bytes)).collect()
}

fn one_large_table(db: &Db) -> Outcome {
    match tables(db)[..] {
        [(1, size)] if size > 4 * GIB => Ok(()),
        ref other => Err(format!("one table beyond 4 GiB, not {other:?}").into()),
    }
}

fn verify(db: &Db) -> Outcome {
    let report = db.verify()?;
    require(report.damage.is_empty(), &format!("{:?}", report.damage))
}

fn rows_beyond(dir: &Path, steps: &mut Steps) -> Outcome {
    let db = Db::open(dir, options())?;
    for row in 0..ROWS {
        db.put(row.to_be_bytes(), bytes(row, ROW_BYTES))?;
    }
    let in_memory = db.stats().expect("open").memtable_bytes;
    let what = format!("{in_memory} bytes are in memory, and tables are {:?}", tables(&db));
    require(in_memory > 4 * GIB && tables(&db).is_empty(), &what)?;
    steps.next("a memtable and a log beyond 4 GiB are written");
    check_rows(&db, &[])?;
    db.close()?;

    let db = Db::open(dir, options())?;
    steps.next("the store is opened again");
    check_rows(&db, &[])?;
    // The first write copies what was read from the log to a log of its own.
    db.put(3u64.to_be_bytes(), bytes(ROWS + 3, ROW_BYTES))?;
    db.sync()?;
    db.close()?;
    let db = Db::open(dir, options())?;
    check_rows(&db, &[3])?;
    steps.next("it was written to, closed and opened again");
    let copy = dir.with_extension("copy");
    db.checkpoint(&copy)?;
    db.close()?;
    drop(db);
    let second = Db::open(&copy, options())?;
    check_rows(&second, &[3])?;
    drop(second);
    std::fs::remove_dir_all(&copy)?;
    steps.next("a checkpoint has a log beyond 4 GiB");

    let db = Db::open(dir, options())?;
    db.flush()?;
    one_large_table(&db)?;
    check_rows(&db, &[3])?;
    verify(&db)?;
    steps.next("a table beyond 4 GiB is written, read and verified");
    db.put(5u64.to_be_bytes(), bytes(ROWS + 5, ROW_BYTES))?;
    db.compact()?;
    one_large_table(&db)?;
    db.close()?;
    let db = Db::open(dir, options())?;
    check_rows(&db, &[3, 5])?;
    verify(&db)?;
    steps.next("it is merged into another one, and opened again");
    db.close()?;
    Ok(())
}

fn longest_values(dir: &Path, steps: &mut Steps) -> Outcome {
    let options = options().write_buffer_bytes(64 << 20);
    let db = Db::open(dir, options.clone())?;
    let len = VALUE_BYTES_MAX;
    match db.put("beyond", vec![0; len + 1]) {
        Err(Error::ValueTooLong { .. }) => {}
        other => return Err(format!("a byte more than the longest value: {other:?}").into()),
    }
    require(db.get("beyond")?.is_none(), "a value that was refused is there")?;
    for row in 0..VALUES {
        db.put(row.to_be_bytes(), bytes(row, len))?;
        db.flush()?;
    }
    db.put_ttl("for ever", bytes(99, len), Duration::MAX)?;
    let check = |db: &Db| {
        for row in 0..VALUES {
            let found = db.get(row.to_be_bytes())?.ok_or("a large value is not found")?;
            require(*found == bytes(row, len), "a large value is another one")?;
        }
        let found = db.get("for ever")?.ok_or("a large value with a time is not found")?;
        require(*found == bytes(99, len), "a large value with a time is another one")
    };
    check(&db)?;
    db.close()?;
    let db = Db::open(dir, options.clone())?;
    check(&db)?;
    steps.next("the longest values are written, read, and opened again");
    db.compact()?;
    require(tables(&db).iter().all(|(_, size)| *size > 4 * GIB), "a table beyond 4 GiB")?;
    check(&db)?;
    verify(&db)?;
    steps.next("they are merged into one table beyond 4 GiB, and verified");
    db.close()?;
    Ok(())
}

/// A value longer than 32 bits can tell.
const STREAM_BYTES: u64 = 5 * GIB + 7;
/// What such a value may add to the process's memory, whatever its length.
const STREAM_MEMORY: u64 = 8 << 20;

/// The bytes of a long value, each word made from its place.
struct Words {
    place: u64,
    end: u64,
}

impl Words {
    fn between(place: u64, end: u64) -> Words {
        Words { place, end }
    }
}

impl Read for Words {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = (out.len() as u64).min(self.end - self.place) as usize;
        let mut at = 0;
        while at < len {
            let within = (self.place % 8) as usize;
            let word = (self.place / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            let some = &word.to_le_bytes()[within..][..(8 - within).min(len - at)];
            out[at..at + some.len()].copy_from_slice(some);
            (at, self.place) = (at + some.len(), self.place + some.len() as u64);
        }
        Ok(len)
    }
}

/// Whether two streams give the same bytes.
fn same(mut one: impl Read, mut other: impl Read) -> io::Result<bool> {
    let (mut ours, mut theirs) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let len = one.read(&mut ours)?;
        if len == 0 {
            return Ok(other.read(&mut theirs)? == 0);
        }
        if other.read_exact(&mut theirs[..len]).is_err() || ours[..len] != theirs[..len] {
            return Ok(false);
        }
    }
}

/// The most memory that the process has taken so far. None: this system does not tell.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

fn bytes_of_values(db: &Db) -> u64 {
    db.stats().expect("open").value_bytes
}

fn streamed_value(dir: &Path, steps: &mut Steps) -> Outcome {
    let db = Db::open(dir, Options::new().value_garbage_share(0.1))?;
    db.put_reader("short", 1 << 20, Words::between(0, 1 << 20))?;
    let before = peak_memory();
    db.put_reader("long", STREAM_BYTES, Words::between(0, STREAM_BYTES))?;
    let check = |db: &Db| -> Outcome {
        let mut value = db.get_reader("long")?.ok_or("a long value is not found")?;
        require(value.seek(SeekFrom::End(0))? == STREAM_BYTES, "a long value has another length")?;
        for from in [4 * GIB - 3, STREAM_BYTES - 5, 0] {
            value.seek(SeekFrom::Start(from))?;
            let is_same = same(&mut value, Words::between(from, STREAM_BYTES))?;
            require(is_same, "a long value is another one")?;
        }
        Ok(())
    };
    check(&db)?;
    db.close()?;
    let db = Db::open(dir, Options::new().value_garbage_share(0.1))?;
    check(&db)?;
    if let Some((before, after)) = before.zip(peak_memory()) {
        let more = after.saturating_sub(before);
        let what = format!("a value of 5 GiB takes {} KiB of memory", more >> 10);
        require(more <= STREAM_MEMORY, &what)?;
        steps.next(&what);
    }
    verify(&db)?;
    db.delete("long")?;
    db.compact()?;
    require(bytes_of_values(&db) < GIB, "a long value that is deleted still takes its room")?;
    db.close()?;
    steps.next("a value of 5 GiB is written and read as a stream, and deleted");
    Ok(())
}

fn main() -> Outcome {
    let dir = std::env::args_os().nth(1).ok_or("name a folder that is to be made")?;
    let dir = Path::new(&dir);
    std::fs::create_dir(dir)?;
    let mut steps = Steps(Instant::now());
    // First, as the others take much memory.
    let done = streamed_value(&dir.join("stream"), &mut steps)
        .and_then(|()| Ok(std::fs::remove_dir_all(dir.join("stream"))?))
        .and_then(|()| rows_beyond(&dir.join("rows"), &mut steps))
        .and_then(|()| Ok(std::fs::remove_dir_all(dir.join("rows"))?))
        .and_then(|()| longest_values(&dir.join("values"), &mut steps));
    std::fs::remove_dir_all(dir)?;
    done?;
    println!("Nothing is wrong, and nothing is lost.");
    Ok(())
}
