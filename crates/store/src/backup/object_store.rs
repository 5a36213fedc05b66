//! The interface to the place of backups: named objects, each stored as a whole.

use std::io::{Read, Result};

/// A place for objects: a folder or a service. Names consist of ASCII letters, digits, `-` and `.`.
pub trait ObjectStore: Send + Sync {
    /// Returns a name of the place for error messages.
    fn place(&self) -> String;

    /// Stores an object of `bytes` bytes, read from `source`, and replaces one with the same name.
    /// When this returns, the object is durable. After an error, the old object, if any, is
    /// unchanged.
    fn put(&self, name: &str, bytes: u64, source: &mut dyn Read) -> Result<()>;

    /// Returns a reader of an object. `NotFound`: no object has this name.
    fn get(&self, name: &str) -> Result<Box<dyn Read + '_>>;

    /// Returns the names that begin with `prefix`, with the length of each object in bytes, in any
    /// order.
    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>>;

    /// Removes an object. Succeeds if there is none.
    fn remove(&self, name: &str) -> Result<()>;
}
