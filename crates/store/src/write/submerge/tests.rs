//! Merges of a table whose keys descend somewhere, although all its checksums are right.

use crate::db::Db;
use crate::entries::block::{BlockBuilder, BlockPlace, seal};
use crate::entries::compression::{Compression, Packer};
use crate::entries::cursor::Cursor;
use crate::entries::entry::Entry;
use crate::error::Error;
use crate::files::names::table_name;
use crate::plan::background::Background;
use crate::plan::guard_kind::GuardKind;
use crate::plan::options::Options;
use crate::shared::environment::Environment;
use crate::storage::memory::Memory;
use crate::sync::Arc;

const KEYS: u64 = 8200;
/// As long as a block, so that each block has one entry.
const VALUE: [u8; 256] = [b'.'; 256];

fn open(disk: &Memory, guard: GuardKind) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let options = Options::new()
        .guard(guard)
        .block_bytes(VALUE.len())
        .compression(false)
        .background(Background::Stepped);
    Db::open_with("db", options, environment).expect("opens")
}

fn key(number: u64) -> [u8; 8] {
    (2 * number).to_be_bytes()
}

/// Makes a store of one table.
fn sound(guard: GuardKind) -> Memory {
    let disk = Memory::new();
    let db = open(&disk, guard);
    (0..KEYS).for_each(|number| db.put(key(number), VALUE).expect("puts"));
    db.compact().expect("merges");
    db.close().expect("closes");
    disk
}

/// Lowers a key of the only table below the one before it. Returns the changed copy of the disk.
fn lowered(disk: &Memory, guard: GuardKind, number: u64) -> Memory {
    let copy = disk.crash_hard();
    let db = open(&copy, guard);
    let table = Arc::clone(&db.engine.current.hold().runs[0].run.tables()[0].table);
    assert_eq!(table.block_count() as u64, KEYS);
    let offset: u64 = (0..number as usize).map(|block| table.block_len(block)).sum();
    let mut cursor = table.cursor();
    cursor.seek(&key(number)).expect("reads");
    let lower = (2 * number - 3).to_be_bytes();
    let entry = Entry { key: &lower, ..cursor.entry().expect("it is there") };
    let mut block = BlockBuilder::new();
    block.add(&entry);
    let mut sealed = Vec::new();
    let place = BlockPlace { file: table.file(), offset };
    seal(&block.finish(), &mut Packer::new(Compression::None, None), place, &mut sealed);
    let len = table.block_len(number as usize) as usize;
    assert_eq!(sealed.len(), len);
    let path = format!("db/{}", table_name(table.file()));
    let mut bytes = copy.file(&path).expect("is there");
    bytes[offset as usize..][..len].copy_from_slice(&sealed);
    drop((cursor, table));
    db.close().expect("closes");
    copy.put_file(&path, bytes);
    copy
}

#[test] // A filter takes keys by the thousand: the last of them was not written yet.
fn keys_that_descend_are_damage_to_a_merge_wherever_they_are() {
    for guard in [GuardKind::Grf, GuardKind::Open] {
        let disk = sound(guard);
        for number in (4093..=4097).chain(8190..=8192) {
            let copy = lowered(&disk, guard, number);
            let db = open(&copy, guard);
            db.put(key(KEYS), VALUE).expect("puts");
            let merged = db.compact();
            let is_damage = matches!(&merged, Err(Error::Corrupt { .. }));
            assert!(is_damage, "{guard:?}, key {number}: {merged:?}");
        }
    }
}
