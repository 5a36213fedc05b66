//! What the examples that measure share: their command line, random numbers, and the time.
//! ```text
//! --keys 1000 --file x    pairs of a name and a value --> `take`, which knows them
//! --help                  the usage, and the end
//! ```
//! Invariant: a word that is not understood ends the program with status 2 and the usage.

#![allow(dead_code, reason = "each example uses what it needs")]

use rustix::time::{ClockId, clock_gettime};
use trommel_filters::FilterKind;

/// Hands the words of the command line to `take`, in pairs. None: there is no such name, or it has
/// no such value.
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

/// Puts a value in the place of the usual one. None: it is none of that type.
pub(crate) fn set<T: std::str::FromStr>(place: &mut T, value: &str) -> Option<()> {
    *place = value.parse().ok()?;
    Some(())
}

/// Puts a text in the place of none.
pub(crate) fn set_text(place: &mut Option<String>, value: &str) -> Option<()> {
    *place = Some(value.to_owned());
    Some(())
}

/// The filters of these names, with commas between. None: there is no such filter.
pub(crate) fn kinds(names: &str) -> Option<Vec<FilterKind>> {
    let kind = |name| FilterKind::ALL.into_iter().find(|kind| kind.name() == name);
    names.split(',').map(kind).collect()
}

/// The names of all filters.
pub(crate) fn all_names() -> String {
    FilterKind::ALL.map(FilterKind::name).join(",")
}

/// A generator: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// In [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Nanoseconds that this thread has had a processor: what else runs does not count. (The kernel's
/// own sum, in /proc, is brought up to date only some hundred times a second.)
pub(crate) fn now_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
