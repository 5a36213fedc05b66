//! Some of the keys that were asked for in vain lately, by which parts of a filter share memory.
//! ```text
//! one question of 64 --> the last 8192 of them --> how many fall into each part
//! ```
//! Questions are not counted by part: parts come and go, and keys stay what they are. What was
//! asked long ago is forgotten.
//!
//! A question that is not taken costs a comparison, and none ever waits for another. Invariant: a
//! question is as likely to be kept as any other, whatever rhythm questions have.

use std::collections::VecDeque;

use crate::guard::parts::Parts;
use crate::sync::{AtomicU64, Mutex, Ordering, lock, try_lock};

/// One of so many questions is kept.
const EACH: u64 = 64;
/// The most keys that are kept, and of each the most bytes: where it is cut, the part before its
/// own may be meant.
const KEPT_MAX: usize = 8192;
const KEY_BYTES_MAX: usize = 64;

/// The last questions.
#[derive(Default)]
pub(crate) struct AskedLately {
    kept: Mutex<VecDeque<Box<[u8]>>>,
    /// How many were kept, those included that are forgotten.
    noted: AtomicU64,
}

impl AskedLately {
    /// A question has found nothing. `drawn`: any number, all as likely.
    #[inline]
    pub(crate) fn note(&self, key: &[u8], drawn: u64) {
        if drawn < u64::MAX / EACH {
            self.keep(key);
        }
    }

    /// Where another thread is at it, a question is not kept.
    #[cold]
    fn keep(&self, key: &[u8]) {
        let Some(mut kept) = try_lock(&self.kept) else { return };
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(key[..key.len().min(KEY_BYTES_MAX)].into());
        self.noted.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were kept so far.
    pub(crate) fn noted(&self) -> u64 {
        self.noted.load(Ordering::Relaxed)
    }

    /// How many of the last ones fall into each part, in key order.
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
        let asked = AskedLately::default();
        let parts = Parts::empty(&GrfOptions::default(), &[b"d".to_vec(), b"p".to_vec()]);
        assert_eq!(asked.counts(&parts), [0, 0, 0]);
        for (key, times) in [("a", 3), ("d", 5), ("zebra", 1)] {
            (0..times).for_each(|_| asked.note(key.as_bytes(), 0));
        }
        asked.note(b"a", u64::MAX / EACH);
        assert_eq!((asked.counts(&parts), asked.noted()), (vec![3, 5, 1], 9));
        (0..KEPT_MAX).for_each(|_| asked.note(&[b'e'; 4 * KEY_BYTES_MAX], 7));
        assert_eq!(asked.counts(&parts), [0, KEPT_MAX as u64, 0], "the others are forgotten");
        let kept = lock(&asked.kept);
        assert!(kept.iter().all(|key| key.len() == KEY_BYTES_MAX));
    }
}
