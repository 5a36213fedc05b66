//! Where a corpus begins: sound files of every kind, small, in the form that each target takes.
//! ```text
//! small store -> its tables, logs, manifest, image -> seeds of the targets
//!     fuzz/corpus/TARGET/seed-NAME
//! ```
//! Invariant: seeds are the same whenever they are made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;

use trommel::storage::{Memory, Storage};
use trommel::{Batch, Db, GuardKind};
use trommel_filters::{FilterOptions, KeySample, TableFilterBuilder, TextModel};
use trommel_guards::{FingerprintFilterBuilder, all_guards, kinds};
use trommel_lab::Rng;

use crate::ask::{self, Contents};

/// A store of a few dozen keys, and all that its keys have ever been.
pub(crate) struct SmallStore {
    /// Every file but the lock.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) contents: Contents,
    pub(crate) ever: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

/// The small store of a guard, made once.
pub(crate) fn small_store(guard: GuardKind) -> &'static SmallStore {
    static STORES: OnceLock<Vec<(GuardKind, OnceLock<SmallStore>)>> = OnceLock::new();
    let empty = |guard| (guard, OnceLock::new());
    let stores = STORES.get_or_init(|| all_guards().into_iter().map(empty).collect());
    let store = stores.iter().find(|(kind, _)| *kind == guard).expect("a guard of the list");
    store.1.get_or_init(|| make_store(guard))
}

/// Writes, and what is to come of them.
struct Writer {
    db: Db,
    store: SmallStore,
}

impl Writer {
    fn put(&mut self, number: u32, value: &str) {
        let key = format!("key {number:03}");
        self.db.put(&key, value).expect("puts");
        self.note(key, value);
    }

    /// A value apart.
    fn put_long(&mut self, number: u32, len: usize) {
        let value = long_value(&self.store.ever.len().to_string(), len);
        self.put(number, &value);
    }

    fn note(&mut self, key: String, value: &str) {
        let (key, value) = (key.into_bytes(), value.as_bytes().to_vec());
        self.store.ever.entry(key.clone()).or_default().insert(value.clone());
        self.store.contents.insert(key, value);
    }

    fn delete(&mut self, number: u32) {
        let key = format!("key {number:03}");
        self.db.delete(&key).expect("deletes");
        self.store.contents.remove(key.as_bytes());
    }

    fn batch(&mut self, numbers: std::ops::Range<u32>, value: &str) {
        let mut batch = Batch::new();
        for number in numbers {
            let key = format!("key {number:03}");
            batch.put(&key, value);
            self.note(key, value);
        }
        self.db.write_synced(batch).expect("writes");
    }
}

/// A value of so many bytes, another one for each name.
pub(crate) fn long_value(name: &str, len: usize) -> String {
    format!("{name}, which is long. ").chars().cycle().take(len).collect()
}

/// Two runs, a log, value files, and under a global guard the image of its filter.
fn make_store(guard: GuardKind) -> SmallStore {
    let disk = Memory::new();
    let db = ask::open(&disk, guard).expect("opens");
    let store = SmallStore { files: Vec::new(), contents: Contents::new(), ever: BTreeMap::new() };
    let mut writer = Writer { db, store };
    (0..24).for_each(|number| writer.put(number, "in the last level"));
    (6..9).for_each(|number| writer.put_long(number, 300));
    writer.db.compact().expect("merges");
    (12..18).for_each(|number| writer.put(number, "newer"));
    (14..16).for_each(|number| writer.put_long(number, 400));
    writer.delete(3);
    writer.db.flush().expect("flushes");
    writer.batch(22..27, "in the log");
    writer.put(40, "alone");
    writer.put_long(41, 300);
    writer.put_long(7, 280);
    writer.delete(5);
    writer.db.sync().expect("syncs");
    let Writer { db, mut store } = writer;
    store.files = files(&disk);
    drop(db);
    store
}

/// Every file of the store but the lock.
fn files(disk: &Memory) -> Vec<(String, Vec<u8>)> {
    let names = disk.list(Path::new(ask::DIR)).expect("lists").into_iter();
    let names = names.filter(|name| name != "LOCK");
    let file = |name: String| {
        let bytes = disk.file(ask::path(&name)).expect("is there");
        (name, bytes)
    };
    names.map(file).collect()
}

/// A seed: the target, its name there, its bytes.
type Seed = (&'static str, String, Vec<u8>);

/// Every seed.
pub fn seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (place, guard) in all_guards().into_iter().enumerate() {
        let store = small_store(guard);
        for (name, bytes) in &store.files {
            add_file(&mut seeds, place as u8, name, bytes);
        }
    }
    for (name, bytes) in files_with_ranges() {
        add_file_named(&mut seeds, GRF_BYTE, &format!("ranges-{name}"), &name, &bytes);
    }
    add_filters(&mut seeds);
    add_texts(&mut seeds);
    let values = crate::values::inputs().into_iter();
    seeds.extend(values.map(|(name, bytes)| ("values", format!("seed-{name}"), bytes)));
    let backups = crate::backup::inputs().into_iter();
    seeds.extend(backups.map(|(name, bytes)| ("backup", format!("seed-{name}"), bytes)));
    add_drawn(&mut seeds);
    seeds
}

/// What stands for `grf` in an input.
const GRF_BYTE: u8 = 2;

/// The tables and the log of a store that deletes ranges: in a run with entries, in one without,
/// and in the log.
fn files_with_ranges() -> Vec<(String, Vec<u8>)> {
    let disk = Memory::new();
    let db = ask::open(&disk, GuardKind::Grf).expect("opens");
    let put = |number: u32| db.put(format!("key {number:03}"), "value").expect("puts");
    (0..12).for_each(put);
    db.delete_range("key 002", "key 006").expect("deletes");
    db.delete_range("key 004", "key 008").expect("deletes");
    (5..7).for_each(put);
    db.flush().expect("flushes");
    db.delete_range("key 009", "key 01").expect("deletes");
    db.flush().expect("flushes");
    (3..9).for_each(put);
    db.delete_range("key 005", "key 007").expect("deletes");
    db.sync().expect("syncs");
    let mut files = files(&disk);
    drop(db);
    files.retain(|(name, _)| name.ends_with(".table") || name.ends_with(".wal"));
    files
}

fn add_file(seeds: &mut Vec<Seed>, guard: u8, name: &str, bytes: &[u8]) {
    add_file_named(seeds, guard, &format!("{guard}-{name}"), name, bytes);
}

fn add_file_named(seeds: &mut Vec<Seed>, guard: u8, seed: &str, name: &str, bytes: &[u8]) {
    let mut add = |target, lead: &[u8]| {
        seeds.push((target, format!("seed-{seed}"), [lead, bytes].concat()));
    };
    match name.split_once('.') {
        None => add("manifest", &[guard, 1]),
        Some((_, "wal")) => {
            let len = (bytes.len() as u16).to_le_bytes();
            add("log", &[1, len[0], len[1]]);
        }
        // They are in inputs of `values`.
        Some((_, "value")) => {}
        Some((_, "filter")) => {
            add("image", &[0]);
        }
        Some(_) => {
            add("table", &[guard, 1]);
            // The first block, without what follows it on disk.
            add_block(seeds, guard, bytes);
        }
    }
}

/// A block by itself, as it is and to be compressed.
fn add_block(seeds: &mut Vec<Seed>, guard: u8, table: &[u8]) {
    let Some((form, body)) = crate::frame::first_block(table) else { return };
    seeds.push(("block", format!("seed-{guard}-{form}"), [&[guard, form][..], &body].concat()));
    let raw = crate::block::raw(form, &body).expect("a block of a sound table");
    seeds.push(("block", format!("seed-{guard}-raw"), [&[guard, 0][..], &raw].concat()));
    seeds.push(("block", format!("seed-{guard}-pack"), [&[guard, 2][..], &raw].concat()));
    add_packed(seeds, guard, &raw);
}

/// A block in every form of Zstandard. (Any bytes are a dictionary.)
fn add_packed(seeds: &mut Vec<Seed>, guard: u8, raw: &[u8]) {
    use crate::packed::{packed, seed};
    let dictionary = &raw[raw.len() / 2..];
    for (name, form, dictionary) in [("zstd", 0, None), ("dictionary", 4, Some(dictionary))] {
        let Some(frame) = packed(raw, dictionary) else { continue };
        let dictionary = dictionary.unwrap_or_default();
        seeds.push((
            "packed",
            format!("seed-{guard}-{name}"),
            seed(guard, form + 1, dictionary, &frame),
        ));
        seeds.push((
            "packed",
            format!("seed-{guard}-{name}-raw"),
            seed(guard, form + 2, dictionary, raw),
        ));
    }
}

/// Filters of every kind, of few keys and of some more.
fn add_filters(seeds: &mut Vec<Seed>) {
    for kind in kinds::TABLE_FILTERS {
        for (keys, bits) in [(0u32, 12.0), (1, 20.0), (40, 16.0), (300, 10.0)] {
            let mut builder = FilterOptions::new(kind, bits).builder();
            for key in 0..keys {
                let key = [&b"key "[..], &(key * key).to_be_bytes()].concat();
                builder.add(&key).expect("in order");
            }
            seeds.push(("filter", format!("seed-{}-{keys}", kind.name()), builder.finish()));
        }
    }
    add_filters_of_text(seeds);
}

/// Filters with a model of text.
fn add_filters_of_text(seeds: &mut Vec<Seed>) {
    let keys: Vec<String> = (100..400u32).map(|key| format!("key {}", key * key)).collect();
    let keys: BTreeSet<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let mut sample = KeySample::default();
    keys.iter().for_each(|key| sample.push(key));
    for (name, builder) in [
        ("cell", FingerprintFilterBuilder::cell(12.0)),
        ("gap", FingerprintFilterBuilder::gap(12.0)),
        ("coded", FingerprintFilterBuilder::coded(12.0)),
    ] {
        let mut builder = builder.with_text(TextModel::of(&sample, 1000), 1000);
        keys.iter().for_each(|key| builder.add(key).expect("in order"));
        seeds.push(("filter", format!("seed-{name}-text"), builder.finish()));
    }
}

fn add_texts(seeds: &mut Vec<Seed>) {
    let texts: [(&str, [u8; 3], &[u8]); 8] = [
        ("lines", [0, 0, 0], b"one\r\ntwo\n\nthree"),
        ("hex", [4, 0, 0], b"00ff\nAb\n"),
        ("tsv", [1, 1, 1], b"a\tb\tc\n1\t\t3\n"),
        ("csv", [2, 0, 2], b"1,\"a,b\"\n\"q \"\"r\"\"\",\"two\r\n\nlines\"\n,\n"),
        ("header", [10, 0, 0], b"key,value\n1,2\n"),
        ("open", [2, 0, 0], b"a\n\"b\nc\n"),
        ("guard", [0, 0, 0], b"blocked-bloom"),
        ("dist", [0, 0, 0], b"file:keys"),
    ];
    for (name, lead, text) in texts {
        seeds.push(("text", format!("seed-{name}"), [&lead[..], text].concat()));
    }
}

/// Bytes for the targets that draw what they do from them.
fn add_drawn(seeds: &mut Vec<Seed>) {
    let mut rng = Rng::new(4);
    for (target, count, len) in [("grown", 8, 400), ("store", 8, 60)] {
        for place in 0..count {
            let bytes = (0..len + 20 * place).map(|_| rng.next_u64() as u8).collect();
            seeds.push((target, format!("seed-{place}"), bytes));
        }
    }
}
