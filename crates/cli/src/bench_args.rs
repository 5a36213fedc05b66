//! The arguments of `bench read` and `bench probe`, as they are typed.

use std::path::PathBuf;

use clap::Args;
use trommel::GuardKind;
use trommel_lab::{DeletedBy, Deletion, Dist, FileFormat, Kind, ReadWorkload, RealSet, Skew};

use crate::args::byte_count;
use crate::filter_args::{FilterArgs, MemoryArgs};
use crate::guards::{GuardNames, guards, guards_help};

/// What `--dist` can be told.
pub(crate) fn dist_help() -> String {
    format!(
        "Where keys come from: {}. ids: 0, 1, 2, ... without one in eleven; timestamps: nanoseconds, by day and in bursts; \
         sensors: time and sensor, 16 bytes; emails: host reversed. What scripts/fetch-keys.py fetches ({}) is a real set where it \
         was fetched, into data/fetched or $TROMMEL_KEYS, else generated (as NAME-stand-in always is). Of sets, every eighth key is \
         held out; misses are drawn from keys that are left out",
        Dist::known(),
        RealSet::ALL.map(RealSet::name).join(", "),
    )
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
    /// How many neighbouring keys a range takes in.
    #[arg(long, value_name = "W", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) range_width: u64,
    /// Misses and empty ranges begin at most so far behind a stored key, as a number. [default: they are drawn as the keys are]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) correlated: Option<u64>,
    /// Seed of keys and questions.
    #[arg(long, value_name = "S", default_value_t = 42)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

impl WorkloadArgs {
    /// The guards to compare.
    pub(crate) fn guards(&self) -> Vec<GuardKind> {
        self.guard.iter().flat_map(GuardNames::kinds).copied().collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct BenchReadArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// When runs merge: lazy-leveling, leveling, tiering, rocksdb, levelled-from:LEVEL.
    #[arg(long, value_name = "NAME", value_parser = crate::policy_args::policy, default_value = "lazy-leveling")]
    pub(crate) policy: trommel::Policy,
    /// L: how many levels the tree has; 1 gives one run.
    #[arg(long, value_name = "L", default_value_t = 3)]
    pub(crate) levels: u32,
    /// Z: how full the last level is, 1 to T - 1. [default: T - 1]
    #[arg(long, value_name = "Z")]
    pub(crate) fill: Option<u32>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Bytes of a value.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) value_bytes: usize,
    /// Memory for blocks. [default: more than the data takes]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(crate) block_cache: Option<usize>,
    /// Bytes after which a run goes on in another file.
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(crate) table_bytes: Option<usize>,
    /// Read and write tables past the operating system's cache. (What is measured first is read into the block cache alone.)
    #[arg(long)]
    pub(crate) direct: bool,
    /// Ask for stored keys through a queue, too, so many at once, beside one after the other.
    #[arg(long = "async", value_name = "DEPTH", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) pipelined: Option<u32>,
    /// How many threads ask at once, each with a generator of its own from the one seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// How gets are spread over the keys: none, zipf:S (neighbours are alike hot), scattered-zipf:S.
    #[arg(long, value_name = "LAW", default_value = "none")]
    pub(crate) skew: Skew,
    /// Delete that share of the keys, in a hundred stretches, one after the other while the newer runs are written, but for the last flush;
    /// misses and empty ranges are where they were.
    #[arg(long, value_name = "SHARE", conflicts_with = "correlated")]
    deleted: Option<f64>,
    /// How they are deleted: key (one after the other), range (a range for each stretch).
    #[arg(long, value_name = "NAME", default_value = "key", requires = "deleted")]
    deleted_by: DeletedBy,
    /// Where the keys of newer runs come from, if not from where those of the last run do: a shift of the workload. As --dist,
    /// but for files of lines alone.
    #[arg(long, value_name = "NAME", conflicts_with = "deleted")]
    inserts: Option<Dist>,
    /// Closed seeks of which that share finds nothing, 0.1 or so to 0.99; several shares with commas between them. Their ranges are of
    /// the keys' first eight bytes, as wide as it takes.
    #[arg(long, value_name = "SHARES", value_delimiter = ',')]
    empty: Vec<f64>,
    /// What is asked, with commas between them: point_miss, point_hit, point_half, empty_range, range_hit, seek, seek_next_50. [default: all,
    /// and counts and batches]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = kind, hide_default_value = true, default_values_t = Kind::ALL)]
    pub(crate) kinds: Vec<Kind>,
    /// Scan every store from the first key to the last and back, too.
    #[arg(long)]
    pub(crate) full_scan: bool,
    /// Count what gets cost by the level that has their key, and how often each table is asked.
    #[arg(long)]
    pub(crate) by_level: bool,
    /// How often each store is loaded, in turns; the median time counts.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) loads: usize,
    /// Do not wait until the disk has what flushes and merges wrote: loading then measures the store, not the disk.
    #[arg(long)]
    pub(crate) no_sync: bool,
    /// Where to make the stores, a folder for each guard; they stay there. [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) watch: crate::watch::WatchArgs,
}

impl BenchReadArgs {
    /// What is special about keys and questions.
    pub(crate) fn special(&self) -> ReadWorkload {
        let by = self.deleted_by;
        ReadWorkload {
            correlated: self.workload.correlated,
            deleted: self.deleted.map(|share| Deletion { share, by }),
            inserts: self.inserts.clone(),
            empty_shares: self.empty.clone(),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct BenchProbeArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
}

/// Reads the name of a kind of question.
fn kind(name: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let known = Kind::ALL.map(Kind::name).join(", ");
    found.ok_or_else(|| format!("there is no kind of question '{name}'; there are: {known}"))
}
