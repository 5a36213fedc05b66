//! Output: tables, pictures, JSON and progress, for all commands.

pub(crate) mod json;
pub(crate) mod keytext;
pub(crate) mod partitions;
pub(crate) mod progress;
pub(crate) mod svg;
pub(crate) mod table;
pub(crate) mod tree_json;
pub(crate) mod tree_picture;
