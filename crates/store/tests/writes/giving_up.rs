//! Calls that their callers give up: scans that pass over deleted keys, counts, and writes that
//! wait behind others.
//! ```text
//! give up, go on, give up, ...   scan    x x x x | x x x x | x k x x | ...      the same keys
//! ```
//! Invariant: what is given up has changed nothing, and a scan goes on where it was.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use trommel::storage::Memory;
use trommel::{Background, Db, Environment, Error, Options, Result, Value};

/// Keys, nearly all of which are deleted.
const KEYS: u32 = 60_000;
/// One key in so many is not.
const KEPT: u32 = 9_000;

fn open(options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    Db::open_with("db", options, environment).expect("opens")
}

/// A store of two runs and a memtable: the older keys in one, what deletes them in all three.
fn mostly_deleted() -> Db {
    // Values are apart, so that scans find keys ahead.
    let options = Options::new().background(Background::Stepped).value_threshold(256);
    let db = open(options);
    for key in 0..KEYS {
        let value = if key % KEPT == 0 { key.to_string().repeat(100) } else { String::new() };
        db.put(key.to_be_bytes(), value).expect("puts");
    }
    db.flush().expect("flushes");
    for (number, key) in (0..KEYS).filter(|key| key % KEPT != 0).enumerate() {
        db.delete(key.to_be_bytes()).expect("deletes");
        if number as u32 == KEYS / 2 {
            db.flush().expect("flushes");
        }
    }
    db
}

type Row = (Vec<u8>, Value);

/// What a scan gives that is given up wherever it may be, and how often it was. `between` is called
/// whenever it was.
fn given_up(
    mut next: impl FnMut() -> Option<Result<Row>>,
    mut between: impl FnMut(),
) -> (Vec<u32>, u32) {
    let (mut keys, mut times) = (Vec::new(), 0);
    loop {
        match trommel::giving_up(|| true, &mut next) {
            None => return (keys, times),
            Some(Ok((key, _))) => keys.push(u32::from_be_bytes(key.try_into().expect("of 4"))),
            Some(Err(Error::Cancelled)) => {
                times += 1;
                between();
            }
            Some(Err(error)) => panic!("{error}"),
        }
    }
}

#[test]
fn a_scan_that_was_given_up_goes_on_where_it_was() {
    let kept: Vec<u32> = (0..KEYS).filter(|key| key % KEPT == 0).collect();
    let turned: Vec<u32> = kept.iter().rev().copied().collect();
    let db = mostly_deleted();
    let scans = || [db.range(..), db.range(..).keys_only()];
    for mut scan in scans() {
        let (keys, times) = given_up(|| scan.next(), || {});
        assert!(keys == kept && times >= KEYS / KEPT, "{times}: {keys:?}");
        assert!(scan.next().is_none(), "it has ended");
    }
    for mut scan in scans() {
        let (keys, times) = given_up(|| scan.next_back(), || {});
        assert!(keys == turned && times >= KEYS / KEPT, "{times}: {keys:?}");
    }
    let transaction = db.transaction();
    transaction.put(KEYS.to_be_bytes(), "").expect("puts");
    let mut scan = transaction.range(..);
    let (keys, _) = given_up(|| scan.next(), || {});
    assert_eq!(keys, [&kept[..], &[KEYS]].concat());
    // Rows that are packed before it is given up are there.
    let (mut scan, mut rows, mut count) = (db.range(..), Vec::new(), 0);
    loop {
        match trommel::giving_up(|| true, || scan.next_packed(&mut rows, usize::MAX)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(Error::Cancelled) => count += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let bytes: usize = kept.iter().map(|key| 8 + 4 + key.to_string().len() * 100).sum();
    assert!(count >= 4 && rows.len() == bytes, "{count}, {} of {bytes}", rows.len());
}

#[test]
fn a_scan_that_was_given_up_goes_on_in_another_version_and_passes_no_key_twice() {
    let kept: Vec<u32> = (0..KEYS).filter(|key| key % KEPT == 0).collect();
    for is_turned in [false, true] {
        let db = mostly_deleted();
        let mut scan = db.range(..);
        let mut number = KEYS;
        let merge = || {
            // Newer than the scan: it does not see it. The merge leaves no version as it was.
            number += 1;
            db.put(number.to_be_bytes(), "").expect("puts");
            db.compact().expect("merges");
        };
        let next = || if is_turned { scan.next_back() } else { scan.next() };
        let (mut keys, times) = given_up(next, merge);
        if is_turned {
            keys.reverse();
        }
        assert!(keys == kept && times >= 1, "{times}: {keys:?}");
    }
}

#[test]
fn a_count_of_what_is_in_memory_can_be_given_up() {
    let db = open(Options::new());
    (0..5000u32).for_each(|key| db.put(key.to_be_bytes(), "").expect("puts"));
    let count = || db.approximate_count(..).map(|count| count.most);
    assert!(matches!(trommel::giving_up(|| true, count), Err(Error::Cancelled)));
    assert_eq!(trommel::giving_up(|| false, count).expect("counts"), 5000);
}

#[test] // They waited until the load had ended.
fn a_write_behind_a_bulk_load_is_given_up_and_writes_nothing() {
    let db = open(Options::new());
    let ((begins, begun), (ends, ended)) = (channel(), channel::<()>());
    let (alone, behind) = std::thread::scope(|scope| {
        let load = scope.spawn({
            let db = &db;
            move || {
                let rows = (0..2u8).map(move |number| {
                    // The first one is asked for before other writes have to wait.
                    if number > 0 {
                        begins.send(()).expect("is there");
                        let waited = ended.recv_timeout(Duration::from_secs(10));
                        assert_ne!(waited, Err(RecvTimeoutError::Disconnected));
                    }
                    ([number], "loaded")
                });
                db.ingest(rows)
            }
        });
        begun.recv().expect("loads");
        let put = |key| trommel::giving_up(|| true, || db.put(key, ""));
        let alone = put("alone");
        let stays = scope.spawn(|| trommel::giving_up(|| false, || db.put("stays", "")));
        std::thread::sleep(Duration::from_millis(30));
        let behind = put("behind");
        ends.send(()).expect("is there");
        assert_eq!(load.join().expect("no panic").expect("loads"), 2);
        stays.join().expect("no panic").expect("puts");
        (alone, behind)
    });
    for (key, given_up) in [("alone", alone), ("behind", behind)] {
        assert!(matches!(given_up, Err(Error::Cancelled)), "{key}: {given_up:?}");
        assert!(db.get(key).expect("reads").is_none());
    }
    assert!(db.get("stays").expect("reads").is_some());
    trommel::giving_up(|| true, || db.put("later", "")).expect("nobody is in its way");
}
