//! The store that a command works on, and how it is opened.
//! ```text
//! --db DIR --guard NAME --policy NAME ...  -->  Options  -->  open, open or make, open to read
//! ```
//! Invariant: a command that only asks changes no tree.

use std::path::PathBuf;

use clap::Args;
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};

use crate::args::filter::{FilterArgs, MemoryArgs};
use crate::args::guards::{guard, guard_help};
use crate::args::io::IoArgs;
use crate::args::policy::PolicyArgs;
use crate::args::values::{byte_count, sync};
use crate::output::progress::patiently;

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
    policy: PolicyArgs,
    /// Memory for new entries before they become a run on disk, like 64MiB.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "64MiB")]
    pub(crate) write_buffer: usize,
    /// Memory for blocks that were read.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "32MiB")]
    pub(crate) block_cache: usize,
    /// When a write is safe on disk: always (before it returns), never (when its run is written),
    /// or so many seconds later.
    #[arg(long, value_name = "WHEN", value_parser = sync, default_value = "1")]
    pub(crate) sync: SyncPolicy,
    /// Bytes that merges may read in a second; they go faster while writers wait for them.
    /// [default: as fast as they can]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    merge_rate: Option<usize>,
    /// Merges drop a deletion when the guard says that no older run may have its key. (With
    /// `chucky`, `remix` and their like they do not.)
    #[arg(long)]
    eager_tombstones: bool,
    /// The filter does not learn what it is asked for in vain.
    #[arg(long)]
    no_learning: bool,
    #[command(flatten)]
    io: IoArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

impl StoreArgs {
    /// The options that were asked for; `guard_default` if no guard was named.
    fn options(&self, guard_default: GuardKind) -> Options {
        Options::new()
            .guard(self.guard.unwrap_or(guard_default))
            .bits_per_key(self.bits_per_key)
            .monkey(self.memory.monkey)
            .point_bits(self.memory.point_bits)
            .size_ratio(self.policy.size_ratio())
            .policy(self.policy.policy())
            .granularity(self.policy.granularity())
            .partition_bytes(self.policy.partition_bytes())
            .eager_tombstones(self.eager_tombstones)
            .learn_questions(!self.no_learning)
            .background(Background::Threads(self.policy.merge_threads()))
            .table_bytes(self.policy.table_bytes())
            .merge_bytes_per_second(self.merge_rate.map(|bytes| bytes as u64))
            .write_buffer_bytes(self.write_buffer)
            .block_cache_bytes(self.block_cache)
            .direct(self.io.direct())
            .overlap(self.io.overlap())
            .max_open_files(self.io.max_open_files())
            .sync(self.sync)
            .filter(self.filter.tuning().with(self.filter.elastic()))
    }

    fn open_with(&self, options: Options) -> trommel::Result<Db> {
        patiently("opening the store", || Db::open(&self.db, options))
    }

    /// Opens the store, or makes it if there is none.
    pub(crate) fn open_or_create(&self, guard_default: GuardKind) -> trommel::Result<Db> {
        self.open_with(self.options(guard_default))
    }

    /// Opens the store; an error if there is none.
    pub(crate) fn open(&self, guard_default: GuardKind) -> trommel::Result<Db> {
        let options = self.options(guard_default).create_if_missing(false);
        self.open_with(options)
    }

    /// Opens the store for reading alone; an error if there is none. Nothing is merged: a store
    /// does not keep its policy, so this one may not be its own. A reader must not change the tree.
    pub(crate) fn open_to_read(&self, guard_default: GuardKind) -> trommel::Result<Db> {
        self.open_to_read_with(self.guard.unwrap_or(guard_default))
    }

    /// As [`open_to_read`](Self::open_to_read), with this guard, whatever was asked for.
    pub(crate) fn open_to_read_with(&self, guard: GuardKind) -> trommel::Result<Db> {
        let options = self
            .options(guard)
            .guard(guard)
            .create_if_missing(false)
            .background(Background::Stepped);
        self.open_with(options)
    }
}
