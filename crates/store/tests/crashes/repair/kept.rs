//! What the manifest keeps besides trees: options, and numbers that are never given. A repair takes
//! over what can be read of them.

use trommel::KeyspaceOptions;
use trommel::merge_operators::Concat;

use super::*;

#[test] // Another merge operator would have been accepted, and have read wrong values.
fn kept_options_that_can_be_read_outlive_a_repair() {
    let disk = Memory::new();
    let kept = Options::new().background(Background::Stepped).log(false);
    let db = Db::open_with(DIR, kept, environment(&disk)).expect("opens");
    let counts = KeyspaceOptions::new().merge_operator(Concat::new("+")).log(false);
    let counts = db.keyspace("counts", counts).expect("made");
    counts.merge("a", "1").and_then(|()| counts.merge("a", "2")).expect("merges");
    db.keyspace("gone", KeyspaceOptions::new().log(false)).expect("made");
    db.drop_keyspace("gone").expect("drops");
    db.close().expect("closes");
    drop((db, counts));
    // The first edit tells of an empty store.
    disk.flip_bit(manifest(), 30, 0);
    let report = repair(&disk).expect("repairs");
    assert!(report.manifest_rebuilt && report.lost.is_empty(), "{report:?}");
    let is_told = report.notes.iter().any(|note| note.contains("options"));
    assert!(is_told, "some may have been in what cannot be read: {report:?}");
    let plain = Options::new().background(Background::Stepped);
    let db = Db::open_with(DIR, plain, environment(&disk)).expect("opens");
    let counts = db.open_keyspace("counts").expect("is there");
    assert_eq!(counts.get("a").expect("reads").as_deref(), Some(&b"1+2"[..]));
    let other = KeyspaceOptions::new().merge_operator(Add::LITTLE_ENDIAN);
    assert!(matches!(db.keyspace("counts", other), Err(Error::Option { .. })));
    for name in ["default", "counts"] {
        let stats = db.open_keyspace(name).expect("is there").stats().expect("open");
        assert!(stats.durable_through.is_some(), "{name} has no log");
    }
}

#[test] // A restored store had none of its own yet, and gave the first store's numbers again.
fn numbers_that_a_restored_store_leaves_out_stay_so() {
    let disk = Memory::new();
    let backups = trommel::backup::Backups::with(
        trommel::backup::FolderObjects::open_with("backups", &environment(&disk)).expect("opens"),
        environment(&disk),
    );
    let db = open(&disk, GuardKind::Open).expect("opens");
    db.put("a", "1").expect("puts");
    backups.back_up(&db).expect("backs up");
    drop(db);
    backups.restore(1, "restored").expect("restores");
    let path = Path::new("restored/MANIFEST");
    let restored = || {
        let options = Options::new().background(Background::Stepped);
        Db::open_with("restored", options, environment(&disk)).expect("opens")
    };
    let begin = {
        let copy = copy_to(&disk, "restored", "copy");
        let options = Options::new().background(Background::Stepped);
        Db::open_with(copy, options, environment(&disk)).expect("opens").snapshot().sequence()
    };
    disk.flip_bit(path, 30, 0);
    let report = repair_with("restored", &environment(&disk)).expect("repairs");
    assert!(report.manifest_rebuilt, "{report:?}");
    let after = restored().snapshot().sequence();
    assert!(begin > 1 << 32 && after >= begin + (1 << 32), "{begin}, {after}");
}

fn copy_to<'d>(disk: &Memory, from: &str, to: &'d str) -> &'d str {
    for name in disk.list(Path::new(from)).expect("lists") {
        if let Some(bytes) = disk.file(Path::new(from).join(&name)) {
            disk.put_file(Path::new(to).join(name), bytes);
        }
    }
    to
}
