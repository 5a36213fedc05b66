//! `bench read`: one store per guard, with the same keys and questions, in rounds that take turns.
//! ```text
//! load per guard -> check every answer -> timed rounds -> p99 pass -> tracing pass -> report
//! ```
//! Invariant: counts are taken over the timed rounds alone, after every answer was checked.

use std::collections::HashSet;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;
use trommel::research::Research as _;

use trommel::stats::{QueryStats, Stats};
use trommel::{Db, GuardKind};

use crate::bench::by_level::{asks_by_table, costs_by_level};
use crate::bench::counts::CountQueries;
use crate::bench::fit_bits::{Fit, fits, search};
use crate::bench::full_scan::measure_full_scans;
use crate::bench::load::load;
use crate::bench::many::measure_many;
use crate::bench::pipelined::measure as measure_queue;
use crate::bench::rounds::{medians_ns, p99, so_many_rounds_ns};
use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::KeySet;
use crate::keys::skew::Skew;
use crate::keys::values::fill_value;
use crate::median::median;
use crate::progress::{Progress, Silent};
use crate::questions::closed_seeks::{ClosedSeeks, closed_seek_reports, draw_closed_seeks};
use crate::questions::queries::{Kind, Queries};
use crate::questions::question_draw::Draw;
use crate::questions::read_workload::{ReadWorkload, Stored};
use crate::questions::reader_threads::ReaderThreads;
use crate::questions::shift::{BaseSeen, shift_report};
use crate::questions::unanswered::Ask;
use crate::report::{
    CountReport, EmptyQueryCost, FullScanReport, KindReport, LevelCost, LevelRuns, LoadReport,
    ManyReport, PipelinedReport, ReadReport, ShiftRates, TableAsks,
};
use crate::tree_plan::TreePlan;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// The guards to compare.
    pub guards: Vec<GuardKind>,
    /// Where the keys come from.
    pub dist: Dist,
    /// The format of a file of keys.
    pub file_format: FileFormat,
    /// How many keys; None: 1,000,000, or all of a file.
    pub keys: Option<usize>,
    /// The shape of the trees.
    pub tree: TreePlan,
    /// Questions of each kind, per round and thread.
    pub queries: usize,
    /// Rounds of each kind, in which guards take turns; the median time counts.
    pub rounds: usize,
    /// How many threads ask at once.
    pub threads: usize,
    /// How many neighbouring keys a range spans.
    pub range_width: u64,
    /// The depth of a queue for gets of stored keys, compared with gets one after the other. None:
    /// it is not measured.
    pub pipelined: Option<usize>,
    /// How gets are spread over the keys.
    pub skew: Skew,
    /// Further properties of keys and questions.
    pub workload: ReadWorkload,
    /// The kinds of questions. Only if all are asked, counts and batches are measured, too.
    pub kinds: Vec<Kind>,
    /// Further questions that no stored key answers. They are drawn like the keys, without skew.
    pub asks: Vec<Ask>,
    /// Whether full scans of the stores are measured, too.
    pub full_scan: bool,
    /// Whether gets are counted by the level of their key, and by table.
    pub by_level: bool,
    /// How often each store is loaded, in turns; the last one is measured.
    pub loads: usize,
    /// How many stores are loaded at once, at least 1. With more than one, loading times are not
    /// those of a store that has the machine to itself.
    pub loaders: usize,
    /// Whether to search for the setting of bits per key with which a guard takes the planned
    /// memory.
    pub fit_bits: bool,
    /// The folder of the stores: each guard has a folder in it.
    pub folder: PathBuf,
}

/// The report of one guard, and its store's statistics at the end.
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

struct MeasuredStore {
    guard: GuardKind,
    db: Db,
    fit: Option<Fit>,
    load: LoadReport,
    false_negatives: u64,
    kinds: Vec<(Kind, KindReport)>,
    count: Option<CountReport>,
    many: Option<ManyReport>,
    full_scan: Option<FullScanReport>,
    by_level: Vec<LevelCost>,
    by_table: Vec<TableAsks>,
    pipelined: Option<PipelinedReport>,
    /// One for each load.
    base_seen: Vec<BaseSeen>,
}

/// Runs the benchmark. The stores stay in `plan.folder`.
pub fn bench_read(plan: &ReadPlan, progress: &mut dyn Progress) -> Result<Vec<Measured>> {
    let least = plan.queries.min(plan.rounds).min(plan.loads).min(plan.loaders);
    if plan.guards.is_empty() || least == 0 {
        let problem = "a guard, a query, a round and a load are the least to measure";
        return Err(LabError::Plan(problem.into()));
    }
    if !(1..=THREADS_MAX).contains(&plan.threads) {
        let problem = format!("--threads {}: must be 1 to {THREADS_MAX}", plan.threads);
        return Err(LabError::Plan(problem));
    }
    if plan.guards.iter().collect::<HashSet<_>>().len() < plan.guards.len() {
        return Err(LabError::Plan("the same guard twice: each has one store".into()));
    }
    plan.workload.check()?;
    let ReadWorkload { empty_shares, .. } = &plan.workload;
    let (seed, threads) = (plan.tree.seed, plan.threads);
    progress.stage("drawing keys and queries", 1);
    let source = (&plan.dist, plan.file_format);
    let stored = Stored::draw(&plan.workload, source, plan.keys, &plan.tree)?;
    let (keys, misses) = (&stored.keys, stored.misses(&plan.workload));
    let draw = Draw { count: plan.queries, width: plan.range_width, skew: plan.skew, misses };
    let (mut readers, mut rng) = ReaderThreads::draw_all(keys, draw, seed, threads)?;
    let counts = CountQueries::draw(keys, plan.queries, &mut rng);
    let (closed, more) = draw_closed_seeks(empty_shares, keys, draw, seed, threads)?;
    readers.retain(|readers| plan.kinds.contains(&readers.kind()));
    readers.extend(more);
    readers.extend(draw_unanswered(plan, keys)?);
    progress.advance(1);
    let mut sides = load_sides(plan, &stored, &readers, progress)?;
    check_answers(&mut sides, &readers, keys.stored(), plan.tree.value_bytes, progress)?;
    if plan.tree.parts.filter_memory.is_some() {
        // The check has shown the store what is asked. Parts that this gives other bits are rebuilt
        // now.
        sides.iter().try_for_each(|side| side.db.settle())?;
    }
    measure_times(&mut sides, &readers, plan, progress)?;
    if Kind::ALL.iter().all(|kind| plan.kinds.contains(kind)) {
        measure_counts(&mut sides, &counts, plan.workload.deleted.is_some())?;
        measure_batches(&mut sides, &readers)?;
    }
    if plan.full_scan {
        measure_scans(&mut sides, keys.stored().len() as u64)?;
    }
    for side in &mut sides {
        side.measure_pipelined(plan, &readers, keys.stored())?;
        if plan.by_level {
            side.count_by_level(plan, &readers, keys.stored())?;
        }
        for (readers, (_, report)) in readers.iter().zip(&mut side.kinds) {
            let queries = readers.first();
            report.ns_p99 = time_each(&side.db, queries)?;
            report.guard_lines_per_op = lines_per_op(&side.db, queries, keys.stored());
        }
    }
    sides.into_iter().map(|side| measured(side, plan, &stored, &closed)).collect()
}

/// Draws the questions that no stored key answers.
fn draw_unanswered(plan: &ReadPlan, keys: &KeySet) -> Result<Vec<ReaderThreads>> {
    Ask::check(&plan.asks, keys.dist())?;
    let size = (plan.queries, plan.range_width);
    let draw =
        |ask: &Ask| ReaderThreads::draw_unanswered(*ask, keys, size, plan.tree.seed, plan.threads);
    plan.asks.iter().map(draw).collect()
}

/// Loads every guard's store `plan.loads` times, in turns. The last store of each guard stays open.
fn load_sides(
    plan: &ReadPlan,
    stored: &Stored,
    readers: &[ReaderThreads],
    progress: &mut dyn Progress,
) -> Result<Vec<MeasuredStore>> {
    let mut loaders: Vec<SideLoader<'_>> =
        plan.guards.iter().map(|guard| SideLoader::new(plan, *guard, stored, readers)).collect();
    if plan.loaders > 1 {
        progress.stage(&format!("loading, {} stores at once", plan.loaders), loaders.len() as u64);
        for some in loaders.chunks_mut(plan.loaders) {
            load_at_once(some)?;
            progress.advance(some.len() as u64);
        }
        return Ok(loaders.into_iter().map(SideLoader::measured).collect());
    }
    for loader in &mut loaders {
        loader.fit(progress)?;
    }
    for _ in 0..plan.loads {
        loaders.iter_mut().try_for_each(|loader| loader.load(progress))?;
    }
    Ok(loaders.into_iter().map(SideLoader::measured).collect())
}

/// Loads several stores, each in its own thread.
fn load_at_once(loaders: &mut [SideLoader<'_>]) -> Result<()> {
    std::thread::scope(|scope| {
        let load = |loader: &mut SideLoader<'_>| {
            loader.fit(&mut Silent)?;
            (0..loader.plan.loads).try_for_each(|_| loader.load(&mut Silent))
        };
        let threads: Vec<_> =
            loaders.iter_mut().map(|loader| scope.spawn(move || load(loader))).collect();
        let mut joined = threads.into_iter().map(|thread| thread.join().expect("no loader panics"));
        joined.try_for_each(|loaded| loaded)
    })
}

/// Loads the store of one guard, each time in the same folder.
struct SideLoader<'p> {
    plan: &'p ReadPlan,
    guard: GuardKind,
    stored: &'p Stored,
    readers: &'p [ReaderThreads],
    tree: TreePlan,
    fit: Option<Fit>,
    open: Option<Db>,
    reports: Vec<LoadReport>,
    seen: Vec<BaseSeen>,
}

impl<'p> SideLoader<'p> {
    fn new(
        plan: &'p ReadPlan,
        guard: GuardKind,
        stored: &'p Stored,
        readers: &'p [ReaderThreads],
    ) -> Self {
        let (tree, fit, open) = (plan.tree.clone(), None, None);
        let (reports, seen) = (Vec::new(), Vec::new());
        SideLoader { plan, guard, stored, readers, tree, fit, open, reports, seen }
    }

    /// Searches, by loading, for the setting with which the guard takes the planned memory.
    fn fit(&mut self, progress: &mut dyn Progress) -> Result<()> {
        if !self.plan.fit_bits || self.guard == GuardKind::Open {
            return Ok(());
        }
        let fit = search(self.plan.tree.bits_per_key, |setting| {
            self.tree.bits_per_key = setting;
            self.load(progress)?;
            let db = self.open.as_ref().expect("it was just loaded");
            Ok::<_, LabError>(bits_per_entry(&db.stats()?))
        })?;
        self.tree.bits_per_key = fit.setting;
        self.fit = Some(fit);
        self.reports.clear();
        self.seen.clear();
        Ok(())
    }

    fn load(&mut self, progress: &mut dyn Progress) -> Result<()> {
        let folder = self.plan.folder.join(self.guard.name());
        if let Some(db) = self.open.take() {
            db.close()?;
            remove_folder(&folder)?;
        }
        let (readers, keys) = (self.readers, self.stored.keys.stored());
        let mut seen = BaseSeen::default();
        let mut look = |db: &Db| {
            seen = BaseSeen::look(db, readers, keys, self.tree.value_bytes)?;
            Ok(())
        };
        make_folder(&folder)?;
        let content = self.stored.content();
        let loaded = load(&folder, &self.tree, self.guard, content, &mut look, progress)?;
        seen.guard_seconds_in_all = loaded.report.guard_seconds;
        self.open = Some(loaded.db);
        self.reports.push(loaded.report);
        self.seen.push(seen);
        Ok(())
    }

    /// Requires: the store was loaded.
    fn measured(self) -> MeasuredStore {
        let false_negatives = self.seen.iter().map(|seen| seen.wrong).sum();
        MeasuredStore {
            guard: self.guard,
            db: self.open.expect("it was loaded"),
            fit: self.fit,
            load: median_load(self.reports),
            false_negatives,
            kinds: Vec::new(),
            count: None,
            many: None,
            full_scan: None,
            by_level: Vec::new(),
            by_table: Vec::new(),
            pipelined: None,
            base_seen: self.seen,
        }
    }
}

/// Returns the guard's memory in bits per entry of all runs. Deletions are entries, too.
fn bits_per_entry(stats: &Stats) -> f64 {
    stats.guard.memory_bytes as f64 * 8.0 / stats.entries().max(1) as f64
}

impl MeasuredStore {
    fn count_by_level(
        &mut self,
        plan: &ReadPlan,
        readers: &[ReaderThreads],
        stored: &SortedKeys,
    ) -> Result<()> {
        let of = |kind: Kind| {
            readers.iter().find(|readers| readers.kind() == kind).map(ReaderThreads::first)
        };
        let size = (plan.queries, plan.tree.seed);
        self.by_level = costs_by_level(&self.db, stored, of(Kind::PointMiss), size)?;
        let points = [Kind::PointHalf, Kind::PointHit, Kind::PointMiss];
        if let Some(queries) = points.into_iter().find_map(of) {
            self.by_table = asks_by_table(&self.db.pinned_tree(), queries)?;
        }
        Ok(())
    }

    fn measure_pipelined(
        &mut self,
        plan: &ReadPlan,
        readers: &[ReaderThreads],
        stored: &SortedKeys,
    ) -> Result<()> {
        let hits = readers.iter().find(|readers| readers.kind() == Kind::PointHit);
        if let (Some(depth), Some(hits)) = (plan.pipelined, hits) {
            let hits = hits.first();
            let report = measure_queue(&self.db, hits, stored, depth, plan.tree.value_bytes)?;
            self.false_negatives += report.wrong;
            self.pipelined = Some(report);
        }
        Ok(())
    }
}

/// Returns the report of median time. Requires: at least one report.
fn median_load(mut reports: Vec<LoadReport>) -> LoadReport {
    let seconds_of_all = reports.iter().map(|report| report.seconds).collect();
    let ops_per_s_rounds = reports.iter().map(|report| report.ops_per_s).collect();
    reports.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let middle = reports.swap_remove(reports.len() / 2);
    LoadReport { seconds_of_all, ops_per_s_rounds, ..middle }
}

/// Makes the folder. An error if it has files already.
fn make_folder(folder: &Path) -> Result<()> {
    let is_used = std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
    if is_used {
        let problem = "the folder is not empty: bench makes its stores anew".to_string();
        return Err(LabError::Folder { path: folder.to_path_buf(), problem });
    }
    std::fs::create_dir_all(folder).map_err(|error| folder_error(folder, &error))
}

fn remove_folder(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).map_err(|error| folder_error(folder, &error))
}

fn folder_error(folder: &Path, error: &std::io::Error) -> LabError {
    LabError::Folder { path: folder.to_path_buf(), problem: error.to_string() }
}

/// Scans every store and asks every question once, which also warms the caches.
fn check_answers(
    sides: &mut [MeasuredStore],
    readers: &[ReaderThreads],
    keys: &SortedKeys,
    value_bytes: usize,
    progress: &mut dyn Progress,
) -> Result<()> {
    progress.stage("checking answers", (sides.len() * (readers.len() + 1)) as u64);
    for side in sides {
        side.false_negatives += count_wrong_entries(&side.db, keys, value_bytes)?;
        progress.advance(1);
        for readers in readers {
            side.false_negatives += readers.count_wrong(&side.db, keys, value_bytes)?;
            progress.advance(1);
        }
    }
    Ok(())
}

/// Scans the store and counts the entries that differ from what was written.
fn count_wrong_entries(db: &Db, keys: &SortedKeys, value_bytes: usize) -> Result<u64> {
    let mut expected_value = Vec::new();
    let mut expected = keys.iter();
    let mut wrong = 0;
    for entry in db.range(..) {
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
    sides: &mut [MeasuredStore],
    readers: &[ReaderThreads],
    &ReadPlan { threads, rounds, .. }: &ReadPlan,
    progress: &mut dyn Progress,
) -> Result<()> {
    progress.stage("measuring", (sides.len() * readers.len() * rounds) as u64);
    for readers in readers {
        let before = sides.iter().map(|side| Ok(all_kinds(&side.db.stats()?)));
        let before = before.collect::<Result<Vec<_>>>()?;
        let times = so_many_rounds_ns((sides.len(), rounds), |side| {
            readers.ask_all(&sides[side].db)?;
            progress.advance(1);
            progress.look(&sides[side].db);
            Ok::<_, LabError>(readers.len() as u64)
        })?;
        for ((side, before), times) in sides.iter_mut().zip(&before).zip(times) {
            let after = all_kinds(&side.db.stats()?);
            let report = kind_report(readers.len(), &times, before, &after);
            let ns_per_op_rounds: Vec<f64> =
                times.iter().map(|time| time * threads as f64).collect();
            let ns_per_op = median(&mut ns_per_op_rounds.clone());
            let report = KindReport { ns_per_op, ns_per_op_rounds, ..report };
            side.kinds.push((readers.kind(), report));
        }
    }
    Ok(())
}

/// Measures the counts of ranges, and compares them with the true counts.
fn measure_counts(sides: &mut [MeasuredStore], counts: &CountQueries, deleted: bool) -> Result<()> {
    let medians = medians_ns(sides.len(), |side| {
        counts.ask_all(&sides[side].db)?;
        Ok::<_, LabError>(counts.len() as u64)
    })?;
    for (side, ns_per_op) in sides.iter_mut().zip(medians) {
        let (report, wrong) = counts.judge(&side.db, deleted)?;
        side.count = Some(CountReport { ns_per_op, ..report });
        side.false_negatives += wrong;
    }
    Ok(())
}

/// Measures batches in one thread, compared with single questions.
fn measure_batches(sides: &mut [MeasuredStore], readers: &[ReaderThreads]) -> Result<()> {
    let dbs: Vec<&Db> = sides.iter().map(|side| &side.db).collect();
    let queries: Vec<&Queries> = readers.iter().map(ReaderThreads::first).collect();
    let measured = measure_many(&dbs, &queries)?;
    for (side, (report, wrong)) in sides.iter_mut().zip(measured) {
        side.many = Some(report);
        side.false_negatives += wrong;
    }
    Ok(())
}

/// Scans every store from end to end.
fn measure_scans(sides: &mut [MeasuredStore], keys: u64) -> Result<()> {
    let dbs: Vec<&Db> = sides.iter().map(|side| &side.db).collect();
    let measured = measure_full_scans(&dbs, keys)?;
    for (side, (report, wrong)) in sides.iter_mut().zip(measured) {
        side.full_scan = Some(report);
        side.false_negatives += wrong;
    }
    Ok(())
}

/// Returns the statistics of the three kinds of query that the store distinguishes. Between two
/// readings only one kind is asked, so their sum is the cost of that kind.
fn all_kinds(stats: &Stats) -> [QueryStats; 3] {
    [stats.point, stats.open_seek, stats.closed_seek]
}

fn kind_report(
    ops: usize,
    times: &[f64],
    before: &[QueryStats; 3],
    after: &[QueryStats; 3],
) -> KindReport {
    let costs: Vec<_> =
        after.iter().zip(before).map(|(after, before)| after.since(before)).collect();
    let sum = |count: fn(&QueryStats) -> u64| costs.iter().map(count).sum::<u64>() as f64;
    let (queries, ns_per_op) = ((ops * times.len()) as f64, median(&mut times.to_vec()));
    KindReport {
        ops: ops as u64,
        ns_per_op,
        ops_per_s: 1e9 / ns_per_op,
        blocks_read_per_op: sum(|cost| cost.blocks_read) / queries,
        disk_reads_per_op: sum(|cost| cost.disk_reads) / queries,
        guard_probes_per_op: sum(|cost| cost.guard_probes) / sum(|cost| cost.reached_runs).max(1.0),
        false_positive_rate: sum(|cost| cost.false_positives) / queries,
        ..KindReport::default()
    }
}

/// Returns the 99th percentile of the times of single questions, in nanoseconds.
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

fn levels_of(stats: &Stats) -> Vec<LevelRuns> {
    let levels = stats.levels.iter();
    levels
        .map(|level| LevelRuns { level: level.level as u64, runs: level.runs.len() as u64 })
        .collect()
}

fn measured(
    side: MeasuredStore,
    plan: &ReadPlan,
    stored: &Stored,
    closed: &[ClosedSeeks],
) -> Result<Measured> {
    let (keys, stats) = (&stored.keys, side.db.stats()?);
    let key_count = keys.stored().len();
    let levels = levels_of(&stats);
    let runs = || stats.levels.iter().flat_map(|level| &level.runs);
    let of = |kind: Kind| {
        let found = side.kinds.iter().find(|(asked, _)| *asked == kind);
        found.map_or_else(KindReport::default, |(_, report)| report.clone())
    };
    let [point_miss, point_hit, point_half, empty_range, range_hit, seek, seek_next_50] =
        Kind::ALL.map(of);
    let closed_kinds = side.kinds.iter().filter(|(kind, _)| *kind == Kind::ClosedSeek);
    let closed_kinds: Vec<KindReport> = closed_kinds.map(|(_, report)| report.clone()).collect();
    let [points, ranges] = [&point_miss, &empty_range].map(|kind| kind.false_positive_rate);
    let after = ShiftRates { point_miss: points, empty_range: ranges };
    let shift = shift_report(&side.base_seen, stored, after);
    let report = ReadReport {
        guard: side.guard.name(),
        keys: key_count as u64,
        runs: levels.iter().map(|level| level.runs).sum(),
        runs_planned: plan.tree.run_count(),
        levels,
        smallest_run_keys: runs().map(|run| run.entries).min().unwrap_or(0),
        guard_bits_per_key: bits_per_entry(&stats),
        bits_per_key: plan.tree.bits_per_key,
        bits_setting: side.fit.map(|fit| fit.setting),
        unfit: side.fit.is_some() && !fits(bits_per_entry(&stats), plan.tree.bits_per_key),
        monkey: plan.tree.monkey && side.guard.rate_law().is_some(),
        data_bytes: runs().map(|run| run.bytes).sum(),
        block_cache_bytes: plan.tree.block_cache_bytes.map(|bytes| bytes as u64),
        direct: plan.tree.direct,
        guard_rebuild_peak_bytes: stats.guard.rebuild_peak_bytes,
        dist: keys.dist().to_string(),
        key_shape: keys.shape(),
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
        full_scan: side.full_scan,
        by_level: side.by_level,
        by_table: side.by_table,
        pipelined: side.pipelined,
        correlated: plan.workload.correlated,
        deleted: stored.deleted(),
        shift,
        closed_seek: closed_seek_reports(closed, &closed_kinds),
        asked: unanswered_reports(&side.kinds),
    };
    Ok(Measured { report, stats })
}

/// Returns the costs of the questions that no stored key answers.
fn unanswered_reports(kinds: &[(Kind, KindReport)]) -> Vec<EmptyQueryCost> {
    let report = |(kind, cost): &(Kind, KindReport)| match kind {
        Kind::Unanswered(ask) => Some(EmptyQueryCost { question: ask.name(), cost: cost.clone() }),
        _ => None,
    };
    kinds.iter().filter_map(report).collect()
}

#[cfg(test)]
mod tests;
