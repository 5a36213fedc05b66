//! A plan and its records: what is drawn, listed and claimed of them.

use std::path::Path;

use crate::error::Result;
use crate::experiment::claim::{Claim, ClaimOutcome, Verdict};
use crate::experiment::figure::Figure;
use crate::experiment::interval::RECORD;
use crate::experiment::machine::Machine;
use crate::experiment::plan::{Experiment, Scale};
use crate::experiment::records::{Record, RecordFile};
use crate::experiment::rows::{Row, Scalar, rows_of};
use crate::experiment::steps::Step;

/// A plan at a scale, and its records on one machine.
pub struct Study {
    /// The plan.
    pub experiment: Experiment,
    /// At which scale.
    pub scale: Scale,
    /// Its steps, each with its newest record. None: it was not measured.
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

    /// The figures; those without rows have no panels.
    pub fn figures(&self) -> Vec<Figure> {
        self.experiment.figures.iter().map(|plan| plan.figure(&self.rows)).collect()
    }

    /// The claims that can be shown at this scale, and what the rows say about them.
    pub fn claims(&self) -> Vec<(&Claim, ClaimOutcome)> {
        let shown = |claim: &&Claim| claim.scale.is_none_or(|only| only == self.scale);
        let claims = self.experiment.claims.iter().filter(shown);
        claims.map(|claim| (claim, claim.outcome(&self.rows))).collect()
    }

    /// How many of its claims end so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.claims().iter().filter(|(_, outcome)| outcome.verdict == verdict).count()
    }

    /// Steps that have a record, and all.
    pub fn measured(&self) -> (usize, usize) {
        (self.records().count(), self.steps.len())
    }

    /// How long its measurements took together.
    pub fn seconds(&self) -> f64 {
        self.records().map(|record| record.seconds).sum()
    }

    /// The commits that were measured, each once, in the order of the steps.
    pub fn commits(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for record in self.records() {
            if !found.contains(&record.commit.as_str()) {
                found.push(&record.commit);
            }
        }
        found
    }

    /// The machine, if anything was measured.
    pub fn machine(&self) -> Option<&Machine> {
        self.records().next().map(|record| &record.machine)
    }

    /// Those of its steps.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.steps.iter().filter_map(|(_, record)| record.as_ref())
    }
}

/// How many claims of all studies hold, in a sentence, and what becomes of the others.
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
