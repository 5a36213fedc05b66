//! The filters that `bench probe` measures, all built from the same keys.
//! ```text
//! grf            9 of 10 keys -> base         the others, in flushes -> overlay     1 probe, or 16
//! chucky, remix  9 of 10 keys -> oldest run   the others -> runs of inner levels    1 probe
//! others         all keys -> one filter       the tables of a tree -> 19 filters    1 or 19
//! ```

use std::hint::black_box;
use std::time::Instant;

use trommel::GuardKind;
use trommel_filters::{
    AlignedBytes, AnyFilter, AnyRunLocator, Codes, FilterKind, FilterOptions, FlushNumber,
    GrfOptions, KeySample, Part, PartBuilder, Query, Question, RunLocatorKind, Shape, SlotSet,
    TreePlan,
};
use trommel_guards::ElasticUnits;

use crate::bench::probe_plan::ProbePlan;
use crate::error::{LabError, Result};
use crate::keys::key_list::SortedKeys;
use crate::keys::rng::{Rng, scramble};
use crate::questions::queries::Kind;

/// The most runs of a level: the filter has this many slots.
const SLOTS_OF_LEVEL_MAX: u32 = 100;
/// One key in this many is in the overlay, all others in the base.
const OVERLAY_SHARE: usize = 10;
/// Levels of the tree that `probe_all_ns` is measured on.
const TREE_LEVELS: u32 = 3;

pub(crate) type Table = Box<dyn AnyFilter>;

/// A built filter, and the cost of building it.
pub(crate) struct Built {
    pub(crate) guard: GuardKind,
    pub(crate) filter: ProbedFilter,
    pub(crate) build_ns_per_key: f64,
    pub(crate) insert_ns_per_key: f64,
    /// Size of the filter of all keys.
    pub(crate) size_bytes: u64,
}

pub(crate) enum ProbedFilter {
    /// One filter of all keys, and the filters of a tree's tables, newest first.
    PerTable { whole: Table, tables: Vec<Table> },
    /// A part of the global filter, and the shape of its tree.
    Global { part: Part, shape: Shape },
    /// A filter that knows the run of each key.
    Locator { kind: &'static dyn RunLocatorKind, filter: Box<dyn AnyRunLocator> },
}

impl Built {
    /// Returns the filters of the tree's tables. None: one filter serves the whole tree.
    pub(crate) fn tables(&self) -> Option<&[Table]> {
        match &self.filter {
            ProbedFilter::PerTable { tables, .. } => Some(tables),
            ProbedFilter::Global { .. } | ProbedFilter::Locator { .. } => None,
        }
    }

    /// Returns the bytes of these filters together.
    pub(crate) fn tree_bytes(&self) -> Option<u64> {
        let tables = self.tables()?;
        Some(tables.iter().map(|table| table.size_bytes() as u64).sum())
    }
}

/// Returns the size of the filter of all keys, in bytes, by building it.
pub(crate) fn size_bytes(
    guard: GuardKind,
    plan: &ProbePlan,
    keys: &SortedKeys,
    training: &[Question],
) -> Result<u64> {
    match guard {
        GuardKind::Table(kind) => {
            Ok(table(keys.iter(), &options(plan, kind, training))?.size_bytes() as u64)
        }
        other => Ok(build(other, plan, keys, training)?.size_bytes),
    }
}

pub(crate) fn build(
    guard: GuardKind,
    plan: &ProbePlan,
    keys: &SortedKeys,
    training: &[Question],
) -> Result<Built> {
    match guard {
        GuardKind::Open => unreachable!("the plan was checked"),
        GuardKind::Table(kind) => build_tables(plan, kind, keys, training),
        GuardKind::Locator(kind) => Ok(build_locator(plan, kind, keys)),
        guard => Ok(build_grf(plan, guard, keys)),
    }
}

/// The filter of all keys alone: another one of the same bytes.
pub(crate) fn build_copy(
    guard: GuardKind,
    plan: &ProbePlan,
    keys: &SortedKeys,
    training: &[Question],
) -> Result<ProbedFilter> {
    match guard {
        GuardKind::Table(kind) => {
            let whole = table(keys.iter(), &options(plan, kind, training))?;
            Ok(ProbedFilter::PerTable { whole, tables: Vec::new() })
        }
        other => Ok(build(other, plan, keys, training)?.filter),
    }
}

/// The keys of a flush: those of the inner levels come in as many flushes as two of them hold.
pub(crate) fn flush_keys(plan: &ProbePlan, keys: usize) -> usize {
    const LEAST: usize = 100;
    let ratio = plan.size_ratio as usize;
    (keys / OVERLAY_SHARE).div_ceil(ratio * ratio - 1).max(LEAST)
}

pub(crate) fn per_key(start: Instant, keys: usize) -> f64 {
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
    let run_codes = guard.run_codes();
    let options =
        GrfOptions { bits_per_key, size_ratio, fingerprints, run_codes, ..GrfOptions::default() };
    let start = Instant::now();
    let sample = KeySample::evenly(base.len(), |place| base.get(place));
    let mut builder = PartBuilder::new(&options).with_sample(&sample, base.len() as u64);
    base.iter().for_each(|key| builder.push(key));
    let mut part = builder.finish(FlushNumber(1));
    let mut shape = Shape::of_round(part.base_end(), FlushNumber(1), size_ratio);
    let build_ns_per_key = per_key(start, base.len());
    let start = Instant::now();
    for (flush, keys) in (1..).zip(&flushes) {
        shape = Shape::of_round(part.base_end(), FlushNumber(flush), size_ratio);
        let mut inserter = part.inserter(FlushNumber(flush), &shape);
        keys.iter().for_each(|key| inserter.push(key));
        part = inserter.finish();
    }
    let insert_ns_per_key = per_key(start, newer.len());
    let size = part.size();
    let size_bytes = size.base_bytes + size.overlay_bytes;
    let filter = ProbedFilter::Global { part, shape };
    Built { guard, filter, build_ns_per_key, insert_ns_per_key, size_bytes }
}

/// Builds a locator: first from the keys of the oldest run, then with the runs of full inner
/// levels.
fn build_locator(plan: &ProbePlan, kind: &'static dyn RunLocatorKind, keys: &SortedKeys) -> Built {
    let mut rng = Rng::new(scramble(plan.seed ^ 2));
    let (oldest, newer) = keys.split(|_| rng.place(OVERLAY_SHARE) == 0);
    let inner = (plan.size_ratio - 1).min(SLOTS_OF_LEVEL_MAX) as u8;
    let tree = TreePlan {
        waiting_runs: 0,
        runs_of_levels: (1..TREE_LEVELS).map(|_| inner).chain([1]).collect(),
        size_ratio: plan.size_ratio,
        entries: keys.len() as u64,
        bits_per_key: plan.bits_per_key,
    };
    let start = Instant::now();
    let mut builder = kind.builder(&tree);
    oldest.iter().for_each(|key| builder.push(key));
    let mut filter = builder.finish();
    let build_ns_per_key = per_key(start, oldest.len());
    // A run of the second level has T times as many keys as one of the first.
    let mut runs: Vec<Vec<&[u8]>> = vec![Vec::new(); usize::from(inner) * 2];
    for key in newer.iter() {
        let of_first = rng.below(u64::from(plan.size_ratio) + 1) == 0;
        let nth = rng.place(usize::from(inner));
        runs[if of_first { nth } else { usize::from(inner) + nth }].push(key);
    }
    let start = Instant::now();
    for (number, keys) in runs.iter().enumerate() {
        let slot = tree.slot(number / usize::from(inner), number % usize::from(inner));
        keys.iter().for_each(|key| filter.note(key, None, slot));
    }
    let insert_ns_per_key = per_key(start, newer.len());
    let size_bytes = filter.size().bytes as u64;
    let (guard, filter) = (GuardKind::Locator(kind), ProbedFilter::Locator { kind, filter });
    Built { guard, filter, build_ns_per_key, insert_ns_per_key, size_bytes }
}

fn table<'k>(keys: impl Iterator<Item = &'k [u8]>, options: &FilterOptions) -> Result<Table> {
    let mut builder = options.builder();
    for key in keys {
        builder.add(key).map_err(|error| LabError::Plan(error.to_string()))?;
    }
    let read = options.kind.read(AlignedBytes::from_slice(&builder.finish()));
    read.map_err(|error| LabError::Plan(format!("a filter that was just built: {error}")))
}

fn options(
    plan: &ProbePlan,
    kind: &'static dyn FilterKind,
    training: &[Question],
) -> FilterOptions {
    let tuning = plan.filter.clone().with(ElasticUnits(plan.elastic_units));
    let mut options = FilterOptions::new(kind, plan.bits_per_key).tuned(tuning);
    if kind.questions_kept(&options.tuning) > 0 {
        options.questions = training.to_vec();
    }
    options
}

fn build_tables(
    plan: &ProbePlan,
    kind: &'static dyn FilterKind,
    keys: &SortedKeys,
    training: &[Question],
) -> Result<Built> {
    let start = Instant::now();
    let whole = table(keys.iter(), &options(plan, kind, training))?;
    let build_ns_per_key = per_key(start, keys.len());
    // Filters of small tables are not trained: training takes as long as for a large table.
    let options = options(plan, kind, &[]);
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
    let size_bytes = whole.size_bytes() as u64;
    let (guard, filter) = (GuardKind::Table(kind), ProbedFilter::PerTable { whole, tables });
    Ok(Built { guard, filter, build_ns_per_key, insert_ns_per_key, size_bytes })
}

/// Builds the filters of a tree just before a merge into the last level: one table for each run,
/// newest first. Each inner level has T - 1 runs. The last run has T - 1 units of its level.
pub(crate) fn tables_of_a_tree(
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

impl ProbedFilter {
    /// Probes once. A per-table guard probes its one filter of all keys. False: the key or range is
    /// not there.
    #[inline]
    pub(crate) fn may_hold(&self, query: &Query<'_>, codes: &mut Codes) -> bool {
        match (self, query) {
            (ProbedFilter::PerTable { whole, .. }, Query::Point(key)) => whole.may_contain(key),
            (ProbedFilter::PerTable { whole, .. }, Query::Range(range)) => whole.may_overlap(range),
            (ProbedFilter::Global { part, .. }, _) => {
                codes.clear();
                part.candidates(query, codes);
                !codes.is_empty()
            }
            (ProbedFilter::Locator { filter, .. }, _) => {
                let mut slots = SlotSet::default();
                filter.candidates(query, &mut slots);
                !slots.is_empty()
            }
        }
    }

    /// Returns how many runs of the tree may hold what the query asks for.
    pub(crate) fn runs(&self, query: &Query<'_>, codes: &mut Codes) -> usize {
        let may_hold = |table: &&Table| match query {
            Query::Point(key) => table.may_contain(key),
            Query::Range(range) => table.may_overlap(range),
        };
        match self {
            ProbedFilter::PerTable { tables, .. } => tables.iter().filter(may_hold).count(),
            ProbedFilter::Global { part, shape } => {
                codes.clear();
                part.candidates(query, codes);
                shape.resolve(codes).count()
            }
            ProbedFilter::Locator { filter, .. } => {
                let mut slots = SlotSet::default();
                filter.candidates(query, &mut slots);
                slots.iter().count()
            }
        }
    }

    pub(crate) fn answers(&self, kind: Kind) -> bool {
        let knows_ranges = match self {
            ProbedFilter::Global { .. } => true,
            ProbedFilter::Locator { kind, .. } => kind.knows_ranges(),
            ProbedFilter::PerTable { whole, .. } => whole.kind().knows_ranges(),
        };
        knows_ranges || kind.is_point()
    }
}
