//! Partitions of the last level, and the progress of a merge by partitions, as plain data.
//! ```text
//! partition   [d, p)   tables of the oldest run | keys in its part's base | entries in its overlay
//! ```
//! Invariant: the partitions cover all keys, in key order. All numbers are of one version.

use crate::entries::key_bounds::KeyBounds;
use crate::plan::layout::Layout;
use crate::tree::version::Version;

/// A key range of the last level that is merged as one. It has its own part of the global filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionStats {
    /// Its lower bound. It ends where the next partition begins.
    pub from: Vec<u8>,
    /// Tables of the oldest run with keys in it.
    pub tables: u64,
    /// Entries of these tables.
    pub entries: u64,
    /// Bytes of these tables.
    pub bytes: u64,
    /// For a global filter: keys in the part's base.
    pub base_entries: u64,
    /// For a global filter: entries in the part's overlay.
    pub overlay_entries: u64,
    /// For a global filter: memory of the part, in bytes.
    pub filter_bytes: u64,
    /// For a global filter: memory of the part's base, in bytes.
    pub base_bytes: u64,
}

/// A merge into the last level that proceeds partition by partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnderWay {
    /// The number of inputs that still have keys, without the oldest run.
    pub runs: u64,
    /// Keys before this one are merged.
    pub done_to: Vec<u8>,
}

pub(crate) fn partitions(version: &Version) -> Vec<PartitionStats> {
    let layout = &version.layout;
    layout.partitions().map(|bounds| partition(version, bounds)).collect()
}

fn partition(version: &Version, bounds: KeyBounds) -> PartitionStats {
    let tables = version.layout.runs.last().map_or(&[][..], |oldest| oldest.within(&bounds));
    let parts = version.guard.parts();
    let size = parts.map(|parts| parts.size_at(&bounds.from)).unwrap_or_default();
    PartitionStats {
        from: bounds.from,
        tables: tables.len() as u64,
        entries: tables.iter().map(|table| table.entries).sum(),
        bytes: tables.iter().map(|table| table.bytes_within()).sum(),
        base_entries: size.base_entries,
        overlay_entries: size.overlay_entries,
        filter_bytes: size.base_bytes + size.overlay_bytes,
        base_bytes: size.base_bytes,
    }
}

pub(crate) fn under_way(layout: &Layout) -> Option<UnderWay> {
    let merge = layout.last_merge.as_ref()?;
    let inputs = layout.runs.iter().filter(|run| merge.inputs.contains(&run.id));
    Some(UnderWay { runs: inputs.count() as u64, done_to: merge.done_to.clone() })
}
