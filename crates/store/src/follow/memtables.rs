//! The memtables of a followed tree: entries of logs that are in no table, as far as the follower
//! knows.
//! ```text
//! log ends        the active memtable is sealed if it is large enough: the writer has sealed one
//! flush up to L   memtables up to L are dropped; of one that spans L, the newer entries stay
//! ```
//! Invariants: an entry is in a memtable or in a table, not in both, since operands must not be
//! merged twice. Memtables that readers may have do not change, except that newer entries are
//! added.

use crate::entries::entry::{Entry, Sequence};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::{Memtable, MemtableSize};
use crate::entries::memtable_writes::writes_up_to;
use crate::error::Result;
use crate::files::held_values::HeldValues;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::opening::{Recovered, nothing};
use crate::tree::version::{Active, Sealed, Version};

/// The inverse of the fill from which on a memtable is sealed at the end of a log.
const SEALED_PART: usize = 8;

/// Adds an entry that is newer than everything in the tree's memtables. If its value is apart, its
/// file is held.
pub(super) fn insert(tree: &OpenTree, entry: &Entry<'_>) -> Result<()> {
    let version = tree.current.pin();
    if let Some(Ok(at)) = entry.value_ref() {
        let store = &tree.table_files.values.store;
        let file = store.found(at.file)?;
        file.check_head(store.files(), &at)?;
        version.active.values.hold(&file, &at);
    }
    version.active.memtable.insert(entry.key, entry.sequence, entry.kind, entry.value);
    Ok(())
}

/// Seals the active memtable if it is full, or at the end of a log if it is large enough. `last`:
/// nothing in it is newer.
pub(super) fn seal_if_full(tree: &OpenTree, size: MemtableSize, last: Sequence, log_ends: bool) {
    let version = tree.current.hold();
    let active = &version.active;
    let part = if log_ends { SEALED_PART } else { 1 };
    if active.memtable.is_empty() || active.memtable.size_bytes() * part < size.expected_bytes() {
        return;
    }
    let sealed = Arc::new(sealed(&active.memtable, (active.first, last), &active.values));
    tree.current.store(Arc::new(version.seal(sealed, nothing(size, Sequence(last.0 + 1)))));
}

/// Returns the memtables that remain when tables have all entries up to `flushed`. `last`: nothing
/// in memory is newer.
pub(super) fn kept(
    version: &Version,
    size: MemtableSize,
    (flushed, last): (Sequence, Sequence),
) -> Recovered {
    let Version { active, sealed: all, layout, .. } = version;
    let newer = |memtable: &Arc<Sealed>| match memtable {
        memtable if memtable.last <= flushed => None,
        memtable if memtable.first > flushed => Some(Arc::clone(memtable)),
        memtable => {
            let newer = newer_than(&memtable.memtable, size, flushed);
            let numbers = (Sequence(flushed.0 + 1), memtable.last);
            Some(Arc::new(sealed(&newer, numbers, &memtable.values)))
        }
    };
    let sealed = all.iter().filter_map(newer).collect();
    let next = Sequence(flushed.0 + 1);
    let active = match active {
        active if active.first > flushed => active.clone(),
        _ if last <= flushed => nothing(size, next),
        active => {
            let newer = newer_than(&active.memtable, size, flushed);
            Active::new(newer, next).holding(Arc::clone(&active.values))
        }
    };
    Recovered { active, sealed, next_flush: layout.next_flush }
}

fn sealed(
    memtable: &Arc<Memtable>,
    (first, last): (Sequence, Sequence),
    values: &Arc<HeldValues>,
) -> Sealed {
    let (memtable, values) = (Arc::clone(memtable), Arc::clone(values));
    Sealed { memtable, first_log: None, first, last, flush: Default::default(), values }
}

/// Copies the entries that are newer than `flushed` to a new memtable.
fn newer_than(memtable: &Memtable, size: MemtableSize, flushed: Sequence) -> Arc<Memtable> {
    let newer = Memtable::sized(size);
    let all = std::iter::once((KeyspaceId::DEFAULT, memtable));
    for write in writes_up_to(all, Sequence::MAX) {
        let Entry { key, sequence, kind, value } = write.entry;
        if sequence > flushed {
            newer.insert(key, sequence, kind, value);
        }
    }
    Arc::new(newer)
}
