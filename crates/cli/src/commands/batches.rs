//! Writes many entries in batches, which saves locks and needs little memory.
//! ```text
//! entry, entry, ... --> batch --> store     what is written is kept, and counted for messages
//! ```
//! Invariant: the count never exceeds the number of keys in the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use trommel::{Batch, Expiry};

use crate::args::store::OpenStore;
use crate::output::table::counted;
use crate::process::failure::Failure;
use crate::process::signals::LastWords;

pub(crate) const BATCH_ENTRIES: usize = 512;

const BATCH_BYTES: usize = 1 << 20;

/// The least time after which a rate is meaningful.
const RATED: Duration = Duration::from_secs(1);

/// Counts the keys in the store, for messages and signals.
#[derive(Clone)]
pub(crate) struct Kept {
    keys: Arc<AtomicU64>,
    /// The verb of the messages: "loaded", "imported".
    done: &'static str,
}

impl Kept {
    pub(crate) fn new(done: &'static str) -> Self {
        Kept { keys: Arc::default(), done }
    }

    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, keys: u64) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
    }

    /// Returns the message about the keys that were stored before a failure.
    pub(crate) fn summary(&self) -> String {
        match self.keys() {
            0 => format!("no key was {} before it", self.done),
            keys => format!("{} {} before it, and kept", counted(keys, "key"), self.done),
        }
    }

    /// Lets a signal report what it leaves behind. A batch in progress may be stored, too.
    pub(crate) fn reported_by_signals(&self) -> Result<LastWords, Failure> {
        let kept = self.clone();
        LastWords::new(move || match kept.keys() {
            0 => format!("no key was {}, or those of one batch", kept.done),
            keys => format!("at least {} {}, and kept", counted(keys, "key"), kept.done),
        })
    }
}

/// Returns keys per second. None: the time is too short for a meaningful rate.
pub(crate) fn rate(keys: u64, took: Duration) -> Option<f64> {
    (took >= RATED).then(|| keys as f64 / took.as_secs_f64())
}

/// Collects entries into batches, and writes them to a store.
pub(crate) struct Batches<'a> {
    store: &'a OpenStore,
    batch: Batch,
    kept: &'a Kept,
}

impl<'a> Batches<'a> {
    pub(crate) fn new(store: &'a OpenStore, kept: &'a Kept) -> Self {
        Batches { store, batch: store.batch(), kept }
    }

    /// Adds an entry. True: a batch was written.
    pub(crate) fn put(
        &mut self,
        key: &[u8],
        value: &[u8],
        expiry: Option<Expiry>,
    ) -> Result<bool, Failure> {
        match expiry {
            Some(expiry) => self.batch.put_with_expiry(key, value, expiry),
            None => self.batch.put(key, value),
        };
        let is_full = self.batch.len() >= BATCH_ENTRIES || self.batch.size_bytes() >= BATCH_BYTES;
        if is_full {
            self.write()?;
        }
        Ok(is_full)
    }

    /// Writes the collected entries.
    pub(crate) fn write(&mut self) -> Result<(), Failure> {
        let batch = std::mem::replace(&mut self.batch, self.store.batch());
        let keys = batch.len() as u64;
        self.store.db.write(batch).map_err(|error| {
            Failure::of_store(&error, format!("{error} ({})", self.kept.summary()))
        })?;
        self.kept.add(keys);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // Two keys were loaded with "7 per second".
    fn a_rate_takes_a_second() {
        assert_eq!(rate(2, Duration::from_millis(280)), None);
        assert_eq!(rate(3000, Duration::from_secs(2)), Some(1500.0));
    }
}
