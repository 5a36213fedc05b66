//! Keys of recent queries that found nothing. Parts of a filter divide their memory by them.
//! ```text
//! one query of 64 --> the last 8192 of these --> how many fall into each part
//! ```
//! Keys are kept, not counts by part, since parts come and go. Old queries are forgotten.
//!
//! A query that is not sampled costs a comparison, and no query waits for another. Invariant: each
//! query is as likely to be sampled as any other, whatever rhythm queries have.

use std::collections::VecDeque;

use crate::guard::parts::Parts;
use crate::sync::{AtomicU64, Mutex, Ordering, lock, try_lock};

/// One query of this many is sampled.
const EACH: u64 = 64;
/// The most keys that are kept, and the most bytes of each. A cut key may count for the part before
/// its own.
const KEPT_MAX: usize = 8192;
const KEY_BYTES_MAX: usize = 64;

/// The sampled queries, oldest first.
#[derive(Default)]
pub(crate) struct RecentEmptyQueries {
    kept: Mutex<VecDeque<Box<[u8]>>>,
    /// The number of queries that were sampled, including forgotten ones.
    noted: AtomicU64,
}

impl RecentEmptyQueries {
    /// Notes a query that found nothing. `drawn`: a uniformly distributed number.
    #[inline]
    pub(crate) fn note(&self, key: &[u8], drawn: u64) {
        if drawn < u64::MAX / EACH {
            self.keep(key);
        }
    }

    /// Adds a key to the sample. While another thread holds the lock, the key is dropped.
    #[cold]
    fn keep(&self, key: &[u8]) {
        let Some(mut kept) = try_lock(&self.kept) else { return };
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(key[..key.len().min(KEY_BYTES_MAX)].into());
        self.noted.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many queries were sampled so far.
    pub(crate) fn noted(&self) -> u64 {
        self.noted.load(Ordering::Relaxed)
    }

    /// Returns how many of the sampled queries fall into each part, in key order.
    pub(crate) fn counts(&self, parts: &Parts) -> Vec<u64> {
        let mut counts = vec![0; parts.each().len()];
        lock(&self.kept).iter().for_each(|key| counts[parts.place_of(key)] += 1);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trommel_filters::GrfOptions;

    #[test]
    fn the_last_questions_count_where_they_fall() {
        let recent = RecentEmptyQueries::default();
        let parts = Parts::empty(&GrfOptions::default(), &[b"d".to_vec(), b"p".to_vec()]);
        assert_eq!(recent.counts(&parts), [0, 0, 0]);
        for (key, times) in [("a", 3), ("d", 5), ("zebra", 1)] {
            (0..times).for_each(|_| recent.note(key.as_bytes(), 0));
        }
        recent.note(b"a", u64::MAX / EACH);
        assert_eq!((recent.counts(&parts), recent.noted()), (vec![3, 5, 1], 9));
        (0..KEPT_MAX).for_each(|_| recent.note(&[b'e'; 4 * KEY_BYTES_MAX], 7));
        assert_eq!(recent.counts(&parts), [0, KEPT_MAX as u64, 0], "the others are forgotten");
        let kept = lock(&recent.kept);
        assert!(kept.iter().all(|key| key.len() == KEY_BYTES_MAX));
    }
}
