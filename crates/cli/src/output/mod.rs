//! Output: tables, pictures, JSON and progress, for all commands.

pub(crate) mod json;
pub(crate) mod json_bytes;
pub(crate) mod keytext;
pub(crate) mod partitions;
pub(crate) mod progress;
pub(crate) mod settings;
pub(crate) mod shell;
pub(crate) mod svg;
pub(crate) mod table;
pub(crate) mod tree_json;
pub(crate) mod tree_picture;
