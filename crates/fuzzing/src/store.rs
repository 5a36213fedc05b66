//! A whole store, damaged in some places of some files.
//! ```text
//! input   arbitrary bytes of: guard | edits: file, place, what happens there |
//!         checksums put right or not
//! ```
//! Invariant: of a store whose checksums were not forged, each answer is a value that the key has
//! had; after `repair` the store verifies as well. Checksums that were put right excuse wrong
//! answers, and nothing else.

use arbitrary::{Arbitrary, Unstructured};
use trommel::GuardKind;

use crate::seeds::{self, SmallStore};
use crate::{ask, frame, guard_of};

const EDITS_MAX: usize = 6;

#[derive(Arbitrary, Debug)]
struct Case {
    guard: u8,
    guard_at_reopen: u8,
    mend: bool,
    edits: Vec<Edit>,
}

#[derive(Arbitrary, Debug)]
struct Edit {
    file: u8,
    at: u16,
    what: What,
}

#[derive(Arbitrary, Debug)]
enum What {
    Flip(u8),
    Set(Vec<u8>),
    Insert(Vec<u8>),
    Remove(u8),
    Zeros(u8),
    Cut,
    Lose,
    /// The bytes of another file of the store.
    Replace(u8),
}

type Files = Vec<(String, Vec<u8>)>;

pub(crate) fn body(input: &[u8]) {
    let Ok(case) = Case::arbitrary(&mut Unstructured::new(input)) else { return };
    let store = seeds::small_store(guard_of(case.guard));
    let mut files = store.files.clone();
    case.edits.iter().take(EDITS_MAX).for_each(|edit| apply(edit, &mut files));
    if case.mend {
        files.iter_mut().for_each(|(name, bytes)| mend(name, bytes));
    }
    let guard = guard_of(case.guard_at_reopen);
    let disk = ask::disk_of(&files);
    let damaged = ask::dump_all(&disk, std::path::Path::new(ask::DIR));
    let read_back = ask::ask(&disk, guard);
    if let Some(read_back) = &read_back {
        if !case.mend {
            check_values(store, read_back);
        }
        let contents = read_back.is_sound.then_some(&read_back.contents);
        ask::go_on(&disk, (guard, GuardKind::Grf), contents);
    }
    let is_untouched = files == store.files;
    if is_untouched {
        assert!(
            damaged == 0 && read_back.is_some_and(|read_back| read_back.contents == store.contents)
        );
    }
    repair(&files, guard, (!case.mend).then_some(store), is_untouched);
}

fn apply(edit: &Edit, files: &mut Files) {
    if files.is_empty() {
        return;
    }
    let (place, other) = (usize::from(edit.file) % files.len(), files.len());
    if let What::Replace(by) = edit.what {
        files[place].1 = files[usize::from(by) % other].1.clone();
        return;
    }
    if matches!(edit.what, What::Lose) {
        files.remove(place);
        return;
    }
    let bytes = &mut files[place].1;
    let at = usize::from(edit.at) % (bytes.len() + 1);
    let until = |len: usize| bytes.len().min(at + len);
    match &edit.what {
        What::Flip(mask) => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= mask),
        What::Set(new) => {
            let end = until(new.len());
            bytes.splice(at..end, new.iter().copied());
        }
        What::Insert(new) => drop(bytes.splice(at..at, new.iter().copied())),
        What::Remove(len) => drop(bytes.drain(at..until(usize::from(*len)))),
        What::Zeros(len) => {
            let end = until(usize::from(*len));
            bytes[at..end].fill(0);
        }
        What::Cut => bytes.truncate(at),
        What::Lose | What::Replace(_) => {}
    }
}

fn mend(name: &str, bytes: &mut [u8]) {
    match name.split_once('.') {
        None if name == "MANIFEST" => frame::mend_records(bytes, 0),
        Some((number, "wal")) => frame::mend_records(bytes, number.parse().unwrap_or(0)),
        Some((number, "value")) => frame::mend_values(bytes, number.parse().unwrap_or(0)),
        Some((number, "table")) => frame::mend_table(bytes, number.parse().unwrap_or(0)),
        _ => {}
    }
}

/// Every key has a value that it has had.
fn check_values(store: &SmallStore, read_back: &ask::ReadBack) {
    for (key, value) in &read_back.contents {
        let had = store.ever.get(key).is_some_and(|values| values.contains(value));
        assert!(had, "{} has never had the value {}", key.escape_ascii(), value.escape_ascii());
    }
}

fn repair(files: &Files, guard: GuardKind, genuine: Option<&SmallStore>, is_untouched: bool) {
    let disk = ask::disk_of(files);
    let report = match trommel::tools::repair_with(ask::DIR, &ask::environment(&disk)) {
        Ok(report) => report,
        Err(error) => return ask::check_error(&error),
    };
    assert!(!is_untouched || !report.changed, "a sound store was touched");
    let read_back = ask::ask(&disk, guard);
    if let Some(store) = genuine {
        let refused = || ask::open(&disk, guard).err();
        let read_back =
            read_back.unwrap_or_else(|| panic!("repaired, and refused: {:?}", refused()));
        assert!(read_back.is_sound, "a repaired store verifies");
        check_values(store, &read_back);
    }
}
