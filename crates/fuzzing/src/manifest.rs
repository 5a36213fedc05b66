//! A manifest over the files of a small store: three tables, an image, a log.
//! ```text
//! input   guard u8 | mend u8: 0 the bytes are left alone | bytes of MANIFEST
//! ```
//! Invariant: what `verify` has no fault with answers alike from every side, and goes on as a
//! store.

use trommel::GuardKind;
use trommel_guards::kinds;

use crate::{ask, frame, guard_of, seeds};

pub(crate) fn body(input: &[u8]) {
    let [guard, mend, bytes @ ..] = input else { return };
    let mut manifest = bytes.to_vec();
    if *mend != 0 {
        frame::mend_records(&mut manifest, 0);
    }
    let mut files = seeds::small_store(GuardKind::Table(kinds::BLOCKED_BLOOM)).files.clone();
    files.iter_mut().filter(|(name, _)| name == "MANIFEST").for_each(|(_, file)| {
        file.clone_from(&manifest);
    });
    let disk = ask::disk_of(&files);
    let guard = guard_of(*guard);
    ask::dump_all(&disk, &ask::path("MANIFEST"));
    if let Some(read_back) = ask::ask(&disk, guard) {
        let contents = read_back.is_sound.then_some(&read_back.contents);
        ask::go_on(&disk, (guard, GuardKind::Grf), contents);
    }
    let disk = ask::disk_of(&files);
    match trommel::tools::repair_with(ask::DIR, &ask::environment(&disk)) {
        Ok(_) => drop(ask::ask(&disk, guard)),
        Err(error) => ask::check_error(&error),
    }
}
