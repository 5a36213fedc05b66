//! The bell that wakes the worker.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Rung by threads that have work for the worker.
#[derive(Default)]
pub(crate) struct Bell {
    is_rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    /// Wakes the worker.
    pub(crate) fn ring(&self) {
        let mut is_rung = self.is_rung.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *is_rung, true) {
            self.heard.notify_one();
        }
    }

    /// Waits until the bell is rung, but no longer than this.
    pub(crate) fn wait(&self, at_most: Duration) {
        let is_rung = self.is_rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.heard.wait_timeout_while(is_rung, at_most, |is_rung| !*is_rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}
