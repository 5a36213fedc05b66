//! The logs that a change feed can read. Each says which log it follows.
//! ```text
//! log 7 (after write 40)   log 9 (after 52)   log 12 (after 60), the newest
//! [41 ............... 52]  [53 ......... 60]  [61 ... durable end
//!      ^ a feed that has delivered up to 45 continues here: the last log after 45 or less
//! ```
//! Invariants: each log follows the one before it, so no log between them is missing. Every write
//! after a log's `after` is in that log or a later one, except for writes that bypassed the logs.
//! These leave a mark that no feed crosses.

use std::collections::VecDeque;

use crate::entries::entry::Sequence;
use crate::files::unsynced::DurableBytes;
use crate::files::wal::{HEADER_SIZE, Predecessor};

/// How far feeds can read a log.
#[derive(Clone)]
pub(crate) enum ReadableEnd {
    /// Another log follows; this many bytes of this one count.
    At(u64),
    /// Up to its durable end, which grows.
    Growing(DurableBytes),
    /// The log was read back. Its groups say that this many bytes were durable; there may be more.
    Said(u64),
}

/// A log of the chain.
pub(crate) struct ChainedLog {
    pub(crate) number: u64,
    /// The newest write before the log. If the log follows a failed one, the newest write before
    /// all that it repeats.
    pub(crate) after: Sequence,
    pub(crate) end: ReadableEnd,
}

/// The position of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPosition {
    pub(crate) log: u64,
    pub(crate) offset: u64,
    /// The value of `LogChain::forgotten` when the feed was here.
    pub(crate) forgotten: u64,
}

/// The bytes that a feed can read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogStretch {
    pub(crate) from: LogPosition,
    /// The end of the durable bytes.
    pub(crate) end: u64,
    /// The newest write before the log.
    pub(crate) after: Sequence,
    /// Whether `end` lies behind everything that the log repeats from the one before.
    pub(crate) has_repeats: bool,
}

/// The feed cannot continue. The number is that of the first write that can be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoneBefore(pub(crate) Sequence);

/// The logs, oldest first.
#[derive(Default)]
pub(crate) struct LogChain {
    logs: VecDeque<ChainedLog>,
    /// If there is no log, later writes come after this one.
    after: Sequence,
    /// The newest write that bypassed the logs.
    unlogged: Sequence,
    /// How often logs were rewritten with other bytes.
    forgotten: u64,
}

impl LogChain {
    /// Makes the chain of a store that is opened. `after`: its newest write.
    pub(crate) fn new(logs: VecDeque<ChainedLog>, after: Sequence, unlogged: Sequence) -> Self {
        LogChain { logs, after, unlogged, forgotten: 0 }
    }

    /// Appends a log that follows the one that it names. A rewritten newest log replaces itself.
    pub(crate) fn follow(&mut self, number: u64, before: Predecessor, end: DurableBytes) {
        let end = ReadableEnd::Growing(end);
        match self.logs.back_mut() {
            Some(newest) if newest.number == number => return newest.end = end,
            Some(newest) if newest.number == before.wal => {
                newest.end = ReadableEnd::At(before.valid_bytes);
            }
            // The logs between them are unknown.
            _ => self.logs.clear(),
        }
        if let Some(after) = before.last {
            self.logs.push_back(ChainedLog { number, after, end });
        } else {
            self.logs.clear();
        }
    }

    /// Notes that writes up to this one may be in no log.
    pub(crate) fn note_unlogged(&mut self, last: Sequence) {
        self.unlogged = self.unlogged.max(last);
    }

    /// Invalidates all positions, since a log is rewritten with other bytes.
    pub(crate) fn forget_places(&mut self) {
        self.forgotten += 1;
    }

    /// Drops the logs below this one.
    pub(crate) fn let_go_below(&mut self, number: u64) {
        while self.logs.len() > 1 && self.logs[0].number < number {
            self.logs.pop_front();
        }
    }

    /// Returns the log that has this write, if a feed can read it.
    pub(crate) fn log_with(&self, sequence: Sequence) -> Option<u64> {
        let place = self.logs.partition_point(|it| it.after < sequence).checked_sub(1)?;
        Some(self.logs[place].number)
    }

    /// Returns the newest write before all logs.
    pub(crate) fn begin(&self) -> Sequence {
        self.logs.front().map_or(self.after, |oldest| oldest.after)
    }

    /// Whether no feed can use this log: it is not in the chain, or it lies entirely before writes
    /// that bypassed the logs.
    pub(crate) fn is_useless(&self, number: u64) -> bool {
        match self.logs.front() {
            Some(oldest) if oldest.number == number => {
                self.logs.get(1).is_some_and(|next| next.after <= self.unlogged)
            }
            Some(oldest) => oldest.number > number,
            None => true,
        }
    }

    /// Like `check`, but does not consider dropped logs: a feed may still have its log open.
    pub(crate) fn check_unlogged(&self, delivered: Sequence) -> Result<(), GoneBefore> {
        let is_delivered = delivered >= self.unlogged;
        if is_delivered { Ok(()) } else { Err(GoneBefore(Sequence(self.unlogged.0 + 1))) }
    }

    /// Returns an error if a feed that has delivered everything up to `delivered` would miss a
    /// write.
    pub(crate) fn check(&self, delivered: Sequence) -> Result<(), GoneBefore> {
        let floor = self.begin().max(self.unlogged);
        if delivered < floor { Err(GoneBefore(Sequence(floor.0 + 1))) } else { Ok(()) }
    }

    /// Returns the next bytes for a feed that has delivered everything up to `delivered` and has
    /// read up to `at`. None: nothing more is durable.
    pub(crate) fn next(
        &self,
        delivered: Sequence,
        at: Option<LogPosition>,
    ) -> Result<Option<LogStretch>, GoneBefore> {
        self.check(delivered)?;
        let start = HEADER_SIZE as u64;
        let at = at.filter(|at| at.forgotten == self.forgotten);
        let known = at.and_then(|at| Some((self.place_of(at.log)?, at.offset)));
        let by_number =
            || Some((self.logs.partition_point(|it| it.after <= delivered).checked_sub(1)?, start));
        let Some((mut place, mut offset)) = known.or_else(by_number) else { return Ok(None) };
        loop {
            let log = &self.logs[place];
            let (end, has_repeats) = match &log.end {
                ReadableEnd::At(bytes) => (*bytes, true),
                ReadableEnd::Growing(end) => (end.get(), true),
                ReadableEnd::Said(bytes) => (*bytes, false),
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
