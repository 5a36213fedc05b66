//! Runs the steps of plans, one after the other, and keeps their output.
//! ```text
//! step -> is there a record of this commit?  yes: next   no: run it -> record -> next
//! ```
//! Invariant: a failed step is reported, and the others still run. The next run tries it again.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use trommel_filters::Part;

use crate::error::{LabError, Result};
use crate::experiment::machine::{Machine, commit};
use crate::experiment::plan::{Experiment, Scale};
use crate::experiment::records::{Record, RecordFile};
use crate::experiment::steps::Step;

/// Runs a command line. Returns its output as JSON, or why it failed.
pub trait Command {
    /// Runs it with these arguments of `trommel`.
    fn run(&mut self, arguments: &[String]) -> std::result::Result<Value, String>;
}

/// The program itself. Each measurement has its own process, so that memory and caches of one do
/// not affect the next.
impl Command for PathBuf {
    fn run(&mut self, arguments: &[String]) -> std::result::Result<Value, String> {
        let output = std::process::Command::new(&*self)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.display()))?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            let last: Vec<&str> = words.lines().rev().take(MESSAGE_LINES).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            return Err(format!("{}: {}", output.status, last.join("\n")));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("it printed no JSON: {error}"))
    }
}

/// How many of the last lines of a failed command's messages are reported.
const MESSAGE_LINES: usize = 6;

/// Which records make a new measurement unnecessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Records of the same commit, so that an interrupted run continues.
    ThisCommit,
    /// All records, except those of a filter of another format.
    Any,
    /// None: everything is measured again.
    None,
}

/// Receives the progress of a run.
pub trait Heard {
    /// A step begins, the `nth` of `of` steps. `seconds_left`: an estimate for all remaining steps;
    /// None: unknown.
    fn begins(&mut self, nth: usize, of: usize, step: &Step, seconds_left: Option<f64>);
    /// A step has ended.
    fn ended(&mut self, step: &Step, outcome: &Outcome);
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It ran, in this many seconds.
    Measured(f64),
    /// It has a record already.
    Kept,
    /// It failed, for this reason.
    Failed(String),
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSummary {
    /// Steps that ran.
    pub measured: usize,
    /// Steps that had a record already.
    pub kept: usize,
    /// Steps that failed, and the reasons.
    pub failed: Vec<(String, String)>,
}

/// Runs plans. `folder` has a folder for the records of each machine.
pub fn run_experiments(
    plans: &[Experiment],
    scale: Scale,
    folder: &Path,
    machine: &Machine,
    keep: Keep,
    command: &mut dyn Command,
    heard: &mut dyn Heard,
) -> Result<RunSummary> {
    let source = commit(Path::new("."));
    let mut files = plans
        .iter()
        .map(|plan| RecordFile::load(folder, &machine.name, &plan.name))
        .collect::<Result<Vec<_>>>()?;
    let steps: Vec<(usize, Step)> = plans
        .iter()
        .enumerate()
        .flat_map(|(place, plan)| plan.steps(scale).into_iter().map(move |step| (place, step)))
        .collect();
    if steps.is_empty() {
        return Err(LabError::Plan(format!("at scale {scale} these plans have no steps")));
    }
    let due = due(&steps, &files, keep, &source);
    let mut times = Times::known(&steps, &files, &due);
    let mut summary = RunSummary::default();
    for (nth, (place, step)) in steps.iter().enumerate() {
        if !due[nth] {
            summary.kept += 1;
            heard.ended(step, &Outcome::Kept);
            continue;
        }
        heard.begins(nth + 1, steps.len(), step, times.left(nth));
        let started = Instant::now();
        match command.run(&step.arguments) {
            Ok(printed) => {
                let seconds = started.elapsed().as_secs_f64();
                let arguments = step.arguments.clone();
                let (commit, machine) = (source.clone(), machine.clone());
                let unix_seconds = unix_seconds();
                files[*place].append(Record {
                    arguments,
                    commit,
                    unix_seconds,
                    seconds,
                    machine,
                    filter_format: Part::IMAGE_VERSION,
                    printed,
                })?;
                times.took(nth, seconds);
                summary.measured += 1;
                heard.ended(step, &Outcome::Measured(seconds));
            }
            Err(problem) => {
                times.took(nth, started.elapsed().as_secs_f64());
                heard.ended(step, &Outcome::Failed(problem.clone()));
                summary.failed.push((step.command(), problem));
            }
        }
    }
    drop_old(plans, &mut files)?;
    Ok(summary)
}

/// Returns, for each step, whether it must run.
fn due(steps: &[(usize, Step)], files: &[RecordFile], keep: Keep, source: &str) -> Vec<bool> {
    let is_kept = |file: &RecordFile, step: &Step| {
        let newest = file.newest(&step.arguments);
        let newest = newest.filter(|record| !record.is_of_another_filter());
        match keep {
            Keep::None => false,
            Keep::Any => newest.is_some(),
            Keep::ThisCommit => newest.is_some_and(|record| record.commit == source),
        }
    };
    // Runs of one plan may read different rows of the same command's output, which then runs once.
    let is_repeated = |nth: usize| {
        let (place, step) = &steps[nth];
        let mut earlier = steps[..nth].iter();
        earlier.any(|(of, one)| of == place && one.arguments == step.arguments)
    };
    let all = steps.iter().enumerate();
    all.map(|(nth, (place, step))| !is_repeated(nth) && !is_kept(&files[*place], step)).collect()
}

/// Drops the records that no plan asks for, at any scale.
fn drop_old(plans: &[Experiment], files: &mut [RecordFile]) -> Result<()> {
    for (plan, file) in plans.iter().zip(files) {
        let planned: Vec<Step> = Scale::ALL.iter().flat_map(|scale| plan.steps(*scale)).collect();
        file.retain(&|arguments| planned.iter().any(|step| step.arguments == arguments))?;
    }
    Ok(())
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The times of steps: from an earlier record, or else the mean of the known ones.
struct Times(Vec<Known>);

#[derive(Clone, Copy)]
enum Known {
    NotDue,
    Nothing,
    Before(f64),
    Over(f64),
}

impl Times {
    fn known(steps: &[(usize, Step)], files: &[RecordFile], due: &[bool]) -> Self {
        let of = |((place, step), due): (&(usize, Step), &bool)| {
            let before = files[*place].newest(&step.arguments).map(|record| record.seconds);
            match (due, before) {
                (false, _) => Known::NotDue,
                (true, None) => Known::Nothing,
                (true, Some(seconds)) => Known::Before(seconds),
            }
        };
        Times(steps.iter().zip(due).map(of).collect())
    }

    fn took(&mut self, nth: usize, seconds: f64) {
        self.0[nth] = Known::Over(seconds);
    }

    /// Estimates the time of all steps from `from` on. None: nothing is known yet.
    fn left(&self, from: usize) -> Option<f64> {
        let known: Vec<f64> = self
            .0
            .iter()
            .filter_map(|known| match known {
                Known::Before(seconds) | Known::Over(seconds) => Some(*seconds),
                Known::NotDue | Known::Nothing => None,
            })
            .collect();
        if known.is_empty() {
            return None;
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let of = |known: &Known| match known {
            Known::Before(seconds) => *seconds,
            Known::Nothing => mean,
            Known::NotDue | Known::Over(_) => 0.0,
        };
        Some(self.0[from..].iter().map(of).sum())
    }
}
