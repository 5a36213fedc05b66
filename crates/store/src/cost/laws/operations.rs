//! Every operation of the public interface, for the laws of cost.
//!
//! Invariant: every method of `Db`, `Snapshot`, `Scan`, `Queue`, `PinnedTree` and `Batch` is in one
//! of the lists, or in the file of its laws. So is each function of the crate. The test is
//! `every_operation_is_in_the_lists`.

use crate::research::Research as _;
use crate::tools::progress::unheard;
use std::time::Duration;

use trommel_filters::Query;

use super::{VALUE, World, key};
use crate::{Batch, Expiry, Isolation, KeyspaceOptions, Update};

/// The name of an operation, and its function. It gets the number of the call, since it is called
/// several times in a row.
pub(super) type Operation = (&'static str, fn(&mut World, u64));

/// Operations whose cost hardly depends on how much there is.
pub(super) const OPERATIONS: &[Operation] = &[
    ("get, there", |world, i| assert!(world.db().get(key(b'z', i)).expect("gets").is_some())),
    ("get, not there", |world, i| assert!(world.db().get(key(b'b', i)).expect("gets").is_none())),
    ("get_if_cached", |world, i| {
        drop(world.db().get_if_cached(key(b'z', i)).transpose().expect("gets"));
    }),
    ("get, in the pattern", |world, i| drop(world.db().get(key(b'm', i % 8)).expect("gets"))),
    ("multi_get", |world, i| {
        let keys: Vec<_> = (0..8).map(|at| key(b'm', at * i)).collect();
        assert!(world.db().multi_get(&keys).into_iter().all(|got| got.is_ok()));
    }),
    ("snapshot get", |world, i| {
        world.at_snapshots(|snapshot| {
            assert!(snapshot.get(key(b'a', i)).expect("gets").is_some());
            drop(snapshot.get(key(b'm', i)).expect("gets"));
            drop(snapshot.get_if_cached(key(b'm', 5)).transpose().expect("gets"));
            assert!(snapshot.multi_get(&[key(b'm', 5)]).into_iter().all(|got| got.is_ok()));
        });
    }),
    ("range, first step", |world, _| {
        assert!(world.db().range(key(b'm', 0)..).next().expect("there").is_ok());
    }),
    ("range, first step back", |world, _| {
        assert!(world.db().range(..key(b'n', 0)).next_back().expect("there").is_ok());
    }),
    ("range, closed", |world, i| {
        let found = world.db().range(key(b'm', i)..key(b'm', i + 3)).next();
        assert!(found.is_none_or(|found| found.is_ok()));
    }),
    ("next", |world, _| {
        assert!(world.db().range(..).take(150).all(|entry| entry.is_ok()));
    }),
    ("next_back", |world, _| {
        assert!(world.db().range(..).rev().take(150).all(|entry| entry.is_ok()));
    }),
    ("iter, prefix, seek, seek_back", |world, i| {
        let mut scan = world.db().iter();
        scan.seek(key(b'm', i));
        scan.seek_back(key(b'z', 0));
        assert!(scan.next().is_none_or(|found| found.is_ok()));
        assert!(scan.next_back().is_none_or(|found| found.is_ok()));
        assert!(world.db().prefix("z").next().is_none_or(|found| found.is_ok()));
    }),
    ("contains_key", |world, i| {
        world.db().contains_key(key(b'z', i)).expect("reads");
    }),
    ("first_key_value", |world, _| {
        assert!(world.db().first_key_value().expect("reads").is_some());
    }),
    ("last_key_value", |world, _| {
        assert!(world.db().last_key_value().expect("reads").is_some());
    }),
    ("multi_get_packed", |world, i| {
        let mut values = Vec::new();
        let keys = [key(b'm', 5), key(b'z', i)];
        world.db().multi_get_packed(&keys, &mut values).expect("reads");
    }),
    ("next_packed, next_back_packed", |world, _| {
        let (mut scan, mut rows) = (world.db().range(..), Vec::new());
        assert!(scan.next_packed(&mut rows, 1 << 10).expect("reads") > 0);
        assert!(scan.next_back_packed(&mut rows, 1 << 10).expect("reads") > 0);
    }),
    ("next_lent, next_back_lent", |world, _| {
        let mut scan = world.db().range(..);
        (0..60).for_each(|_| drop(scan.next_lent().expect("there").expect("reads")));
        (0..60).for_each(|_| drop(scan.next_back_lent().expect("there").expect("reads")));
    }),
    ("snapshot range", |world, _| {
        world.at_snapshots(|snapshot| {
            assert!(snapshot.range(..).take(120).all(|entry| entry.is_ok()));
            assert!(snapshot.range(..).rev().take(120).all(|entry| entry.is_ok()));
        });
    }),
    ("snapshot, taken and dropped", |world, _| drop(world.db().snapshot())),
    ("changes_since", |world, _| {
        let newest = world.db().snapshot().sequence();
        assert!(world.db().changes_since(newest).expect("is there").next().is_none());
    }),
    ("queue", |world, i| {
        let mut queue = world.db().queue(4);
        queue.submit_get(key(b'm', 5), i);
        queue.submit_get(key(b'z', i), i);
        queue.submit_range(key(b'z', 0).., 3, i);
        drop(queue.poll());
        while queue.wait().is_some() {}
        assert_eq!(queue.under_way(), 0);
    }),
    ("approximate_count, estimate_count", |world, i| {
        let range = key(b'z', i)..key(b'z', i + 5);
        let most = world.db().approximate_count(range.clone()).expect("counts").most;
        assert!(most >= 5 && world.db().estimate_count(range).expect("counts") <= most);
    }),
    ("may_contain_range, multi_may_contain", |world, i| {
        assert!(world.db().may_contain_range(key(b'z', i)..).expect("asks"));
        let ranges = [key(b'm', i)..key(b'm', i + 1), key(b'b', 0)..key(b'c', 0)];
        assert_eq!(world.db().multi_may_contain(ranges.clone()).expect("asks").len(), 2);
    }),
    ("put", |world, i| world.put(b'z', i)),
    ("put, giving_up", |world, i| crate::giving_up(|| true, || world.put(b'z', i))),
    ("put_ttl", |world, i| {
        let hour = Duration::from_secs(3600);
        world.db().put_ttl(key(b'z', i), VALUE, hour).expect("puts");
    }),
    ("merge", |world, i| world.db().merge(key(b'z', i), VALUE).expect("merges")),
    ("delete", |world, i| world.db().delete(key(b'y', i)).expect("deletes")),
    ("delete_range", |world, i| world.delete_range(i % 4, 5 * i + 9)),
    ("write", |world, i| {
        let mut batch = Batch::new();
        batch
            .put(key(b'z', i), VALUE)
            .delete(key(b'y', i))
            .delete_range(key(b'm', i), key(b'n', i));
        world.db().write(batch).expect("writes");
    }),
    ("from_packed", |world, i| {
        let bytes = [&[2, 9, 0, 0, 0, 0, 0, 0, 0][..], &key(b'y', i)].concat();
        let batch = Batch::from_packed(&bytes).expect("a deletion");
        world.db().write(batch).expect("writes");
    }),
    ("write_synced", |world, i| {
        let mut batch = Batch::new();
        batch.put(key(b'z', i), VALUE);
        world.db().write_synced(batch).expect("writes");
    }),
    ("update, compare_and_swap", |world, i| {
        let key = key(b'z', i);
        world.db().update(key, |_| Update::Put(VALUE.to_vec())).expect("writes");
        world.db().compare_and_swap(key, Some(&VALUE), Some(&VALUE)).expect("writes");
    }),
    ("put_if_absent, fetch_add", |world, i| {
        world.db().put_if_absent(key(b'y', i), VALUE).expect("writes");
        world.db().delete(key(b'y', i)).expect("deletes");
        world.db().fetch_add(key(b'y', 1 << 40), 1).expect("adds");
    }),
    ("transaction", |world, i| {
        let transaction = world.db().transaction();
        transaction.get(key(b'z', i)).expect("reads");
        let mut scan = transaction.range(key(b'm', 0)..);
        (0..3).for_each(|_| drop(scan.next_lent().expect("there").expect("reads")));
        (0..3).for_each(|_| drop(scan.next_back_lent().expect("there").expect("reads")));
        drop(scan);
        transaction.put(key(b'z', i), VALUE).expect("puts");
        let before = transaction.savepoint();
        transaction.delete(key(b'y', i)).expect("deletes");
        transaction.roll_back_to(&before);
        transaction.commit().expect("nobody else writes");
    }),
    ("transaction_with, run", |world, i| {
        let transaction = world.db().transaction_with(Isolation::Snapshot);
        let part = transaction.of(world.db());
        part.get_for_update(key(b'b', i)).expect("reads");
        part.put_ttl(key(b'z', i), VALUE, Duration::from_secs(3600)).expect("puts");
        part.delete_range(key(b'y', i), key(b'y', i + 1)).expect("deletes");
        transaction.commit_synced().expect("nobody else writes");
        world.db().run(|transaction| transaction.delete(key(b'y', i))).expect("commits");
    }),
    ("snapshot, of", |world, i| {
        let snapshot = world.db().snapshot().of(world.db());
        assert!(snapshot.get(key(b'a', i)).expect("gets").is_some());
    }),
    ("sync", |world, i| {
        world.put(b'z', i);
        world.db().sync().expect("syncs");
    }),
    ("trace_guard", |world, i| {
        world.db().trace_guard(&Query::Point(&key(b'z', i)));
    }),
    ("pinned_tree, asked", |world, i| {
        let (tree, key) = (world.db().pinned_tree(), key(b'z', i));
        drop(tree.guard_codes(&Query::Point(&key)));
        let may_hold = tree.candidates(&key);
        let holders = tree.holders(&key).expect("reads");
        assert!(holders.iter().all(|run| may_hold.contains(run)));
        drop(tree.asked_tables(&key).expect("reads"));
        let _ = tree.filter_bytes();
    }),
    ("pinned_tree, told whole", |world, _| {
        let tree = world.db().pinned_tree();
        let tables: u64 = tree.peek().runs.iter().map(|run| run.tables).sum();
        assert_eq!(tree.table_levels().len() as u64, tables);
    }),
    ("follow_tree, unfollow_tree", |world, _| {
        world.db().follow_tree(drop).expect("follows");
        world.db().unfollow_tree().expect("ends it");
    }),
    ("stats", |world, _| assert!(world.db().stats().expect("open").sequence > 0)),
    ("keyspace, open_keyspace, rename_keyspace, drop_keyspace", |world, _| {
        let made = world.db().keyspace("made", KeyspaceOptions::new()).expect("makes");
        let mut batch = Batch::new();
        batch.to(&made).put([1], VALUE);
        world.db().write(batch).expect("writes");
        world.db().rename_keyspace("made", "named").expect("renames");
        assert!(
            world.db().open_keyspace("named").expect("opens").get([1]).expect("gets").is_some()
        );
        world.db().drop_keyspace("named").expect("drops");
    }),
    (FLUSH_OF_ONE, |world, i| {
        let one = world.db().keyspace("one", KeyspaceOptions::new()).expect("opens");
        one.put(key(b'm', i), VALUE).expect("puts");
        one.flush().expect("flushes");
    }),
];

/// The name of the operation whose cost must not depend on other key spaces.
pub(super) const FLUSH_OF_ONE: &str = "flush of a key space";

/// Operations that go through everything, run in this order.
pub(super) const WHOLE: &[Operation] = &[
    ("keyspaces", |world, _| {
        assert!(world.db().keyspaces().expect("tells").contains(&"default".into()));
    }),
    ("checkpoint", |world, _| {
        world.checkpoints += 1;
        let dir = format!("copy{}", world.checkpoints);
        world.db().checkpoint(dir).expect("copies");
    }),
    ("checkpoint_with_progress", |world, _| {
        world.checkpoints += 1;
        let dir = format!("copy{}", world.checkpoints);
        world.db().checkpoint_with_progress(dir, &mut unheard).expect("copies");
    }),
    ("close", |world, _| {
        world.held.clear();
        world.db.take().expect("it is open").close().expect("closes");
    }),
    ("verify_files", |world, _| {
        let report = crate::tools::verify_files_with("db", &world.environment()).expect("reads");
        assert!(report.damage.is_empty());
    }),
    ("dump", |world, _| {
        crate::tools::dump(&world.disk, "db", &mut |_| std::ops::ControlFlow::Continue(()))
            .expect("tells");
    }),
    ("peek", |world, _| {
        crate::tree::peek::peek_with(&world.disk, "db".as_ref()).expect("looks");
    }),
    ("peek_keyspaces", |world, _| {
        crate::tree::peek::peek_keyspaces_with(&world.disk, "db".as_ref()).expect("looks");
    }),
    ("repair", |world, _| {
        assert!(!crate::tools::repair_with("db", &world.environment()).expect("reads").changed);
    }),
    ("open", |world, _| world.open()),
    ("flush", |world, _| world.db().flush().expect("flushes")),
    ("verify", |world, _| assert!(world.db().verify().expect("reads").damage.is_empty())),
    ("verify_with_progress", |world, _| {
        let report = world.db().verify_with_progress(&mut unheard).expect("reads");
        assert!(report.damage.is_empty());
    }),
    ("repair_with_progress, verify_files_with_progress", |world, _| {
        let (environment, _closed) = (world.environment(), world.db.take());
        drop(_closed);
        let report = crate::tools::verify_files_with_progress("db", &environment, &mut unheard);
        assert!(report.expect("reads").damage.is_empty());
        let report = crate::tools::repair_with_progress("db", &environment, &mut unheard);
        assert!(!report.expect("reads").changed);
        world.open();
    }),
    ("ingest", |world, _| {
        let entries = (0..100).map(|n| (key(b'x', n), VALUE));
        assert_eq!(world.db().ingest(entries).expect("loads"), 100);
    }),
    ("ingest_unsorted", |world, _| {
        let entries = (0..100).map(|n| (key(b'x', n * 37 % 100), VALUE));
        assert_eq!(world.db().ingest_unsorted(entries, &Default::default()).expect("loads"), 100);
    }),
    ("compact_with_progress", |world, _| {
        world.db().compact_with_progress(&mut unheard).expect("merges");
    }),
    ("settle, compact", |world, _| {
        world.db().settle().expect("merges");
        world.db().compact().expect("merges");
    }),
    ("step, step_any, where nothing is due", |world, _| {
        world.db().step().expect("merges");
        world.db().step_any(0).expect("merges");
    }),
];

/// The name of an operation on a batch, and its function, which gets the number of the call.
pub(super) type BatchOperation = (&'static str, fn(&mut Batch, u64));

/// Only the names count, since methods of a batch are called like those of a store.
pub(super) const OF_BATCHES: &[BatchOperation] = &[
    ("new", |_, _| assert!(Batch::new().is_empty())),
    ("put", |batch, i| {
        batch.put(key(b'm', i), VALUE);
    }),
    ("put_ttl", |batch, i| {
        batch.put_ttl(key(b'm', i), VALUE, Duration::from_secs(i));
    }),
    ("put_with_expiry", |batch, i| {
        batch.put_with_expiry(key(b'm', i), VALUE, Expiry::at_milliseconds(i));
    }),
    ("merge", |batch, i| {
        batch.merge(key(b'm', i), VALUE);
    }),
    ("delete", |batch, i| {
        batch.delete(key(b'm', i));
    }),
    ("delete_range", |batch, i| {
        batch.delete_range(key(b'm', i), key(b'n', i));
    }),
    ("only_if", |batch, i| {
        batch.only_if(key(b'm', i), Some(&VALUE));
    }),
    ("len", |batch, _| assert_ne!(batch.len(), 0)),
    ("is_empty", |batch, _| assert!(!batch.is_empty())),
    ("size_bytes", |batch, _| assert!(batch.size_bytes() > 0)),
    ("clear", |batch, i| {
        batch.clear();
        batch.put(key(b'm', i), VALUE);
    }),
];

/// Returns the names of the public methods in a source, without hidden ones.
fn methods(source: &str) -> impl Iterator<Item = &str> {
    let pieces: Vec<&str> = source.split("    pub fn ").collect();
    let is_hidden = |before: &str| before.ends_with("#[doc(hidden)]\n");
    let rests = pieces.windows(2).filter(|two| !is_hidden(two[0])).map(|two| two[1]);
    let rests: Vec<&str> = rests.collect();
    let names = rests
        .into_iter()
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    names.filter(|name| !tells_progress(name))
}

/// Whether the method is like the one beside it, but reports progress.
fn tells_progress(name: &str) -> bool {
    name.ends_with("_with_progress")
}

/// Returns the names of a trait's methods.
fn trait_methods(source: &str) -> impl Iterator<Item = &str> {
    let declared = source.split("\nimpl ").next().unwrap_or_default();
    let rests = declared.split("    fn ").skip(1);
    rests.filter_map(|rest| rest.split('(').next())
}

/// Returns the names in the first column of the table in the document's section on the laws.
fn in_the_document() -> Vec<&'static str> {
    let document = include_str!("../../../../../docs/performance.md");
    let rest = document.split("\n## Laws of cost\n").nth(1).expect("a section of the laws");
    let section = rest.split("\n## ").next().expect("it ends");
    let table = section.split("\n| operation |").nth(1).expect("a table of operations");
    let rows = table.split("\n\n").next().expect("it ends").lines().skip(2);
    let operations = rows.map(|row| row.split('|').nth(1).expect("an operation"));
    operations.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

/// The sources with the crate's exported functions.
const SURFACE: &str = concat!(include_str!("../../lib.rs"), include_str!("../../tools/mod.rs"));
const RESEARCH: &str = include_str!("../../research.rs");

/// Operations of other handles that have laws: the handle, the method, and its source.
const OF_OTHERS: [(&str, &str, &str); 2] = [
    ("Follower::", "catch_up", include_str!("../../follow/mod.rs")),
    ("Backups::", "back_up", include_str!("../../backup/mod.rs")),
];

/// Returns the names of the crate's exported functions, which begin with a lower-case letter.
/// Functions that register kinds of filters concern the process, not a store, and are left out.
fn functions(root: &str) -> impl Iterator<Item = &str> {
    let given = root.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let names = given.flat_map(|given| {
        let (_, last) = given.rsplit_once("::").expect("it is of a module");
        last.split(|c: char| !c.is_alphanumeric() && c != '_')
    });
    let of_stores = |name: &&str| *name != "kinds" && !name.starts_with("register_");
    let names = names.filter(|name| name.starts_with(|c: char| c.is_lowercase()));
    names.filter(of_stores).filter(|name| !tells_progress(name))
}

#[test]
fn every_operation_is_in_the_lists() {
    let sources = [
        include_str!("../../db.rs"),
        include_str!("../../db/keyspace.rs"),
        include_str!("../../db/large_values.rs"),
        include_str!("../../db/single_keys.rs"),
        include_str!("../../db/snapshot.rs"),
        include_str!("../../db/transaction.rs"),
        include_str!("../../db/unsorted.rs"),
        include_str!("../../read/scan.rs"),
        include_str!("../../read/queue.rs"),
        include_str!("../../tree/tree_view.rs"),
    ];
    // They return what they were made with, or call, or are called by, an operation that is listed.
    let others = [
        "expiry_after",
        "path",
        "name",
        "sequence",
        "try_ingest",
        "try_ingest_unsorted",
        "open_with",
        "keys_only",
    ];
    let here = concat!(
        include_str!("operations.rs"),
        include_str!("copies.rs"),
        include_str!("large_values.rs")
    );
    let by = |before: &str, name: &str, after: &str| here.contains(&[before, name, after].concat());
    let is_measured = |name: &&str| {
        others.contains(name)
            || by(".", name, "(")
            || by(".", name, "::<")
            || by("world.", name, "(")
    };
    let missing: Vec<&str> = sources
        .into_iter()
        .flat_map(methods)
        .chain(trait_methods(RESEARCH))
        .filter(|name| !is_measured(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    for (of, name, source) in OF_OTHERS {
        assert!(methods(source).any(|method| method == name) && is_measured(&name), "{of}{name}");
    }
    // It makes a batch, so it is listed with the others.
    let of_batches = |name: &&str| {
        *name == "from_packed" || OF_BATCHES.iter().any(|operation| operation.0 == *name)
    };
    let missing: Vec<&str> =
        methods(include_str!("../../entries/batch.rs")).filter(|name| !of_batches(name)).collect();
    assert!(missing.is_empty(), "of batches: {missing:?}");
    // Or the variant with an explicit storage, for functions that use the system's disk.
    let is_called = |name: &&str| by("::", name, "(") || by("::", name, "_with(");
    let known: Vec<&str> = functions(SURFACE).collect();
    assert!(known.contains(&"dump") && known.contains(&"peek"), "{known:?}");
    let missing: Vec<&str> = known.into_iter().filter(|name| !is_called(name)).collect();
    assert!(missing.is_empty(), "of the crate: {missing:?}");
}

#[test]
fn every_operation_is_in_the_document() {
    let last = |source: &'static str, of: &str| source.split_once(of).expect("it comes last");
    let (of_keyspaces, keyspaces_of_batches) =
        last(include_str!("../../db/keyspace.rs"), "\nimpl Batch {");
    let (of_transactions, begins_transactions) =
        last(include_str!("../../db/transaction.rs"), "\nimpl Db {");
    let (of_transactions, of_their_scans) = last(of_transactions, "\npub struct TransactionScan");
    let sources = [
        ("", include_str!("../../db.rs")),
        ("", of_keyspaces),
        ("Batch::", keyspaces_of_batches),
        ("", include_str!("../../db/large_values.rs")),
        ("", include_str!("../../db/single_keys.rs")),
        ("", include_str!("../../db/unsorted.rs")),
        ("Snapshot::", include_str!("../../db/snapshot.rs")),
        ("Transaction::", of_transactions),
        ("TransactionScan::", of_their_scans),
        ("", begins_transactions),
        ("Scan::", include_str!("../../read/scan.rs")),
        ("Queue::", include_str!("../../read/queue.rs")),
        ("PinnedTree::", include_str!("../../tree/tree_view.rs")),
        ("Batch::", include_str!("../../entries/batch.rs")),
    ];
    let there = in_the_document();
    let named = sources
        .into_iter()
        .flat_map(|(of, source)| methods(source).map(move |name| [of, name].concat()))
        .chain(trait_methods(RESEARCH).map(str::to_string))
        .chain(OF_OTHERS.map(|(of, name, _)| [of, name].concat()));
    // A function with an explicit storage counts as the one beside it.
    let functions =
        functions(SURFACE).map(|name| name.strip_suffix("_with").unwrap_or(name).to_string());
    let all: Vec<String> = named.chain(functions).collect();
    assert!(all.len() > 60 && all.contains(&"Queue::wait".into()), "{all:?}");
    // A read at a snapshot counts as the read of its store.
    let is_there = |name: &&String| {
        let own = name.strip_prefix("Snapshot::").unwrap_or(name);
        there.contains(&name.as_str()) || there.contains(&own)
    };
    let missing: Vec<&String> = all.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "the table of the laws does not name {missing:?}");
    let unknown: Vec<&&str> =
        there.iter().filter(|name| !all.iter().any(|known| known == *name)).collect();
    assert!(unknown.is_empty(), "the table of the laws names {unknown:?}, which is not there");
}

#[test]
fn what_is_given_out_is_seen() {
    let root = "mod a;\npub use a::{Thing, thing, thing_with};\n\
                pub use b::{\n    Other, other,\n};\npub use c::one;\n";
    assert!(functions(root).eq(["thing", "thing_with", "other", "one"]));
    let source =
        "impl A {\n    pub fn new() {}\n    pub(crate) fn own() {}\n    pub fn get<K>(k: K) {}\n";
    assert!(methods(source).eq(["new", "get"]));
}
