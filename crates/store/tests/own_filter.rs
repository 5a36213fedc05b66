//! A filter that another program brings: it is asked as the store's own ones are, and a store that
//! has one which is not registered is read without it, and says so.
//! ```text
//! table     ... | filter section: length | name | bytes | ... | list of sections | tail
//! strangers       the section with another name, or none, or another tag; its checksum put right
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::filters::{
    Corrupt, FilterKind, HashedKey, KeyRange, OutOfOrder, TableFilter, TableFilterBuilder,
    TableKind, Trace, register_filter,
};
use trommel::storage::{Memory, Storage};
use trommel::tools::repair_with;
use trommel::{Background, Db, GuardKind, Options};

const DIR: &str = "db";
const KEYS: u32 = 300;
const NAMED: u16 = 0x100;

/// Which last bits keys have: as plain as a filter can be.
const ODD: &dyn FilterKind = &TableKind::new(
    "odd-or-even",
    |_| Box::new(OddBuilder(0)),
    |bytes| match bytes[..] {
        [flags @ 0..=3] => Ok(Box::new(Odd(flags))),
        _ => Err(Corrupt { at: 0, what: "two flags" }),
    },
);

struct OddBuilder(u8);

struct Odd(u8);

fn flag(key: &[u8]) -> u8 {
    1 << (key.last().copied().unwrap_or(0) & 1)
}

impl TableFilterBuilder for OddBuilder {
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        self.0 |= flag(key);
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        vec![self.0]
    }
}

impl TableFilter for Odd {
    fn kind(&self) -> &'static dyn FilterKind {
        ODD
    }

    fn bytes(&self) -> &[u8] {
        &[0]
    }

    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, _trace: &mut T) -> bool {
        self.0 & flag(key.key()) != 0
    }
}

fn environment(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

fn open(disk: &Memory, guard: GuardKind) -> Db {
    let options = Options::new().guard(guard).background(Background::Stepped);
    Db::open_with(Path::new(DIR), options, environment(disk)).expect("opens")
}

/// A store of even numbers, in one table.
fn store() -> (Memory, PathBuf) {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Table(ODD));
    (0..KEYS).for_each(|key| db.put((2 * key).to_be_bytes(), [7; 20]).expect("puts"));
    db.flush().expect("flushes");
    drop(db);
    let names = disk.list(Path::new(DIR)).expect("lists");
    let name = names.into_iter().find(|name| name.ends_with(".table")).expect("a table");
    (disk, Path::new(DIR).join(name))
}

fn has_all(db: &Db) -> bool {
    let has = |number: u32| db.get(number.to_be_bytes()).expect("reads").is_some();
    (0..2 * KEYS).all(|number| has(number) == (number % 2 == 0))
}

/// Changes the tag and the bytes of the section with the filter, and puts all checksums right.
fn change_section(disk: &Memory, path: &Path, change: impl Fn(&mut u16, &mut Vec<u8>)) {
    const ENTRY: usize = 23;
    let mut file = disk.file(path).expect("a table");
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let tail_at = file.len() - 24;
    let list_at = tail_at - number(&file[tail_at..tail_at + 4]) as usize;
    let entries = (list_at + 2..tail_at).step_by(ENTRY);
    let mut filters = entries.filter(|at| number(&file[*at..*at + 2]) == u64::from(NAMED));
    let at = filters.next().expect("a section with a filter");
    let offset = number(&file[at + 3..at + 11]) as usize;
    let len = number(&file[at + 11..at + 19]) as usize;
    let (mut tag, mut bytes) = (NAMED, file[offset..offset + len].to_vec());
    assert_eq!(bytes, b"\x0bodd-or-even\x01", "as docs/format.md says");
    change(&mut tag, &mut bytes);
    assert!(bytes.len() <= len, "there is no more room");
    file[offset..offset + bytes.len()].copy_from_slice(&bytes);
    file[at..at + 2].copy_from_slice(&tag.to_le_bytes());
    file[at + 11..at + 19].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    file[at + 19..at + 23].copy_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    let list = crc32c::crc32c(&file[list_at..tail_at]);
    file[tail_at + 4..tail_at + 8].copy_from_slice(&list.to_le_bytes());
    let tail = crc32c::crc32c(&file[tail_at..tail_at + 12]);
    file[tail_at + 12..tail_at + 16].copy_from_slice(&tail.to_le_bytes());
    disk.put_file(path, file);
}

#[test]
fn a_filter_of_ones_own_is_asked_and_kept() {
    let (disk, _) = store();
    let db = open(&disk, GuardKind::Table(ODD));
    assert!(has_all(&db));
    let stats = db.stats().expect("open");
    assert_eq!((stats.guard.memory_bytes, stats.point.false_positives), (1, 0));
    assert_eq!(stats.point.true_positives, u64::from(KEYS), "odd numbers are looked for nowhere");
    assert!(stats.guard.unregistered.is_empty(), "a guard in the options is known");
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    drop(db);
    let report = repair_with(DIR, &environment(&disk)).expect("repairs");
    assert!(report.lost.is_empty(), "{report:?}");
    let db = open(&disk, GuardKind::Table(ODD));
    assert!(has_all(&db));
    assert_eq!(db.stats().expect("open").point.false_positives, 0, "a repair keeps the filter");
}

/// Changes the tag and the bytes of a filter's section.
type SectionChange = fn(&mut u16, &mut Vec<u8>);

#[test]
fn a_filter_that_nobody_registered_is_read_without_and_told() {
    let strangers: [(&str, SectionChange); 7] = [
        ("not-or-even", |_, bytes| bytes[1..4].copy_from_slice(b"not")),
        ("tag 240", |tag, _| *tag = NAMED + 240),
        ("a name that cannot be read", |_, bytes| bytes[0] = 0),
        ("a name that cannot be read", |_, bytes| bytes[0] = 255),
        ("a name that cannot be read", |_, bytes| bytes[1] = 0xff),
        ("a name that cannot be read", |_, bytes| bytes.clear()),
        ("a name that cannot be read", |_, bytes| bytes.truncate(5)),
    ];
    for (name, change) in strangers {
        for guard in [GuardKind::Table(ODD), GuardKind::Grf, GuardKind::BLOOM] {
            let (disk, path) = store();
            change_section(&disk, &path, change);
            let db = open(&disk, guard);
            assert!(has_all(&db), "{name}, {guard}");
            let guard_stats = db.stats().expect("open").guard;
            let expected = [(name.to_owned(), 1)].into_iter().collect();
            assert_eq!(guard_stats.unregistered, expected, "{name}, {guard}");
            assert_eq!(guard_stats.damaged, [""; 0], "{name}, {guard}");
            assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{name}, {guard}");
            db.compact().expect("compacts");
            assert!(has_all(&db), "{name}, {guard}");
            drop(db);
            repair_with(DIR, &environment(&disk)).expect("repairs");
        }
    }
}

#[test]
fn a_filter_whose_bytes_are_wrong_is_damaged() {
    let changes: [fn(&mut u16, &mut Vec<u8>); 2] =
        [|_, bytes| bytes[12] = 4, |_, bytes| bytes.truncate(12)];
    for change in changes {
        let (disk, path) = store();
        change_section(&disk, &path, change);
        let db = open(&disk, GuardKind::Table(ODD));
        assert!(has_all(&db));
        let guard_stats = db.stats().expect("open").guard;
        assert!(
            guard_stats.damaged.len() == 1 && guard_stats.damaged[0].contains("two flags"),
            "{guard_stats:?}"
        );
    }
}

/// A kind of this name, whose filters are never made.
const fn named(name: &'static str) -> TableKind {
    TableKind::new(name, |_| Box::new(OddBuilder(0)), |_| Err(Corrupt { at: 0, what: "nothing" }))
}

#[test]
fn names_and_tags_belong_to_one_kind() {
    const TAKEN: [&dyn FilterKind; 4] =
        [&named("rosetta"), &named("remix"), &named("grf"), &named("my-rosetta").with_tag(13)];
    trommel_guards::register().expect("nobody has the names");
    trommel_guards::register().expect("once more");
    for kind in TAKEN {
        register_filter(kind).expect_err("it is taken");
        let options = Options::new().guard(GuardKind::Table(kind));
        let refused = Db::open_with(DIR, options, environment(&Memory::new())).map(drop);
        assert!(refused.expect_err("taken").to_string().contains(kind.name()));
    }
    register_filter(ODD).expect("a new name");
    assert_eq!("odd-or-even".parse::<GuardKind>().expect("known"), GuardKind::Table(ODD));
    let range = KeyRange::new(b"a", Some(b"b")).expect("in order");
    assert!(TableFilter::may_overlap(&Odd(0), &range), "it knows no ranges");
}

struct Refusing(u32);

impl TableFilterBuilder for Refusing {
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        self.0 += 1;
        match self.0 {
            7 => Err(OutOfOrder { last: key.to_vec(), key: key.to_vec() }),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Vec<u8> {
        Vec::new()
    }
}

// It was a panic of the flush.
#[test]
fn a_builder_that_refuses_a_key_fails_the_flush_and_loses_nothing() {
    static KIND: TableKind = TableKind::new(
        "refusing-of-this-test",
        |_| Box::new(Refusing(0)),
        |_| Err(Corrupt { at: 0, what: "a filter" }),
    );
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Table(&KIND));
    for key in 0..KEYS {
        db.put(key.to_be_bytes(), "value").expect("puts");
    }
    let error = db.flush().expect_err("the filter cannot be built").to_string();
    assert!(error.contains("refusing-of-this-test"), "{error}");
    drop(db);
    let db = open(&disk, GuardKind::Open);
    db.flush().expect("flushes");
    for key in 0..KEYS {
        assert!(db.get(key.to_be_bytes()).expect("reads").is_some(), "{key}");
    }
}
