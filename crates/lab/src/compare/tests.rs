//! Tests of comparisons with this store alone, since other engines are not in the workspace.

use super::*;
use crate::progress::Silent;

fn plan(shape: ShapeName, folder: &Path) -> ComparePlan {
    let contender = |filter: &str| Contender { engine: "trommel".into(), filter: filter.into() };
    ComparePlan {
        contenders: vec![contender("grf"), contender("none")],
        shape,
        keys: Some(5000),
        dist: "uniform".into(),
        value_bytes: 20,
        bits_per_key: 10.0,
        block_cache_bytes: None,
        size_ratio: 5,
        asks: Vec::new(),
        queries: 200,
        range_width: 64,
        loads: 2,
        seed: 7,
        folder: folder.to_path_buf(),
    }
}

/// As many keys as the plan asks for.
fn keys() -> SortedKeys {
    SortedKeys::from_integers((0..5000).collect())
}

fn engines() -> Vec<Box<dyn Engine>> {
    vec![Box::new(Trommel)]
}

/// This store with one fault.
struct Faulty {
    inner: Box<dyn Peer>,
    fault: Fault,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fault {
    LosesDeletes,
    StopsScansEarly,
    FindsNothingAtZero,
}

impl Peer for Faulty {
    fn settings(&self) -> String {
        self.inner.settings()
    }
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(key, value)
    }
    fn delete(&self, key: &[u8]) -> Result<()> {
        if self.fault == Fault::LosesDeletes { Ok(()) } else { self.inner.delete(key) }
    }
    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if self.fault == Fault::FindsNothingAtZero && key[0] == 0 {
            return Ok(false);
        }
        self.inner.get(key, seen)
    }
    fn scan(
        &self,
        from: &[u8],
        before: Option<&[u8]>,
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let most = if self.fault == Fault::StopsScansEarly { limit.min(50) } else { limit };
        self.inner.scan(from, before, most, seen)
    }
    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }
    fn settle(&self) -> Result<()> {
        self.inner.settle()
    }
    fn compact(&self) -> Result<()> {
        self.inner.compact()
    }
    fn runs(&self) -> Result<Option<u64>> {
        self.inner.runs()
    }
    fn filter_bytes(&self) -> Result<Option<u64>> {
        self.inner.filter_bytes()
    }
    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }
}

/// Opens [`Trommel`] with a fault.
pub(super) struct FaultyEngine(pub(super) Fault);

impl Engine for FaultyEngine {
    fn name(&self) -> &'static str {
        "faulty"
    }
    fn filters(&self) -> Vec<String> {
        vec!["grf".into()]
    }
    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>> {
        let inner = Trommel.open(folder, filter, settings)?;
        Ok(Box::new(Faulty { inner, fault: self.0 }))
    }
}

#[test]
fn this_store_answers_like_a_map_in_both_shapes() {
    for (seed, filter) in ["grf", "none", "blocked-bloom", "prefix-bloom"].iter().enumerate() {
        for shape in [ShapeName::Default, ShapeName::Runs] {
            let folder = tempfile::tempdir().expect("a folder");
            let settings = plan(shape, folder.path()).settings(&keys());
            let peer = Trommel.open(folder.path(), filter, &settings).expect("opens");
            let wrong = check_peer(peer.as_ref(), seed as u64, 3000).expect("no error");
            assert_eq!(wrong, None, "{filter}, {shape:?}");
            peer.close().expect("closes");
        }
    }
}

#[test]
fn a_peer_that_does_not_answer_like_a_map_is_found() {
    for (fault, word) in [
        (Fault::LosesDeletes, "step"),
        (Fault::StopsScansEarly, "scan"),
        (Fault::FindsNothingAtZero, "get"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = plan(ShapeName::Default, folder.path()).settings(&keys());
        let peer = FaultyEngine(fault).open(folder.path(), "grf", &settings).expect("opens");
        let wrong = check_peer(peer.as_ref(), 1, 3000).expect("no error").expect("wrong");
        assert!(wrong.contains(word), "{wrong}");
    }
}

#[test]
fn both_shapes_are_measured_and_rightly_answered() {
    for shape in [ShapeName::Default, ShapeName::Runs] {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = plan(shape, folder.path());
        let reports = bench_compare(&plan, &engines(), &mut Silent).expect("measured");
        let named: Vec<&str> = reports.iter().map(|report| &report.guard[..]).collect();
        assert_eq!(named, ["grf", "none"]);
        for report in &reports {
            assert_eq!(report.false_negatives, 0, "{shape:?}");
            assert!(report.kinds().iter().all(|(_, kind)| kind.ops == 200 && kind.ns_p99 > 0.0));
            assert!(report.kinds().iter().all(|(_, kind)| kind.ns_per_op > 0.0));
            assert!(report.kinds().iter().all(|(_, kind)| kind.cpu_ns_per_op > 0.0));
            assert!(report.settings.contains("no compression"), "{}", report.settings);
            let fills = report.load.seconds_of_all.len();
            match shape {
                ShapeName::Default => assert_eq!((report.runs_planned, fills), (None, 2)),
                // Two levels of four runs, and the last one.
                ShapeName::Runs => assert_eq!((report.runs, fills), (Some(9), 1)),
            }
            if shape == ShapeName::Runs {
                assert_eq!(report.runs, report.runs_planned);
            }
        }
        let (grf, none) = (reports[0].guard_bits_per_key, reports[1].guard_bits_per_key);
        assert!(grf.is_some_and(|bits| bits > 5.0) && none == Some(0.0), "{grf:?} {none:?}");
    }
}

#[test]
fn text_is_asked_what_people_ask() {
    for (dist, longest) in [("user-time", 24), ("words-stand-in", 8), ("uniform", 8)] {
        let folder = tempfile::tempdir().expect("a folder");
        let asks = match dist {
            "user-time" => Ask::ALL.to_vec(),
            _ => Ask::ALL.into_iter().filter(|ask| *ask != Ask::SecondPart).collect(),
        };
        let plan = ComparePlan { dist: dist.into(), asks, ..plan(ShapeName::Runs, folder.path()) };
        let reports = bench_compare(&plan, &engines(), &mut Silent).expect("measured");
        let [grf, none] = &reports[..] else { panic!("two stores") };
        assert_eq!((grf.false_negatives, none.false_negatives), (0, 0), "{dist}");
        let names: Vec<&str> = grf.asked.iter().map(|asked| &asked.question[..]).collect();
        assert_eq!(names, plan.asks.iter().map(|ask| ask.name()).collect::<Vec<_>>());
        for asked in grf.asked.iter().chain(&none.asked) {
            let AnswerReport { ops, ns_per_op, ns_p99, .. } = asked.answer;
            assert!(ops == 200 && ns_per_op > 0.0 && ns_p99 > 0.0, "{dist}: {}", asked.question);
        }
        let drawn =
            KeySet::new(&plan.dist.parse().expect("known"), FileFormat::Lines, plan.keys, 7);
        assert!(drawn.expect("drawn").stored().longest() >= longest, "{dist}");
    }
}

#[test]
fn all_keys_of_a_set_are_taken_if_no_number_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let lines: Vec<String> = (0..800).map(|number| format!("key {number}")).collect();
    std::fs::write(&file, lines.join("\n")).expect("written");
    let dist = format!("file:{}", file.display());
    let plan = ComparePlan { keys: None, dist, ..plan(ShapeName::Runs, folder.path()) };
    let reports = bench_compare(&plan, &engines(), &mut Silent).expect("measured");
    assert!(reports.iter().all(|report| (report.keys, report.false_negatives) == (700, 0)));
}

#[test]
fn an_answer_where_nothing_is_stored_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let dist = "user-time".parse().expect("known");
    let keys = KeySet::new(&dist, FileFormat::Lines, Some(500), 7).expect("drawn");
    let settings = plan(ShapeName::Default, folder.path()).settings(keys.stored());
    let peer = Trommel.open(folder.path(), "grf", &settings).expect("opens");
    for ask in [Ask::SecondPart, Ask::Behind] {
        let drawn = ask.draw_some(&keys, 50, 64, &mut Rng::new(1)).expect("there are some");
        let queries = PeerQueries::new(drawn, keys.stored());
        let wrong = || queries.count_wrong(peer.as_ref(), keys.stored(), 20).expect("answers");
        assert_eq!(wrong(), 0, "{ask}");
        peer.put(queries.queries.lower(7), b"not to be there").expect("writes");
        assert!(wrong() >= 1, "{ask}");
    }
}

#[test]
fn wrong_answers_are_counted() {
    let engines: Vec<Box<dyn Engine>> = vec![Box::new(FaultyEngine(Fault::StopsScansEarly))];
    let folder = tempfile::tempdir().expect("a folder");
    let contender = Contender { engine: "faulty".into(), filter: "grf".into() };
    let plan = ComparePlan { contenders: vec![contender], ..plan(ShapeName::Runs, folder.path()) };
    let reports = bench_compare(&plan, &engines, &mut Silent).expect("measured");
    // Wrong are all seeks for 51 entries that are not near the end, and the full scan.
    let wrong = reports[0].false_negatives;
    assert!((190 + 4950..=200 + 4950).contains(&wrong), "{wrong}");
}

#[test]
fn runs_are_the_same_whoever_makes_them() {
    /// Loads the runs like an engine that does not merge by itself.
    fn by_default(peer: &dyn Peer, load: &RunLoad<'_>) -> Result<Vec<usize>> {
        let mut sizes = Vec::new();
        for run in load.runs() {
            let mut size = 0;
            load.each_entry(run, &mut |key, value| {
                size += 1;
                peer.put(key, value)
            })?;
            sizes.push(size);
        }
        Ok(sizes)
    }
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan(ShapeName::Runs, folder.path());
    let keys = KeySet::new(&"uniform".parse().expect("known"), FileFormat::Lines, Some(5000), 7);
    let keys = keys.expect("drawn");
    let (order, tree) = (random_order(5000, 7), plan.tree());
    let load = RunLoad { keys: keys.stored(), order: &order, tree: &tree };
    let settings = plan.settings(keys.stored());
    let peer = Trommel.open(folder.path(), "none", &settings).expect("opens");
    let sizes = by_default(peer.as_ref(), &load).expect("written");
    assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (9, 5000));
    assert_eq!(count_wrong_entries(peer.as_ref(), keys.stored(), 20).expect("reads"), 0);
    assert!(sizes[0] > 3900 && sizes[8] < 50, "{sizes:?}");
}

#[test]
fn unknown_names_list_the_known_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = |engine: &str, filter: &str| {
        let contender = Contender { engine: engine.into(), filter: filter.into() };
        let plan =
            ComparePlan { contenders: vec![contender], ..plan(ShapeName::Runs, folder.path()) };
        bench_compare(&plan, &engines(), &mut Silent).expect_err("unknown").to_string()
    };
    assert_eq!(bad("leveldb", "grf"), "no peer 'leveldb'; there are: trommel");
    assert!(bad("trommel", "grff").contains("no filter 'grff'; there are: grf, none, "));
    let twice = plan(ShapeName::Runs, folder.path());
    let twice = ComparePlan { contenders: vec![twice.contenders[0].clone(); 2], ..twice };
    assert!(bench_compare(&twice, &engines(), &mut Silent).is_err());
    let few = ComparePlan { keys: Some(10), ..plan(ShapeName::Runs, folder.path()) };
    assert!(bench_compare(&few, &engines(), &mut Silent).is_err());
}

#[test]
fn plans_and_reports_are_read_back_from_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan(ShapeName::Default, folder.path());
    let text = serde_json::to_string(&plan).expect("plain data");
    let read: ComparePlan = serde_json::from_str(&text).expect("the same");
    assert_eq!(serde_json::to_string(&read).expect("plain data"), text);
    let reports = bench_compare(&plan, &engines(), &mut Silent).expect("measured");
    let json = serde_json::to_value(&reports).expect("plain data");
    let names = "engine guard settings shape keys runs guard_bits_per_key load false_negatives";
    assert!(names.split(' ').all(|name| json[0].get(name).is_some()), "{json}");
    for kind in ["point_miss", "point_hit", "empty_range", "seek", "seek_next_50"] {
        assert!(json[0][kind]["ns_per_op"].is_number(), "{kind}");
    }
    let read: Vec<CompareReport> = serde_json::from_value(json).expect("the same");
    assert_eq!(read[0].kinds()[0].1.ns_per_op, reports[0].kinds()[0].1.ns_per_op);
}
