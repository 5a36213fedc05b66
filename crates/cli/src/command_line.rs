//! The command line: all commands and their arguments.
//! ```text
//! trommel --json bench read --guard grf
//!         Arguments { json, Command::Bench(BenchCommand::Read(..)) }
//! ```
//! Invariant: a command's own arguments are in its own file.

use std::path::Path;

use clap::{ArgAction, Parser, Subcommand};

use crate::args::key::KeyArgs;
use crate::args::range::RangeArgs;
use crate::args::store::StoreArgs;
use crate::commands;
use crate::commands::bench;

/// A key-value store (LSM-tree) that asks one small filter, once, before it opens a file.
///
/// Exit status: 0 fine, 1 not found or check failed, 2 wrong arguments, 3 corrupt data or I/O
/// error.
#[derive(Debug, Parser)]
#[command(name = "trommel", version)]
pub(crate) struct Arguments {
    /// Print one JSON object (an array for several guards) on standard output, and nothing else
    /// there.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show all options. Help leaves out those that few need.
    #[arg(long, global = true, action = ArgAction::Help)]
    help_all: Option<bool>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the keys of a file, or of standard input, into a store.
    #[command(after_help = commands::load::EXAMPLES)]
    Load(commands::load::LoadArgs),
    /// Print the value of a key. Exit status 1 if there is none.
    #[command(after_help = "Example: a value\n  trommel get --db words apple")]
    Get(commands::get::GetArgs),
    /// Set the value of a key.
    #[command(after_help = "Example: a key and its value\n  trommel put --db words apple red")]
    Put(commands::put::PutArgs),
    /// Remove a key. No error if it is not there.
    #[command(after_help = "Example: one key\n  trommel delete --db words apple")]
    Delete(KeyArgs),
    /// Remove all keys from one on and before another, in one write.
    #[command(after_help = commands::delete_range::EXAMPLES)]
    DeleteRange(commands::delete_range::DeleteRangeArgs),
    /// Print keys and values in order, a tab between them.
    #[command(
        after_help = "Example: ten keys from tro on\n  trommel scan --db words --from tro --limit 10"
    )]
    Scan(commands::scan::ScanArgs),
    /// Estimate how many keys a range has, from block indexes or, with `--guard grf`, from the
    /// filter's ranks.
    #[command(
        after_help = "Example: from one key to another\n  trommel count --db words --from a --to b --guard grf"
    )]
    Count(RangeArgs),
    /// Print what was written after a number, in its order, of all key spaces, as far as logs have
    /// it: number, key space, put or deletion, key, value.
    #[command(after_help = commands::changes::EXAMPLES)]
    Changes(commands::changes::ChangesArgs),
    /// Do the merges that are due under the policy, or merge everything into one run.
    #[command(after_help = commands::compact::EXAMPLES)]
    Compact(commands::compact::CompactArgs),
    /// Print the statistics of a store.
    #[command(
        after_help = "Example: all figures, for a program\n  trommel stats --db words --json"
    )]
    Stats(commands::stats::StatsArgs),
    /// Show the tree as a picture: levels, runs, spans, guard memory.
    #[command(
        after_help = "Example: the tree of a store that another process may have open\n  trommel inspect --db words --watch"
    )]
    Inspect(commands::inspect::InspectArgs),
    /// Write a page that plays a tree back, step by step: its runs, its merges, and the filter's
    /// codes of a key. A tree that is grown for it, or one that was recorded with --record.
    #[command(after_help = commands::replay::EXAMPLES)]
    Replay(commands::replay::ReplayArgs),
    /// Read everything and check it, also of a store that does not open: tell all that is damaged
    /// or missing. Exit status 3 if anything is.
    #[command(after_help = commands::verify::EXAMPLES)]
    Verify(StoreArgs),
    /// Print what the files of a store hold. Exit status 3 if anything is damaged.
    #[command(after_help = commands::dump::EXAMPLES)]
    Dump(commands::dump::DumpArgs),
    /// Make a second store, in a new folder, that holds what this one holds: by hard links, where
    /// that can be.
    #[command(
        after_help = "Example: a second store beside the first\n  trommel checkpoint --db words words-today"
    )]
    Checkpoint(commands::checkpoint::CheckpointArgs),
    /// Store a generation of a store in a folder of backups: only files that are not there yet.
    /// A store that another process has open is read along.
    #[command(after_help = commands::backup::BACKUP_EXAMPLES)]
    Backup(commands::backup::BackupArgs),
    /// List the generations of a folder of backups, check or remove some.
    #[command(after_help = commands::backup::BACKUPS_EXAMPLES)]
    Backups(commands::backup::BackupsArgs),
    /// Make a store of a generation, or as it was at a moment since.
    #[command(after_help = commands::backup::RESTORE_EXAMPLES)]
    Restore(commands::backup::RestoreArgs),
    /// Write all entries of a store into a file, with counts and a checksum.
    #[command(after_help = commands::export::EXAMPLES)]
    Export(commands::export::ExportArgs),
    /// Read entries that were exported, or another store's: of Trommel, RocksDB, LevelDB.
    #[command(after_help = commands::import::EXAMPLES)]
    Import(commands::import::ImportArgs),
    /// List the key spaces of a store, drop one, or give one another name.
    #[command(after_help = commands::keyspaces::EXAMPLES)]
    Keyspaces(commands::keyspaces::KeyspacesArgs),
    /// Mend a damaged store, out of all that can be read. Exit status 1 if something could not be
    /// saved.
    #[command(after_help = commands::repair::EXAMPLES)]
    Repair(commands::repair::RepairArgs),
    /// Rewrite a store of an older format version, in place, and keep the old one beside it.
    #[command(after_help = commands::upgrade::EXAMPLES)]
    Upgrade(commands::upgrade::UpgradeArgs),
    /// Measure.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Measure what plans say, the papers' experiments among them, and make reports of it.
    #[command(subcommand)]
    Lab(commands::lab::LabCommand),
    /// Run histories of random operations on a simulated disk, with crashes, faults and other
    /// options at each opening, and compare every answer with a model. Exit status 1 if one is
    /// wrong: it is told in short, with its seed. With --kills: kill real processes that write, and
    /// compare what they leave with what they had acknowledged.
    #[command(after_help = commands::stress::args::EXAMPLES)]
    Stress(commands::stress::args::StressArgs),
    /// Write until someone kills this process: what `stress --kills` starts.
    #[command(hide = true)]
    Victim(commands::victim::VictimArgs),
    /// Print the reference of all commands as Markdown: `docs/cli.md`.
    #[command(hide = true)]
    HelpMarkdown,
    /// Compare the guards on real keys, in a temporary folder: one table, then the tree as a
    /// picture.
    #[command(after_help = "Example: all of it\n  trommel demo")]
    Demo(commands::demo::DemoArgs),
    /// Print what a shell has to know to complete this command as it is typed.
    #[command(after_help = commands::completions::EXAMPLES)]
    Completions(commands::completions::CompletionsArgs),
    /// Print the manual page, or write one for each command.
    #[command(after_help = commands::man::EXAMPLES)]
    Man(commands::man::ManArgs),
}

impl Command {
    /// Returns the folder of the command's store. None: the command makes its own stores.
    pub(crate) fn store(&self) -> Option<&Path> {
        match self {
            Command::Load(load) => Some(&load.store.db),
            Command::Export(export) => Some(&export.store.db),
            Command::Import(import) => Some(&import.store.db),
            Command::Upgrade(upgrade) => Some(&upgrade.db),
            Command::Get(get) => Some(&get.key.store.db),
            Command::Delete(key) => Some(&key.store.db),
            Command::Put(put) => Some(&put.key.store.db),
            Command::DeleteRange(range) => Some(&range.store.db),
            Command::Scan(scan) => Some(&scan.range.store.db),
            Command::Count(range) => Some(&range.store.db),
            Command::Changes(changes) => Some(&changes.store.db),
            Command::Compact(compact) => Some(&compact.store.db),
            Command::Stats(stats) => Some(&stats.store.db),
            Command::Inspect(inspect) => Some(&inspect.store.db),
            Command::Verify(store) => Some(&store.db),
            Command::Dump(dump) => dump.db.as_deref(),
            Command::Checkpoint(checkpoint) => Some(&checkpoint.db),
            Command::Backup(backup) => Some(&backup.db),
            Command::Keyspaces(keyspaces) => Some(&keyspaces.db),
            Command::Repair(repair) => Some(&repair.db),
            Command::Backups(_) | Command::Restore(_) => None,
            Command::Replay(_) | Command::Bench(_) | Command::Lab(_) => None,
            Command::Stress(_) | Command::Victim(_) | Command::Demo(_) => None,
            Command::HelpMarkdown | Command::Completions(_) | Command::Man(_) => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Load a tree of known shape per guard, then measure reads in rounds that take turns.
    #[command(
        after_help = "Examples: two guards, with 10 bits per key; what begins with a prefix that no key has\n  \
    trommel bench read --guard grf,blocked-bloom --keys 1000000 --bits-per-key 10\n  \
    trommel bench read --dist user-time --kinds point_miss --ask absent-prefix,second-part"
    )]
    Read(bench::read::BenchReadArgs),
    /// Measure the filters alone, without a store.
    #[command(
        after_help = "Example: all filters that know ranges\n  trommel bench probe --guard all-ranges --keys 100000"
    )]
    Probe(bench::probe::BenchProbeArgs),
    /// Write from several threads, and measure what each write and the whole cost.
    #[command(
        after_help = "Example: four writers\n  trommel bench write --keys 1000000 --threads 4"
    )]
    Write(bench::write::BenchWriteArgs),
    /// Measure the CPU time of a get with one reader and with several, while a paced writer writes.
    #[command(
        after_help = "Example: four readers\n  trommel bench readers --guard grf --threads 4"
    )]
    Readers(bench::readers::BenchReadersArgs),
    /// Measure opening a store, with and without the image of its filter, beside reading what that
    /// must read.
    #[command(
        after_help = "Example: a store of a million keys\n  trommel bench open --keys 1000000"
    )]
    Open(bench::open::BenchOpenArgs),
    /// Measure reads and writes of this store beside another one's, in one process, in rounds that
    /// take turns.
    #[command(after_help = bench::compare::EXAMPLES)]
    Compare(bench::compare::BenchCompareArgs),
    /// Run YCSB's core workloads A to F over this store with several guards, and over other stores.
    #[command(after_help = bench::ycsb::EXAMPLES)]
    Ycsb(bench::ycsb::BenchYcsbArgs),
    /// Run transactions over this store and others, from unique inserts to TPC-C's, and check what
    /// they leave.
    #[command(after_help = bench::transactions::EXAMPLES)]
    Transactions(bench::transactions::BenchTransactionsArgs),
    /// Measure what packing blocks saves and costs, of text, JSON, numbers and a map's edits, in
    /// this store and in others.
    #[command(after_help = bench::compression::EXAMPLES)]
    Compression(bench::compression::BenchCompressionArgs),
    /// Measure large values, written, overwritten and read, in this store and in others.
    #[command(after_help = bench::values::EXAMPLES)]
    Values(bench::values::BenchValuesArgs),
    /// Count how often a global range filter says "maybe" where nothing is, for many distributions,
    /// budgets and widths.
    #[command(after_help = bench::fpr::EXAMPLES)]
    Fpr(bench::fpr::BenchFprArgs),
    /// Compute how short Chucky's codes of level ids are, and how they fill buckets: the paper's
    /// Figures 5, 6, 8, 9 and 12.
    #[command(after_help = bench::chucky_codes::EXAMPLES)]
    ChuckyCodes(bench::chucky_codes::ChuckyCodesArgs),
    /// Measure what each of the things that make SuRF's trie fast is worth: the paper's Figure 7.
    #[command(after_help = "Example: addresses\n  trommel bench surf-steps --dist emails")]
    SurfSteps(bench::surf_steps::SurfStepsArgs),
    /// Measure SuRF's trie as an ordered map in memory beside others: the paper's Figures 5 and 6.
    #[command(after_help = "Example: addresses\n  trommel bench map --dist emails")]
    Map(bench::map::MapArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
