//! The life of a tree as plain data, which a page plays back and files of recordings hold.
//!
//! Invariant: the fields are an interface of that page and of those files.

use serde::{Deserialize, Serialize};

/// The subject of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// The store's guard.
    pub guard: String,
    /// The merge policy.
    pub policy: String,
    /// T, the size ratio.
    pub size_ratio: u32,
    /// Memory of the guard, in bits per key.
    pub bits_per_key: f64,
    /// Keys that each flush wrote, except the one that is written again and again. None: flushes
    /// differ.
    pub keys_per_flush: Option<u64>,
    /// The followed keys.
    pub keys: Vec<String>,
}

/// A recording: the life of a tree.
#[derive(Clone, Debug, Serialize)]
pub struct Recording {
    /// The subject.
    #[serde(flatten)]
    pub head: RecordingHead,
    /// For each followed key, the recorded flushes that wrote it.
    pub written: Vec<Vec<u64>>,
    /// The steps, in order.
    pub steps: Vec<ReplayStep>,
}

impl Recording {
    /// Creates a recording of these steps.
    pub(crate) fn new(head: RecordingHead, steps: Vec<ReplayStep>) -> Self {
        let mut written = vec![Vec::new(); head.keys.len()];
        for step in &steps {
            let ReplayEvent::Flush { span } = step.event else { continue };
            for (answer, written) in step.answers.iter().zip(&mut written) {
                if answer.holds.first() == Some(&0) {
                    written.push(span.1 - 1);
                }
            }
        }
        Recording { head, written, steps }
    }
}

/// A change of the tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ReplayEvent {
    /// The recording begins.
    Begin,
    /// A flush.
    Flush {
        /// The span of the new run.
        span: (u64, u64),
    },
    /// A merge of runs, or of parts of their keys into an older run.
    Merge {
        /// The spans of the merged runs, newest first.
        inputs: Vec<(u64, u64)>,
        /// The spans of the resulting runs: one if the runs were merged whole. Empty: no entry
        /// outlived the merge.
        outputs: Vec<(u64, u64)>,
        /// The level of the last resulting run.
        level: usize,
    },
    /// Runs moved to another level unchanged.
    Move {
        /// Their spans.
        runs: Vec<(u64, u64)>,
    },
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayRun {
    /// Its flushes, as a half-open interval.
    pub span: (u64, u64),
    /// Its entries.
    pub entries: u64,
}

/// The tree after a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayStep {
    /// The change.
    pub event: ReplayEvent,
    /// The runs of each level. Levels and runs are ordered newest first.
    pub levels: Vec<Vec<ReplayRun>>,
    /// How many runs each level has. If no merge is due, this is the version's shape encoding.
    pub shape: Vec<usize>,
    /// Whether `shape` is an encoding: the number of flushes since the round began, written in base
    /// T.
    pub is_encoding: bool,
    /// Memory of a global filter in bytes: base and overlay.
    pub filter_bytes: Option<(u64, u64)>,
    /// The filter's answer for each followed key.
    pub answers: Vec<ReplayAnswer>,
}

/// The filter's answer for a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayAnswer {
    /// Whether no codes are listed, because the guard has none or too many.
    pub is_uncoded: bool,
    /// The codes of the entries that match.
    pub codes: Vec<ReplayCode>,
    /// The runs that may have the key by guard and fence pointers. They are counted from the newest
    /// run, and listed newest first.
    pub named: Vec<usize>,
    /// The runs that have an entry of the key, found without the guard.
    pub holds: Vec<usize>,
}

/// A code of a filter entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayCode {
    /// The flushes from which the entry may be, as a half-open interval.
    pub span: (u64, u64),
    /// The runs that the code names, counted from the newest run.
    pub runs: Vec<usize>,
    /// The code in the paper's form. None: the tree has not the shape of lazy leveling with all
    /// merges done.
    pub digits: Option<ReplayDigits>,
}

/// A code as positions in shapes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayDigits {
    /// The shape before the flush: a position for each level, newest first.
    pub positions: Vec<usize>,
    /// How many of the last positions the code keeps.
    pub kept: usize,
    /// An indicator for each of these positions; 1 is the last.
    pub unary: String,
    /// How many of the last positions equal those of the version (the paper's m).
    pub common_suffix: usize,
}
