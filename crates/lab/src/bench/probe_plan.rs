//! What `bench probe` is told.
//! ```text
//! which filters, of which keys, with how much memory -> which questions, of how many threads
//! ```
//! Invariant: a plan that was checked names filters that can be built.

use trommel::options::FilterTuning;
use trommel::{GuardKind, Options};
use trommel_guards::ElasticOptions;

use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::skew::Skew;
use crate::questions::unanswered::Ask;

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
    /// Filters are told what makes them take that memory, not that memory itself.
    pub fit_bits: bool,
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
    /// Misses and empty ranges begin at most so far behind a stored key, and with training all
    /// ranges behind theirs; at least 1. None: they are drawn as the keys are.
    pub correlated: Option<u64>,
    /// How points and ranges are spread over keys: of those that are not stored some are hot, too.
    /// (Ranges that train filters have a law of their own.)
    pub skew: Skew,
    /// How many threads ask at once, beside one. 1: that is not measured.
    pub threads: usize,
    /// What else no stored key answers.
    pub asks: Vec<Ask>,
    /// So many ranges train the filters that learn from them (`arf`). Then all ranges begin at one
    /// of twice as many keys as are stored, as YCSB draws them. None: no filter is trained.
    pub training: Option<usize>,
    /// The seed of keys and questions.
    pub seed: u64,
}

/// More threads than that have no cores.
const THREADS_MAX: usize = 256;

impl ProbePlan {
    /// An error that says what makes no sense.
    pub(crate) fn check(&self) -> Result<()> {
        if self.guards.is_empty() || self.queries == 0 {
            return Err(LabError::Plan("a guard and a query are the least to measure".into()));
        }
        if self.guards.contains(&GuardKind::Open) {
            let others =
                trommel_guards::all_guards().into_iter().filter(|guard| *guard != GuardKind::Open);
            let others: Vec<&str> = others.map(GuardKind::name).collect();
            let problem = "--guard none: there is no filter to probe; guards that have one: ";
            return Err(LabError::Plan(problem.to_owned() + &others.join(", ")));
        }
        if !(1.0..=64.0).contains(&self.bits_per_key) {
            return Err(LabError::Plan(format!(
                "--bits-per-key {}: must be 1 to 64",
                self.bits_per_key
            )));
        }
        if self.correlated == Some(0) {
            return Err(LabError::Plan("--correlated 0: must be 1 or more".into()));
        }
        if !(1..=THREADS_MAX).contains(&self.threads) {
            let problem = format!("--threads {}: must be 1 to {THREADS_MAX}", self.threads);
            return Err(LabError::Plan(problem));
        }
        if !(2..=255).contains(&self.size_ratio) {
            return Err(LabError::Plan(format!(
                "--size-ratio {}: must be 2 to 255",
                self.size_ratio
            )));
        }
        let mut elastic = ElasticOptions::default();
        elastic.units = self.elastic_units.unwrap_or(elastic.units);
        let filter = self.filter.clone().with(elastic);
        Ok(Options::new().filter(filter).check()?)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use trommel_guards::kinds;

    use super::*;

    /// A small plan for tests.
    pub(crate) fn plan() -> ProbePlan {
        ProbePlan {
            guards: vec![GuardKind::Table(kinds::BLOCKED_BLOOM), GuardKind::Grf],
            dist: Dist::Uniform,
            file_format: FileFormat::Lines,
            keys: Some(70_000),
            bits_per_key: 12.0,
            fit_bits: false,
            filter: FilterTuning::default(),
            elastic_units: None,
            size_ratio: 10,
            queries: 500,
            range_width: 64,
            correlated: None,
            skew: Skew::None,
            threads: 1,
            asks: Vec::new(),
            training: None,
            seed: 1,
        }
    }
}
