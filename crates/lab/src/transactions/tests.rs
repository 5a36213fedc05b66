//! Tests of `bench transactions` with this store alone, since other engines are not in the
//! workspace.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::compare::{
    Attempt, OpenTransaction, Peer, PeerSettings, Space, TransactionWork, Trommel,
};
use crate::progress::Silent;

/// Returns the plan with these stores.
fn of(names: &[&str], mut plan: TransactionsPlan) -> TransactionsPlan {
    plan.stores.contenders =
        names.iter().map(|name| name.parse().expect("any name is one")).collect();
    plan
}

fn plan(workloads: &[TransactionWorkload], folder: &Path) -> TransactionsPlan {
    TransactionsPlan {
        stores: StoresPlan {
            contenders: vec!["trommel".parse().expect("any name is one")],
            bits_per_key: 10.0,
            block_cache_bytes: 8 << 20,
            write_buffer_bytes: 64 << 10,
            merge_threads: 1,
            seed: 7,
            folder: folder.to_path_buf(),
        },
        workloads: workloads.to_vec(),
        keys: 1000,
        value_bytes: 100,
        threads: vec![1, 4],
        length: RunLength::Operations(800),
        rounds: 2,
        hot: 8,
        scan_entries: 50,
        warehouses: 2,
    }
}

fn engines(fault: Fault) -> Vec<Box<dyn Engine>> {
    vec![Box::new(Trommel), Box::new(FaultyEngine(fault))]
}

/// A fault of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// None.
    None,
    /// One put of a transaction in this many is lost.
    LosesPuts(u64),
    /// One `put_if_absent` in this many writes unconditionally.
    Overwrites(u64),
    /// One transaction in this many runs twice.
    RunsTwice(u64),
    /// It has no transactions.
    HasNone,
}

/// This store with one fault.
struct FaultyEngine(Fault);

struct Faulty {
    inner: Box<dyn TransactionalStore>,
    fault: Fault,
    count: Arc<AtomicU64>,
}

struct FaultyOpen<'a> {
    inner: &'a dyn OpenTransaction,
    fault: Fault,
    count: &'a AtomicU64,
}

fn strikes(every: u64, count: &AtomicU64) -> bool {
    count.fetch_add(1, Ordering::Relaxed) % every == every - 1
}

impl Engine for FaultyEngine {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn filters(&self) -> Vec<String> {
        vec!["grf".into()]
    }

    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>> {
        Trommel.open(folder, filter, settings)
    }

    fn open_transactional(
        &self,
        folder: &Path,
        filter: &str,
        settings: &PeerSettings,
        spaces: &[&str],
    ) -> Result<Option<Box<dyn TransactionalStore>>> {
        if self.0 == Fault::HasNone {
            return Ok(None);
        }
        let inner = Trommel.open_transactional(folder, filter, settings, spaces)?;
        let faulty = |inner| Faulty { inner, fault: self.0, count: Arc::default() };
        Ok(inner.map(|inner| Box::new(faulty(inner)) as Box<dyn TransactionalStore>))
    }
}

impl OpenTransaction for FaultyOpen<'_> {
    fn get(&self, space: Space, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.inner.get(space, key, seen)
    }

    fn scan(
        &self,
        space: Space,
        bounds: (&[u8], Option<&[u8]>),
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        self.inner.scan(space, bounds, limit, seen)
    }

    fn put(&self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        match self.fault {
            Fault::LosesPuts(every) if strikes(every, self.count) => Ok(()),
            _ => self.inner.put(space, key, value),
        }
    }
}

impl TransactionalStore for Faulty {
    fn settings(&self) -> String {
        self.inner.settings()
    }

    fn put(&self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(space, key, value)
    }

    fn put_if_absent(&self, space: Space, key: &[u8], value: &[u8]) -> Result<bool> {
        match self.fault {
            Fault::Overwrites(every) if strikes(every, &self.count) => {
                self.inner.put(space, key, value).map(|()| true)
            }
            _ => self.inner.put_if_absent(space, key, value),
        }
    }

    fn attempt(&self, work: &mut TransactionWork<'_>) -> Result<Attempt> {
        let (fault, count) = (self.fault, &*self.count);
        let mut attempt =
            || self.inner.attempt(&mut |inner| work(&FaultyOpen { inner, fault, count }));
        match fault {
            Fault::RunsTwice(every) if strikes(every, count) => {
                attempt()?;
                attempt()
            }
            _ => attempt(),
        }
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    fn settle(&self) -> Result<()> {
        self.inner.settle()
    }

    fn counts(&self) -> Option<PeerCounts> {
        self.inner.counts()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }
}

fn measured(plan: &TransactionsPlan, fault: Fault) -> Vec<TransactionsReport> {
    bench_transactions(plan, &engines(fault), &mut Silent).expect("measured")
}

#[test]
fn every_workload_leaves_what_its_commits_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan(&TransactionWorkload::ALL, folder.path());
    let reports = measured(&plan, Fault::None);
    assert_eq!(reports.len(), TransactionWorkload::ALL.len() * 2);
    for report in &reports {
        let name = (report.workload, report.threads);
        assert_eq!(report.broken, Vec::<String>::new(), "{name:?}");
        assert_eq!(report.commits_per_s_of_rounds.len(), 2, "{name:?}");
        let done = report.commits + report.refused;
        assert!((800..=1200).contains(&done), "{name:?}: {done}");
        assert_eq!(report.kinds.iter().map(|kind| kind.done).sum::<u64>(), done, "{name:?}");
        assert!(report.threads == 4 || report.conflicts == 0, "{name:?}: one client alone");
        assert!(report.commits_per_s > 0.0 && report.all.p99_ns > 0, "{name:?}");
        assert!(report.settings.contains("serializable"), "{}", report.settings);
    }
    let names: Vec<(&str, u64)> =
        reports.iter().map(|report| (report.workload.name(), report.threads)).collect();
    assert_eq!(names[..3], [("unique-insert", 1), ("unique-insert", 4), ("unique-insert-tx", 1)]);
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert!(left.is_empty(), "stores are removed");
}

#[test]
fn unique_inserts_are_counted_once_whoever_is_faster() {
    let folder = tempfile::tempdir().expect("a folder");
    let both = [TransactionWorkload::UniqueInsert, TransactionWorkload::UniqueInsertTransaction];
    for report in measured(&plan(&both, folder.path()), Fault::None) {
        let name = (report.workload, report.threads);
        // One in eight is refused.
        assert_eq!((report.refused, report.commits), (100, 700), "{name:?}");
        assert_eq!(report.broken, Vec::<String>::new(), "{name:?}");
    }
}

#[test]
fn tpcc_is_in_its_proportions_and_rolls_back_one_order_in_a_hundred() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = TransactionsPlan {
        length: RunLength::Operations(4000),
        threads: vec![4],
        ..plan(&[TransactionWorkload::Tpcc], folder.path())
    };
    let reports = measured(&plan, Fault::None);
    let report = &reports[0];
    assert_eq!(report.broken, Vec::<String>::new());
    let done: Vec<u64> = report.kinds.iter().map(|kind| kind.done).collect();
    let shares = [(done[0], 45), (done[1], 43), (done[2], 4)];
    for (done, share) in shares {
        let expected = 4000.0 * share as f64 / 92.0;
        assert!((done as f64 - expected).abs() < 6.0 * expected.sqrt(), "{done}, not {expected}");
    }
    // Out of about 1957.
    assert!((3..60).contains(&report.refused), "{}", report.refused);
    assert!(report.settings.contains("key spaces: 11"), "{}", report.settings);
}

#[test]
fn what_a_store_does_wrong_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = |workload, fault, words: &[&str]| {
        let plan = TransactionsPlan { threads: vec![1], ..plan(&[workload], folder.path()) };
        let plan = of(&["faulty"], plan);
        let broken = measured(&plan, fault)[0].broken.join("; ");
        for word in words {
            assert!(broken.contains(word), "{workload}, {fault:?}: {word} is not in '{broken}'");
        }
    };
    let loses = Fault::LosesPuts(97);
    broken(TransactionWorkload::CounterHot, loses, &["the sum of all numbers"]);
    broken(TransactionWorkload::CounterCold, Fault::RunsTwice(97), &["the sum of all numbers"]);
    broken(TransactionWorkload::Read10Write2, loses, &["the sum of all numbers"]);
    broken(TransactionWorkload::LongScan, loses, &["the sum of all numbers"]);
    broken(TransactionWorkload::UniqueInsert, Fault::Overwrites(8), &["refused inserts"]);
    broken(TransactionWorkload::UniqueInsertTransaction, loses, &["keys: "]);
    broken(
        TransactionWorkload::Tpcc,
        loses,
        &[
            "condition 1",
            "condition 3",
            "condition 4",
            "condition 5",
            "condition 9",
            "S_YTD",
            "made",
        ],
    );
    broken(TransactionWorkload::Tpcc, Fault::RunsTwice(97), &["orders made", "C_PAYMENT_CNT"]);
}

#[test]
fn puts_if_absent_are_compared_with_puts_and_probe_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = TransactionsPlan {
        length: RunLength::Operations(2000),
        threads: vec![1],
        keys: 20_000,
        ..plan(&[TransactionWorkload::PutIfAbsent], folder.path())
    };
    let reports = measured(&plan, Fault::None);
    let report = &reports[0];
    assert_eq!((report.refused, report.broken.len()), (0, 0), "{:?}", report.broken);
    assert!(report.times_a_put.is_some_and(|times| times > 0.0));
    let probes = report.guard_probes_per_commit.expect("it tells");
    assert!((0.99..=1.0).contains(&probes), "one, but for keys that are in memory: {probes}");
    let done: Vec<u64> = report.kinds.iter().map(|kind| kind.done).collect();
    assert_eq!(done, [1000, 1000]);
}

#[test]
fn stores_take_turns_with_the_same_transactions() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = TransactionsPlan {
        threads: vec![1],
        length: RunLength::Operations(300),
        ..plan(&[TransactionWorkload::Tpcc], folder.path())
    };
    let reports = measured(&of(&["trommel", "trommel:none", "faulty"], plan), Fault::None);
    let counts = |report: &TransactionsReport| {
        let done: Vec<u64> = report.kinds.iter().map(|kind| kind.done).collect();
        (done, report.refused, report.broken.clone())
    };
    assert!(reports.iter().all(|report| counts(report) == counts(&reports[0])), "{reports:?}");
    assert_eq!([&reports[1].guard[..], &reports[2].engine[..]], ["none", "faulty"]);
}

#[test]
fn plans_and_reports_are_read_back_from_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = TransactionsPlan {
        threads: vec![1],
        ..plan(&[TransactionWorkload::PutIfAbsent], folder.path())
    };
    let task = crate::PeerTask::Transactions(plan.clone());
    let text = serde_json::to_string(&task).expect("plain data");
    assert!(text.contains("\"task\":\"transactions\""), "{text}");
    let read: crate::PeerTask = serde_json::from_str(&text).expect("the same");
    assert_eq!(serde_json::to_string(&read).expect("plain data"), text);
    let json = serde_json::to_value(measured(&plan, Fault::None)).expect("plain data");
    let names = "engine guard workload threads commits refused conflicts conflicts_per_commit \
                 commits_per_s all kinds times_a_put guard_probes_per_commit blocks_read_per_commit broken settings";
    assert!(names.split_whitespace().all(|name| json[0].get(name).is_some()), "{json}");
    assert!(json[0]["kinds"][1]["p99_ns"].is_number() && json[0]["kinds"][1]["kind"].is_string());
    let read: Vec<TransactionsReport> = serde_json::from_value(json.clone()).expect("the same");
    assert_eq!(serde_json::to_value(&read).expect("plain data"), json);
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = plan(&[TransactionWorkload::CounterHot], folder.path());
    let bad = |plan: TransactionsPlan| {
        let engines = engines(Fault::HasNone);
        bench_transactions(&plan, &engines, &mut Silent).expect_err("refused").to_string()
    };
    assert!(bad(TransactionsPlan { keys: 1, ..good.clone() }).contains("keys"));
    assert!(bad(TransactionsPlan { value_bytes: 7, ..good.clone() }).contains("8 bytes"));
    assert!(bad(TransactionsPlan { threads: vec![0], ..good.clone() }).contains("threads"));
    assert!(bad(TransactionsPlan { rounds: 0, ..good.clone() }).contains("rounds"));
    assert!(bad(TransactionsPlan { workloads: vec![], ..good.clone() }).contains("workload"));
    assert!(bad(TransactionsPlan { warehouses: 0, ..good.clone() }).contains("warehouses"));
    let named = |name: &str| bad(of(&[name], good.clone()));
    assert_eq!(named("redb"), "no peer 'redb'; there are: trommel, faulty");
    assert_eq!(named("faulty"), "faulty has no transactions here");
    let unknown = "tpc-c".parse::<TransactionWorkload>().expect_err("unknown").to_string();
    assert!(unknown.contains("counter-cold, read10-write2"), "{unknown}");
}
