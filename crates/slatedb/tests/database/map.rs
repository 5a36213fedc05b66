//! Whatever is written: a database gives what an ordered map gives.
//! ```text
//! time      0 ────────── 20 ──────────────── 50
//! put, for 50   there ......................| there, or gone; behind a compaction, gone
//! ```

use std::collections::BTreeMap;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use slatedb::config::{MergeOptions, PutOptions, Ttl, WriteOptions};
use slatedb_common::clock::{SystemClock, SystemClockTicker};
use trommel_filters::FilterOptions;
use trommel_guards::kinds;

use super::*;

/// Its time, in milliseconds, is what it was set to. Who waits for it waits for real.
#[derive(Debug)]
struct SetClock(AtomicI64);

impl SetClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Default for SetClock {
    fn default() -> SetClock {
        SetClock(AtomicI64::new(1_800_000_000_000))
    }
}

impl SystemClock for SetClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.now_ms()).expect("a time")
    }

    fn sleep<'a>(&'a self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(tokio::time::sleep(time))
    }

    fn ticker(&self, time: Duration) -> SystemClockTicker<'_> {
        SystemClockTicker::new(self, time)
    }
}

/// What is done to a database.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, u8),
    /// For so many milliseconds.
    PutFor(Vec<u8>, u8, u64),
    Delete(Vec<u8>),
    Merge(Vec<u8>, u8),
    Wait(i64),
    Flush,
    Get(Vec<u8>),
    Scan(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Prefix(Vec<u8>),
}

/// Few bytes, so that keys meet, with ends of the alphabet.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(b'7'), Just(0xff)];
    prop_oneof![
        proptest::collection::vec(byte, 1..4),
        (0u32..8, 0u32..10).prop_map(|(user, time)| format!("user{user:02}time{time:02}").into()),
    ]
}

fn bounds() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        keys().prop_map(Bound::Included),
        keys().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (keys(), any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        4 => (keys(), any::<u8>(), 1u64..60)
            .prop_map(|(key, value, ms)| Step::PutFor(key, value, ms)),
        2 => keys().prop_map(Step::Delete),
        2 => (keys(), any::<u8>()).prop_map(|(key, operand)| Step::Merge(key, operand)),
        1 => (1i64..20).prop_map(Step::Wait),
        2 => Just(Step::Flush),
        4 => keys().prop_map(Step::Get),
        4 => (bounds(), bounds()).prop_map(|(lower, upper)| Step::Scan(lower, upper)),
        2 => keys().prop_map(|key| Step::Prefix(key[..key.len().div_ceil(2)].to_vec())),
    ];
    proptest::collection::vec(step, 1..120)
}

/// Whether bounds are in order: SlateDB refuses others.
fn are_in_order(lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Included(lower), Bound::Included(upper)) => lower <= upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower < upper,
    }
}

fn lies_between(key: &[u8], lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> bool {
    let above = match lower {
        Bound::Included(bound) => key >= bound.as_slice(),
        Bound::Excluded(bound) => key > bound.as_slice(),
        Bound::Unbounded => true,
    };
    let below = match upper {
        Bound::Included(bound) => key <= bound.as_slice(),
        Bound::Excluded(bound) => key < bound.as_slice(),
        Bound::Unbounded => true,
    };
    above && below
}

/// What was written last of a key.
#[derive(Clone, Debug)]
struct Row {
    /// None: it was deleted.
    value: Option<Vec<u8>>,
    /// When it ends. None: never.
    end_ms: Option<i64>,
    /// Whether operands came behind a value that ends: they may outlive it.
    is_merged: bool,
}

impl Row {
    const DELETED: Row = Row { value: None, end_ms: None, is_merged: false };

    fn has_ended(&self, now_ms: i64) -> bool {
        self.end_ms.is_some_and(|end_ms| end_ms <= now_ms)
    }
}

struct Tested {
    db: Db,
    clock: Arc<SetClock>,
    rows: BTreeMap<Vec<u8>, Row>,
}

impl Tested {
    async fn open(store: Arc<CountingStore>, policies: Policies) -> Tested {
        let clock = Arc::new(SetClock::default());
        let db = builder(store, policies).with_system_clock(clock.clone());
        Tested { db: db.build().await.expect("opens"), clock, rows: BTreeMap::new() }
    }

    async fn put(&mut self, key: Vec<u8>, value: u8, ms: Option<u64>) {
        let how = PutOptions { ttl: ms.map_or(Ttl::NoExpiry, Ttl::ExpireAfterMillis) };
        let options = WriteOptions::default();
        self.db.put_with_options(&key, [value; 3], &how, &options).await.expect("puts");
        let end_ms = ms.map(|ms| self.clock.now_ms() + ms as i64);
        self.rows.insert(key, Row { value: Some(vec![value; 3]), end_ms, is_merged: false });
    }

    async fn merge(&mut self, key: Vec<u8>, operand: u8) {
        let now_ms = self.clock.now_ms();
        let row = self.rows.entry(key.clone()).or_insert(Row::DELETED);
        // SlateDB may have the value still, to which it would add.
        if row.has_ended(now_ms) {
            return;
        }
        row.value.get_or_insert_default().push(operand);
        row.is_merged = true;
        let options = (MergeOptions::default(), WriteOptions::default());
        let merge = self.db.merge_with_options(&key, [operand], &options.0, &options.1);
        merge.await.expect("merges");
    }

    /// What lives is there, as it was written last. What has ended may be there still, and nothing
    /// older.
    fn check(&self, mut found: Map, is_asked: impl Fn(&[u8]) -> bool) {
        for (key, row) in self.rows.iter().filter(|(key, _)| is_asked(key)) {
            let got = found.remove(key);
            let may_be_gone = row.has_ended(self.clock.now_ms());
            if !(may_be_gone && (got.is_none() || row.is_merged)) {
                assert_eq!(got, row.value, "{key:?}: {row:?}");
            }
        }
        assert_eq!(found, Map::new(), "there is no such key");
    }

    async fn get(&self, key: Vec<u8>) {
        let got = self.db.get(&key).await.expect("gets");
        let found = got.map(|value| (key.clone(), value.to_vec()));
        self.check(found.into_iter().collect(), |other| other == key);
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Put(key, value) => self.put(key, value, None).await,
            Step::PutFor(key, value, ms) => self.put(key, value, Some(ms)).await,
            Step::Delete(key) => {
                self.db.delete(&key).await.expect("deletes");
                self.rows.insert(key, Row::DELETED);
            }
            Step::Merge(key, operand) => self.merge(key, operand).await,
            Step::Wait(ms) => self.clock.advance(ms),
            Step::Flush => flush(&self.db).await,
            Step::Get(key) => self.get(key).await,
            Step::Scan(lower, upper) if are_in_order(&lower, &upper) => {
                let scan = self.db.scan((lower.clone(), upper.clone())).await.expect("scans");
                self.check(rows(scan).await, |key| lies_between(key, &lower, &upper));
            }
            Step::Scan(..) => {}
            Step::Prefix(prefix) => {
                let scan = self.db.scan_prefix(&prefix, ..).await.expect("scans");
                self.check(rows(scan).await, |key| key.starts_with(&prefix));
            }
        }
    }

    /// Whether every key that was ever written has what was written last.
    async fn get_all(&self) {
        for key in self.rows.keys() {
            self.get(key.clone()).await;
        }
    }

    /// Ends all that ends, and has it compacted away: then it is gone for certain.
    async fn end(&mut self, store: Arc<CountingStore>, policies: Policies) {
        self.clock.advance(1000);
        // The time of an SST is that of its last write.
        for value in 1..3 {
            self.put(b"last".to_vec(), value, None).await;
            flush(&self.db).await;
        }
        let compactor = compactor(store.clone(), policies).with_system_clock(self.clock.clone());
        compact(store, compactor).await;
        self.db.refresh_manifest().await.expect("reads");
        let now_ms = self.clock.now_ms();
        let mut found = all_rows(&self.db).await;
        for (key, row) in &self.rows {
            if row.has_ended(now_ms) && !row.is_merged {
                assert_eq!(self.db.get(key).await.expect("gets"), None, "{key:?}: {row:?}");
                assert!(!found.contains_key(key), "{key:?}: {row:?}");
            }
        }
        found.retain(|key, _| self.rows.contains_key(key));
        self.check(found, |_| true);
        self.get_all().await;
    }
}

async fn does_as_a_map(policies: Policies, steps: Vec<Step>) {
    let store = Arc::new(CountingStore::default());
    let mut tested = Tested::open(store.clone(), policies.clone()).await;
    for step in steps {
        tested.step(step).await;
    }
    flush(&tested.db).await;
    tested.get_all().await;
    tested.end(store, policies).await;
    tested.db.close().await.expect("closes");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn a_database_gives_what_a_map_gives(steps in steps(), kind in 0..=NAMES.len()) {
        let surf = || TrommelFilterPolicy::new(FilterOptions::new(kinds::SURF_REAL, 16.0));
        let policies = match NAMES.get(kind) {
            Some(name) => policies(name),
            None => vec![Arc::new(surf()) as Arc<dyn FilterPolicy>],
        };
        run(does_as_a_map(policies, steps));
    }
}

#[test]
fn rows_that_end_are_there_to_their_last_millisecond_and_gone_behind_a_compaction() {
    for name in NAMES {
        run(async {
            let store = Arc::new(CountingStore::default());
            let mut tested = Tested::open(store.clone(), policies(name)).await;
            let key = |number: u64| spread(number).to_vec();
            for number in 0..40 {
                tested.put(key(number), 1, None).await;
                tested.put(key(number), 2, (number % 2 == 0).then_some(10)).await;
                if number % 10 == 9 {
                    flush(&tested.db).await;
                }
            }
            tested.clock.advance(9);
            assert_eq!(all_rows(&tested.db).await.len(), 40);
            for number in 0..40 {
                let got = tested.db.get(key(number)).await.expect("gets");
                assert_eq!(got.as_deref(), Some(&[2; 3][..]), "{name}, {number}");
            }
            tested.clock.advance(1);
            tested.end(store, policies(name)).await;
            assert_eq!(all_rows(&tested.db).await.len(), 20 + 1, "{name}");
            tested.db.close().await.expect("closes");
        });
    }
}
