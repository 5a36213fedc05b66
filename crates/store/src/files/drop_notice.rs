//! A notification when the last reader of a table that has left the tree is gone. Then its file can
//! be removed.
//!
//! Invariant: it notifies once, when it is dropped.

use crate::sync::{Arc, OnceLock};

/// The receiver of the notification.
pub(crate) trait DropListener: Send + Sync {
    /// Nobody reads the table any more.
    fn was_dropped(&self);
}

/// Belongs to a table. The table's last reader drops both.
#[derive(Default)]
pub(crate) struct DropNotice(OnceLock<Arc<dyn DropListener>>);

impl DropNotice {
    /// Registers the receiver. The table has left the tree.
    pub(crate) fn register(&self, listener: Arc<dyn DropListener>) {
        let _ = self.0.set(listener);
    }
}

impl Drop for DropNotice {
    fn drop(&mut self) {
        if let Some(listener) = self.0.get() {
            listener.was_dropped();
        }
    }
}
