//! The overlay's entries of one list, in their chunk.
//! ```text
//! chunk    settled: tables | entries of list 0, list 1, ...      young: firsts | words of list 0, list 1, ...
//! ```
//! Invariant: as the chunk's.

use super::chunk::Chunk;
use super::overlay::{Slot, range};
use super::settled::Settled;
use super::young::Young;
use crate::filter::Trace;
use crate::shape::Codes;

/// Entries that one answer looks at before it says "all".
pub(super) const ENTRIES_ASKED_MAX: usize = 256;

/// The chunk of a list, and which of the chunk's lists it is.
#[derive(Clone, Copy)]
pub(super) struct ListEntries<'a> {
    pub(super) chunk: &'a Chunk,
    pub(super) list: usize,
}

impl ListEntries<'_> {
    /// Asks for the memory of the list's tables and of where the entries of a key are likely to be that lies so far across the list.
    #[inline(always)]
    pub(super) fn load_about<T: Trace>(&self, across: usize, trace: &mut T) {
        if let Some(bytes) = self.chunk.settled.as_deref() {
            Settled::load_about(bytes, self.list, across, trace);
        }
        if let Some(words) = self.chunk.young.as_deref() {
            Young::load_about(words, self.list, across, trace);
        }
    }

    /// The slot of a bucket, whose memory is asked for without waiting for it.
    #[inline(always)]
    pub(super) fn slot(&self, bucket: usize) -> Slot {
        match self.chunk.settled() {
            None => (0, 0),
            Some(settled) => {
                let slot = settled.slot(self.list, bucket);
                settled.load_entry(slot.start);
                (slot.start as u32, slot.end as u32)
            }
        }
    }

    /// Adds the codes of all entries from one place of a bucket to another.
    #[inline(always)]
    pub(super) fn collect<T: Trace>(
        &self,
        (bucket, slot): (usize, Slot),
        places: (u32, u32),
        codes: &mut Codes,
        trace: &mut T,
    ) {
        trace.touch(std::ptr::from_ref(self.chunk) as usize, size_of::<Chunk>());
        let mut asked = 0;
        let mut push = |span| {
            codes.push(span);
            asked += 1;
            asked <= ENTRIES_ASKED_MAX
        };
        if let Some(settled) = self.chunk.settled() {
            settled.touch_table(self.list, bucket, trace);
            settled.visit_between(range(slot), places, trace, &mut push);
        }
        if let Some(young) = self.chunk.young() {
            young.visit(self.list, places, trace, |_, span| push(span));
        }
        if asked > ENTRIES_ASKED_MAX {
            codes.push_all();
        }
    }
}
