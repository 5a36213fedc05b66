//! Two logs, one behind the other, as a store finds them.
//! ```text
//! input   mend u8: bit 0 the first log, bit 1 the second | length of the first u16 |
//!         first log | second log
//! ```
//! Invariant: a first log that is whole, and no second one, is read as its twin reads it.

use trommel::GuardKind;

use crate::{ask, frame, twin};

/// The numbers of the two logs.
const NUMBERS: [u64; 2] = [1, 2];

pub(crate) fn body(input: &[u8]) {
    let [mend, low, high, bytes @ ..] = input else { return };
    let len = usize::from(u16::from_le_bytes([*low, *high])).min(bytes.len());
    let (first, second) = bytes.split_at(len);
    let mut logs = [first.to_vec(), second.to_vec()];
    for (place, log) in logs.iter_mut().enumerate() {
        if mend >> place & 1 == 1 {
            frame::mend_records(log, NUMBERS[place]);
        }
    }
    let has_second = !logs[1].is_empty();
    let entries = if has_second { None } else { twin::log(&logs[0], NUMBERS[0]) };
    let manifest = frame::manifest(&[frame::tree(1, 3, 0, 0).finish()]);
    let mut files = vec![("MANIFEST".to_string(), manifest)];
    for (number, log) in NUMBERS.into_iter().zip(logs).take(1 + usize::from(has_second)) {
        files.push((format!("{number:06}.wal"), log));
    }
    let disk = ask::disk_of(&files);
    ask::dump_all(&disk, std::path::Path::new(ask::DIR));
    let read_back = ask::ask(&disk, GuardKind::Grf);
    if let Some(entries) = entries {
        let read_back = read_back.as_ref().expect("a log as it should be is refused");
        assert_eq!(read_back.contents, twin::visible_of_log(&entries), "not what the twin reads");
    }
    if let Some(read_back) = read_back {
        let contents = read_back.is_sound.then_some(&read_back.contents);
        ask::go_on(&disk, (GuardKind::Grf, GuardKind::Open), contents);
    }
    repair(&files);
}

/// Logs are saved into a table.
fn repair(files: &[(String, Vec<u8>)]) {
    let disk = ask::disk_of(&files[1..]);
    match trommel::tools::repair_with(ask::DIR, &ask::environment(&disk)) {
        Ok(_) => drop(ask::ask(&disk, GuardKind::Open)),
        Err(error) => ask::check_error(&error),
    }
}
