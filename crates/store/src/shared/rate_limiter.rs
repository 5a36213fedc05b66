//! Limits merges to a number of bytes per second, which leaves some of the disk to readers.
//! ```text
//! merge step   spends the bytes that it has read
//! flush        spends the bytes that it has written, and never waits
//! allowance    grows with time, up to a tenth of a second's; below zero, merges pause
//! ```
//! Invariant: the limit delays no writer. Merges do not pause while writers are slowed down because
//! of them.

use std::time::Duration;

use crate::sync::{Mutex, lock};

/// The allowance that idle time accumulates, in seconds of the rate. A merge may run at full speed
/// for this long.
const SAVED_SECONDS: f64 = 0.1;

/// A rate limiter for merges.
pub(crate) struct RateLimiter {
    /// None: no limit.
    bytes_per_second: Option<f64>,
    account: Mutex<Account>,
}

/// The allowance.
#[derive(Default)]
struct Account {
    /// The allowance in bytes. Negative: spent in advance.
    allowance: f64,
    /// The time up to which the allowance was credited.
    at: Duration,
}

impl RateLimiter {
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Self {
        let bytes_per_second = bytes_per_second.map(|bytes| bytes as f64);
        RateLimiter { bytes_per_second, account: Mutex::new(Account::default()) }
    }

    /// Takes bytes from the allowance, even if that makes it negative.
    pub(crate) fn spend(&self, bytes: u64, now: Duration) {
        if let Some(rate) = self.bytes_per_second {
            let mut account = lock(&self.account);
            account.credit(rate, now);
            account.allowance -= bytes as f64;
        }
    }

    /// Returns the time until the allowance is no longer negative. None: it is not.
    pub(crate) fn debt(&self, now: Duration) -> Option<Duration> {
        let rate = self.bytes_per_second?;
        let mut account = lock(&self.account);
        account.credit(rate, now);
        let owed = -account.allowance / rate;
        (owed > 0.0).then(|| Duration::from_secs_f64(owed))
    }
}

impl Account {
    /// Credits the time since the last call. If the clock has gone back, credit restarts from
    /// there. Otherwise merges would pause until the clock is where it was.
    fn credit(&mut self, rate: f64, now: Duration) {
        let time = now.saturating_sub(self.at).as_secs_f64();
        self.allowance = (self.allowance + rate * time).min(rate * SAVED_SECONDS);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn what_is_spent_is_paid_for_with_time() {
        let rate_limiter = RateLimiter::new(Some(1_000_000));
        rate_limiter.spend(50_000, millis(1_000));
        assert_eq!(
            rate_limiter.debt(millis(1_000)),
            None,
            "a tenth of a second's bytes are saved up"
        );
        rate_limiter.spend(250_000, millis(1_000));
        assert_eq!(rate_limiter.debt(millis(1_000)), Some(millis(200)));
        rate_limiter.spend(100_000, millis(1_100));
        assert_eq!(rate_limiter.debt(millis(1_100)), Some(millis(200)));
        assert_eq!(rate_limiter.debt(millis(1_300)), None);
    }

    #[test]
    fn a_long_rest_saves_up_no_more_than_a_short_one() {
        let rate_limiter = RateLimiter::new(Some(1_000_000));
        rate_limiter.spend(200_000, Duration::from_secs(3_600));
        assert_eq!(rate_limiter.debt(Duration::from_secs(3_600)), Some(millis(100)));
    }

    #[test] // Nothing was credited until the clock was where it had been.
    fn a_clock_that_goes_back_is_taken_as_it_is() {
        let rate_limiter = RateLimiter::new(Some(1_000_000));
        rate_limiter.spend(200_000, Duration::from_secs(1 << 40));
        assert_eq!(rate_limiter.debt(millis(1_000)), Some(millis(100)));
        assert_eq!(rate_limiter.debt(millis(1_060)), Some(millis(40)));
        assert_eq!(rate_limiter.debt(millis(1_100)), None);
        rate_limiter.spend(200_000, Duration::MAX);
        assert_eq!(rate_limiter.debt(Duration::MAX), Some(millis(100)));
    }

    #[test]
    fn without_a_rate_nothing_is_owed() {
        let rate_limiter = RateLimiter::new(None);
        rate_limiter.spend(u64::MAX, millis(1));
        assert_eq!(rate_limiter.debt(millis(1)), None);
    }
}
