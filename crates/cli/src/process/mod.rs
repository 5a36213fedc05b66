//! The process: how it ends, its temporary folders, the signals that end it, and the program beside
//! it.

pub(crate) mod failure;
pub(crate) mod peer_program;
pub(crate) mod signals;
pub(crate) mod temporary;
