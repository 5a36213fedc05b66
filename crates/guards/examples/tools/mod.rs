//! What the measuring examples share: command line, random numbers, and the time.
//! ```text
//! --keys 1000 --file x    pairs of a name and a value --> `take`, which interprets them
//! --help                  prints the usage and exits
//! ```
//! Invariant: an unknown argument ends the program with status 2 and the usage.

#![allow(dead_code, reason = "each example uses what it needs")]

use rustix::time::{ClockId, clock_gettime};
use trommel_filters::FilterKind;
use trommel_guards::kinds;

/// Passes the arguments to `take` in pairs of name and value. It returns None for an unknown name
/// or an invalid value.
pub(crate) fn read_arguments(usage: &str, mut take: impl FnMut(&str, &str) -> Option<()>) {
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        if name == "--help" {
            println!("usage: {usage}");
            std::process::exit(0);
        }
        let value = words.next();
        if value.as_deref().and_then(|value| take(&name, value)).is_none() {
            eprintln!("not understood: {name} {}\nusage: {usage}", value.unwrap_or_default());
            std::process::exit(2);
        }
    }
}

/// Replaces a default by a parsed value. None: the value does not parse.
pub(crate) fn set<T: std::str::FromStr>(place: &mut T, value: &str) -> Option<()> {
    *place = value.parse().ok()?;
    Some(())
}

/// Sets an optional text.
pub(crate) fn set_text(place: &mut Option<String>, value: &str) -> Option<()> {
    *place = Some(value.to_owned());
    Some(())
}

/// Returns the filters with these names, separated by commas. None: there is no such filter.
pub(crate) fn kinds(names: &str) -> Option<Vec<&'static dyn FilterKind>> {
    let kind = |name| kinds::TABLE_FILTERS.into_iter().find(|kind| kind.name() == name);
    names.split(',').map(kind).collect()
}

/// Returns the names of all filters.
pub(crate) fn all_names() -> String {
    kinds::TABLE_FILTERS.map(FilterKind::name).join(",")
}

/// A pseudorandom generator: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns the CPU time of this thread in nanoseconds, so other processes do not count. (The kernel
/// updates its sums in /proc only some hundred times a second.)
pub(crate) fn now_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
