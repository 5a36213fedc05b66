//! `trommel lab`: runs plans of measurements, and reports their results.
//! ```text
//! lab list      plans/*.toml                        what can be measured, and how long it takes
//! lab run       plans -> records/MACHINE/*.jsonl    goes on where it was interrupted
//! lab report    records -> HTML; Markdown with figures beside it; CSV
//! lab check     records -> what a reviewer would object to
//! lab bound     keys -> what is possible for them     (lab/bound.rs)
//! lab scale     a load -> the tree it would make      (lab/scale.rs)
//! lab cluster   state -> what instances of it need    (lab/cluster.rs)
//! ```

mod bound;
mod cluster;
mod measured_costs;
mod scale;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use trommel_lab::experiment::{
    Complaint, Experiment, FIGURES_FOLDER, Heard, Keep, Machine, Outcome as StepOutcome,
    RunSummary, Scale, Step, Study, Verdict, complaints, csv, duration, figure_files, html,
    load_experiments, markdown, run_experiments, summary,
};

use crate::output::table::{TextTable, counted};
use crate::process::failure::{Failure, Outcome, Status, told};
use crate::process::message::{line, warning};

pub(crate) const EXAMPLES: &str = "Examples: everything at small scale, with a page of it; one plan; what there is\n  \
    trommel lab run --report report.html\n  \
    trommel lab run grf-fig10 --scale full\n  \
    trommel lab list";

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the plans, with how many measurements they are.
    #[command(after_help = "Example: all plans\n  trommel lab list")]
    List(ListArgs),
    /// Measure what plans say, in a process for each measurement, and keep a record of each. Goes
    /// on where it was interrupted.
    #[command(after_help = EXAMPLES)]
    Run(RunArgs),
    /// Make a page of what was measured: figures, tables, claims and whether they hold, commands.
    /// Needs no network to be read.
    #[command(
        after_help = "Example: one page of what this machine has measured\n  trommel lab report --html report.html"
    )]
    Report(ReportArgs),
    /// Find what a reviewer would object to: small runs, unlike trees, bits that were not asked
    /// for, times without rounds, empty figures. Exit status 1: there is something.
    #[command(after_help = "Example: the records of one plan\n  trommel lab check grf-fig10")]
    Check(CheckArgs),
    /// Compute what is possible for a set of keys: bits per key of cells that are coded by their
    /// entropy, and how often they say "maybe" in vain. No filter is built; real ones take more.
    #[command(after_help = bound::EXAMPLES)]
    Bound(bound::BoundArgs),
    /// Simulate the trees of loads that no machine at hand can hold: runs, bytes written, the
    /// filter's memory.
    #[command(after_help = scale::EXAMPLES)]
    Scale(scale::ScaleArgs),
    /// Compute what a cluster needs whose instances each hold a share of the state, and its brokers
    /// the changelog, as with Kafka Streams: memory, disk, restarts, traffic.
    #[command(after_help = cluster::EXAMPLES)]
    Cluster(cluster::ClusterArgs),
}

/// Which plans, of which size, and where their records are.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Names of plans, or files. [default: all]
    #[arg(value_name = "PLAN")]
    named: Vec<String>,
    /// The folder of the plans.
    #[arg(long, value_name = "DIR", default_value = "plans")]
    plans: PathBuf,
    /// How large the trees are: small (minutes), full (hours).
    #[arg(long, value_name = "NAME", default_value_t = Scale::Small)]
    scale: Scale,
    /// The folder of the records, with a folder for each machine in it.
    #[arg(long, value_name = "DIR", default_value = "records")]
    records: PathBuf,
    /// The name of the machine's folder. [default: made of its processor]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    plans: PlanArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    plans: PlanArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    plans: PlanArgs,
    /// Measure again what has a record of this commit.
    #[arg(long, conflicts_with = "keep")]
    again: bool,
    /// Keep records of other commits, too, but those of a filter of another format.
    #[arg(long)]
    keep: bool,
    /// Only tell the commands that would be run.
    #[arg(long)]
    dry_run: bool,
    /// Make a page of it at the end.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    plans: PlanArgs,
    /// Write one page of HTML, with pictures.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write Markdown: the claims. A figure of each plan goes into the folder figures beside it.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a table with commas for each plan into a folder.
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
}

pub(crate) fn run(command: &LabCommand, json: bool, out: &mut dyn Write) -> Outcome {
    match command {
        LabCommand::List(arguments) => list(&arguments.plans, json, out),
        LabCommand::Run(arguments) => measure(arguments, json, out),
        LabCommand::Report(arguments) => report(arguments, json, out),
        LabCommand::Check(arguments) => check(&arguments.plans, json, out),
        LabCommand::Bound(arguments) => bound::run(arguments, json, out),
        LabCommand::Scale(arguments) => scale::run(arguments, json, out),
        LabCommand::Cluster(arguments) => cluster::run(arguments, json, out),
    }
}

fn check(arguments: &PlanArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let studies = arguments.recorded_studies()?;
    let found: Vec<Complaint> = studies.iter().flat_map(complaints).collect();
    let written = match json {
        true => writeln!(out, "{}", serde_json::to_string(&found)?),
        false => write_complaints(&found, studies.len() as u64, out),
    };
    told(Ok(if found.is_empty() { Status::Fine } else { Status::No }), written)
}

fn write_complaints(found: &[Complaint], plans: u64, out: &mut dyn Write) -> std::io::Result<()> {
    for Complaint { plan, problem, rows } in found {
        let times = if *rows > 1 { format!(" ({rows} times)") } else { String::new() };
        writeln!(out, "{plan}: {problem}{times}")?;
    }
    let (plans, things) = (counted(plans, "plan"), counted(found.len() as u64, "thing"));
    writeln!(out, "{plans}, {things} to object to")
}

impl PlanArgs {
    fn experiments(&self) -> Result<Vec<Experiment>, Failure> {
        Ok(load_experiments(&self.plans, &self.named)?)
    }

    fn machine(&self) -> Machine {
        Machine::this(self.machine.as_deref())
    }

    /// Loads the plans with their records.
    fn studies(&self) -> Result<Vec<Study>, Failure> {
        let machine = self.machine();
        let plans = self.experiments()?.into_iter();
        let studies = plans.map(|plan| Study::load(plan, self.scale, &self.records, &machine.name));
        Ok(studies.collect::<trommel_lab::Result<_>>()?)
    }

    /// Loads the plans with their records; an error if the machine has no records.
    fn recorded_studies(&self) -> Result<Vec<Study>, Failure> {
        let studies = self.studies()?;
        let machine = self.machine().name;
        if !self.records.join(&machine).is_dir() {
            return Err(Failure::Usage(self.no_such_machine(&machine)));
        }
        Ok(studies)
    }

    /// Returns the error for a machine without records, which says what to type.
    fn no_such_machine(&self, machine: &str) -> String {
        let known = machines_in(&self.records);
        let folder = self.records.display();
        let asked = match &self.machine {
            Some(_) => format!("{folder} has no records for --machine {machine}"),
            None => format!("{folder} has no records of this machine, {machine}"),
        };
        let typed = match known.as_slice() {
            [] => "`trommel lab run` makes records".to_string(),
            [one] => format!("type --machine {one}"),
            several => format!("type --machine NAME; there are machines: {}", several.join(", ")),
        };
        format!("{asked}: {typed}")
    }
}

/// A plan in a list.
#[derive(Serialize)]
struct Listed {
    plan: String,
    title: String,
    source: String,
    measurements: usize,
    measured: usize,
    seconds: f64,
}

fn list(arguments: &PlanArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let listed: Vec<Listed> = arguments
        .studies()?
        .iter()
        .map(|study| {
            let (measured, measurements) = study.measured();
            Listed {
                plan: study.experiment.name.clone(),
                title: study.experiment.title.clone(),
                source: study.experiment.source.clone(),
                measurements,
                measured,
                seconds: study.seconds(),
            }
        })
        .collect();
    if json {
        serde_json::to_writer(&mut *out, &listed)?;
        writeln!(out)?;
        return Ok(Status::Fine);
    }
    let mut table = TextTable::new(2, &["plan", "title", "measured", "took"]);
    for one in &listed {
        let measured = format!("{} of {}", one.measured, one.measurements);
        let took = if one.measured == 0 { "-".into() } else { duration(one.seconds) };
        table.row(vec![one.plan.clone(), one.title.clone(), measured, took]);
    }
    out.write_all(table.render().as_bytes())?;
    Ok(Status::Fine)
}

fn measure(arguments: &RunArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let plans = arguments.plans.experiments()?;
    let scale = arguments.plans.scale;
    if arguments.dry_run {
        let steps: Vec<Step> = plans.iter().flat_map(|plan| plan.steps(scale)).collect();
        return tell_steps(&steps, json, out);
    }
    let keep = match (arguments.again, arguments.keep) {
        (true, _) => Keep::None,
        (false, true) => Keep::Any,
        (false, false) => Keep::ThisCommit,
    };
    let mut program = std::env::current_exe()
        .map_err(|error| Failure::Data(format!("where this program is: {error}")))?;
    let machine = arguments.plans.machine();
    let records = &arguments.plans.records;
    let summary =
        run_experiments(&plans, scale, records, &machine, keep, &mut program, &mut StepPrinter)?;
    if let Some(path) = &arguments.report {
        write_page(path, &arguments.plans.studies()?)?;
    }
    tell(&summary, json, out)
}

/// Prints the steps that would run.
fn tell_steps(steps: &[Step], json: bool, out: &mut dyn Write) -> Outcome {
    if json {
        let report = steps
            .iter()
            .map(|step| serde_json::json!({ "plan": &step.experiment, "command": step.command() }));
        serde_json::to_writer(&mut *out, &report.collect::<Vec<_>>())?;
        writeln!(out)?;
    } else {
        steps.iter().try_for_each(|step| writeln!(out, "{}", step.command()))?;
    }
    Ok(Status::Fine)
}

fn tell(summary: &RunSummary, json: bool, out: &mut dyn Write) -> Outcome {
    let RunSummary { measured, kept, failed } = summary;
    if json {
        let failed: Vec<_> = failed
            .iter()
            .map(|(command, problem)| serde_json::json!({ "command": command, "problem": problem }))
            .collect();
        let report = serde_json::json!({ "measured": measured, "kept": kept, "failed": failed });
        serde_json::to_writer(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        let kept = if *kept == 0 { String::new() } else { format!(", {kept} had a record") };
        writeln!(
            out,
            "{}{kept}, {} failed",
            counted(*measured as u64, "measurement"),
            failed.len()
        )?;
    }
    Ok(if failed.is_empty() { Status::Fine } else { Status::No })
}

/// Reports each step on standard error.
struct StepPrinter;

impl Heard for StepPrinter {
    fn begins(&mut self, nth: usize, of: usize, step: &Step, seconds_left: Option<f64>) {
        let left =
            seconds_left.map_or(String::new(), |left| format!(", about {} left", duration(left)));
        line(&format!("[{nth}/{of}{left}] {}: {}", step.experiment, step.command()));
    }

    fn ended(&mut self, step: &Step, outcome: &StepOutcome) {
        match outcome {
            StepOutcome::Measured(seconds) => line(&format!("    {}", duration(*seconds))),
            StepOutcome::Failed(problem) => {
                line(&format!("    {} failed: {problem}", step.command()));
            }
            StepOutcome::Kept => {}
        }
    }
}

/// A claim in a report.
#[derive(Serialize)]
struct Claimed {
    plan: String,
    claim: String,
    source: String,
    verdict: Verdict,
    found: String,
}

fn report(arguments: &ReportArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let studies = arguments.plans.recorded_studies()?;
    let is_any = studies.iter().any(|study| study.measured().0 > 0);
    if !is_any {
        let (folder, machine) = (arguments.plans.records.display(), arguments.plans.machine().name);
        warning(&format!(
            "{folder}/{machine} has no records of these plans; `trommel lab run` makes some"
        ));
    }
    if let Some(path) = &arguments.html {
        write_page(path, &studies)?;
    }
    if let Some(path) = &arguments.markdown {
        let machine = arguments.plans.machine().name;
        write_results(path, &results_head(&machine, arguments.plans.scale), &studies)?;
    }
    if let Some(folder) = &arguments.csv {
        make_folder(folder)?;
        for study in &studies {
            write_file(&folder.join(format!("{}.csv", study.experiment.name)), &csv(study))?;
        }
    }
    let claims: Vec<Claimed> = studies.iter().flat_map(claimed).collect();
    let status = if is_any { Status::Fine } else { Status::No };
    if json {
        serde_json::to_writer(&mut *out, &claims)?;
        writeln!(out)?;
        return Ok(status);
    }
    writeln!(out, "{}\n", summary(&studies))?;
    let mut table = TextTable::new(4, &["plan", "claim", "", "found"]);
    for claim in claims {
        table.row(vec![claim.plan, claim.claim, claim.verdict.words().into(), claim.found]);
    }
    out.write_all(table.render().as_bytes())?;
    Ok(status)
}

/// Returns the machines that have a folder with record files.
fn machines_in(records: &Path) -> Vec<String> {
    let is_record = |path: &Path| path.extension().is_some_and(|ending| ending == "jsonl");
    let files = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<String> = files(records)
        .filter(|entry| files(&entry.path()).any(|file| is_record(&file.path())))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    found.sort();
    found
}

fn claimed(study: &Study) -> Vec<Claimed> {
    let claims = study.claims().into_iter();
    claims
        .map(|(claim, outcome)| Claimed {
            plan: study.experiment.name.clone(),
            claim: claim.says.clone(),
            source: claim.source.clone(),
            verdict: outcome.verdict,
            found: outcome.describe(),
        })
        .collect()
}

fn write_page(path: &Path, studies: &[Study]) -> Result<(), Failure> {
    let about = "Every number comes from a record that a command made; the commands stand under the figures. \
                 What the papers claim was measured on other machines, with other data and larger trees.";
    write_file(path, &html("Trommel's laboratory", about, studies))
}

/// Returns the text below the title of `docs/results.md`.
fn results_head(machine: &str, scale: Scale) -> String {
    format!(
        "For readers of the papers: which of their claims hold here. The papers measured on other machines and data.\n\
         Made of `records/` by a command; do not edit it:\n\n\
         ```sh\ntrommel lab report --machine {machine} --scale {scale} --markdown docs/results.md\n```\n\n\
         Measured is the least and the greatest; × marks ratios of medians. \"3 of 6\" are the comparisons within the claimed bound.\n\
         `plans/PLAN.toml` says how a plan differs from its source; `trommel lab run PLAN` measures it again.\n\
         `trommel lab report --html FILE` has all figures, numbers and commands."
    )
}

/// Writes the Markdown file, and its figures into the folder next to it.
fn write_results(path: &Path, about: &str, studies: &[Study]) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("")).join(FIGURES_FOLDER);
    make_folder(&folder)?;
    for figure in figure_files(studies) {
        write_file(&folder.join(figure.name), &figure.svg)?;
    }
    write_file(path, &markdown("Results", about, studies))
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Data(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
