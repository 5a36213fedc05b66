//! How blocks are packed, from options to bytes: changed at any opening, apart for the last level,
//! with dictionaries that merges make.
//! ```text
//! none | lz4 | zstd:LEVEL   x   the last level's   x   dictionaries    -> the same answers
//! ```

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use trommel::options::Compression;
use trommel::storage::Memory;
use trommel::tools::{DumpItem, dump};
use trommel::{Background, Db, Environment, Error, Options};

const DIR: &str = "db";

fn options() -> Options {
    Options::new()
        .size_ratio(2)
        .block_bytes(1024)
        .table_bytes(1 << 17)
        .block_cache_bytes(0)
        .dictionary_bytes(2048)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: Options) -> trommel::Result<Db> {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(DIR, options, environment)
}

/// Values that have much in common with each other, and little in themselves.
fn value(number: u64) -> String {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{{\"id\":{mixed},\"station\":\"Zug {}\",\"platform\":{}}}", mixed % 97, mixed % 7)
}

fn fill(db: &Db, numbers: std::ops::Range<u64>) {
    flush_rows(db, numbers);
    db.settle().expect("merges");
}

fn flush_rows(db: &Db, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let key = number.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes();
        db.put(key, value(number)).expect("puts");
    }
    db.flush().expect("flushes");
}

fn rows(db: &Db) -> u64 {
    db.iter().fold(0, |rows, row| row.map(|_| rows + 1).expect("reads"))
}

fn holds(db: &Db, count: u64) {
    for number in 0..count {
        let key = number.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes();
        let found = db.get(key).expect("reads");
        assert_eq!(found.as_deref(), Some(value(number).as_bytes()), "number {number}");
    }
    assert_eq!(rows(db), count);
    let report = db.verify().expect("reads");
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

/// How many blocks of all tables are packed in which way, as `dump` tells.
fn forms(disk: &Memory) -> BTreeMap<String, u64> {
    let mut forms = BTreeMap::new();
    dump(disk, DIR, &mut |item| {
        if let DumpItem::Note { text, .. } = item
            && let Some((_, about)) =
                text.strip_prefix("data block ").and_then(|t| t.split_once(": "))
        {
            let (form, _) = about.rsplit_once(", ").expect("its length comes last");
            *forms.entry(form.to_owned()).or_default() += 1;
        }
        ControlFlow::Continue(())
    })
    .expect("dumps");
    forms
}

#[test]
fn what_is_set_is_kept_and_may_change_at_every_opening() {
    let disk = Memory::new();
    let mut ways = vec!["none", "lz4"];
    if (Compression::Zstd { level: 3 }).is_built_in() {
        ways.extend(["zstd:1", "zstd:9"]);
    }
    ways.extend(["lz4", "none"]);
    let mut count = 0;
    for way in ways {
        let mut with = options();
        with.set("compression", way).expect("it is one");
        with.set("last-level-compression", "auto").expect("it is one");
        let db = open(&disk, with).expect("opens");
        holds(&db, count);
        fill(&db, count..count + 700);
        count += 700;
        holds(&db, count);
        db.close().expect("closes");
        let db = open(&disk, options()).expect("opens");
        assert_eq!(db.stats().expect("told").levels[0].compression.to_string(), way, "it is kept");
        db.close().expect("closes");
        let name = way.split(':').next().expect("a name");
        let forms = forms(&disk);
        assert!(forms.keys().any(|form| form.starts_with(name)), "{way}: {forms:?}");
    }
}

#[test]
fn the_last_level_is_packed_apart() {
    for (above, last) in [("none", "lz4"), ("lz4", "none")] {
        let disk = Memory::new();
        let mut with = options();
        with.set("compression", above).expect("it is one");
        with.set("last_level_compression", last).expect("it is one");
        let db = open(&disk, with).expect("opens");
        fill(&db, 0..2000);
        db.compact().expect("merges");
        assert_eq!(forms(&disk).keys().collect::<Vec<_>>(), [last], "all is in the last level");
        let ratio = |db: &Db| db.stats().expect("told").levels.last().unwrap().packed_ratio();
        let of_last = ratio(&db).expect("it has entries");
        assert_eq!(of_last > 1.0, last == "lz4", "{of_last}");
        for number in 2000..2100u64 {
            db.put(number.to_be_bytes(), value(number)).expect("puts");
        }
        db.flush().expect("flushes");
        assert_eq!(forms(&disk).len(), 2, "the flushed run has another one");
        db.close().expect("closes");
    }
}

#[test]
fn nonsense_is_refused_by_name() {
    for (name, text) in [
        ("compression", "zstd:0"),
        ("compression", "zip"),
        ("last_level_compression", "zstd:23"),
        ("dictionary_bytes", "-1"),
    ] {
        let error = Options::new().set(name, text).expect_err("it is none");
        assert!(matches!(&error, Error::Option { option, .. } if option == name), "{error}");
    }
    let wrong = [
        options().compression(Compression::Zstd { level: 0 }),
        options().last_level_compression(Compression::Zstd { level: 23 }),
        options().dictionary_bytes(255),
        options().dictionary_bytes((1 << 20) + 1),
    ];
    for options in wrong {
        let error = open(&Memory::new(), options).expect_err("it makes no sense");
        assert!(matches!(error, Error::Option { .. }), "{error}");
    }
}

#[cfg(feature = "zstd")]
mod with_zstd {
    use std::path::Path;

    use super::*;
    use trommel::storage::Storage as _;
    use trommel::testing::Fault;

    const ZSTD: Compression = Compression::Zstd { level: 3 };

    fn tables(disk: &Memory) -> BTreeMap<String, Vec<u8>> {
        let names = disk.list(Path::new(DIR)).expect("lists");
        let names = names.into_iter().filter(|name| name.ends_with(".table"));
        names.map(|name| (name.clone(), disk.file(Path::new(DIR).join(&name)).unwrap())).collect()
    }

    fn dictionary_bytes(db: &Db) -> u64 {
        let levels = db.stats().expect("told").levels;
        levels.iter().flat_map(|level| &level.runs).map(|run| run.dictionary_bytes).sum()
    }

    #[test]
    fn merges_make_dictionaries_that_pay_and_flushes_make_none() {
        let disk = Memory::new();
        let db = open(&disk, options().compression(ZSTD)).expect("opens");
        fill(&db, 0..3000);
        assert_eq!(dictionary_bytes(&db), 0, "a flush makes none");
        fill(&db, 3000..6000);
        db.compact().expect("merges");
        assert!(dictionary_bytes(&db) > 0, "{:?}", forms(&disk));
        let all: usize = tables(&disk).values().map(Vec::len).sum();
        holds(&db, 6000);
        db.close().expect("closes");
        let db = open(&disk, options().dictionary_bytes(0)).expect("opens");
        holds(&db, 6000);
        // What is read is not what is written: the next merge makes none.
        fill(&db, 6000..6001);
        db.compact().expect("merges");
        assert_eq!(dictionary_bytes(&db), 0);
        holds(&db, 6001);
        let without: usize = tables(&disk).values().map(Vec::len).sum();
        assert!(all * 10 < without * 9, "{all} bytes with, {without} without");
        db.close().expect("closes");
    }

    #[test]
    fn a_dictionary_that_does_not_pay_is_not_kept() {
        // Nothing in common, and too little for its bytes.
        for (values, dictionary) in [(4000u64, 2048), (300, 1 << 14)] {
            let disk = Memory::new();
            let with = options().compression(ZSTD).dictionary_bytes(dictionary);
            let db = open(&disk, with).expect("opens");
            for number in 0..values {
                let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let noise: Vec<u8> = (0..12u64)
                    .flat_map(|nth| {
                        let word = (mixed ^ nth << 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
                        (word ^ word >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
                    })
                    .collect();
                let own = if dictionary > 2048 { value(number).into_bytes() } else { noise };
                db.put(mixed.to_be_bytes(), own).expect("puts");
                if number == values / 2 {
                    db.flush().expect("flushes");
                }
            }
            db.flush().expect("flushes");
            db.compact().expect("merges");
            assert_eq!(dictionary_bytes(&db), 0, "{:?}", forms(&disk));
            db.close().expect("closes");
        }
    }

    #[test]
    fn one_history_gives_the_same_bytes() {
        let write = || {
            let disk = Memory::new();
            let with = options().compression(ZSTD).last_level_compression(ZSTD);
            let db = open(&disk, with).expect("opens");
            (0..6).for_each(|part| fill(&db, part * 1500..(part + 1) * 1500));
            assert!(dictionary_bytes(&db) > 0);
            db.close().expect("closes");
            tables(&disk)
        };
        assert!(write() == write());
    }

    /// Enough for a sample that makes a dictionary.
    const SAMPLED_ROWS: u64 = 1600;
    /// Operations of a merge, from its begin on, of which each fails. The sample is read in these.
    const OPERATIONS_EACH: u64 = 60;
    /// Of those behind, one in so many fails.
    const OPERATIONS_STEP: u64 = 5;

    /// A store with two runs, whose merge makes a dictionary.
    fn two_runs() -> (Memory, Db) {
        let disk = Memory::new();
        let db = open(&disk, options().compression(ZSTD)).expect("opens");
        flush_rows(&db, 0..SAMPLED_ROWS / 2);
        flush_rows(&db, SAMPLED_ROWS / 2..SAMPLED_ROWS);
        assert_eq!(dictionary_bytes(&db), 0, "nothing is merged yet");
        (disk, db)
    }

    #[test]
    fn a_merge_whose_sample_cannot_be_read_is_made_again() {
        let (mut failed, mut has_fired) = (0, true);
        let spread = (OPERATIONS_EACH..).step_by(OPERATIONS_STEP as usize);
        for after in (0..OPERATIONS_EACH).chain(spread) {
            let (disk, db) = two_runs();
            disk.fail_at(after, Fault::Io);
            let merged = db.compact();
            has_fired = !disk.may_fail();
            disk.mend();
            failed += u32::from(merged.is_err());
            assert!(has_fired || merged.is_ok(), "{merged:?}, and nothing has failed");
            db.compact().unwrap_or_else(|error| panic!("after {after} operations: {error}"));
            assert!(dictionary_bytes(&db) > 0, "after {after} operations");
            assert_eq!(rows(&db), SAMPLED_ROWS, "after {after} operations");
            if after.is_multiple_of(20) || !has_fired {
                holds(&db, SAMPLED_ROWS);
            }
            db.close().expect("closes");
            if !has_fired {
                break;
            }
        }
        // A sample has so many blocks at least, and each is read.
        assert!(!has_fired && failed > 16, "{failed} merges have failed");
    }

    #[test]
    fn a_damaged_dictionary_is_told_and_repair_tells_what_is_lost() {
        let disk = Memory::new();
        let db = open(&disk, options().compression(ZSTD)).expect("opens");
        fill(&db, 0..3000);
        fill(&db, 3000..6000);
        db.compact().expect("merges");
        db.close().expect("closes");
        // Each table has one of its own: the first one's is found by its magic number.
        let (name, bytes) = tables(&disk).pop_first().expect("a table");
        let magic = 0xec30_a437u32.to_le_bytes();
        let at = bytes.windows(4).position(|four| four == magic).expect("a dictionary");
        disk.flip_bit(Path::new(DIR).join(&name), at as u64 + 100, 2);
        let error = open(&disk, options()).expect_err("it is damaged");
        assert!(error.tells_of_damage() && error.to_string().contains("dictionary"), "{error}");
        let mut damage = 0;
        dump(&disk, DIR, &mut |item| {
            damage += u64::from(matches!(item, DumpItem::Damage { .. }));
            ControlFlow::Continue(())
        })
        .expect("dumps");
        assert!(damage > 1, "the dictionary, and the blocks that need it");
        let environment = Environment::new().storage(Arc::new(disk.clone()));
        let report = trommel::tools::repair_with(DIR, &environment).expect("repairs");
        assert!(!report.lost.is_empty());
        let db = open(&disk, options()).expect("opens");
        let left = rows(&db);
        assert!(left < 6000, "{left} entries");
        assert!(db.verify().expect("reads").damage.is_empty());
        db.close().expect("closes");
    }
}
