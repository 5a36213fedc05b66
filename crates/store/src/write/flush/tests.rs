//! The filter of a new run is the same whether its keys are in memory or are read from its tables.

use super::*;
use crate::db::Db;
use crate::plan::background::Background;
use crate::plan::guard_kind::GuardKind;
use crate::plan::options::Options;
use crate::shared::environment::Environment;
use crate::storage::memory::Memory;
use crate::write::engine::Engine;

/// Keys that each round writes. Half of them were written by the round before.
const KEYS: u64 = 2000;

fn open(guard: GuardKind) -> Db {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let options = Options::new()
        .guard(guard)
        .block_bytes(512)
        .table_bytes(4096)
        .partition_bytes(16 << 10)
        .compression(false)
        .background(Background::Stepped);
    Db::open_with("db", options, environment).expect("opens")
}

/// Filters take eight-byte keys in bulk, and other keys one by one.
fn key(number: u64, is_word: bool) -> Vec<u8> {
    let mut key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec();
    if !is_word {
        key.resize(8 + number as usize % 5, b'.');
    }
    key
}

/// Returns the images of the filter's parts after a new run was added to them.
fn images(engine: &Engine, written: &Written) -> Vec<Vec<u8>> {
    let (version, flush) = (engine.current.hold(), engine.installer().next_flush);
    let number = Sequence(1 << 40);
    let new = NewRun { flush, first: number, last: number, is_flushed: true, first_log: None };
    let change = prepare_guard(engine, &version, &new, written).expect("reads the tables");
    let guard = version.guard.with(&change, &version.guard).expect("it is the newest version");
    let image = |(_, part): (&[u8], &Part)| {
        let mut image = Vec::new();
        part.write_image(&mut image);
        image
    };
    guard.parts().expect("a global filter").each().map(image).collect()
}

#[test]
fn the_filter_of_keys_that_are_read_is_that_of_keys_in_memory() {
    let kinds = GuardKind::CLOSED.into_iter().filter(|kind| kind.fingerprints().is_some());
    for (guard, is_word) in kinds.flat_map(|kind| [(kind, false), (kind, true)]) {
        let db = open(guard);
        let engine: &Engine = &db.engine;
        // The first run; a run beside it; and one beside a last level of several partitions.
        for round in 0..3 {
            for number in (round * KEYS / 2..).take(KEYS as usize) {
                db.put(key(number, is_word), [b'.'; 20]).expect("puts");
            }
            db.put(key(round * KEYS / 2, is_word), "again").expect("puts");
            db.delete(key(round * KEYS / 2 + 1, is_word)).expect("deletes");
            let memtable = Arc::clone(&engine.current.hold().active.memtable);
            let mut written = write_run(engine, &memtable).expect("writes");
            assert!(written.output.tables.len() > 5, "tables, and blocks in each");
            let of_memory = images(engine, &written);
            assert_eq!(of_memory.len() > 2, round == 2, "{} partitions", of_memory.len());
            written.keys = None;
            assert!(images(engine, &written) == of_memory, "{guard}, round {round}");
            written.output.abandon(&engine.table_files);
            db.flush().expect("flushes");
            if round > 0 {
                db.compact().expect("merges");
            }
        }
    }
}
