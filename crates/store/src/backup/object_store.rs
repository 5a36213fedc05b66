//! Where backups are kept, as they need it: objects with names, each stored as a whole.

use std::io::{Read, Result};

/// A place for objects: a folder, or a service. Names have letters, digits, `-` and `.`.
pub trait ObjectStore: Send + Sync {
    /// What people call the place, for messages.
    fn place(&self) -> String;

    /// Stores an object of `bytes` bytes, which `source` gives; in the place of one that has the
    /// name. When it returns, the object is durable. After an error the name has what it had.
    fn put(&self, name: &str, bytes: u64, source: &mut dyn Read) -> Result<()>;

    /// Reads an object. `NotFound`: there is none of this name.
    fn get(&self, name: &str) -> Result<Box<dyn Read + '_>>;

    /// The names that begin with `prefix`, and their bytes, in any order.
    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>>;

    /// Removes an object. There may be none.
    fn remove(&self, name: &str) -> Result<()>;
}
