//! When writes were made, while logs are kept: a mark for each second that had writes.
//! ```text
//! writes   41 42 43 | 44 ... 57 | 58 59
//! second       7    |     8     |   11        marks: 43, 57, and 59, the newest write so far
//! ```
//! Marks are only in memory. What was there at an opening counts as written then.
//!
//! Invariant: no write up to a mark was begun later than the mark says.

use std::collections::VecDeque;
use std::time::Duration;

use crate::entries::entry::Sequence;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// In milliseconds.
const SECOND: u64 = 1000;
/// If there are more marks, every second one goes.
const MARKS_MAX: usize = 1 << 16;

/// All writes up to a number were begun by a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteTime {
    pub(crate) sequence: u64,
    /// Since the start of 1970.
    pub(crate) milliseconds: u64,
}

#[derive(Default)]
pub(crate) struct WriteTimes {
    /// When the newest group of writes was begun, in milliseconds. Only the writer changes it.
    newest: AtomicU64,
    /// Ascending numbers.
    marks: Mutex<VecDeque<WriteTime>>,
}

impl WriteTimes {
    /// Notes that a group of writes begins. `visible`: the last write before it. Requires: the
    /// caller is the writer, or opens the store.
    #[inline]
    pub(crate) fn note(&self, visible: Sequence, now: Duration) {
        let (now, before) = (milliseconds(now), self.newest.load(Ordering::Relaxed));
        if now / SECOND != before / SECOND {
            self.mark(visible, before);
        }
        self.newest.store(now, Ordering::Relaxed);
    }

    #[cold]
    fn mark(&self, visible: Sequence, milliseconds: u64) {
        let mut marks = lock(&self.marks);
        if marks.back().is_some_and(|newest| newest.sequence >= visible.0) {
            return;
        }
        marks.push_back(WriteTime { sequence: visible.0, milliseconds });
        if marks.len() > MARKS_MAX {
            let mut stays = false;
            marks.retain(|_| {
                stays = !stays;
                stays
            });
        }
    }

    /// Sets the time of everything that an opening has found.
    pub(crate) fn begin(&self, now: Duration) {
        self.newest.store(milliseconds(now), Ordering::Relaxed);
    }

    /// Returns all marks, ascending. The last one is that of `visible`. Requires: that number was
    /// visible before the call. So a group that begins meanwhile makes the mark later, not wrong.
    pub(crate) fn up_to(&self, visible: Sequence) -> Vec<WriteTime> {
        let milliseconds = self.newest.load(Ordering::Relaxed);
        let newest = WriteTime { sequence: visible.0, milliseconds };
        let marks = lock(&self.marks);
        let older = marks.iter().take_while(|it| it.sequence < visible.0).copied();
        older.chain([newest]).collect()
    }

    /// Forgets the marks up to a write.
    pub(crate) fn forget_through(&self, last: Sequence) {
        let mut marks = lock(&self.marks);
        let gone = marks.partition_point(|it| it.sequence <= last.0);
        drop(marks.drain(..gone));
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(times: &WriteTimes, visible: u64) -> Vec<(u64, u64)> {
        let all = times.up_to(Sequence(visible));
        all.into_iter().map(|it| (it.sequence, it.milliseconds)).collect()
    }

    #[test]
    fn a_second_with_writes_has_one_mark_that_is_not_early() {
        let times = WriteTimes::default();
        times.begin(Duration::from_millis(5100));
        assert_eq!(marks(&times, 40), [(40, 5100)]);
        for (visible, now) in [(40, 7000), (41, 7900), (43, 8000), (50, 8300), (57, 11_200)] {
            times.note(Sequence(visible), Duration::from_millis(now));
        }
        let all = [(40, 5100), (43, 7900), (57, 8300), (59, 11_200)];
        assert_eq!(marks(&times, 59), all);
        // A group that was refused.
        times.note(Sequence(59), Duration::from_millis(12_000));
        times.note(Sequence(59), Duration::from_millis(13_000));
        assert_eq!(marks(&times, 60), [&all[..], &[(60, 13_000)]].concat());
        times.forget_through(Sequence(43));
        assert_eq!(marks(&times, 60), [(57, 8300), (59, 11_200), (60, 13_000)]);
    }

    #[test]
    fn there_is_a_bound_on_marks() {
        let times = WriteTimes::default();
        let all = 3 * MARKS_MAX as u64;
        (0..all).for_each(|it| times.note(Sequence(it), Duration::from_secs(it)));
        let marks = marks(&times, all);
        assert!((MARKS_MAX / 2..MARKS_MAX + 2).contains(&marks.len()), "{}", marks.len());
        assert!(marks.is_sorted());
    }
}
