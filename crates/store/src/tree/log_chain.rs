//! The logs that a change feed can read, each with what is before it.
//! ```text
//! log 7 (after write 40)   log 9 (after 52)   log 12 (after 60), the newest
//! [41 ............... 52]  [53 ......... 60]  [61 ... durable end
//!      ^ a feed that has told up to 45 goes on here: the last log that is after 45 or less
//! ```
//! Invariants: each log follows the one before it, so no log between them is missing. Every write
//! after the number before a log is in that log or in later ones, but for those that were written
//! past the logs. These have a mark: no feed crosses it.

use std::collections::VecDeque;

use crate::entries::entry::Sequence;
use crate::files::unsynced::DurableBytes;
use crate::files::wal::{HEADER_SIZE, Predecessor};

/// How far a log can be told.
#[derive(Clone)]
pub(crate) enum ToldEnd {
    /// Another log follows: so many bytes of it count.
    At(u64),
    /// As far as it is durable.
    Growing(DurableBytes),
    /// It was read back: its groups tell that so many bytes were durable. There may be more.
    Said(u64),
}

/// A log of the chain.
pub(crate) struct ChainedLog {
    pub(crate) number: u64,
    /// The newest write before it; where it follows a failed one, before all that it repeats of it.
    pub(crate) after: Sequence,
    pub(crate) end: ToldEnd,
}

/// Where a feed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPosition {
    pub(crate) log: u64,
    pub(crate) offset: u64,
    /// How often places were forgotten before.
    pub(crate) forgotten: u64,
}

/// What a feed can read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogStretch {
    pub(crate) from: LogPosition,
    /// Where durable bytes end.
    pub(crate) end: u64,
    /// The newest write before the log.
    pub(crate) after: Sequence,
    /// Whether `end` is behind all that the log repeats of the one before it.
    pub(crate) has_repeats: bool,
}

/// A feed cannot go on: the number of the first write that can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoneBefore(pub(crate) Sequence);

/// The logs, oldest first.
#[derive(Default)]
pub(crate) struct LogChain {
    logs: VecDeque<ChainedLog>,
    /// Where there is no log, what is written later is after this write.
    after: Sequence,
    /// The newest write past the logs.
    unlogged: Sequence,
    /// How often logs have got other bytes.
    forgotten: u64,
}

impl LogChain {
    /// Of a store that was opened. `after`: its newest write.
    pub(crate) fn new(logs: VecDeque<ChainedLog>, after: Sequence, unlogged: Sequence) -> Self {
        LogChain { logs, after, unlogged, forgotten: 0 }
    }

    /// A log is there, after the one that it names. It may take the place of itself.
    pub(crate) fn follow(&mut self, number: u64, before: Predecessor, end: DurableBytes) {
        let end = ToldEnd::Growing(end);
        match self.logs.back_mut() {
            Some(newest) if newest.number == number => return newest.end = end,
            Some(newest) if newest.number == before.wal => {
                newest.end = ToldEnd::At(before.valid_bytes);
            }
            // Nobody knows what is between them.
            _ => self.logs.clear(),
        }
        if let Some(after) = before.last {
            self.logs.push_back(ChainedLog { number, after, end });
        } else {
            self.logs.clear();
        }
    }

    /// Writes up to this one may be in no log.
    pub(crate) fn note_unlogged(&mut self, last: Sequence) {
        self.unlogged = self.unlogged.max(last);
    }

    /// A log is made anew with other bytes: no place in it is one any more.
    pub(crate) fn forget_places(&mut self) {
        self.forgotten += 1;
    }

    /// Logs below this one are gone.
    pub(crate) fn let_go_below(&mut self, number: u64) {
        while self.logs.len() > 1 && self.logs[0].number < number {
            self.logs.pop_front();
        }
    }

    /// Whether no feed can use this log: it is not in the chain, or all of it is before what was
    /// written past the logs.
    pub(crate) fn is_useless(&self, number: u64) -> bool {
        match self.logs.front() {
            Some(oldest) if oldest.number == number => {
                self.logs.get(1).is_some_and(|next| next.after <= self.unlogged)
            }
            Some(oldest) => oldest.number > number,
            None => true,
        }
    }

    /// As `check`, but for logs that are gone: a feed may have the one open that it reads.
    pub(crate) fn check_unlogged(&self, told: Sequence) -> Result<(), GoneBefore> {
        let is_told = told >= self.unlogged;
        if is_told { Ok(()) } else { Err(GoneBefore(Sequence(self.unlogged.0 + 1))) }
    }

    /// An error if a feed that has told all up to `told` would miss something.
    pub(crate) fn check(&self, told: Sequence) -> Result<(), GoneBefore> {
        let floor = self.logs.front().map_or(self.after, |oldest| oldest.after);
        let floor = floor.max(self.unlogged);
        if told < floor { Err(GoneBefore(Sequence(floor.0 + 1))) } else { Ok(()) }
    }

    /// What a feed is to read that has told all up to `told`, and read up to a place. None: nothing
    /// more is durable.
    pub(crate) fn next(
        &self,
        told: Sequence,
        at: Option<LogPosition>,
    ) -> Result<Option<LogStretch>, GoneBefore> {
        self.check(told)?;
        let start = HEADER_SIZE as u64;
        let at = at.filter(|at| at.forgotten == self.forgotten);
        let known = at.and_then(|at| Some((self.place_of(at.log)?, at.offset)));
        let by_number =
            || Some((self.logs.partition_point(|it| it.after <= told).checked_sub(1)?, start));
        let Some((mut place, mut offset)) = known.or_else(by_number) else { return Ok(None) };
        loop {
            let log = &self.logs[place];
            let (end, has_repeats) = match &log.end {
                ToldEnd::At(bytes) => (*bytes, true),
                ToldEnd::Growing(end) => (end.get(), true),
                ToldEnd::Said(bytes) => (*bytes, false),
            };
            let from = LogPosition { log: log.number, offset, forgotten: self.forgotten };
            if offset < end {
                return Ok(Some(LogStretch { from, end, after: log.after, has_repeats }));
            }
            if place + 1 == self.logs.len() {
                return Ok(None);
            }
            (place, offset) = (place + 1, start);
        }
    }

    fn place_of(&self, number: u64) -> Option<usize> {
        self.logs.binary_search_by_key(&number, |log| log.number).ok()
    }
}
