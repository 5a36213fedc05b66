//! `bench fpr`: the false positive rates of global range filters.
//! ```text
//! keys -> dealt to the flushes of a tree (fpr_tree.rs) -> filter of its runs
//!      -> asked for what is not there, and for what is
//! ```
//! Invariant: all filters of one distribution answer the same questions about the same keys. A seed
//! always gives the same counts.

use std::collections::{BTreeSet, HashSet};

use trommel::Policy;
use trommel_filters::{
    Codes, EmptyQueries, EmptyQuery, Fingerprints, FlushNumber, GrfOptions, Inserter, KeyRange,
    KeySample, Part, PartBuilder, Query, QueryMix, Span,
};

use crate::bench::fpr_round::{add_growth, rate_of_paper};
use crate::bench::fpr_tree::{FilledTree, Filling, SIZE_RATIO, runs};
use crate::bench::wilson;
use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::key_list::{SortedKeys, key_after, key_before};
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, scramble};
use crate::progress::Progress;
use crate::questions::queries::Queries;
use crate::questions::unanswered::{Ask, PrefixEnd};
use crate::report::{FprFilter, FprRate, FprReport};

/// What to measure: each kind of fingerprint with each number of bits and each filling, asked each
/// kind of question at each width.
#[derive(Clone, Debug)]
pub struct FprPlan {
    /// Where the keys come from.
    pub dist: Dist,
    /// The format of a file of keys.
    pub file_format: FileFormat,
    /// How many keys; None: 5,000,000, or all of a set.
    pub keys: Option<usize>,
    /// How keys become fingerprints.
    pub fingerprints: Vec<Fingerprints>,
    /// Memory of the filters, in bits per key.
    pub bits_per_key: Vec<f64>,
    /// How many bits of a key's fingerprint are of a hash, which serves point queries only.
    pub point_bits: u8,
    /// The expected share of points among all questions; None: the filter's default.
    pub points_expected: Option<f64>,
    /// Whether the filter is built for a sample of such questions, like that of a store that has
    /// learned what is asked.
    pub learn: bool,
    /// The merge policies of the trees.
    pub policies: Vec<Policy>,
    /// L, the trees' numbers of levels, 1 to 4.
    pub levels: Vec<u32>,
    /// Z, how full the last level is, 1 to 9.
    pub fills: Vec<u32>,
    /// Elapsed shares of a round: 0 after a merge into the last level, 1 before the next one.
    pub since: Vec<f64>,
    /// Flushes that wait in level 0 because a merge into the last level is overdue, at most 100.
    pub owed: Vec<u32>,
    /// The kinds of questions.
    pub asks: Vec<Ask>,
    /// How many neighbouring keys a range spans; 1: points.
    pub range_widths: Vec<u64>,
    /// Questions of each kind and width.
    pub queries: usize,
    /// The seed of keys, flushes and questions.
    pub seed: u64,
}

const KEYS_DEFAULT: usize = 5_000_000;
/// Stored keys that each filter is asked for.
const HITS: usize = 50_000;
/// A rate needs this many distinct questions, or half of those requested if that is fewer.
const DISTINCT_MIN: usize = 100;

/// Returns the name of a kind of fingerprint.
pub fn fingerprints_name(kind: Fingerprints) -> &'static str {
    match kind {
        Fingerprints::Auto => "auto",
        Fingerprints::Spline => "spline",
        Fingerprints::Gap => "gap",
        Fingerprints::Cell => "cell",
        Fingerprints::Coded => "coded",
    }
}

/// Returns the kind of fingerprint with that name, or an error that lists the known names.
pub fn fingerprints_named(name: &str) -> Result<Fingerprints> {
    let found = Fingerprints::ALL.into_iter().find(|kind| fingerprints_name(*kind) == name);
    found.ok_or_else(|| {
        let known = Fingerprints::ALL.map(fingerprints_name).join(", ");
        LabError::Plan(format!("there are no fingerprints '{name}'; there are: {known}"))
    })
}

/// Measures every filter of the plan.
pub fn bench_fpr(plan: &FprPlan, progress: &mut dyn Progress) -> Result<FprReport> {
    check(plan)?;
    let fillings = fillings(plan);
    let filters = plan.fingerprints.len() * plan.bits_per_key.len() * fillings.len();
    progress.stage(&format!("false positives, {}", plan.dist), 2 + filters as u64);
    let (dist, format) = (&plan.dist, plan.file_format);
    let keys = KeySet::with_default(dist, format, plan.keys, KEYS_DEFAULT, plan.seed)?;
    check_flushes(&fillings, keys.stored().len())?;
    progress.advance(1);
    let misses = questions(plan).into_iter();
    let misses: Vec<Misses> =
        misses.map(|(ask, width)| Misses::draw(&keys, ask, width, plan)).collect();
    let learnt = if plan.learn { learnt(&keys, plan) } else { EmptyQueries::default() };
    let deal = |filling| FilledTree::deal(keys.stored().len(), filling, plan.seed);
    let trees: Vec<FilledTree<'_>> = fillings.into_iter().map(deal).collect();
    progress.advance(1);
    let mut report = FprReport {
        dist: keys.dist().to_string(),
        key_shape: keys.shape(),
        seed: plan.seed,
        keys: keys.stored().len() as u64,
        size_ratio: u64::from(SIZE_RATIO),
        filters: Vec::with_capacity(filters),
    };
    for fingerprints in &plan.fingerprints {
        for bits_per_key in &plan.bits_per_key {
            for tree in &trees {
                let options = GrfOptions {
                    bits_per_key: *bits_per_key,
                    size_ratio: SIZE_RATIO,
                    fingerprints: *fingerprints,
                    point_bits: plan.point_bits,
                    ..GrfOptions::default()
                };
                let query_mix = plan.points_expected.map(|points| QueryMix { points });
                let learnt = &learnt;
                let filter =
                    TestedFilter { stored: keys.stored(), tree, options, query_mix, learnt };
                report.filters.push(filter.measure(&misses, plan.seed));
                progress.advance(1);
            }
        }
    }
    add_growth(&mut report.filters);
    Ok(report)
}

fn check(plan: &FprPlan) -> Result<()> {
    let wrong = |problem: String| Err(LabError::Plan(problem));
    if plan.queries == 0 {
        return wrong("--queries 0: a question is the least to measure".into());
    }
    if let Some(bits) = plan.bits_per_key.iter().find(|bits| !(1.0..=64.0).contains(*bits)) {
        return wrong(format!("--bits-per-key {bits}: must be 1 to 64"));
    }
    if let Some(fill) = plan.fills.iter().find(|fill| !(1..SIZE_RATIO).contains(*fill)) {
        return wrong(format!("--fill {fill}: must be 1 to {}", SIZE_RATIO - 1));
    }
    if let Some(since) = plan.since.iter().find(|since| !(0.0..=1.0).contains(*since)) {
        return wrong(format!("--since {since}: must be 0 to 1"));
    }
    if let Some(levels) = plan.levels.iter().find(|levels| !(1..=4).contains(*levels)) {
        return wrong(format!("--levels {levels}: must be 1 to 4"));
    }
    if let Some(owed) = plan.owed.iter().find(|owed| **owed > 100) {
        return wrong(format!("--owed {owed}: must be at most 100"));
    }
    if plan.range_widths.contains(&0) {
        return wrong("--range-width 0: must be 1 (points) or more".into());
    }
    Ask::check(&plan.asks, &plan.dist)?;
    let filters = plan.fingerprints.len() * plan.bits_per_key.len();
    if filters * fillings(plan).len() * questions(plan).len() == 0 {
        return wrong(
            "fingerprints, bits, a policy, levels, a filling, a moment, flushes owed, a question and its width: at least one of each".into(),
        );
    }
    Ok(())
}

/// Returns each kind of question with each of its widths. Points and ranges come first, by width.
fn questions(plan: &FprPlan) -> Vec<(Ask, Option<u64>)> {
    let of = |ask: &Ask, widths: &[u64]| -> Vec<(Ask, Option<u64>)> {
        ask.widths(widths).into_iter().map(|width| (*ask, width)).collect()
    };
    let (plain, others): (Vec<Ask>, Vec<Ask>) =
        plan.asks.iter().partition(|ask| matches!(ask, Ask::Points | Ask::Ranges));
    let by_width = plan.range_widths.chunks(1);
    let plain = by_width.flat_map(|width| plain.iter().flat_map(move |ask| of(ask, width)));
    plain.chain(others.iter().flat_map(|ask| of(ask, &plan.range_widths))).collect()
}

/// Draws a sample of questions of the same kinds, other than those that are measured.
fn learnt(keys: &KeySet, plan: &FprPlan) -> EmptyQueries {
    let kinds = questions(plan);
    let count = EmptyQueries::MAX.div_ceil(kinds.len());
    let mut rng = Rng::new(scramble(plan.seed ^ 4));
    let drawn: Vec<(Queries, Ask)> = kinds
        .into_iter()
        .map(|(ask, width)| (ask.draw(keys, count, width, &mut rng), ask))
        .collect();
    EmptyQueries::of(drawn.iter().flat_map(|(queries, ask)| {
        let is_point = ask.is_point();
        (0..queries.len()).map(move |place| EmptyQuery { key: queries.lower(place), is_point })
    }))
}

/// Returns each filling of each tree.
fn fillings(plan: &FprPlan) -> Vec<Filling<'_>> {
    let mut fillings = Vec::new();
    for policy in &plan.policies {
        for &levels in &plan.levels {
            for &fill in &plan.fills {
                for &since in &plan.since {
                    let filling = |&owed: &u32| Filling { policy, levels, fill, since, owed };
                    fillings.extend(plan.owed.iter().map(filling));
                }
            }
        }
    }
    fillings
}

/// Returns an error if a flush would have no key.
fn check_flushes(fillings: &[Filling<'_>], keys: usize) -> Result<()> {
    let flushes = fillings.iter().map(Filling::flushes).max().unwrap_or(0);
    if flushes > keys as u64 {
        return Err(LabError::Plan(format!("{keys} keys are too few for {flushes} flushes")));
    }
    Ok(())
}

/// Questions of one kind and width that no key answers.
struct Misses {
    ask: Ask,
    /// None: the kind determines its width.
    range_width: Option<u64>,
    queries: Queries,
    distinct: usize,
}

impl Misses {
    /// Draws the questions. Too few distinct ones for a rate are dropped.
    fn draw(keys: &KeySet, ask: Ask, range_width: Option<u64>, plan: &FprPlan) -> Misses {
        // Each width has its own generator, so its questions do not depend on other widths.
        let width = scramble(range_width.unwrap_or(0));
        let mut rng = Rng::new(scramble(plan.seed ^ 1) ^ width);
        let queries = ask.draw(keys, plan.queries, range_width, &mut rng);
        let lowers: HashSet<&[u8]> = (0..queries.len()).map(|place| queries.lower(place)).collect();
        let distinct = lowers.len();
        if distinct < DISTINCT_MIN.min(plan.queries.div_ceil(2)) {
            let queries = ask.draw(keys, 0, range_width, &mut rng);
            return Misses { ask, range_width, queries, distinct: 0 };
        }
        Misses { ask, range_width, queries, distinct }
    }
}

/// A filter to build and measure.
struct TestedFilter<'a> {
    stored: &'a SortedKeys,
    tree: &'a FilledTree<'a>,
    options: GrfOptions,
    query_mix: Option<QueryMix>,
    learnt: &'a EmptyQueries,
}

impl TestedFilter<'_> {
    fn measure(&self, misses: &[Misses], seed: u64) -> FprFilter {
        let part = self.build();
        let rates = misses.iter().map(|misses| self.rate(&part, misses)).collect();
        let (hits, false_negatives) = self.lost(&part, misses, seed);
        let (size, newer) = (part.size(), self.tree.newer.iter().map(Vec::len).sum::<usize>());
        let (base, filling) = (self.stored.len() - newer, &self.tree.filling);
        let bits = |bytes: u64, keys: usize| bytes as f64 * 8.0 / keys as f64;
        FprFilter {
            fingerprints: fingerprints_name(self.options.fingerprints),
            policy: filling.policy.name(),
            bits_per_key: self.options.bits_per_key,
            levels: u64::from(filling.levels),
            fill: u64::from(filling.fill),
            since: filling.since,
            owed: u64::from(filling.owed),
            base_keys: base as u64,
            overlay_keys: newer as u64,
            guard_bits_per_key: bits(size.base_bytes + size.overlay_bytes, self.stored.len()),
            guard_bits_per_key_filled: None,
            base_bits_per_key: bits(size.base_bytes, base),
            overlay_bits_per_key: (newer > 0).then(|| bits(size.overlay_bytes, newer)),
            hits,
            false_negatives,
            rates,
        }
    }

    fn build(&self) -> Part {
        let FilledTree { filling, base_end, flush_of, newer, .. } = self.tree;
        let mut builder = match filling.overlay_shares() {
            Some((now, full)) => PartBuilder::with_overlay_shares(&self.options, now, full),
            None => PartBuilder::new(&self.options),
        };
        let in_base = |place: &usize| u64::from(flush_of[*place]) < *base_end;
        let places: Vec<usize> = (0..self.stored.len()).filter(in_base).collect();
        let sample = KeySample::evenly(places.len(), |at| self.stored.get(places[at]));
        builder = builder
            .query_mix(self.query_mix.unwrap_or_default())
            .with_sample(&sample, places.len() as u64);
        builder = builder.with_empty_queries(self.learnt, &sample, places.len() as u64);
        places.iter().for_each(|place| builder.push(self.stored.get(*place)));
        let mut part = builder.finish(FlushNumber(*base_end));
        for (flush, places) in (*base_end..).zip(newer) {
            let mut inserter = self.inserter(&part, FlushNumber(flush));
            places.iter().for_each(|place| inserter.push(self.stored.get(*place as usize)));
            part = inserter.finish();
        }
        part
    }

    fn inserter(&self, part: &Part, flush: FlushNumber) -> Inserter {
        part.inserter(flush, &runs(&self.tree.filling, flush.0))
    }

    fn rate(&self, part: &Part, misses: &Misses) -> FprRate {
        let mut codes = Codes::new();
        let (mut positives, mut needless) = (0, 0);
        let count = misses.queries.len();
        for place in 0..count {
            codes.clear();
            part.candidates(&misses.queries.query(place, self.stored), &mut codes);
            positives += u64::from(!codes.is_empty());
            needless += self.tree.shape.resolve(&codes).count();
        }
        let share = |number: f64| (count > 0).then(|| number / count as f64);
        let (interval, paper) =
            (wilson::interval(positives, count as u64), rate_of_paper(self.options.bits_per_key));
        FprRate {
            question: misses.ask.name(),
            range_width: misses.range_width,
            queries: count as u64,
            queries_distinct: misses.distinct as u64,
            false_positives: positives,
            false_positive_rate: share(positives as f64),
            interval_95: interval,
            needless_runs_per_op: share(needless as f64),
            rate_of_paper: paper,
            times_paper: share(positives as f64 / paper),
            times_paper_interval: interval.map(|ends| ends.map(|end| end / paper)),
            round: None,
            life: None,
        }
    }

    /// Asks for stored keys as points, for ranges of each width around them, and for prefixes of
    /// them if prefixes are measured. Returns the number of questions, and of answers that leave
    /// out the run that has the key.
    fn lost(&self, part: &Part, misses: &[Misses], seed: u64) -> (u64, u64) {
        let widths: BTreeSet<u64> = misses.iter().filter_map(|misses| misses.range_width).collect();
        let prefix_end = PrefixEnd::of(self.stored);
        let has_prefixes = misses.iter().any(|misses| misses.range_width.is_none());
        let mut rng = Rng::new(scramble(seed ^ 3));
        let mut codes = Codes::new();
        let (mut asked, mut lost) = (0, 0);
        for _ in 0..HITS {
            let place = rng.place(self.stored.len());
            let (key, own) = (self.stored.get(place), Span::of_flush(self.tree.flush_of(place)));
            let mut ask = |query: &Query<'_>| {
                codes.clear();
                part.candidates(query, &mut codes);
                asked += 1;
                lost += u64::from(!codes.may_meet(own));
            };
            ask(&Query::Point(key));
            for width in &widths {
                let before = rng.below(*width);
                let (low, high) = (key_before(key, before), key_after(key, width - 1 - before));
                let range = KeyRange::new(&low, Some(&high)).expect("the key lies between them");
                ask(&Query::Range(range));
            }
            let cut = has_prefixes.then(|| rng.place(key.len().max(1)));
            let alike = cut.and_then(|last| prefix_end.all_with(key.get(..=last)?));
            if let Some((prefix, last)) = alike {
                let range = KeyRange::new(&prefix, Some(&last)).expect("a prefix comes first");
                ask(&Query::Range(range));
            }
        }
        (asked, lost)
    }
}

#[cfg(test)]
mod tests;
