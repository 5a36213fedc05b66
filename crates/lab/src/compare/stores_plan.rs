//! The part of a plan that all measurements of several stores share.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::compare::own_tree::OwnTree;
use crate::compare::peer::{Contender, PeerSettings, PeerShape};
use crate::compare::peer_packing::PeerPacking;

/// The stores of a measurement, and their common settings. Field names are an interface: they are
/// fields of each plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoresPlan {
    /// The stores; results are given relative to the first one.
    pub contenders: Vec<Contender>,
    /// Memory of filters, in bits per key.
    pub bits_per_key: f64,
    /// Capacity of the block cache, in bytes.
    pub block_cache_bytes: usize,
    /// Capacity of each key space's memtable, in bytes.
    pub write_buffer_bytes: usize,
    /// Threads that merge.
    pub merge_threads: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// The folder of the stores: each store has a folder in it. Stores of YCSB stay there, others
    /// are removed.
    pub folder: PathBuf,
}

impl StoresPlan {
    /// Returns the default settings of each store.
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
