//! The process: its exit status, its messages, its temporary folders, signals, and the program with
//! the other engines.

pub(crate) mod failure;
pub(crate) mod message;
pub(crate) mod peer_program;
pub(crate) mod signals;
pub(crate) mod temporary;
