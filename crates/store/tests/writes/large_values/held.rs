//! Whoever writes a value holds its file until a memtable or a table does.
//! ```text
//! value -> its file, full at once: in no pool -> log | table: held here, others sweep -> published
//! ```
//! Invariant: a sweep at any moment removes no file of a value that is about to be published.

use std::sync::Arc;

use trommel::storage::Memory;
use trommel::{Db, Environment};

use super::{DIR, Stream, open_with, options, value, value_files};
use crate::door::{Gate, Opens};

/// More than `put_reader` reads into memory.
const LONG: u64 = 600 << 10;

/// A way to write a value: its name, the kind of file whose next append is held, the call.
type Way = (&'static str, &'static str, fn(&Db) -> trommel::Result<()>);

const WAYS: [Way; 4] = [
    ("a stream", ".wal", |db| db.put_reader("new", LONG, Stream::new(1, LONG))),
    ("a put", ".wal", |db| db.put("new", value(1, LONG as usize))),
    ("a bulk load", ".table", |db| db.ingest([("new", value(1, LONG as usize))]).map(drop)),
    // It moves the old value.
    ("a merge", ".table", |db| db.compact()),
];

fn has_values(db: &Db, way: &str) {
    let old = db.get("old").expect("reads").expect("it was there before");
    assert!(*old == *value(2, 5000), "{way}: another old value");
    let new = db.get("new").expect("reads");
    assert_eq!(new.is_some(), way != "a merge", "{way}");
    assert!(new.is_none_or(|new| *new == *value(1, LONG as usize)), "{way}: another new value");
    assert!(db.verify().expect("verifies").damage.is_empty(), "{way}");
}

#[test]
fn a_sweep_removes_no_file_of_a_value_that_is_not_published_yet() {
    for (way, kind, write) in WAYS {
        let (disk, gate) = (Memory::new(), Arc::<Gate>::default());
        // Each value fills its file.
        let options = options().value_file_bytes(4096).value_move_oldest(1.0);
        let environment = Environment::new().storage(Arc::new(gate.disk(&disk)));
        let db = Db::open_with(DIR, options.clone(), environment).expect("opens");
        db.put("old", value(2, 5000)).expect("puts");
        db.flush().expect("flushes");
        let before = value_files(&disk);
        std::thread::scope(|scope| {
            gate.close("append", kind);
            let _opens = Opens(&gate);
            let writing = scope.spawn(|| write(&db));
            gate.wait();
            let meanwhile = value_files(&disk);
            assert!(before.len() == 1 && meanwhile.len() == 2, "{way}: {before:?}, {meanwhile:?}");
            db.step().expect("sweeps");
            gate.open();
            let written = writing.join().unwrap_or_else(|_| panic!("{way}: a panic"));
            written.unwrap_or_else(|error| panic!("{way}: {error}"));
        });
        has_values(&db, way);
        has_values(&open_with(&disk.crash_hard(), options), way);
    }
}
