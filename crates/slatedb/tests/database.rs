//! Databases with filters of this crate give what an ordered map gives, and read nothing for what
//! is not there.
//! ```text
//! any writes, deletions, merges, expiries, flushes   ── any get, scan, prefix ──> the map's
//! two processes, a compactor apart, damaged filters  ── the same
//! ```

mod counting;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use counting::{CountingStore, all_but_data};
use proptest::prelude::*;
use slatedb::bytes::Bytes;
use slatedb::config::{
    CompactorOptions, FlushOptions, FlushType, MergeOptions, PutOptions, ScanOptions, Ttl,
    WriteOptions,
};
use slatedb::object_store::ObjectStore;
use slatedb::object_store::local::LocalFileSystem;
use slatedb::{
    BloomFilterPolicy, CompactorBuilder, Db, DbBuilder, Filter, FilterBuilder, FilterPolicy,
    MergeOperator, MergeOperatorError, Settings,
};
use trommel_filters::FilterOptions;
use trommel_guards::kinds;
use trommel_slatedb::TrommelFilterPolicy;

type Policies = Vec<Arc<dyn FilterPolicy>>;

/// Small SSTs have filters, too, and nothing happens by itself.
fn settings() -> Settings {
    Settings {
        compactor_options: None,
        garbage_collector_options: None,
        min_filter_keys: 1,
        l0_max_ssts: 1000,
        l0_max_ssts_per_key: 1000,
        flush_interval: Some(Duration::from_secs(3600)),
        manifest_poll_interval: Duration::from_secs(3600),
        ..Settings::default()
    }
}

fn builder(store: Arc<dyn ObjectStore>, policies: Policies) -> DbBuilder<&'static str> {
    let with_settings = Db::builder("/db", store).with_settings(settings());
    with_settings.with_merge_operator(Arc::new(Append)).with_filter_policies(policies)
}

/// Puts operands one behind the other.
struct Append;

impl MergeOperator for Append {
    fn merge(
        &self,
        _: &Bytes,
        existing: Option<Bytes>,
        operand: Bytes,
    ) -> Result<Bytes, MergeOperatorError> {
        Ok([existing.unwrap_or_default(), operand].concat().into())
    }
}

async fn flush(db: &Db) {
    let options = FlushOptions { flush_type: FlushType::MemTable };
    db.flush_with_options(options).await.expect("flushes");
}

/// What is done to a database.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, u8),
    PutAlreadyExpired(Vec<u8>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, u8),
    Flush,
    Get(Vec<u8>),
    Scan(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Prefix(Vec<u8>),
}

/// Few bytes, so that keys meet, with ends of the alphabet.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(b'7'), Just(0xff)];
    prop_oneof![
        proptest::collection::vec(byte, 1..5),
        (0u32..40, 0u32..60).prop_map(|(user, time)| format!("user{user:02}time{time:02}").into()),
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
        1 => keys().prop_map(Step::PutAlreadyExpired),
        2 => keys().prop_map(Step::Delete),
        2 => (keys(), any::<u8>()).prop_map(|(key, operand)| Step::Merge(key, operand)),
        1 => Just(Step::Flush),
        4 => keys().prop_map(Step::Get),
        4 => (bounds(), bounds()).prop_map(|(lower, upper)| Step::Scan(lower, upper)),
        2 => keys().prop_map(|key| Step::Prefix(key[..key.len().div_ceil(2)].to_vec())),
    ];
    proptest::collection::vec(step, 1..120)
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// What an ordered map has between two bounds, which may be upside down.
fn of_map(map: &Map, lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> Map {
    let is_in = |key: &Vec<u8>| {
        let above = match lower {
            Bound::Included(bound) => key >= bound,
            Bound::Excluded(bound) => key > bound,
            Bound::Unbounded => true,
        };
        let below = match upper {
            Bound::Included(bound) => key <= bound,
            Bound::Excluded(bound) => key < bound,
            Bound::Unbounded => true,
        };
        above && below
    };
    map.iter()
        .filter(|(key, _)| is_in(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

async fn rows(mut rows: slatedb::DbIterator) -> Map {
    let mut all = Map::new();
    while let Some(row) = rows.next().await.expect("reads") {
        all.insert(row.key.to_vec(), row.value.to_vec());
    }
    all
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

async fn does_as_a_map(policies: Policies, steps: Vec<Step>) {
    let db = builder(Arc::new(CountingStore::default()), policies).build().await.expect("opens");
    let mut map = Map::new();
    // SlateDB may give them still.
    let mut expired = BTreeSet::new();
    for step in steps {
        match step {
            Step::Put(key, value) => {
                db.put(&key, [value; 3]).await.expect("puts");
                expired.remove(&key);
                map.insert(key, vec![value; 3]);
            }
            Step::PutAlreadyExpired(key) => {
                let how = PutOptions { ttl: Ttl::ExpireAtMillis(1) };
                let options = WriteOptions::default();
                db.put_with_options(&key, b"late", &how, &options).await.expect("puts");
                map.remove(&key);
                expired.insert(key);
            }
            Step::Delete(key) => {
                db.delete(&key).await.expect("deletes");
                expired.remove(&key);
                map.remove(&key);
            }
            Step::Merge(key, _) if expired.contains(&key) => {}
            Step::Merge(key, operand) => {
                let options = (MergeOptions::default(), WriteOptions::default());
                db.merge_with_options(&key, [operand], &options.0, &options.1)
                    .await
                    .expect("merges");
                map.entry(key).or_default().push(operand);
            }
            Step::Flush => flush(&db).await,
            Step::Get(key) => {
                let got = db.get(&key).await.expect("gets");
                if !expired.contains(&key) {
                    assert_eq!(got.as_deref(), map.get(&key).map(Vec::as_slice), "{key:?}");
                }
            }
            Step::Scan(lower, upper) if are_in_order(&lower, &upper) => {
                let scan = db.scan((lower.clone(), upper.clone())).await.expect("scans");
                let mut found = rows(scan).await;
                found.retain(|key, _| !expired.contains(key));
                assert_eq!(found, of_map(&map, &lower, &upper), "{lower:?} {upper:?}");
            }
            Step::Scan(..) => {}
            Step::Prefix(prefix) => {
                let scan = db.scan_prefix(&prefix, ..).await.expect("scans");
                let mut found = rows(scan).await;
                found.retain(|key, _| !expired.contains(key));
                let mut expected = map.clone();
                expected.retain(|key, _| key.starts_with(&prefix));
                assert_eq!(found, expected, "{prefix:?}");
            }
        }
    }
    db.close().await.expect("closes");
}

fn one(policy: impl FilterPolicy + 'static) -> Policies {
    vec![Arc::new(policy)]
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn a_database_gives_what_a_map_gives(steps in steps(), kind in 0usize..6) {
        let policies = match kind {
            0 => one(TrommelFilterPolicy::cell(14.0)),
            1 => one(TrommelFilterPolicy::gap(12.0)),
            2 => one(TrommelFilterPolicy::coded(10.0)),
            3 => one(TrommelFilterPolicy::new(FilterOptions::new(kinds::SURF_REAL, 16.0))),
            4 => one(TrommelFilterPolicy::prefixes(16.0, "1+2+all".parse().expect("levels"))),
            _ => vec![
                Arc::new(BloomFilterPolicy::new(10)) as Arc<dyn FilterPolicy>,
                Arc::new(TrommelFilterPolicy::cell(10.0)),
            ],
        };
        run(does_as_a_map(policies, steps));
    }
}

/// Keys of which no two begin alike.
fn spread(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

const KEYS: u64 = 20_000;
const SSTS: u64 = 10;

async fn fill(db: &Db) {
    for number in 0..KEYS {
        db.put(spread(number), [7; 20]).await.expect("puts");
        if number % (KEYS / SSTS) == KEYS / SSTS - 1 {
            flush(db).await;
        }
    }
}

/// Reads of the object store for each empty short range.
async fn gets_of_empty_ranges(db: &Db, store: &CountingStore) -> f64 {
    let ask = async |number: u64| {
        let lower = u64::from_be_bytes(spread(1 << 40 | number));
        let range = lower.to_be_bytes()..lower.saturating_add(1 << 30).to_be_bytes();
        let options = ScanOptions { cache_blocks: false, ..ScanOptions::default() };
        let scan = db.scan_with_options(range, &options).await.expect("scans");
        assert!(rows(scan).await.len() < 3);
    };
    // Filters are read once.
    for number in 0..200 {
        ask(number).await;
    }
    store.take_gets();
    for number in 1000..2000 {
        ask(number).await;
    }
    store.take_gets() as f64 / 1000.0
}

#[test]
fn empty_ranges_read_next_to_nothing_and_without_a_filter_every_sst() {
    run(async {
        for (policies, at_least, at_most) in [
            (one(TrommelFilterPolicy::gap(14.0)), 0.0, 0.1),
            (Policies::new(), SSTS as f64 * 0.99, SSTS as f64 * 1.01),
        ] {
            let store = Arc::new(CountingStore::default());
            let db = builder(store.clone(), policies).with_db_cache(all_but_data(), 1);
            let db = db.build().await.expect("opens");
            fill(&db).await;
            let gets = gets_of_empty_ranges(&db, &store).await;
            assert!((at_least..at_most).contains(&gets), "{gets}");
            db.close().await.expect("closes");
        }
    });
}

/// As another process compacts: a compactor of its own, whose writer has none.
#[test]
fn filters_are_there_after_a_compaction_elsewhere() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let store = Arc::new(CountingStore::default());
        let policies = one(TrommelFilterPolicy::gap(14.0));
        let db = builder(store.clone(), policies.clone()).with_db_cache(all_but_data(), 1);
        let db = db.build().await.expect("opens");
        fill(&db).await;
        let every = Duration::from_millis(20);
        let options = CompactorOptions { poll_interval: every, ..CompactorOptions::default() };
        let compactor = CompactorBuilder::new("/db", store.clone() as Arc<dyn ObjectStore>);
        let compactor = compactor.with_merge_operator(Arc::new(Append)).with_options(options);
        let compactor = Arc::new(compactor.with_filter_policies(policies).build());
        let running = tokio::spawn({
            let compactor = compactor.clone();
            async move { compactor.run().await }
        });
        let is_compacted = |db: &Db| {
            let manifest = db.manifest();
            let text = format!("{manifest:?}");
            text.contains("SortedRun") && !text.contains("l0: [Sst")
        };
        for _ in 0..600 {
            db.refresh_manifest().await.expect("reads");
            if is_compacted(&db) {
                break;
            }
            tokio::time::sleep(every).await;
        }
        compactor.stop().await.expect("stops");
        running.abort();
        assert!(is_compacted(&db), "{:?}", db.manifest());
        let gets = gets_of_empty_ranges(&db, &store).await;
        assert!(gets < 0.05, "{gets}");
        let all = rows(db.scan::<std::ops::RangeFull>(..).await.expect("scans")).await;
        assert_eq!(all.len() as u64, KEYS);
        db.close().await.expect("closes");
    });
}

/// Gives filters bytes that were damaged.
struct Damaging {
    inner: TrommelFilterPolicy,
    damage: fn(&mut Vec<u8>),
}

impl FilterPolicy for Damaging {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        self.inner.builder()
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        let mut data = data.to_vec();
        (self.damage)(&mut data);
        self.inner.decode(&data)
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        self.inner.estimate_size(num_keys)
    }

    fn supports_range_queries(&self) -> bool {
        true
    }
}

#[test]
fn filters_whose_bytes_are_damaged_hide_no_row() {
    let damages: [fn(&mut Vec<u8>); 3] = [
        |bytes| bytes.truncate(bytes.len() / 2),
        Vec::clear,
        |bytes| bytes.iter_mut().rev().take(4).for_each(|byte| *byte = !*byte),
    ];
    run(async {
        let folder = tempfile::tempdir().expect("a folder");
        let store = || Arc::new(LocalFileSystem::new_with_prefix(folder.path()).expect("is there"));
        let policy = || TrommelFilterPolicy::cell(14.0);
        let db = builder(store(), one(policy())).build().await.expect("opens");
        fill(&db).await;
        db.close().await.expect("closes");
        for damage in damages {
            let policies = one(Damaging { inner: policy(), damage });
            let db = builder(store(), policies).build().await.expect("opens");
            for number in (0..KEYS).step_by(97) {
                let key = spread(number);
                assert!(db.get(key).await.expect("gets").is_some());
                let scan = db.scan(key..=key).await.expect("scans");
                assert_eq!(rows(scan).await.len(), 1);
            }
            db.close().await.expect("closes");
        }
    });
}

const CHILD: &str = "TROMMEL_SLATEDB_TEST_FOLDER";

/// The other process of the test below: it takes the database over, and writes.
#[test]
fn takes_over() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    run(async {
        let store = Arc::new(LocalFileSystem::new_with_prefix(folder).expect("is there"));
        let db =
            builder(store, one(TrommelFilterPolicy::coded(12.0))).build().await.expect("opens");
        assert!(db.get(b"of the first").await.expect("gets").is_some());
        assert!(db.get(b"of the second").await.expect("gets").is_none());
        db.put(b"of the second", b"written").await.expect("puts");
        flush(&db).await;
        db.close().await.expect("closes");
    });
}

#[test]
fn another_process_takes_over_and_each_reads_the_filters_of_the_other() {
    run(async {
        let folder = tempfile::tempdir().expect("a folder");
        let store = || Arc::new(LocalFileSystem::new_with_prefix(folder.path()).expect("is there"));
        let policies = || one(TrommelFilterPolicy::coded(12.0));
        let first = builder(store(), policies()).build().await.expect("opens");
        first.put(b"of the first", b"written").await.expect("puts");
        flush(&first).await;
        let this = std::env::current_exe().expect("a test program");
        let mut other = Command::new(this);
        other.args(["--exact", "takes_over"]).env(CHILD, folder.path());
        let output = other.output().expect("starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        // It is fenced: its write goes nowhere.
        let late = async {
            first.put(b"late", b"written").await?;
            first.flush().await
        };
        assert!(late.await.is_err());
        let third = builder(store(), policies()).build().await.expect("opens");
        let all = rows(third.scan::<std::ops::RangeFull>(..).await.expect("scans")).await;
        let keys: Vec<&[u8]> = all.keys().map(Vec::as_slice).collect();
        assert_eq!(keys, [&b"of the first"[..], b"of the second"]);
        third.close().await.expect("closes");
    });
}
