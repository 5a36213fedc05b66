//! `bench probe`: the filters alone, without a store.
//! ```text
//! keys -> each filter (probe_filters.rs) -- the same questions, in turns --> times, rates
//!                                        -- of several threads (probe_threads.rs) --> speeds
//! ```
//! Invariant: all filters have the same keys and answer the same questions, in rounds in which they
//! take turns. Every stored key that a filter denies is counted.

use std::hint::black_box;
use std::time::Instant;

use trommel::GuardKind;
use trommel_filters::{Codes, HashedKey, Part, Query, Question};

use crate::bench::caches::largest_cache;
use crate::bench::fit_bits::{Fit, search};
use crate::bench::probe_filters::{
    Built, ProbedFilter, Table, build, flush_keys, per_key, size_bytes,
};
use crate::bench::probe_plan::ProbePlan;
use crate::bench::probe_questions::ProbeQuestions;
use crate::bench::probe_threads::answers_at_once;
use crate::bench::rounds::rounds_ns;
use crate::error::{LabError, Result};
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::KeySet;
use crate::keys::rng::Rng;
use crate::median::median;
use crate::progress::Progress;
use crate::questions::queries::Queries;
use crate::questions::unanswered::Ask;
use crate::report::{EmptyQueryReport, ProbeNs, ProbeRates, ProbeReport};

/// Measures each filter of the plan.
pub fn bench_probe(plan: &ProbePlan, progress: &mut dyn Progress) -> Result<Vec<ProbeReport>> {
    plan.check()?;
    progress.stage("building filters", plan.guards.len() as u64 + 1);
    let keys = KeySet::new(&plan.dist, plan.file_format, plan.keys, plan.seed)?;
    let questions = ProbeQuestions::draw(plan, &keys)?;
    progress.advance(1);
    let mut built = Vec::new();
    for guard in &plan.guards {
        built.push(fitted(*guard, plan, keys.stored(), &questions.training)?);
        progress.advance(1);
    }
    progress.stage("probing", 4 + built.len() as u64);
    let filters: Vec<&Built> = built.iter().map(|(built, _)| built).collect();
    let probe_ns = probe_times(&filters, &questions, keys.stored());
    progress.advance(1);
    let probe_all_ns = tree_times(&filters, &questions, keys.stored());
    progress.advance(1);
    let batch_ns = batch_times(&filters, &questions);
    progress.advance(1);
    let together = answers_at_once(plan, &built, &keys, &questions.training)?;
    progress.advance(1);
    let key_shape = keys.shape();
    let mut reports = Vec::new();
    let times = probe_ns.into_iter().zip(probe_all_ns).zip(batch_ns).zip(together);
    for ((built, fit), (((probe_ns, probe_all_ns), batch_ns), together)) in built.iter().zip(times)
    {
        let per_key = |bytes: u64| bytes as f64 * 8.0 / keys.stored().len() as f64;
        reports.push(ProbeReport {
            guard: built.guard.name(),
            keys: keys.stored().len() as u64,
            dist: keys.dist().to_string(),
            key_shape: key_shape.clone(),
            seed: plan.seed,
            correlated: plan.correlated,
            skew: plan.skew.to_string(),
            queries: plan.queries as u64,
            range_width: plan.range_width,
            training: plan.training.map(|_| questions.training.len() as u64),
            bits_per_key: plan.bits_per_key,
            bits_setting: fit.setting,
            unfit: plan.fit_bits.then_some(fit.unfit),
            guard_bits_per_key: per_key(built.size_bytes),
            tree_bits_per_key: built.tree_bytes().map(per_key),
            filter_bytes: built.size_bytes,
            cache_bytes: largest_cache(),
            build_ns_per_key: built.build_ns_per_key,
            insert_ns_per_key: built.insert_ns_per_key,
            flush_keys: flush_keys(plan, keys.stored().len()) as u64,
            probe_ns,
            probe_all_ns,
            batch_ns,
            together,
            line_ns: line_ns(built.size_bytes),
            false_positive_rate: rates(&built.filter, &questions, keys.stored()),
            asked: unanswered_costs(&built.filter, &questions, keys.stored()),
            false_negatives: false_negatives(&built.filter, keys.stored(), plan.range_width),
        });
        progress.advance(1);
    }
    Ok(reports)
}

/// Builds a filter. If the plan asks to fit its size, with the setting that takes the planned
/// memory.
fn fitted(
    guard: GuardKind,
    plan: &ProbePlan,
    keys: &SortedKeys,
    training: &[Question],
) -> Result<(Built, Fit)> {
    let with_setting = |setting| ProbePlan { bits_per_key: setting, ..plan.clone() };
    let fit = match plan.fit_bits {
        true => search(plan.bits_per_key, |setting| {
            let bytes = size_bytes(guard, &with_setting(setting), keys, training)?;
            Ok::<_, LabError>(bytes as f64 * 8.0 / keys.len() as f64)
        })?,
        false => Fit { setting: plan.bits_per_key, taken: plan.bits_per_key, unfit: false },
    };
    Ok((build(guard, &with_setting(fit.setting), keys, training)?, fit))
}

/// Rounds of one question: `ask` asks it all, of each side that has an answer. The others have no
/// round.
fn rounds_of(
    built: &[&Built],
    count: usize,
    answers: impl Fn(&Built) -> bool,
    mut ask: impl FnMut(&Built),
) -> Vec<Vec<f64>> {
    let sides: Vec<&Built> = built.iter().copied().filter(|built| answers(built)).collect();
    let times = rounds_ns(sides.len(), |side| {
        ask(sides[side]);
        Ok::<_, std::convert::Infallible>(count as u64)
    });
    let mut times = times.unwrap_or_else(|never| match never {}).into_iter();
    let of = |built: &&Built| match answers(built) {
        true => times.next().unwrap_or_default(),
        false => Vec::new(),
    };
    built.iter().map(of).collect()
}

/// Times single probes of each kind of query. A filter that cannot answer a kind has no times for
/// it.
fn probe_times(built: &[&Built], questions: &ProbeQuestions, stored: &SortedKeys) -> Vec<ProbeNs> {
    let mut codes = Codes::new();
    let mut of = |queries: &Queries| {
        let answers = |built: &Built| built.filter.answers(queries.kind());
        rounds_of(built, queries.len(), answers, |built| {
            for place in 0..queries.len() {
                black_box(built.filter.may_hold(&queries.query(place, stored), &mut codes));
            }
        })
    };
    let (miss, hit) = (of(&questions.miss), of(&questions.hit));
    let (empty, mixed) = (of(&questions.empty), questions.mixed.as_ref().map(&mut of));
    let mixed = mixed.unwrap_or_else(|| vec![Vec::new(); built.len()]);
    let kinds = miss.into_iter().zip(hit).zip(empty).zip(mixed);
    kinds.map(|(((miss, hit), empty), mixed)| ProbeNs::of([miss, hit, empty, mixed])).collect()
}

/// Times probing the tables of a tree, newest first, until one says "maybe". None for global
/// filters.
fn tree_times(
    built: &[&Built],
    questions: &ProbeQuestions,
    stored: &SortedKeys,
) -> Vec<Option<ProbeNs>> {
    let of = |queries: &Queries| {
        let answers =
            |built: &Built| built.tables().is_some() && built.filter.answers(queries.kind());
        rounds_of(built, queries.len(), answers, |built| {
            let tables = built.tables().unwrap_or_default();
            for place in 0..queries.len() {
                black_box(first_maybe(tables, &queries.query(place, stored)));
            }
        })
    };
    let kinds = of(&questions.miss).into_iter().zip(of(&questions.hit)).zip(of(&questions.empty));
    let times = kinds.map(|((miss, hit), empty)| ProbeNs::of([miss, hit, empty, Vec::new()]));
    times.zip(built).map(|(times, built)| built.tables().is_some().then_some(times)).collect()
}

/// Returns the first table that may hold what the query asks for.
#[inline]
fn first_maybe(tables: &[Table], query: &Query<'_>) -> Option<usize> {
    match query {
        Query::Point(key) => {
            let key = HashedKey::new(key);
            tables.iter().position(|table| table.may_contain_hashed(&key))
        }
        Query::Range(range) => tables.iter().position(|table| table.may_overlap(range)),
    }
}

/// Keys in one batch.
const BATCH: usize = 16;

/// Times point queries in batches. None for per-table filters.
fn batch_times(built: &[&Built], questions: &ProbeQuestions) -> Vec<Option<ProbeNs>> {
    let is_global = |built: &Built| matches!(built.filter, ProbedFilter::Global { .. });
    let of = |queries: &Queries| {
        rounds_of(built, queries.len(), is_global, |built| {
            if let ProbedFilter::Global { part, .. } = &built.filter {
                ask_in_batches(part, queries);
            }
        })
    };
    let kinds = of(&questions.miss).into_iter().zip(of(&questions.hit));
    let times = kinds.map(|(miss, hit)| ProbeNs::of([miss, hit, Vec::new(), Vec::new()]));
    times.zip(built).map(|(times, built)| is_global(built).then_some(times)).collect()
}

fn ask_in_batches(part: &Part, queries: &Queries) {
    for start in (0..queries.len()).step_by(BATCH) {
        let count = BATCH.min(queries.len() - start);
        let mut keys: [&[u8]; BATCH] = [&[]; BATCH];
        let places = start..start + count;
        keys.iter_mut().zip(places).for_each(|(key, place)| *key = queries.lower(place));
        part.candidates_many(&keys[..count], |_, codes| {
            black_box(codes.is_empty());
        });
    }
}

fn rates(filter: &ProbedFilter, questions: &ProbeQuestions, stored: &SortedKeys) -> ProbeRates {
    let mut codes = Codes::new();
    let mut rate = |queries: &Queries| {
        let maybe = (0..queries.len())
            .filter(|place| filter.may_hold(&queries.query(*place, stored), &mut codes))
            .count();
        filter.answers(queries.kind()).then(|| maybe as f64 / queries.len() as f64)
    };
    ProbeRates { point_miss: rate(&questions.miss), empty_range: rate(&questions.empty) }
}

/// Returns how many runs are searched in vain, for each further kind of question.
fn unanswered_costs(
    filter: &ProbedFilter,
    questions: &ProbeQuestions,
    stored: &SortedKeys,
) -> Vec<EmptyQueryReport> {
    let mut codes = Codes::new();
    let report = |(ask, queries): &(Ask, Queries)| {
        let answers = filter.answers(queries.kind()) && !queries.is_empty();
        let runs = |place| filter.runs(&queries.query(place, stored), &mut codes);
        let runs = answers.then(|| (0..queries.len()).map(runs).sum::<usize>());
        EmptyQueryReport {
            question: ask.name(),
            ops: queries.len() as u64,
            needless_runs_per_op: runs.map(|runs| runs as f64 / queries.len() as f64),
        }
    };
    questions.unanswered.iter().map(report).collect()
}

/// The most keys that are checked for false negatives.
const CHECKED_MAX: usize = 1_000_000;

/// Counts the keys that the filter denies, as points and as ranges that begin `width` before the
/// key. Of many keys, evenly spaced ones are checked.
fn false_negatives(filter: &ProbedFilter, keys: &SortedKeys, width: u64) -> u64 {
    let mut codes = Codes::new();
    let mut denied = 0;
    let every = keys.len().div_ceil(CHECKED_MAX);
    for key in keys.iter().step_by(every) {
        denied += u64::from(!filter.may_hold(&Query::Point(key), &mut codes));
        let lower = crate::keys::key_list::key_before(key, width);
        if let Some(range) = trommel_filters::KeyRange::new(&lower, Some(key)) {
            denied += u64::from(!filter.may_hold(&Query::Range(range), &mut codes));
        }
    }
    if let ProbedFilter::PerTable { tables, .. } = filter {
        let held = |key: &[u8]| tables.iter().any(|table| table.may_contain(key));
        denied += keys.iter().step_by(every).filter(|key| !held(key)).count() as u64;
    }
    denied
}

const LINE_BYTES: usize = 64;
const LINE_STEPS: usize = 200_000;

/// Returns the time of a dependent random read: a walk through `size_bytes` of memory, one cache
/// line after the other in random order.
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
    use crate::bench::probe_plan::tests::plan;
    use crate::keys::dist::{Dist, FileFormat};
    use crate::keys::skew::Skew;
    use crate::progress::Silent;
    use trommel_filters::FilterOptions;
    use trommel_guards::kinds;

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
    fn memory_is_brought_to_what_was_asked_for_or_told_not_to_be() {
        let guards = [kinds::SURF_BASE, kinds::BLOOM, kinds::SNARF].map(GuardKind::Table).to_vec();
        let plan = ProbePlan { guards, keys: Some(5000), queries: 100, fit_bits: true, ..plan() };
        for report in bench_probe(&plan, &mut Silent).expect("measured") {
            let off = (report.guard_bits_per_key / 12.0 - 1.0).abs();
            assert_eq!(report.unfit, Some(off > 0.03), "{}: {off}", report.guard);
            assert_eq!(report.unfit == Some(true), report.guard == "surf-base", "{off}");
            assert!(report.tree_bits_per_key.is_some_and(|bits| bits > 0.0));
            assert_eq!(report.probe_ns.point_miss_rounds.len(), 7);
        }
    }

    /// With a model of text, no run is searched for an absent user. Without one, most are.
    #[test]
    fn absent_prefixes_are_asked_of_every_filter_that_knows_ranges() {
        let guards = [kinds::BLOCKED_BLOOM, kinds::SURF_REAL, kinds::SNARF].map(GuardKind::Table);
        let plan = ProbePlan {
            guards: [guards.as_slice(), &[GuardKind::Grf]].concat(),
            dist: Dist::UserTime,
            asks: vec![Ask::SecondPart, Ask::Points],
            ..plan()
        };
        let reports = bench_probe(&plan, &mut Silent).expect("measured");
        let runs = |guard: usize, ask: usize| reports[guard].asked[ask].needless_runs_per_op;
        assert!(reports.iter().all(|report| report.asked[0].ops == 500));
        assert_eq!(runs(0, 0), None, "Bloom's knows no ranges");
        assert!(runs(0, 1).is_some_and(|runs| runs < 0.3), "{:?}", runs(0, 1));
        let (surf, snarf, grf) = (runs(1, 0), runs(2, 0), runs(3, 0));
        assert!(snarf > Some(5.0) && surf.is_some(), "{surf:?} {snarf:?}");
        assert!(grf < Some(0.1), "{grf:?}");
    }

    #[test]
    fn training_helps_a_filter_that_learns() {
        let guards = vec![GuardKind::Table(kinds::ARF), GuardKind::Table(kinds::SURF_REAL)];
        let plan = |training| ProbePlan {
            guards: guards.clone(),
            dist: Dist::Uniform64,
            keys: Some(2000),
            queries: 500,
            range_width: 1 << 51,
            training: Some(training),
            ..plan()
        };
        let rates = |training| {
            let reports = bench_probe(&plan(training), &mut Silent).expect("measured");
            assert!(reports.iter().all(|report| report.probe_ns.mixed_range.is_some()));
            assert!(reports.iter().all(|report| report.false_negatives == 0));
            assert_eq!(reports[0].training, Some(training as u64));
            [0, 1].map(|nth| reports[nth].false_positive_rate.empty_range.expect("ranges"))
        };
        let (untrained, trained) = (rates(0), rates(4000));
        assert!(trained[0] < 0.7 * untrained[0], "{untrained:?}, {trained:?}");
    }

    #[test]
    fn threads_ask_each_filter_together_and_copies_of_it() {
        let guards = [kinds::SURF_REAL, kinds::BLOOM].map(GuardKind::Table);
        let guards =
            [guards.as_slice(), &[GuardKind::Grf, GuardKind::Locator(kinds::CHUCKY)]].concat();
        let (keys, skew) = (Some(3000), Skew::Zipf(0.99));
        let plan = ProbePlan { guards, keys, skew, threads: 2, ..plan() };
        for report in bench_probe(&plan, &mut Silent).expect("measured") {
            let together = report.together.as_ref().expect("two threads");
            assert_eq!((together.threads, report.skew.as_str()), (2, "zipf:0.99"));
            assert_eq!(together.times_as_fast_rounds.len(), 7, "{}", report.guard);
            let speeds = [together.alone_ops_per_s, together.shared_ops_per_s];
            assert!(speeds.iter().all(|speed| *speed > 0.0) && together.apart_ops_per_s > 0.0);
            // In each round: shared beside apart, where apart counts as two.
            let rounds = together.of_cores_times_as_fast_rounds.iter().zip(
                together.times_as_fast_rounds.iter().zip(&together.apart_times_as_fast_rounds),
            );
            for (of_cores, (shared, apart)) in rounds {
                assert!((of_cores - 2.0 * shared / apart).abs() < 1e-9, "{together:?}");
            }
        }
        let alone = bench_probe(&ProbePlan { threads: 1, ..plan }, &mut Silent).expect("measured");
        assert!(alone.iter().all(|report| report.together.is_none()));
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
            (ProbePlan { threads: 0, ..plan() }, "--threads 0"),
            (ProbePlan { keys: Some(0), ..plan() }, "0 keys"),
        ] {
            let message = bench_probe(&plan, &mut Silent).expect_err(word).to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}
