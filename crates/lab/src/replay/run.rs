//! Records a run of a store while it happens, and reads recordings.
//! ```text
//! store   edit, edit, edit ...    --> trees, each pinned --> a thread, beside the store's --> FILE
//! FILE    {"trommel_recording":1,"guard":"grf", ... "keys":[...]}
//!         {"event":{"kind":"flush", ...},"levels":[...], ... "answers":[...]}    a line for a step
//! ```
//! Invariants: no flush and no merge is missed, however fast they come. Trees that are not yet
//! written wait, and keep their files alive. A line is written as a whole, so an interrupted
//! recording has all its earlier steps.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use trommel::research::Research as _;

use serde::{Deserialize, Serialize};
use trommel::Db;
use trommel::research::PinnedTree;

use crate::error::{LabError, Result};
use crate::replay::recorder::Recorder;
use crate::replay::recording::{Recording, RecordingHead, ReplayEvent, ReplayStep};

/// The version of the file format.
const FORM: u32 = 1;

/// The first bytes of every recording.
const RECORDING_START: &[u8] = b"{\"trommel_recording\":";

/// What to record of an open store.
#[derive(Clone, Debug, PartialEq)]
pub struct RunToRecord {
    /// The file to write. An existing recording is overwritten; any other file that is not empty is
    /// an error.
    pub file: PathBuf,
    /// The keys to follow: the text form and the bytes.
    pub keys: Vec<(String, Vec<u8>)>,
    /// Memory of the guard that was asked for, in bits per key.
    pub bits_per_key: f64,
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct FirstLine {
    trommel_recording: u32,
    #[serde(flatten)]
    head: RecordingHead,
}

/// A recording in progress.
pub struct RunRecorder {
    writer: JoinHandle<Result<u64>>,
}

impl RunRecorder {
    /// Begins with the current tree.
    pub fn begin(plan: &RunToRecord, db: &Db) -> Result<RunRecorder> {
        if plan.keys.is_empty() {
            return Err(LabError::Plan("a key at least has to be followed".into()));
        }
        let stats = db.stats()?;
        let (names, bytes): (Vec<String>, Vec<Vec<u8>>) = plan.keys.iter().cloned().unzip();
        let head = RecordingHead {
            guard: stats.guard.kind.name().to_string(),
            policy: stats.policy.name().to_string(),
            size_ratio: stats.size_ratio,
            bits_per_key: plan.bits_per_key,
            keys_per_flush: None,
            keys: names,
        };
        let mut lines = Lines::create(&plan.file)?;
        lines.write(&FirstLine { trommel_recording: FORM, head })?;
        let recorder = Recorder::new(bytes, &stats.policy, stats.size_ratio);
        let (hand_on, trees) = mpsc::channel();
        // After a failed write, further trees are dropped; `end` returns the error.
        db.follow_tree(move |tree| drop(hand_on.send(tree)))?;
        let writer = std::thread::spawn(move || write_steps(&trees, recorder, lines));
        Ok(RunRecorder { writer })
    }

    /// Waits until all steps so far are written. Returns their number. Requires: `db` is the store
    /// with which the recording began.
    pub fn end(self, db: &Db) -> Result<u64> {
        db.unfollow_tree()?;
        self.writer.join().expect("writing a recording does not panic")
    }
}

fn write_steps(
    trees: &mpsc::Receiver<PinnedTree>,
    mut recorder: Recorder,
    mut lines: Lines,
) -> Result<u64> {
    let mut steps = 0;
    for tree in trees {
        if let Some(step) = recorder.step(&tree)? {
            lines.write(&step)?;
            steps += 1;
        }
    }
    Ok(steps)
}

/// A file of JSON lines.
struct Lines {
    path: PathBuf,
    file: File,
}

impl Lines {
    fn create(path: &Path) -> Result<Self> {
        let mut start = Vec::new();
        if let Ok(old) = File::open(path) {
            let read = old.take(RECORDING_START.len() as u64).read_to_end(&mut start);
            read.map_err(|error| unusable(path, &error.to_string()))?;
        }
        if !start.is_empty() && start != RECORDING_START {
            let problem = "is there and is no recording: name another file, or remove it";
            return Err(unusable(path, problem));
        }
        let file = File::create(path).map_err(|error| unusable(path, &error.to_string()))?;
        Ok(Lines { path: path.to_path_buf(), file })
    }

    fn write(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line =
            serde_json::to_vec(value).map_err(|e| unusable(&self.path, &e.to_string()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|error| unusable(&self.path, &error.to_string()))
    }
}

fn unusable(path: &Path, problem: &str) -> LabError {
    LabError::Folder { path: path.to_path_buf(), problem: problem.to_string() }
}

/// Reads a recording. An incomplete last line is ignored: the run was interrupted.
pub fn read_recording(path: &Path) -> Result<Recording> {
    let bytes = std::fs::read(path).map_err(|error| unusable(path, &error.to_string()))?;
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    // What follows the last line feed is empty, or an incomplete line.
    lines.pop();
    let Some((first, rest)) = lines.split_first() else {
        return Err(unusable(path, "holds no whole line"));
    };
    let first = serde_json::from_slice::<FirstLine>(first);
    let first = first.map_err(|error| unusable(path, &format!("is no recording: {error}")))?;
    if first.trommel_recording != FORM {
        let form = first.trommel_recording;
        return Err(unusable(path, &format!("is a recording of form {form}, not {FORM}")));
    }
    if first.head.keys.is_empty() {
        return Err(unusable(path, "follows no key"));
    }
    let mut steps = Vec::new();
    for (place, line) in rest.iter().enumerate() {
        match serde_json::from_slice::<ReplayStep>(line) {
            Ok(ReplayStep { event: ReplayEvent::Flush { span: (from, end) }, .. })
                if from >= end =>
            {
                return Err(unusable(path, &format!("line {}: a flush of no number", place + 2)));
            }
            Ok(step) if step.answers.len() == first.head.keys.len() => steps.push(step),
            Ok(_) => return Err(unusable(path, &format!("line {}: other keys", place + 2))),
            Err(error) => return Err(unusable(path, &format!("line {}: {error}", place + 2))),
        }
    }
    if steps.is_empty() {
        return Err(unusable(path, "holds no step"));
    }
    Ok(Recording::new(first.head, steps))
}

#[cfg(test)]
mod tests;
