//! Rows in one buffer: those of the iterator, from both ends, whatever a key's value is made of.
//! ```text
//! scan --pieces of so many bytes--> | lengths | key | value | lengths | key | value | ...
//! next, next_back --------------->            key, value             key, value
//! ```
//! Invariant: a piece has as many rows as it is said to have, one at least while any are left.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::merge_operators::Concat;
use trommel::storage::{Clock, Memory};
use trommel::testing::ManualClock;
use trommel::{Background, Db, Environment, GuardKind, Options, Scan, SyncPolicy};

const KEYS: u32 = 600;
const SECOND: Duration = Duration::from_secs(1);

type Row = (Vec<u8>, Vec<u8>);

/// Several runs, and a memtable: values, some of which have expired, deletions, operands, values
/// apart, a deleted range.
fn store(guard: GuardKind) -> Db {
    let options = Options::new()
        .guard(guard)
        .size_ratio(4)
        .block_bytes(512)
        .value_threshold(1000)
        .merge_operator(Concat::new(""))
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let clock = Arc::new(ManualClock::default());
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let environment = environment.clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
    for round in 0..5 {
        for number in (round..KEYS).step_by(3) {
            let (key, value) = (number.to_be_bytes(), vec![round as u8; number as usize % 90]);
            let written = match number % 8 {
                0 => db.delete(key),
                1 => db.merge(key, value),
                2 => db.put(key, [round as u8; 1500]),
                3 => db.put_ttl(key, value, SECOND * (round + 1)),
                _ => db.put(key, value),
            };
            written.expect("writes");
        }
        if round == 2 {
            db.delete_range(100u32.to_be_bytes(), 150u32.to_be_bytes()).expect("deletes");
        }
        if round < 4 {
            db.flush().expect("flushes");
        }
    }
    clock.advance(3 * SECOND);
    db
}

fn rows_of(mut packed: &[u8]) -> Vec<Row> {
    let mut rows = Vec::new();
    while let Some((lengths, rest)) = packed.split_first_chunk::<8>() {
        let [key_len, value_len] = [&lengths[..4], &lengths[4..]]
            .map(|len| u32::from_le_bytes(len.try_into().expect("four bytes")) as usize);
        let (row, rest) = rest.split_at(key_len + value_len);
        let (key, value) = row.split_at(key_len);
        rows.push((key.to_vec(), value.to_vec()));
        packed = rest;
    }
    assert!(packed.is_empty(), "half a row");
    rows
}

fn in_pieces(mut scan: Scan, backward: bool, bytes: usize) -> Vec<Row> {
    let mut all = Vec::new();
    loop {
        let mut piece = b"before".to_vec();
        let count = match backward {
            true => scan.next_back_packed(&mut piece, bytes),
            false => scan.next_packed(&mut piece, bytes),
        };
        let rows = rows_of(piece.strip_prefix(b"before").expect("what was there stays"));
        assert_eq!(rows.len(), count.expect("reads"));
        if rows.is_empty() {
            return all;
        }
        all.extend(rows);
    }
}

fn one_by_one(scan: Scan, backward: bool) -> Vec<Row> {
    let owned = |row: trommel::Result<trommel::KeyValue>| {
        let (key, value) = row.expect("reads");
        (key, value.to_vec())
    };
    match backward {
        true => scan.rev().map(owned).collect(),
        false => scan.map(owned).collect(),
    }
}

#[test]
fn packed_rows_are_those_of_the_iterator() {
    let scans: [fn(&Db) -> Scan; 3] = [
        |db| db.range(..),
        |db| db.range(90u32.to_be_bytes()..400u32.to_be_bytes()),
        |db| db.snapshot().range(..).keys_only(),
    ];
    for guard in trommel_guards::all_guards() {
        let db = store(guard);
        for scan in scans {
            for backward in [false, true] {
                let expected = one_by_one(scan(&db), backward);
                assert!(expected.len() > 100, "{guard}: {} rows", expected.len());
                for bytes in [1, 700, 1 << 20] {
                    let packed = in_pieces(scan(&db), backward, bytes);
                    assert!(packed == expected, "{guard}, {bytes} bytes, backward: {backward}");
                }
            }
        }
    }
}
