//! Latency histograms: one for each kind of call, over a sample of calls, if the options ask for
//! it.
//! ```text
//! a call --one of 32--> clock, call, clock --> bucket     1 2 3 4 5 6 7 8 10 12 14 16 20 ... ns
//! ```
//! A bucket's width is an eighth to a quarter of its time. Invariant: a call outside of the sample
//! reads no clock and touches no shared memory.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::storage::clock::Clock;
use crate::sync::{AtomicU64, OnceLock, Ordering};

/// One call of this many is timed.
const SAMPLED: u32 = 32;
/// Buckets per power of two.
const STEPS: usize = 4;
const BUCKETS: usize = 40 * STEPS;
/// The powers of two, in nanoseconds, that become Prometheus buckets.
const EXPOSED: std::ops::Range<u32> = 8..35;

/// A latency histogram of a sample of calls, since the store was opened.
#[derive(Clone, PartialEq, Eq)]
pub struct Latency {
    counts: [u64; BUCKETS],
    nanoseconds: u64,
}

/// The histogram of an open store. The first timed call allocates its memory.
#[derive(Default)]
pub(crate) struct Recorder {
    counts: OnceLock<Box<Counts>>,
    nanoseconds: AtomicU64,
}

struct Counts([AtomicU64; BUCKETS]);

impl Default for Counts {
    fn default() -> Self {
        Counts(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Returns the bucket of a time: below 8 ns one for each number, then four for each power of two.
fn bucket(nanoseconds: u64) -> usize {
    let power = nanoseconds.max(1).ilog2() as usize;
    if power < 2 {
        return nanoseconds as usize;
    }
    let step = (nanoseconds >> (power - 2)) as usize - STEPS;
    ((power - 1) * STEPS + step).min(BUCKETS - 1)
}

/// Returns the least time beyond a bucket.
fn end_of(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64 + 1;
    }
    let (power, step) = (bucket / STEPS + 1, bucket % STEPS);
    ((STEPS + step + 1) as u64) << (power - 2)
}

/// Whether to time this call of the current thread.
#[inline]
fn is_sampled() -> bool {
    thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });
    let call = CALLS.get().wrapping_add(1);
    CALLS.set(call);
    // The golden ratio spreads the sample evenly over all kinds of calls, whatever rhythm they
    // have.
    call.wrapping_mul(0x9e37_79b9) < u32::MAX / SAMPLED
}

impl Recorder {
    /// Makes a call, and records its time if it is in the sample. Without a clock, no call is
    /// timed.
    #[inline]
    pub(crate) fn time<T>(&self, clock: Option<&dyn Clock>, call: impl FnOnce() -> T) -> T {
        let Some(clock) = clock.filter(|_| is_sampled()) else { return call() };
        let begun = clock.now();
        let result = call();
        self.add(clock.now().saturating_sub(begun));
        result
    }

    #[cold]
    fn add(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let counts = self.counts.get_or_init(Box::default);
        counts.0[bucket(nanoseconds)].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Latency {
        let counted = |place: usize| {
            self.counts.get().map_or(0, |counts| counts.0[place].load(Ordering::Relaxed))
        };
        Latency {
            counts: std::array::from_fn(counted),
            nanoseconds: self.nanoseconds.load(Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for Latency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Latency");
        out.field("count", &self.count()).field("mean", &self.mean());
        for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
            out.field(name, &self.quantile(share));
        }
        out.finish()
    }
}

impl Latency {
    /// Returns the number of timed calls: about one in 32 of all calls.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the time below which this share (0 to 1) of the calls stayed, too high by at most a
    /// quarter. None: no call was timed.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut sum = 0;
        let reached = self.counts.iter().position(|count| {
            sum += count;
            sum >= wanted
        });
        reached.map(|bucket| Duration::from_nanos(end_of(bucket)))
    }

    /// Returns the mean time of a call. None: no call was timed.
    pub fn mean(&self) -> Option<Duration> {
        self.nanoseconds.checked_div(self.count()).map(Duration::from_nanos)
    }

    /// Writes the histogram in the text format of Prometheus.
    pub(crate) fn expose(&self, labels: &str, kind: &str, text: &mut String) {
        let name = "trommel_call_seconds";
        for power in EXPOSED {
            let below: u64 = self.counts[..bucket(1 << power)].iter().sum();
            let le = (1u64 << power) as f64 * 1e-9;
            let _ = writeln!(text, "{name}_bucket{{{labels}kind=\"{kind}\",le=\"{le}\"}} {below}");
        }
        let (count, sum) = (self.count(), self.nanoseconds as f64 * 1e-9);
        let _ = writeln!(text, "{name}_bucket{{{labels}kind=\"{kind}\",le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{{{labels}kind=\"{kind}\"}} {sum}");
        let _ = writeln!(text, "{name}_count{{{labels}kind=\"{kind}\"}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::clock::ManualClock;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut last = 0;
        for time in (0..5000).chain((13..39).map(|power| (1 << power) + 7)) {
            let own = bucket(time);
            assert!(own >= last && time < end_of(own), "{time} in {own}");
            assert!(end_of(own) as f64 <= (time + 1) as f64 * 1.25, "{time}: {}", end_of(own));
            assert!(own == 0 || time >= end_of(own - 1), "{time} in {own}");
            last = own;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_share_of_the_calls_is_timed() {
        let (recorder, clock) = (Recorder::default(), ManualClock::default());
        for call in 0..32_000u64 {
            let time = Duration::from_micros(if call % 10 == 0 { 900 } else { 10 });
            recorder.time(Some(&clock), || clock.advance(time));
        }
        let latency = recorder.get();
        assert!((900..1100).contains(&latency.count()), "{}", latency.count());
        let at = |share| latency.quantile(share).expect("some were timed").as_secs_f64() * 1e6;
        assert!((10.0..12.6).contains(&at(0.5)), "{}", at(0.5));
        assert!((900.0..1126.0).contains(&at(0.99)), "{}", at(0.99));
        let mean = latency.mean().expect("some were timed").as_secs_f64() * 1e6;
        assert!((80.0..120.0).contains(&mean), "{mean}");
        let mut text = String::new();
        latency.expose("", "get", &mut text);
        let last = format!("trommel_call_seconds_count{{kind=\"get\"}} {}\n", latency.count());
        assert!(text.ends_with(&last), "{text}");
        let (shown, none) = (format!("{latency:?}"), Recorder::default().get());
        assert!(shown.contains("p99: Some(") && shown.len() < 150, "{shown}");
        assert_eq!(none.quantile(0.5), None);
    }
}
