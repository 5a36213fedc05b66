//! Entries that expire: from their moment on they are gone for gets, scans and merges, and so is
//! what they hid.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::Environment;
use trommel::storage::Memory;
use trommel::testing::ManualClock;
use trommel::tools::{DumpItem, dump};
use trommel::{Background, Batch, Db, Expiry, GuardKind, Options, SyncPolicy};

const SECOND: Duration = Duration::from_secs(1);

fn open(disk: &Memory, clock: &Arc<ManualClock>, guard: GuardKind) -> Db {
    let (storage, clock) = (Arc::new(disk.clone()), Arc::clone(clock) as _);
    let environment = Environment::new().storage(storage).clock(clock);
    let options = Options::new()
        .guard(guard)
        .size_ratio(4)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped);
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

fn all(db: &Db) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let entry = |entry: trommel::Result<trommel::KeyValue>| {
        let (key, value) = entry.expect("reads");
        (text(&key), text(&value))
    };
    let forward: Vec<_> = db.range(..).map(entry).collect();
    let mut backward: Vec<_> = db.range(..).rev().map(entry).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    for (key, value) in &forward {
        assert_eq!(db.get(key).expect("gets").as_deref(), Some(value.as_bytes()), "{key}");
    }
    forward
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// In memory, in a run, in the last level, opened again: an entry is there until its moment, and
/// hides what is older from then on.
#[test]
fn an_entry_is_gone_when_its_time_has_come_and_hides_what_is_older() {
    for guard in trommel_guards::all_guards() {
        for (place, steps) in ["memory", "a run", "the last level", "a log"].iter().zip(0..) {
            let (disk, clock) = (Memory::new(), Arc::new(ManualClock::default()));
            let mut db = open(&disk, &clock, guard);
            db.put("a", "old").expect("puts");
            db.compact().expect("compacts");
            db.put_ttl("a", "short", 2 * SECOND).expect("puts");
            db.put_ttl("b", "", 4 * SECOND).expect("puts");
            db.put("c", "for ever").expect("puts");
            match steps {
                1 => db.flush().expect("flushes"),
                2 => db.compact().expect("compacts"),
                3 => {
                    drop(db);
                    db = open(&disk.crash_hard(), &clock, guard);
                }
                _ => {}
            }
            let case = format!("{guard}, in {place}");
            let snapshot = db.snapshot();
            clock.advance(SECOND);
            assert_eq!(all(&db), pairs(&[("a", "short"), ("b", ""), ("c", "for ever")]), "{case}");
            clock.advance(SECOND);
            assert_eq!(all(&db), pairs(&[("b", ""), ("c", "for ever")]), "{case}");
            assert!(
                db.get("a").expect("gets").is_none(),
                "{case}: the old value is not seen again"
            );
            clock.advance(2 * SECOND);
            assert_eq!(all(&db), pairs(&[("c", "for ever")]), "{case}");
            assert!(snapshot.get("b").expect("gets").is_none(), "time passes for snapshots too");
            drop(snapshot);
            db.put("d", "so that there is something to merge").expect("puts");
            db.compact().expect("compacts");
            assert_eq!(
                db.stats().expect("open").entries(),
                2,
                "{case}: what has expired is dropped"
            );
            assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{case}");
        }
    }
}

#[test]
fn a_batch_may_have_entries_that_expire() {
    let (disk, clock) = (Memory::new(), Arc::new(ManualClock::default()));
    let db = open(&disk, &clock, GuardKind::Grf);
    clock.advance(10 * SECOND);
    let mut batch = Batch::new();
    batch.put_with_expiry("gone", "value", Expiry::at_milliseconds(10_000));
    batch.put_with_expiry("there", "value", db.expiry_after(SECOND / 1000));
    batch.put("twice", "first").put_with_expiry("twice", "second", Expiry::at_milliseconds(1));
    db.write(batch).expect("writes");
    assert_eq!(all(&db), pairs(&[("there", "value")]));
    clock.advance(SECOND / 1000);
    assert_eq!(all(&db), []);
    db.put("twice", "third").expect("puts");
    assert_eq!(all(&db), pairs(&[("twice", "third")]));
}

/// A lifetime begins when its batch is written, not when it was put there.
#[test]
fn a_batch_may_have_entries_that_live_for_so_long() {
    let (disk, clock) = (Memory::new(), Arc::new(ManualClock::default()));
    let db = open(&disk, &clock, GuardKind::Grf);
    let mut batch = Batch::new();
    batch.put_ttl("forgotten", "value", SECOND).clear();
    batch.put("ever", "value").put_ttl("short", "value", SECOND).put_ttl("long", "", 9 * SECOND);
    clock.advance(10 * SECOND);
    db.write(batch.clone()).expect("writes");
    let short = [("ever", "value"), ("long", ""), ("short", "value")];
    assert_eq!(all(&db), pairs(&short));
    clock.advance(SECOND);
    assert_eq!(all(&db), pairs(&short[..2]));
    clock.advance(8 * SECOND);
    assert_eq!(all(&db), pairs(&short[..1]));
    db.write(batch).expect("writes");
    assert_eq!(all(&db), pairs(&short), "it can be written again");
}

#[test]
fn a_dump_tells_when_entries_expire() {
    let (disk, clock) = (Memory::new(), Arc::new(ManualClock::default()));
    let db = open(&disk, &clock, GuardKind::Grf);
    db.put_ttl("key", "value", 7 * SECOND).expect("puts");
    let mut dumped = Vec::new();
    let tell = &mut |item: DumpItem<'_>| {
        if let DumpItem::Entry { kind, expiry, value, .. } = item {
            dumped.push((kind, expiry, value.to_vec()));
        }
        std::ops::ControlFlow::Continue(())
    };
    dump(&disk, "db", tell).expect("dumps");
    assert_eq!(dumped, [("put-expiring", Some(Expiry::at_milliseconds(7000)), b"value".to_vec())]);
}

/// What a merge kept for a snapshot is a deletion for every other reader.
#[test]
fn an_expired_entry_that_a_snapshot_holds_hides_what_is_older() {
    let (disk, clock) = (Memory::new(), Arc::new(ManualClock::default()));
    let db = open(&disk, &clock, GuardKind::Grf);
    db.put("a", "old").expect("puts");
    let snapshot = db.snapshot();
    db.put_ttl("a", "short", SECOND).expect("puts");
    clock.advance(SECOND);
    db.compact().expect("compacts");
    assert_eq!(db.stats().expect("open").entries(), 2);
    assert!(db.get("a").expect("gets").is_none());
    assert_eq!(snapshot.get("a").expect("gets").as_deref(), Some(&b"old"[..]));
    drop(snapshot);
    db.put("b", "more").expect("puts");
    db.compact().expect("compacts");
    assert_eq!((db.stats().expect("open").entries(), all(&db)), (1, pairs(&[("b", "more")])));
}

#[test]
fn a_value_tells_when_it_expires_wherever_it_is() {
    let (disk, clock) = (Memory::new(), Arc::new(ManualClock::default()));
    let db = open(&disk, &clock, GuardKind::Open);
    let expiry = db.expiry_after(9 * SECOND);
    let mut batch = Batch::new();
    batch.put_with_expiry("a", "", expiry).put("b", "for ever");
    batch.put_with_expiry("c", "c", Expiry::NEVER);
    db.write(batch).expect("writes");
    for place in ["memory", "a table"] {
        let of = |key: &str| db.get(key).expect("gets").expect("it is there").expiry();
        assert_eq!(
            [of("a"), of("b"), of("c")],
            [Some(expiry), None, Some(Expiry::NEVER)],
            "{place}"
        );
        let scanned: Vec<_> = db.iter().map(|entry| entry.expect("reads").1.expiry()).collect();
        assert_eq!(scanned, [Some(expiry), None, Some(Expiry::NEVER)], "{place}");
        db.compact().expect("merges");
    }
}
