//! The five ordering rules of the design (section 2), each with tests that fail when it is broken:
//! a pause in the gap between two steps lets the other thread's work happen exactly there.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use trommel::Environment;
use trommel::options::Granularity;
use trommel::storage::{Memory, Storage};
use trommel::testing::{Fault, PausePoint, Pauses};
use trommel::{Background, Batch, Db, GuardKind, Options};

type Action = Box<dyn FnOnce(&Db) + Send>;

/// A stepped store in which a test can put work into a gap.
struct Stage {
    disk: Memory,
    db: Arc<Db>,
    script: Arc<Script>,
}

#[derive(Default)]
struct Script {
    db: Mutex<Weak<Db>>,
    armed: Mutex<Option<(PausePoint, Action)>>,
    ran: AtomicUsize,
}

impl Stage {
    fn new(guard: GuardKind) -> Self {
        Stage::of(guard, Granularity::Partitioned)
    }

    /// Of every guard, in trees of every granularity.
    fn of_all_kinds() -> impl Iterator<Item = (String, Self)> {
        let granularities = [Granularity::Full, Granularity::Partitioned, Granularity::Partial];
        let of = |guard, granularity| {
            (format!("{guard}, {granularity:?}"), Stage::of(guard, granularity))
        };
        trommel_guards::all_guards()
            .into_iter()
            .flat_map(move |guard| granularities.map(|how| of(guard, how)))
    }

    fn of(guard: GuardKind, granularity: Granularity) -> Self {
        let disk = Memory::new();
        let script = Arc::new(Script::default());
        let at_gap = Arc::clone(&script);
        let environment = Environment::new()
            .storage(Arc::new(disk.clone()))
            .pauses(Pauses::new(move |point| at_gap.come_to(point)));
        let options = Options::new()
            .guard(guard)
            .granularity(granularity)
            .partition_bytes(1024)
            .size_ratio(3)
            .background(Background::Stepped)
            .block_cache_bytes(0);
        let db = Arc::new(Db::open_with(Path::new("db"), options, environment).expect("opens"));
        *script.db.lock().expect("not poisoned") = Arc::downgrade(&db);
        Stage { disk, db, script }
    }

    /// The next time a thread comes to `point`, `action` happens there.
    fn at(&self, point: PausePoint, action: impl FnOnce(&Db) + Send + 'static) {
        *self.script.armed.lock().expect("not poisoned") = Some((point, Box::new(action)));
    }

    fn assert_ran(&self, times: usize) {
        assert_eq!(self.script.ran.load(Ordering::SeqCst), times, "the gap was not come to");
    }

    fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.db.get(key).expect("gets").map(|value| value.to_vec())
    }
}

impl Script {
    fn come_to(&self, point: PausePoint) {
        let mut armed = self.armed.lock().expect("not poisoned");
        if armed.as_ref().is_none_or(|(wanted, _)| *wanted != point) {
            return;
        }
        let (_, action) = armed.take().expect("checked above");
        drop(armed);
        let db = self.db.lock().expect("not poisoned").upgrade().expect("the store is open");
        action(&db);
        self.ran.fetch_add(1, Ordering::SeqCst);
    }
}

fn value(text: &str) -> Option<Vec<u8>> {
    Some(text.as_bytes().to_vec())
}

fn put_and_flush(db: &Db, key: &str, value: &str) {
    db.put(key, value).expect("puts");
    db.flush().expect("flushes");
}

fn spans(db: &Db) -> Vec<(u64, u64)> {
    let stats = db.stats().expect("open");
    stats.levels.iter().flat_map(|level| &level.runs).map(|run| run.span).collect()
}

#[test]
fn rule_1_a_failed_flush_keeps_its_number_and_holds_later_ones_back() {
    for (_, stage) in Stage::of_all_kinds() {
        put_and_flush(&stage.db, "a", "0");
        stage.db.put("k", "old").expect("puts");
        stage.disk.fail_at(0, Fault::NoSpace);
        // The seal makes a new log; the fault may hit that or the flush. Either way an error comes
        // out.
        let mut failures = usize::from(stage.db.flush().is_err());
        assert_eq!(failures, 1, "the fault must show");
        stage.db.put("k", "new").expect("puts");
        for n in 0..3 {
            stage.disk.fail_at(n, Fault::Io);
            failures += usize::from(stage.db.flush().is_err());
            assert_eq!(stage.value("k"), value("new"), "while flushes fail");
        }
        assert!(failures >= 2, "flushes failed {failures} times");
        stage.disk.fail_at(1 << 40, Fault::Io);
        stage.db.flush().expect("the disk is well again");
        assert_eq!(stage.value("k"), value("new"));
        let spans = spans(&stage.db);
        assert!(spans.windows(2).all(|pair| pair[0].0 >= pair[1].1), "out of order: {spans:?}");
    }
}

#[test]
fn rule_1_a_batch_is_published_as_a_whole() {
    let stage = Stage::new(GuardKind::Grf);
    stage.at(PausePoint::WritesInserted, |db| {
        for key in ["a", "b"] {
            assert_eq!(db.get(key).expect("gets").as_deref(), None, "{key} shows before its batch");
        }
        assert_eq!(db.range(..).count(), 0);
    });
    let mut batch = Batch::new();
    batch.put("a", "1").put("b", "2");
    stage.db.write(batch).expect("writes");
    stage.assert_ran(1);
    assert_eq!(stage.db.range(..).count(), 2);
}

#[test]
fn rule_2_a_get_pins_before_it_takes_its_sequence_number() {
    for (kind, stage) in Stage::of_all_kinds() {
        put_and_flush(&stage.db, "k", "old");
        // In the gap the entry is replaced, and a merge drops it: no snapshot holds it. A get that
        // took its number first would look for the old entry where only the new one is left.
        stage.at(PausePoint::GetPinned, |db| {
            db.put("k", "new").expect("puts");
            db.compact().expect("compacts");
        });
        let found = stage.value("k");
        stage.assert_ran(1);
        assert!(
            found == value("old") || found == value("new"),
            "{kind}: the key is lost: {found:?}"
        );
    }
}

#[test]
fn rule_2_a_batch_of_gets_pins_before_it_takes_its_number() {
    for guard in trommel_guards::all_guards() {
        let stage = Stage::new(guard);
        put_and_flush(&stage.db, "k", "old");
        stage.at(PausePoint::GetPinned, |db| {
            db.put("k", "new").expect("puts");
            db.compact().expect("compacts");
        });
        let mut found = stage.db.multi_get(&["k", "k"]).into_iter().map(|value| {
            value.expect("gets").map(|value| String::from_utf8(value.to_vec()).expect("text"))
        });
        let (one, other) = (found.next().expect("two"), found.next().expect("two"));
        stage.assert_ran(1);
        assert_eq!(one, other, "{guard}: two moments in one batch");
        assert!(one.is_some(), "{guard}: the key is lost");
    }
}

#[test] // The value of another writer was replaced, and both had been told that there was none.
fn what_is_put_while_a_key_is_looked_for_is_not_replaced_by_put_if_absent() {
    for (kind, stage) in Stage::of_all_kinds() {
        // In the gap the pinned version's memtable is sealed, so the value goes into another one.
        stage.at(PausePoint::GetPinned, |db| {
            put_and_flush(db, "other", "1");
            db.put("k", "first").expect("puts");
        });
        let found = stage.db.put_if_absent("k", "second").expect("writes");
        stage.assert_ran(1);
        assert_eq!(found.as_deref(), Some(&b"first"[..]), "{kind}");
        assert_eq!(stage.value("k"), value("first"), "{kind}");
    }
}

#[test]
fn rule_2_a_scan_registers_before_it_pins() {
    for (kind, stage) in Stage::of_all_kinds() {
        put_and_flush(&stage.db, "k", "old");
        stage.at(PausePoint::SnapshotRegistered, |db| {
            db.put("k", "new").expect("puts");
            db.put("l", "later").expect("puts");
            db.compact().expect("compacts");
        });
        let found: Vec<_> = stage.db.range(..).map(|e| e.expect("reads")).collect();
        stage.assert_ran(1);
        assert_eq!(found.len(), 1, "{kind}: what came later shows");
        assert_eq!(&found[0].1[..], b"old", "{kind}: what was there is lost");
    }
}

#[test]
fn rule_2_a_merge_keeps_what_registered_numbers_see() {
    for (_, stage) in Stage::of_all_kinds() {
        put_and_flush(&stage.db, "k", "1");
        let first = stage.db.snapshot();
        put_and_flush(&stage.db, "k", "2");
        // A snapshot that is taken when the merge has copied the numbers is not among them: it
        // reads at the then visible number, which the merge counts as registered.
        let late = Arc::new(Mutex::new(None));
        let taken = Arc::clone(&late);
        stage.at(PausePoint::MergeStarted, move |db| {
            *taken.lock().expect("not poisoned") = Some(db.snapshot());
            db.put("k", "3").expect("puts");
        });
        stage.db.settle().expect("settles");
        stage.db.compact().expect("compacts");
        stage.assert_ran(1);
        assert_eq!(first.get("k").expect("gets").as_deref(), Some(&b"1"[..]));
        let late = late.lock().expect("not poisoned").take().expect("taken");
        assert_eq!(late.get("k").expect("gets").as_deref(), Some(&b"2"[..]));
        assert_eq!(stage.value("k"), value("3"));
    }
}

#[test]
fn rule_3_a_flush_prepares_again_when_a_merge_has_replaced_its_part() {
    let stage = Stage::new(GuardKind::Grf);
    put_and_flush(&stage.db, "a", "1");
    put_and_flush(&stage.db, "b", "2");
    stage.db.put("k", "new").expect("puts");
    stage.at(PausePoint::FlushPrepared, |db| {
        // The flush is busy, so these are the steps of the merge of a and b into the last level.
        while db.step().expect("steps") {}
        assert_eq!(db.stats().expect("open").merges, 1);
    });
    stage.db.flush().expect("flushes");
    stage.assert_ran(1);
    assert_eq!(stage.value("k"), value("new"), "the new part does not know the flushed key");
    assert_eq!(stage.value("a"), value("1"));
    assert_eq!(stage.db.verify().expect("verifies").damage, [""; 0]);
}

#[test]
fn rule_3_a_last_level_merge_catches_up_with_flushes() {
    let stage = Stage::new(GuardKind::Grf);
    put_and_flush(&stage.db, "a", "1");
    put_and_flush(&stage.db, "b", "2");
    stage.at(PausePoint::MergePrepared, |db| put_and_flush(db, "k", "new"));
    stage.db.settle().expect("settles");
    stage.assert_ran(1);
    assert_eq!(stage.value("k"), value("new"), "the rebuilt part does not know the flushed key");
    assert_eq!(stage.db.verify().expect("verifies").damage, [""; 0]);
}

#[test]
fn rule_3_a_flush_does_not_bring_a_replaced_part_back() {
    let stage = Stage::new(GuardKind::Grf);
    let gone: Vec<String> = (0..60).map(|n| format!("{}", n * 7919 % 1000)).collect();
    gone.iter().for_each(|key| stage.db.put(key, "1").expect("puts"));
    (0..400).for_each(|n| stage.db.put(format!("{}+", n * 7907 % 1000), "1").expect("puts"));
    stage.db.flush().expect("flushes");
    gone.iter().for_each(|key| stage.db.delete(key).expect("deletes"));
    // The merged table covers them all.
    stage.db.put(" ", "2").expect("puts");
    put_and_flush(&stage.db, "z", "2");
    stage.db.put("k", "new").expect("puts");
    stage.at(PausePoint::FlushPrepared, |db| {
        while db.step().expect("steps") {}
        assert_eq!(db.stats().expect("open").merges, 1);
    });
    stage.db.flush().expect("flushes");
    stage.assert_ran(1);
    let before = stage.db.stats().expect("open").point;
    assert!(gone.iter().all(|key| stage.value(key).is_none()));
    let costs = stage.db.stats().expect("open").point.since(&before);
    // The merge has dropped these keys; a part that still knows them is the old one.
    assert!(costs.false_positives < 45, "{} of 60", costs.false_positives);
}

/// Operations on the disk from the moment when a last-level merge is about to take the lock.
fn operations_while_installing(flush_beside: bool) -> u64 {
    let stage = Stage::new(GuardKind::Grf);
    put_and_flush(&stage.db, "a", "1");
    put_and_flush(&stage.db, "b", "2");
    let (script, disk) = (Arc::clone(&stage.script), stage.disk.clone());
    let prepared = Arc::new(AtomicU64::new(0));
    let at_end = Arc::clone(&prepared);
    stage.at(PausePoint::MergeStarted, move |db| {
        if flush_beside {
            put_and_flush(db, "k", "new");
        }
        let note = move |_: &Db| at_end.store(disk.operations(), Ordering::SeqCst);
        *script.armed.lock().expect("not poisoned") =
            Some((PausePoint::MergePrepared, Box::new(note)));
    });
    while stage.db.stats().expect("open").merges == 0 {
        assert!(stage.db.step().expect("steps"));
    }
    stage.assert_ran(2);
    stage.disk.operations() - prepared.load(Ordering::SeqCst)
}

#[test]
fn rule_3_a_merge_reads_no_table_under_the_lock_if_it_has_caught_up_outside() {
    assert_eq!(operations_while_installing(true), operations_while_installing(false));
}

#[test]
fn rule_4_a_base_entry_is_looked_for_in_the_last_level_alone() {
    let stage = Stage::new(GuardKind::Grf);
    put_and_flush(&stage.db, "k", "1");
    put_and_flush(&stage.db, "l", "1");
    stage.db.compact().expect("compacts");
    // A newer run whose bounds cover the key: a code that reaches beyond the last level meets it.
    stage.db.put("a", "2").expect("puts");
    put_and_flush(&stage.db, "z", "2");
    let before = stage.db.stats().expect("open").point;
    assert_eq!(stage.value("k"), value("1"));
    let costs = stage.db.stats().expect("open").point.since(&before);
    assert_eq!((costs.true_positives, costs.false_positives), (1, 0));
}

#[test]
fn rule_4_entries_that_were_carried_over_keep_their_own_codes() {
    let stage = Stage::new(GuardKind::Grf);
    put_and_flush(&stage.db, "a", "1");
    put_and_flush(&stage.db, "b", "2");
    stage.at(PausePoint::MergePrepared, |db| put_and_flush(db, "k", "new"));
    while stage.db.stats().expect("open").merges == 0 {
        assert!(stage.db.step().expect("steps"));
    }
    stage.assert_ran(1);
    let before = stage.db.stats().expect("open").point;
    assert_eq!(stage.value("k"), value("new"));
    assert_eq!(stage.value("a"), value("1"));
    let costs = stage.db.stats().expect("open").point.since(&before);
    // Coded as base entries they would be looked for in the last level, and not be found.
    assert_eq!((costs.true_positives, costs.false_positives), (2, 0));
    assert_eq!(costs.guard_probes, 2);
}

#[test]
fn rule_4_base_entries_are_found_in_the_oldest_run_whatever_has_survived() {
    let stage = Stage::new(GuardKind::Grf);
    // Only entries of the first flush survive: the output's span ends at 1, and so does the code.
    put_and_flush(&stage.db, "a", "1");
    stage.db.delete("b").expect("deletes");
    stage.db.compact().expect("compacts");
    assert_eq!(spans(&stage.db), [(0, 1)]);
    assert_eq!(stage.value("a"), value("1"));
    put_and_flush(&stage.db, "c", "3");
    assert_eq!(stage.value("c"), value("3"));
    assert_eq!(stage.db.verify().expect("verifies").damage, [""; 0]);
}

#[test]
fn rule_5_what_someone_reads_stays_and_what_no_one_reads_goes() {
    for (kind, stage) in Stage::of_all_kinds() {
        for n in 0..50 {
            stage.db.put(format!("key {n}"), "1").expect("puts");
        }
        stage.db.flush().expect("flushes");
        let tables = |stage: &Stage| {
            let names = stage.disk.list(Path::new("db")).expect("lists");
            names.into_iter().filter(|name| name.ends_with(".table")).collect::<Vec<_>>()
        };
        let old = tables(&stage);
        let mut scan = stage.db.range(..);
        scan.next().expect("has keys").expect("reads");
        put_and_flush(&stage.db, "key 1", "2");
        stage.db.compact().expect("compacts");
        assert!(old.iter().all(|name| tables(&stage).contains(name)), "{kind}: gone while read");
        assert!(
            stage.db.stats().expect("open").oldest_pin.is_some()
                && stage.db.stats().expect("open").leaving_tables > 0
        );
        // The scan moves on to the newest version, and the old table is not held any more.
        scan.next().expect("has keys").expect("reads");
        put_and_flush(&stage.db, "z", "3");
        assert!(!old.iter().any(|name| tables(&stage).contains(name)), "{kind}: never removed");
        assert_eq!(scan.count(), 48, "{kind}: the scan goes on where it was");
        assert_eq!(stage.db.stats().expect("open").oldest_pin, None);
    }
}

#[test]
fn readers_writers_and_background_threads_agree() {
    for guard in trommel_guards::all_guards() {
        let options = Options::new()
            .guard(guard)
            .size_ratio(3)
            .write_buffer_bytes(8 << 10)
            .background(Background::Threads(1));
        let storage = Arc::new(Memory::new());
        let environment = Environment::new().storage(storage);
        let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for reader in 0..2u32 {
                let (db, done) = (&db, &done);
                scope.spawn(move || read_while_written(db, done, reader));
            }
            let writers: Vec<_> = (0..2u32)
                .map(|writer| {
                    scope.spawn({
                        let db = &db;
                        move || write_counters(db, writer)
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
            done.store(true, Ordering::SeqCst);
        });
        db.settle().expect("settles");
        assert_eq!(db.range(..).count(), 2 * 200);
        assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    }
}

/// Counts 200 keys up together, batch by batch.
fn write_counters(db: &Db, writer: u32) {
    for round in 0..60u32 {
        let mut batch = Batch::new();
        for n in 0..200u32 {
            batch.put(format!("{writer}/{n:04}"), round.to_be_bytes());
        }
        db.write(batch).expect("writes");
    }
}

/// In every snapshot all counters of a writer are equal; none ever goes back or vanishes.
fn read_while_written(db: &Db, done: &AtomicBool, writer: u32) {
    let mut least = None;
    while !done.load(Ordering::SeqCst) {
        let values: Vec<Vec<u8>> = db
            .range(format!("{writer}/")..format!("{writer}0"))
            .map(|entry| entry.expect("reads").1.to_vec())
            .collect();
        assert!(values.is_empty() || values.len() == 200, "half a batch: {}", values.len());
        assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "two rounds at once");
        let single = db.get(format!("{writer}/0007")).expect("gets").map(|value| value.to_vec());
        assert!(single.as_deref() >= values.first().map(|value| &value[..]), "went back");
        assert!(values.first().cloned() >= least, "went back");
        least = values.into_iter().next().or(least);
    }
}
