//! What changes the store: writes of each kind, key spaces, flushes, merges, bulk loads, feeds.

#[path = "../door/mod.rs"]
mod door;

mod changes;
mod clocks;
mod compact;
mod compression;
mod delete_range;
mod dump;
mod eager_tombstones;
mod events;
mod expiry;
mod giving_up;
mod group_commit;
mod ingest;
mod key_locks;
mod keyspaces;
mod large_values;
mod many_keyspaces;
mod merge_operator;
mod policies;
mod progress;
mod queue;
mod space;
mod sync_interval;
mod transactions;
mod unlogged;
mod unsorted;
mod values_ahead;
mod versions;
