//! The overlay entries of one list, in their chunk.
//! ```text
//! chunk  old:   tables | entries of list 0, list 1, ...
//!        young: tables | entries of list 0, list 1, ...
//! ```
//! Invariant: that of the chunk.

use crate::base::filter::Trace;
use crate::base::shape::Codes;
use crate::grf::overlay::chunk::Chunk;
use crate::grf::overlay::packed::Packed;
use crate::grf::sizes::Slots;

/// An answer reads at most this many entries before it becomes "all".
pub(crate) const ENTRIES_VISITED_MAX: usize = 256;

/// The chunk of a list, and the list's index in it.
#[derive(Clone, Copy)]
pub(crate) struct ListEntries<'a> {
    pub(crate) chunk: &'a Chunk,
    pub(crate) list: usize,
}

impl ListEntries<'_> {
    /// Prefetches the list's tables, and the likely position of a key's entries. `across`: the
    /// key's relative position in the list.
    #[inline(always)]
    pub(crate) fn load_about<T: Trace>(&self, across: usize, trace: &mut T) {
        for bytes in self.chunk.tiers.iter().flatten() {
            Packed::load_about(bytes, self.list, across, trace);
        }
    }

    /// Returns the slots of a bucket, and prefetches them.
    #[inline(always)]
    pub(crate) fn slots(&self, bucket: usize) -> Slots {
        let mut slots = Slots::default();
        for (slot, bytes) in slots.iter_mut().zip(&self.chunk.tiers) {
            if let Some(packed) = bytes.as_deref().map(Packed::new) {
                *slot = packed.slot(self.list, bucket);
                packed.load_slot(slot);
            }
        }
        slots
    }

    /// Adds the codes of all entries between two places of a bucket.
    #[inline(always)]
    pub(crate) fn collect<T: Trace>(
        &self,
        (bucket, slots): (usize, &Slots),
        places: (u32, u32),
        codes: &mut Codes,
        trace: &mut T,
    ) {
        trace.touch(core::ptr::from_ref(self.chunk) as usize, size_of::<Chunk>());
        let mut visited = 0;
        let mut push = |span| {
            codes.push(span);
            visited += 1;
            visited <= ENTRIES_VISITED_MAX
        };
        for (slot, bytes) in slots.iter().zip(&self.chunk.tiers) {
            if let Some(packed) = bytes.as_deref().map(Packed::new) {
                packed.touch_table(self.list, bucket, trace);
                packed.visit_between(slot, places, trace, &mut push);
            }
        }
        if visited > ENTRIES_VISITED_MAX {
            codes.push_all();
        }
    }
}
