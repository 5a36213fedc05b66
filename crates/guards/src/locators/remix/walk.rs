//! A walk over the entries of the sorted view, in either direction. It knows the run of each entry
//! and its rank there, without reading keys.
//! ```text
//! selectors    3  |  1    0   +3    3  |  1    3
//! walk                    ^                          position between two entries
//! counts       for each run, its entries before the position: the rank of its next one
//! ```
//! It keeps its view alive and borrows nothing. Invariant: the counts are those of the selectors
//! before the position.

use std::sync::Arc;

use trommel_filters::{Selected, SortedWalk};

use super::sorted::View;

/// A position between two entries of a [`SortedRemix`](super::SortedRemix).
pub(super) struct RemixWalk {
    view: Arc<View>,
    /// The number of entries before the position.
    at: u64,
    len: u64,
    /// How many of them are in each run.
    counts: Vec<u64>,
}

impl RemixWalk {
    /// A walk before the nth entry of a segment, or after its last one if it has fewer.
    pub(super) fn new(view: &Arc<View>, segment: usize, nth: usize) -> RemixWalk {
        let entries = view.entries(segment);
        let counts = (0..view.slots).map(|slot| view.ranks.of(segment, slot)).collect();
        let len = view.len();
        let mut walk = RemixWalk { view: Arc::clone(view), at: entries.start, len, counts };
        let end = entries.end.min(entries.start.saturating_add(nth as u64));
        while walk.at < end {
            walk.forward();
        }
        walk
    }
}

impl SortedWalk for RemixWalk {
    #[inline]
    fn forward(&mut self) -> Option<Selected> {
        if self.at == self.len {
            return None;
        }
        let (slot, is_older) = self.view.selector(self.at);
        self.at += 1;
        let count = &mut self.counts[usize::from(slot.0)];
        *count += 1;
        Some(Selected { slot, rank: *count - 1, is_older })
    }

    #[inline]
    fn back(&mut self) -> Option<Selected> {
        self.at = self.at.checked_sub(1)?;
        let (slot, is_older) = self.view.selector(self.at);
        let count = &mut self.counts[usize::from(slot.0)];
        *count -= 1;
        Some(Selected { slot, rank: *count, is_older })
    }

    #[inline]
    fn is_within_key(&self) -> bool {
        self.at < self.len && self.view.selector(self.at).1
    }

    fn is_at_end(&self) -> bool {
        self.at == self.len
    }
}
