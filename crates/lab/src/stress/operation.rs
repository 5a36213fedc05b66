//! The steps of a history, and how they are printed.
//! ```text
//! 17  put "a/b" = #42      18  step 3      19  power cut, what was not synced drawn with 7
//! ```
//! Invariant: a step is self-contained, so leaving out others does not change it.

use std::ops::Bound;

use trommel::storage::Memory;
use trommel::testing::Fault;

use super::keys::{Edges, KeyIndex, Keys};
use super::model::expiry_of;
use super::ranges::RangeDeletion;
use crate::keys::rng::scramble;

/// A key gets the value of a number, which may expire; number 0 removes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) place: KeyIndex,
    pub(crate) number: u32,
}

/// How a store ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The store is closed, and returns its error.
    Close,
    /// It is dropped.
    Drop,
    /// The process is killed: what was written stays, synced or not.
    Kill,
    /// The power is cut; the seed draws what remains of unsynced bytes.
    PowerCut(u64),
    /// The power is cut, and all unsynced bytes are lost.
    PowerCutHard,
}

/// A fault of the disk: so many operations succeed before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) after: u64,
    pub(crate) kind: Fault,
    pub(crate) lasts: bool,
}

impl Failure {
    /// Has the disk fail so.
    pub(crate) fn arm(&self, disk: &Memory) {
        match self.lasts {
            true => disk.fail_from(self.after, self.kind),
            false => disk.fail_at(self.after, self.kind),
        }
    }
}

/// Opening again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reopening {
    pub(crate) end: End,
    /// Draws other options. None: the same ones.
    pub(crate) setup: Option<u64>,
    /// What goes wrong while the store is opened.
    pub(crate) failure: Option<Failure>,
    /// A copy of the disk is opened too, with a bit flipped that this draws.
    pub(crate) rot: Option<u64>,
    /// A copy of the disk is damaged, or not, as this draws, and repaired.
    pub(crate) repair: Option<u64>,
}

/// What is done with followers of the store. They are counted round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FollowerOperation {
    /// The seed draws its options.
    Open(u64),
    /// `keeps`: a snapshot of what it showed before stays.
    CatchUp { which: usize, keeps: bool },
    /// `old`: in the snapshot that has stayed.
    Read { which: usize, old: bool, place: KeyIndex, edges: Edges },
    /// It ends.
    Drop(usize),
}

/// What is done with backups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BackupOperation {
    /// A new generation, perhaps with a fault on the way.
    BackUp(Option<Failure>),
    /// The changes since; else a new generation.
    Ship(Option<Failure>),
    /// The seed draws what is restored on which copy of the disk.
    Restore(u64),
    /// So many generations stay.
    Prune(usize),
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StressOperation {
    Write {
        writes: Vec<Write>,
        synced: bool,
    },
    DeleteRange(RangeDeletion),
    /// Ascending, each key once.
    Ingest(Vec<Write>),
    Get(KeyIndex),
    Scan {
        edges: Edges,
        back: bool,
    },
    Count(Edges),
    TakeSnapshot,
    ReadSnapshot {
        which: usize,
        place: KeyIndex,
        edges: Edges,
        back: bool,
    },
    DropSnapshot(usize),
    OpenScan {
        edges: Edges,
        of_snapshot: bool,
    },
    MoveScan {
        which: usize,
        back: bool,
        times: usize,
    },
    DropScan(usize),
    /// A stream that ends before the value does: nothing is written.
    CutStream(Write),
    OpenReader(KeyIndex),
    /// Reads parts of a value, where the seed draws.
    ReadOn {
        which: usize,
        seed: u64,
    },
    Flush,
    Step(u32),
    Settle,
    Compact,
    Sync,
    Verify,
    /// If there is a fault, its result is checked after a crash that the seed draws.
    Checkpoint {
        failure: Option<Failure>,
        seed: u64,
    },
    Follower(FollowerOperation),
    Backup(BackupOperation),
    Tick,
    Fail(Failure),
    Mend,
    Reopen(Reopening),
}

/// An operation and its number in the whole history, which also draws what is checked after it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StressStep {
    pub(crate) number: u32,
    pub(crate) operation: StressOperation,
}

impl StressStep {
    /// Draws which piece of the possible background work is done as this step's `nth`.
    pub(crate) fn choice(&self, nth: u32) -> usize {
        scramble(u64::from(self.number) << 32 | u64::from(nth)) as usize
    }
}

/// A step as people read it.
pub(crate) fn tell(step: &StressStep, keys: &Keys) -> String {
    let StressStep { number, operation } = step;
    let key = |place: &KeyIndex| key_text(keys.get(*place));
    let said = match operation {
        StressOperation::Write { writes, synced } => {
            let synced = if *synced { ", synced" } else { "" };
            let all: Vec<_> = writes.iter().map(|write| write_text(write, keys)).collect();
            format!("write {}{synced}", all.join(", "))
        }
        StressOperation::Ingest(writes) => {
            let all: Vec<_> = writes.iter().map(|write| write_text(write, keys)).collect();
            format!("ingest {}", all.join(", "))
        }
        StressOperation::DeleteRange(deletion) => deletion_text(deletion, keys),
        StressOperation::Get(place) => format!("get {}", key(place)),
        StressOperation::Scan { edges, back } => {
            format!("scan {}{}", range_text(edges), way(*back))
        }
        StressOperation::Count(edges) => format!("count {}", range_text(edges)),
        StressOperation::ReadSnapshot { which, place, edges, back } => {
            let (range, key) = (range_text(edges), key(place));
            format!("read snapshot {which}: {key}, {range}{}", way(*back))
        }
        StressOperation::DropSnapshot(which) => format!("drop snapshot {which}"),
        StressOperation::OpenScan { edges, of_snapshot } => {
            let source = if *of_snapshot { " of the newest snapshot" } else { "" };
            format!("open a scan{source} of {}", range_text(edges))
        }
        StressOperation::MoveScan { which, back, times } => {
            format!("move scan {which} by {times}{}", way(*back))
        }
        StressOperation::DropScan(which) => format!("drop scan {which}"),
        StressOperation::CutStream(write) => {
            format!("a stream for {} ends too early", write_text(write, keys))
        }
        StressOperation::OpenReader(place) => format!("open a reader of {}", key(place)),
        StressOperation::ReadOn { which, seed } => {
            format!("read parts from reader {which}, drawn with {seed}")
        }
        StressOperation::Step(count) => format!("{count} steps of background work"),
        StressOperation::Fail(failure) => failure_text(failure),
        StressOperation::Reopen(reopening) => reopening_text(reopening),
        StressOperation::Checkpoint { failure, seed } => {
            let failure = failure.as_ref().map(failure_text);
            let failure = failure.map(|text| format!("; {text}")).unwrap_or_default();
            format!("checkpoint, looked at as drawn with {seed}{failure}")
        }
        StressOperation::Follower(operation) => follower_text(operation, keys),
        StressOperation::Backup(operation) => backup_text(operation),
        StressOperation::TakeSnapshot => "take a snapshot".into(),
        StressOperation::Tick => "a second passes".into(),
        StressOperation::Mend => "the disk is mended".into(),
        StressOperation::Flush | StressOperation::Settle | StressOperation::Compact => {
            format!("{operation:?}").to_lowercase()
        }
        StressOperation::Sync | StressOperation::Verify => format!("{operation:?}").to_lowercase(),
    };
    format!("{number:>6}  {said}")
}

fn follower_text(operation: &FollowerOperation, keys: &Keys) -> String {
    match operation {
        FollowerOperation::Open(seed) => format!("open a follower, with options of {seed}"),
        FollowerOperation::CatchUp { which, keeps } => {
            let keeps = if *keeps { ", and keeps a snapshot" } else { "" };
            format!("follower {which} catches up{keeps}")
        }
        FollowerOperation::Read { which, old, place, edges } => {
            let what = if *old { "the kept snapshot of follower" } else { "follower" };
            let (key, range) = (key_text(keys.get(*place)), range_text(edges));
            format!("read {what} {which}: {key}, {range}")
        }
        FollowerOperation::Drop(which) => format!("drop follower {which}"),
    }
}

fn backup_text(operation: &BackupOperation) -> String {
    let with = |failure: Option<&Failure>| {
        failure.map(|failure| format!("; {}", failure_text(failure))).unwrap_or_default()
    };
    match operation {
        BackupOperation::BackUp(failure) => format!("back up{}", with(failure.as_ref())),
        BackupOperation::Ship(failure) => format!("ship changes{}", with(failure.as_ref())),
        BackupOperation::Restore(seed) => format!("restore a backup, drawn with {seed}"),
        BackupOperation::Prune(keep) => format!("prune backups: {keep} stay"),
    }
}

fn deletion_text(deletion: &RangeDeletion, keys: &Keys) -> String {
    let RangeDeletion { before, from, to, after, synced } = deletion;
    let text = |writes: &[Write]| -> Vec<String> {
        writes.iter().map(|write| write_text(write, keys)).collect()
    };
    let range = vec![format!("-[{} .. {})", key_text(from), key_text(to))];
    let all = [text(before), range, text(after)].concat();
    format!("write {}{}", all.join(", "), if *synced { ", synced" } else { "" })
}

fn write_text(write: &Write, keys: &Keys) -> String {
    let key = key_text(keys.get(write.place));
    match (write.number, expiry_of(write.number)) {
        (0, _) => format!("-{key}"),
        (number, None) => format!("{key} = #{number}"),
        (number, Some(tick)) => format!("{key} = #{number} until tick {tick}"),
    }
}

/// A key, its middle left out if it is long.
pub(crate) fn key_text(key: &[u8]) -> String {
    const SHOWN: usize = 8;
    if key.len() <= 4 * SHOWN {
        return format!("\"{}\"", key.escape_ascii());
    }
    let (start, end) = (&key[..SHOWN], &key[key.len() - SHOWN..]);
    format!("\"{}...{}\" ({} bytes)", start.escape_ascii(), end.escape_ascii(), key.len())
}

pub(crate) fn range_text((lower, upper): &Edges) -> String {
    let lower = match lower {
        Bound::Included(key) => format!("[{}", key_text(key)),
        Bound::Excluded(key) => format!("({}", key_text(key)),
        Bound::Unbounded => "(".into(),
    };
    let upper = match upper {
        Bound::Included(key) => format!("{}]", key_text(key)),
        Bound::Excluded(key) => format!("{})", key_text(key)),
        Bound::Unbounded => ")".into(),
    };
    format!("{lower} .. {upper}")
}

pub(crate) fn way(back: bool) -> &'static str {
    if back { ", backward" } else { "" }
}

fn failure_text(failure: &Failure) -> String {
    let Failure { after, kind, lasts } = failure;
    let lasts = if *lasts { "until mended" } else { "once" };
    format!("the disk fails ({kind:?}, {lasts}) after {after} more operations")
}

fn reopening_text(reopening: &Reopening) -> String {
    let end = match reopening.end {
        End::Close => "close".into(),
        End::Drop => "drop".into(),
        End::Kill => "kill the process".into(),
        End::PowerCut(seed) => format!("power cut, what was not synced drawn with {seed}"),
        End::PowerCutHard => "power cut, nothing stays that was not synced".into(),
    };
    let setup = reopening.setup.map(|_| ", other options").unwrap_or_default();
    let failure = reopening.failure.as_ref().map(failure_text);
    let failure = failure.map(|text| format!("; {text}")).unwrap_or_default();
    let rot = reopening.rot.map(|seed| format!("; a copy rots, drawn with {seed}"));
    let repair = reopening.repair.map(|seed| format!("; a copy is repaired, drawn with {seed}"));
    let copies = rot.into_iter().chain(repair).collect::<String>();
    format!("{end}{copies}; open{setup}{failure}")
}
