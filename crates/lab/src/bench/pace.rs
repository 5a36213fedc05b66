//! Operations at a steady rate, timed as their senders experience them.
//! ```text
//! due      |    |    |    |    |    |    |         one operation every so often
//! done     |    |    |         ||||  |   |         the fourth took long: the next ones wait,
//!                    <-------->                    and their time runs from when they were due
//! ```
//! A client that waits for a slow operation before it sends the next one counts one slow operation
//! where users see many. This is coordinated omission.
//! Invariant: due times do not depend on how long this thread sleeps, so the rate is kept. Time
//! that the thread overslept does not count: operations due meanwhile are timed from its waking.

use std::time::{Duration, Instant};

/// The shortest wait that is worth a sleep.
const SLACK: Duration = Duration::from_millis(1);

/// The schedule of operations.
pub(crate) struct Pace {
    interval: Option<Duration>,
    next: Instant,
    /// When this thread last woke.
    awake: Instant,
}

impl Pace {
    /// Schedules operations at this rate from now on. None: as fast as possible.
    pub(crate) fn new(ops_per_second: Option<f64>) -> Pace {
        let interval = ops_per_second.map(|rate| Duration::from_secs_f64(1.0 / rate));
        let now = Instant::now();
        Pace { interval, next: now, awake: now }
    }

    /// Delays the whole schedule by `wait`.
    pub(crate) fn after(mut self, wait: Duration) -> Pace {
        self.next += wait;
        self
    }

    /// Whether `end` has come, or no more operation is due before it.
    pub(crate) fn is_over(&self, end: Instant) -> bool {
        self.next.max(Instant::now()) >= end
    }

    /// Waits until the next operation is due. Returns the moment from which to time it.
    pub(crate) fn wait(&mut self) -> Instant {
        let now = Instant::now();
        let Some(interval) = self.interval else { return now };
        let early = self.next.saturating_duration_since(now);
        if early > SLACK {
            std::thread::sleep(early);
            self.awake = Instant::now();
        }
        self.send(interval, Instant::now())
    }

    /// Advances the schedule by the operation that is sent now. Returns the moment from which to
    /// time it.
    fn send(&mut self, interval: Duration, now: Instant) -> Instant {
        let start = self.next.max(self.awake).min(now);
        self.next += interval;
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_write_is_timed_from_when_it_was_due() {
        let mut pace = Pace::new(Some(1000.0));
        let first = pace.wait();
        std::thread::sleep(Duration::from_millis(20));
        // Twenty more operations, a millisecond apart, came due meanwhile.
        for late in 1..=15 {
            assert_eq!(pace.wait() - first, Duration::from_millis(late));
        }
    }

    #[test]
    fn who_oversleeps_keeps_the_rate_and_times_from_when_it_woke() {
        let interval = Duration::from_millis(10);
        let mut pace = Pace::new(Some(100.0));
        let first = pace.next;
        let at = |millis| first + Duration::from_millis(millis);
        // The thread overslept: nothing was sent for 35 milliseconds.
        pace.awake = at(35);
        let starts = [36, 37, 38, 39].map(|now| pace.send(interval, at(now)));
        assert_eq!(starts, [at(35); 4], "due after 0, 10, 20 and 30");
        assert_eq!(pace.send(interval, at(70)), at(40), "this one waited for the fourth");
        assert_eq!(pace.next, at(50), "five were due before");
        assert_eq!(pace.send(interval, at(49)), at(49), "a little early");
    }

    #[test]
    fn an_early_write_waits() {
        let mut pace = Pace::new(Some(100.0));
        let first = pace.wait();
        assert!((1..=3).all(|_| pace.wait() <= Instant::now()));
        assert!(first.elapsed() >= Duration::from_millis(29));
    }

    #[test]
    fn nothing_is_due_behind_the_end() {
        let end = Instant::now() + Duration::from_secs(60);
        let mut pace = Pace::new(Some(1.0 / 40.0));
        assert!(!pace.is_over(end));
        pace.wait();
        assert!(!pace.is_over(end), "the second is due after 40 seconds");
        assert!(pace.after(Duration::from_secs(30)).is_over(end));
        assert!(!Pace::new(None).is_over(end) && Pace::new(None).is_over(Instant::now()));
    }

    #[test]
    fn without_a_rate_nobody_waits() {
        let mut pace = Pace::new(None);
        let before = Instant::now();
        assert!(pace.wait() >= before);
    }
}
