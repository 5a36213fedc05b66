//! A short range that is scanned again when a block has come that it lacked.
//! ```text
//! scan -> answer
//!   '-> lacks a block -- read --> scan, with all blocks that were read for it -> ...
//! ```
//! Invariant: each scan begins anew, at the sequence number that was registered at first. So any
//! scan that lacks nothing has the answer; it alone is counted.

use crate::entries::block::Block;
use crate::entries::key_bounds::KeyBounds;
use crate::error::Result;
use crate::files::query_blocks::{Fetched, Wanted};
use crate::read::scan::{KeyValue, Scan};
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::snapshots::Registered;

/// A range that needs more blocks than this waits for the rest, one after the other.
const SCANS_MAX: usize = 16;

/// A range on its way.
pub(crate) struct RangeSearch {
    registered: Registered,
    bounds: KeyBounds,
    limit: usize,
    fetched: Arc<Fetched>,
    /// How often it was scanned.
    scans: usize,
}

impl RangeSearch {
    pub(crate) fn new(registered: Registered, bounds: KeyBounds, limit: usize) -> RangeSearch {
        RangeSearch { registered, bounds, limit, fetched: Arc::default(), scans: 0 }
    }

    /// The answer, or the block that it needs.
    pub(crate) fn scan(
        &mut self,
        tree: &Arc<OpenTree>,
    ) -> std::result::Result<Result<Vec<KeyValue>>, Wanted> {
        self.scans += 1;
        let scan = Scan::new(tree, self.registered.clone(), self.bounds.clone());
        let mut scan = match self.scans {
            SCANS_MAX.. => scan,
            _ => scan.with_blocks(Arc::clone(&self.fetched)),
        };
        let entries = scan.by_ref().take(self.limit).collect();
        match self.fetched.take_missing() {
            None => Ok(entries),
            Some(wanted) => {
                scan.forget();
                Err(wanted)
            }
        }
    }

    /// A block that it needs cannot be read: the scan finds that out by itself.
    pub(crate) fn give_up(&mut self) {
        self.scans = SCANS_MAX;
    }

    /// A block that it needs has come.
    pub(crate) fn arrived(&self, wanted: &Wanted, block: Block) {
        self.fetched.insert(wanted, block);
    }
}
