//! What a repair cannot know: files that are gone with the manifest that named them leave a doubt,
//! and nothing else does.

use std::ops::ControlFlow;
use std::path::PathBuf;

use trommel::GuardKind;
use trommel::storage::Memory;
use trommel::testing::Fault;
use trommel::tools::{DumpItem, dump};

use super::{copy, files, manifest, open, repair, small_store, sound_contents};

/// Ways to lose what a manifest tells.
fn damaged_manifests(pristine: &Memory) -> Vec<(String, Memory)> {
    let len = pristine.file(manifest()).expect("is there").len() as u64;
    let removed = copy(pristine);
    removed.remove(&manifest()).expect("removes");
    let cut = |len| {
        let disk = copy(pristine);
        disk.truncate(manifest(), len);
        (format!("MANIFEST cut to {len} bytes"), disk)
    };
    let flipped = |byte| {
        let disk = copy(pristine);
        disk.flip_bit(manifest(), byte, 1);
        (format!("byte {byte} of MANIFEST flipped"), disk)
    };
    // Cut between two edits, it is that of an earlier moment, and nothing can tell.
    let mut edits = Vec::new();
    let dumped = dump(pristine, manifest(), &mut |item| {
        if let DumpItem::Note { offset, text } = item
            && text.starts_with("edit with")
        {
            edits.push(offset);
        }
        ControlFlow::Continue(())
    });
    dumped.expect("is whole");
    assert!(!edits.is_empty());
    let mut all = vec![("MANIFEST removed".into(), removed)];
    all.extend((0..len).step_by(5).filter(|len| !edits.contains(len)).map(cut));
    // Not the version in the header: that is refused.
    all.extend((12..len).step_by(5).map(flipped));
    all
}

#[test] // It said that all was saved: nobody knew that the table, or the log, had been there.
fn what_is_gone_with_the_manifest_that_named_it_is_in_doubt() {
    let (pristine, expected) = small_store();
    let (mut in_doubt, gone) = (0, [files(&pristine, ".table"), files(&pristine, ".wal")].concat());
    for (what, damaged) in damaged_manifests(&pristine) {
        for path in &gone {
            let case = format!("{what}, {} removed", path.display());
            let disk = copy(&damaged);
            disk.remove(path).expect("removes");
            let report = repair(&disk).expect("repairs");
            let found = sound_contents(&disk, &case);
            let is_reported = !report.lost.is_empty() || !report.doubts.is_empty();
            assert!(found == expected || is_reported, "{case}: {report:?}");
            in_doubt += u32::from(report.lost.is_empty() && found != expected);
        }
    }
    assert!(in_doubt > 20, "{in_doubt} losses that nothing tells of");
}

#[test] // It was a note, and all was saved.
fn a_missing_table_that_may_have_been_merged_is_in_doubt() {
    let (disk, tables) = merged_and_not_installed();
    disk.remove(&tables[0]).expect("removes");
    let report = repair(&disk).expect("repairs");
    let name = tables[0].file_name().expect("a name").to_string_lossy();
    let is_reported = |words: &str| {
        let of_it = report.doubts.iter().filter(|doubt| doubt.file == name);
        of_it.filter(|doubt| doubt.what.contains(words)).count() == 1
    };
    assert!(report.lost.is_empty() && is_reported("is missing"), "{report:?}");
}

/// A store that was killed when a merge of all had written its table, and no edit of it; the tables
/// that it has merged.
fn merged_and_not_installed() -> (Memory, Vec<PathBuf>) {
    let (pristine, _) = small_store();
    for n in 0.. {
        let disk = copy(&pristine);
        let db = open(&disk, GuardKind::Grf).expect("opens");
        db.flush().expect("flushes");
        let tables = files(&disk, ".table");
        disk.fail_from(n, Fault::Io);
        assert!(db.compact().is_err(), "after {n} operations no table is whole");
        let killed = disk.kill();
        disk.mend();
        let name = files(&killed, ".table").into_iter().find(|path| !tables.contains(path));
        let is_whole = |path: &PathBuf| {
            let mut is_whole = true;
            let dumped = dump(&killed, path, &mut |item| {
                // What the manifest does not name has no damage.
                is_whole &=
                    !matches!(item, DumpItem::Note { text, .. } if text.contains("not whole"));
                ControlFlow::Continue(())
            });
            dumped.is_ok() && is_whole
        };
        if name.as_ref().is_some_and(is_whole) {
            return (killed, tables);
        }
    }
    unreachable!("a merge has an end")
}

#[test]
fn the_torn_end_of_a_log_is_no_doubt() {
    let (disk, _) = small_store();
    let log = files(&disk, ".wal").pop().expect("a log");
    let len = disk.file(&log).expect("is there").len() as u64;
    disk.truncate(&log, len - 1);
    let report = repair(&disk).expect("repairs");
    assert!(!report.changed && report.lost.is_empty() && report.doubts.is_empty(), "{report:?}");
}
