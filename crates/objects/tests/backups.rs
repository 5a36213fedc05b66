//! Backups in object stores: in memory, in a folder, slow, and failing ones.

mod faulty;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use faulty::Faulty;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use trommel::backup::{Backups, Until};
use trommel::{Db, Options};
use trommel_objects::CloudObjects;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(db: &Db) -> Contents {
    let entries = db.iter().map(|entry| entry.expect("reads"));
    entries.map(|(key, value)| (key, value.to_vec())).collect()
}

fn restored(dir: &Path) -> Contents {
    contents(&Db::open(dir, Options::new()).expect("opens"))
}

/// Values of which one makes an object of several parts.
fn write(db: &Db, turn: u8) {
    for number in 0..200u8 {
        db.put([number], [turn; 100]).expect("puts");
    }
    let noise = |at: u32| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ turn;
    db.put("large", (0..20 << 20).map(noise).collect::<Vec<u8>>()).expect("puts");
}

fn check(store: Arc<dyn ObjectStore>) {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = |name: &str| folder.path().join(name);
    let options = || Options::new().kept_log_bytes(64 << 20);
    let db = Db::open(dir("db"), options()).expect("opens");
    let backups =
        || Backups::new(CloudObjects::new(Arc::clone(&store), "stores/words").expect("a prefix"));
    write(&db, 1);
    let first = backups().back_up(&db).expect("backs up");
    let before = contents(&db);
    db.put("more", "words").expect("puts");
    let shipped = backups().ship(&db).expect("ships");
    let then = contents(&db);
    write(&db, 2);
    let second = backups().back_up(&db).expect("backs up");
    let backups = backups();
    for generation in [&first, &second] {
        assert!(backups.verify(generation.number).expect("verifies").damage.is_empty());
    }
    backups.restore(first.number, dir("first")).expect("restores");
    assert_eq!(restored(&dir("first")), before);
    let until = Until::Sequence(shipped.to);
    backups.restore_until(until, dir("then"), options()).expect("restores");
    assert_eq!(restored(&dir("then")), then);
    assert_eq!(backups.prune(1).expect("prunes").generations, [first.number]);
    backups.restore(second.number, dir("second")).expect("restores");
    assert_eq!(restored(&dir("second")), contents(&db));
    assert!(backups.restore(first.number, dir("none")).is_err());
}

#[test]
fn backups_in_memory_come_back() {
    check(Arc::new(InMemory::new()));
}

#[test]
fn backups_in_a_folder_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    check(Arc::new(LocalFileSystem::new_with_prefix(folder.path()).expect("it is there")));
}

#[test]
fn backups_in_a_slow_store_come_back() {
    let slow = Duration::from_millis(2);
    let config = ThrottleConfig {
        wait_put_per_call: slow,
        wait_get_per_call: slow,
        wait_list_per_call: slow,
        wait_delete_per_call: slow,
        ..ThrottleConfig::default()
    };
    check(Arc::new(ThrottledStore::new(InMemory::new(), config)));
}

#[test]
fn a_store_that_fails_harms_no_generation() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = |name: String| folder.path().join(name);
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let shared = Arc::clone(&left);
    let store = Faulty::new(move |call| match shared.fetch_sub(1, Ordering::Relaxed) {
        1.. => Ok(()),
        _ => Err(call.refused("no more")),
    });
    let backups = Backups::new(CloudObjects::new(Arc::new(store), "").expect("a prefix"));
    let db = Db::open(dir("db".into()), Options::new()).expect("opens");
    let mut kept = Vec::new();
    for turn in 0..12u8 {
        db.put([turn], [turn; 50]).expect("puts");
        // So many calls go well, then none: each time a few more.
        left.store(i64::from(turn) * 2, Ordering::Relaxed);
        let made = backups.back_up(&db);
        let pruned = backups.prune(3);
        left.store(i64::MAX, Ordering::Relaxed);
        if let Ok(made) = made {
            kept.push((made.number, contents(&db)));
        }
        let there = backups.generations().expect("reads");
        if pruned.is_err() {
            assert!(there.len() >= kept.len().min(3), "turn {turn}");
        }
        for generation in &there {
            let report = backups.verify(generation.number).expect("verifies");
            assert!(report.damage.is_empty(), "turn {turn}: {:?}", report.damage);
        }
    }
    assert!(!kept.is_empty(), "none went well");
    let there = backups.generations().expect("reads");
    for (number, expected) in kept.iter().filter(|(it, _)| there.iter().any(|g| g.number == *it)) {
        backups.restore(*number, dir(format!("restored-{number}"))).expect("restores");
        assert_eq!(restored(&dir(format!("restored-{number}"))), *expected);
    }
}
