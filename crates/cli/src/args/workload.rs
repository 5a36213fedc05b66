//! The keys and questions of a measurement, as typed on the command line.

use clap::Args;
use trommel::GuardKind;
use trommel_lab::{Dist, FileFormat, RealSet, Skew};

use crate::args::filter::FilterArgs;
use crate::args::guards::{GuardNames, guards, guards_help};

/// The help text of `--dist`.
pub(crate) fn dist_help() -> String {
    format!(
        "Where keys come from: {}. ids: 0, 1, 2, ... without one in eleven; timestamps: nanoseconds, by day and in bursts; \
         sensors: time and sensor, 16 bytes; emails, hosts: host reversed; user-time, user-sessions: user, 8 digits, time, 8 digits; intervals: both \
         ends. What scripts/fetch-keys.py fetches ({}) is a real set where it \
         was fetched, into data/fetched or $TROMMEL_KEYS, else generated (as NAME-stand-in always is). Of sets, every eighth key is \
         held out, as of users and intervals; misses are drawn from keys that are left out",
        Dist::known(),
        RealSet::ALL.map(RealSet::name).join(", "),
    )
}

/// Which keys are looked at.
#[derive(Debug, Args)]
pub(crate) struct KeySetArgs {
    #[arg(long, value_name = "NAME", default_value = "uniform", help = dist_help())]
    pub(crate) dist: Dist,
    /// How a file of keys is written: lines, u64le.
    #[arg(long, value_name = "NAME", default_value = "lines")]
    pub(crate) file_format: FileFormat,
    /// How many keys. [default: 1000000, or all of a file]
    #[arg(long, value_name = "N")]
    pub(crate) keys: Option<usize>,
    /// Seed of keys and questions.
    #[arg(long, value_name = "S", default_value_t = 42)]
    pub(crate) seed: u64,
}

/// Which keys and questions are measured.
#[derive(Debug, Args)]
pub(crate) struct WorkloadArgs {
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = guards, default_value = "grf", help = guards_help())]
    guard: Vec<GuardNames>,
    /// Memory of the guard, in bits per key.
    #[arg(long, value_name = "BITS", allow_negative_numbers = true, default_value_t = 12.0)]
    pub(crate) bits_per_key: f64,
    /// How many keys. [default: 1000000, or all of a file]
    #[arg(long, value_name = "N")]
    pub(crate) keys: Option<usize>,
    #[arg(long, value_name = "NAME", default_value = "uniform", help = dist_help())]
    pub(crate) dist: Dist,
    /// How a file of keys is written: lines, u64le.
    #[arg(long, value_name = "NAME", default_value = "lines")]
    pub(crate) file_format: FileFormat,
    /// T: how many runs of a level merge into one of the next.
    #[arg(long, value_name = "T", default_value_t = 10)]
    pub(crate) size_ratio: u32,
    /// Questions of each kind per round; with --threads, of each thread.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) queries: usize,
    /// Neighbouring keys of a range.
    #[arg(long, value_name = "W", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) range_width: u64,
    /// Misses and empty ranges begin at most so far behind a stored key, as a number. [default:
    /// they are drawn as the keys are]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) correlated: Option<u64>,
    /// How gets are spread over the keys: none, zipf:S (neighbours are alike hot),
    /// scattered-zipf:S.
    #[arg(long, value_name = "LAW", default_value = "none")]
    pub(crate) skew: Skew,
    /// How many threads ask at once, each with a generator of its own from the one seed. (Of `bench
    /// probe`, for points, half of them stored: one filter, and each a filter of its own.)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// Seed of keys and questions.
    #[arg(long, value_name = "S", default_value_t = 42)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

impl WorkloadArgs {
    /// Returns the guards to compare.
    pub(crate) fn guards(&self) -> Vec<GuardKind> {
        self.guard.iter().flat_map(GuardNames::kinds).copied().collect()
    }
}
