//! The numbers of a restored store, which no other store of the same origin gives.
//! ```text
//! the first store    1 .. S | S+1 ..
//! restored once      1 .. S |          a * 2^32 later ..
//! restored again     1 .. S |                               b * 2^32 later ..
//! ```
//! Files and writes of all these stores may be in one place of backups. Each restore draws its own
//! distance, since nothing tells it of other restores. It draws from the clock and the path of the
//! folder, so that one seed gives one history.
//!
//! A repaired store is such a store, too: it does not know which numbers were given to what is
//! lost.

use std::path::Path;

use crate::entries::checksum;
use crate::entries::entry::NUMBER_MAX;
use crate::shared::environment::Environment;

/// Stores that have drawn differently are at least so many numbers apart.
const STEP: u64 = 1 << 32;
/// A restore takes at most this part of the numbers that are left, so that restored stores can be
/// backed up and restored again and again.
const PART: u64 = 256;

/// Whether two numbers of writes are near enough to be from one store.
pub(crate) fn are_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) < STEP / 2
}

/// Returns where the numbers of a restored store begin, both of files and of writes. `used`: the
/// greatest number that it has of either.
pub(crate) fn begin((environment, dir): (&Environment, &Path), used: u64) -> u64 {
    // Greater numbers in the names of files are not believed.
    let left = (NUMBER_MAX / 2).saturating_sub(used);
    let places = (left / PART / STEP).max(1);
    used + STEP * (1 + draw(environment, dir) % places)
}

fn draw(environment: &Environment, dir: &Path) -> u64 {
    let clock = &environment.clock;
    let times = [clock.since_epoch(), clock.now()].map(|time| time.as_nanos().to_le_bytes());
    let drawn = [&times.concat(), dir.as_os_str().as_encoded_bytes()].concat();
    u64::from(checksum::crc32c(&drawn))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::storage::clock::ManualClock;
    use crate::sync::Arc;

    #[test]
    fn restores_at_other_times_or_places_take_other_numbers() {
        let clock = Arc::new(ManualClock::default());
        let environment = Environment::new().clock(clock.clone());
        let mut drawn = BTreeSet::new();
        for _ in 0..20 {
            clock.advance(Duration::from_nanos(1));
            for dir in ["one", "two"] {
                drawn.insert(begin((&environment, Path::new(dir)), 100));
            }
        }
        assert_eq!(drawn.len(), 40);
        assert!(drawn.iter().all(|it| *it > STEP && (it - 100).is_multiple_of(STEP)));
    }

    #[test]
    fn numbers_are_left_after_thousands_of_restores_of_restored_stores() {
        let clock = Arc::new(ManualClock::default());
        let environment = Environment::new().clock(clock.clone());
        let mut used = 100;
        for _ in 0..5000 {
            clock.advance(Duration::from_secs(1));
            used = begin((&environment, Path::new("db")), used);
        }
        assert!(used < NUMBER_MAX / 2, "{used}");
    }
}
