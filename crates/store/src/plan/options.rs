//! Options: what a store may use, and how it is laid out. Plain data, one `check`.
//! ```text
//! Options::new().bits_per_key(14.0)     set("bits_per_key", "14")     preset("server")
//!        '--------------- values, and which of them were set -------------'
//! ```
//! Invariant: an option that was not set has its default, or its preset's value.

pub(crate) mod keyspace;
mod list;
mod nearest;
mod presets;
#[cfg(test)]
mod tests;
mod text;

use std::ops::Deref;
use std::time::Duration;

use trommel_filters::{FilterTuning, RunCodes, Tuning, TuningOption};

use crate::entries::compression::{Compression, DICTIONARY_BYTES_MAX, FEATURE, Packing};
use crate::entries::merge_operator::OperatorOption;
use crate::error::{Error, Result};
use crate::plan::background::Background;
use crate::plan::guard_kind::GuardKind;
use crate::plan::partitions::{Division, Granularity};
use crate::plan::policy::{Policy, Schedule};
use crate::plan::registry;
use crate::plan::run_limits::RunLimits;
use crate::plan::sync_policy::SyncPolicy;
use crate::storage::io_mode::{Access, DirectIo, IoStats, Overlap};

pub use list::OptionInfo;
use list::options;
use nearest::nearest;
use text::OptionText;
pub use text::whole_number;

/// The shortest value that may be apart, in bytes.
pub(crate) const VALUE_THRESHOLD_MIN: usize = 256;

/// How a store is laid out and what it may use. Nothing here is fixed for ever: a store can be
/// opened with other options at any time, and moves there as it flushes and merges.
///
/// ```
/// use trommel::{GuardKind, Options};
///
/// # fn main() -> trommel::Result<()> {
/// let mut options = Options::new().guard(GuardKind::Grf).bits_per_key(14.0);
/// options.set("write_buffer_bytes", "16MiB")?;
/// assert_eq!(options.write_buffer_bytes, 16 << 20);
/// assert!(options.is_set("bits_per_key") && !options.is_set("size_ratio"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    values: OptionValues,
    /// The names of those that were set.
    set: Vec<&'static str>,
    /// Those of them that hold for one opening.
    for_now: Vec<String>,
}

options! {
    /// T: how many runs of a level, when that is full, merge into one of the next. 2 to 255.
    /// More: cheaper writes, more runs (which a guard makes cheap to have).
    size_ratio: u32 = 10, "2 to 255" if |it| (2..=255).contains(it);
    /// How many runs levels have, and whether first levels have another ratio.
    policy: Policy = Policy::default(), "a policy's name";
    /// Bytes of new entries that are kept in memory before they become a run on disk. More: fewer,
    /// larger runs; more memory (up to five times this, under load) and longer recovery. 1 KiB to
    /// 64 GiB.
    write_buffer_bytes: usize = 64 << 20,
        "1 KiB to 64 GiB" if |it| (1 << 10..=1 << 36).contains(&(*it as u64));
    /// What decides which runs may hold a key or a range.
    guard: GuardKind = GuardKind::Grf, "a guard's name";
    /// Memory of the guard, in bits per key. More: fewer needless reads.
    bits_per_key: f64 = 12.0, "1 to 64" if |it| (1.0..=64.0).contains(it);
    /// Bytes `grf` settles at. They are of each key space by itself, and of no other guard. 0:
    /// no limit but `bits_per_key`, which no part of the filter exceeds. Where memory does not do
    /// for that, parts that are asked less in vain get fewer bits, down to 3. Merges build parts
    /// so, and a part that should have other bits is built anew in the background, one at a time.
    /// An opening takes parts as their images are, and they shrink then. The more partitions
    /// ([`partition_bytes`](OptionValues::partition_bytes)), the better it follows what is asked.
    /// Less: more needless reads of what is asked seldom. A sample of at most 8192 asked keys is in
    /// memory for it.
    filter_memory: u64 = 0, "any number";
    /// Whether the runs of the tree share the guard's memory as Monkey divides it: more bits per
    /// key for small runs, fewer for large ones. The average is `bits_per_key` just before a merge
    /// into the last level, and at most that at other times. A get of an absent key then reads
    /// several times fewer needless blocks. For guards with a point filter for each table. When the
    /// last level was written without it, filters gain from its next merge on.
    monkey: bool = false, "true or false";
    /// Of these, bits of a hash of each key, which help `get` alone. Without them a global range
    /// filter says "maybe" for absent keys that are close to stored ones. Ranges pay for them. 0 to
    /// 16. With 0, `grf` chooses for each part: some where keys are text and mostly `get` asks.
    point_bits: u8 = 0, "0 to 16" if |it| *it <= 16;
    /// Whether questions that find nothing decide how `grf` divides its bits, whenever it is built
    /// anew. Stretches of keys that are asked more have more of them. Where `get` asks for keys
    /// close behind stored ones, and for text, some are of hashes; without it, three of five
    /// questions are expected to be `get`. A sample of at most 2048 keys is in memory for it, and
    /// some are in images.
    learn_questions: bool = true, "true or false";
    /// Bytes of entries in one block. A read takes whole blocks. More: less memory for fence
    /// pointers, better compression, more bytes per read.
    block_bytes: usize = 4096, "256 to 1048576" if |it| (256..=1 << 20).contains(it);
    /// How blocks are made smaller, each only where that saves an eighth of it. `zstd` takes the
    /// feature of that name of the crate `trommel`. A store may be opened with another one at any
    /// time: each block tells its own. Values in memory are never packed.
    compression: Compression, Compression = Compression::Lz4, "none, lz4, zstd:1 to zstd:22"
        if |it| it.is_sensible();
    /// The same, of what merges write into the last level, which mostly has nine tenths of all
    /// entries, and is rewritten seldom. None: as `compression`.
    last_level_compression: Option<Compression>, Option<Compression> = None,
        "none, lz4, zstd:1 to zstd:22" if |it| it.is_none_or(Compression::is_sensible);
    /// The largest dictionary that a merge makes for `zstd`, from a sample of its input. It has
    /// what blocks have in common, so that each need not say it anew. A table has one only where a
    /// part of the sample shows that it pays. In memory it takes 27 KiB more, for each table. 0:
    /// none is made. More: smaller blocks, more memory.
    dictionary_bytes: usize = 16 << 10, "0, or 256 to 1048576"
        if |it| *it == 0 || (256..=DICTIONARY_BYTES_MAX).contains(it);
    /// Bytes from which on a value is apart: it is written once, into a file of values, and log,
    /// memory and tables have a reference. 0: none is. Operands of a merge operator, and what it
    /// makes of them, never are. Less: merges rewrite less; a read of such a value is one read
    /// more, and space comes back later.
    value_threshold: usize = 16 << 10, "0, or 256 and more"
        if |it| *it == 0 || *it >= VALUE_THRESHOLD_MIN;
    /// The share of garbage from which on a file's other values are moved: merges into the last
    /// level write them to another file, so that it can go. Less: less disk, more is written.
    value_garbage_share: f64 = 0.3, "0.05 to 0.95" if |it| (0.05..=0.95).contains(it);
    /// The share of the oldest files of values whose values such merges move, whatever garbage they
    /// have. 0: age does not matter. 1: each such merge writes all its values anew. More: values
    /// that stay are packed as `last_level_compression` says, and lie together; more is written.
    value_move_oldest: f64 = 0.0, "0 to 1" if |it| (0.0..=1.0).contains(it);
    /// Bytes after which values go on in another file. Less: space comes back in smaller steps, in
    /// more files.
    value_file_bytes: u64 = 256 << 20, "at least 4096" if |it| *it >= 4096;
    /// Memory for blocks that were read. 0: none is kept.
    block_cache_bytes: usize = 32 << 20, "any number";
    /// Which transfers of tables go past the operating system's cache, where the file system can do
    /// it.
    direct: DirectIo = DirectIo::default(), "none, all, or some of reads, flushes, merges";
    /// How reads of blocks that are asked for together are done at once, where the storage can do
    /// it. Unless reads go one by one, data that bypass the system's cache are also read ahead and
    /// written behind. Merges and long scans read ahead a MiB for each table that they are in.
    overlap: Overlap = Overlap::Ring, "io_uring, pool, one-by-one";
    /// Runs of level 0 (flushed and not yet merged) at which writers begin to be slowed down. With
    /// more runs they are slower, from 64 MB/s to a hundredth of it. None: 2 T + 4, of level 0's
    /// ratio T.
    /// More: fewer pauses, more runs to search while merges catch up. (A level between the first
    /// and the last slows them down from 2 T + 4 runs on, of its own T, whatever this says.)
    slow_down_runs: Option<usize>, Option<usize> = None, "any number";
    /// Runs of level 0 at which writers wait for a merge. None: twice the larger of
    /// `slow_down_runs` and 2 T + 4. More than level 0's ratio, and than `slow_down_runs`. More:
    /// later, longer stops. (In memory, writers are slowed down from three full write buffers on
    /// and stopped by four and a fifth, while they wait for their flush.)
    stop_runs: Option<usize>, Option<usize> = None,
        "above slow_down_runs and size_ratio (of level 0)";
    /// Bytes that merges may read in a second, of all entries; flushes count too, but wait for
    /// nothing. Merges go faster while writers wait for them. None: as fast as they can. Less:
    /// steadier reads, more runs while merges catch up.
    merge_bytes_per_second: Option<u64>, Option<u64> = None, "at least 1" if |it| *it != Some(0);
    /// Bytes after which a run goes on in another file.
    table_bytes: u64 = 64 << 20, "at least 4096" if |it| *it >= 4096;
    /// How much of a level a merge rewrites at once. With a guard that knows in which run each key
    /// is (`chucky`, `remix`, ...), it is all, whatever this says. Such a merge rebuilds the guard.
    granularity: Granularity = Granularity::Partitioned, "full, partitioned, partial";
    /// Bytes of a partition of the last level, about, where merges into it go from one to the next.
    /// A tree with less has one. More: fewer parts of the filter, fewer blocks read twice; a merge
    /// needs more disk.
    partition_bytes: u64 = 256 << 20, "at least 1024" if |it| *it >= 1024;
    /// Whether merges above the last level drop a deletion, or what has expired, when the guard
    /// says that no older run may have its key. Then it hides nothing. It costs a probe for each
    /// deletion in a merge. Guards that know in which run each key is (`chucky`, `remix`, ...) do
    /// nothing of it.
    eager_tombstones: bool = false, "true or false";
    /// What makes a value of the operands that [`Db::merge`](crate::Keyspace::merge) writes.
    /// Reads, flushes and merges apply it. A key space has one for ever: its name is kept, and
    /// opening it with another one is an error. Opening it without is none: those that come with
    /// the store are found by the name, and with others keys with operands cannot be read.
    merge_operator: OperatorOption, OperatorOption = OperatorOption::none(),
        "none, add-le, add-be, concat: and a separator, or a name of one's own"
        if |it| it.is_named_well();
    /// The most merges that are open at once, each of other runs. A thread goes on with the one
    /// that began last, mostly a small one. None: one more than threads merge; in stepped mode one.
    /// It is one, whatever this says, with a guard that merges give every key (`chucky`, `remix`,
    /// `grf-huffman`, ...). More: small merges wait less for large ones; more disk and memory while
    /// they last.
    merges_at_once: Option<usize>, Option<usize> = None, "at least 1" if |it| *it != Some(0);
    /// Bytes of a submerge, about. Several threads share a merge of twice as much or more: it is
    /// split into submerges by key ranges. In stepped mode it is split where several merges may be
    /// open. Less: threads share smaller merges. More: larger tables where `table_bytes` allows for
    /// them. While the last level is merged, a global range filter has the keys of up to one
    /// submerge for each thread in memory.
    merge_piece_bytes: u64 = 64 << 20, "at least 1024" if |it| *it >= 1024;
    /// Files of tables that are open at most, 1 at least; others are closed by use and opened
    /// again. None: half of the files that the process may have open (`RLIMIT_NOFILE` when the
    /// store is opened). The other half is left to logs, new tables and rings, to the rest of the
    /// program and to its other stores. What tables have in memory (filters, fences, deleted
    /// ranges) stays there. More: fewer files are opened again. Less: reads by more threads than
    /// this wait for each other; queues have half of them. In a follower, files that the writer has
    /// removed stay open beyond this.
    max_open_files: Option<usize>, Option<usize> = None, "at least 1" if |it| *it != Some(0);
    /// Whether writes go into the log before they are visible. Without it they are in memory alone
    /// until they are flushed. A crash takes what was not: of a key space's writes those up to some
    /// number stay, [`Stats::durable_through`](crate::stats::Stats::durable_through) at least, and
    /// no later one. Closing the store flushes them. `sync` promises nothing of them, and change
    /// feeds do not tell them. Of a batch over several key spaces, what is in those with a log
    /// stays or goes as a whole. For programs with a log of their own.
    log: bool = true, "true or false";
    /// Whether small writes go into the log by mapped memory: on Linux, where the file system
    /// is ext4 or tmpfs. A write then needs no system call, and outlives the process all the same.
    /// While the log is open, its file has up to 4 MiB of zeros at its end. If the disk fails so
    /// that its file system gives up, or somebody shortens the log, a write may end the process
    /// (SIGBUS). False: each write is a call, and fails with an error then.
    mapped_log: bool = false, "true or false";
    /// When a write is safe on disk.
    sync: SyncPolicy = SyncPolicy::Interval(Duration::from_secs(1)), "always, never, or seconds";
    /// Bytes of logs from which on shared ones are made fewer: what a key space that is written
    /// seldom has in old ones is written into the newest one again, or flushed. A store with one
    /// key space has a log for each memtable, whatever this says.
    max_log_bytes: u64 = 512 << 20, "at least 65536" if |it| *it >= 65536;
    /// Bytes of logs that are kept for change feeds alone. Each counts as 4096 at least. The oldest
    /// go first. What is set holds for later openings, too: see
    /// [`Db::changes_since`](crate::Db::changes_since). More: more disk, and a reader of changes
    /// may stay behind for longer before it has to begin anew.
    kept_log_bytes: u64 = 0, "any number";
    /// Memory for what transactions need of filters that merges have replaced since they began.
    /// With it, a commit knows without reading that what it has read is not newer. More: less to
    /// read for transactions that last while the last level is merged.
    transaction_memory: u64 = 64 << 20, "any number";
    /// How long a call waits for keys that transactions have locked, in seconds: one that reads a
    /// key for update, and every write of it. 0: not at all. Less: a transaction that does not end
    /// is told of sooner.
    lock_timeout: Duration = Duration::from_secs(1), "seconds, up to a day"
        if |it| *it <= Duration::from_secs(24 * 60 * 60);
    /// What flushes and merges.
    background: Background = Background::Threads(1),
        "1 to 1024 threads, or stepped" if |it| it.is_sensible();
    /// Whether one of 32 gets, first steps of scans and writes is timed: see
    /// [`Stats::gets`](crate::stats::Stats::gets) and its neighbours. Without it a get asks no
    /// clock.
    time_calls: bool = false, "true or false";
    /// Whether `open` makes a store where there is none.
    create_if_missing: bool = true, "true or false";
}

/// Whether two are the same; not, who has set what.
impl PartialEq for Options {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Deref for Options {
    type Target = OptionValues;

    fn deref(&self) -> &OptionValues {
        &self.values
    }
}

/// By name and text.
impl Options {
    /// The defaults.
    pub fn new() -> Options {
        Options::default()
    }

    /// The options of filters beside their memory, which [`set`](Options::set) sets, too.
    pub fn filter_list() -> Vec<&'static TuningOption> {
        let mut all: Vec<&TuningOption> = Vec::new();
        for option in registry::filters().into_iter().flat_map(|kind| kind.tuning_options()) {
            if all.iter().all(|other| other.name != option.name) {
                all.push(option);
            }
        }
        all
    }

    /// Sets what the filters of tables are told beside their memory.
    #[must_use]
    pub fn filter(mut self, filter: FilterTuning) -> Self {
        self.values.filter = filter;
        self.mark("filter");
        self
    }

    /// Changes what the filters of tables are told, of one type.
    #[must_use]
    pub fn tune<T: Tuning>(mut self, change: impl FnOnce(&mut T)) -> Self {
        self.values.filter.change(change);
        self.mark("filter");
        self
    }

    /// Every option that has a text.
    pub fn list() -> &'static [OptionInfo] {
        LIST
    }

    /// Sets an option from its text.
    ///
    /// # Errors
    /// `Option`: there is no such option (the nearest one is named, or all), or the text is no
    /// value of it. Then nothing is set. What it may be is checked by [`check`](Options::check).
    pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
        let name = match known(name)? {
            Known::OfStore(option) => (option.read)(&mut self.values, text).map(|()| option.name),
            Known::OfFilter(option) => {
                (option.read)(&mut self.values.filter, text).map(|()| option.name)
            }
        }
        .map_err(|problem| Error::Option { option: name.to_string().into(), problem })?;
        self.mark(name);
        Ok(())
    }

    /// The text of an option.
    ///
    /// # Errors
    /// `Option`: there is no such option.
    pub fn text_of(&self, name: &str) -> Result<String> {
        Ok(match known(name)? {
            Known::OfStore(option) => (option.write)(&self.values),
            Known::OfFilter(option) => (option.write)(&self.values.filter),
        })
    }

    /// An option that is set holds for this opening alone: the store keeps what it kept.
    #[must_use]
    pub fn for_now(mut self, name: &str) -> Self {
        self.for_now.push(name.replace('-', "_"));
        self
    }

    /// Whether the option was set, by its setter or by text, to whatever. False for an unknown one.
    pub fn is_set(&self, name: &str) -> bool {
        self.set.contains(&name)
    }

    /// Whether none was set.
    pub(crate) fn sets_nothing(&self) -> bool {
        self.set.is_empty()
    }

    /// The names of those that were set, and not for one opening alone.
    pub(crate) fn lasting(&self) -> impl Iterator<Item = &'static str> + '_ {
        let lasts = |name: &&str| !self.for_now.iter().any(|other| other == name);
        self.set.iter().copied().filter(lasts)
    }

    /// Whether none of those that were set is for one opening alone.
    pub(crate) fn all_last(&self) -> bool {
        self.for_now.is_empty()
    }

    /// The first option that needs what this program was built without, and what to do.
    fn not_built_in(&self) -> Option<(&'static str, String)> {
        let last = self.last_level_compression.unwrap_or(self.compression);
        let both = [("compression", self.compression), ("last_level_compression", last)];
        let (option, lacks) = both.into_iter().find(|(_, it)| !it.is_built_in())?;
        let problem = format!(
            "{lacks} needs the feature `{FEATURE}` of the crate `trommel`, which this program was \
             built without: build it with that feature, or set none or lz4"
        );
        Some((option, problem))
    }

    fn mark(&mut self, name: &'static str) {
        if !self.is_set(name) {
            self.set.push(name);
        }
    }

    /// An error that names the first option that makes no sense.
    pub fn check(&self) -> Result<()> {
        let limits = RunLimits::of(self);
        let stops_late = limits.stop > limits.slow_down && limits.stop > self.schedule().ratio(0);
        let single = LIST.iter().map(|option| (option.name, (option.holds)(self), option.limits));
        let together = [
            ("monkey", !self.monkey || self.guard.rate_law().is_some(), NO_MONKEY),
            ("stop_runs", stops_late, "above slow_down_runs and size_ratio (of level 0)"),
        ];
        let wrong = single.chain(together).find(|(_, holds, _)| !holds);
        let wrong = wrong.map(|(option, _, limits)| (option, format!("must be {limits}")));
        let wrong = wrong.or_else(|| self.not_built_in());
        let of_parts = || self.policy.problem().or_else(|| self.filter.problem());
        let wrong = wrong.or_else(|| of_parts().map(|(option, problem)| (option, problem.into())));
        match wrong {
            Some((option, problem)) => Err(Error::Option { option: option.into(), problem }),
            None => Ok(()),
        }
    }
}

/// An option that has a name.
enum Known {
    OfStore(&'static OptionInfo),
    OfFilter(&'static TuningOption),
}

/// The option of a name.
fn known(name: &str) -> Result<Known> {
    let plain = name.replace('-', "_");
    if let Some(option) = LIST.iter().find(|option| option.name == plain) {
        return Ok(Known::OfStore(option));
    }
    let of_filters = Options::filter_list();
    if let Some(option) = of_filters.iter().find(|option| option.is_named(name)) {
        return Ok(Known::OfFilter(option));
    }
    let of_filters = of_filters.iter().map(|option| option.name);
    let names: Vec<&str> = LIST.iter().map(|option| option.name).chain(of_filters).collect();
    let problem = match nearest(&plain, &names) {
        Some(near) => format!("there is no such option; did you mean {near}?"),
        None => format!("there is no such option; there are: {}", names.join(", ")),
    };
    Err(Error::Option { option: name.to_string().into(), problem })
}

impl OptionValues {
    /// The policy with the ratio of every level.
    pub(crate) fn schedule(&self) -> Schedule<'_> {
        Schedule { policy: &self.policy, size_ratio: self.size_ratio }
    }

    /// The bytes that parts of a global filter share by what is asked of them. None: each has as
    /// many bits for a key as any other.
    pub(crate) fn part_memory(&self) -> Option<u64> {
        Some(self.filter_memory).filter(|&bytes| bytes > 0 && self.guard == GuardKind::Grf)
    }

    /// How tables are read and written, if the storage can do it.
    pub(crate) fn io(&self) -> IoStats {
        IoStats { direct: self.direct, overlap: self.overlap }
    }

    /// How logs are written, if the storage can do it.
    pub(crate) fn log_access(&self) -> Access {
        Access { mapped: self.mapped_log, ..Access::default() }
    }

    /// How merges are divided.
    pub(crate) fn division(&self) -> Division {
        // A filter that knows in which run each key is grows only when a merge makes it anew, of
        // all keys.
        let granularity = match self.guard.locator() {
            Some(_) => Granularity::Full,
            None => self.granularity,
        };
        let OptionValues { partition_bytes, table_bytes, .. } = *self;
        Division { granularity, partition_bytes, table_bytes }
    }

    /// How merges pack what they write, into the last level or above it.
    pub(crate) fn packing(&self, into_last: bool) -> Packing {
        let last = self.last_level_compression.filter(|_| into_last);
        Packing {
            compression: last.unwrap_or(self.compression),
            dictionary_bytes: self.dictionary_bytes,
            table_bytes: self.table_bytes,
        }
    }

    /// How many merges may be open at once.
    pub(crate) fn open_merges_max(&self) -> usize {
        // A merge makes such a guard anew from the one that it began with: of two merges, each
        // would lack the other one's changes.
        if self.guard.locator().is_some() || self.guard.run_codes() == RunCodes::Huffman {
            return 1;
        }
        self.merges_at_once.unwrap_or(match self.background {
            // Small merges need not wait until a thread is done with a large one.
            Background::Threads(count) => count.saturating_add(1),
            Background::Stepped => 1,
        })
    }

    /// Whether large merges are split, for several threads.
    pub(crate) fn subdivides(&self) -> bool {
        self.background != Background::Threads(1) && self.open_merges_max() > 1
    }
}

/// Why a store may not be opened with `monkey`.
const NO_MONKEY: &str = "false, but for a guard with a filter for each table whose rate follows from its bits, such as bloom";
