//! A plan with its records, and the figures and claims that follow from them.

use std::path::Path;

use crate::error::Result;
use crate::experiment::claim::{Claim, ClaimOutcome, Verdict};
use crate::experiment::figure::{Figure, FigurePlan};
use crate::experiment::interval::RECORD;
use crate::experiment::machine::Machine;
use crate::experiment::plan::{Experiment, Scale};
use crate::experiment::records::{Record, RecordFile};
use crate::experiment::rows::{Row, Scalar, rows_of};
use crate::experiment::steps::Step;

/// A plan at a scale, with its records from one machine.
pub struct Study {
    /// The plan.
    pub experiment: Experiment,
    /// The scale.
    pub scale: Scale,
    /// The steps, each with its newest record. None: the step was not measured.
    pub steps: Vec<(Step, Option<Record>)>,
    /// The rows of all records.
    pub rows: Vec<Row>,
}

impl Study {
    /// Reads the records of a plan.
    pub fn load(
        experiment: Experiment,
        scale: Scale,
        folder: &Path,
        machine: &str,
    ) -> Result<Study> {
        let file = RecordFile::load(folder, machine, &experiment.name)?;
        let steps: Vec<(Step, Option<Record>)> = experiment
            .steps(scale)
            .into_iter()
            .map(|step| {
                let record = file.newest(&step.arguments).cloned();
                (step, record)
            })
            .collect();
        let numbered = (0..).zip(&steps);
        let rows = numbered.flat_map(|(nth, (step, record))| {
            let rows = record
                .iter()
                .flat_map(|one| rows_of(&one.printed, step.rows.as_deref(), &step.fields));
            rows.map(move |mut row| {
                row.0.insert(RECORD.to_string(), Scalar::Number(f64::from(nth)));
                row
            })
        });
        Ok(Study { rows: rows.collect(), experiment, scale, steps })
    }

    /// Returns the figures; those without rows have no panels.
    pub fn figures(&self) -> Vec<Figure> {
        let drawn = |plan: &&FigurePlan| plan.scale.is_none_or(|only| only == self.scale);
        let plans = self.experiment.figures.iter().filter(drawn);
        plans.map(|plan| plan.figure(&self.rows)).collect()
    }

    /// Returns the claims that can be shown at this scale, with their outcomes.
    pub fn claims(&self) -> Vec<(&Claim, ClaimOutcome)> {
        let shown = |claim: &&Claim| claim.scale.is_none_or(|only| only == self.scale);
        let claims = self.experiment.claims.iter().filter(shown);
        claims.map(|claim| (claim, claim.outcome(&self.rows))).collect()
    }

    /// Counts the claims with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.claims().iter().filter(|(_, outcome)| outcome.verdict == verdict).count()
    }

    /// Returns how many steps have a record, and how many there are.
    pub fn measured(&self) -> (usize, usize) {
        (self.records().count(), self.steps.len())
    }

    /// Returns the time of all measurements together, in seconds.
    pub fn seconds(&self) -> f64 {
        self.records().map(|record| record.seconds).sum()
    }

    /// Returns the measured commits without duplicates, in the order of the steps.
    pub fn commits(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for record in self.records() {
            if !found.contains(&record.commit.as_str()) {
                found.push(&record.commit);
            }
        }
        found
    }

    /// Returns the machine. None: nothing was measured.
    pub fn machine(&self) -> Option<&Machine> {
        self.records().next().map(|record| &record.machine)
    }

    /// Returns the records of its steps.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.steps.iter().filter_map(|(_, record)| record.as_ref())
    }
}

/// Returns a sentence with the number of claims that hold, and of those that do not.
pub fn summary(studies: &[Study]) -> String {
    let count = |verdict| studies.iter().map(|study| study.count(verdict)).sum::<usize>();
    let all: usize = studies.iter().map(|study| study.claims().len()).sum();
    let holds = format!("{} of {all} claims hold", count(Verdict::Holds));
    let others = [
        (Verdict::DoesNotHold, ["does not", "do not"]),
        (Verdict::Tie, ["is a tie", "are ties"]),
        (Verdict::NotMeasured, ["was not measured", "were not measured"]),
    ];
    let others = others.into_iter().filter_map(|(verdict, words)| match count(verdict) {
        0 => None,
        1 => Some(format!("1 {}", words[0])),
        count => Some(format!("{count} {}", words[1])),
    });
    let others: Vec<String> = others.collect();
    match others.is_empty() {
        true => format!("{holds}."),
        false => format!("{holds}; {}.", others.join(", ")),
    }
}
