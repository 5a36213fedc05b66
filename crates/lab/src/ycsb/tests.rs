//! Tests of whole runs: over this store, over a map that is too simple to be wrong, and over faulty
//! maps.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};

use super::*;
use crate::compare::{Peer, Trommel};
use crate::progress::Silent;

/// A map as a store. It may have a fault, and records what it is asked.
struct MapEngine {
    fault: Fault,
    recorded: std::sync::Arc<Mutex<Vec<Call>>>,
}

/// A call of the map: the key, and the limit of a scan or the stamp of a write.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Get(Vec<u8>),
    Put(Vec<u8>, u64),
    Scan(Vec<u8>, usize),
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Every hundredth get finds nothing.
    LosesKeys,
    /// Every hundredth get returns another key's value.
    MixesUp,
    /// Each key keeps its first value.
    LosesUpdates,
    /// One insert in a hundred is dropped.
    LosesInserts,
    /// Scans skip their third entry.
    Skips,
    /// Scans end after ten entries.
    StopsEarly,
    /// One byte of every hundredth value is wrong: the last one before the final stamp.
    Rots,
    /// The first get takes 50 milliseconds.
    BeginsSlowly,
}

struct Map {
    entries: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
    calls: AtomicU64,
    fault: Fault,
    recorded: std::sync::Arc<Mutex<Vec<Call>>>,
}

impl Engine for MapEngine {
    fn name(&self) -> &'static str {
        "map"
    }
    fn filters(&self) -> Vec<String> {
        vec!["none".into(), "other".into()]
    }
    fn open(&self, _: &Path, _: &str, _: &PeerSettings) -> Result<Box<dyn Peer>> {
        let (fault, recorded) = (self.fault, self.recorded.clone());
        Ok(Box::new(Map { entries: RwLock::default(), calls: AtomicU64::new(0), fault, recorded }))
    }
}

impl Map {
    /// Whether this call is one of a hundred that fail, if the map has this fault.
    fn fails(&self, fault: Fault) -> bool {
        self.fault == fault && self.calls.fetch_add(1, Ordering::Relaxed) % 100 == 99
    }

    fn note(&self, recorded: Call) {
        self.recorded.lock().expect("no panic").push(recorded);
    }
}

impl Peer for Map {
    fn settings(&self) -> String {
        "a map".into()
    }
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let stamp = u64::from_le_bytes(value[8..16].try_into().expect("eight bytes"));
        self.note(Call::Put(key.to_vec(), stamp));
        let mut entries = self.entries.write().expect("no panic");
        let is_new = !entries.contains_key(key);
        let is_lost = match self.fault {
            Fault::LosesUpdates => !is_new,
            Fault::LosesInserts => is_new && stamp > 0 && self.fails(Fault::LosesInserts),
            _ => false,
        };
        let mut value = value.to_vec();
        if self.fails(Fault::Rots) {
            let place = value.len() - 9;
            value[place] ^= 1;
        }
        if !is_lost {
            entries.insert(key.to_vec(), value);
        }
        Ok(())
    }
    fn delete(&self, _: &[u8]) -> Result<()> {
        unreachable!("YCSB deletes nothing")
    }
    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.note(Call::Get(key.to_vec()));
        if self.fault == Fault::BeginsSlowly && self.calls.fetch_add(1, Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(50));
        }
        let entries = self.entries.read().expect("no panic");
        if self.fails(Fault::LosesKeys) {
            return Ok(false);
        }
        let other = entries.range(key.to_vec()..).nth(1).filter(|_| self.fails(Fault::MixesUp));
        let found = other.map(|(_, value)| value).or_else(|| entries.get(key));
        found.into_iter().for_each(|value| seen(value));
        Ok(found.is_some())
    }
    fn scan(
        &self,
        from: &[u8],
        _: Option<&[u8]>,
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        self.note(Call::Scan(from.to_vec(), limit));
        let most = if self.fault == Fault::StopsEarly { 10.min(limit) } else { limit };
        let entries = self.entries.read().expect("no panic");
        let is_shown = |place: usize| self.fault != Fault::Skips || place != 2;
        let shown = entries.range(from.to_vec()..).enumerate();
        let shown = shown.filter(|(place, _)| is_shown(*place)).take(most);
        Ok(shown.map(|(_, (key, value))| seen(key, value)).count())
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn settle(&self) -> Result<()> {
        Ok(())
    }
    fn compact(&self) -> Result<()> {
        Ok(())
    }
    fn runs(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    fn filter_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn contenders(names: &[&str]) -> Vec<Contender> {
    names.iter().map(|name| name.parse().expect("any name is one")).collect()
}

/// Returns the plan with these stores.
fn of(names: &[&str], plan: &YcsbPlan) -> YcsbPlan {
    let stores = StoresPlan { contenders: contenders(names), ..plan.stores.clone() };
    YcsbPlan { stores, ..plan.clone() }
}

fn plan(names: &[&str], workloads: &[Workload], folder: &Path) -> YcsbPlan {
    YcsbPlan {
        stores: StoresPlan {
            contenders: contenders(names),
            bits_per_key: 12.0,
            block_cache_bytes: 1 << 20,
            write_buffer_bytes: 64 << 10,
            merge_threads: 1,
            seed: 7,
            folder: folder.to_path_buf(),
        },
        workloads: workloads.to_vec(),
        distribution: None,
        keys: 3000,
        value_bytes: 60,
        threads: vec![1],
        length: RunLength::Operations(6000),
        rate: None,
        rounds: 3,
        warm_up: 0,
        begin: None,
        fit_bits: false,
        direct: false,
        tree: OwnTree::default(),
    }
}

/// Measures a plan whose map has this fault. Also returns the calls of the map.
fn measured(plan: &YcsbPlan, fault: Fault) -> (Vec<YcsbReport>, Vec<Call>) {
    let recorded = std::sync::Arc::default();
    let map = MapEngine { fault, recorded: std::sync::Arc::clone(&recorded) };
    let engines: Vec<Box<dyn Engine>> = vec![Box::new(Trommel), Box::new(map)];
    let reports = bench_ycsb(plan, &engines, &mut Silent).expect("measured");
    let recorded = recorded.lock().expect("no panic").clone();
    (reports, recorded)
}

#[test]
fn every_workload_is_answered_rightly_by_this_store_and_by_a_map() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["trommel:grf", "trommel:blocked-bloom", "trommel:none", "map"];
    for threads in [1, 3] {
        let folder = folder.path().join(threads.to_string());
        let plan = YcsbPlan { threads: vec![threads], ..plan(&names, &Workload::ALL, &folder) };
        let (reports, _) = measured(&plan, Fault::None);
        assert_eq!(reports.len(), names.len() * Workload::ALL.len());
        for (place, report) in reports.iter().enumerate() {
            let (name, workload) = (names[place % names.len()], Workload::ALL[place / names.len()]);
            let named = format!("{}:{}", report.engine, report.guard);
            assert!(named.starts_with(name), "{named} in the place of {name}");
            assert_eq!(
                (report.workload, report.wrong_answers),
                (workload, 0),
                "{name}, {workload}"
            );
            assert_eq!((report.ops, report.times.all.ops), (6000, 6000));
            let kinds = report.times.kinds();
            assert!(kinds.iter().all(|(kind, _)| workload.share(*kind) > 0), "{workload}");
            assert_eq!(kinds.len(), workload.shares().len());
            assert_eq!(kinds.iter().map(|(_, times)| times.ops).sum::<u64>(), 6000);
            assert_eq!(report.ops_per_s_of_rounds.len(), 3);
        }
        let inserted =
            |workload| if matches!(workload, Workload::D | Workload::E) { 300 } else { 0 };
        let mut expected = 3000;
        for pair in reports.chunks(names.len()) {
            expected += inserted(pair[0].workload);
            let near = |report: &YcsbReport| report.keys.abs_diff(expected) < 150;
            assert!(pair.iter().all(near), "{}: {expected}", pair[0].workload);
            assert!(pair.iter().all(|report| report.keys == pair[0].keys), "the same operations");
        }
        assert!(reports[0].disk_bytes > 3000 * 60 && reports[0].fill_seconds > 0.0);
    }
}

#[test]
fn costs_are_told_of_the_store_that_tells_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan(&["trommel:grf", "trommel:none", "map"], &[Workload::C], folder.path());
    let (reports, _) = measured(&plan, Fault::None);
    let [grf, none, map] = &reports[..] else { panic!("three reports") };
    assert_eq!((grf.costs.reads, map.costs.reads), (6000, 6000));
    let probes = grf.costs.guard_probes_per_op.expect("told");
    assert!(probes > 0.0 && probes <= 1.0 && grf.guard_bits_per_key > Some(1.0), "{probes}");
    assert_eq!(none.guard_bits_per_key, Some(0.0));
    assert!(none.costs.blocks_read_per_op >= grf.costs.blocks_read_per_op);
    assert_eq!(grf.costs.stall_seconds, Some(0.0), "nothing is written");
    assert_eq!((map.costs.blocks_read_per_op, map.costs.table_bytes_written), (None, None));
    assert_eq!((map.runs, map.guard_bits_per_key), (None, None));
}

#[test]
fn wrong_answers_are_counted() {
    for (fault, workload, at_least) in [
        (Fault::LosesKeys, Workload::C, 60),
        (Fault::MixesUp, Workload::C, 59),
        (Fault::LosesUpdates, Workload::A, 1000),
        (Fault::LosesUpdates, Workload::F, 1000),
        (Fault::LosesInserts, Workload::D, 2),
        (Fault::LosesInserts, Workload::E, 2),
        // One scan in sixteen is compared with all keys; the final scan misses one.
        (Fault::Skips, Workload::E, 300),
        (Fault::StopsEarly, Workload::E, 4500),
        // Found by the final check.
        (Fault::Rots, Workload::B, 20),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let (reports, _) = measured(&plan(&["map"], &[workload], folder.path()), fault);
        let wrong = reports[0].wrong_answers;
        assert!(wrong >= at_least, "{workload}: {wrong}, not {at_least}");
    }
}

#[test]
fn one_seed_gives_one_history_and_another_seed_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = |plan: &YcsbPlan| measured(plan, Fault::None).1;
    for workload in Workload::ALL {
        let plan = plan(&["map"], &[workload], folder.path());
        let first = history(&plan);
        assert!(first.len() >= 9000, "3000 to fill, 6000 operations");
        assert!(first == history(&plan), "{workload}");
        let cut = YcsbPlan { rounds: 7, ..plan.clone() };
        assert!(
            first == history(&cut),
            "{workload}: rounds cut a history and change nothing in it"
        );
        let mut other = plan;
        other.stores.seed = 8;
        assert!(first != history(&other), "{workload}");
    }
}

#[test]
fn scans_take_one_to_a_hundred_entries() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, recorded) = measured(&plan(&["map"], &[Workload::E], folder.path()), Fault::None);
    let lengths = recorded.iter().filter_map(|recorded| match recorded {
        Call::Scan(from, limit) if !from.is_empty() => Some(*limit),
        _ => None,
    });
    let mut counts = [0u32; 101];
    lengths.for_each(|length| counts[length] += 1);
    let scans: u32 = counts.iter().sum();
    assert!((5600..5800).contains(&scans), "{scans}");
    let expected = f64::from(scans) / 100.0;
    let noise = 5.0 * expected.sqrt();
    assert!(counts[1..].iter().all(|count| (f64::from(*count) - expected).abs() < noise));
    assert_eq!(counts[0], 0);
}

#[test]
fn requests_follow_the_distribution_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let hottest = |distribution: &str| {
        let distribution = Some(distribution.parse().expect("known"));
        let plan = YcsbPlan { distribution, ..plan(&["map"], &[Workload::C], folder.path()) };
        let mut counts = BTreeMap::<Vec<u8>, u32>::new();
        for recorded in measured(&plan, Fault::None).1 {
            if let Call::Get(key) = recorded {
                *counts.entry(key).or_default() += 1;
            }
        }
        counts.into_iter().max_by_key(|(_, count)| *count).expect("one at least")
    };
    let last_key = Records::new(3000, 60, 7).key(2999);
    assert!(hottest("uniform").1 < 15);
    // 6000 times 1/26.47; with an exponent of 1.2, 6000 times 1/5.6.
    assert!((170..290).contains(&hottest("zipfian").1));
    assert!((950..1250).contains(&hottest("zipfian:1.2").1));
    let (key, count) = hottest("latest");
    // The sum of n^-0.99 to 3000 is about 8.9.
    assert!(key == last_key && (560..790).contains(&count), "{count}");
}

#[test]
fn operations_by_time_and_by_rate() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = YcsbPlan {
        length: RunLength::Seconds(0.3),
        rate: Some(1000.0),
        threads: vec![2],
        ..plan(&["map"], &[Workload::D], folder.path())
    };
    let (reports, _) = measured(&plan, Fault::None);
    // At most the operations that are due, and one early one for each client and round. How many
    // fewer depends on the machine.
    assert!((1..=310).contains(&reports[0].ops), "{}", reports[0].ops);
    assert_eq!((reports[0].wrong_answers, reports[0].rate), (0, Some(1000.0)));
    let fast = YcsbPlan { rate: None, ..plan };
    assert!(measured(&fast, Fault::None).0[0].ops > 310);
}

#[test]
fn an_operation_that_waited_for_a_slow_one_is_timed_from_when_it_was_due() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = YcsbPlan {
        length: RunLength::Operations(40),
        rate: Some(1000.0),
        rounds: 1,
        ..plan(&["map"], &[Workload::C], folder.path())
    };
    let (reports, _) = measured(&plan, Fault::BeginsSlowly);
    // The other 39 came due while the first one was slow, a millisecond apart, so half of them
    // waited 30 ms or more.
    assert!(reports[0].times.all.p50_ns >= 29_000_000, "{:?}", reports[0].times.all);
}

#[test]
fn plans_and_reports_are_read_back_from_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan(&["trommel:grf", "map"], &[Workload::F, Workload::E], folder.path());
    let text =
        serde_json::to_string(&crate::PeerTask::Ycsb(Box::new(plan.clone()))).expect("plain data");
    assert!(text.contains("\"task\":\"ycsb\""), "{text}");
    let read: crate::PeerTask = serde_json::from_str(&text).expect("the same");
    assert_eq!(serde_json::to_string(&read).expect("plain data"), text);
    let (reports, _) = measured(&plan, Fault::None);
    let json = serde_json::to_value(&reports).expect("plain data");
    let names = "engine guard workload distribution threads rate ops seconds ops_per_s settle_seconds rounds \
                 reads blocks_read_per_op disk_reads_per_op guard_probes_per_op wrong_answers keys value_bytes \
                 fill_seconds fill_ops_per_s disk_bytes runs guard_bits_per_key settings seed policy direct";
    assert!(names.split_whitespace().all(|name| json[0].get(name).is_some()), "{json}");
    assert_eq!(
        (&json[0]["workload"], &json[0]["distribution"]),
        (&"F".into(), &"zipfian:0.99".into())
    );
    for name in ["all", "read", "read_modify_write"] {
        for field in ["ops", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"] {
            assert!(json[0][name][field].is_number(), "{name}.{field}");
        }
    }
    assert!(json[0]["scan"].is_null() && json[2]["scan"]["p99_ns"].is_number());
    let read: Vec<YcsbReport> = serde_json::from_value(json.clone()).expect("the same");
    assert_eq!(serde_json::to_value(&read).expect("plain data"), json);
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = plan(&["map"], &[Workload::A], folder.path());
    let bad = |plan: YcsbPlan| {
        let recorded = std::sync::Arc::default();
        let engines: Vec<Box<dyn Engine>> =
            vec![Box::new(Trommel), Box::new(MapEngine { fault: Fault::None, recorded })];
        bench_ycsb(&plan, &engines, &mut Silent).expect_err("refused").to_string()
    };
    assert!(bad(YcsbPlan { keys: 0, ..good.clone() }).contains("keys"));
    assert!(bad(YcsbPlan { value_bytes: 23, ..good.clone() }).contains("24 bytes"));
    assert!(bad(YcsbPlan { threads: vec![0], ..good.clone() }).contains("threads"));
    assert!(bad(YcsbPlan { rounds: 0, ..good.clone() }).contains("rounds"));
    assert!(bad(YcsbPlan { rate: Some(0.0), ..good.clone() }).contains("rate"));
    assert!(bad(YcsbPlan { rate: Some(f64::NAN), ..good.clone() }).contains("rate"));
    assert!(
        bad(YcsbPlan { length: RunLength::Operations(0), ..good.clone() }).contains("operation")
    );
    assert!(bad(YcsbPlan { length: RunLength::Seconds(0.0), ..good.clone() }).contains("seconds"));
    assert!(bad(YcsbPlan { workloads: vec![], ..good.clone() }).contains("workload"));
    let named = |names: &[&str]| bad(of(names, &good));
    assert_eq!(named(&["leveldb"]), "no peer 'leveldb'; there are: trommel, map");
    assert_eq!(named(&["map:bloom"]), "map has no filter 'bloom'; there are: none, other");
    assert_eq!(named(&["map", "map:none"]), "the same store twice");
    assert!(named(&[]).contains("a store"));
    let tree = OwnTree { granularity: "whole".into(), ..OwnTree::default() };
    assert!(bad(YcsbPlan { tree, ..of(&["trommel"], &good) }).contains("partial"));
}

#[test]
fn planned_trees_are_alike_whatever_the_filter_and_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["trommel:grf", "trommel:blocked-bloom", "trommel:none"];
    let workloads = [Workload::A, Workload::C, Workload::E];
    let plan = YcsbPlan {
        threads: vec![1, 2],
        length: RunLength::Operations(2000),
        warm_up: 50,
        begin: Some(YcsbTree { levels: 2, fill: 3 }),
        tree: OwnTree { size_ratio: 4, ..OwnTree::default() },
        ..plan(&names, &workloads, folder.path())
    };
    let (reports, _) = measured(&plan, Fault::None);
    assert_eq!(reports.len(), names.len() * workloads.len() * 2);
    for cell in reports.chunks(names.len()) {
        let of = |report: &YcsbReport| {
            (report.workload, report.threads, report.runs_filled, report.keys_filled)
        };
        assert!(cell.iter().all(|report| of(report) == of(&cell[0])), "{:?}", of(&cell[0]));
        assert!(cell.iter().all(|report| report.wrong_answers == 0 && report.ops == 2000));
        assert!(cell.iter().all(|report| report.smallest_run_keys > Some(100)));
    }
    // Fifteen flushes of 200 keys: one run is the last level's, three are flushed.
    let [alone, together] = [6, 9].map(|place| &reports[place]);
    assert_eq!((alone.workload, alone.threads, together.threads), (Workload::C, 1, 2));
    assert_eq!((alone.runs_filled, alone.runs, alone.keys_filled), (Some(4), Some(4), 3000));
    assert_eq!((alone.flushes, alone.warm_up), (Some(0), 50));
    // A thousand updates need more flushes.
    let updated = &reports[0];
    assert!(updated.keys_filled < 3000 && updated.runs_filled < Some(4), "room for flushes");
    assert!(updated.runs <= Some(4) && updated.flushes > Some(0), "{:?}", updated.flushes);
    assert!(!folder.path().join("trommel-grf").exists(), "what was copied is not kept");
}

#[test]
fn settings_are_searched_that_take_what_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = YcsbPlan {
        keys: 20_000,
        length: RunLength::Operations(100),
        begin: Some(YcsbTree { levels: 1, fill: 3 }),
        fit_bits: true,
        ..plan(&["trommel:ribbon", "trommel:none"], &[Workload::C], folder.path())
    };
    let (reports, _) = measured(&plan, Fault::None);
    let taken = reports[0].guard_bits_per_key_filled.expect("told");
    assert!(reports[0].unfit || (taken / 12.0 - 1.0).abs() <= 0.03, "{taken}");
    assert_eq!((reports[1].bits_setting, reports[1].unfit), (12.0, false));
}

#[test]
fn trees_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let begin = Some(YcsbTree { levels: 2, fill: 3 });
    let tree = OwnTree { size_ratio: 4, ..OwnTree::default() };
    let good = YcsbPlan { begin, tree, ..plan(&["map"], &[Workload::A], folder.path()) };
    let engines = || -> Vec<Box<dyn Engine>> {
        let recorded = std::sync::Arc::default();
        vec![Box::new(Trommel), Box::new(MapEngine { fault: Fault::None, recorded })]
    };
    let bad =
        |plan: YcsbPlan| bench_ycsb(&plan, &engines(), &mut Silent).expect_err("no").to_string();
    assert!(bad(good.clone()).contains("needs"), "more updates than the levels take");
    let fewer = YcsbPlan { length: RunLength::Operations(500), ..good };
    assert!(bad(fewer.clone()).contains("map:none cannot be filled"));
    let steep = Some(YcsbTree { levels: 2, fill: 4 });
    assert!(bad(YcsbPlan { begin: steep, ..fewer.clone() }).contains("--fill"));
    assert!(bad(YcsbPlan { length: RunLength::Seconds(1.0), ..fewer }).contains("by number"));
}
