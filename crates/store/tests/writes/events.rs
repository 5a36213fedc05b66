//! Listeners hear what happens, each thing once, and change nothing.

use std::path::Path;
use std::sync::{Arc, Mutex};

use trommel::Environment;
use trommel::events::{Event, Listener};
use trommel::storage::Memory;
use trommel::testing::Fault;
use trommel::{Background, Db, Options};

/// Keeps the names of events.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Heard {
    fn names(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

impl Listener for Heard {
    fn event(&self, event: &Event<'_>) {
        let text = format!("{event:?}");
        let name = text.split([' ', '{']).next().unwrap_or_default();
        self.0.lock().expect("no panic").push(name.into());
        match event {
            Event::Flushed { bytes, .. } | Event::Merged { bytes, .. } => assert!(*bytes > 0),
            Event::Opened { path, .. } | Event::Closed { path } => {
                assert_eq!(*path, Path::new("db"));
            }
            _ => {}
        }
    }
}

fn options() -> Options {
    Options::new().background(Background::Stepped).size_ratio(2).write_buffer_bytes(4096)
}

fn open(disk: &Memory, listener: Arc<dyn Listener>) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone())).listener(listener);
    Db::open_with("db", options(), environment).expect("opens")
}

#[test]
fn a_life_is_told() {
    let (disk, heard) = (Memory::new(), Arc::new(Heard::default()));
    let db = open(&disk, heard.clone());
    assert_eq!(heard.names(), ["Opened"]);
    for n in 0..2 {
        db.put([n], "value").expect("writes");
        db.flush().expect("flushes");
    }
    assert_eq!(heard.names(), ["Flushed", "Flushed"]);
    db.settle().expect("merges");
    assert_eq!(heard.names(), ["Merged"]);
    // Nobody else flushes: writers would be stopped, were there threads.
    (0..3000u32).for_each(|n| db.put(n.to_be_bytes(), [7; 64]).expect("writes"));
    let names = heard.names();
    assert!(names.contains(&"WriterSlowed".into()), "{names:?}");
    db.close().expect("closes");
    assert_eq!(heard.names().last().map(String::as_str), Some("Closed"));
    drop(db);
    assert!(heard.names().is_empty(), "it is closed once");
}

#[test]
fn a_failure_is_told_and_then_the_flush() {
    let (disk, heard) = (Memory::new(), Arc::new(Heard::default()));
    let db = open(&disk, heard.clone());
    db.put("key", "value").expect("writes");
    heard.names();
    // The log is changed first, then the table is written.
    let failed = (0..20).any(|operation| {
        disk.fail_at(operation, Fault::Io);
        let _ = db.flush();
        disk.mend();
        heard.names().contains(&"Failed".into())
    });
    assert!(failed, "no failure was told");
    db.flush().expect("the disk is well again");
    assert_eq!(heard.names(), ["Flushed"]);
}

/// Panics at each event.
struct Rude;

impl Listener for Rude {
    fn event(&self, _: &Event<'_>) {
        panic!("a listener that is not well");
    }
}

#[test]
fn a_listener_that_panics_harms_nothing() {
    let db = open(&Memory::new(), Arc::new(Rude));
    db.put("key", "value").expect("writes");
    db.flush().expect("flushes");
    assert_eq!(db.get("key").expect("reads").as_deref(), Some(&b"value"[..]));
    db.close().expect("closes");
}

#[test]
fn calls_are_timed_where_that_is_asked_for() {
    for timed in [false, true] {
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let db = Db::open_with("db", options().time_calls(timed), environment).expect("opens");
        for n in 0..2000u32 {
            db.put(n.to_be_bytes(), "value").expect("writes");
            assert!(db.get(n.to_be_bytes()).expect("reads").is_some());
            assert!(db.range(n.to_be_bytes()..).next().is_some());
            db.settle().expect("merges");
        }
        let stats = db.stats().expect("open");
        let counts = [stats.gets, stats.seeks, stats.batches].map(|latency| latency.count());
        let expected = if timed { 20..200 } else { 0..1 };
        assert!(counts.iter().all(|count| expected.contains(count)), "{timed}: {counts:?}");
    }
}
