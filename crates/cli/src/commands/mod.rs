//! The commands. Each file has the arguments of one command, and its `run`.
//! ```text
//! arguments --> run(arguments, json, out) --> Outcome
//! ```
//! Invariant: with `json`, a command writes JSON and nothing else.

pub(crate) mod backup;
mod batches;
pub(crate) mod bench;
pub(crate) mod changes;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod count;
pub(crate) mod delete;
pub(crate) mod delete_range;
pub(crate) mod demo;
pub(crate) mod dump;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod help_markdown;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod keyspaces;
pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod put;
pub(crate) mod repair;
pub(crate) mod replay;
pub(crate) mod scan;
pub(crate) mod stats;
pub(crate) mod stress;
pub(crate) mod upgrade;
pub(crate) mod verify;
pub(crate) mod victim;
