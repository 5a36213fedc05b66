//! A notification when the last reader of a table that has left the tree is gone. Then its file can
//! be removed.
//!
//! Invariant: it notifies once, when it is dropped.

use crate::sync::{Arc, OnceLock};

/// The receiver of the notification.
pub(crate) trait LastReader: Send + Sync {
    /// Nobody reads the table any more.
    fn is_gone(&self);
}

/// Belongs to a table. The table's last reader drops both.
#[derive(Default)]
pub(crate) struct Farewell(OnceLock<Arc<dyn LastReader>>);

impl Farewell {
    /// Registers the receiver. The table has left the tree.
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
