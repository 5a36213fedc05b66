//! Limits: every option at its least and its greatest value and one beyond, and everything else
//! that is told of a length.
//! ```text
//! row    option, base, values that are allowed, values that are not
//!          allowed      -> a store lives through writes, flushes, merges, reads and reopening,
//!                       in memory that has a bound
//!          not allowed  -> `check` and `open` name the option
//! ```
//! Invariant: `rows` takes the options apart without `..`: one that is new does not compile before
//! it has a row.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use trommel::Environment;
use trommel::limits::KEY_BYTES_MAX;
use trommel::storage::{Memory, Storage as _};
use trommel::{Answer, Background, Batch, Db, Error, Expiry, GuardKind, Options};

use rows::{Row, rows, small};

mod rows;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// No case takes a fraction of it; one that hangs ends here.
const PATIENCE: Duration = Duration::from_secs(300);
/// The most that a thread may have at once for a store of some hundred small entries, whatever its
/// write buffer may take.
const MEMORY_MAX: u64 = 200 << 20;

fn on(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// Every kind of write; what the store holds afterwards.
fn write(db: &Db, round: u32, model: &mut Model) {
    for number in (round..300).step_by(3) {
        let value = vec![round as u8 + 1; 60];
        db.put(key(number), &value).expect("puts");
        model.insert(key(number), value);
    }
    let (from, to) = (key(40 + 70 * round), key(50 + 70 * round));
    db.delete_range(&from, &to).expect("deletes a range");
    model.retain(|key, _| *key < from || *key >= to);
    db.delete(key(7 * round)).expect("deletes");
    model.remove(&key(7 * round));
    let mut batch = Batch::new();
    batch.put(key(900 + round), "batch").delete(key(901 + round));
    db.write(batch).expect("writes a batch");
    model.insert(key(900 + round), b"batch".to_vec());
    model.remove(&key(901 + round));
    db.put_ttl(key(1000), "for ever", Duration::MAX).expect("puts");
    db.put_ttl(key(1001), "soon", Duration::ZERO).expect("puts");
    let mut batch = Batch::new();
    batch.put_with_expiry(key(1001), "long ago", Expiry::at_milliseconds(0));
    db.write(batch).expect("puts");
    model.insert(key(1000), b"for ever".to_vec());
}

/// Every kind of read gives what the model has.
fn check(db: &Db, model: &Model) {
    let numbers = (0..310).chain([900, 901, 902, 903, 1000, 1001]);
    let keys: Vec<Vec<u8>> = numbers.map(key).collect();
    let many = db.multi_get(&keys);
    let mut queue = db.queue(7);
    for (place, (key, found)) in keys.iter().zip(many).enumerate() {
        let expected = model.get(key).map(|value| &value[..]);
        assert_eq!(db.get(key).expect("gets").as_deref(), expected, "{}", key.escape_ascii());
        assert_eq!(found.expect("gets").as_deref(), expected, "{}", key.escape_ascii());
        queue.submit_get(key, place as u64);
    }
    while let Some(answered) = queue.wait() {
        let Answer::Value(found) = answered.answer else { panic!("a get") };
        let expected = model.get(&keys[answered.tag as usize]).map(|value| &value[..]);
        assert_eq!(found.expect("gets").as_deref(), expected);
    }
    let scan = db.range(..).map(|entry| entry.expect("scans"));
    assert!(scan.map(|(key, value)| (key, value.to_vec())).eq(model.clone()));
    let scan = db.range(key(100)..key(200)).rev().map(|entry| entry.expect("scans").0);
    assert!(scan.eq(model.range(key(100)..key(200)).rev().map(|(key, _)| key.clone())));
    for number in (0..300).step_by(17) {
        let bounds = key(number)..key(number + 2);
        let expected = model.range(bounds.clone()).count();
        let most = db.approximate_count(bounds.clone()).expect("counts").most;
        assert!(most >= expected as u64, "{number}: {most} of {expected}");
        let may = db.may_contain_range(bounds).expect("asks");
        assert!(may || expected == 0, "{number}");
    }
}

/// A store lives through everything, whose options these are.
fn live(options: &Options) {
    let (disk, mut model) = (Memory::new(), Model::new());
    let open = |options: &Options| Db::open_with("db", options.clone(), on(&disk)).expect("opens");
    let db = open(&options.clone().create_if_missing(true));
    // Merges that are slower than anyone can wait for.
    let merges =
        options.background == Background::Stepped || options.merge_bytes_per_second != Some(1);
    for round in 0..3 {
        write(&db, round, &mut model);
        db.flush().expect("flushes");
        if merges {
            db.settle().expect("merges");
        }
        check(&db, &model);
    }
    if merges {
        db.compact().expect("merges all");
    }
    check(&db, &model);
    assert_eq!(db.verify().expect("verifies").damage, Vec::<String>::new());
    db.close().expect("closes");
    let db = open(options);
    check(&db, &model);
    write(&db, 1, &mut model);
    db.close().expect("closes");
    let db = open(&Options::new().background(Background::Stepped));
    check(&db, &model);
}

/// As above; fails if it hangs, or takes memory beyond what some hundred entries are worth.
fn live_within_bounds(text: &str, options: &Options) {
    let (options, (done, ended)) = (options.clone(), channel());
    let work = move || {
        let taken = allocation_counter::measure(|| live(&options));
        // No thread listens to one that took too long.
        let _ = done.send(taken.bytes_max);
    };
    let thread = std::thread::Builder::new().name(text.into()).spawn(work).expect("a thread");
    match ended.recv_timeout(PATIENCE) {
        Ok(bytes) => assert!(bytes < MEMORY_MAX, "{text}: {bytes} bytes"),
        Err(error) => {
            assert!(thread.is_finished(), "{text} hangs");
            panic!("{text} failed: {error}");
        }
    }
}

#[test]
fn every_option_works_at_its_least_and_greatest_value() {
    for (text, options) in rows().into_iter().flat_map(|row| row.allowed) {
        options.check().unwrap_or_else(|error| panic!("{text}: {error}"));
        live_within_bounds(&text, &options);
    }
}

#[test]
fn every_option_works_at_its_limits_with_threads() {
    for (text, options) in rows().into_iter().flat_map(|row| row.allowed) {
        if options.background == Background::Stepped {
            let text = format!("{text}, threads");
            live_within_bounds(&text, &options.background(Background::Threads(2)));
        }
    }
}

#[test]
fn one_beyond_is_refused_by_name() {
    for Row { name, refused, .. } in rows() {
        for (text, options) in refused {
            let named = |error: Error| match error {
                Error::Option { option, .. } => option == name,
                _ => false,
            };
            assert!(options.check().is_err_and(named), "{text}: {:?}", options.check());
            let disk = Memory::new();
            let opened = Db::open_with("db", options, on(&disk)).map(drop);
            assert!(opened.is_err_and(named), "{text}");
            assert!(disk.list(Path::new("db")).is_err(), "{text}: nothing was made");
        }
    }
}

/// Keys of the greatest length, and what lies around them.
fn long_keys() -> Vec<Vec<u8>> {
    let long = |byte: u8, len: usize| vec![byte; len];
    let ending = |mut key: Vec<u8>, byte: u8| {
        *key.last_mut().expect("not empty") = byte;
        key
    };
    let max = KEY_BYTES_MAX;
    let mut keys = vec![
        vec![],
        vec![0],
        long(0, max - 1),
        long(0, max),
        ending(long(0, max), 1),
        b"m".to_vec(),
        ending(long(b'm', max), b'a'),
        long(b'm', max - 1),
        long(b'm', max),
        ending(long(b'm', max), b'z'),
        long(0xff, max - 1),
        ending(long(0xff, max), 0),
        long(0xff, max),
    ];
    keys.sort();
    keys
}

fn same_as(db: &Db, model: &Model, guard: GuardKind) {
    for key in long_keys() {
        let found = db.get(&key).expect("gets");
        assert_eq!(found.as_deref(), model.get(&key).map(|value| &value[..]), "{guard}");
        let from = db.range(key.clone()..).map(|entry| entry.expect("scans").0);
        assert!(from.eq(model.range(key.clone()..).map(|(key, _)| key.clone())), "{guard}");
        let to = db.range(..=key.clone()).rev().map(|entry| entry.expect("scans").0);
        assert!(to.eq(model.range(..=key).rev().map(|(key, _)| key.clone())), "{guard}");
    }
}

#[test]
fn keys_have_the_documented_length_under_every_guard() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let options = small().guard(guard);
        let open = || Db::open_with("db", options.clone(), on(&disk)).expect("opens");
        let (mut db, mut model) = (open(), Model::new());
        for round in 0..3u8 {
            for key in long_keys().into_iter().skip(usize::from(round % 2)) {
                db.put(&key, [round]).expect("puts");
                model.insert(key, vec![round]);
            }
            let mut batch = Batch::new();
            let keys = long_keys();
            batch.delete_range(&keys[2], &keys[4]).delete(&keys[11]);
            db.write(batch).expect("deletes");
            model.retain(|key, _| *key < keys[2] || *key >= keys[4]);
            model.remove(&keys[11]);
            same_as(&db, &model, guard);
            db.flush().expect("flushes");
            same_as(&db, &model, guard);
            db.settle().expect("merges");
            drop(db);
            db = open();
            same_as(&db, &model, guard);
        }
        db.compact().expect("merges");
        db.ingest(long_keys().into_iter().map(|key| (key, "loaded"))).expect("ingests");
        model.extend(long_keys().into_iter().map(|key| (key, b"loaded".to_vec())));
        same_as(&db, &model, guard);
        assert_eq!(db.verify().expect("verifies").damage, Vec::<String>::new(), "{guard}");
        db.checkpoint("copy").expect("copies");
        let copy = Db::open_with("copy", options.clone(), on(&disk)).expect("opens");
        same_as(&copy, &model, guard);
    }
}

#[test]
fn a_key_beyond_the_longest_is_refused_and_never_found() {
    let disk = Memory::new();
    let db = Db::open_with("db", small(), on(&disk)).expect("opens");
    let (longest, beyond) = (vec![b'm'; KEY_BYTES_MAX], vec![b'm'; KEY_BYTES_MAX + 1]);
    db.put(&longest, "value").expect("puts");
    db.flush().expect("flushes");
    let refused = |result: trommel::Result<()>| match result {
        Err(Error::KeyTooLong { len, max }) => {
            assert_eq!((len, max), (KEY_BYTES_MAX + 1, KEY_BYTES_MAX));
        }
        other => panic!("{other:?}"),
    };
    refused(db.put(&beyond, "value"));
    refused(db.put_ttl(&beyond, "value", Duration::MAX));
    refused(db.delete(&beyond));
    refused(db.delete_range(&longest, &beyond));
    refused(db.delete_range(&beyond, "n"));
    let mut batch = Batch::new();
    batch.put("sound", "value").put(&beyond, "value");
    refused(db.write(batch));
    refused(db.ingest([(&beyond, "value")]).map(drop));
    assert_eq!(db.get("sound").expect("gets"), None, "a batch is written as a whole or not");
    assert_eq!(db.get(&beyond).expect("gets"), None);
    assert!(db.multi_get(&[&beyond]).remove(0).expect("gets").is_none());
    let mut queue = db.queue(1);
    queue.submit_get(&beyond, 1);
    assert!(matches!(queue.wait().expect("it is answered").answer, Answer::Value(Ok(None))));
    assert_eq!(
        db.range(beyond.clone()..).count() + db.range(beyond.clone()..beyond.clone()).count(),
        0
    );
    assert_eq!(db.range(..beyond.clone()).count(), 1);
    assert_eq!(db.estimate_count(longest..beyond).expect("counts"), 1);
    db.put("next", "value").expect("the store goes on");
}

#[test]
fn queues_and_batches_of_any_size_work() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = small().write_buffer_bytes(64 << 20).block_cache_bytes(0);
    let db = Db::open(folder.path().join("db"), options).expect("opens");
    db.write(Batch::new()).expect("writes nothing");
    assert_eq!(db.ingest(std::iter::empty::<([u8; 4], [u8; 4])>()).expect("ingests nothing"), 0);
    assert!(db.multi_get::<[u8; 4]>(&[]).is_empty());
    let mut batch = Batch::new();
    for number in 0..200_000u32 {
        batch.put(number.to_be_bytes(), [7; 8]);
    }
    db.write(batch).expect("writes a large batch");
    db.flush().expect("flushes");
    for depth in [0, 1, 4096, usize::MAX] {
        let mut queue = db.queue(depth);
        (0..1000u32).for_each(|n| queue.submit_get((n * 199).to_be_bytes(), u64::from(n)));
        for limit in [0, 1, usize::MAX] {
            queue.submit_range(5u32.to_be_bytes()..10u32.to_be_bytes(), limit, u64::MAX);
        }
        let mut entries = Vec::new();
        while let Some(answered) = queue.wait() {
            match answered.answer {
                Answer::Value(found) => assert!(found.expect("gets").is_some(), "{depth}"),
                Answer::Entries(found) => entries.push(found.expect("scans").len()),
            }
        }
        entries.sort_unstable();
        assert_eq!(entries, [0, 1, 5], "{depth}");
    }
}
