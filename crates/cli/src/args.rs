//! The arguments, as they are typed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use trommel::{Background, Db, GuardKind, Options, Sync};

use crate::bench_args::{BenchProbeArgs, BenchReadArgs};
use crate::filter_args::{FilterArgs, MemoryArgs};
use crate::guards::{guard, guard_help};
use crate::io_args::IoArgs;
use crate::point::{KeyArgs, PutArgs};

/// A key-value store (LSM-tree) that asks one small filter, once, before it opens a file.
///
/// Exit status: 0 fine, 1 not found or check failed, 2 wrong arguments, 3 corrupt data or I/O error.
#[derive(Debug, Parser)]
#[command(name = "trommel", version)]
pub(crate) struct Arguments {
    /// Print one JSON object (an array for several guards) on standard output, and nothing else there.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the keys of a file, or of standard input, into a store.
    #[command(after_help = crate::load::EXAMPLES)]
    Load(LoadArgs),
    /// Print the value of a key. Exit status 1 if there is none.
    Get(KeyArgs),
    /// Set the value of a key.
    Put(PutArgs),
    /// Remove a key. No error if it is not there.
    Delete(KeyArgs),
    /// Remove all keys from one on and before another, in one write.
    #[command(after_help = crate::delete_range::EXAMPLES)]
    DeleteRange(crate::delete_range::DeleteRangeArgs),
    /// Print keys and values in order, a tab between them.
    Scan(ScanArgs),
    /// Estimate how many keys a range has, from block indexes or, with `--guard grf`, from the filter's ranks.
    Count(RangeArgs),
    /// Do the merges that are due under the policy, or merge everything into one run.
    #[command(after_help = crate::compact::EXAMPLES)]
    Compact(crate::compact::CompactArgs),
    /// Print the statistics of a store.
    Stats(StatsArgs),
    /// Show the tree as a picture: levels, runs, spans, guard memory.
    Inspect(crate::inspect::InspectArgs),
    /// Write a page that plays a tree back, step by step: its runs, its merges, and the filter's codes of a key. A tree that is grown for it,
    /// or one that was recorded with --record.
    #[command(after_help = crate::replay::EXAMPLES)]
    Replay(crate::replay::ReplayArgs),
    /// Read everything and check it, also of a store that does not open: tell all that is damaged or missing. Exit status 3 if anything is.
    #[command(after_help = crate::verify::EXAMPLES)]
    Verify(StoreArgs),
    /// Print what the files of a store hold. Exit status 3 if anything is damaged.
    #[command(after_help = crate::dump::EXAMPLES)]
    Dump(crate::dump::DumpArgs),
    /// Make a second store, in a new folder, that holds what this one holds: by hard links, where that can be.
    Checkpoint(crate::checkpoint::CheckpointArgs),
    /// Mend a damaged store, out of all that can be read. Exit status 1 if something could not be saved.
    #[command(after_help = crate::repair::EXAMPLES)]
    Repair(crate::repair::RepairArgs),
    /// Measure.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Measure what plans say, the papers' experiments among them, and make reports of it.
    #[command(subcommand)]
    Lab(crate::lab::LabCommand),
    /// Run histories of random operations on a simulated disk, with crashes, faults and other options at each opening,
    /// and compare every answer with a model. Exit status 1 if one is wrong: it is told in short, with its seed.
    /// With --kills: kill real processes that write, and compare what they leave with what they had acknowledged.
    #[command(after_help = STRESS_EXAMPLES)]
    Stress(StressArgs),
    /// Write until someone kills this process: what `stress --kills` starts.
    #[command(hide = true)]
    Victim(crate::kill::VictimArgs),
    /// Compare the guards on real keys, in a temporary folder: one table, then the tree as a picture.
    Demo(DemoArgs),
}

impl Command {
    /// The folder of the store that it works on; None where it makes stores of its own.
    pub(crate) fn store(&self) -> Option<&Path> {
        match self {
            Command::Load(load) => Some(&load.store.db),
            Command::Get(key) | Command::Delete(key) => Some(&key.store.db),
            Command::Put(put) => Some(&put.key.store.db),
            Command::DeleteRange(range) => Some(&range.store.db),
            Command::Scan(scan) => Some(&scan.range.store.db),
            Command::Count(range) => Some(&range.store.db),
            Command::Compact(compact) => Some(&compact.store.db),
            Command::Stats(stats) => Some(&stats.store.db),
            Command::Inspect(inspect) => Some(&inspect.store.db),
            Command::Verify(store) => Some(&store.db),
            Command::Dump(dump) => dump.path.is_dir().then_some(&dump.path),
            Command::Checkpoint(checkpoint) => Some(&checkpoint.store),
            Command::Repair(repair) => Some(&repair.store),
            Command::Replay(_) | Command::Bench(_) | Command::Lab(_) => None,
            Command::Stress(_) | Command::Victim(_) | Command::Demo(_) => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Load a tree of known shape per guard, then measure reads in rounds that take turns.
    Read(BenchReadArgs),
    /// Measure the filters alone, without a store.
    Probe(BenchProbeArgs),
    /// Write from several threads, and measure what each write and the whole cost.
    Write(crate::write::BenchWriteArgs),
    /// Measure the CPU time of a get with one reader and with several, while a paced writer writes.
    Readers(crate::threads::BenchReadersArgs),
    /// Measure opening a store, with and without the image of its filter, beside reading what that must read.
    Open(crate::threads::BenchOpenArgs),
    /// Measure reads and writes of this store beside another one's, in one process, in rounds that take turns.
    #[command(after_help = crate::compare::EXAMPLES)]
    Compare(crate::compare::BenchCompareArgs),
    /// Run YCSB's core workloads A to F over this store with several guards, and over other stores.
    #[command(after_help = crate::ycsb::EXAMPLES)]
    Ycsb(crate::ycsb::BenchYcsbArgs),
    /// Count how often a global range filter says "maybe" where nothing is, for many distributions, budgets and widths.
    #[command(after_help = crate::fpr::EXAMPLES)]
    Fpr(crate::fpr::BenchFprArgs),
    /// Compute how short Chucky's codes of level ids are, and how they fill buckets: the paper's Figures 5, 6, 8, 9 and 12.
    #[command(after_help = crate::chucky_codes::EXAMPLES)]
    ChuckyCodes(crate::chucky_codes::ChuckyCodesArgs),
    /// Measure what each of the things that make SuRF's trie fast is worth: the paper's Figure 7.
    SurfSteps(crate::surf_steps::SurfStepsArgs),
}

/// Which store, and how it is opened.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store's folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
    #[arg(long, value_name = "NAME", value_parser = guard, help = guard_help())]
    pub(crate) guard: Option<GuardKind>,
    /// Memory of the guard, in bits per key.
    #[arg(long, value_name = "BITS", allow_negative_numbers = true, default_value_t = Options::default().bits_per_key)]
    pub(crate) bits_per_key: f64,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    policy: crate::policy_args::PolicyArgs,
    /// Memory for new entries before they become a run on disk, like 64MiB.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "64MiB")]
    pub(crate) write_buffer: usize,
    /// Memory for blocks that were read.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "32MiB")]
    pub(crate) block_cache: usize,
    /// When a write is safe on disk: always (before it returns), never (when its run is written), or so many seconds later.
    #[arg(long, value_name = "WHEN", value_parser = sync, default_value = "1")]
    pub(crate) sync: Sync,
    /// Bytes that merges may read in a second; they go faster while writers wait for them. [default: as fast as they can]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    merge_rate: Option<usize>,
    #[command(flatten)]
    io: IoArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

impl StoreArgs {
    /// The options that were asked for; `guard_default` if no guard was named.
    fn options(&self, guard_default: GuardKind) -> Options {
        Options {
            guard: self.guard.unwrap_or(guard_default),
            bits_per_key: self.bits_per_key,
            monkey: self.memory.monkey,
            point_bits: self.memory.point_bits,
            size_ratio: self.policy.size_ratio(),
            policy: self.policy.policy(),
            granularity: self.policy.granularity(),
            partition_bytes: self.policy.partition_bytes(),
            background: Background::Threads(self.policy.merge_threads()),
            table_bytes: self.policy.table_bytes(),
            merge_bytes_per_second: self.merge_rate.map(|bytes| bytes as u64),
            write_buffer_bytes: self.write_buffer,
            block_cache_bytes: self.block_cache,
            direct: self.io.direct(),
            overlap: self.io.overlap(),
            max_open_files: self.io.max_open_files(),
            sync: self.sync,
            filter: self.filter.tuning().with(self.filter.elastic()),
            ..Options::default()
        }
    }

    /// Opens the store, or makes it if there is none.
    pub(crate) fn open_or_create(&self, guard_default: GuardKind) -> trommel::Result<Db> {
        Db::open(&self.db, self.options(guard_default))
    }

    /// Opens the store; an error if there is none.
    pub(crate) fn open(&self, guard_default: GuardKind) -> trommel::Result<Db> {
        let options = Options { create_if_missing: false, ..self.options(guard_default) };
        Db::open(&self.db, options)
    }

    /// Opens the store for questions alone; an error if there is none. Nothing is merged: a store does not keep its policy, so the one
    /// that is told here may be none of its own, and who only asks is not to change the tree.
    pub(crate) fn open_to_read(&self, guard_default: GuardKind) -> trommel::Result<Db> {
        self.open_to_read_with(self.guard.unwrap_or(guard_default))
    }

    /// As [`open_to_read`](Self::open_to_read), with this guard, whatever was asked for.
    pub(crate) fn open_to_read_with(&self, guard: GuardKind) -> trommel::Result<Db> {
        let options = Options {
            guard,
            create_if_missing: false,
            background: Background::Stepped,
            ..self.options(guard)
        };
        Db::open(&self.db, options)
    }
}

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The file; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How the file is written.
    #[arg(long, value_enum, default_value_t = TextFormat::Lines)]
    pub(crate) format: TextFormat,
    /// The column of the keys, counted from 1 (tsv, csv).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) key_column: u32,
    /// The column of the values; without it values are empty.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) value_column: Option<u32>,
    /// The keys of the file ascend, each once: make one sorted run of them, all at once, past log and memory. If they do not,
    /// nothing is loaded.
    #[arg(long)]
    pub(crate) ingest: bool,
    /// Skip the first line (tsv, csv).
    #[arg(long)]
    pub(crate) header: bool,
    /// Keys are written in hexadecimal.
    #[arg(long)]
    pub(crate) hex: bool,
    #[command(flatten)]
    pub(crate) record: crate::record_args::RecordArgs,
    #[command(flatten)]
    pub(crate) watch: crate::watch::WatchArgs,
}

/// How a file of entries is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// One key per line.
    Lines,
    /// Columns with tabs between them.
    Tsv,
    /// Columns with commas between them; fields may be quoted (RFC 4180).
    Csv,
}

impl From<TextFormat> for trommel_lab::TextFormat {
    fn from(format: TextFormat) -> Self {
        match format {
            TextFormat::Lines => Self::Lines,
            TextFormat::Tsv => Self::Tsv,
            TextFormat::Csv => Self::Csv,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The first key, included.
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<String>,
    /// The last key, included.
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<String>,
    /// Keys and values are read and printed in hexadecimal.
    #[arg(long)]
    pub(crate) hex: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// At most so many entries.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// From the last key to the first.
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Keys alone, without values.
    #[arg(long)]
    pub(crate) keys_only: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print them as Prometheus text.
    #[arg(long, conflicts_with = "json")]
    pub(crate) prometheus: bool,
}

const STRESS_EXAMPLES: &str = "Examples: 20 histories; one again; an hour of others; 1,000 processes killed, one after the other; an hour of threads on the real disk\n  \
    trommel stress --seeds 20\n  \
    trommel stress --seed 17 --steps 6000\n  \
    trommel stress --seed 1000000 --minutes 60\n  \
    trommel stress --kills 1000\n  \
    trommel stress --threads 4 --disk --minutes 60";

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("of_disk").args(["kills", "disk"]))]
pub(crate) struct StressArgs {
    /// The first seed. A seed gives the same history every time.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Operations of each history.
    #[arg(long, value_name = "N", default_value_t = 6000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) steps: u32,
    /// How many seeds, from the first on. [default: 1, or with --minutes as many as there is time for]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
    /// Begin no history after so many minutes.
    #[arg(long, value_name = "M", value_parser = minutes)]
    pub(crate) minutes: Option<f64>,
    /// With --disk: end after so many seconds.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..), requires = "disk", conflicts_with = "minutes")]
    pub(crate) seconds: Option<u64>,
    /// No simulation: so many threads write to a store on the real disk, half as many read it, and one flushes, merges, verifies and
    /// copies it meanwhile, with other options after each opening. Each knows its own keys exactly. A seed gives the same plan; how the
    /// threads interleave differs. 1 to 8.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8), requires = "disk", conflicts_with_all = ["steps", "seeds", "kills"])]
    pub(crate) threads: Option<u8>,
    /// On the real disk, in one process. Takes --threads, and a time.
    #[arg(long, requires = "threads")]
    pub(crate) disk: bool,
    /// No simulation: start a process that writes to a store on the real disk, kill it with SIGKILL at a random moment,
    /// look at what it left, and so on, so many times.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["steps", "seeds", "minutes"])]
    pub(crate) kills: Option<u32>,
    /// Where a store on the real disk is to be, in a folder that is new or empty, which stays. [default: a temporary folder,
    /// which stays if something is wrong]
    #[arg(long, value_name = "DIR", requires = "of_disk")]
    pub(crate) dir: Option<PathBuf>,
    /// Has the processes promise more than they do, to see that it is found: early-ack, split-batch, lost-write.
    #[arg(long, value_name = "NAME", requires = "kills", hide = true, value_parser = crate::kill::lie)]
    pub(crate) lie: Option<trommel_lab::Lie>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Use only so many of the keys. [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) keys: Option<usize>,
    /// Questions of each kind per round.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) queries: usize,
}

/// Reads a time in minutes.
fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().unwrap_or(f64::NAN);
    let sensible = (0.0..=1e6).contains(&minutes);
    sensible.then_some(minutes).ok_or_else(|| "a number of minutes like 0.5 or 30".into())
}

/// Reads a number of bytes like 4096, 64KiB, 32MiB or 1GiB.
pub(crate) fn byte_count(text: &str) -> Result<usize, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err(format!("unknown unit '{unit}'; there are: KiB, MiB, GiB")),
    };
    let number: usize = number.parse().map_err(|_| "a number like 4096 or 64MiB".to_string())?;
    number.checked_mul(1 << shift).ok_or_else(|| "more bytes than there can be".to_string())
}

/// Reads `always`, `never`, or a number of seconds.
fn sync(text: &str) -> Result<Sync, String> {
    match text {
        "always" => Ok(Sync::Always),
        "never" => Ok(Sync::Never),
        seconds => {
            let seconds: f64 = seconds.parse().unwrap_or(f64::NAN);
            let interval = Duration::try_from_secs_f64(seconds).map_err(|_| ());
            interval
                .map(Sync::Interval)
                .map_err(|()| "there are: always, never, or seconds like 0.5".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn byte_counts_have_units() {
        assert_eq!(byte_count("4096"), Ok(4096));
        assert_eq!((byte_count("64MiB"), byte_count("2k")), (Ok(64 << 20), Ok(2048)));
        for wrong in ["", "MiB", "1TB", "-1", "99999999999999999999", "9999999999999GiB"] {
            assert!(byte_count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sync_is_a_word_or_seconds() {
        assert_eq!(sync("always"), Ok(Sync::Always));
        assert_eq!(sync("0.5"), Ok(Sync::Interval(Duration::from_millis(500))));
        for wrong in ["sometimes", "-1", "NaN", "1e400", ""] {
            assert!(sync(wrong).is_err(), "{wrong}");
        }
    }
}
