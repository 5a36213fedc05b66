//! The steps of a history with transactions, and their text form.

use super::super::operands::operand_of;
use super::super::operation::{End, Failure, Write};
use super::{KEYS, SPACES};

/// Keys of one key space by number, from `from` up to but excluding `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) space: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Stretch {
    /// Returns the stretch of the single key at a place.
    pub(crate) fn of_place(place: usize) -> Self {
        let (space, from) = (place / KEYS, place % KEYS);
        Stretch { space, from, to: from + 1 }
    }

    /// Returns all keys of a key space.
    pub(crate) fn whole(space: usize) -> Self {
        Stretch { space, from: 0, to: KEYS }
    }

    pub(crate) fn places(self) -> std::ops::Range<usize> {
        self.space * KEYS + self.from..self.space * KEYS + self.to
    }

    pub(crate) fn meets(self, other: Stretch) -> bool {
        self.space == other.space && self.from < other.to && other.from < self.to
    }

    /// Returns the deletions of its keys, one by one.
    pub(crate) fn deletions(self) -> Vec<Write> {
        self.places().map(|place| Write { place: place as u16, number: 0 }).collect()
    }
}

/// One step. `which` selects an open item, counted modulo their number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Begin {
        serializable: bool,
    },
    TxGet {
        which: usize,
        place: usize,
        for_update: bool,
    },
    TxScan {
        which: usize,
        stretch: Stretch,
        back: bool,
        limit: usize,
    },
    TxWrite {
        which: usize,
        writes: Vec<Write>,
    },
    TxDeleteRange {
        which: usize,
        stretch: Stretch,
    },
    Savepoint {
        which: usize,
    },
    RollBack {
        which: usize,
    },
    Commit {
        which: usize,
        synced: bool,
    },
    Abandon {
        which: usize,
    },
    /// One batch over several key spaces.
    Write {
        writes: Vec<Write>,
        synced: bool,
    },
    DeleteRange(Stretch),
    /// A batch on condition that keys have their current values. If it `lies`, one expected value
    /// is wrong.
    OnlyIf {
        places: Vec<usize>,
        lies: bool,
        writes: Vec<Write>,
    },
    PutIfAbsent(Write),
    /// A swap that expects the current value, or if it `lies`, another one.
    Swap {
        write: Write,
        lies: bool,
    },
    Update(Write),
    Ingest {
        space: usize,
        writes: Vec<Write>,
    },
    Get(usize),
    TakeSnapshot,
    ReadSnapshot {
        which: usize,
        space: usize,
    },
    DropSnapshot(usize),
    Drop {
        space: usize,
        setup: u64,
    },
    Rename {
        space: usize,
    },
    Flush {
        space: usize,
    },
    FlushAll,
    Compact {
        space: usize,
    },
    Work(u32),
    Settle,
    Sync,
    Verify,
    Checkpoint,
    Tick,
    Fail(Failure),
    Mend,
    Reopen {
        end: End,
        setup: Option<u64>,
    },
}

/// A step and its number in the whole history.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NumberedStep {
    pub(crate) number: u32,
    pub(crate) step: Step,
}

impl Step {
    /// Returns simpler variants of the step.
    pub(crate) fn simpler(&self) -> Vec<Step> {
        let fewer = |writes: &[Write]| -> Vec<Vec<Write>> {
            let without = |place: usize| {
                let mut writes = writes.to_vec();
                writes.remove(place);
                writes
            };
            if writes.len() > 1 { (0..writes.len()).map(without).collect() } else { Vec::new() }
        };
        match self {
            Step::Write { writes, synced } => fewer(writes)
                .into_iter()
                .map(|writes| Step::Write { writes, synced: *synced })
                .collect(),
            Step::TxWrite { which, writes } => fewer(writes)
                .into_iter()
                .map(|writes| Step::TxWrite { which: *which, writes })
                .collect(),
            Step::Ingest { space, writes } => fewer(writes)
                .into_iter()
                .map(|writes| Step::Ingest { space: *space, writes })
                .collect(),
            Step::Reopen { end, setup: Some(_) } => vec![Step::Reopen { end: *end, setup: None }],
            Step::Work(count) if *count > 1 => vec![Step::Work(count - 1)],
            _ => Vec::new(),
        }
    }
}

impl NumberedStep {
    /// Describes the step for readers.
    pub(crate) fn tell(&self) -> String {
        format!("{:>6}  {}", self.number, self.step.tell())
    }
}

impl Step {
    fn tell(&self) -> String {
        match self {
            Step::Begin { serializable } => {
                format!(
                    "begin a transaction{}",
                    if *serializable { "" } else { ", snapshot isolation" }
                )
            }
            Step::TxGet { which, place, for_update } => {
                let update = if *for_update { " for update" } else { "" };
                format!("transaction {which}: get {}{update}", name(*place))
            }
            Step::TxScan { which, stretch, back, limit } => {
                let (range, way) = (range(*stretch), if *back { ", backward" } else { "" });
                format!("transaction {which}: scan {range}, {limit} at most{way}")
            }
            Step::TxWrite { which, writes: all } => {
                format!("transaction {which}: write {}", writes(all))
            }
            Step::TxDeleteRange { which, stretch } => {
                format!("transaction {which}: delete {}", range(*stretch))
            }
            Step::Write { writes: all, synced } => {
                format!("write {}{}", writes(all), if *synced { ", synced" } else { "" })
            }
            Step::DeleteRange(stretch) => format!("delete {}", range(*stretch)),
            Step::OnlyIf { places, lies, writes: all } => {
                let places: Vec<String> = places.iter().map(|place| name(*place)).collect();
                let lies = if *lies { ", and one is not" } else { "" };
                format!(
                    "write {} if these are as they are{lies}: {}",
                    writes(all),
                    places.join(", ")
                )
            }
            Step::PutIfAbsent(write) => format!("put {} if absent", write_text(write)),
            Step::Swap { write, lies } => {
                format!(
                    "swap {}{}",
                    write_text(write),
                    if *lies { " for what is not there" } else { "" }
                )
            }
            Step::Update(write) => format!("update {}", write_text(write)),
            Step::Ingest { space, writes: all } => format!("ingest into {space}: {}", writes(all)),
            Step::Get(place) => format!("get {}", name(*place)),
            Step::Fail(failure) => format!("the disk fails: {failure:?}"),
            Step::Reopen { end, setup } => {
                format!("{end:?}; open{}", if setup.is_some() { ", other options" } else { "" })
            }
            Step::Work(count) => format!("{count} steps of background work"),
            other => format!("{other:?}"),
        }
    }
}

/// Returns the name of a key: its key space and number.
pub(crate) fn name(place: usize) -> String {
    format!("{}/{}", place / KEYS % SPACES, place % KEYS)
}

fn range(stretch: Stretch) -> String {
    format!("{}/[{} .. {})", stretch.space, stretch.from, stretch.to)
}

fn writes(all: &[Write]) -> String {
    all.iter().map(write_text).collect::<Vec<_>>().join(", ")
}

fn write_text(write: &Write) -> String {
    let name = name(usize::from(write.place));
    match write.number {
        0 => format!("-{name}"),
        number if operand_of(number).is_some() => format!("{name} merges #{number}"),
        number => format!("{name} = #{number}"),
    }
}
