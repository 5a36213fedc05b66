//! The life of a tree, as plain data: what a page plays back, and what files of recorded runs hold.
//!
//! Invariant: fields are an interface of the page and of those files.

use serde::{Deserialize, Serialize};

/// What a recording is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// The store's guard.
    pub guard: String,
    /// When runs merge.
    pub policy: String,
    /// T.
    pub size_ratio: u32,
    /// Memory of the guard.
    pub bits_per_key: f64,
    /// Keys that each flush wrote, besides the one that is written again and again. None: flushes
    /// differ.
    pub keys_per_flush: Option<u64>,
    /// The followed keys.
    pub keys: Vec<String>,
}

/// The life of a tree.
#[derive(Clone, Debug, Serialize)]
pub struct Recording {
    /// What it is of.
    #[serde(flatten)]
    pub head: RecordingHead,
    /// The flushes that wrote each of the followed keys, as far as they were recorded.
    pub written: Vec<Vec<u64>>,
    /// What happened.
    pub steps: Vec<ReplayStep>,
}

impl Recording {
    /// A recording of these steps.
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
    /// A memtable became a run.
    Flush {
        /// Its span.
        span: (u64, u64),
    },
    /// Runs became one, or gave some of their keys to an older one.
    Merge {
        /// The spans that they had, newest first.
        inputs: Vec<(u64, u64)>,
        /// The spans of what they became: one, if all of them were merged. None: nothing outlived
        /// it.
        outputs: Vec<(u64, u64)>,
        /// The level of the last of these.
        level: usize,
    },
    /// Runs went to another level as they are.
    Move {
        /// Their spans.
        runs: Vec<(u64, u64)>,
    },
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayRun {
    /// Its flushes, [lo, hi).
    pub span: (u64, u64),
    /// Its entries.
    pub entries: u64,
}

/// The tree after a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayStep {
    /// The change.
    pub event: ReplayEvent,
    /// The levels, newest first, each with its runs, newest first.
    pub levels: Vec<Vec<ReplayRun>>,
    /// How many runs each level has: the version's shape encoding, where no merge is due.
    pub shape: Vec<usize>,
    /// Whether it is one, in this round: the flushes since the round's beginning, written in base
    /// T.
    pub is_encoding: bool,
    /// Memory of a global filter, in bytes: of its base, of its overlay.
    pub filter_bytes: Option<(u64, u64)>,
    /// What the filter says of each followed key.
    pub answers: Vec<ReplayAnswer>,
}

/// What the filter says of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayAnswer {
    /// There are no codes to list: the guard has none, or too many.
    pub is_uncoded: bool,
    /// The codes of the entries that match.
    pub codes: Vec<ReplayCode>,
    /// The runs that may have it, by guard and fence pointers, counted from the newest of all,
    /// newest first.
    pub named: Vec<usize>,
    /// The runs that have an entry of it: no guard was asked.
    pub holds: Vec<usize>,
}

/// A code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayCode {
    /// The flushes that the entry may be from, [lo, hi).
    pub span: (u64, u64),
    /// The runs that this names, counted from the newest of all.
    pub runs: Vec<usize>,
    /// As the paper writes it. None: the tree has another shape than a lazily levelled one with all
    /// merges done.
    pub digits: Option<ReplayDigits>,
}

/// A code as positions of shapes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayDigits {
    /// A position for each level, newest first: the shape before the flush.
    pub positions: Vec<usize>,
    /// How many of the last of them the code still has.
    pub kept: usize,
    /// An indicator for each of these: 1 ends them.
    pub unary: String,
    /// How many positions at the end are as the version has them (the paper's m).
    pub common_suffix: usize,
}
