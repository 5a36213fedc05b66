//! `bench surf-steps`: what each optimization of SuRF's trie is worth (SuRF, Figure 7).
//! ```text
//! LOUDS-Sparse alone -> + LOUDS-Dense -> + ranks -> + selects -> + label search -> + prefetching
//! the same trie, the same points
//! ```
//! Invariant: every step gives every point query the same answer as the last step, or the report
//! counts it. Steps take turns in every round.

use serde::Serialize;
use trommel_filters::{
    AlignedBytes, Surf, SurfBuilder, SurfEffort, SurfKind, SurfOptions, TableFilterBuilder,
};

use crate::bench::rounds::rounds_ns;
use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, scramble};
use crate::median::median;
use crate::progress::Progress;
use crate::questions::queries::{Kind, Queries};

/// The keys, and the number of questions.
#[derive(Clone, Debug)]
pub struct SurfStepsPlan {
    /// Where the keys come from.
    pub dist: Dist,
    /// The format of a file of keys.
    pub file_format: FileFormat,
    /// How many keys; None: 1,000,000, or all of a file.
    pub keys: Option<usize>,
    /// Point queries, half of them for stored keys.
    pub queries: usize,
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
    /// Time of a point query.
    pub ns_per_op: f64,
    /// The time in each round; steps take turns within a round.
    pub ns_per_op_rounds: Vec<f64>,
    /// Size of the trie.
    pub filter_bits_per_key: f64,
    /// Answers that differ from those of the last step. Must be 0.
    pub wrong_answers: u64,
}

/// A trie and its size.
struct Trie {
    filter: Surf<AlignedBytes>,
    bits_per_key: f64,
}

/// A trie, and how it is queried.
struct Way<'t> {
    step: &'static str,
    trie: &'t Trie,
    effort: SurfEffort,
}

impl Way<'_> {
    fn ask(&self, key: &[u8]) -> bool {
        self.trie.filter.may_contain_with(key, self.effort)
    }
}

/// Runs the benchmark; returns a row for each step.
pub fn surf_steps(plan: &SurfStepsPlan, progress: &mut dyn Progress) -> Result<Vec<SurfStep>> {
    if plan.queries == 0 {
        return Err(LabError::Plan("a query is the least to measure".into()));
    }
    progress.stage("building tries", 2);
    let keys = KeySet::new(&plan.dist, plan.file_format, plan.keys, plan.seed)?;
    let mut rng = Rng::new(scramble(plan.seed ^ 1));
    let queries = Queries::draw(Kind::PointHalf, &keys, plan.queries, 1, &mut rng)?;
    let points: Vec<&[u8]> = (0..queries.len()).map(|place| queries.lower(place)).collect();
    let sparse = trie(keys.stored(), u32::MAX);
    progress.advance(1);
    let mixed = trie(keys.stored(), SurfOptions::default().size_ratio);
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

/// Builds the trie of the keys' shortest distinguishing prefixes. The largest `size_ratio` leaves
/// no level dense.
fn trie(keys: &SortedKeys, size_ratio: u32) -> Trie {
    let options = SurfOptions { size_ratio, ..SurfOptions::default() };
    let mut builder = SurfBuilder::new(SurfKind::Base, 0.0, &options);
    keys.iter().for_each(|key| builder.add(key).expect("keys ascend"));
    let image = builder.finish();
    let bits_per_key = image.len() as f64 * 8.0 / keys.len() as f64;
    let filter = Surf::read(AlignedBytes::from_slice(&image)).expect("what was built");
    Trie { filter, bits_per_key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn every_step_answers_alike() {
        for dist in [Dist::Uniform, Dist::Emails] {
            let plan = SurfStepsPlan {
                dist,
                file_format: FileFormat::Lines,
                keys: Some(5000),
                queries: 1000,
                seed: 3,
            };
            let steps = surf_steps(&plan, &mut Silent).expect("measures");
            let names: Vec<&str> = steps.iter().map(|step| step.step).collect();
            assert_eq!(
                (names.len(), names[0], names[5]),
                (6, "LOUDS-Sparse alone", "+ prefetching")
            );
            assert!(steps.iter().all(|step| step.wrong_answers == 0 && step.ns_per_op > 0.0));
            // Dense levels take at most a 64th of the sparse ones, apart from what they save.
            let [sparse, mixed] = [0, 1].map(|nth| steps[nth].filter_bits_per_key);
            assert!(sparse > 8.0 && mixed < 1.1 * sparse, "{steps:?}");
        }
        let nothing = SurfStepsPlan {
            dist: Dist::Uniform,
            file_format: FileFormat::Lines,
            keys: Some(10),
            queries: 0,
            seed: 3,
        };
        assert!(surf_steps(&nothing, &mut Silent).is_err());
    }
}
