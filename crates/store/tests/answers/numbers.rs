//! Numbers of files, flushes and writes: stray ones, and those at their limit.
//! ```text
//! a stray file    its name has a great number, or the greatest        a manifest
//!                 it tells of the greatest numbers that are believed
//! ```
//! Invariant: no number has a cost, and none that was acknowledged is lost: where numbers run out,
//! a write is refused.

use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::Memory;
use trommel::tools::verify_files_with;
use trommel::{Background, Db, Options, SyncPolicy};

const MAX: u64 = 1 << 60;

fn environment(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

fn open(disk: &Memory) -> Db {
    let options = Options::new()
        .table_bytes(4096)
        .block_bytes(4096)
        .compression(false)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped);
    Db::open_with("db", options, environment(disk)).expect("opens")
}

fn value(db: &Db, key: &str) -> Option<Vec<u8>> {
    db.get(key).expect("gets").map(|value| value.to_vec())
}

/// Operations of the disk that a flush takes.
fn flush_operations(disk: &Memory, db: &Db) -> u64 {
    db.put("key", "value").expect("puts");
    let before = disk.operations();
    db.flush().expect("flushes");
    disk.operations() - before
}

#[test]
fn a_stray_file_with_a_great_number_costs_nothing() {
    for name in ["40000.table", "400000000000.table", "400000000000.filter", "400000000000.wal.new"]
    {
        let disk = Memory::new();
        open(&disk).close().expect("closes");
        disk.put_file(Path::new("db").join(name), b"".as_slice());
        let operations = flush_operations(&disk, &open(&disk));
        assert!(operations < 50, "{name}: {operations} operations");
    }
}

#[test]
fn a_flush_after_many_tables_asks_for_none_of_them() {
    let flush = |tables: u32| {
        let disk = Memory::new();
        let db = open(&disk);
        db.ingest((0..tables).map(|n| (n.to_be_bytes(), [7; 4096]))).expect("loads");
        flush_operations(&disk, &db)
    };
    assert_eq!(flush(100), flush(1000));
}

#[test]
fn a_stray_file_with_the_greatest_number_loses_nothing() {
    for number in [MAX / 2 - 1, MAX / 2, MAX / 2 + 1, MAX - 1, MAX, MAX + 1, u64::MAX] {
        for kind in ["table", "filter", "wal", "wal.new"] {
            let disk = Memory::new();
            open(&disk).close().expect("closes");
            disk.put_file(Path::new("db").join(format!("{number}.{kind}")), b"".as_slice());
            let db = open(&disk);
            db.put("key", "value").expect("puts");
            db.flush().expect("flushes");
            db.put("key", "another").expect("puts");
            db.checkpoint(format!("copy of {number}.{kind}")).expect("makes a checkpoint");
            db.close().expect("closes");
            let again = open(&disk);
            assert_eq!(value(&again, "key"), Some(b"another".to_vec()), "{number}.{kind}");
        }
    }
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Tags of an edit.
const NEXT_FILE: u8 = 6;
const NEXT_FLUSH: u8 = 7;
const LAST_SEQUENCE: u8 = 8;

/// Appends an edit of one number to the manifest, by `docs/format.md`.
fn tell(disk: &Memory, tag: u8, number: u64) {
    let mut file = disk.file("db/MANIFEST").expect("is there");
    let mut payload = vec![tag];
    varint(&mut payload, number);
    let (salt, offset) = (0u64.to_le_bytes(), (file.len() as u64).to_le_bytes());
    let mut head = b"tRec".to_vec();
    head.extend((payload.len() as u32).to_le_bytes());
    head.extend(crc32c::crc32c(&payload).to_le_bytes());
    head.extend(crc32c::crc32c(&[&salt[..], &offset[..], &head[..]].concat()).to_le_bytes());
    file.extend([head, payload].concat());
    disk.put_file("db/MANIFEST", file);
}

#[test]
fn where_numbers_run_out_writes_are_refused_and_none_is_lost() {
    for tag in [NEXT_FILE, NEXT_FLUSH, LAST_SEQUENCE] {
        for below in 0..8 {
            let case = format!("tag {tag}, {below} below the greatest");
            let disk = Memory::new();
            let db = open(&disk);
            db.put("first", "value").expect("puts");
            db.flush().expect("flushes");
            db.close().expect("closes");
            drop(db);
            tell(&disk, tag, MAX - below);
            let (db, mut written) = (open(&disk), vec!["first".to_string()]);
            let mut is_refused = false;
            for n in 0..24 {
                let key = format!("key {n}");
                match db.put(&key, "value") {
                    Ok(()) => written.push(key),
                    Err(_) => is_refused = true,
                }
                is_refused |= n % 2 == 1 && db.flush().is_err();
            }
            assert!(is_refused, "{case}: numbers have no end");
            let _ = db.close();
            drop(db);
            let damage = verify_files_with("db", &environment(&disk)).expect("reads").damage;
            assert_eq!(damage, [""; 0], "{case}");
            let again = open(&disk);
            for key in &written {
                assert_eq!(value(&again, key), Some(b"value".to_vec()), "{case}: {key}");
            }
            assert_eq!(again.range(..).count(), written.len(), "{case}");
        }
    }
}
