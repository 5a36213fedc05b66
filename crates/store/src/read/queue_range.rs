//! A short range that is scanned again whenever a missing block has been read.
//! ```text
//! scan -> answer
//!   '-> lacks a block -- read --> scan, with all blocks that were read for it -> ...
//! ```
//! Invariant: each scan starts over, at the sequence number that was registered at first. So a scan
//! that lacks no block has the answer; only that scan is counted.

use crate::entries::block::Block;
use crate::entries::key_bounds::KeyBounds;
use crate::error::Result;
use crate::files::query_blocks::{Fetched, Wanted};
use crate::read::scan::{KeyValue, Scan};
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::snapshots::Registered;

/// After this many scans, the range reads its remaining blocks synchronously.
const SCANS_MAX: usize = 16;

/// A range query that is in progress.
pub(crate) struct RangeSearch {
    registered: Registered,
    bounds: KeyBounds,
    limit: usize,
    fetched: Arc<Fetched>,
    /// The number of scans so far.
    scans: usize,
}

impl RangeSearch {
    pub(crate) fn new(registered: Registered, bounds: KeyBounds, limit: usize) -> RangeSearch {
        RangeSearch { registered, bounds, limit, fetched: Arc::default(), scans: 0 }
    }

    /// Scans the range. Returns the answer, or the block that it lacks.
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

    /// A block cannot be read. The next scan reads synchronously and reports the error.
    pub(crate) fn give_up(&mut self) {
        self.scans = SCANS_MAX;
    }

    /// Adds a block that has been read.
    pub(crate) fn arrived(&self, wanted: &Wanted, block: Block) {
        self.fetched.insert(wanted, block);
    }
}
