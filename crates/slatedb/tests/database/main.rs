//! Databases with filters of this crate give what an ordered map gives, and read nothing for what
//! is not there.
//! ```text
//! map         any writes, deletions, merges, expiries, flushes   ── any get, scan ──> the map's
//! processes   another process takes over, or compacts            ── the same, as few reads
//! damage      filters whose bytes are not what was written       ── the same
//! ```

#[path = "../counting/mod.rs"]
mod counting;
mod damage;
mod map;
mod processes;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use counting::{CountingStore, all_but_data};
use slatedb::admin::AdminBuilder;
use slatedb::bytes::Bytes;
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, FlushOptions, FlushType, ScanOptions,
};
use slatedb::object_store::ObjectStore;
use slatedb::{
    BloomFilterPolicy, CompactorBuilder, Db, DbBuilder, FilterPolicy, MergeOperator,
    MergeOperatorError, Settings,
};
use trommel_slatedb::TrommelFilterPolicy;

type Policies = Vec<Arc<dyn FilterPolicy>>;
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The policies that a test has by name, for tests of two processes: which one cannot give to the
/// other.
const NAMES: [&str; 6] = ["cell", "gap", "coded", "prefixes", "bloom and cell", "cell and gap"];

fn policies(name: &str) -> Policies {
    let policy = |name: &str| -> Arc<dyn FilterPolicy> {
        match name {
            "cell" => Arc::new(TrommelFilterPolicy::cell(14.0)),
            "gap" => Arc::new(TrommelFilterPolicy::gap(14.0)),
            "coded" => Arc::new(TrommelFilterPolicy::coded(14.0)),
            "prefixes" => {
                let levels = "1+2+4+all".parse().expect("levels");
                Arc::new(TrommelFilterPolicy::prefixes(16.0, levels))
            }
            "bloom" => Arc::new(BloomFilterPolicy::new(10)),
            _ => panic!("{name}: no policy"),
        }
    };
    name.split(" and ").map(policy).collect()
}

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

async fn rows(mut rows: slatedb::DbIterator) -> Map {
    let mut all = Map::new();
    while let Some(row) = rows.next().await.expect("reads") {
        all.insert(row.key.to_vec(), row.value.to_vec());
    }
    all
}

async fn all_rows(db: &Db) -> Map {
    rows(db.scan::<std::ops::RangeFull>(..).await.expect("scans")).await
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// Soon, whatever there is: two SSTs of level 0, or more.
fn compactor(store: Arc<dyn ObjectStore>, policies: Policies) -> CompactorBuilder<&'static str> {
    let soon = Duration::from_millis(5);
    let sources = [("min_compaction_sources", "2"), ("max_compaction_sources", "1000")];
    let owned = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
    let worker = CompactionWorkerOptions {
        compactions_poll_interval: soon,
        min_filter_keys: 1,
        ..CompactionWorkerOptions::default()
    };
    let options = CompactorOptions {
        poll_interval: soon,
        commit_compacted_interval: soon,
        scheduler_options: HashMap::from(sources.map(owned)),
        worker: Some(worker),
        ..CompactorOptions::default()
    };
    let compactor = CompactorBuilder::new("/db", store).with_options(options);
    compactor.with_merge_operator(Arc::new(Append)).with_filter_policies(policies)
}

/// Runs a compactor until all SSTs are in one sorted run.
async fn compact(store: Arc<dyn ObjectStore>, compactor: CompactorBuilder<&'static str>) {
    let compactor = Arc::new(compactor.build());
    let running = tokio::spawn({
        let compactor = compactor.clone();
        async move { compactor.run().await }
    });
    let admin = AdminBuilder::new("/db", store).build();
    for _ in 0..4000 {
        let manifest = admin.read_manifest(None).await.expect("reads").expect("there is one");
        if manifest.l0().is_empty() && manifest.compacted().len() == 1 {
            compactor.stop().await.expect("stops");
            running.await.expect("no panic").expect("ran");
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("nothing was compacted");
}

/// Keys of which no two begin alike.
fn spread(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

const KEYS: u64 = 20_000;
const SSTS: u64 = 10;

/// Fills a database, and gives what it has then.
async fn fill(db: &Db) -> Map {
    let mut map = Map::new();
    for number in 0..KEYS {
        let (key, value) = (spread(number), number.to_le_bytes());
        db.put(key, value).await.expect("puts");
        map.insert(key.to_vec(), value.to_vec());
        if number % (KEYS / SSTS) == KEYS / SSTS - 1 {
            flush(db).await;
        }
    }
    map
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
        for (policies, at_least, at_most) in
            [(policies("gap"), 0.0, 0.1), (Policies::new(), SSTS as f64 * 0.99, SSTS as f64 * 1.01)]
        {
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
