//! Records of measurements: a line of JSON for each step, in one file per plan and machine.
//!
//! Invariant: a finished step appends its line in one write. A torn last line is left out and
//! reported.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trommel_filters::Part;

use crate::error::{LabError, Result};
use crate::experiment::machine::Machine;

/// The record of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The arguments of `trommel`.
    pub arguments: Vec<String>,
    /// The measured commit, with `+changes` if files differ from it.
    pub commit: String,
    /// When it was measured, in seconds since 1970.
    pub unix_seconds: u64,
    /// How long the command ran, in seconds.
    pub seconds: f64,
    /// The machine it ran on.
    pub machine: Machine,
    /// The version of the global filter's images; 0: not recorded yet.
    #[serde(default)]
    pub filter_format: u32,
    /// The output of the command.
    pub printed: Value,
}

/// The previous version of images. The next one stores both ends of networks without their last
/// bits; for all other keys, both are the same.
const BEFORE_ALIGNED: u32 = 9;
// A later version needs a new decision.
const _: () = assert!(Part::IMAGE_VERSION == BEFORE_ALIGNED + 1);

impl Record {
    /// Whether it measured a global filter whose image format differs from this program's.
    pub fn is_of_another_filter(&self) -> bool {
        let is_fpr = self.arguments.iter().take(2).eq(["bench", "fpr"]);
        let is_alike = self.filter_format == Part::IMAGE_VERSION
            || self.filter_format == BEFORE_ALIGNED && !self.is_of_networks();
        !is_alike && (is_fpr || names_global(&self.printed))
    }

    /// Whether its keys are both ends of networks.
    fn is_of_networks(&self) -> bool {
        self.arguments.iter().any(|argument| argument.contains("ipv4-ranges"))
    }
}

/// Whether a guard in the output is the global filter, with any fingerprints.
fn names_global(printed: &Value) -> bool {
    match printed {
        Value::Array(elements) => elements.iter().any(names_global),
        Value::Object(fields) => fields.iter().any(|(name, field)| match field.as_str() {
            Some(word) => name == "guard" && word.starts_with("grf"),
            None => names_global(field),
        }),
        _ => false,
    }
}

/// The records of a plan on a machine.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    records: Vec<Record>,
    torn: bool,
}

impl RecordFile {
    /// Reads the file; if there is none, there are no records.
    pub fn load(folder: &Path, machine: &str, experiment: &str) -> Result<Self> {
        let path = folder.join(machine).join(format!("{experiment}.jsonl"));
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(wrong(&path, error)),
        };
        let (mut records, mut torn) = (Vec::new(), false);
        for (place, line) in text.split_inclusive('\n').enumerate() {
            match serde_json::from_str(line) {
                Ok(record) => records.push(record),
                // A last line without an end was torn when the machine stopped.
                Err(_) if !line.ends_with('\n') => torn = true,
                Err(error) => {
                    let problem = format!(
                        "line {}: {error}. Remove the line, or measure with --again",
                        place + 1
                    );
                    return Err(wrong(&path, problem));
                }
            }
        }
        Ok(RecordFile { path, records, torn })
    }

    /// Returns all records, oldest first.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the newest record of a command line.
    pub fn newest(&self, arguments: &[String]) -> Option<&Record> {
        self.records.iter().rev().find(|record| record.arguments == arguments)
    }

    /// Appends a record, and syncs it before returning.
    pub fn append(&mut self, record: Record) -> Result<()> {
        let failed = |error: std::io::Error| wrong(&self.path, error);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        if self.torn {
            self.rewrite()?;
            self.torn = false;
        }
        let mut file =
            OpenOptions::new().create(true).append(true).open(&self.path).map_err(failed)?;
        file.write_all(line(&record).as_bytes()).and_then(|()| file.sync_data()).map_err(failed)?;
        self.records.push(record);
        Ok(())
    }

    /// Drops the records that no step of the plan needs, and all but the newest of each command
    /// line.
    pub fn retain(&mut self, is_kept: &dyn Fn(&[String]) -> bool) -> Result<()> {
        let is_newest = |place: usize, record: &Record| {
            self.records[place + 1..].iter().all(|later| later.arguments != record.arguments)
        };
        let kept: Vec<Record> = self
            .records
            .iter()
            .enumerate()
            .filter(|(place, record)| is_newest(*place, record) && is_kept(&record.arguments))
            .map(|(_, record)| record.clone())
            .collect();
        if kept.len() < self.records.len() {
            self.records = kept;
            self.rewrite()?;
        }
        Ok(())
    }

    /// Rewrites the file: writes another one, and renames it over this one.
    fn rewrite(&self) -> Result<()> {
        let failed = |error: std::io::Error| wrong(&self.path, error);
        let lines: String = self.records.iter().map(line).collect();
        let beside = self.path.with_extension("jsonl.new");
        let mut file = File::create(&beside).map_err(failed)?;
        file.write_all(lines.as_bytes()).and_then(|()| file.sync_data()).map_err(failed)?;
        std::fs::rename(&beside, &self.path).map_err(failed)
    }
}

fn line(record: &Record) -> String {
    serde_json::to_string(record).expect("a record is plain data") + "\n"
}

fn wrong(path: &Path, problem: impl ToString) -> LabError {
    LabError::Folder { path: path.to_path_buf(), problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::experiment::machine::Machine;

    fn record(arguments: &[&str], filter_format: u32, printed: Value) -> Record {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let (commit, machine) = (String::new(), Machine::this(Some("a-machine")));
        Record { arguments, commit, unix_seconds: 0, seconds: 0.0, machine, filter_format, printed }
    }

    #[test]
    fn records_of_another_filter_are_known() {
        let other = |arguments: &[&str], format, printed| {
            record(arguments, format, printed).is_of_another_filter()
        };
        let read = ["bench", "read", "--guard", "bloom,grf-spline"];
        let [bloom, both] = [
            json!([{ "guard": "bloom" }]),
            json!([{ "guard": "bloom" }, { "kinds": [{ "guard": "grf-spline" }] }]),
        ];
        let now = Part::IMAGE_VERSION;
        let older = BEFORE_ALIGNED - 1;
        assert!(other(&read, older, both.clone()) && other(&read, 0, both.clone()));
        assert!(!other(&read, now, both.clone()) && !other(&read, 0, bloom.clone()));
        assert!(other(&["bench", "fpr", "--json"], older, bloom.clone()));
        // For most keys, the previous version measured the same.
        let networks = ["bench", "fpr", "--dist", "uniform,ipv4-ranges"];
        assert!(!other(&read, BEFORE_ALIGNED, both) && other(&networks, BEFORE_ALIGNED, bloom));
    }
}
