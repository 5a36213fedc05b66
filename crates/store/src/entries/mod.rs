//! Entries: what is written, its order, and what holds and walks it in memory.

pub(crate) mod append_list;
pub(crate) mod batch;
pub(crate) mod block;
pub(crate) mod block_cursor;
pub(crate) mod compression;
pub(crate) mod cursor;
pub(crate) mod cursor_heap;
pub(crate) mod entry;
pub(crate) mod expiry;
pub(crate) mod held_operands;
pub(crate) mod interval_tree;
pub(crate) mod key_bounds;
pub(crate) mod keys;
pub(crate) mod keyspace_id;
pub(crate) mod memtable;
pub(crate) mod memtable_bloom;
pub(crate) mod memtable_tombstones;
pub(crate) mod memtable_writes;
pub(crate) mod merge_cursor;
pub(crate) mod merge_operator;
pub(crate) mod packed;
pub(crate) mod retention;
pub(crate) mod skiplist;
pub(crate) mod tombstones;
pub(crate) mod value;
pub(crate) mod value_ref;
