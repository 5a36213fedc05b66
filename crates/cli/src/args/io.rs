//! Options for reading and writing tables, as they are typed.

use clap::{Args, ValueEnum};
use trommel::options::{DirectIo, Overlap};

/// How tables are read and written.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct IoArgs {
    /// Go past the operating system's cache: with all transfers of tables, or some, like
    /// --direct=reads,merges. Where the file system cannot do it, they go through it; `stats` says
    /// so.
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0.., require_equals = true, value_delimiter = ',', default_missing_values = ["reads", "flushes", "merges"])]
    direct: Vec<Transfer>,
    /// How reads that are asked for together are done at once: io_uring (where it is forbidden, as
    /// pool), pool (of threads), one-by-one.
    #[arg(long, value_name = "NAME", value_parser = overlap, default_value = Overlap::Ring.name())]
    overlap: Overlap,
    /// Files of tables that are open at most; others are closed and opened again as they are read.
    /// [default: half of what this process may have, `ulimit -n`]
    #[arg(long, value_name = "N")]
    max_open_files: Option<usize>,
}

fn overlap(name: &str) -> Result<Overlap, String> {
    let known = Overlap::ALL.into_iter().find(|overlap| overlap.name() == name);
    let names = || Overlap::ALL.map(Overlap::name).join(", ");
    known.ok_or_else(|| format!("there is no '{name}'; there are: {}", names()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transfer {
    /// Blocks of tables.
    Reads,
    /// Tables that flushes write.
    Flushes,
    /// Tables that merges write.
    Merges,
}

impl IoArgs {
    pub(crate) fn overlap(&self) -> Overlap {
        self.overlap
    }

    pub(crate) fn max_open_files(&self) -> Option<usize> {
        self.max_open_files
    }

    pub(crate) fn direct(&self) -> DirectIo {
        let has = |transfer| self.direct.contains(&transfer);
        DirectIo {
            reads: has(Transfer::Reads),
            flushes: has(Transfer::Flushes),
            merges: has(Transfer::Merges),
        }
    }
}
