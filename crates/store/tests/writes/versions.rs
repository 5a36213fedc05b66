//! Keys with many versions, and ranges that are deleted again and again: every snapshot that is
//! held sees its own state, both ways, wherever the versions are.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::Memory;
use trommel::{Background, Db, GuardKind, KeyValue, Options, Result, Snapshot, SyncPolicy};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn open(guard: GuardKind, write_buffer_bytes: usize) -> Db {
    let options = Options::new()
        .guard(guard)
        .write_buffer_bytes(write_buffer_bytes)
        .size_ratio(3)
        .block_bytes(256)
        .table_bytes(4096)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:02}").into_bytes()
}

fn owned(entry: Result<KeyValue>) -> (Vec<u8>, Vec<u8>) {
    let (key, value) = entry.expect("reads");
    (key, value.to_vec())
}

fn is_seen(snapshot: &Snapshot, model: &Model, context: &str) {
    let forward: Vec<_> = snapshot.range(..).map(owned).collect();
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert_eq!(forward, expected, "{context}");
    let mut backward: Vec<_> = snapshot.range(..).rev().map(owned).collect();
    backward.reverse();
    assert_eq!(backward, expected, "backward, {context}");
    for number in 0..12 {
        let found = snapshot.get(key(number)).expect("gets").map(|value| value.to_vec());
        assert_eq!(found.as_ref(), model.get(&key(number)), "{context}");
    }
    let keys: Vec<_> = (0..12).map(key).collect();
    let found = snapshot.multi_get(&keys).into_iter().map(|got| got.expect("gets"));
    let found: Vec<_> = found.map(|value| value.map(|value| value.to_vec())).collect();
    assert_eq!(found, keys.iter().map(|key| model.get(key).cloned()).collect::<Vec<_>>());
}

/// Twelve keys, most writes to three of them.
fn write(db: &Db, model: &mut Model, draw: &mut Draw, n: u64) {
    let number = if draw.below(3) == 0 { draw.below(12) } else { 4 + draw.below(3) };
    match draw.below(40) {
        0..3 => {
            let to = number + draw.below(12 - number) + 1;
            db.delete_range(key(number), key(to)).expect("deletes");
            model.retain(|found, _| *found < key(number) || key(to) <= *found);
        }
        3..5 => {
            db.delete(key(number)).expect("deletes");
            model.remove(&key(number));
        }
        _ => {
            let value = format!("{n}").into_bytes();
            db.put(key(number), &value).expect("puts");
            model.insert(key(number), value);
        }
    }
}

#[test]
fn every_snapshot_sees_its_own_version_wherever_it_is() {
    for (seed, guard) in (1..).zip(trommel_guards::all_guards().into_iter().cycle().take(40)) {
        let (db, mut draw, mut model) = (open(guard, 1 << 20), Draw(seed), Model::new());
        let mut held: Vec<(Snapshot, Model)> = Vec::new();
        for n in 0..1200 {
            write(&db, &mut model, &mut draw, n);
            if draw.below(6) == 0 {
                held.push((db.snapshot(), model.clone()));
            }
            if held.len() > 60 {
                held.swap_remove(draw.below(60) as usize);
            }
            match draw.below(400) {
                0 => db.flush().expect("flushes"),
                1 => db.compact().expect("merges"),
                _ => {}
            }
            if n % 200 == 199 {
                for (snapshot, model) in &held {
                    is_seen(snapshot, model, &format!("seed {seed}, {guard}, after {n}"));
                }
                is_seen(&db.snapshot(), &model, &format!("seed {seed}, {guard}, now, after {n}"));
            }
        }
    }
}

/// A scan from each key on and back to it, over keys of which most are deleted.
fn is_seen_from_everywhere(snapshot: &Snapshot, model: &Model, context: &str) {
    for from in (0..SIDE_BY_SIDE).step_by(3) {
        let found: Vec<_> = snapshot.range(key(from)..).map(owned).collect();
        let expected: Vec<_> =
            model.range(key(from)..).map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(found, expected, "from {from}, {context}");
        let found: Vec<_> = snapshot.range(..key(from)).rev().map(owned).collect();
        let expected = model.range(..key(from)).rev().map(|(k, v)| (k.clone(), v.clone()));
        assert_eq!(found, expected.collect::<Vec<_>>(), "back from {from}, {context}");
    }
}

/// Keys of the test below.
const SIDE_BY_SIDE: u64 = 90;

/// Most writes delete a few keys, which lie beside and over those that were deleted before: in the
/// active memtable, in one that waits for its flush, in runs.
#[test]
fn what_short_ranges_side_by_side_leave_is_seen_at_every_snapshot() {
    for (seed, guard) in (1..).zip(trommel_guards::all_guards().into_iter().cycle().take(40)) {
        // From memory alone to a buffer that is full after some dozen writes.
        let (db, mut draw) = (open(guard, 1 << (12 + 2 * (seed % 5))), Draw(seed));
        let (mut model, mut held) = (Model::new(), Vec::new());
        let (mut at, put_every) = (0, 2 + draw.below(8));
        for n in 0..900 {
            at =
                if draw.below(4) == 0 { draw.below(SIDE_BY_SIDE) } else { (at + 1) % SIDE_BY_SIDE };
            if n < SIDE_BY_SIDE || draw.below(put_every) == 0 {
                let value = format!("{n}").into_bytes();
                db.put(key(at), &value).expect("puts");
                model.insert(key(at), value);
            } else {
                let to = at + 1 + draw.below(4) * draw.below(4);
                db.delete_range(key(at), key(to)).expect("deletes");
                model.retain(|found, _| *found < key(at) || key(to) <= *found);
            }
            if draw.below(20) == 0 {
                held.push((db.snapshot(), model.clone()));
            }
            if draw.below(300) == 0 {
                db.flush().expect("flushes");
            }
            if n % 150 == 149 {
                let context = format!("seed {seed}, {guard}, after {n}");
                is_seen_from_everywhere(&db.snapshot(), &model, &context);
                for (snapshot, model) in held.iter().rev().step_by(3).take(6) {
                    is_seen_from_everywhere(snapshot, model, &format!("held, {context}"));
                }
            }
        }
    }
}

/// A queue's gets go from block to block of one key as others do.
#[test]
fn a_queue_finds_a_key_whose_versions_fill_blocks() {
    let db = open(GuardKind::Grf, 1 << 20);
    let mut held = Vec::new();
    for n in 0..500 {
        db.put("key", format!("{n}")).expect("puts");
        held.push(db.snapshot());
    }
    db.put("other", "value").expect("puts");
    db.compact().expect("merges");
    for (n, snapshot) in held.iter().enumerate() {
        let found = snapshot.get("key").expect("gets").expect("there");
        assert_eq!(found, format!("{n}").into_bytes());
    }
    let mut queue = db.queue(2);
    queue.submit_get("key", 7);
    queue.submit_range("key".., 2, 8);
    assert_eq!(std::iter::from_fn(|| queue.wait()).count(), 2);
}
