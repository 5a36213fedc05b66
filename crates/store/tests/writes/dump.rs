//! Dumps: every entry and every damaged byte of a store's files is told; no bytes make it panic.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::tools::{DumpItem, FileKind, dump};
use trommel::{Background, Db, Error, GuardKind, Options, SyncPolicy};

const DIR: &str = "db";

/// A store with two runs, the image of a filter, and a log.
fn small_store() -> Memory {
    let disk = Memory::new();
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let options = Options::new()
        .guard(GuardKind::Grf)
        .block_bytes(256)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped);
    let db = Db::open_with(Path::new(DIR), options, environment).expect("opens");
    (0..30).for_each(|n| db.put(format!("key {n:02}"), "in the last level").expect("puts"));
    db.compact().expect("compacts");
    (10..15).for_each(|n| db.delete(format!("key {n:02}")).expect("deletes"));
    db.flush().expect("flushes");
    (28..33).for_each(|n| db.put(format!("key {n:02}"), "in the log").expect("puts"));
    drop(db);
    disk
}

#[derive(Default)]
struct Dumped {
    files: Vec<(PathBuf, FileKind, u64)>,
    notes: Vec<String>,
    entries: Vec<(u64, &'static str, String, String)>,
    damage: Vec<(PathBuf, u64, String)>,
}

fn dumped(disk: &Memory, path: &Path) -> trommel::Result<Dumped> {
    let mut dumped = Dumped::default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    dump(disk, path, &mut |item| {
        match item {
            DumpItem::File { path, kind, bytes, .. } => {
                dumped.files.push((path.to_path_buf(), kind, bytes));
            }
            DumpItem::Note { text, .. } => dumped.notes.push(text),
            DumpItem::Entry { sequence, kind, key, value, .. } => {
                dumped.entries.push((sequence, kind, text(key), text(value)));
            }
            DumpItem::Damage { offset, what } => {
                let (path, ..) = dumped.files.last().expect("a file is named first");
                dumped.damage.push((path.clone(), offset, what));
            }
            other => panic!("{other:?}"),
        }
        ControlFlow::Continue(())
    })?;
    Ok(dumped)
}

fn files(disk: &Memory) -> Vec<PathBuf> {
    let names = disk.list(Path::new(DIR)).expect("lists").into_iter();
    names.filter(|name| name != "LOCK").map(|name| Path::new(DIR).join(name)).collect()
}

#[test]
fn a_sound_store_is_told_whole() {
    let disk = small_store();
    let dumped = dumped(&disk, Path::new(DIR)).expect("dumps");
    assert_eq!(dumped.damage, []);
    assert_eq!(dumped.files.len(), files(&disk).len());
    assert_eq!(dumped.files[0].1, FileKind::Manifest);
    for (path, _, bytes) in &dumped.files {
        assert_eq!(disk.file(path).expect("is there").len() as u64, *bytes);
    }
    let mut sequences: Vec<u64> = dumped.entries.iter().map(|(sequence, ..)| *sequence).collect();
    sequences.sort_unstable();
    assert_eq!(sequences, (1..=40).collect::<Vec<u64>>(), "every write once");
    let has = |sequence, kind: &'static str, key: &str, value: &str| {
        dumped.entries.contains(&(sequence, kind, key.into(), value.into()))
    };
    assert!(has(1, "put", "key 00", "in the last level") && has(31, "delete", "key 10", ""));
    assert!(has(40, "put", "key 32", "in the log"));
    for words in ["joins run", "begins with sequence number 31", "next file: ", "base: 30 keys"] {
        assert!(
            dumped.notes.iter().any(|note| note.contains(words)),
            "{words}: {:#?}",
            dumped.notes
        );
    }
}

#[test]
fn every_flipped_byte_is_named_and_hides_no_other_part() {
    let pristine = small_store();
    for path in files(&pristine) {
        let sound = dumped(&pristine, &path).expect("dumps");
        let bytes = pristine.file(&path).expect("is there");
        for byte in 0..bytes.len() {
            pristine.flip_bit(&path, byte as u64, byte as u32 % 8);
            match dumped(&pristine, &path) {
                Ok(dumped) => {
                    assert!(!dumped.damage.is_empty(), "byte {byte} of {}", path.display());
                    let (end, known) = (bytes.len() as u64, dumped.entries.iter());
                    assert!(
                        dumped.damage.iter().all(|(at, offset, _)| *at == path && *offset < end)
                    );
                    assert!(known.into_iter().all(|entry| sound.entries.contains(entry)));
                }
                Err(error) => panic!("byte {byte} of {}: {error}", path.display()),
            }
            pristine.flip_bit(&path, byte as u64, byte as u32 % 8);
        }
    }
}

#[test]
fn a_damaged_block_costs_its_own_entries_alone() {
    let disk = small_store();
    let is_large = |path: &PathBuf| dumped(&disk, path).expect("dumps").entries.len() == 30;
    let table = files(&disk).into_iter().find(is_large).expect("the oldest table");
    disk.flip_bit(&table, 10, 0);
    let dumped = dumped(&disk, &table).expect("dumps");
    assert!(dumped.entries.len() > 5 && dumped.entries.len() < 30, "{}", dumped.entries.len());
    assert!(matches!(&dumped.damage[..], [(_, 0, what)] if what.contains("data block 0")));
}

#[test]
fn files_of_any_length_and_name_are_told() {
    let disk = small_store();
    for path in files(&disk) {
        let bytes = disk.file(&path).expect("is there");
        for len in 0..bytes.len() {
            let cut = Path::new("cut").join(path.file_name().expect("a name"));
            disk.put_file(&cut, bytes[..len].to_vec());
            let dumped = dumped(&disk, &cut).expect("dumps");
            let is_log =
                dumped.files[0].1 == FileKind::Log || dumped.files[0].1 == FileKind::Manifest;
            assert!(!dumped.damage.is_empty() || is_log, "{len} bytes of {}", path.display());
        }
        let strange = Path::new("strange").join("name");
        disk.put_file(&strange, bytes);
        let kind = dumped(&disk, &path).expect("dumps").files[0].1;
        let dumped = dumped(&disk, &strange).expect("dumps");
        assert_eq!(dumped.files[0].1, kind, "known by its bytes");
        let needs_number = [FileKind::Log, FileKind::Table].contains(&kind);
        assert_eq!(dumped.damage.is_empty(), !needs_number, "{}", path.display());
    }
    disk.put_file("other/letter.txt", b"dear".as_slice());
    let refused = dumped(&disk, Path::new("other")).err().expect("no store");
    assert!(matches!(refused, Error::NotAStore { .. }));
    assert!(matches!(dumped(&disk, Path::new("missing")).err(), Some(Error::Io { .. })));
}

/// The lines of a value file's dump: offset, and what is there or is wrong there.
fn value_lines(disk: &Memory) -> Vec<(u64, Result<String, String>)> {
    let is_value = |path: &PathBuf| path.to_string_lossy().ends_with(".value");
    let path = files(disk).into_iter().find(is_value).expect("there is one");
    let mut lines = Vec::new();
    dump(disk, &path, &mut |item| {
        match item {
            DumpItem::File { kind, .. } => assert_eq!(kind, FileKind::Value),
            DumpItem::Note { offset, text } => lines.push((offset, Ok(text))),
            DumpItem::Damage { offset, what } => lines.push((offset, Err(what))),
            other => panic!("{other:?}"),
        }
        ControlFlow::Continue(())
    })
    .expect("dumps");
    lines
}

#[test]
fn a_value_file_is_told_record_by_record_and_a_damaged_one_hides_no_other() {
    let disk = Memory::new();
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let options = Options::new().value_threshold(256).background(Background::Stepped);
    let db = Db::open_with(DIR, options.compression(true), environment).expect("opens");
    // Cubes have no pattern.
    let noise = |at: u64| ((at * at * at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    // Noise stays as it is; the other value is packed, chunk by chunk.
    db.put("plain", (0..1000).map(noise).collect::<Vec<_>>()).expect("puts");
    db.put("packed", vec![7; 100_000]).expect("puts");
    db.put("plain too", (9..300).map(noise).collect::<Vec<_>>()).expect("puts");
    drop(db);
    let lines = value_lines(&disk);
    let [(0, Ok(header)), (28, Ok(plain)), (packed_at, Ok(packed)), (last_at, Ok(last))] =
        &lines[..]
    else {
        panic!("{lines:?}")
    };
    assert_eq!(header, "values of key space 0, format version 1");
    assert_eq!(plain, "a value of 1000 bytes in 1 chunks");
    let packed_bytes = last_at - packed_at;
    let expected = format!("a value of 100000 bytes in 2 chunks, packed into {packed_bytes} bytes");
    assert_eq!((*packed_at, packed), (28 + 16 + 1000 + 4, &expected));
    assert_eq!(last, "a value of 291 bytes in 1 chunks");
    let path = files(&disk).into_iter().find(|it| it.to_string_lossy().ends_with(".value"));
    let path = path.expect("it was found above");
    // A damaged plain value costs its own line; behind a packed one nothing can be told.
    for (at, damaged_at, left) in [(500, 28, 4), (packed_at + 60, *packed_at, 3), (9, 0, 1)] {
        disk.flip_bit(&path, at, 2);
        let damaged = value_lines(&disk);
        disk.flip_bit(&path, at, 2);
        assert_eq!(damaged.len(), left, "{damaged:?}");
        for (damaged, sound) in damaged.iter().zip(&lines) {
            match damaged {
                (_, Ok(_)) => assert_eq!(damaged, sound),
                (offset, Err(what)) => {
                    assert!(*offset >= damaged_at && *offset <= at && !what.is_empty(), "{what}");
                    assert_eq!(sound.0, damaged_at, "{what}");
                }
            }
        }
        assert_eq!(damaged.iter().filter(|(_, line)| line.is_err()).count(), 1, "{damaged:?}");
    }
}

#[test]
fn who_has_seen_enough_is_told_no_more() {
    let disk = small_store();
    let mut count = 0;
    dump(&disk, Path::new(DIR), &mut |_| {
        count += 1;
        if count == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .expect("dumps");
    assert_eq!(count, 7);
}
