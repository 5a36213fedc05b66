//! Manifests with valid checksums and absurd contents. They lead to an error or a working store,
//! but never to a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use super::*;
use crate::db::Db;
use crate::error::Error;
use crate::plan::background::Background;
use crate::plan::guard_kind::GuardKind;
use crate::plan::layout::{Layout, RunRecord};
use crate::plan::options::Options;
use crate::plan::sync_policy::SyncPolicy;
use crate::shared::environment::Environment;
use crate::storage::memory::Memory;
use crate::sync::Arc;
use crate::tools::repair::repair_with;

const DIR: &str = "db";

type Contents = Vec<(Vec<u8>, Vec<u8>)>;

fn environment(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

fn open(disk: &Memory, guard: GuardKind) -> Result<Db> {
    let options = Options::new()
        .guard(guard)
        .size_ratio(3)
        .block_bytes(256)
        .table_bytes(4096)
        .compression(false)
        .partition_bytes(1024)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped);
    Db::open_with(DIR, options, environment(disk))
}

/// A store with a half done merge, so that tables are trimmed, and with two newer runs.
struct HalfDone {
    disk: Memory,
    store: StoreLayout,
    /// The layout of its one tree.
    layout: Layout,
    contents: Contents,
}

static HALF_DONE: LazyLock<HalfDone> = LazyLock::new(|| {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Grf).expect("opens");
    let put = |number: u32| {
        let key = format!("{:03}", number * 7 % 400);
        db.put(key, format!("{number:040}")).expect("puts");
    };
    let mut number = 0;
    while db.stats().expect("open").under_way.is_none() || number < 1200 {
        (number..number + 80).for_each(put);
        number += 80;
        db.flush().expect("flushes");
        while db.stats().expect("open").under_way.is_none() && db.step().expect("steps") {}
    }
    for number in number..number + 2 {
        put(number);
        db.flush().expect("flushes");
    }
    assert!(db.stats().expect("open").trimmed_tables > 0);
    let contents = contents(&db).expect("reads");
    drop(db);
    let store = Manifest::read(&OpenFolder::on(&disk, DIR)).expect("reads").expect("is there");
    let layout = Layout::clone(store.default_tree());
    let counts = [layout.runs.len(), layout.cuts.len(), layout.images.len()];
    assert!(counts.into_iter().all(|count| count > 2), "{counts:?} runs, cuts, images");
    HalfDone { disk, store, layout, contents }
});

fn contents(db: &Db) -> Result<Contents> {
    let forward = db.range(..).map(|entry| entry.map(|(key, v)| (key, v.to_vec())));
    let forward = forward.collect::<Result<Contents>>()?;
    let backward = db.range(..).rev().collect::<Result<Vec<_>>>()?;
    assert!(backward.len() == forward.len() || !db.verify()?.damage.is_empty());
    for (key, _) in &forward {
        db.get(key)?;
    }
    Ok(forward)
}

/// The store with a manifest for this layout.
fn with_manifest(layout: &Layout) -> Memory {
    let disk = HALF_DONE.disk.crash_hard();
    let folder = OpenFolder::on(&disk, DIR);
    let file = folder.create_anew(MANIFEST_NAME).expect("creates");
    let path = folder.path_of(MANIFEST_NAME);
    let mut writer = RecordWriter::begin(file, path, SALT, &header()).expect("begins");
    let store = HALF_DONE.store.clone().with(KeyspaceId::DEFAULT, layout.clone());
    writer.append(&encode(&store.as_edit())).and_then(|()| writer.sync()).expect("writes");
    disk
}

/// Whether opening refuses the layout, whichever guard it is to build.
fn is_refused(layout: &Layout) -> bool {
    let guards = [GuardKind::Grf, GuardKind::Open];
    guards.into_iter().all(|guard| match open(&with_manifest(layout), guard) {
        Err(Error::Corrupt { .. }) => true,
        Err(other) => panic!("{other}"),
        Ok(_) => false,
    })
}

/// Opens, reads and merges; then repairs.
fn works_or_is_refused(layout: &Layout) {
    for guard in [GuardKind::Grf, GuardKind::Open] {
        let disk = with_manifest(layout);
        let Ok(db) = open(&disk, guard) else { continue };
        let is_sound = db.verify().is_ok_and(|report| report.damage.is_empty());
        let right = |db: &Db| contents(db).is_ok_and(|found| found == HALF_DONE.contents);
        assert!(!is_sound || right(&db), "{guard}: verify finds nothing, and answers are wrong");
        let merged = db.put("new", "").and_then(|()| db.settle()).and_then(|()| db.compact());
        assert!(merged.is_ok() || !is_sound, "{guard}: {merged:?}");
        drop(contents(&db));
    }
    let disk = with_manifest(layout);
    let report = repair_with(DIR, &environment(&disk)).expect("repairs");
    let db = open(&disk, GuardKind::Grf).expect("what was mended opens");
    let damage = db.verify().expect("verifies").damage;
    assert_eq!(damage, [""; 0], "after {report:?}");
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Layout)) {
    let mut layout = HALF_DONE.layout.clone();
    change(&mut layout);
    assert!(is_refused(&layout), "it opens");
    works_or_is_refused(&layout);
}

fn trimmed(layout: &mut Layout) -> &mut TableRecord {
    let tables = layout.runs.iter_mut().flat_map(|run| &mut run.tables);
    tables.into_iter().find(|table| table.is_trimmed).expect("a trimmed table")
}

fn last_merge(layout: &mut Layout) -> &mut LastMerge {
    layout.last_merge.as_mut().expect("half done")
}

#[test]
fn a_sound_manifest_is_taken() {
    assert!(!is_refused(&HALF_DONE.layout));
    works_or_is_refused(&HALF_DONE.layout);
}

#[test]
fn trims_that_cannot_be_are_refused() {
    refused(|layout| {
        let table = trimmed(layout);
        std::mem::swap(&mut table.from, &mut table.to);
    });
    refused(|layout| trimmed(layout).to.push(b'~'));
    refused(|layout| trimmed(layout).from = Vec::new());
    refused(|layout| trimmed(layout).is_trimmed = false);
    refused(|layout| trimmed(layout).skipped = 0);
    refused(|layout| trimmed(layout).entries = 0);
    refused(|layout| trimmed(layout).file_entries += 1);
    refused(|layout| trimmed(layout).skipped = u64::MAX);
}

#[test]
fn pieces_of_a_table_that_overlap_are_refused() {
    refused(|layout| {
        let piece = trimmed(layout).clone();
        let run = layout.runs.iter_mut().find(|run| run.id == piece.run).expect("its run");
        run.tables.insert(0, piece);
    });
}

#[test]
fn a_table_of_two_runs_is_refused() {
    refused(|layout| {
        let table = layout.runs[0].tables[0].clone();
        let run = layout.runs[1].id;
        layout.runs[1].tables.insert(0, TableRecord { run, ..table });
    });
    refused(|layout| {
        let run = layout.next_file;
        let tables = layout.runs[0].tables.clone();
        let tables = tables.into_iter().map(|table| TableRecord { run, ..table });
        layout.runs.insert(0, RunRecord { id: run, level: 0, tables: tables.collect() });
    });
}

#[test]
fn a_run_that_was_never_made_is_refused() {
    refused(|layout| {
        let id = layout.next_file + 1;
        layout.runs[0].id = id;
        layout.runs[0].tables.iter_mut().for_each(|table| table.run = id);
    });
}

#[test]
fn a_merge_that_goes_on_nowhere_is_refused() {
    refused(|layout| last_merge(layout).done_to.push(b'~'));
    refused(|layout| {
        last_merge(layout).span = Span::new(FlushNumber(0), FlushNumber(1 << 59)).unwrap()
    });
    refused(|layout| last_merge(layout).entries = u64::MAX);
    refused(|layout| {
        let oldest = last_merge(layout).oldest;
        last_merge(layout).inputs.push(oldest);
    });
    refused(|layout| {
        let first = last_merge(layout).inputs[0];
        last_merge(layout).inputs.push(first);
    });
    refused(|layout| last_merge(layout).inputs = vec![layout_of_newest()]);
}

/// The number of the newest run, which is farthest from the oldest one.
fn layout_of_newest() -> u64 {
    HALF_DONE.layout.runs[0].id
}

#[test] // The merge is begun anew, for the tree as it is.
fn a_merge_of_runs_that_are_not_there_is_over() {
    for change in [
        |merge: &mut LastMerge| merge.oldest = 7777,
        |merge: &mut LastMerge| {
            merge.inputs = vec![7777];
        },
    ] {
        let mut layout = HALF_DONE.layout.clone();
        change(last_merge(&mut layout));
        assert!(!is_refused(&layout));
        works_or_is_refused(&layout);
    }
}

#[test]
fn counts_that_nobody_can_add_up_are_refused() {
    let most = u64::MAX;
    refused(|layout| layout.runs.iter_mut().for_each(|run| run.tables[0].bytes = most));
    refused(|layout| {
        for run in &mut layout.runs {
            (run.tables[0].entries, run.tables[0].file_entries) = (most - 9, most - 9);
        }
    });
}

#[test]
fn partitions_that_cannot_be_are_refused() {
    refused(|layout| layout.cuts.swap(0, 1));
    refused(|layout| layout.cuts.insert(0, Vec::new()));
    refused(|layout| {
        let cut = layout.cuts[1].clone();
        layout.cuts.insert(1, cut);
    });
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn number(&mut self, near: u64) -> u64 {
        let numbers =
            [0, 1, near.wrapping_sub(1), near.wrapping_add(1), near / 2, 1 << 40, u64::MAX];
        numbers[self.below(numbers.len() as u64) as usize]
    }

    fn key(&mut self, near: &[u8]) -> Vec<u8> {
        match self.below(4) {
            0 => Vec::new(),
            1 => [near, b"\0"].concat(),
            2 => vec![0xff; 3],
            _ => format!("{:03}", self.below(400)).into_bytes(),
        }
    }

    fn place(&mut self, len: usize) -> usize {
        self.below(len.max(1) as u64) as usize
    }
}

/// Changes a field of a table. Returns a description.
fn change_table(table: &mut TableRecord, random: &mut Random) -> &'static str {
    match random.below(10) {
        0 => table.from = random.key(&table.from),
        1 => table.to = random.key(&table.to),
        2 => table.run = random.number(table.run),
        3 => table.level = random.below(65) as usize,
        4 => {
            let (lo, hi) = (random.number(table.span.lo().0), random.number(table.span.hi().0));
            table.span = Span::new(FlushNumber(lo), FlushNumber(hi)).unwrap_or(table.span);
        }
        5 => table.is_trimmed = !table.is_trimmed,
        6 => table.skipped = random.number(table.skipped),
        7 => table.entries = random.number(table.entries),
        8 => table.file_entries = random.number(table.file_entries),
        _ => table.bytes = random.number(table.bytes),
    }
    "a table"
}

fn change_merge(merge: &mut LastMerge, random: &mut Random) -> &'static str {
    match random.below(5) {
        0 => merge.oldest = random.number(merge.oldest),
        1 => merge.inputs.push(random.below(60)),
        2 => merge.done_to = random.key(&merge.done_to),
        3 => merge.entries = random.number(merge.entries),
        _ => {
            let hi = FlushNumber(random.number(merge.span.hi().0));
            merge.span = Span::new(FlushNumber(0), hi).unwrap_or(merge.span);
        }
    }
    "the merge"
}

/// Changes a part of a layout. Returns a description.
fn change(layout: &mut Layout, random: &mut Random) -> &'static str {
    match random.below(11) {
        0..5 => {
            let run = random.place(layout.runs.len());
            let tables = &mut layout.runs[run].tables;
            let table = random.place(tables.len());
            change_table(&mut tables[table], random)
        }
        5 | 6 => change_merge(last_merge(layout), random),
        7 => {
            let place = random.place(layout.cuts.len());
            layout.cuts[place] = random.key(&layout.cuts[place].clone());
            "a partition"
        }
        8 => {
            let place = random.place(layout.flushes.len());
            let record = &mut layout.flushes[place];
            record.first = Sequence(random.number(record.first.0));
            "a flush"
        }
        9 => {
            let place = random.place(layout.images.len());
            let image = &mut layout.images[place];
            image.lower = random.key(&image.lower);
            image.watermark = FlushNumber(random.number(image.watermark.0));
            "an image"
        }
        _ => {
            layout.next_flush = FlushNumber(random.number(layout.next_flush.0));
            layout.last_sequence = Sequence(random.number(layout.last_sequence.0));
            "numbers"
        }
    }
}

#[test]
fn nonsense_with_right_checksums_is_refused_or_does_no_harm() {
    let mut opened = 0;
    for seed in 0..300 {
        let (mut random, mut layout) = (Random(seed), HALF_DONE.layout.clone());
        let changes: Vec<_> =
            (0..1 + random.below(2)).map(|_| change(&mut layout, &mut random)).collect();
        let run = || {
            opened += u32::from(!is_refused(&layout));
            works_or_is_refused(&layout);
        };
        let went_well = catch_unwind(AssertUnwindSafe(run));
        assert!(went_well.is_ok(), "seed {seed}, with changes of {changes:?}");
    }
    assert!((25..275).contains(&opened), "{opened} of 300 were opened");
}

#[test] // The error used to say that a value was too long.
#[cfg(target_pointer_width = "64")]
fn an_edit_beyond_a_record_is_told_as_what_it_is() {
    let max = u32::MAX as usize;
    check_record(max, 9).expect("as much as fits");
    let refused = check_record(max + 1, 30_000).expect_err("one byte too many");
    let message = Error::io("db/MANIFEST")(refused).to_string();
    assert!(message.starts_with("db/MANIFEST: ") && message.contains("30000 tables"), "{message}");
}
