//! `bench probe`: the filters alone, without a store.
//! ```text
//! keys -> each filter (probe_filters.rs) -- the same questions, in turns --> times, rates
//! ```
//! Invariant: every filter sees the same keys, and the same questions in rounds that take turns; a
//! stored key that a filter denies is counted.

use std::hint::black_box;
use std::time::Instant;

use trommel::{FilterTuning, GuardKind, Options};
use trommel_filters::{Codes, HashedKey, Query};
use trommel_guards::ElasticOptions;

use crate::bench::probe_filters::{Built, ProbedFilter, Table, build, flush_keys, per_key};
use crate::bench::rounds::{median, medians_ns};
use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, scramble};
use crate::progress::Progress;
use crate::questions::queries::{Kind, Queries};
use crate::questions::question_draw::{Draw, Misses};
use crate::report::{ProbeNs, ProbeRates, ProbeReport};

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
    /// Sub-filters of the guard `elastic`; None: as many as are usual.
    pub elastic_units: Option<u8>,
    /// T of the tree that the filters would guard.
    pub size_ratio: u32,
    /// Questions of each kind.
    pub queries: usize,
    /// How many neighbouring keys a range takes in.
    pub range_width: u64,
    /// Misses and empty ranges begin at most so far behind a stored key; at least 1. None: they are
    /// drawn as the keys are.
    pub correlated: Option<u64>,
    /// The seed of keys and questions.
    pub seed: u64,
}

const KINDS: [Kind; 3] = [Kind::PointMiss, Kind::PointHit, Kind::EmptyRange];
/// Measures each filter of the plan.
pub fn bench_probe(plan: &ProbePlan, progress: &mut dyn Progress) -> Result<Vec<ProbeReport>> {
    check(plan)?;
    progress.stage("building filters", plan.guards.len() as u64 + 1);
    let keys = KeySet::new(&plan.dist, plan.file_format, plan.keys, plan.seed)?;
    let mut rng = Rng::new(scramble(plan.seed ^ 1));
    let misses = plan.correlated.map_or(Misses::LikeKeys, Misses::Behind);
    let how = Draw { misses, ..Draw::even(plan.queries, plan.range_width) };
    let mut draw = |kind| Queries::draw_as(kind, &keys, how, &mut rng);
    let queries = [draw(KINDS[0])?, draw(KINDS[1])?, draw(KINDS[2])?];
    progress.advance(1);
    let mut built = Vec::new();
    for guard in &plan.guards {
        built.push(build(*guard, plan, keys.stored())?);
        progress.advance(1);
    }
    progress.stage("probing", built.len() as u64);
    let key_shape = keys.shape();
    let times = probe_times(&built, &queries, keys.stored());
    let all_times = probe_all_times(&built, &queries, keys.stored());
    let reports =
        built.iter().zip(times).zip(all_times).map(|((built, probe_ns), probe_all_ns)| {
            let report = ProbeReport {
                guard: built.guard.name(),
                keys: keys.stored().len() as u64,
                dist: keys.dist().to_string(),
                key_shape: key_shape.clone(),
                seed: plan.seed,
                correlated: plan.correlated,
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
        let others =
            trommel_guards::all_guards().into_iter().filter(|guard| *guard != GuardKind::Open);
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
    if plan.correlated == Some(0) {
        return Err(LabError::Plan("--correlated 0: must be 1 or more".into()));
    }
    if !(2..=255).contains(&plan.size_ratio) {
        return Err(LabError::Plan(format!("--size-ratio {}: must be 2 to 255", plan.size_ratio)));
    }
    let mut elastic = ElasticOptions::default();
    elastic.units = plan.elastic_units.unwrap_or(elastic.units);
    let filter = plan.filter.clone().with(elastic);
    Ok(Options { filter, ..Options::default() }.check()?)
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
        ProbedFilter::Global(_) | ProbedFilter::Locator { .. } => None,
        ProbedFilter::PerTable { tables, .. } => Some(ProbeNs {
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
fn batch_times(filter: &ProbedFilter, queries: &[Queries; 3]) -> Option<ProbeNs> {
    let ProbedFilter::Global(part) = filter else { return None };
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

fn rates(filter: &ProbedFilter, queries: &[Queries; 3], stored: &SortedKeys) -> ProbeRates {
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
fn false_negatives(filter: &ProbedFilter, keys: &SortedKeys, width: u64) -> u64 {
    let mut codes = Codes::new();
    let mut denied = 0;
    for key in keys.iter() {
        denied += u64::from(!filter.may_hold(&Query::Point(key), &mut codes));
        let lower = crate::keys::key_list::key_before(key, width);
        if let Some(range) = trommel_filters::KeyRange::new(&lower, Some(key)) {
            denied += u64::from(!filter.may_hold(&Query::Range(range), &mut codes));
        }
    }
    if let ProbedFilter::PerTable { tables, .. } = filter {
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
    use crate::bench::probe_filters::tables_of_a_tree;
    use crate::progress::Silent;
    use trommel_filters::FilterOptions;
    use trommel_guards::kinds;

    fn plan() -> ProbePlan {
        ProbePlan {
            guards: vec![GuardKind::Table(kinds::BLOCKED_BLOOM), GuardKind::Grf],
            dist: Dist::Uniform,
            file_format: FileFormat::Lines,
            keys: Some(70_000),
            bits_per_key: 12.0,
            filter: FilterTuning::default(),
            elastic_units: None,
            size_ratio: 10,
            queries: 500,
            range_width: 64,
            correlated: None,
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
    fn every_filter_is_measured_and_denies_no_key() {
        let guards = trommel_guards::all_guards()[1..].to_vec();
        let plan = ProbePlan { guards, keys: Some(3000), queries: 100, ..plan() };
        let reports = bench_probe(&plan, &mut Silent).expect("measured");
        assert_eq!(reports.len(), trommel_guards::all_guards().len() - 1);
        for report in &reports {
            assert_eq!(report.false_negatives, 0, "{}", report.guard);
            assert!(report.guard_bits_per_key > 0.0, "{}", report.guard);
        }
    }

    #[test]
    fn a_tree_of_ratio_10_has_19_tables() {
        let keys = KeySet::new(&Dist::Uniform, FileFormat::Lines, Some(20_000), 1).expect("keys");
        let options = FilterOptions::new(kinds::BLOCKED_BLOOM, 12.0);
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
            (ProbePlan { correlated: Some(0), ..plan() }, "--correlated"),
            (ProbePlan { keys: Some(0), ..plan() }, "0 keys"),
        ] {
            let message = bench_probe(&plan, &mut Silent).expect_err(word).to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}
