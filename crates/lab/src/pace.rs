//! Writes at a steady rate, timed as those see it who send them.
//! ```text
//! due      |    |    |    |    |    |    |         one write every so often
//! done     |    |    |         ||||  |   |         the fourth took long: the next ones wait in line,
//!                    <-------->                    and their time runs from when they were due
//! ```
//! A writer that waits for a slow write before it sends the next one would count one slow write where users see many.
//! Invariant: time that this thread overslept is nobody's.

use std::time::{Duration, Instant};

/// A sleep is not worth it for less.
const SLACK: Duration = Duration::from_millis(1);

/// When the next write is due.
pub(crate) struct Pace {
    interval: Option<Duration>,
    next: Instant,
}

impl Pace {
    /// So many writes a second, from now on. None: as fast as they go.
    pub(crate) fn new(writes_per_second: Option<f64>) -> Pace {
        let interval = writes_per_second.map(|rate| Duration::from_secs_f64(1.0 / rate));
        Pace { interval, next: Instant::now() }
    }

    /// Waits until the next write is due; gives the moment from which its time runs.
    pub(crate) fn wait(&mut self) -> Instant {
        let now = Instant::now();
        let Some(interval) = self.interval else { return now };
        let early = self.next.saturating_duration_since(now);
        if early > SLACK {
            std::thread::sleep(early);
            self.next = Instant::now();
        }
        let due = self.next.min(Instant::now());
        self.next += interval;
        due
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
        // Twenty more were due meanwhile, a millisecond apart.
        for late in 1..=15 {
            assert_eq!(pace.wait() - first, Duration::from_millis(late));
        }
    }

    #[test]
    fn an_early_write_waits() {
        let mut pace = Pace::new(Some(100.0));
        let first = pace.wait();
        assert!((1..=3).all(|_| pace.wait() <= Instant::now()));
        assert!(first.elapsed() >= Duration::from_millis(29));
    }

    #[test]
    fn without_a_rate_nobody_waits() {
        let mut pace = Pace::new(None);
        let before = Instant::now();
        assert!(pace.wait() >= before);
    }
}
