//! The process: how it ends, what it says then, its temporary folders, the signals that end it, and
//! the program beside it.

pub(crate) mod failure;
pub(crate) mod message;
pub(crate) mod peer_program;
pub(crate) mod signals;
pub(crate) mod temporary;
