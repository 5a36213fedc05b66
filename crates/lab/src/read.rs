//! `bench read`: one store per guard, the same keys, the same questions, rounds that take turns.
//! ```text
//! load per guard -> check every answer -> timed rounds -> p99 pass -> tracing pass -> report
//! ```
//! Invariant: counts are taken over the timed rounds alone, and every answer was checked before.

use std::collections::HashSet;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use trommel::{Db, GuardKind, QueryStats, Stats};

use crate::askers::{Askers, Draw};
use crate::counts::CountQueries;
use crate::dist::{Dist, FileFormat};
use crate::error::{LabError, Result};
use crate::keys::SortedKeys;
use crate::keyset::KeySet;
use crate::many::measure_many;
use crate::pipelined::{PipelinedReport, measure as measure_queue};
use crate::progress::Progress;
use crate::queries::{Kind, Queries};
use crate::report::{CountReport, KindReport, LevelRuns, LoadReport, ManyReport, ReadReport};
use crate::rounds::{ROUNDS, medians_ns, p99};
use crate::skew::Skew;
use crate::tree::{Loaded, TreePlan, fill_value, load};

/// What to measure.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// The guards to compare.
    pub guards: Vec<GuardKind>,
    /// Where the keys come from.
    pub dist: Dist,
    /// How a file of keys is written.
    pub file_format: FileFormat,
    /// How many keys; None: 1,000,000, or all of a file.
    pub keys: Option<usize>,
    /// The shape of the trees.
    pub tree: TreePlan,
    /// Questions of each kind per round, of each thread.
    pub queries: usize,
    /// How many threads ask at once.
    pub threads: usize,
    /// How many neighbouring keys a range takes in.
    pub range_width: u64,
    /// How many stored keys are asked for at once, through a queue, beside one after the other. None: that is not measured.
    pub pipelined: Option<usize>,
    /// How gets are spread over the keys.
    pub skew: Skew,
    /// How often each store is loaded, in turns; the last one is measured.
    pub loads: usize,
    /// Where the stores are made: a folder for each guard in it.
    pub folder: PathBuf,
}

/// What was measured of one guard, and the statistics of its store at the end.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The measurements.
    pub report: ReadReport,
    /// The store's own statistics.
    pub stats: Stats,
}

/// Queries that are traced per kind: tracing is slow, and a mean needs no more.
const TRACED_MAX: usize = 10_000;
const THREADS_MAX: usize = 256;

struct Side {
    guard: GuardKind,
    db: Db,
    load: LoadReport,
    false_negatives: u64,
    kinds: Vec<KindReport>,
    count: CountReport,
    many: ManyReport,
    pipelined: Option<PipelinedReport>,
}

/// Measures. The stores stay in `plan.folder`.
pub fn bench_read(plan: &ReadPlan, progress: &mut dyn Progress) -> Result<Vec<Measured>> {
    if plan.guards.is_empty() || plan.queries == 0 || plan.loads == 0 {
        return Err(LabError::Plan("a guard, a query and a load are the least to measure".into()));
    }
    if !(1..=THREADS_MAX).contains(&plan.threads) {
        let problem = format!("--threads {}: must be 1 to {THREADS_MAX}", plan.threads);
        return Err(LabError::Plan(problem));
    }
    if plan.guards.iter().collect::<HashSet<_>>().len() < plan.guards.len() {
        return Err(LabError::Plan("the same guard twice: each has one store".into()));
    }
    let seed = plan.tree.seed;
    progress.stage("drawing keys and queries", 1);
    let keys = KeySet::new(&plan.dist, plan.file_format, plan.keys, seed)?;
    plan.tree.check(keys.stored().len())?;
    let draw = Draw { count: plan.queries, width: plan.range_width, skew: plan.skew };
    let (askers, mut rng) = Askers::draw_all(&keys, draw, seed, plan.threads)?;
    let counts = CountQueries::draw(&keys, plan.queries, &mut rng);
    progress.advance(1);
    let mut sides = load_sides(plan, keys.stored(), progress)?;
    check_answers(&mut sides, &askers, keys.stored(), plan.tree.value_bytes, progress)?;
    measure_times(&mut sides, &askers, plan.threads, progress)?;
    measure_counts(&mut sides, &counts)?;
    measure_batches(&mut sides, &askers)?;
    for side in &mut sides {
        side.measure_pipelined(plan, &askers, keys.stored())?;
        for (askers, report) in askers.iter().zip(&mut side.kinds) {
            let queries = askers.first();
            report.ns_p99 = time_each(&side.db, queries)?;
            report.guard_lines_per_op = lines_per_op(&side.db, queries, keys.stored());
        }
    }
    Ok(sides.into_iter().map(|side| measured(side, plan, keys.stored().len())).collect())
}

/// Loads every guard's store `plan.loads` times, in turns. The last store of each guard stays open.
fn load_sides(
    plan: &ReadPlan,
    keys: &SortedKeys,
    progress: &mut dyn Progress,
) -> Result<Vec<Side>> {
    let mut open: Vec<Option<Db>> = plan.guards.iter().map(|_| None).collect();
    let mut reports: Vec<Vec<LoadReport>> = vec![Vec::new(); plan.guards.len()];
    for _ in 0..plan.loads {
        for (place, guard) in plan.guards.iter().enumerate() {
            let folder = plan.folder.join(guard.name());
            if let Some(db) = open[place].take() {
                db.close()?;
                remove_folder(&folder)?;
            }
            let loaded = fresh_load(&folder, plan, *guard, keys, progress)?;
            open[place] = Some(loaded.db);
            reports[place].push(loaded.report);
        }
    }
    let sides = plan.guards.iter().zip(open.into_iter().flatten()).zip(reports);
    Ok(sides.map(|((guard, db), reports)| side(*guard, db, reports)).collect())
}

impl Side {
    fn measure_pipelined(
        &mut self,
        plan: &ReadPlan,
        askers: &[Askers],
        stored: &SortedKeys,
    ) -> Result<()> {
        let hits = Kind::ALL.iter().position(|kind| *kind == Kind::PointHit);
        if let (Some(depth), Some(hits)) = (plan.pipelined, hits) {
            let hits = askers[hits].first();
            let report = measure_queue(&self.db, hits, stored, depth, plan.tree.value_bytes)?;
            self.false_negatives += report.wrong;
            self.pipelined = Some(report);
        }
        Ok(())
    }
}

fn side(guard: GuardKind, db: Db, reports: Vec<LoadReport>) -> Side {
    let (load, count) = (median_load(reports), CountReport::default());
    let many = ManyReport::default();
    let (false_negatives, kinds, pipelined) = (0, Vec::new(), None);
    Side { guard, db, load, false_negatives, kinds, count, many, pipelined }
}

/// The report with the median time. Requires: there is one.
fn median_load(mut reports: Vec<LoadReport>) -> LoadReport {
    let seconds_of_all = reports.iter().map(|report| report.seconds).collect();
    reports.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let middle = reports.swap_remove(reports.len() / 2);
    LoadReport { seconds_of_all, ..middle }
}

fn fresh_load(
    folder: &Path,
    plan: &ReadPlan,
    guard: GuardKind,
    keys: &SortedKeys,
    progress: &mut dyn Progress,
) -> Result<Loaded> {
    let is_used = std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
    if is_used {
        let problem = "the folder is not empty: bench makes its stores anew".to_string();
        return Err(LabError::Folder { path: folder.to_path_buf(), problem });
    }
    std::fs::create_dir_all(folder).map_err(|error| folder_error(folder, &error))?;
    load(folder, &plan.tree, guard, keys, progress)
}

fn remove_folder(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).map_err(|error| folder_error(folder, &error))
}

fn folder_error(folder: &Path, error: &std::io::Error) -> LabError {
    LabError::Folder { path: folder.to_path_buf(), problem: error.to_string() }
}

/// Reads every store whole, and asks every question once; also warms the caches.
fn check_answers(
    sides: &mut [Side],
    askers: &[Askers],
    keys: &SortedKeys,
    value_bytes: usize,
    progress: &mut dyn Progress,
) -> Result<()> {
    progress.stage("checking answers", (sides.len() * (askers.len() + 1)) as u64);
    for side in sides {
        side.false_negatives += count_wrong_entries(&side.db, keys, value_bytes)?;
        progress.advance(1);
        for askers in askers {
            side.false_negatives += askers.count_wrong(&side.db, keys, value_bytes)?;
            progress.advance(1);
        }
    }
    Ok(())
}

/// Reads the store from the first key to the last and counts what is not as it was written.
fn count_wrong_entries(db: &Db, keys: &SortedKeys, value_bytes: usize) -> Result<u64> {
    let mut expected_value = Vec::new();
    let mut expected = keys.iter();
    let mut wrong = 0;
    for entry in db.range::<&[u8]>(..) {
        let (key, value) = entry?;
        match expected.next() {
            Some(expected_key) if expected_key == key => {
                fill_value(&mut expected_value, expected_key, value_bytes);
                wrong += u64::from(*value != expected_value[..]);
            }
            _ => wrong += 1,
        }
    }
    Ok(wrong + expected.count() as u64)
}

fn measure_times(
    sides: &mut [Side],
    askers: &[Askers],
    threads: usize,
    progress: &mut dyn Progress,
) -> Result<()> {
    progress.stage("measuring", (sides.len() * askers.len() * ROUNDS) as u64);
    for askers in askers {
        let before: Vec<_> = sides.iter().map(|side| all_kinds(&side.db.stats())).collect();
        let medians = medians_ns(sides.len(), |side| {
            askers.ask_all(&sides[side].db)?;
            progress.advance(1);
            Ok::<_, LabError>(askers.len() as u64)
        })?;
        for ((side, before), ns_per_op) in sides.iter_mut().zip(&before).zip(medians) {
            let after = all_kinds(&side.db.stats());
            let report = kind_report(askers.len(), ns_per_op, before, &after);
            side.kinds.push(KindReport { ns_per_op: ns_per_op * threads as f64, ..report });
        }
    }
    Ok(())
}

/// Counts, and compares with the truth.
fn measure_counts(sides: &mut [Side], counts: &CountQueries) -> Result<()> {
    let medians = medians_ns(sides.len(), |side| {
        counts.ask_all(&sides[side].db)?;
        Ok::<_, LabError>(counts.len() as u64)
    })?;
    for (side, ns_per_op) in sides.iter_mut().zip(medians) {
        let (report, wrong) = counts.judge(&side.db)?;
        side.count = CountReport { ns_per_op, ..report };
        side.false_negatives += wrong;
    }
    Ok(())
}

/// Asks in batches, in one thread, and compares with single questions.
fn measure_batches(sides: &mut [Side], askers: &[Askers]) -> Result<()> {
    let dbs: Vec<&Db> = sides.iter().map(|side| &side.db).collect();
    let queries: Vec<&Queries> = askers.iter().map(Askers::first).collect();
    let measured = measure_many(&dbs, &queries)?;
    for (side, (report, wrong)) in sides.iter_mut().zip(measured) {
        side.many = report;
        side.false_negatives += wrong;
    }
    Ok(())
}

/// What queries have cost so far, summed over the kinds that the store tells apart: between two
/// readings only one kind is asked.
fn all_kinds(stats: &Stats) -> [QueryStats; 3] {
    [stats.point, stats.open_seek, stats.closed_seek]
}

fn kind_report(
    ops: usize,
    ns_per_op: f64,
    before: &[QueryStats; 3],
    after: &[QueryStats; 3],
) -> KindReport {
    let costs: Vec<_> =
        after.iter().zip(before).map(|(after, before)| after.since(before)).collect();
    let sum = |count: fn(&QueryStats) -> u64| costs.iter().map(count).sum::<u64>() as f64;
    let asked = (ops * ROUNDS) as f64;
    KindReport {
        ops: ops as u64,
        ns_per_op,
        ops_per_s: 1e9 / ns_per_op,
        blocks_read_per_op: sum(|cost| cost.blocks_read) / asked,
        disk_reads_per_op: sum(|cost| cost.disk_reads) / asked,
        guard_probes_per_op: sum(|cost| cost.guard_probes) / sum(|cost| cost.reached_runs).max(1.0),
        false_positive_rate: sum(|cost| cost.false_positives) / asked,
        ..KindReport::default()
    }
}

/// The 99th percentile of the times of single questions.
fn time_each(db: &Db, queries: &Queries) -> Result<f64> {
    let mut times = Vec::with_capacity(queries.len());
    for place in 0..queries.len() {
        let start = Instant::now();
        black_box(queries.ask(db, place)?);
        times.push(start.elapsed().as_nanos() as u64);
    }
    Ok(p99(&mut times))
}

fn lines_per_op(db: &Db, queries: &Queries, stored: &SortedKeys) -> f64 {
    let count = queries.len().min(TRACED_MAX);
    let lines = (0..count).map(|place| db.trace_guard(&queries.query(place, stored)));
    lines.sum::<usize>() as f64 / count.max(1) as f64
}

fn measured(side: Side, plan: &ReadPlan, key_count: usize) -> Measured {
    let stats = side.db.stats();
    let levels: Vec<LevelRuns> = stats
        .levels
        .iter()
        .map(|level| LevelRuns { level: level.level as u64, runs: level.runs.len() as u64 })
        .collect();
    let [point_miss, point_hit, point_half, empty_range, range_hit, seek, seek_next_50] =
        <[KindReport; 7]>::try_from(side.kinds).expect("one report for each kind");
    let report = ReadReport {
        guard: side.guard.name(),
        keys: key_count as u64,
        runs: levels.iter().map(|level| level.runs).sum(),
        runs_planned: plan.tree.run_count(),
        levels,
        guard_bits_per_key: stats.guard.memory_bytes as f64 * 8.0 / key_count as f64,
        bits_per_key: plan.tree.bits_per_key,
        guard_rebuild_peak_bytes: stats.guard.rebuild_peak_bytes,
        dist: plan.dist.to_string(),
        seed: plan.tree.seed,
        range_width: plan.range_width,
        skew: plan.skew.to_string(),
        threads: plan.threads as u64,
        value_bytes: plan.tree.value_bytes as u64,
        size_ratio: u64::from(plan.tree.size_ratio),
        policy: plan.tree.policy.name(),
        load: side.load,
        false_negatives: side.false_negatives,
        point_miss,
        point_hit,
        point_half,
        empty_range,
        range_hit,
        seek,
        seek_next_50,
        count: side.count,
        multi_get: side.many,
        pipelined: side.pipelined,
    };
    Measured { report, stats }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use trommel::{ElasticOptions, FilterTuning};

    fn plan(folder: &Path) -> ReadPlan {
        ReadPlan {
            guards: GuardKind::ALL.to_vec(),
            dist: Dist::Clustered,
            file_format: FileFormat::Lines,
            keys: Some(4000),
            tree: TreePlan {
                size_ratio: 4,
                policy: trommel::Policy::default(),
                levels: 3,
                fill: 3,
                value_bytes: 20,
                bits_per_key: 12.0,
                monkey: false,
                filter: FilterTuning::default(),
                elastic: ElasticOptions::default(),
                block_cache_bytes: None,
                table_bytes: None,
                direct: false,
                seed: 1,
                synced: false,
            },
            queries: 200,
            threads: 1,
            range_width: 64,
            pipelined: None,
            skew: Skew::None,
            loads: 2,
            folder: folder.to_path_buf(),
        }
    }

    #[test]
    fn every_guard_answers_rightly_over_the_planned_tree() {
        let folder = tempfile::tempdir().expect("a folder");
        let measured = bench_read(&plan(folder.path()), &mut Silent).expect("measured");
        assert_eq!(measured.len(), GuardKind::ALL.len());
        for Measured { report, .. } in &measured {
            assert_eq!(report.false_negatives, 0, "{}", report.guard);
            assert_eq!(report.runs, report.runs_planned, "{}", report.guard);
            assert_eq!(report.load.seconds_of_all.len(), 2);
            assert!(report.kinds().iter().all(|(_, kind)| kind.ops == 200 && kind.ns_p99 > 0.0));
        }
        let of = |guard| {
            let place = GuardKind::ALL.into_iter().position(|kind| kind == guard);
            &measured[place.expect("all were measured")].report
        };
        let grf = of(GuardKind::Grf);
        for kind in [&grf.point_miss, &grf.point_hit, &grf.empty_range, &grf.seek] {
            assert_eq!(kind.guard_probes_per_op, 1.0);
        }
        assert_eq!(of(GuardKind::Open).guard_bits_per_key, 0.0);
        assert!(grf.count.mean_relative_error < 0.01, "{:?}", grf.count);
        assert!(measured.iter().all(|measured| measured.report.count.ns_per_op > 0.0));
    }

    #[test]
    fn threads_answer_rightly_and_their_throughput_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let guards = vec![GuardKind::Open, GuardKind::Grf];
        let plan = ReadPlan { guards, threads: 3, loads: 1, ..plan(folder.path()) };
        for Measured { report, .. } in bench_read(&plan, &mut Silent).expect("measured") {
            assert_eq!((report.false_negatives, report.threads), (0, 3));
            for (name, kind) in report.kinds() {
                assert_eq!(kind.ops, 600, "{name}");
                let per_s = 3.0 * 1e9 / kind.ns_per_op;
                assert!((kind.ops_per_s / per_s - 1.0).abs() < 1e-9, "{name}");
            }
            assert_eq!(report.point_hit.guard_probes_per_op, f64::from(report.guard == "grf"));
        }
    }

    #[test]
    fn the_names_in_reports_are_an_interface() {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = ReadPlan { guards: vec![GuardKind::Open], loads: 1, ..plan(folder.path()) };
        let measured = bench_read(&plan, &mut Silent).expect("measured");
        let json = serde_json::to_value(&measured[0].report).expect("plain data");
        let names = "guard keys runs levels threads guard_bits_per_key load false_negatives";
        assert!(names.split(' ').all(|name| json.get(name).is_some()), "{json}");
        for name in ["seconds", "ops_per_s", "write_amplification", "guard_seconds"] {
            assert!(json["load"][name].is_number(), "{name}");
        }
        let fields = "ops ns_per_op ops_per_s ns_p99 blocks_read_per_op disk_reads_per_op guard_probes_per_op \
                      guard_lines_per_op false_positive_rate";
        for kind in ["point_miss", "point_hit", "empty_range", "seek", "seek_next_50"] {
            assert!(fields.split_whitespace().all(|name| json[kind][name].is_number()), "{kind}");
        }
        for kind in ["point_miss", "point_hit", "empty_range"] {
            let turns = &json["multi_get"][kind];
            let names = ["ops", "alone_ns_per_op", "ns_per_op"];
            assert!(names.iter().all(|name| turns[name].is_number()), "{kind}");
        }
        for name in ["ops", "ns_per_op", "mean_relative_error", "worst_relative_error"] {
            assert!(json["count"][name].is_number(), "{name}");
        }
        assert!(json["levels"][0]["level"].is_number() && json["levels"][0]["runs"].is_number());
    }

    #[test]
    fn plans_without_sense_and_used_folders_are_errors() {
        let folder = tempfile::tempdir().expect("a folder");
        let bad = |change: fn(&mut ReadPlan)| {
            let mut plan = plan(folder.path());
            change(&mut plan);
            bench_read(&plan, &mut Silent).expect_err("no sense").to_string()
        };
        assert!(bad(|plan| plan.guards.clear()).contains("guard"));
        assert!(bad(|plan| plan.guards.push(GuardKind::Grf)).contains("twice"));
        assert!(bad(|plan| plan.threads = 0).contains("--threads 0"));
        assert!(bad(|plan| plan.tree.fill = 9).contains("--fill"));
        std::fs::create_dir_all(folder.path().join("none/x")).expect("made");
        assert!(bad(|_| ()).contains("not empty"));
    }
}
