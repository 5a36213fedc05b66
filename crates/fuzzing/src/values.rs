//! A table, a log and the value file that both refer to, as a store finds them.
//! ```text
//! input   mend u8: bit 0 the table, bit 1 the log, bit 2 the value file |
//!         length of the table u16 | length of the log u16 | table | log | value file
//! ```
//! Invariant: what `verify` has no fault with answers alike from every side, streams too, and goes
//! on as a store. A value is never longer than its file.

use trommel::storage::Storage;
use trommel::{Db, GuardKind};
use trommel_lab::Rng;

use crate::frame::{self, About};
use crate::{ask, seeds};

const GUARD: GuardKind = GuardKind::Grf;
/// Lengths of the table and of the log, behind the first byte.
const LEAD_BYTES: usize = 5;

/// The numbers of the three files.
#[derive(Clone, Copy)]
struct Numbers {
    table: u64,
    log: u64,
    values: u64,
}

/// As the store of `seed` gives them.
const NUMBERS: Numbers = Numbers { table: 4, log: 3, values: 2 };

pub(crate) fn body(input: &[u8]) {
    let Some((lead, rest)) = input.split_at_checked(LEAD_BYTES) else { return };
    let len = |at: usize| usize::from(u16::from_le_bytes([lead[at], lead[at + 1]]));
    let (table, rest) = rest.split_at(len(1).min(rest.len()));
    let (log, values) = rest.split_at(len(3).min(rest.len()));
    let [mut table, mut log, mut values] = [table, log, values].map(<[u8]>::to_vec);
    let mends = |bit: u8| lead[0] >> bit & 1 == 1;
    if mends(0) {
        frame::mend_table(&mut table, NUMBERS.table);
    }
    if mends(1) {
        frame::mend_records(&mut log, NUMBERS.log);
    }
    if mends(2) {
        frame::mend_values(&mut values, NUMBERS.values);
    }
    let about = frame::about(&table).unwrap_or(About { entries: 1, ..About::default() });
    let edit = frame::tree(NUMBERS.log, 5, 1, about.sequences.1.min(1 << 59));
    let edit = edit.table([NUMBERS.table, 1, 1, 0, 1], &about, table.len());
    let files = [
        ("MANIFEST".to_string(), frame::manifest(&[edit.finish()])),
        (format!("{:06}.table", NUMBERS.table), table),
        (format!("{:06}.wal", NUMBERS.log), log),
        (format!("{:06}.value", NUMBERS.values), values),
    ];
    let disk = ask::disk_of(&files);
    ask::dump_all(&disk, std::path::Path::new(ask::DIR));
    ask::dump_all(&disk, &ask::path(&files[3].0));
    if let Some(read_back) = ask::ask(&disk, GUARD) {
        let longest = read_back.contents.values().map(Vec::len).max().unwrap_or(0);
        let bytes = files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        assert!(!read_back.is_sound || longest <= bytes * RATIO_MAX, "a value of {longest} bytes");
        let contents = read_back.is_sound.then_some(&read_back.contents);
        ask::go_on(&disk, (GUARD, GuardKind::Open), contents);
    }
    // A tree that is made anew out of them.
    let disk = ask::disk_of(&files[1..]);
    match trommel::tools::repair_with(ask::DIR, &ask::environment(&disk)) {
        Ok(_) => drop(ask::ask(&disk, GUARD)),
        Err(error) => ask::check_error(&error),
    }
}

/// A block that is packed is at most this much longer than its bytes.
const RATIO_MAX: usize = 255;

/// An input of these files.
fn input(mend: u8, table: &[u8], log: &[u8], values: &[u8]) -> Vec<u8> {
    let [table_len, log_len] = [table, log].map(|bytes| (bytes.len() as u16).to_le_bytes());
    [&[mend][..], &table_len, &log_len, table, log, values].concat()
}

/// Inputs of sound files: values apart in a table and in a log, some that expire, one of several
/// chunks, one of none.
pub(crate) fn inputs() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = Vec::new();
    for (name, mend, is_long) in [("plain", 7, false), ("as-it-is", 0, false), ("chunks", 7, true)]
    {
        let disk = trommel::storage::Memory::new();
        let db = ask::open(&disk, GUARD).expect("opens");
        write(&db, is_long);
        let of = |end: &str| {
            let names = disk.list(std::path::Path::new(ask::DIR)).expect("lists");
            let mut names = names.into_iter().filter(|name| name.ends_with(end));
            let name = names.next().expect("is there");
            assert!(names.next().is_none(), "two files of this kind");
            (name.split('.').next().and_then(|it| it.parse().ok()), disk.file(ask::path(&name)))
        };
        let [table, log, values] = [".table", ".wal", ".value"].map(of);
        let expected = [NUMBERS.table, NUMBERS.log, NUMBERS.values].map(Some);
        assert_eq!([table.0, log.0, values.0], expected, "the numbers of the files");
        let [table, log, values] = [table, log, values].map(|it| it.1.expect("is there"));
        all.push((name, input(mend, &table, &log, &values)));
    }
    all
}

/// Some are packed, some are not.
fn write(db: &Db, is_long: bool) {
    let put = |key: &str, len: usize| db.put(key, seeds::long_value(key, len)).expect("puts");
    ["a", "b", "c"].into_iter().for_each(|key| put(key, 300));
    let mut rng = Rng::new(1);
    let drawn: Vec<u8> = (0..260).map(|_| rng.next_u64() as u8).collect();
    db.put("ca", drawn).expect("puts");
    if is_long {
        put("d", (64 << 10) + 400);
    }
    db.put_ttl("e", seeds::long_value("e", 290), std::time::Duration::from_secs(9)).expect("puts");
    put("f", 5);
    db.flush().expect("flushes");
    put("b", 256);
    put("g", 280);
    db.delete("a").expect("deletes");
    db.sync().expect("syncs");
}
