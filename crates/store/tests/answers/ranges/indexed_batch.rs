//! Batches that are read before they are written: what they show is what the store has afterwards.

use super::{Key, Map, crowded, entries, open, spread};
use std::time::Duration;
use trommel::{Expiry, GuardKind, IndexedBatch, KeyBounds, Readable};

fn pairs<'m>(map: impl Iterator<Item = (&'m Key, &'m Vec<u8>)>) -> Vec<(Key, Vec<u8>)> {
    map.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// A write, into the batch and into the map.
fn write(batch: &mut IndexedBatch, map: &mut Map, number: u64) {
    let (random, key) = (spread(number), crowded(number + 77));
    match random % 8 {
        0..=3 => {
            batch.put(&key, number.to_le_bytes());
            map.insert(key, number.to_le_bytes().to_vec());
        }
        4 | 5 => {
            batch.delete(&key);
            map.remove(&key);
        }
        6 => {
            batch.put_ttl(&key, "for a while", Duration::from_secs(9));
            map.insert(key, b"for a while".to_vec());
        }
        _ => {
            let other = crowded(number + 7777);
            let (from, to) = if key < other { (key, other) } else { (other, key) };
            batch.delete_range(&from, &to);
            map.retain(|key, _| *key < from || *key >= to);
        }
    }
}

/// What is read through the batch is what the map has.
fn assert_shows(batch: &IndexedBatch, beneath: &impl Readable, map: &Map, seed: u64) {
    for number in 0..60 {
        let key = crowded(seed + 31 * number);
        let found = batch.get(beneath, &key).expect("reads").map(|value| value.to_vec());
        assert_eq!(found.as_ref(), map.get(&key), "seed {seed}: {key:x?}");
        let expected = pairs(map.iter().filter(|(other, _)| other.starts_with(&key)));
        let found = entries(batch.range(beneath, KeyBounds::prefix(&key)));
        assert_eq!(found, expected, "seed {seed}: {key:x?}");
    }
    assert_eq!(entries(batch.range(beneath, ..)), pairs(map.iter()), "seed {seed}");
    let backward = entries(batch.range(beneath, ..).rev());
    assert_eq!(backward, pairs(map.iter().rev()), "seed {seed}");
    // From both ends by turns, until they meet.
    let (mut scan, mut left) = (batch.range(beneath, ..), pairs(map.iter()));
    for step in 0.. {
        let (found, expected) = match spread(seed + step) % 2 {
            0 => (scan.next(), (!left.is_empty()).then(|| left.remove(0))),
            _ => (scan.next_back(), left.pop()),
        };
        let found = found.transpose().expect("reads").map(|(key, value)| (key, value.to_vec()));
        assert_eq!(found, expected, "seed {seed}, step {step}");
        if found.is_none() {
            break;
        }
    }
}

#[test]
fn a_batch_shows_what_the_store_has_afterwards() {
    for seed in (0..40).map(|seed| 1_000_000 * seed) {
        let (db, mut map) = (open(GuardKind::Grf), Map::new());
        for number in 0..150 {
            let key = crowded(seed + number);
            db.put(&key, "old").expect("puts");
            map.insert(key, b"old".to_vec());
            if number == 80 {
                db.flush().expect("flushes");
            }
        }
        let snapshot = db.snapshot();
        let mut batch = IndexedBatch::new();
        assert_shows(&batch, &db, &map, seed);
        for number in 0..seed / 1_000_000 {
            write(&mut batch, &mut map, seed + number);
        }
        assert_shows(&batch, &db, &map, seed);
        db.put("unseen by the snapshot", "").expect("puts");
        assert_shows(&batch, &snapshot, &map, seed);
        db.delete("unseen by the snapshot").expect("deletes");
        db.write(batch).expect("writes");
        assert_eq!(entries(db.iter()), pairs(map.iter()), "seed {seed}");
    }
}

#[test]
fn ranges_that_touch_are_one() {
    let (db, mut batch) = (open(GuardKind::Grf), IndexedBatch::new());
    batch.put("c", "1").put("m", "2").delete("x");
    batch.delete_range("b", "f").delete_range("m", "p").delete_range("f", "h");
    assert_eq!(batch.len(), 3, "[b, h), [m, p), x");
    batch.delete_range("a", "z");
    assert_eq!(batch.len(), 1);
    batch.delete_range("k", "k");
    assert_eq!(batch.len(), 1, "nothing is deleted");
    batch.put("k", "3");
    assert_eq!(entries(batch.range(&db, ..)), [(b"k".to_vec(), b"3".to_vec())]);
    batch.clear();
    assert!(batch.is_empty());
}

#[test]
fn a_range_that_ends_before_it_begins_is_an_error_when_it_is_written() {
    let (db, mut batch) = (open(GuardKind::Grf), IndexedBatch::new());
    batch.put("k", "v").delete_range("z", "a");
    assert!(matches!(db.write(batch), Err(trommel::Error::InvertedRange { .. })));
    assert!(db.get("k").expect("reads").is_none(), "nothing was written");
}

#[test]
fn what_expires_does_so_after_it_was_written() {
    let (db, mut batch) = (open(GuardKind::Grf), IndexedBatch::new());
    batch.put_with_expiry("gone", "v", Expiry::at_milliseconds(1));
    batch.put_ttl("there", "v", Duration::from_secs(1 << 40));
    assert!(batch.get(&db, "gone").expect("reads").is_some());
    db.write(batch).expect("writes");
    assert!(!db.contains_key("gone").expect("reads"));
    assert!(db.contains_key("there").expect("reads"));
}
