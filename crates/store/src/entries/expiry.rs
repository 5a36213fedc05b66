//! The expiry of an entry.
//! ```text
//! stored value    milliseconds u64, little-endian | the user's value
//! ```
//! Invariant: an expired entry hides older entries of its key, as a deletion does. A merge drops it
//! only where it may drop a deletion, so nothing that it hid reappears.

use std::time::Duration;

use crate::entries::entry::Entry;
use crate::storage::clock::Clock;

/// Length in bytes of the time that precedes the value.
pub(crate) const EXPIRY_BYTES: usize = size_of::<u64>();

/// The time at which an entry expires, by the clock of the store's environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expiry {
    milliseconds: u64,
}

impl Expiry {
    /// An expiry that never comes.
    pub const NEVER: Expiry = Expiry { milliseconds: u64::MAX };

    /// Creates an expiry from milliseconds since the Unix epoch. `u64::MAX` means never.
    pub const fn at_milliseconds(milliseconds: u64) -> Self {
        Expiry { milliseconds }
    }

    /// Milliseconds since the Unix epoch.
    pub const fn milliseconds(self) -> u64 {
        self.milliseconds
    }

    /// Returns the expiry `ttl` from now, rounded up to milliseconds. If it exceeds what a clock
    /// can show, it never comes.
    pub(crate) fn after(ttl: Duration, clock: &dyn Clock) -> Self {
        let at = clock.since_epoch().saturating_add(ttl).as_nanos().div_ceil(1_000_000);
        Expiry { milliseconds: u64::try_from(at).unwrap_or(u64::MAX) }
    }

    /// Decodes the expiry of a stored value. A value too short for a time counts as expired.
    pub(crate) fn of_stored(value: &[u8]) -> Self {
        let bytes = value.first_chunk().copied().unwrap_or_default();
        Expiry { milliseconds: u64::from_le_bytes(bytes) }
    }

    /// Whether the expiry has come, at the time `now` since the Unix epoch. The greatest number
    /// stands for never, whatever the clock shows.
    pub(crate) fn has_come(self, now: Duration) -> bool {
        self.milliseconds != u64::MAX && u128::from(self.milliseconds) <= now.as_millis()
    }
}

impl Entry<'_> {
    /// Whether the entry has expired.
    pub(crate) fn has_expired(&self, now: Duration) -> bool {
        self.kind.has_expiry() && Expiry::of_stored(self.value).has_come(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::clock::ManualClock;

    #[test]
    fn an_expiry_comes_with_its_millisecond() {
        let clock = ManualClock::default();
        clock.advance(Duration::from_micros(1_500));
        let expiry = Expiry::after(Duration::from_millis(10), &clock);
        assert_eq!(expiry, Expiry::at_milliseconds(12), "not before the time that was asked for");
        assert!(!expiry.has_come(Duration::from_micros(11_999)));
        assert!(expiry.has_come(Duration::from_millis(12)));
        let never = Expiry::after(Duration::MAX, &clock);
        assert_eq!(never.milliseconds(), u64::MAX);
        assert!(!never.has_come(Duration::from_secs(1 << 40)) && !never.has_come(Duration::MAX));
    }

    #[test]
    fn a_value_too_short_for_a_time_has_expired() {
        assert!(Expiry::of_stored(b"short").has_come(Duration::ZERO));
        let stored = [&7u64.to_le_bytes()[..], b"value"].concat();
        assert_eq!(Expiry::of_stored(&stored), Expiry::at_milliseconds(7));
    }
}
