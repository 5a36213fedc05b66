//! Experiments: the measurements of the papers, repeated with this store's own commands.
//! ```text
//! plans/NAME.toml --> steps: command lines of `trommel bench ...`, one for each choice of settings
//!                       |  run, each in a process of its own
//!                       v
//! records/MACHINE/NAME.jsonl   a record for each step: command, machine, commit, output of --json
//!                       |
//!                       v
//! rows of named numbers --> figures, tables, claims --> one HTML page; Markdown with SVG; CSV
//! ```
//! Invariants: a report shows only records of steps in the current plan. A step without a record is
//! reported as missing. A finished step appends its record at once, so an interrupted run loses
//! nothing.

mod chart;
mod check;
mod claim;
mod csv;
mod figure;
mod html;
mod interval;
mod law;
mod machine;
mod markdown;
mod number;
pub mod palette;
mod plan;
mod records;
mod rows;
mod run;
mod settings;
mod steps;
mod study;
mod ticks;

pub use chart::{escaped, width_of};
pub use check::{Complaint, complaints};
pub use claim::{Claim, ClaimOutcome, ClaimPair, Verdict};
pub use csv::csv;
pub use figure::{AxisScale, Curve, Figure, Mark, Panel};
pub use html::html;
pub use machine::Machine;
pub use markdown::{FIGURES_FOLDER, FigureFile, figure_files, markdown};
pub use number::{duration, whole};
pub use plan::{Experiment, Scale, load_experiment, load_experiments};
pub use records::{Record, RecordFile};
pub use rows::{Row, Scalar};
pub use run::{Command, Heard, Keep, Outcome, RunSummary, run_experiments};
pub use steps::Step;
pub use study::{Study, summary};

#[cfg(test)]
mod tests;
