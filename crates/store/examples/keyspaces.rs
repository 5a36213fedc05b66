//! What many key spaces cost: to make, to open, to have.
//! ```text
//! target/release/examples/keyspaces many 10000 DIR       times, bytes of heap for each
//! target/release/examples/keyspaces many 10000           the same, with files in memory
//! valgrind --tool=dhat target/release/examples/keyspaces hold 1000      what is had at the end
//! ```
//! Invariant: of heap and processor, what the calling thread takes is counted.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use trommel::storage::Memory;
use trommel::{Background, Db, Environment, Keyspace, KeyspaceOptions, Options, Result};

const VALUE: [u8; 100] = [7; 100];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let count = |text: &str| text.parse().expect("a number");
    let done = match args[..] {
        ["many", spaces] => many(count(spaces), None),
        ["many", spaces, dir] => many(count(spaces), Some(Path::new(dir))),
        ["hold", spaces] => hold(count(spaces)),
        _ => panic!("what: many SPACES [DIR]; hold SPACES"),
    };
    done.expect("it is done");
}

/// The processor's time that this thread has had.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let first = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(first.expect("a number"))
}

/// Tells how long some work takes, and what heap this thread has then more, for each of so many.
fn timed<T>(what: &str, spaces: u64, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let (mut done, mut work, start) = (None, Some(work), (Instant::now(), cpu()));
    let taken = measure(|| done = work.take().map(|work| work()));
    let (time, cpu, heap) = (start.0.elapsed(), cpu() - start.1, taken.bytes_current);
    let heap = heap / spaces as i64;
    println!("{what:<24}{time:>10.2?}, {cpu:>8.2?} of CPU; heap of each {heap:>+7} bytes");
    done.expect("it was called")
}

/// Makes so many, opens them, writes a key into each, and opens them again.
fn many(spaces: u64, dir: Option<&Path>) -> Result<()> {
    let disk = Memory::new();
    let open = || match dir {
        Some(dir) => Db::open(dir, Options::new()),
        None => {
            let environment = Environment::new().storage(Arc::new(disk.clone()));
            Db::open_with("db", Options::new().background(Background::Stepped), environment)
        }
    };
    let handles = |db: &Db| -> Result<Vec<Keyspace>> {
        let name = |n| format!("key space number {n}");
        (0..spaces).map(|n| db.keyspace(name(n), KeyspaceOptions::new())).collect()
    };
    let db = open()?;
    let all = timed("make, with handles", spaces, || handles(&db))?;
    drop(all);
    timed("close", spaces, || db.close())?;
    let db = timed("open, all empty", spaces, open)?;
    let all = timed("take a handle of each", spaces, || handles(&db))?;
    timed("get from each", spaces, || all.iter().try_for_each(|it| it.get("key").map(drop)))?;
    timed("put into each", spaces, || all.iter().try_for_each(|it| it.put("key", VALUE)))?;
    timed("100,000 puts into one", 100_000, || {
        (0..100_000u64).try_for_each(|n| all[0].put(n.to_be_bytes(), VALUE))
    })?;
    drop(all);
    timed("close, all in the log", spaces, || db.close())?;
    let db = timed("open, all in the log", spaces, open)?;
    timed("flush", spaces, || db.flush())?;
    timed("close, all in tables", spaces, || db.close())?;
    let db = timed("open, all in tables", spaces, open)?;
    let all = timed("take a handle of each", spaces, || handles(&db))?;
    timed("get from each", spaces, || {
        all.iter().try_for_each(|it| it.get("key").map(|got| assert!(got.is_some())))
    })?;
    timed("put into each", spaces, || all.iter().try_for_each(|it| it.put("key", VALUE)))?;
    drop(all);
    timed("close", spaces, || db.close())
}

/// Has so many that are empty, and ends while they are open.
fn hold(spaces: u64) -> Result<()> {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let db = Db::open_with("db", Options::new().background(Background::Stepped), environment)?;
    let named = |n| db.keyspace(format!("key space number {n}"), KeyspaceOptions::new());
    let all = (0..spaces).map(named).collect::<Result<Vec<_>>>()?;
    std::mem::forget((db, all));
    Ok(())
}
