//! A get among the blocks that one key's entries fill, by halves: snapshots that are held keep any
//! number of them.
//! ```text
//! blocks        4             5             6             7
//! entries       .. k 90 k 80  k 70 .. k 50  k 40 .. k 20  k 10 ..
//! get k at 30   first 4: all newer  ->  6: found, behind its first entry; had that been the one, 5 might have had a newer one
//! ```
//! Invariant: entries in `newer` and before it are newer than what is sought; those from `behind`
//! on are not newer than `best`.

use crate::entries::block::Block;
use crate::entries::entry::Sequence;
use crate::entries::memtable::Found;
use crate::entries::value::Value;
use crate::files::table::Table;

/// A search on its way.
pub(crate) struct VersionSearch {
    newer: usize,
    behind: usize,
    best: Option<Found>,
}

impl VersionSearch {
    /// None: no block behind this one has the key. Requires: of the key it has newer entries alone,
    /// or none.
    #[inline]
    pub(crate) fn behind(table: &Table, number: usize, key: &[u8]) -> Option<VersionSearch> {
        table.continues(number + 1, key).then(|| {
            let (_, last) = table.blocks_of(key);
            VersionSearch { newer: number, behind: last.max(number + 1) + 1, best: None }
        })
    }

    /// The block that is to be searched next.
    pub(crate) fn number(&self) -> usize {
        self.newer.midpoint(self.behind)
    }

    /// Searches it. Some: the search is over, and that was found.
    pub(crate) fn saw(&mut self, block: Block, key: &[u8], at: Sequence) -> Option<Option<Found>> {
        let number = self.number();
        match block.seek(key, at).filter(|sought| sought.is_of_key) {
            None => self.newer = number,
            Some(sought) => {
                let (entry, is_first) = (sought.entry, sought.place == block.first());
                let value = Value::in_block(block, entry.value_at..entry.next.value);
                let found = Found { sequence: entry.sequence, kind: entry.kind, value };
                if !is_first {
                    return Some(Some(found));
                }
                (self.behind, self.best) = (number, Some(found));
            }
        }
        (self.newer + 1 >= self.behind).then(|| self.best.take())
    }
}
