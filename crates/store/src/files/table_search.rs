//! The search of one table for a key, block by block. Its driver reads the blocks.
//! ```text
//! fences -> block --> found, or nothing
//!                \-> the key continues in the next block: bisect its blocks
//!
//! blocks        4            5            6            7
//! entries       .. k 90 k 80 k 70 .. k 50 k 40 .. k 20 k 10 ..
//! get k at 30   4: all newer -> 6: found, behind its first entry
//!               (had it been the first entry, 5 might have a newer one)
//! ```
//! Snapshots may keep any number of a key's entries. Invariants: a key whose entries lie in one
//! block costs one block. While bisecting, entries up to block `newer` are newer than `at`. Those
//! from block `behind` on are not newer than `best`.

use crate::entries::block::{Block, Parsed};
use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::entries::memtable::FoundEntry;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::table::Table;

/// A search in progress.
#[derive(Default)]
pub(crate) struct TableSearch {
    /// The block to search next.
    number: usize,
    newer: usize,
    /// 0: the first block was not searched yet.
    behind: usize,
    best: Option<FoundEntry>,
}

impl TableSearch {
    /// Begins with a table, from any state. Returns its first block to search. `None`: it has no
    /// blocks.
    #[inline(always)]
    pub(crate) fn begin(&mut self, table: &Table, key: &[u8]) -> Option<usize> {
        (self.number, self.behind) = (table.first_block_of(key), 0);
        (table.block_count() > 0).then_some(self.number)
    }

    /// The block to search next.
    #[inline]
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Searches that block for the newest entry of the key with a sequence number of at most `at`.
    /// `Some`: the search of the table is over, with this result. Requires: table and key are those
    /// of `begin`.
    #[inline]
    pub(crate) fn saw(
        &mut self,
        table: &Table,
        block: Block,
        key: &[u8],
        at: Sequence,
    ) -> Option<Option<FoundEntry>> {
        if self.behind > 0 {
            return self.saw_half(block, key, at);
        }
        if let Some(sought) = block.seek(key, at).filter(|sought| sought.is_of_key) {
            return Some(Some(found(block, &sought.entry)));
        }
        if !table.continues(self.number + 1, key) {
            return Some(None);
        }
        self.begin_halves(table, key);
        None
    }

    #[cold]
    fn begin_halves(&mut self, table: &Table, key: &[u8]) {
        let (_, last) = table.blocks_of(key);
        (self.newer, self.behind) = (self.number, last.max(self.number + 1) + 1);
        self.number = self.newer.midpoint(self.behind);
    }

    #[cold]
    fn saw_half(&mut self, block: Block, key: &[u8], at: Sequence) -> Option<Option<FoundEntry>> {
        match block.seek(key, at).filter(|sought| sought.is_of_key) {
            None => self.newer = self.number,
            Some(sought) => {
                let is_first = sought.place == block.first();
                let found = found(block, &sought.entry);
                if !is_first {
                    self.best = None;
                    return Some(Some(found));
                }
                (self.behind, self.best) = (self.number, Some(found));
            }
        }
        self.number = self.newer.midpoint(self.behind);
        (self.newer + 1 >= self.behind).then(|| self.best.take())
    }
}

#[inline]
fn found(block: Block, entry: &Parsed) -> FoundEntry {
    let value = Value::in_block(block, entry.value_at..entry.next.value);
    FoundEntry { sequence: entry.sequence, kind: entry.kind, value }
}

impl Table {
    /// Returns the newest entry of `key` with a sequence number of at most `at`. Asks no filter,
    /// and reads a block even for a key outside of the bounds. The run compares those.
    pub(crate) fn get(
        &self,
        key: &[u8],
        at: Sequence,
        reads: &mut Reads,
    ) -> Result<Option<FoundEntry>> {
        let mut search = TableSearch::default();
        if search.begin(self, key).is_none() {
            return Ok(None);
        }
        loop {
            let block = self.block(search.number(), true, reads)?;
            if let Some(found) = search.saw(self, block, key, at) {
                return Ok(found);
            }
        }
    }
}
