//! The arguments of `stress`: simulated histories, killed processes, or threads on the real disk.

use std::path::PathBuf;

use clap::Args;
use trommel_lab::Lie;

pub(crate) const EXAMPLES: &str = "Examples: 20 histories; one again; 100 of transactions; an hour of others; 1,000 processes killed, one after the other; an hour of threads on the real disk; of transactions\n  \
    trommel stress --seeds 20\n  \
    trommel stress --seed 17 --steps 6000\n  \
    trommel stress --transactions --seeds 100\n  \
    trommel stress --seed 1000000 --minutes 60\n  \
    trommel stress --kills 1000\n  \
    trommel stress --threads 4 --disk --minutes 60\n  \
    trommel stress --transactions --threads 4 --disk --minutes 60";

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("of_disk").args(["kills", "disk"]))]
pub(crate) struct StressArgs {
    /// The first seed. A seed gives the same history every time.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Operations of each history.
    #[arg(long, value_name = "N", default_value_t = 6000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) steps: u32,
    /// How many seeds, from the first on. [default: 1, or with --minutes as many as there is time
    /// for]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
    /// Begin no history after so many minutes.
    #[arg(long, value_name = "M", value_parser = minutes)]
    pub(crate) minutes: Option<f64>,
    /// With --disk: end after so many seconds.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..), requires = "disk", conflicts_with = "minutes")]
    pub(crate) seconds: Option<u64>,
    /// Of several key spaces and of transactions that are open at once. A commit must succeed,
    /// unless somebody has written what it has read. With --threads, what has committed is run
    /// again, in the order of commits: every read must be what it was.
    #[arg(long, conflicts_with = "kills")]
    pub(crate) transactions: bool,
    /// No simulation: so many threads write on the real disk, and half as many read.
    /// One more flushes, merges, verifies and copies it; each opening has other options. Each knows
    /// its own keys exactly. A seed gives the same plan; how the threads interleave differs. 1 to
    /// 8.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8), requires = "disk", conflicts_with_all = ["steps", "seeds", "kills"])]
    pub(crate) threads: Option<u8>,
    /// On the real disk, in one process. Takes --threads, and a time.
    #[arg(long, requires = "threads")]
    pub(crate) disk: bool,
    /// No simulation: kill a process that writes on the real disk, by SIGKILL at a
    /// random moment, and check what it left. Repeat that so many times.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["steps", "seeds", "minutes"])]
    pub(crate) kills: Option<u32>,
    /// With --kills: so many processes read the store along, and check it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16), requires = "kills", conflicts_with = "lie")]
    pub(crate) followers: Option<u32>,
    /// Where a store on the real disk is to be, in a folder that is new or empty, which stays.
    /// [default: a temporary folder, which stays if something is wrong]
    #[arg(long, value_name = "DIR", requires = "of_disk")]
    pub(crate) dir: Option<PathBuf>,
    /// Has the processes promise more than they do, to see that it is found: early-ack,
    /// split-batch, lost-write.
    #[arg(long, value_name = "NAME", requires = "kills", hide = true, value_parser = lie)]
    pub(crate) lie: Option<Lie>,
}

/// Parses a time in minutes.
fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().unwrap_or(f64::NAN);
    let sensible = (0.0..=1e6).contains(&minutes);
    sensible.then_some(minutes).ok_or_else(|| "a number of minutes like 0.5 or 30".into())
}

/// Parses the name of a lie.
pub(crate) fn lie(name: &str) -> Result<Lie, String> {
    Lie::named(name).ok_or_else(|| "there are: early-ack, split-batch, lost-write".into())
}
