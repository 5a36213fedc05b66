//! A plan: a file with measurements, figures and claims.
//!
//! Format: `plans/README.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result as LabResult};
use crate::experiment::claim::Claim;
use crate::experiment::figure::FigurePlan;
use crate::experiment::settings::Settings;

/// The size of the trees and the duration of measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Minutes for all plans.
    #[default]
    Small,
    /// Hours: sizes as in the papers, or as large as this kind of machine allows.
    Full,
}

impl Scale {
    /// Both scales.
    pub const ALL: [Scale; 2] = [Scale::Small, Scale::Full];

    /// Returns the name in commands and plans.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Small => "small",
            Scale::Full => "full",
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scale| scale.name() == name);
        found.ok_or_else(|| format!("there is no scale '{name}'; there are: small, full"))
    }
}

/// A plan: what to measure, to draw and to claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of the file without its extension, by which records are found.
    #[serde(skip)]
    pub name: String,
    /// The subject, in a few words.
    pub title: String,
    /// The source: a paper's figures, or another reason to measure it.
    pub source: String,
    /// What is done, how it differs from the source, and how to read the figures.
    pub about: String,
    /// The commands to run.
    #[serde(rename = "run")]
    pub(crate) runs: Vec<RunPlan>,
    /// The figures to draw.
    #[serde(rename = "figure", default)]
    pub(crate) figures: Vec<FigurePlan>,
    /// The claims of the source, and our own.
    #[serde(rename = "claim", default)]
    pub(crate) claims: Vec<Claim>,
}

/// A command with its options.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunPlan {
    /// The command, as in `bench read`.
    pub(crate) command: String,
    /// The path of the rows in the command's output: names of arrays, joined by dots. None: the
    /// output is one row, or an array of rows.
    pub(crate) rows: Option<String>,
    /// Fields that all its rows get, to distinguish them from other runs.
    #[serde(default)]
    pub(crate) label: BTreeMap<String, String>,
    /// The only scale at which it runs.
    pub(crate) scale: Option<Scale>,
    /// Its options.
    #[serde(default)]
    pub(crate) set: Settings,
}

/// Reads a plan.
pub fn load_experiment(path: &Path) -> LabResult<Experiment> {
    let wrong = |problem: String| LabError::Plan(format!("{}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut plan: Experiment = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let name = path.file_stem().and_then(|name| name.to_str());
    plan.name = name.ok_or_else(|| wrong("its name is no text".into()))?.to_string();
    plan.check().map_err(wrong)?;
    Ok(plan)
}

/// Reads the named plans: files, or names of plans in a folder. If none are named, reads all plans
/// of the folder, by name.
pub fn load_experiments(folder: &Path, named: &[String]) -> LabResult<Vec<Experiment>> {
    if !named.is_empty() {
        let paths = named.iter().map(|name| path_of(folder, name));
        return paths.map(|path| load_experiment(&path?)).collect();
    }
    let found = known(folder)?;
    if found.is_empty() {
        return Err(LabError::Plan(format!("{}: there are no plans (*.toml)", folder.display())));
    }
    found.iter().map(|path| load_experiment(path)).collect()
}

/// Returns the file of a plan.
fn path_of(folder: &Path, name: &str) -> LabResult<PathBuf> {
    let own = PathBuf::from(name);
    if own.extension().is_some_and(|ending| ending == "toml") {
        return Ok(own);
    }
    let path = folder.join(format!("{name}.toml"));
    if path.is_file() {
        return Ok(path);
    }
    let known = known(folder)?;
    let names: Vec<&str> =
        known.iter().filter_map(|path| path.file_stem().and_then(|name| name.to_str())).collect();
    let (folder, names) = (folder.display(), names.join(", "));
    Err(LabError::Plan(format!("there is no plan '{name}' in {folder}; there are: {names}")))
}

/// Returns the plans of a folder, by name.
fn known(folder: &Path) -> LabResult<Vec<PathBuf>> {
    let failed = |error: std::io::Error| LabError::Folder {
        path: folder.to_path_buf(),
        problem: format!("{error}. Name the folder of the plans with --plans"),
    };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed));
    let mut plans: Vec<PathBuf> = paths.collect::<LabResult<_>>()?;
    plans.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    plans.sort();
    Ok(plans)
}

impl Experiment {
    /// Checks what the types do not.
    fn check(&self) -> Result<(), String> {
        if self.runs.is_empty() {
            return Err("a plan needs a [[run]]".into());
        }
        for run in &self.runs {
            if run.command.split_whitespace().next() != Some("bench") {
                return Err(format!("command = \"{}\": plans run `bench ...`", run.command));
            }
        }
        self.figures.iter().try_for_each(FigurePlan::check)?;
        self.claims.iter().try_for_each(Claim::check)
    }
}
