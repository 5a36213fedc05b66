//! Stores that are wrong although all of their bytes are sound.

use std::path::Path;

use trommel_filters::{FlushNumber, Span};

use super::*;
use crate::entries::keyspace_id::KeyspaceId;
use crate::files::names::wal_name;
use crate::plan::background::Background;
use crate::plan::guard_kind::GuardKind;
use crate::plan::layout::Layout;
use crate::plan::options::Options;
use crate::plan::store_layout::StoreLayout;
use crate::plan::sync_policy::SyncPolicy;
use crate::shared::environment::Environment;
use crate::storage::memory::Memory;
use crate::storage::open_folder::OpenFolder;
use crate::sync::Arc;
use crate::tools::progress::unheard;
use crate::write::engine::Engine;

const DIR: &str = "db";

fn open(disk: &Memory, guard: GuardKind) -> Engine {
    let env = Environment::new().storage(Arc::new(disk.clone()));
    let (background, sync) = (Background::Stepped, SyncPolicy::Always);
    let options = Options::new().background(background).sync(sync).guard(guard);
    crate::open::open(Path::new(DIR), &options, env).expect("opens")
}

fn put(engine: &Engine, value: &str) {
    let mut batch = crate::entries::batch::Batch::new();
    batch.put("drum", value).put("sieve", value);
    engine.commit.write(engine, batch, true).expect("writes");
}

/// A store with an oldest run in level 1, two runs in level 0, and something in the log.
fn store() -> (Memory, Layout) {
    let disk = Memory::new();
    let engine = open(&disk, GuardKind::Open);
    for value in ["one", "two", "three"] {
        put(&engine, value);
        engine.commit.writer().seal(&engine).expect("seals");
        engine.flush_sealed().expect("flushes");
    }
    put(&engine, "in the log");
    drop(engine);
    let read = Manifest::read(&OpenFolder::on(&disk, DIR)).expect("reads").expect("is there");
    let mut layout = Layout::clone(read.default_tree());
    layout.runs[2].tables[0].level = 1;
    layout.runs[2].level = 1;
    write_manifest(&disk, &layout);
    (disk, layout)
}

/// Writes a manifest with this layout, and with the logs of the present manifest.
fn write_manifest(disk: &Memory, layout: &Layout) {
    let folder = OpenFolder::on(disk, DIR);
    let store: StoreLayout = Manifest::read(&folder).expect("reads").expect("is there");
    Manifest::create(&folder, store.with(KeyspaceId::DEFAULT, layout.clone())).expect("writes");
}

fn damage(engine: &Engine) -> Vec<String> {
    verify(&[Arc::clone(&engine.tree)], &mut Steps::new(&mut unheard))
        .expect("verify itself goes through")
        .damage
}

#[track_caller]
fn damage_is(engine: &Engine, words: &str) {
    let damage = damage(engine);
    assert!(damage.len() == 1 && damage[0].contains(words), "{damage:?}");
}

fn span(lo: u64, hi: u64) -> Span {
    Span::new(FlushNumber(lo), FlushNumber(hi)).expect("not empty")
}

/// Found by fuzzing: a get, which asks memtables first, and a scan gave different values.
#[test]
fn a_log_that_is_older_than_the_tables_is_noticed() {
    let (disk, mut layout) = store();
    layout.last_sequence.0 += 1;
    write_manifest(&disk, &layout);
    damage_is(&open(&disk, GuardKind::Open), "older than what is in tables");
}

/// Once, every file number up to the next one was tried.
#[test]
fn verify_ends_whatever_the_next_file_is() {
    let (disk, mut layout) = store();
    layout.next_file = crate::entries::entry::NUMBER_MAX - 10;
    write_manifest(&disk, &layout);
    assert_eq!(damage(&open(&disk, GuardKind::Open)), [""; 0]);
}

#[test]
fn a_sound_store_has_no_damage() {
    for guard in GuardKind::all() {
        let (disk, _) = store();
        let engine = open(&disk, guard);
        let report =
            verify(&[Arc::clone(&engine.tree)], &mut Steps::new(&mut unheard)).expect("verifies");
        assert_eq!((report.tables, report.entries, report.logs.files), (3, 6, 1), "{guard}");
        assert_eq!(report.damage, [""; 0], "{guard}");
        put(&engine, "more");
        assert_eq!(damage(&engine), [""; 0], "{guard}");
    }
}

#[test]
fn a_span_without_the_flushes_of_its_entries_is_damage() {
    let (disk, layout) = store();
    for (run, wrong, words) in [
        (0, span(1, 2), "outside the span"),
        (1, span(2, 3), "outside the span"),
        (2, span(1, 2), "outside the span"),
    ] {
        let mut layout = layout.clone();
        layout.runs[run].tables[0].span = wrong;
        write_manifest(&disk, &layout);
        damage_is(&open(&disk, GuardKind::Open), words);
    }
}

#[test]
fn a_key_that_the_guard_denies_is_damage() {
    let (disk, _) = store();
    let engine = open(&disk, GuardKind::Grf);
    let mut version = (*engine.current.hold()).clone();
    version.guard = crate::guard::Guard::empty(&engine.table_files.options, &[]);
    engine.current.store(Arc::new(version));
    let damage = damage(&engine);
    assert!(damage.len() == 3 && damage[0].contains("the guard denies its key drum"), "{damage:?}");
}

#[test]
fn runs_in_the_wrong_order_are_damage() {
    let (disk, mut layout) = store();
    layout.runs.swap(0, 1);
    write_manifest(&disk, &layout);
    damage_is(&open(&disk, GuardKind::Open), "its key drum is newer in an older run");
}

#[test]
fn what_the_manifest_tells_of_a_table_is_compared() {
    let (disk, layout) = store();
    let mut wrong = layout.clone();
    wrong.runs[0].tables[0].bytes += 1;
    write_manifest(&disk, &wrong);
    damage_is(&open(&disk, GuardKind::Open), "the manifest names");
    let mut wrong = layout.clone();
    wrong.last_sequence = Sequence(3);
    write_manifest(&disk, &wrong);
    let damage = damage(&open(&disk, GuardKind::Open));
    assert!(damage.len() == 2 && damage[0].contains("newer than all"), "{damage:?}");
    let mut wrong = layout;
    wrong.flushes.remove(0);
    wrong.flushes.remove(0);
    write_manifest(&disk, &wrong);
    damage_is(&open(&disk, GuardKind::Open), "a flush that is not on record");
}

#[test]
fn files_that_rot_while_the_store_is_open_are_found() {
    let (disk, layout) = store();
    let engine = open(&disk, GuardKind::Open);
    put(&engine, "more");
    put(&engine, "and more");
    assert_eq!(damage(&engine), [""; 0]);
    let first_log = engine.current.pin().active.first_log().expect("it has entries");
    let log = Path::new(DIR).join(wal_name(first_log));
    for (path, words) in [(log, ".wal"), (Path::new(DIR).join(MANIFEST_NAME), MANIFEST_NAME)] {
        disk.flip_bit(&path, 40, 0);
        damage_is(&engine, words);
        disk.flip_bit(&path, 40, 0);
    }
    let mut other = layout;
    other.next_file += 1;
    write_manifest(&disk, &other);
    damage_is(&engine, "another tree");
}
