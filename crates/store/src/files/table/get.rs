//! A get in one table: the first block that may have the key; and if its entries fill more, a
//! search among these.
//! ```text
//! fences -> block --> found, or nothing
//!                \-> the key goes on in the next block: version_search.rs
//! ```
//! Invariant: a key whose entries are in one block costs one block.

use super::Table;
use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::entries::memtable::Found;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::version_search::VersionSearch;

impl Table {
    /// The newest entry of `key` with a sequence number of at most `at`. Asks no filter, and reads
    /// a block even for a key beyond the bounds: those are for the run to compare.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], at: Sequence, reads: &mut Reads) -> Result<Option<Found>> {
        let number = self.index.fences.find(key);
        if self.block_count() == 0 {
            return Ok(None);
        }
        let block = self.block(number, true, reads)?;
        if let Some((sequence, kind, range)) = block.get(key, at) {
            let value = Value::in_block(block, range);
            return Ok(Some(Found { sequence, kind, value }));
        }
        match VersionSearch::behind(self, number, key) {
            Some(search) => self.get_among(search, key, at, reads),
            None => Ok(None),
        }
    }

    #[cold]
    fn get_among(
        &self,
        mut search: VersionSearch,
        key: &[u8],
        at: Sequence,
        reads: &mut Reads,
    ) -> Result<Option<Found>> {
        loop {
            let number = search.number();
            if let Some(end) = search.saw(self.block(number, true, reads)?, key, at) {
                return Ok(end);
            }
        }
    }
}
