//! `bench surf-steps`: what each optimization of SuRF's trie is worth (SuRF, Figure 7).
//! ```text
//! LOUDS-Sparse alone -> + LOUDS-Dense -> + ranks -> + selects -> + label search -> + prefetching
//! the same trie, the same points
//!
//! a filter   shortest prefixes; half of the points are stored keys, all as likely
//! an index   whole keys; all points are stored keys, by YCSB's law (as in the paper)
//! ```
//! Invariant: every step gives every point query the same answer as the last step, or the report
//! counts it. Steps take turns in every round.

use serde::Serialize;
use trommel_filters::{
    AlignedBytes, FstKeys, FstMap, FstMapBuilder, Surf, SurfBuilder, SurfEffort, SurfKind,
    SurfOptions, TableFilterBuilder,
};

use crate::bench::rounds::rounds_ns;
use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, scramble};
use crate::keys::skew::Skew;
use crate::median::median;
use crate::progress::Progress;
use crate::questions::queries::{Kind, Queries};
use crate::questions::question_draw::Draw;

/// Bytes of a value of an index.
const VALUE_BYTES: usize = size_of::<u64>();

/// The keys, and the number of questions.
#[derive(Clone, Debug)]
pub struct SurfStepsPlan {
    /// Where the keys come from.
    pub dist: Dist,
    /// The format of a file of keys.
    pub file_format: FileFormat,
    /// How many keys; None: 1,000,000, or all of a file.
    pub keys: Option<usize>,
    /// How many points are asked for.
    pub queries: usize,
    /// Whether the trie is an index, not a filter.
    pub index: bool,
    /// The seed of keys and questions.
    pub seed: u64,
}

/// The trie with the optimizations up to one step. Field names are an interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SurfStep {
    /// The optimization that this step adds.
    pub step: &'static str,
    /// The step's number, counted from 0.
    pub nth: u64,
    /// Where the keys come from.
    pub dist: String,
    /// How many there are.
    pub keys: u64,
    /// Whether the trie is an index of whole keys, of which all points are some.
    pub index: bool,
    /// Time of a point.
    pub ns_per_op: f64,
    /// The time in each round; steps take turns within a round.
    pub ns_per_op_rounds: Vec<f64>,
    /// Size of the trie, without values.
    pub filter_bits_per_key: f64,
    /// Answers that differ from those of the last step. Must be 0.
    pub wrong_answers: u64,
}

/// A trie and its size.
struct Trie {
    kept: Kept,
    bits_per_key: f64,
}

/// What a trie has of the keys.
enum Kept {
    /// Their shortest prefixes: a filter.
    Prefixes(Surf<AlignedBytes>),
    /// All of them: an index.
    Whole(FstMap),
}

/// How a trie is asked.
struct Way<'t> {
    step: &'static str,
    trie: &'t Trie,
    effort: SurfEffort,
}

impl Way<'_> {
    fn ask(&self, key: &[u8]) -> bool {
        match &self.trie.kept {
            Kept::Prefixes(filter) => filter.may_contain_with(key, self.effort),
            Kept::Whole(index) => index.get_with(key, self.effort).is_some(),
        }
    }
}

/// Runs the benchmark; returns a row for each step.
pub fn surf_steps(plan: &SurfStepsPlan, progress: &mut dyn Progress) -> Result<Vec<SurfStep>> {
    if plan.queries == 0 {
        return Err(LabError::Plan("a query is the least to measure".into()));
    }
    progress.stage("building tries", 2);
    let keys = KeySet::new(&plan.dist, plan.file_format, plan.keys, plan.seed)?;
    let queries = points(plan, &keys)?;
    let points: Vec<&[u8]> = (0..queries.len()).map(|place| queries.lower(place)).collect();
    let build = if plan.index { whole } else { prefixes };
    let sparse = build(keys.stored(), u32::MAX)?;
    progress.advance(1);
    let mixed = build(keys.stored(), SurfOptions::default().size_ratio)?;
    progress.advance(1);
    let efforts = SurfEffort::ALL.map(|effort| Way { step: name(effort), trie: &mixed, effort });
    let plain = Way { step: "LOUDS-Sparse alone", trie: &sparse, effort: SurfEffort::Plain };
    let ways: Vec<Way<'_>> = std::iter::once(plain).chain(efforts).collect();
    progress.stage("measuring", 1);
    let times = rounds_ns(ways.len(), |side| {
        let found = points.iter().filter(|key| ways[side].ask(key)).count();
        std::hint::black_box(found);
        Ok::<_, LabError>(points.len() as u64)
    })?;
    progress.advance(1);
    let last = &ways[ways.len() - 1];
    let row = |(nth, (way, rounds)): (u64, (&Way<'_>, Vec<f64>))| SurfStep {
        step: way.step,
        nth,
        dist: keys.dist().to_string(),
        keys: keys.stored().len() as u64,
        index: plan.index,
        ns_per_op: median(&mut rounds.clone()),
        ns_per_op_rounds: rounds,
        filter_bits_per_key: way.trie.bits_per_key,
        wrong_answers: points.iter().filter(|key| way.ask(key) != last.ask(key)).count() as u64,
    };
    Ok((0..).zip(ways.iter().zip(times)).map(row).collect())
}

fn name(effort: SurfEffort) -> &'static str {
    match effort {
        SurfEffort::Plain => "+ LOUDS-Dense",
        SurfEffort::Rank => "+ rank",
        SurfEffort::Select => "+ select",
        SurfEffort::Simd => "+ SIMD label search",
        SurfEffort::Prefetch => "+ prefetching",
    }
}

/// What the tries are asked for.
fn points(plan: &SurfStepsPlan, keys: &KeySet) -> Result<Queries> {
    let mut rng = Rng::new(scramble(plan.seed ^ 1));
    let even = Draw::even(plan.queries, 1);
    let (kind, draw) = match plan.index {
        true => (Kind::PointHit, Draw { skew: Skew::YCSB, ..even }),
        false => (Kind::PointHalf, even),
    };
    Queries::draw_as(kind, keys, draw, &mut rng)
}

/// The trie of the keys' shortest prefixes. `size_ratio`: the largest there is leaves no level
/// dense.
fn prefixes(keys: &SortedKeys, size_ratio: u32) -> Result<Trie> {
    let options = SurfOptions { size_ratio, ..SurfOptions::default() };
    let mut builder = SurfBuilder::new(SurfKind::Base, 0.0, &options);
    keys.iter().for_each(|key| builder.add(key).expect("keys ascend"));
    let image = builder.finish();
    let filter = Surf::read(AlignedBytes::from_slice(&image)).expect("what was built");
    Ok(trie(Kept::Prefixes(filter), image.len(), keys))
}

/// The trie of whole keys, with a value for each.
fn whole(keys: &SortedKeys, size_ratio: u32) -> Result<Trie> {
    let mut builder = FstMapBuilder::with_size_ratio(FstKeys::Whole, size_ratio);
    for (key, place) in keys.iter().zip(0..) {
        builder.add(key, place).expect("keys ascend");
    }
    let index =
        builder.finish().ok_or_else(|| LabError::Plan("too many keys for a trie".into()))?;
    let bytes = index.size_bytes() - keys.len() * VALUE_BYTES;
    Ok(trie(Kept::Whole(index), bytes, keys))
}

fn trie(kept: Kept, bytes: usize, keys: &SortedKeys) -> Trie {
    Trie { kept, bits_per_key: bytes as f64 * 8.0 / keys.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn every_step_answers_alike() {
        let sets = [Dist::Uniform, Dist::Emails];
        let of_set = |dist: Dist| [(dist.clone(), false), (dist, true)];
        for (dist, index) in sets.into_iter().flat_map(of_set) {
            let plan = SurfStepsPlan {
                dist,
                file_format: FileFormat::Lines,
                keys: Some(5000),
                queries: 1000,
                index,
                seed: 3,
            };
            let steps = surf_steps(&plan, &mut Silent).expect("measures");
            let names: Vec<&str> = steps.iter().map(|step| step.step).collect();
            assert_eq!(
                (names.len(), names[0], names[5]),
                (6, "LOUDS-Sparse alone", "+ prefetching")
            );
            assert!(steps.iter().all(|step| step.wrong_answers == 0 && step.ns_per_op > 0.0));
            assert!(steps.iter().all(|step| step.index == index));
            // Dense levels take at most a 64th of the sparse ones, besides what they save.
            let [sparse, mixed] = [0, 1].map(|nth| steps[nth].filter_bits_per_key);
            assert!(sparse > 8.0 && mixed < 1.1 * sparse, "{steps:?}");
        }
        let nothing = SurfStepsPlan {
            dist: Dist::Uniform,
            file_format: FileFormat::Lines,
            keys: Some(10),
            queries: 0,
            index: false,
            seed: 3,
        };
        assert!(surf_steps(&nothing, &mut Silent).is_err());
    }

    #[test]
    fn an_index_is_asked_for_stored_keys_and_for_hot_ones_often() {
        let plan = SurfStepsPlan {
            dist: Dist::Uniform,
            file_format: FileFormat::Lines,
            keys: Some(5000),
            queries: 1000,
            index: true,
            seed: 3,
        };
        let keys = KeySet::new(&plan.dist, plan.file_format, plan.keys, plan.seed).expect("keys");
        let distinct = |queries: &Queries| {
            let points = (0..queries.len()).map(|place| queries.lower(place));
            points.collect::<std::collections::HashSet<_>>().len()
        };
        let hot = points(&plan, &keys).expect("drawn");
        assert!((0..hot.len()).all(|place| keys.stored().holds(hot.lower(place))));
        let even = points(&SurfStepsPlan { index: false, ..plan }, &keys).expect("drawn");
        let stored = (0..even.len()).filter(|place| keys.stored().holds(even.lower(*place)));
        assert!((400..600).contains(&stored.count()));
        assert!(distinct(&hot) < 700 && distinct(&even) > 850, "{}", distinct(&hot));
    }
}
