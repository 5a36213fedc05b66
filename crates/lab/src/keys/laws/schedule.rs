//! Departures of a year's first quarter: the stand-in for flights.
//! ```text
//! key     origin (3 letters) | destination (3 letters) | month, day, hour, minute (8 digits)
//! route   the n-th of 668, between two of 59 airports, has a share of n^-0.4
//! time    any of 90 days; one of eight times of the route, a multiple of five minutes from 5 h
//!         to 23 h; one flight in four is up to half an hour off
//! ```
//! The statistic that matters: neighbours share route and day, which are ten of fourteen bytes with
//! few distinct values.

use super::traits::trait_of;
use crate::keys::rng::Rng;
use crate::keys::skew::Zipf;

/// The law of departures.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    routes: Zipf,
}

const ROUTES: u64 = 668;
const EXPONENT: f64 = 0.4;
const AIRPORTS: u64 = 59;
const FLIGHTS_A_DAY: u64 = 8;
/// Days of the first three months.
const MONTH_DAYS: [u64; 3] = [31, 28, 31];
/// Times are multiples of `STEP` minutes, within eighteen hours from `FIRST_HOUR` on.
const STEP: u64 = 5;
const FIRST_HOUR: u64 = 5;
const STEPS: u64 = 18 * 60 / STEP;
const DELAY_MOST: u64 = 30;
/// One flight in this many is delayed.
const DELAYED_EVERY: u64 = 4;

impl Schedule {
    pub(super) fn new() -> Self {
        Schedule { routes: Zipf::new(EXPONENT, ROUTES) }
    }

    pub(super) fn draw(&self, key: &mut Vec<u8>, rng: &mut Rng) {
        let route = trait_of(52, self.routes.draw(rng));
        push_code(key, route % AIRPORTS);
        push_code(key, (route >> 32) % AIRPORTS);
        let departure = trait_of(route, rng.below(FLIGHTS_A_DAY)) % STEPS;
        let late = if rng.below(DELAYED_EVERY) == 0 { rng.below(DELAY_MOST) } else { 0 };
        let minute = FIRST_HOUR * 60 + departure * STEP + late;
        let (month, day) = date(rng.below(MONTH_DAYS.iter().sum()));
        let moment = format!("{month:02}{day:02}{:02}{:02}", minute / 60, minute % 60);
        key.extend_from_slice(moment.as_bytes());
    }
}

/// Appends the three letters of the n-th airport.
fn push_code(key: &mut Vec<u8>, airport: u64) {
    let drawn = trait_of(51, airport);
    key.extend([0, 8, 16].map(|shift| b'A' + ((drawn >> shift) as u8) % 26));
}

/// Returns month and day, both counted from 1, of the n-th day of a year. Requires: it is in the
/// first quarter.
fn date(mut day: u64) -> (usize, u64) {
    for (month, days) in (1..).zip(MONTH_DAYS) {
        if day < days {
            return (month, day + 1);
        }
        day -= days;
    }
    unreachable!("the day is in the first quarter of the year")
}
