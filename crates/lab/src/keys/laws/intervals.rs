//! Both ends of time intervals, in microseconds since 1970.
//! ```text
//! start      as events come: by day, and in bursts (bursts.rs)
//! length     1 ms to 3 h, its logarithm anywhere between
//! chain      one interval in two begins a microsecond behind the end of the one before
//! ```
//! The statistic that matters: keys come in pairs, and many pairs touch. So gaps alternate between
//! one and the length of an interval.

use super::bursts::Bursts;
use crate::keys::key_list::KeyList;
use crate::keys::rng::Rng;

/// The law of intervals.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    starts: Bursts,
}

/// The shortest and the longest interval, as powers of ten of microseconds.
const LENGTHS: [f64; 2] = [3.0, 10.0];
const NS_PER_US: u64 = 1000;

impl Intervals {
    pub(super) fn new() -> Self {
        Intervals { starts: Bursts::new() }
    }

    /// Adds both ends of each interval of a chain.
    pub(super) fn draw(&self, keys: &mut KeyList, rng: &mut Rng) {
        let mut start = self.starts.draw(rng) / NS_PER_US;
        loop {
            let exponent = LENGTHS[0] + (LENGTHS[1] - LENGTHS[0]) * rng.unit();
            let end = start + 10f64.powf(exponent) as u64;
            keys.push(&start.to_be_bytes());
            keys.push(&end.to_be_bytes());
            if rng.below(2) == 0 {
                return;
            }
            start = end + 1;
        }
    }
}
