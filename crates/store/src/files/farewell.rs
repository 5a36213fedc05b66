//! A table that has left the tree tells when its last reader is gone: then its file can go.
//!
//! Invariant: it tells once, when it is dropped.

use crate::sync::{Arc, OnceLock};

/// Who is told.
pub(crate) trait LastReader: Send + Sync {
    /// No one reads the table any more.
    fn is_gone(&self);
}

/// Belongs to a table, and is dropped with it by its last reader.
#[derive(Default)]
pub(crate) struct Farewell(OnceLock<Arc<dyn LastReader>>);

impl Farewell {
    /// The table has left the tree.
    pub(crate) fn tell(&self, of: Arc<dyn LastReader>) {
        let _ = self.0.set(of);
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        if let Some(told) = self.0.get() {
            told.is_gone();
        }
    }
}
