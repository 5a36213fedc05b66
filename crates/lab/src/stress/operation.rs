//! The steps of a history, and their text form.
//! ```text
//! 17  put "a/b" = #42      18  step 3      19  power cut, what was not synced drawn with 7
//! ```
//! Invariant: a step is self-contained, so leaving out other steps does not change it.

use std::ops::Bound;

use trommel::storage::Memory;
use trommel::testing::Fault;

use super::keys::{Edges, KeyIndex, Keys};
use super::model::expiry_of;
use super::ranges::RangeDeletion;
use crate::keys::rng::scramble;

/// A write of a number's value, which may expire, to a key; number 0 deletes the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) place: KeyIndex,
    pub(crate) number: u32,
}

/// How a store ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The store is closed, and the close returns its error.
    Close,
    /// The store is dropped.
    Drop,
    /// The process is killed: everything written stays, synced or not.
    Kill,
    /// The power is cut; the seed draws which unsynced bytes remain.
    PowerCut(u64),
    /// The power is cut, and all unsynced bytes are lost.
    PowerCutHard,
}

/// A fault of the disk, after `after` successful operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) after: u64,
    pub(crate) kind: Fault,
    pub(crate) lasts: bool,
}

impl Failure {
    /// Arms the disk with this failure.
    pub(crate) fn arm(&self, disk: &Memory) {
        match self.lasts {
            true => disk.fail_from(self.after, self.kind),
            false => disk.fail_at(self.after, self.kind),
        }
    }
}

/// A reopening of the store.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reopening {
    pub(crate) end: End,
    /// The seed of other options. None: the options stay.
    pub(crate) setup: Option<u64>,
    /// A failure while the store is opened.
    pub(crate) failure: Option<Failure>,
    /// The seed of a bit that is flipped in a copy of the disk, which is then opened, too.
    pub(crate) rot: Option<u64>,
    /// The seed of damage, or of none, to a copy of the disk, which is then repaired.
    pub(crate) repair: Option<u64>,
}

/// An operation with followers of the store. `which` counts modulo their number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FollowerOperation {
    /// Opens a follower, whose options the seed draws.
    Open(u64),
    /// Lets one catch up. `keeps`: a snapshot of what it showed before stays.
    CatchUp { which: usize, keeps: bool },
    /// Reads from one. `old`: from the kept snapshot.
    Read { which: usize, old: bool, place: KeyIndex, edges: Edges },
    /// Drops one.
    Drop(usize),
}

/// An operation with backups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BackupOperation {
    /// Makes a new generation, perhaps with a failure meanwhile.
    BackUp(Option<Failure>),
    /// Ships the changes since the last one, or else makes a new generation.
    Ship(Option<Failure>),
    /// Restores on a copy of the disk; the seed draws what, and which copy.
    Restore(u64),
    /// Removes all but the newest generations; this many stay.
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
    /// A bulk load: keys ascend, each once.
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
    /// A stream that ends before the value does, so that nothing is written.
    CutStream(Write),
    OpenReader(KeyIndex),
    /// Reads parts of a value; the seed draws which.
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
    /// A failure's result is checked after a crash that the seed draws.
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

/// An operation and its number in the whole history. The number also draws the checks after it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StressStep {
    pub(crate) number: u32,
    pub(crate) operation: StressOperation,
}

impl StressStep {
    /// Draws which of the possible background work is done as this step's `nth` piece.
    pub(crate) fn choice(&self, nth: u32) -> usize {
        scramble(u64::from(self.number) << 32 | u64::from(nth)) as usize
    }
}

/// Describes a step for readers.
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

/// Describes a key; a long one without its middle.
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
