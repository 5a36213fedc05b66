//! A store on the real disk whose tables go past the operating system's cache answers like a map,
//! and like a store whose tables do not; and each opens what the other one wrote.

use std::collections::BTreeMap;
use std::path::Path;

use trommel::options::DirectIo;
use trommel::stats::IoStats;
use trommel::{Background, Db, GuardKind, Options};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(direct: DirectIo, guard: GuardKind) -> Options {
    Options::new()
        .direct(direct)
        .guard(guard)
        .size_ratio(3)
        .write_buffer_bytes(64 << 10)
        .table_bytes(32 << 10)
        .partition_bytes(64 << 10)
        // Blocks begin and end anywhere in sectors, and are read anew.
        .block_bytes(700)
        .block_cache_bytes(8 << 10)
        .background(Background::Stepped)
}

fn key(number: u64) -> Vec<u8> {
    let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash.to_be_bytes()[..3 + (hash % 6) as usize].to_vec()
}

fn change(db: &Db, model: &mut Model, round: u64) {
    for number in 0..2000 {
        let number = number * 7 + round * 1000;
        let value = vec![number as u8; (number % 90) as usize];
        db.put(key(number), &value).expect("put");
        model.insert(key(number), value);
        if number.is_multiple_of(5) {
            db.delete(key(number / 2)).expect("delete");
            model.remove(&key(number / 2));
        }
        if number.is_multiple_of(900) {
            db.flush().expect("flushed");
            db.settle().expect("merged");
        }
    }
    db.flush().expect("flushed");
}

fn check(db: &Db, model: &Model) {
    for number in 0..9000 {
        let found = db.get(key(number)).expect("get");
        assert_eq!(found.as_deref(), model.get(&key(number)).map(|value| &**value));
    }
    let all = db.range(..).map(|entry| entry.expect("scan"));
    assert!(all.map(|(key, value)| (key.to_vec(), value.to_vec())).eq(model.clone()));
    let back = db.range(..).rev().map(|entry| entry.expect("scan").0.to_vec());
    assert!(back.eq(model.keys().rev().cloned()));
}

#[test]
fn tables_that_go_past_the_cache_answer_like_a_map() {
    let ways = [
        DirectIo::ALL,
        DirectIo::default(),
        DirectIo { reads: true, ..DirectIo::default() },
        DirectIo { flushes: true, ..DirectIo::default() },
        DirectIo { merges: true, ..DirectIo::default() },
    ];
    for guard in [GuardKind::Grf, GuardKind::Open] {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let mut model = Model::new();
        for (round, direct) in (0..).zip(ways) {
            let db = Db::open(folder.path(), options(direct, guard)).expect("opens");
            check(&db, &model);
            change(&db, &mut model, round);
            check(&db, &model);
            let stats = db.stats().expect("open");
            assert!(stats.merges > 0 && stats.flushes > 2, "{stats:?}");
            assert!(db.verify().expect("reads").damage.is_empty());
            let IoStats { direct: granted, .. } = stats.io;
            assert!(granted == direct || granted == DirectIo::default(), "{granted:?}");
        }
    }
}

#[test]
fn what_cannot_go_past_the_cache_says_so() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let db = Db::open(folder.path(), options(DirectIo::ALL, GuardKind::Grf)).expect("opens");
    assert_eq!(db.stats().expect("open").io.direct, DirectIo::default());
    let mut model = Model::new();
    change(&db, &mut model, 1);
    check(&db, &model);
    drop(db);
    let storage = std::sync::Arc::new(trommel::storage::Memory::new());
    let environment = trommel::Environment::new().storage(storage);
    let db = Db::open_with(Path::new("db"), options(DirectIo::ALL, GuardKind::Grf), environment);
    assert_eq!(db.expect("opens").stats().expect("open").io, IoStats::default());
}
