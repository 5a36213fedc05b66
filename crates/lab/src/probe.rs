//! `bench probe`: the filters alone, without a store.
//! ```text
//! grf            9 of 10 keys -> base         the others, in flushes -> overlay      1 probe, or a batch of 16 points
//! others         all keys -> one filter       the tables of a tree -> 19 filters     1 or 19 probes
//! ```
//! Invariant: every filter sees the same keys, and the same questions in rounds that take turns; a
//! stored key that a filter denies is counted.

use std::hint::black_box;
use std::time::Instant;

use trommel::{ElasticOptions, FilterTuning, GuardKind, Options};
use trommel_filters::{
    AlignedBytes, AnyFilter, AnyFilterBuilder, Codes, FilterKind, FilterOptions, FlushNumber,
    GrfOptions, HashedKey, Part, PartBuilder, Query, Shape, TableFilter, TableFilterBuilder,
};

use crate::dist::{Dist, FileFormat};
use crate::error::{LabError, Result};
use crate::keys::SortedKeys;
use crate::keyset::KeySet;
use crate::progress::Progress;
use crate::queries::{Kind, Queries};
use crate::report::{ProbeNs, ProbeRates, ProbeReport};
use crate::rng::{Rng, scramble};
use crate::rounds::{median, medians_ns};

/// What to measure.
#[derive(Clone, Debug)]
pub struct ProbePlan {
    /// The guards to compare; `none` has nothing to probe.
    pub guards: Vec<GuardKind>,
    /// Where the keys come from.
    pub dist: Dist,
    /// How a file of keys is written.
    pub file_format: FileFormat,
    /// How many keys; None: 1,000,000, or all of a file.
    pub keys: Option<usize>,
    /// Memory of the filter, in bits per key.
    pub bits_per_key: f64,
    /// What filters of tables are told beside their memory.
    pub filter: FilterTuning,
    /// Units of the guard `elastic`; None: as many as are usual.
    pub elastic_units: Option<u8>,
    /// T of the tree that the filters would guard.
    pub size_ratio: u32,
    /// Questions of each kind.
    pub queries: usize,
    /// How many neighbouring keys a range takes in.
    pub range_width: u64,
    /// The seed of keys and questions.
    pub seed: u64,
}

/// The base has all but one of so many keys.
const OVERLAY_SHARE: usize = 10;
const KINDS: [Kind; 3] = [Kind::PointMiss, Kind::PointHit, Kind::EmptyRange];
/// Levels of the tree over which `probe_all_ns` goes.
const TREE_LEVELS: u32 = 3;

type Table = AnyFilter<AlignedBytes>;

/// A built filter, and what building it took.
struct Built {
    guard: GuardKind,
    filter: Filter,
    build_ns_per_key: f64,
    insert_ns_per_key: f64,
    size_bytes: u64,
}

enum Filter {
    /// One filter of all keys, and the filters of the tables of a tree, newest first.
    PerTable {
        whole: Table,
        tables: Vec<Table>,
    },
    Global(Part),
}

/// Measures each filter of the plan.
pub fn bench_probe(plan: &ProbePlan, progress: &mut dyn Progress) -> Result<Vec<ProbeReport>> {
    check(plan)?;
    progress.stage("building filters", plan.guards.len() as u64 + 1);
    let keys = KeySet::new(&plan.dist, plan.file_format, plan.keys, plan.seed)?;
    let mut rng = Rng::new(scramble(plan.seed ^ 1));
    let mut draw = |kind| Queries::draw(kind, &keys, plan.queries, plan.range_width, &mut rng);
    let queries = [draw(KINDS[0])?, draw(KINDS[1])?, draw(KINDS[2])?];
    progress.advance(1);
    let mut built = Vec::new();
    for guard in &plan.guards {
        built.push(build(*guard, plan, keys.stored())?);
        progress.advance(1);
    }
    progress.stage("probing", built.len() as u64);
    let times = probe_times(&built, &queries, keys.stored());
    let all_times = probe_all_times(&built, &queries, keys.stored());
    let reports =
        built.iter().zip(times).zip(all_times).map(|((built, probe_ns), probe_all_ns)| {
            let report = ProbeReport {
                guard: built.guard.name(),
                keys: keys.stored().len() as u64,
                dist: plan.dist.to_string(),
                seed: plan.seed,
                bits_per_key: plan.bits_per_key,
                guard_bits_per_key: built.size_bytes as f64 * 8.0 / keys.stored().len() as f64,
                build_ns_per_key: built.build_ns_per_key,
                insert_ns_per_key: built.insert_ns_per_key,
                flush_keys: flush_keys(plan, keys.stored().len()) as u64,
                probe_ns,
                probe_all_ns,
                batch_ns: batch_times(&built.filter, &queries),
                line_ns: line_ns(built.size_bytes),
                false_positive_rate: rates(&built.filter, &queries, keys.stored()),
                false_negatives: false_negatives(&built.filter, keys.stored(), plan.range_width),
            };
            progress.advance(1);
            report
        });
    Ok(reports.collect())
}

fn check(plan: &ProbePlan) -> Result<()> {
    if plan.guards.is_empty() || plan.queries == 0 {
        return Err(LabError::Plan("a guard and a query are the least to measure".into()));
    }
    if plan.guards.contains(&GuardKind::Open) {
        let others = GuardKind::ALL.into_iter().filter(|guard| *guard != GuardKind::Open);
        let others: Vec<&str> = others.map(GuardKind::name).collect();
        let problem = "--guard none: there is no filter to probe; guards that have one: ";
        return Err(LabError::Plan(problem.to_owned() + &others.join(", ")));
    }
    if !(1.0..=64.0).contains(&plan.bits_per_key) {
        return Err(LabError::Plan(format!(
            "--bits-per-key {}: must be 1 to 64",
            plan.bits_per_key
        )));
    }
    if !(2..=255).contains(&plan.size_ratio) {
        return Err(LabError::Plan(format!("--size-ratio {}: must be 2 to 255", plan.size_ratio)));
    }
    let mut elastic = ElasticOptions::default();
    elastic.units = plan.elastic_units.unwrap_or(elastic.units);
    Ok(Options { filter: plan.filter.clone(), elastic, ..Options::default() }.check()?)
}

fn build(guard: GuardKind, plan: &ProbePlan, keys: &SortedKeys) -> Result<Built> {
    match guard {
        GuardKind::Open => unreachable!("the plan was checked"),
        GuardKind::Table(kind) => build_tables(plan, kind, keys),
        guard => Ok(build_grf(plan, guard, keys)),
    }
}

/// The keys of a flush: those of the inner levels come in as many flushes as two of them hold.
fn flush_keys(plan: &ProbePlan, keys: usize) -> usize {
    const LEAST: usize = 100;
    let ratio = plan.size_ratio as usize;
    (keys / OVERLAY_SHARE).div_ceil(ratio * ratio - 1).max(LEAST)
}

fn per_key(start: Instant, keys: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / keys.max(1) as f64
}

fn build_grf(plan: &ProbePlan, guard: GuardKind, keys: &SortedKeys) -> Built {
    let mut rng = Rng::new(scramble(plan.seed ^ 2));
    let (base, newer) = keys.split(|_| rng.place(OVERLAY_SHARE) == 0);
    let flush_count = newer.len().div_ceil(flush_keys(plan, keys.len()));
    let mut flushes: Vec<Vec<&[u8]>> = vec![Vec::new(); flush_count];
    newer.iter().for_each(|key| flushes[rng.place(flush_count)].push(key));
    let fingerprints = guard.fingerprints().expect("the other guards have their own builders");
    let ProbePlan { bits_per_key, size_ratio, .. } = *plan;
    let options = GrfOptions { bits_per_key, size_ratio, fingerprints, ..GrfOptions::default() };
    let start = Instant::now();
    let mut builder = PartBuilder::new(&options);
    base.iter().for_each(|key| builder.push(key));
    let mut part = builder.finish(FlushNumber(1));
    let build_ns_per_key = per_key(start, base.len());
    let start = Instant::now();
    for (flush, keys) in (1..).zip(&flushes) {
        let mut inserter = part.inserter(
            FlushNumber(flush),
            &Shape::of_round(part.base_end(), FlushNumber(flush), size_ratio),
        );
        keys.iter().for_each(|key| inserter.push(key));
        part = inserter.finish();
    }
    let insert_ns_per_key = per_key(start, newer.len());
    let size = part.size();
    let size_bytes = size.base_bytes + size.overlay_bytes;
    let filter = Filter::Global(part);
    Built { guard, filter, build_ns_per_key, insert_ns_per_key, size_bytes }
}

fn table<'k>(keys: impl Iterator<Item = &'k [u8]>, options: &FilterOptions) -> Result<Table> {
    let mut builder = AnyFilterBuilder::new(options);
    for key in keys {
        builder.add(key).map_err(|error| LabError::Plan(error.to_string()))?;
    }
    let read = AnyFilter::read(AlignedBytes::from_slice(&builder.finish()));
    read.map_err(|error| LabError::Plan(format!("a filter that was just built: {error}")))
}

fn build_tables(plan: &ProbePlan, kind: FilterKind, keys: &SortedKeys) -> Result<Built> {
    let elastic_units = plan.elastic_units;
    let options = FilterOptions { elastic_units, ..plan.filter.options(kind, plan.bits_per_key) };
    let start = Instant::now();
    let whole = table(keys.iter(), &options)?;
    let build_ns_per_key = per_key(start, keys.len());
    let mut rng = Rng::new(scramble(plan.seed ^ 2));
    let flush_count = keys.len().div_ceil(flush_keys(plan, keys.len()));
    let mut flushes: Vec<Vec<&[u8]>> = vec![Vec::new(); flush_count];
    keys.iter().for_each(|key| flushes[rng.place(flush_count)].push(key));
    let start = Instant::now();
    for keys in &flushes {
        black_box(table(keys.iter().copied(), &options)?);
    }
    let insert_ns_per_key = per_key(start, keys.len());
    let tables = tables_of_a_tree(plan, &options, keys, &mut rng)?;
    let size_bytes = tables.iter().map(|table| table.size_bytes() as u64).sum();
    let (guard, filter) = (GuardKind::Table(kind), Filter::PerTable { whole, tables });
    Ok(Built { guard, filter, build_ns_per_key, insert_ns_per_key, size_bytes })
}

/// The filters of a tree just before a merge into the last level, one table for each run, newest
/// first: T - 1 runs in each inner level, T - 1 times the next one's run size in the last.
fn tables_of_a_tree(
    plan: &ProbePlan,
    options: &FilterOptions,
    keys: &SortedKeys,
    rng: &mut Rng,
) -> Result<Vec<Table>> {
    let ratio = u64::from(plan.size_ratio);
    let mut shares: Vec<u64> = Vec::new();
    for level in 0..TREE_LEVELS - 1 {
        shares.extend((1..ratio).map(|_| ratio.pow(level)));
    }
    shares.push((ratio - 1) * ratio.pow(TREE_LEVELS - 1));
    let ends: Vec<u64> =
        shares.iter().scan(0, |end, share| (*end += share, Some(*end)).1).collect();
    let whole = ends[ends.len() - 1];
    let mut tables: Vec<Vec<&[u8]>> = vec![Vec::new(); shares.len()];
    for key in keys.iter() {
        let drawn = rng.below(whole);
        tables[ends.partition_point(|end| *end <= drawn)].push(key);
    }
    tables.iter().map(|keys| table(keys.iter().copied(), options)).collect()
}

impl Filter {
    /// Probes once. For per-table filters: the one that holds all keys.
    #[inline]
    fn may_hold(&self, query: &Query<'_>, codes: &mut Codes) -> bool {
        match (self, query) {
            (Filter::PerTable { whole, .. }, Query::Point(key)) => whole.may_contain(key),
            (Filter::PerTable { whole, .. }, Query::Range(range)) => whole.may_overlap(range),
            (Filter::Global(part), _) => {
                codes.clear();
                part.candidates(query, codes);
                !codes.is_empty()
            }
        }
    }

    fn answers(&self, kind: Kind) -> bool {
        let knows_ranges = match self {
            Filter::Global(_) => true,
            Filter::PerTable { whole, .. } => whole.kind().knows_ranges(),
        };
        knows_ranges || kind != Kind::EmptyRange
    }
}

/// Probes each query of each kind; a filter that has no answer for a kind is not timed there.
fn probe_times(built: &[Built], queries: &[Queries; 3], stored: &SortedKeys) -> Vec<ProbeNs> {
    let mut codes = Codes::new();
    let mut times = queries.iter().map(|queries| {
        let medians = medians_ns(built.len(), |side| {
            let filter = &built[side].filter;
            if filter.answers(queries.kind()) {
                for place in 0..queries.len() {
                    black_box(filter.may_hold(&queries.query(place, stored), &mut codes));
                }
            }
            Ok::<_, std::convert::Infallible>(queries.len() as u64)
        });
        medians.unwrap_or_else(|never| match never {})
    });
    let kinds = [times.next(), times.next(), times.next()].map(Option::unwrap_or_default);
    let of = |kind: usize, side: usize| {
        built[side].filter.answers(KINDS[kind]).then(|| kinds[kind][side])
    };
    let sides = 0..built.len();
    sides
        .map(|side| ProbeNs {
            point_miss: of(0, side),
            point_hit: of(1, side),
            empty_range: of(2, side),
        })
        .collect()
}

/// Probes the tables of a tree, newest first, until one says "maybe"; None for global filters.
fn probe_all_times(
    built: &[Built],
    queries: &[Queries; 3],
    stored: &SortedKeys,
) -> Vec<Option<ProbeNs>> {
    let time = |tables: &[Table], queries: &Queries| {
        let medians = medians_ns(1, |_| {
            for place in 0..queries.len() {
                let maybe = match queries.query(place, stored) {
                    Query::Point(key) => {
                        let key = HashedKey::new(key);
                        tables.iter().position(|table| table.may_contain_hashed(&key))
                    }
                    Query::Range(range) => {
                        tables.iter().position(|table| table.may_overlap(&range))
                    }
                };
                black_box(maybe);
            }
            Ok::<_, std::convert::Infallible>(queries.len() as u64)
        });
        medians.unwrap_or_else(|never| match never {})[0]
    };
    let of = |built: &Built| match &built.filter {
        Filter::Global(_) => None,
        Filter::PerTable { tables, .. } => Some(ProbeNs {
            point_miss: Some(time(tables, &queries[0])),
            point_hit: Some(time(tables, &queries[1])),
            empty_range: built.filter.answers(Kind::EmptyRange).then(|| time(tables, &queries[2])),
        }),
    };
    built.iter().map(of).collect()
}

/// Keys that are asked for at once.
const BATCH: usize = 16;

/// Probes the points of each kind in batches; None for per-table filters.
fn batch_times(filter: &Filter, queries: &[Queries; 3]) -> Option<ProbeNs> {
    let Filter::Global(part) = filter else { return None };
    let time = |queries: &Queries| {
        let medians = medians_ns(1, |_| {
            for start in (0..queries.len()).step_by(BATCH) {
                let count = BATCH.min(queries.len() - start);
                let mut keys: [&[u8]; BATCH] = [&[]; BATCH];
                let places = start..start + count;
                keys.iter_mut().zip(places).for_each(|(key, place)| *key = queries.lower(place));
                part.candidates_many(&keys[..count], |_, codes| {
                    black_box(codes.is_empty());
                });
            }
            Ok::<_, std::convert::Infallible>(queries.len() as u64)
        });
        medians.unwrap_or_else(|never| match never {})[0]
    };
    let (point_miss, point_hit) = (Some(time(&queries[0])), Some(time(&queries[1])));
    Some(ProbeNs { point_miss, point_hit, empty_range: None })
}

fn rates(filter: &Filter, queries: &[Queries; 3], stored: &SortedKeys) -> ProbeRates {
    let mut codes = Codes::new();
    let mut rate = |queries: &Queries| {
        let maybe = (0..queries.len())
            .filter(|place| filter.may_hold(&queries.query(*place, stored), &mut codes))
            .count();
        filter.answers(queries.kind()).then(|| maybe as f64 / queries.len() as f64)
    };
    ProbeRates { point_miss: rate(&queries[0]), empty_range: rate(&queries[2]) }
}

/// Asks for every key, and for a range that begins `width` before it.
fn false_negatives(filter: &Filter, keys: &SortedKeys, width: u64) -> u64 {
    let mut codes = Codes::new();
    let mut denied = 0;
    for key in keys.iter() {
        denied += u64::from(!filter.may_hold(&Query::Point(key), &mut codes));
        let lower = crate::keys::key_before(key, width);
        if let Some(range) = trommel_filters::KeyRange::new(&lower, Some(key)) {
            denied += u64::from(!filter.may_hold(&Query::Range(range), &mut codes));
        }
    }
    if let Filter::PerTable { tables, .. } = filter {
        let held = |key: &[u8]| tables.iter().any(|table| table.may_contain(key));
        denied += keys.iter().filter(|key| !held(key)).count() as u64;
    }
    denied
}

const LINE_BYTES: usize = 64;
const LINE_STEPS: usize = 200_000;

/// A walk through memory of `size_bytes`, one line after the other in random order, each read
/// depending on the one before.
fn line_ns(size_bytes: u64) -> f64 {
    let lines = (size_bytes as usize / LINE_BYTES).max(1);
    let words_per_line = LINE_BYTES / size_of::<u64>();
    let mut order: Vec<u32> = (0..lines as u32).collect();
    Rng::new(lines as u64).shuffle(&mut order);
    let mut memory = vec![0u64; lines * words_per_line];
    for (from, to) in order.iter().zip(order.iter().cycle().skip(1)) {
        memory[*from as usize * words_per_line] = u64::from(*to);
    }
    let mut line = 0usize;
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..LINE_STEPS {
                line = memory[line * words_per_line] as usize;
            }
            black_box(line);
            per_key(start, LINE_STEPS)
        })
        .collect();
    median(&mut times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    fn plan() -> ProbePlan {
        ProbePlan {
            guards: vec![GuardKind::Table(FilterKind::BlockedBloom), GuardKind::Grf],
            dist: Dist::Uniform,
            file_format: FileFormat::Lines,
            keys: Some(70_000),
            bits_per_key: 12.0,
            filter: FilterTuning::default(),
            elastic_units: None,
            size_ratio: 10,
            queries: 500,
            range_width: 64,
            seed: 1,
        }
    }

    #[test]
    fn filters_are_measured_and_lose_nothing() {
        let reports = bench_probe(&plan(), &mut Silent).expect("measured");
        for report in &reports {
            assert_eq!(report.false_negatives, 0, "{}", report.guard);
            assert!(report.line_ns > 0.0 && report.build_ns_per_key > 0.0);
            assert!(report.probe_ns.point_miss.is_some_and(|ns| ns > 0.0));
            let rate = report.false_positive_rate.point_miss.expect("points");
            assert!(rate < 0.15, "{}: {rate}", report.guard);
        }
        assert!(reports[0].probe_ns.empty_range.is_none() && reports[0].probe_all_ns.is_some());
        assert!(reports[1].probe_ns.empty_range.is_some() && reports[1].probe_all_ns.is_none());
        assert!(reports[0].batch_ns.is_none());
        let batch_ns = reports[1].batch_ns.as_ref().expect("a global filter");
        assert!(batch_ns.point_miss.is_some_and(|ns| ns > 0.0));
        assert!(batch_ns.point_hit.is_some_and(|ns| ns > 0.0) && batch_ns.empty_range.is_none());
    }

    #[test]
    fn a_tree_of_ratio_10_has_19_tables() {
        let keys = KeySet::new(&Dist::Uniform, FileFormat::Lines, Some(20_000), 1).expect("keys");
        let options = FilterOptions::new(FilterKind::BlockedBloom, 12.0);
        let tables = tables_of_a_tree(&plan(), &options, keys.stored(), &mut Rng::new(1));
        let tables = tables.expect("built");
        assert_eq!(tables.len(), 19);
        assert!(tables[18].size_bytes() > 5 * tables[17].size_bytes());
    }

    #[test]
    fn plans_without_sense_are_errors() {
        for (plan, word) in [
            (ProbePlan { guards: vec![GuardKind::Open], ..plan() }, "none"),
            (ProbePlan { guards: vec![], ..plan() }, "a guard"),
            (ProbePlan { bits_per_key: f64::NAN, ..plan() }, "--bits-per-key"),
            (ProbePlan { size_ratio: 1, ..plan() }, "--size-ratio"),
            (ProbePlan { keys: Some(0), ..plan() }, "0 keys"),
        ] {
            let message = bench_probe(&plan, &mut Silent).expect_err(word).to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}
