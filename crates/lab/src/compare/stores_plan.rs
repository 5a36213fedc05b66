//! What measurements of stores side by side have in common.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::compare::own_tree::OwnTree;
use crate::compare::peer::{Contender, PeerSettings, PeerShape};
use crate::compare::peer_packing::PeerPacking;

/// The stores of a measurement, and what each of them has. The field names are an interface: they
/// are among those of each plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoresPlan {
    /// The stores; what others make is divided by what the first one makes.
    pub contenders: Vec<Contender>,
    /// Memory of filters.
    pub bits_per_key: f64,
    /// Memory for what was read.
    pub block_cache_bytes: usize,
    /// Memory for new entries, of each key space.
    pub write_buffer_bytes: usize,
    /// Threads that merge.
    pub merge_threads: usize,
    /// Seed of all that is drawn.
    pub seed: u64,
    /// Where the stores are made, a folder for each of them in it. Those of YCSB stay there, others
    /// are removed.
    pub folder: PathBuf,
}

impl StoresPlan {
    /// What each store is opened with, if nothing else is said.
    pub(crate) fn settings(&self) -> PeerSettings {
        PeerSettings {
            bits_per_key: self.bits_per_key,
            block_cache_bytes: self.block_cache_bytes,
            write_buffer_bytes: self.write_buffer_bytes,
            merge_threads: self.merge_threads,
            direct: false,
            synced: true,
            packing: PeerPacking::NONE,
            values_apart_from: None,
            value_garbage_share: None,
            shape: PeerShape::Default(OwnTree::default()),
        }
    }
}
