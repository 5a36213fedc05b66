//! A store's files, as bytes and as handles; docs/format.md has a section for each kind.

pub(crate) mod cache;
pub(crate) mod cached_values;
pub(crate) mod dictionary;
pub(crate) mod distinct_keys;
pub(crate) mod farewell;
pub(crate) mod fences;
pub(crate) mod fragments;
pub(crate) mod held_values;
pub(crate) mod key_sample;
pub(crate) mod log_check;
pub(crate) mod log_replay;
pub(crate) mod manifest;
pub(crate) mod names;
pub(crate) mod placed_run;
pub(crate) mod query_blocks;
pub(crate) mod read_ahead;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod run_table;
pub(crate) mod store_folder;
pub(crate) mod table;
pub(crate) mod table_search;
pub(crate) mod unsynced;
pub(crate) mod value_file;
pub(crate) mod value_files;
pub(crate) mod wal;
