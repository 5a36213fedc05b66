//! The overlay's entries of one list, in their chunk.
//! ```text
//! chunk  packed: tables | entries of list 0, list 1, ...
//!        recent: firsts | words of list 0, list 1, ...
//! ```
//! Invariant: as the chunk's.

use crate::base::filter::Trace;
use crate::base::shape::Codes;
use crate::grf::overlay::chunk::Chunk;
use crate::grf::overlay::packed::Packed;
use crate::grf::overlay::recent::Recent;
use crate::grf::sizes::Slot;

/// Entries that one answer looks at before it says "all".
pub(crate) const ENTRIES_ASKED_MAX: usize = 256;

/// The chunk of a list, and which of the chunk's lists it is.
#[derive(Clone, Copy)]
pub(crate) struct ListEntries<'a> {
    pub(crate) chunk: &'a Chunk,
    pub(crate) list: usize,
}

impl ListEntries<'_> {
    /// Prefetches the list's tables, and the likely place of the entries of a key that lies so far
    /// across the list.
    #[inline(always)]
    pub(crate) fn load_about<T: Trace>(&self, across: usize, trace: &mut T) {
        if let Some(bytes) = self.chunk.packed.as_deref() {
            Packed::load_about(bytes, self.list, across, trace);
        }
        if let Some(words) = self.chunk.recent.as_deref() {
            Recent::load_about(words, self.list, across, trace);
        }
    }

    /// The slot of a bucket, whose memory is asked for without waiting for it.
    #[inline(always)]
    pub(crate) fn slot(&self, bucket: usize) -> Slot {
        match self.chunk.packed() {
            None => Slot::default(),
            Some(packed) => {
                let slot = packed.slot(self.list, bucket);
                packed.load_slot(&slot);
                slot
            }
        }
    }

    /// Adds the codes of all entries from one place of a bucket to another.
    #[inline(always)]
    pub(crate) fn collect<T: Trace>(
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
        if let Some(packed) = self.chunk.packed() {
            packed.touch_table(self.list, bucket, trace);
            packed.visit_between(&slot, places, trace, &mut push);
        }
        if let Some(recent) = self.chunk.recent() {
            recent.visit(self.list, places, trace, push);
        }
        if asked > ENTRIES_ASKED_MAX {
            codes.push_all();
        }
    }
}
