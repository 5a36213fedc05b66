//! Stepped mode used by several threads: a thread that asks for work waits for the step that
//! another one is at.
//! ```text
//! A   step: a flush, or a merge .... held ............ done
//! B       flush, compact, ingest   waits for A's step     -> goes on
//! ```
//! Invariant: when B's call returns, what it is for is done.

use std::sync::Arc;
use std::time::Duration;

use crate::door::{Gate, Opens};
use trommel::Environment;
use trommel::storage::Memory;
use trommel::{Background, Db, Options, SyncPolicy};

/// A full memtable that is sealed, and some runs.
fn store(gate: &Arc<Gate>) -> Db {
    let storage = Arc::new(gate.disk(&Memory::new()));
    let environment = Environment::new().storage(storage);
    let options = Options::new()
        .size_ratio(2)
        .write_buffer_bytes(1024)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let db = Db::open_with("db", options, environment).expect("opens");
    for round in 0..3u8 {
        (0..3u8).for_each(|key| db.put([key], [round; 100]).expect("puts"));
        db.flush().expect("flushes");
    }
    (0..12u8).for_each(|key| db.put([key], [9; 100]).expect("puts"));
    assert!(db.stats().expect("open").memtables > 1, "nothing is sealed");
    db
}

/// Has `work` done while another thread is held at a step.
fn beside_a_step(flushed_before: bool, work: fn(&Db)) {
    let gate = Arc::<Gate>::default();
    let db = store(&gate);
    if flushed_before {
        // Nothing is left for `work` to write: it would be held as well.
        db.flush().expect("flushes");
    }
    // A merge begins without writing.
    assert!(!flushed_before || db.step().expect("steps"));
    std::thread::scope(|scope| {
        let _opens = Opens(&gate);
        gate.close("create", ".table");
        let step = scope.spawn(|| db.step().expect("steps"));
        gate.wait();
        let other = scope.spawn(|| work(&db));
        // It would be over by now if it waited for no other.
        std::thread::sleep(Duration::from_millis(30));
        gate.open();
        assert!(step.join().expect("no panic"));
        other.join().expect("its work is done");
    });
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

#[test] // It returned at once, with memtables that were not flushed.
fn flush_waits_for_a_step_of_another_thread() {
    beside_a_step(false, |db| {
        db.flush().expect("flushes");
        assert_eq!(db.stats().expect("open").memtables, 1);
    });
}

#[test] // It returned at once, with what another thread was merging.
fn compact_waits_for_a_step_of_another_thread() {
    for flushed_before in [false, true] {
        beside_a_step(flushed_before, |db| {
            db.compact().expect("merges");
            assert_eq!(
                (db.stats().expect("open").memtables, db.stats().expect("open").run_count()),
                (1, 1)
            );
        });
    }
}

#[test] // It was refused: a flush was under way elsewhere.
fn ingest_waits_for_a_step_of_another_thread() {
    beside_a_step(false, |db| {
        assert_eq!(db.ingest([("key", "value")]).expect("ingests"), 1);
    });
}
