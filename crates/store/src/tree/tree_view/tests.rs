//! A follower of a tree hears of every change, and a pinned tree tells the truth about keys.

use crate::research::Research as _;
use trommel_guards::kinds;

use super::*;
use crate::db::Db;
use crate::plan::background::Background;
use crate::plan::guard_kind::GuardKind;
use crate::plan::options::Options;
use crate::plan::policy::Policy;
use crate::shared::environment::Environment;
use crate::storage::memory::Memory;
use crate::sync::Mutex;

fn options(guard: GuardKind, background: Background) -> Options {
    Options::new().guard(guard).background(background).size_ratio(3)
}

fn open(options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    Db::open_with("db", options, environment).expect("opens")
}

/// Collects every tree that a store has from now on.
fn followed(db: &Db) -> Arc<Mutex<Vec<PinnedTree>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let of_follower = Arc::clone(&seen);
    db.follow_tree(move |tree| of_follower.lock().expect("no panic").push(tree)).expect("open");
    seen
}

/// A key that every fifth flush writes, with the flush as its value.
const KEY: &[u8] = b"again";

fn write_flush(db: &Db, flush: u64) {
    (0..20).for_each(|n: u64| db.put((n * 100 + flush).to_be_bytes(), "value").expect("puts"));
    if flush.is_multiple_of(5) {
        db.put(KEY, flush.to_be_bytes()).expect("puts");
    }
    db.flush().expect("flushes");
}

#[test]
fn no_change_of_the_tree_is_passed_over() {
    for background in [Background::Stepped, Background::Threads(2)] {
        let db = open(options(GuardKind::Grf, background));
        let seen = followed(&db);
        (0..60).for_each(|flush| write_flush(&db, flush));
        db.settle().expect("merges");
        db.unfollow_tree().expect("open");
        write_flush(&db, 60);
        let trees: Vec<TreePeek> =
            seen.lock().expect("no panic").iter().map(PinnedTree::peek).collect();
        let runs_change = |pair: &&[TreePeek]| pair[0].runs != pair[1].runs;
        let changes: Vec<_> = trees.windows(2).filter(runs_change).collect();
        let flushes = changes.iter().filter(|pair| pair[1].flushes > pair[0].flushes);
        assert_eq!(flushes.count(), 60, "{background:?}");
        let stats = db.stats().expect("open");
        // In either mode, the follower did not see this flush, nor the merges that it made due.
        assert_eq!((stats.flushes, trees.last().map(|tree| tree.flushes)), (61, Some(60)));
        let merges = changes.len() as u64 - 60;
        assert!(stats.merges >= merges && stats.merges - merges <= 3, "{merges} of {stats:?}");
    }
}

#[test]
fn what_is_said_of_keys_is_so() {
    let guards = [
        GuardKind::Grf,
        GuardKind::Open,
        GuardKind::Table(kinds::BLOCKED_BLOOM),
        GuardKind::Locator(kinds::CHUCKY),
    ];
    for guard in guards {
        let policy = Policy::tiering();
        let db = open(options(guard, Background::Stepped).policy(policy));
        let seen = followed(&db);
        let mut holder_count = 0;
        for flush in 0..50 {
            write_flush(&db, flush);
            loop {
                for tree in seen.lock().expect("no panic").drain(..) {
                    let newest = tree.peek().flushes.checked_sub(1).map(|last| last - last % 5);
                    let (holders, candidates) =
                        (tree.holders(KEY).expect("reads"), tree.candidates(KEY));
                    let span = holders.first().map(|&place| tree.peek().runs[place].span);
                    let is_there = |(lo, hi): (u64, u64)| newest.is_some_and(|n| lo <= n && n < hi);
                    assert!(newest.is_none() || span.is_some_and(is_there), "{guard}: {tree:?}");
                    assert!(holders.iter().all(|place| candidates.contains(place)), "{guard}");
                    holder_count += holders.len();
                    // Each run has one table here.
                    let searched = tree.asked_tables(KEY).expect("reads");
                    let levels: Vec<usize> = tree.peek().runs.iter().map(|run| run.level).collect();
                    assert_eq!((tree.table_levels(), searched.last()), (levels, holders.first()));
                    assert_eq!(tree.guard_codes(&Query::Point(KEY)).is_some(), tree.has_codes());
                }
                if !db.step().expect("steps") {
                    break;
                }
            }
            let value = db.get(KEY).expect("reads").expect("is there");
            assert_eq!(*value, (flush - flush % 5).to_be_bytes());
        }
        assert!(holder_count > 100, "{guard}: {holder_count}");
    }
}

impl PinnedTree {
    fn has_codes(&self) -> bool {
        use crate::guard::Guard;
        matches!(self.version.guard, Guard::Global(_) | Guard::Locator(_))
    }
}
