//! Stores that were written on one machine, read on every other.
//! ```text
//! history -> store -> plain/*    without compression: written here byte for byte, and read
//!                     values/*   as that, with values apart
//!                     packed/*   with LZ4, whose bytes depend on the machine: read
//!                     zstd/*     with ZSTD: as that, where it is there
//!            version_7/*, both as that format wrote them: read by `upgrade`
//! ```
//! Invariant: if a test here fails, stores of one machine no longer read on another, or no longer
//! read at all. A new format is written down by the test that is ignored; the folders before it
//! become those of their version.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use trommel::filters::kinds;
use trommel::options::Compression;
use trommel::{Background, Batch, Db, Error, Expiry, GuardKind, Options};

type Files = BTreeMap<String, Vec<u8>>;
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const FAR: Expiry = Expiry::at_milliseconds(1 << 50);

/// Those that every machine writes alike.
const PLAIN: [&str; 2] = ["plain", "values"];

fn options(name: &str) -> Options {
    let is_plain = PLAIN.contains(&name);
    let options = Options::new()
        .guard(if is_plain { GuardKind::Grf } else { GuardKind::Table(kinds::BLOCKED_BLOOM) })
        .compression(!is_plain)
        .size_ratio(2)
        .background(Background::Stepped);
    match name {
        "values" => options.value_threshold(256),
        "zstd" => options.compression(Compression::Zstd { level: 3 }).dictionary_bytes(1 << 10),
        _ => options,
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden_folder").join(name)
}

fn files(folder: &Path) -> Files {
    let entries = fs::read_dir(folder).expect("lists").map(|entry| entry.expect("an entry"));
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("a plain name");
        (name, fs::read(entry.path()).expect("reads"))
    };
    entries.map(read).collect()
}

/// Keys of all lengths and values of all kinds, in tables, in an image and in a log.
fn write(folder: &Path, name: &str) -> Rows {
    let db = Db::open(folder, options(name)).expect("opens");
    let mut rows = Rows::new();
    for number in 0..300u64 {
        let key = (number * number).wrapping_mul(0x0001_0203_0405_0607).to_be_bytes();
        let key = &key[..1 + number as usize % 8];
        let is_long = name == "values" && number % 10 == 0;
        let times = 1 + number as usize % 5 + if is_long { 20 } else { 0 };
        let value = format!("{number} sieves, {number} drums").repeat(times);
        db.put(key, &value).expect("puts");
        rows.insert(key.to_vec(), value.into_bytes());
        if number % 70 == 69 {
            db.flush().expect("flushes");
            db.settle().expect("merges");
        }
    }
    db.compact().expect("merges");
    let mut batch = Batch::new();
    batch.put_with_expiry(b"later", b"a far end", FAR).put(b"", b"the empty key");
    batch.delete([0]).delete_range([0x40], [0x50]);
    db.write(batch).expect("writes");
    db.flush().expect("flushes");
    db.put(b"log", b"in no table yet").expect("puts");
    rows.retain(|key, _| key != &[0] && !(&[0x40][..]..&[0x50][..]).contains(&&key[..]));
    let last: [(&[u8], &[u8]); 3] =
        [(b"later", b"a far end"), (b"", b"the empty key"), (b"log", b"in no table yet")];
    rows.extend(last.map(|(key, value)| (key.to_vec(), value.to_vec())));
    db.close().expect("closes");
    rows
}

fn reads_as(folder: &Path, name: &str, rows: &Rows) {
    let db = Db::open(folder, options(name)).expect("opens");
    has(&db, name, rows);
    db.verify().expect("is sound");
    db.close().expect("closes");
}

fn has(db: &Db, name: &str, rows: &Rows) {
    let found: Rows = db
        .iter()
        .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).expect("reads"))
        .collect();
    assert_eq!(&found, rows, "{name}");
    for (key, value) in rows {
        let got = db.get(key).expect("reads");
        assert_eq!(got.as_deref(), Some(&value[..]), "{name}, {key:?}");
    }
    assert_eq!(db.get([0]).expect("reads"), None, "{name}: it was deleted");
    assert_eq!(db.get([0x45]).expect("reads"), None, "{name}: its range was deleted");
}

fn is_read(name: &str) {
    let (here, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let rows = write(here.path(), name);
    reads_as(here.path(), name, &rows);
    copy_of(&golden(name), copy.path());
    reads_as(copy.path(), name, &rows);
}

fn copy_of(folder: &Path, copy: &Path) {
    for (name, bytes) in files(folder) {
        fs::write(copy.join(name), bytes).expect("copies");
    }
}

#[test]
fn a_store_of_another_machine_is_read() {
    is_read("plain");
}

#[test]
fn a_compressed_store_of_another_machine_is_read() {
    is_read("packed");
}

#[test]
fn values_apart_of_another_machine_are_read() {
    is_read("values");
    assert!(files(&golden("values")).keys().any(|name| name.ends_with(".value")));
}

#[cfg(feature = "zstd")]
#[test]
fn a_store_with_zstd_of_another_machine_is_read() {
    is_read("zstd");
}

#[test]
fn a_store_of_an_older_version_is_read_and_left_as_it_is() {
    for name in ["plain", "packed"] {
        let (here, old) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let rows = write(here.path(), name);
        copy_of(&golden("version_7").join(name), old.path());
        let before = files(old.path());
        let refused = Db::open(old.path(), options(name)).expect_err("it is of another version");
        assert!(matches!(refused, Error::Version { found: 7, .. }), "{refused}");
        let db = Db::open_older(old.path(), options(name)).expect("opens");
        has(&db, name, &rows);
        db.close().expect("closes");
        let after = files(old.path());
        assert_eq!(after.get("MANIFEST"), before.get("MANIFEST"), "{name}");
        assert!(before.iter().all(|(file, bytes)| after.get(file) == Some(bytes)), "{name}");
    }
}

// Its logs had so much that it was flushed at once, as when a store of this version is opened.
#[test]
fn an_older_store_with_full_memtables_is_left_as_it_is() {
    let (old, small) = (tempfile::tempdir().unwrap(), options("plain").write_buffer_bytes(1 << 10));
    let db = Db::open(old.path(), small.clone()).expect("opens");
    for number in 0..4u8 {
        db.put([number], [number; 600]).expect("puts");
    }
    assert!(db.stats().expect("open").memtables > 1, "some are full");
    db.close().expect("closes");
    let manifest = old.path().join("MANIFEST");
    let mut bytes = fs::read(&manifest).expect("reads");
    assert_eq!(bytes[8], 8, "the version");
    bytes[8] = 7;
    fs::write(&manifest, bytes).expect("writes");
    let before = files(old.path());
    let db = Db::open_older(old.path(), small).expect("opens");
    for number in 0..4u8 {
        assert_eq!(db.get([number]).expect("reads").as_deref(), Some(&[number; 600][..]));
    }
    db.close().expect("closes");
    let after = files(old.path());
    assert!(after.keys().eq(before.keys()), "{:?}, not {:?}", after.keys(), before.keys());
    assert!(after == before, "a file has changed");
}

#[test]
fn every_machine_writes_the_same_bytes() {
    for store in PLAIN {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), store);
        let (written, golden) = (files(folder.path()), files(&golden(store)));
        assert!(written.keys().eq(golden.keys()), "{:?}, not {:?}", written.keys(), golden.keys());
        for (name, bytes) in &written {
            let place = bytes.iter().zip(&golden[name]).position(|(own, expected)| own != expected);
            assert_eq!((bytes.len(), place), (golden[name].len(), None), "{store}/{name}");
        }
    }
}

#[test]
#[ignore = "writes the golden folders anew, after a change of format"]
fn write_the_golden_folders() {
    for name in ["plain", "values", "packed", "zstd"] {
        let _ = fs::remove_dir_all(golden(name));
        write(&golden(name), name);
    }
}
