//! A subscriber is given each event of a store once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Metadata, Subscriber};
use trommel::Environment;
use trommel::storage::Memory;
use trommel::{Background, Db, Options};
use trommel_tracing::Tracing;

/// Counts what it is given.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Subscriber for Counting {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "trommel"
    }
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_subscriber_is_given_each_event() {
    let counting = Counting::default();
    with_default(counting.clone(), || {
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let options = Options::new().background(Background::Stepped);
        let db = Db::open_with("db", options, environment.listener(Arc::new(Tracing)));
        let db = db.expect("opens");
        db.put("key", "value").expect("writes");
        db.flush().expect("flushes");
        db.close().expect("closes");
    });
    assert_eq!(counting.0.load(Ordering::Relaxed), 3, "opened, flushed, closed");
}
