//! Every operation of the public interface, for the laws of cost.
//! Invariant: what `Db`, `Snapshot`, `Scan`, `Queue` and `PinnedTree` offer is in one of the lists: `every_operation_is_in_the_lists`.

use std::time::Duration;

use trommel_filters::Query;

use super::{VALUE, World, key};
use crate::Batch;

/// An operation, of which some are done in a row; told which it is of all.
pub(super) type Operation = (&'static str, fn(&mut World, u64));

/// Those that cost about as much whatever there is.
pub(super) const OPERATIONS: &[Operation] = &[
    ("get, there", |world, i| assert!(world.db().get(key(b'z', i)).expect("gets").is_some())),
    ("get, not there", |world, i| assert!(world.db().get(key(b'b', i)).expect("gets").is_none())),
    ("get, in the pattern", |world, i| drop(world.db().get(key(b'm', i % 8)).expect("gets"))),
    ("multi_get", |world, i| {
        let keys: Vec<_> = (0..8).map(|at| key(b'm', at * i)).collect();
        assert!(world.db().multi_get(&keys).into_iter().all(|got| got.is_ok()));
    }),
    ("snapshot get", |world, i| {
        world.at_snapshots(|snapshot| {
            assert!(snapshot.get(key(b'a', i)).expect("gets").is_some());
            drop(snapshot.get(key(b'm', i)).expect("gets"));
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
        assert!(world.db().range::<&[u8]>(..).take(150).all(|entry| entry.is_ok()));
    }),
    ("next_back", |world, _| {
        assert!(world.db().range::<&[u8]>(..).rev().take(150).all(|entry| entry.is_ok()));
    }),
    ("next_lent, next_back_lent", |world, _| {
        let mut scan = world.db().range::<&[u8]>(..);
        (0..60).for_each(|_| drop(scan.next_lent().expect("there").expect("reads")));
        (0..60).for_each(|_| drop(scan.next_back_lent().expect("there").expect("reads")));
    }),
    ("snapshot range", |world, _| {
        world.at_snapshots(|snapshot| {
            assert!(snapshot.range::<&[u8]>(..).take(120).all(|entry| entry.is_ok()));
            assert!(snapshot.range::<&[u8]>(..).rev().take(120).all(|entry| entry.is_ok()));
        });
    }),
    ("snapshot, taken and dropped", |world, _| drop(world.db().snapshot())),
    ("queue", |world, i| {
        let mut queue = world.db().queue(4);
        queue.submit_get(key(b'm', 5), i);
        queue.submit_get(key(b'z', i), i);
        queue.submit_range(key(b'z', 0).., 3, i);
        drop(queue.poll());
        while queue.wait().is_some() {}
        assert_eq!(queue.under_way(), 0);
    }),
    ("approximate_count, count", |world, i| {
        let range = key(b'z', i)..key(b'z', i + 5);
        let most = world.db().approximate_count(range.clone()).expect("counts").most;
        assert!(most >= 5 && world.db().count(range).expect("counts") <= most);
    }),
    ("may_contain_range, multi_may_contain", |world, i| {
        assert!(world.db().may_contain_range(key(b'z', i)..).expect("asks"));
        let ranges = [key(b'm', i)..key(b'm', i + 1), key(b'b', 0)..key(b'c', 0)];
        assert_eq!(world.db().multi_may_contain(&ranges).expect("asks").len(), 2);
    }),
    ("put", |world, i| world.put(b'z', i)),
    ("put_ttl", |world, i| {
        let hour = Duration::from_secs(3600);
        world.db().put_ttl(key(b'z', i), VALUE, hour).expect("puts");
    }),
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
    ("write_synced", |world, i| {
        let mut batch = Batch::new();
        batch.put(key(b'z', i), VALUE);
        world.db().write_synced(batch).expect("writes");
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
];

/// Those that go over all that there is, in this order.
pub(super) const WHOLE: &[Operation] = &[
    ("checkpoint", |world, _| {
        world.checkpoints += 1;
        let dir = format!("copy{}", world.checkpoints);
        world.db().checkpoint(dir).expect("copies");
    }),
    ("close", |world, _| {
        world.held.clear();
        world.db.take().expect("it is open").close().expect("closes");
    }),
    ("verify_files", |world, _| {
        let report = crate::verify_files_with("db", &world.environment()).expect("reads");
        assert!(report.damage.is_empty());
    }),
    ("dump", |world, _| {
        crate::dump(&world.disk, "db", &mut |_| std::ops::ControlFlow::Continue(()))
            .expect("tells");
    }),
    ("repair", |world, _| {
        assert!(!crate::repair_with("db", &world.environment()).expect("reads").changed);
    }),
    ("open", |world, _| world.open()),
    ("flush", |world, _| world.db().flush().expect("flushes")),
    ("verify", |world, _| assert!(world.db().verify().expect("reads").damage.is_empty())),
    ("ingest", |world, _| {
        let entries = (0..100).map(|n| (key(b'x', n), VALUE));
        assert_eq!(world.db().ingest(entries).expect("loads"), 100);
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

#[test]
fn every_operation_is_in_the_lists() {
    let sources = [
        include_str!("db.rs"),
        include_str!("snapshots.rs"),
        include_str!("scan.rs"),
        include_str!("queue.rs"),
        include_str!("pinned_tree.rs"),
    ];
    // They tell what they were made with, or are what one that is here calls, or is called by.
    let others = ["expiry_after", "path", "sequence", "try_ingest", "open_with"];
    let here = include_str!("cost_laws_operations.rs");
    let is_measured = |name: &str| {
        let by = |before: &str, after: &str| here.contains(&format!("{before}{name}{after}"));
        others.contains(&name) || by(".", "(") || by(".", "::<") || by("world.", "(")
    };
    let names = sources.iter().flat_map(|source| source.split("    pub fn ").skip(1));
    let names =
        names.filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    let missing: Vec<&str> = names.filter(|name| !is_measured(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
