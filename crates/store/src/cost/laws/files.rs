//! Laws of cost. Operations that read files from end to end are linear in the files' lengths.
//! Operations that change a tree of many tables are not quadratic in their number.
//! ```text
//! Counted -> Memory       bytes read, with 1x and 10x rows, in tables and in a log
//! ```
//! Invariant: no byte of a file is read more often than `READERS` allows, however many bytes there
//! are.

use std::path::Path;

use trommel_filters::FlushNumber;

use super::counted::Counted;
use super::{Cost, Law, World};
use crate::entries::keyspace_id::KeyspaceId;
use crate::files::manifest::Manifest;
use crate::plan::layout::tests::table;
use crate::plan::layout::{Edit, Layout, TableRecord};
use crate::plan::store_layout::{LogNumbers, StoreEdit, StoreLayout};
use crate::shared::environment::Environment;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::Storage;

/// Makes a tree of this many tables.
fn wide_layout(tables: u64) -> Layout {
    let added = (0..tables).map(|n| {
        let (from, to) = (super::key(b'm', n).to_vec(), super::key(b'm', n + 1).to_vec());
        TableRecord { from, to, ..table(n + 1, 1, 0, 0, 1) }
    });
    let (next_file, next_flush) = (Some(1 << 40), Some(FlushNumber(1)));
    let edit = Edit { added: added.collect(), next_file, next_flush, ..Edit::default() };
    Layout::default().apply(&edit).expect("a tree")
}

/// Merges one table at a time until the manifest is about to be rewritten. Returns the cost of
/// reading the manifest then.
fn cost_of_grown_manifest(tables: u64) -> Cost {
    let mut world = World::new(|options| options);
    let folder = OpenFolder::on(&world.disk, "db");
    let mut layout = wide_layout(tables);
    let manifest = StoreLayout::of(layout.clone(), LogNumbers::default());
    let mut manifest = Manifest::create(&folder, manifest).expect("writes");
    let (mut merges, mut len) = (0, 0);
    loop {
        let old = &layout.runs[0].tables[(merges * 7 % tables) as usize];
        let new = TableRecord { file: tables + 1 + merges, ..old.clone() };
        let edit = Edit { removed: vec![old.file], added: vec![new], ..Edit::default() };
        let next = layout.clone().followed_by(&edit).expect("a merge");
        let before = world.disk.file("db/MANIFEST").expect("is there");
        manifest.append(&StoreEdit::of_tree(KeyspaceId::DEFAULT, edit)).expect("writes");
        let after = world.disk.file("db/MANIFEST").expect("is there").len();
        if after < len {
            world.disk.put_file("db/MANIFEST", before);
            assert!(merges >= tables.min(900), "it begins anew after {merges} edits");
            return world.cost(|_| drop(Manifest::read(&folder).expect("reads")));
        }
        (layout, merges, len) = (next, merges + 1, after);
    }
}

#[test]
fn reading_a_manifest_takes_no_square_of_its_tables() {
    let costs = [200, 2000].map(cost_of_grown_manifest);
    assert_eq!(costs[0].breaks(costs[1], Law::Linear), None);
}

/// A change of a tree looks at its tables a few times, however many there are.
#[test]
fn changes_of_a_tree_take_no_square_of_its_tables() {
    let mut worlds = [100, 1000].map(|tables| {
        let world = World::new(|options| options.table_bytes(4096));
        let rows = (0..tables).map(|n| (super::key(b'm', n), [7; 4096]));
        world.db().ingest(rows).expect("loads");
        world
    });
    let changes: [(&str, Change); 3] = [
        ("a flush", |world| {
            world.put(b'm', 5);
            world.db().flush().expect("flushes");
        }),
        ("a merge of all", |world| world.db().compact().expect("merges")),
        ("a merge in which all is deleted", |world| {
            world.delete_range(0, u64::MAX);
            world.db().compact().expect("merges");
        }),
    ];
    for (name, change) in changes {
        let costs = worlds.each_mut().map(|world| world.cost(|world| change(world)));
        assert_eq!(costs[0].breaks(costs[1], Law::Linear), None, "{name}");
    }
}

/// Makes a closed store with this many rows in tables, and as many in the log.
fn closed_store(rows: u64) -> World {
    let mut world = World::new(|options| options);
    (0..rows).for_each(|n| world.put(b'm', n));
    world.db().compact().expect("merges");
    (0..rows).for_each(|n| world.put(b'n', n));
    world.db.take().expect("it is open").close().expect("closes");
    world
}

/// Returns the bytes of the store's files whose names have this ending.
pub(super) fn file_bytes(world: &World, ending: &str) -> u64 {
    let names = world.disk.list("db".as_ref()).expect("lists").into_iter();
    let ours = names.filter(|name| name.ends_with(ending));
    let bytes = ours.map(|name| world.disk.file(Path::new("db").join(name)).map_or(0, |f| f.len()));
    bytes.sum::<usize>() as u64
}

type Change = fn(&World);
type Call = fn(&Counted, &Environment);

/// The calls that read files from end to end, which files, and at most how often.
const READERS: [(&str, Call, &str, u64); 4] = [
    (
        "verify_files",
        |_, environment| {
            assert!(
                crate::tools::verify_files_with("db", environment)
                    .expect("reads")
                    .damage
                    .is_empty()
            );
        },
        "",
        3,
    ),
    (
        "dump",
        |disk, _| {
            crate::tools::dump(disk, "db", &mut |_| std::ops::ControlFlow::Continue(()))
                .expect("tells");
        },
        "",
        2,
    ),
    (
        "repair",
        |_, environment| {
            assert!(!crate::tools::repair_with("db", environment).expect("reads").changed);
        },
        "",
        4,
    ),
    (
        "peek",
        |disk, _| drop(crate::tree::peek::peek_with(disk, "db".as_ref()).expect("looks")),
        "MANIFEST",
        2,
    ),
];

/// Returns the bytes that a call reads, and its cost.
fn cost_of(world: &mut World, call: Call) -> (u64, Cost) {
    let disk = Counted::of(&world.disk);
    let environment = disk.environment();
    let cost = world.cost(|_| call(&disk, &environment));
    (disk.read_bytes(), cost)
}

#[test]
fn who_reads_files_from_end_to_end_reads_no_more_than_they_have() {
    let mut worlds = [1000, 10_000].map(closed_store);
    for (name, call, ending, times) in READERS {
        let costs = worlds.each_mut().map(|world| {
            let (read, cost) = cost_of(world, call);
            let there = file_bytes(world, ending);
            assert!(read >= there, "{name}: {read} bytes of {there} are read");
            assert!(read <= times * there, "{name}: {read} bytes of {there} are read");
            cost
        });
        assert_eq!(costs[0].breaks(costs[1], Law::Linear), None, "{name}");
    }
}
