//! A whole table: sections, index, properties, filter, blocks, with their checksums put right.
//! ```text
//! input   guard u8 | mend u8: 0 the bytes are left alone | bytes of the file
//! ```
//! Invariant: what `verify` has no fault with answers alike from every side, and goes on as a
//! store.

use trommel::GuardKind;
use trommel_guards::kinds;

use crate::frame::{self, About};
use crate::{ask, guard_of};

pub(crate) fn body(input: &[u8]) {
    let [guard, mend, bytes @ ..] = input else { return };
    let mut file = bytes.to_vec();
    if *mend != 0 {
        frame::mend_table(&mut file, frame::TABLE);
    }
    let about = frame::about(&file).unwrap_or(About { entries: 1, ..About::default() });
    let edit = frame::tree(2, 3, 1, about.sequences.1.min(1 << 59));
    let edit = edit.table([1, 1, 1, 0, 1], &about, file.len());
    let manifest = frame::manifest(&[edit.finish()]);
    let files = [("MANIFEST".into(), manifest), ("000001.table".into(), file)];
    let disk = ask::disk_of(&files);
    let guard = guard_of(*guard);
    if let Some(read_back) = ask::ask(&disk, guard) {
        let contents = read_back.is_sound.then_some(&read_back.contents);
        ask::go_on(&disk, (guard, GuardKind::Table(kinds::BLOCKED_BLOOM)), contents);
    }
    // A tree that is made anew out of this table.
    let disk = ask::disk_of(&files[1..]);
    ask::dump_all(&disk, &ask::path("000001.table"));
    let repaired = trommel::tools::repair_with(ask::DIR, &ask::environment(&disk));
    match repaired {
        Ok(_) => drop(ask::ask(&disk, guard)),
        Err(error) => ask::check_error(&error),
    }
}
