//! When an entry expires.
//! ```text
//! value as it is stored    milliseconds u64, little-endian | the value that the user gave
//! ```
//! Invariant: an entry that has expired hides older entries of its key, as a deletion does. A merge
//! drops it only where it may drop a deletion, so what it hid is not seen again.

use std::time::Duration;

use crate::entries::entry::Entry;
use crate::storage::clock::Clock;

/// Bytes of the time before the value.
pub(crate) const EXPIRY_BYTES: usize = size_of::<u64>();

/// A moment from which on an entry is gone, by the clock of the store's environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expiry {
    milliseconds: u64,
}

impl Expiry {
    /// It never comes.
    pub const NEVER: Expiry = Expiry { milliseconds: u64::MAX };

    /// So many milliseconds after the start of 1970; the greatest number: never.
    pub const fn at_milliseconds(milliseconds: u64) -> Self {
        Expiry { milliseconds }
    }

    /// Milliseconds after the start of 1970.
    pub const fn milliseconds(self) -> u64 {
        self.milliseconds
    }

    /// So long after now. What lies beyond all that a clock can show never comes.
    pub(crate) fn after(ttl: Duration, clock: &dyn Clock) -> Self {
        let at = clock.since_epoch().saturating_add(ttl).as_nanos().div_ceil(1_000_000);
        Expiry { milliseconds: u64::try_from(at).unwrap_or(u64::MAX) }
    }

    /// Of a value as it is stored. One that is too short for a time has expired.
    pub(crate) fn of_stored(value: &[u8]) -> Self {
        let bytes = value.first_chunk().copied().unwrap_or_default();
        Expiry { milliseconds: u64::from_le_bytes(bytes) }
    }

    /// Whether it has come, by a clock that shows so much time since the start of 1970. The last
    /// one stands for never: it is what lies beyond all others, whatever a clock shows.
    pub(crate) fn has_come(self, now: Duration) -> bool {
        self.milliseconds != u64::MAX && u128::from(self.milliseconds) <= now.as_millis()
    }
}

impl Entry<'_> {
    /// Whether it has expired.
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
