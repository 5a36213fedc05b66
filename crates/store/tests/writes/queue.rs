//! Queries that are under way together answer, count and fail as those that are asked one after the
//! other: under every guard, with reads that complete in any order, with faults and damage, and
//! while others write, flush and merge.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use trommel::Environment;
use trommel::options::{DirectIo, Overlap};
use trommel::stats::{QueryStats, Stats};
use trommel::storage::Memory;
use trommel::testing::{Fault, ManualClock};
use trommel::{
    Answer, Answered, Background, Db, Error, FollowOptions, GuardKind, Options, Queue, Snapshot,
    Value,
};
use trommel_guards::kinds;

/// The shortest value that is apart.
const VALUE_APART_BYTES: usize = 256;

/// Keys that are prefixes of each other, in many short runs of blocks of a few entries.
fn key(number: u16) -> Vec<u8> {
    let mut key = (u32::from(number) * 7919).to_be_bytes().to_vec();
    key.truncate(2 + usize::from(number % 3));
    key
}

fn options(guard: GuardKind, block_cache_bytes: usize) -> Options {
    Options::new()
        .guard(guard)
        .block_cache_bytes(block_cache_bytes)
        .size_ratio(3)
        .write_buffer_bytes(64 << 10)
        .block_bytes(256)
        .table_bytes(4096)
        .value_threshold(VALUE_APART_BYTES)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options, environment).expect("opens")
}

/// Several runs, with deletions of keys and of ranges, and something in memory.
fn fill(db: &Db, seed: u64) {
    let mut number = seed;
    for round in 0..7u8 {
        for _ in 0..150 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = key((number >> 40) as u16 % 500);
            match (number >> 33) % 12 {
                0 => db.delete(&key),
                1 if round % 3 == 1 => db.delete_range(&key, [&key[..], &[9]].concat()),
                2 => db.put(&key, apart(number)),
                _ => db.put(&key, vec![round; (number >> 50) as usize % 60]),
            }
            .expect("a write");
        }
        if round < 6 {
            db.flush().expect("flushed");
            db.settle().expect("merged");
        }
    }
    // Values apart in memory, and one key whose versions fill several blocks.
    let snapshot = db.snapshot();
    (0..30).for_each(|version| db.put(key(77), [version; 40]).expect("put"));
    db.flush().expect("flushed");
    drop(snapshot);
    (0..20).for_each(|at| db.put(key(at * 25), apart(seed ^ u64::from(at))).expect("put"));
}

/// A value apart, unlike others: one in two can be packed, one in eight has several chunks.
fn apart(seed: u64) -> Vec<u8> {
    let bytes =
        if seed.is_multiple_of(8) { 70_000 } else { VALUE_APART_BYTES + seed as usize % 60 };
    let step = if seed.is_multiple_of(2) { 0 } else { 0x9e37_79b9_7f4a_7c15 };
    let bytes = (0..bytes as u64).map(|at| (seed.wrapping_add(at.wrapping_mul(step)) >> 56) as u8);
    bytes.chain(seed.to_le_bytes()).collect()
}

type Shown = Result<Vec<(Vec<u8>, Vec<u8>)>, String>;

fn shown_value(key: &[u8], value: trommel::Result<Option<Value>>) -> Shown {
    let pair = |value: Value| (key.to_vec(), value.to_vec());
    value.map(|value| value.map(pair).into_iter().collect()).map_err(|error| error.to_string())
}

fn shown_entries(entries: trommel::Result<Vec<(Vec<u8>, Value)>>) -> Shown {
    let entries = entries.map_err(|error| error.to_string())?;
    Ok(entries.into_iter().map(|(key, value)| (key, value.to_vec())).collect())
}

/// A get, or the first keys of a range.
#[derive(Clone, Debug)]
enum Ask {
    Get(u16),
    Range(u16, u16, usize),
}

impl Ask {
    fn at_once(&self, db: &Db) -> Shown {
        match *self {
            Ask::Get(number) => shown_value(&key(number), db.get(key(number))),
            Ask::Range(from, to, limit) => {
                let (from, to) = (key(from), key(to));
                shown_entries(db.range(from..to).take(limit).collect())
            }
        }
    }

    fn submit(&self, queue: &mut Queue, tag: u64) {
        match *self {
            Ask::Get(number) => queue.submit_get(key(number), tag),
            Ask::Range(from, to, limit) => queue.submit_range(key(from)..key(to), limit, tag),
        }
    }

    fn shown(&self, answer: Answer) -> Shown {
        match (self, answer) {
            (Ask::Get(number), Answer::Value(value)) => shown_value(&key(*number), value),
            (Ask::Range(..), Answer::Entries(entries)) => shown_entries(entries),
            (ask, answer) => panic!("{ask:?} was answered {answer:?}"),
        }
    }
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let get = (0u16..600).prop_map(Ask::Get);
    let range =
        (0u16..600, 0u16..600, 0usize..12).prop_map(|(a, b, limit)| Ask::Range(a, b, limit));
    let near = Just(Ask::Get(77));
    prop::collection::vec(prop_oneof![6 => get, 2 => range, 1 => near], 1..80)
}

fn guard() -> impl Strategy<Value = GuardKind> {
    (0..trommel_guards::all_guards().len()).prop_map(|place| trommel_guards::all_guards()[place])
}

/// Answers of all that is asked, with at most `together` under way, by tag.
fn all_answers(db: &Db, asks: &[Ask], depth: usize, together: usize) -> Vec<Shown> {
    let mut queue = db.queue(depth);
    let mut answers = BTreeMap::new();
    let mut note = |tag: u64, answer| {
        let before = answers.insert(tag, asks[tag as usize].shown(answer));
        assert!(before.is_none(), "{tag} was answered twice");
    };
    for (tag, ask) in (0..).zip(asks) {
        ask.submit(&mut queue, tag);
        if queue.under_way() >= together {
            let answered = if tag % 3 == 0 { queue.poll() } else { queue.wait() };
            answered.into_iter().for_each(|answered| note(answered.tag, answered.answer));
        }
    }
    while let Some(answered) = queue.wait() {
        note(answered.tag, answered.answer);
    }
    assert_eq!(queue.under_way(), 0);
    assert!(queue.poll().is_none() && answers.len() == asks.len());
    answers.into_values().collect()
}

fn counted(db: &Db, before: &Stats) -> [QueryStats; 3] {
    let after = db.stats().expect("open");
    [
        after.point.since(&before.point),
        after.open_seek.since(&before.open_seek),
        after.closed_seek.since(&before.closed_seek),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn answers_and_costs_are_those_of_single_queries(
        asks in asks(), guard in guard(), seed in any::<u64>(), depth in 1usize..9,
        together in 1usize..20, apart in any::<bool>(),
    ) {
        // Without a cache each query reads all that it needs, in whatever order they are asked.
        for cache in [0, 3000, 1 << 20] {
            let disk = Memory::new();
            let threshold = if apart { VALUE_APART_BYTES } else { 0 };
            let db = open(&disk, options(guard, cache).value_threshold(threshold));
            fill(&db, seed);
            let before = db.stats().expect("open");
            let expected: Vec<Shown> = asks.iter().map(|ask| ask.at_once(&db)).collect();
            let costs = counted(&db, &before);
            let before = db.stats().expect("open");
            prop_assert_eq!(all_answers(&db, &asks, depth, together), expected);
            let mut others = counted(&db, &before);
            if cache > 0 {
                for (one, other) in costs.iter().zip(&mut others) {
                    (other.disk_reads, other.bytes_read) = (one.disk_reads, one.bytes_read);
                    other.value_reads = one.value_reads;
                }
            }
            // Sub-filters of `elastic` come and go with each get.
            if guard != GuardKind::Table(kinds::ELASTIC) {
                prop_assert_eq!(&costs[0], &others[0]);
                // A scan that nobody limits reads values ahead, and more blocks for these.
                if !apart {
                    prop_assert_eq!(costs, others);
                }
            }
        }
    }

    #[test]
    fn damage_is_told_as_single_queries_tell_it(
        asks in asks(), seed in any::<u64>(), cuts in any::<bool>(), place in 0.0f64..1.0,
    ) {
        let disk = Memory::new();
        let db = open(&disk, options(GuardKind::Grf, 0));
        fill(&db, seed);
        let environment = disk.clone();
        let files: Vec<String> = trommel::storage::Storage::list(&environment, Path::new("db")).unwrap();
        let is_read = |name: &&String| name.ends_with(".table") || name.ends_with(".value");
        for name in files.iter().filter(is_read) {
            let path = Path::new("db").join(name);
            let len = disk.file(&path).expect("it is there").len() as u64;
            let at = (len as f64 * place) as u64;
            if cuts { disk.truncate(&path, at) } else { disk.flip_bit(&path, at, 3) }
        }
        let expected: Vec<Shown> = asks.iter().map(|ask| ask.at_once(&db)).collect();
        prop_assert_eq!(all_answers(&db, &asks, 4, 9), expected);
    }

    #[test]
    fn a_fault_is_an_error_of_some_query_and_no_wrong_answer(
        asks in asks(), seed in any::<u64>(), at in 0u64..60, lasts in any::<bool>(),
    ) {
        let disk = Memory::new();
        let db = open(&disk, options(GuardKind::Grf, 0));
        fill(&db, seed);
        let expected: Vec<Shown> = asks.iter().map(|ask| ask.at_once(&db)).collect();
        if lasts { disk.fail_from(at, Fault::Io) } else { disk.fail_at(at, Fault::Io) }
        let answers = all_answers(&db, &asks, 4, 9);
        disk.mend();
        for (ask, (answer, expected)) in asks.iter().zip(answers.iter().zip(&expected)) {
            prop_assert!(answer.is_err() || answer == expected, "{ask:?}");
        }
        prop_assert_eq!(all_answers(&db, &asks, 4, 9), expected);
    }

    #[test]
    fn queries_see_the_store_as_of_their_submission(
        asks in prop::collection::vec((0u16..300, any::<u8>(), 0u8..6), 1..150), guard in guard(),
    ) {
        let disk = Memory::new();
        let db = open(&disk, options(guard, 0));
        fill(&db, 5);
        let mut queue = db.queue(4);
        let mut expected: HashMap<u64, (Ask, Shown)> = HashMap::new();
        for (tag, (number, value, then)) in (0..).zip(asks) {
            let ask = if tag % 4 == 0 { Ask::Range(number, number + 40, 5) } else { Ask::Get(number) };
            expected.insert(tag, (ask.clone(), ask.at_once(&db)));
            ask.submit(&mut queue, tag);
            match then {
                0 => db.put(key(number), [value]).expect("put"),
                1 => db.delete(key(number)).expect("delete"),
                2 => db.flush().expect("flushed"),
                3 => drop(db.step().expect("a step")),
                4 if value < 9 => db.compact().expect("compacted"),
                _ => queue.wait().into_iter().for_each(|answered| {
                    let (ask, shown) = expected.remove(&answered.tag).expect("under way");
                    assert_eq!(ask.shown(answered.answer), shown, "{ask:?}");
                }),
            }
        }
        while let Some(answered) = queue.wait() {
            let (ask, shown) = expected.remove(&answered.tag).expect("under way");
            prop_assert_eq!(ask.shown(answered.answer), shown, "{:?}", ask);
        }
        prop_assert!(expected.is_empty());
    }
}

type GotValue = trommel::Result<Option<Vec<u8>>>;

/// The answers of all gets that are under way, by tag.
fn all_values(queue: &mut Queue) -> BTreeMap<u64, GotValue> {
    let answered = std::iter::from_fn(|| queue.wait());
    let value_of = |answered: Answered| match answered.answer {
        Answer::Value(got) => (answered.tag, got.map(|value| value.map(|value| value.to_vec()))),
        other => panic!("a get was answered {other:?}"),
    };
    answered.map(value_of).collect()
}

/// What was found to be there when it was asked for may have expired when it is answered.
#[test]
fn a_value_apart_that_expires_while_it_is_awaited_is_no_answer() {
    let clock = Arc::new(ManualClock::default());
    let environment = Environment::new().storage(Arc::new(Memory::new())).clock(clock.clone());
    let db = Db::open_with("db", options(GuardKind::Grf, 0), environment).expect("opens");
    let second = Duration::from_secs(1);
    for is_in_table in [false, true] {
        db.put_ttl("short", apart(1), second).expect("put");
        db.put_ttl("long", apart(2), 100 * second).expect("put");
        db.put("for ever", apart(3)).expect("put");
        if is_in_table {
            db.flush().expect("flushed");
        }
        let mut queue = db.queue(4);
        let ask_all = |queue: &mut Queue| {
            (0..).zip(["short", "long", "for ever"]).for_each(|(tag, key)| {
                queue.submit_get(key, tag);
            });
        };
        let left = |short| [short, Some(apart(2)), Some(apart(3))];
        let found = |queue: &mut Queue| -> Vec<Option<Vec<u8>>> {
            all_values(queue).into_values().map(|value| value.expect("read")).collect()
        };
        ask_all(&mut queue);
        assert_eq!(queue.under_way(), 3);
        assert_eq!(found(&mut queue), left(Some(apart(1))), "{is_in_table}");
        ask_all(&mut queue);
        clock.advance(second);
        assert_eq!(found(&mut queue), left(None), "{is_in_table}: it expires meanwhile");
        ask_all(&mut queue);
        assert_eq!(found(&mut queue), left(None), "{is_in_table}: it has expired");
    }
}

/// A follower, and a snapshot of it whose tables and values are merged away since.
fn check_follower(max_open_files: usize) {
    const COUNT: u64 = 60;
    let disk = Memory::new();
    let db = open(&disk, options(GuardKind::Grf, 0));
    let put_all = |from: u64| {
        for number in 0..COUNT {
            db.put(number.to_be_bytes(), apart(from + number)).expect("put");
            if number % 20 == 19 {
                db.flush().expect("flushed");
            }
        }
    };
    // Where few files may be open, what the writer has removed is gone.
    let check = |snapshot: &Snapshot, from: u64, may_be_gone: bool| {
        let mut queue = snapshot.queue(4);
        (0..COUNT).for_each(|number| queue.submit_get(number.to_be_bytes(), number));
        let answers = all_values(&mut queue);
        assert_eq!(answers.len() as u64, COUNT);
        for (number, got) in answers {
            match got {
                Err(Error::Gone { .. }) if may_be_gone => {}
                got => assert_eq!(got.expect("read"), Some(apart(from + number)), "{number}"),
            }
        }
    };
    put_all(0);
    let followed = Options::new().max_open_files(max_open_files).block_cache_bytes(0);
    let followed = FollowOptions::new().options(followed);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let follower = Db::follow_with("db", followed, environment).expect("follows");
    let before = follower.snapshot().expect("open");
    check(&before, 0, false);
    put_all(1000);
    db.compact().expect("compacted");
    db.step().expect("removes files");
    check(&before, 0, max_open_files == 1);
    assert!(follower.catch_up().expect("catches up"));
    check(&before, 0, max_open_files == 1);
    check(&follower.snapshot().expect("open"), 1000, false);
}

#[test]
fn a_queue_of_a_follower_answers_as_its_snapshot_or_that_values_are_gone() {
    [100, 1].into_iter().for_each(check_follower);
}

/// Every answer is right, or says that the store was closed.
fn check_closed(answers: BTreeMap<u64, GotValue>) {
    for (number, got) in answers {
        match got {
            Err(Error::Closed { .. }) => {}
            got => assert_eq!(got.expect("read"), Some(apart(number)), "{number}"),
        }
    }
}

#[test]
fn a_store_that_is_closed_while_values_are_awaited_says_so() {
    let db = open(&Memory::new(), options(GuardKind::Grf, 0));
    (0..10u64).for_each(|number| db.put(number.to_be_bytes(), apart(number)).expect("put"));
    let mut queue = db.queue(4);
    (0..10u64).for_each(|number| queue.submit_get(number.to_be_bytes(), number));
    assert!(queue.wait().is_some());
    db.close().expect("closes");
    let answers = all_values(&mut queue);
    assert!(answers.len() == 9 && queue.under_way() == 0);
    assert!(answers.into_values().all(|got| matches!(got, Err(Error::Closed { .. }))));
}

#[test]
fn a_store_may_be_closed_while_threads_and_rings_read_values() {
    const COUNT: u64 = 200;
    for overlap in Overlap::ALL {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        for answered_before in [0, 5, 100] {
            let options = options(GuardKind::Grf, 0).overlap(overlap).direct(DirectIo::ALL);
            let db = Db::open(folder.path(), options).expect("opens");
            for number in 0..COUNT {
                db.put(number.to_be_bytes(), apart(number)).expect("put");
            }
            db.flush().expect("flushed");
            let mut queue = db.queue(8);
            (0..COUNT).for_each(|number| queue.submit_get(number.to_be_bytes(), number));
            for _ in 0..answered_before {
                assert!(queue.wait().is_some());
            }
            let closing = std::thread::spawn(move || db.close());
            let answers = all_values(&mut queue);
            assert_eq!(answers.len() as u64, COUNT - answered_before);
            check_closed(answers);
            closing.join().expect("no panic").expect("closes");
            assert_eq!(queue.under_way(), 0);
        }
    }
}

#[test]
fn a_get_that_waits_for_its_value_holds_up_no_other() {
    let options = options(GuardKind::Grf, 1 << 20).value_threshold(VALUE_APART_BYTES);
    let db = open(&Memory::new(), options);
    for (key, bytes) in [("apart", 5000), ("short", 10), ("very long", 3 << 20)] {
        db.put(key, key.as_bytes().repeat(bytes / key.len())).expect("put");
    }
    let answered = |keys: [&str; 2]| {
        let mut queue = db.queue(4);
        (0..).zip(keys).for_each(|(tag, key)| queue.submit_get(key, tag));
        let mut order = Vec::new();
        while let Some(Answered { tag, answer }) = queue.wait() {
            let Answer::Value(Ok(Some(value))) = answer else { panic!("{answer:?}") };
            assert!(value.starts_with(keys[tag as usize].as_bytes()));
            order.push(tag);
        }
        order
    };
    for _ in 0..2 {
        assert_eq!(answered(["very long", "short"]), [0, 1], "it is read at once");
    }
    assert_eq!(answered(["apart", "short"]), [1, 0]);
    assert_eq!(answered(["apart", "short"]), [0, 1], "the cache has it");
}

#[test]
fn on_the_real_disk_every_way_of_reading_answers_the_same() {
    let asks: Vec<Ask> = (0..600)
        .map(|n| if n % 5 == 0 { Ask::Range(n, n + 30, 7) } else { Ask::Get(n * 7 % 600) })
        .collect();
    for overlap in Overlap::ALL {
        for direct in [DirectIo::ALL, DirectIo::default()] {
            let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
            let options = options(GuardKind::Grf, 0).overlap(overlap).direct(direct);
            let db = Db::open(folder.path(), options).expect("opens");
            fill(&db, 3);
            let before = db.stats().expect("open");
            let expected: Vec<Shown> = asks.iter().map(|ask| ask.at_once(&db)).collect();
            let [costs, ..] = counted(&db, &before);
            let before = db.stats().expect("open");
            assert_eq!(all_answers(&db, &asks, 8, 30), expected, "{overlap:?}, {direct:?}");
            let [queued, ..] = counted(&db, &before);
            assert!(costs.value_reads > 0 && costs.value_reads == queued.value_reads);
            let keys: Vec<Vec<u8>> = (0..600).map(key).collect();
            for (key, value) in keys.iter().zip(db.multi_get(&keys)) {
                let alone = shown_value(key, db.get(key));
                assert_eq!(shown_value(key, value), alone, "{overlap:?}, {direct:?}");
            }
            // What is given up disturbs no other query.
            let mut queue = db.queue(4);
            asks.iter().for_each(|ask| ask.submit(&mut queue, 0));
            drop(queue);
            assert_eq!(all_answers(&db, &asks[..50], 2, 50), expected[..50]);
        }
    }
}
