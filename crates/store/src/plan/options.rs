//! Options: what a store may use, and how it is laid out. They are plain data with one `check`.
//! ```text
//! Options::new().bits_per_key(14.0)     set("bits_per_key", "14")     preset("server")
//!        '--------------- values, and which of them were set -------------'
//! ```
//! Invariant: an option that was not set has its default, or the value of its preset.

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

/// The least length of a value apart, in bytes.
pub(crate) const VALUE_THRESHOLD_MIN: usize = 256;

/// How a store is laid out, and what it may use. Nothing here is permanent: a store can be opened
/// with other options at any time. It adopts them as it flushes and merges.
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
    /// The names of the options that were set.
    set: Vec<&'static str>,
    /// The names of those among them that hold for one opening only.
    for_now: Vec<String>,
}

options! {
    /// T: how many runs of a level, once it is full, merge into one run of the next level. 2 to
    /// 255. More: cheaper writes, more runs (which a guard makes cheap to have).
    size_ratio: u32 = 10, "2 to 255" if |it| (2..=255).contains(it);
    /// How many runs levels have, and whether the first levels have another ratio.
    policy: Policy = Policy::default(), "a policy's name";
    /// Bytes of new entries that are kept in memory before they become a run on disk. 1 KiB to 64
    /// GiB. More: fewer, larger runs; more memory (under load, up to five times this) and longer
    /// recovery.
    write_buffer_bytes: usize = 64 << 20,
        "1 KiB to 64 GiB" if |it| (1 << 10..=1 << 36).contains(&(*it as u64));
    /// The filter that says which runs may hold a key or a key range.
    guard: GuardKind = GuardKind::Grf, "a guard's name";
    /// Memory of the guard, in bits per key. More: fewer needless reads.
    bits_per_key: f64 = 12.0, "1 to 64" if |it| (1.0..=64.0).contains(it);
    /// Bytes `grf` settles at. The limit is for each key space by itself, and only for this guard.
    /// 0: no limit but `bits_per_key`, which no part of the filter ever exceeds. If the memory does
    /// not suffice for `bits_per_key`, parts with fewer needless queries get fewer bits, down to 3.
    /// Merges build parts that way. A part that should have other bits is rebuilt in the
    /// background, one at a time. An opening loads parts as their images are, and shrinks them
    /// afterwards. The more partitions ([`partition_bytes`](OptionValues::partition_bytes)), the
    /// better the bits follow the queries. Less: more needless reads in key ranges that are queried
    /// rarely. A sample of at most 8192 queried keys is kept in memory for this.
    filter_memory: u64 = 0, "any number";
    /// Whether the runs of the tree share the guard's memory as Monkey divides it: more bits per
    /// key for small runs, fewer for large ones. The average is `bits_per_key` just before a merge
    /// into the last level, and at most that at other times. A get of an absent key then needs
    /// several times fewer needless block reads. For guards with a point filter for each table. If
    /// the last level was written without this option, filters gain from its next merge on.
    monkey: bool = false, "true or false";
    /// Of these, bits of a hash of each key, which only help `get`. Without them, a global range
    /// filter answers "maybe" for absent keys close to stored ones. More: fewer bits are left for
    /// ranges. 0 to 16. With 0, `grf` decides for each part: it uses some where keys are text and
    /// most queries are gets.
    point_bits: u8 = 0, "0 to 16" if |it| *it <= 16;
    /// Whether questions that find nothing decide how `grf` divides its bits, whenever a part is
    /// rebuilt. Key ranges with more such queries get more bits. Some bits are used for hashes:
    /// where `get` asks for keys just behind stored ones, and for text. Without this option, the
    /// filter expects three of five queries to be gets. A sample of at most 2048 keys is kept in
    /// memory for this, and some of these in images.
    learn_questions: bool = true, "true or false";
    /// Bytes of entries in one block. A read takes whole blocks. More: less memory for fence
    /// pointers, better compression, more bytes per read.
    block_bytes: usize = 4096, "256 to 1048576" if |it| (256..=1 << 20).contains(it);
    /// How blocks are made smaller, each only if that saves an eighth of it. `zstd` requires the
    /// feature of that name of the crate `trommel`. A store may be opened with another compression
    /// at any time, since each block records its own. Values in memory are never compressed.
    compression: Compression, Compression = Compression::Lz4, "none, lz4, zstd:1 to zstd:22"
        if |it| it.is_sensible();
    /// The same, of what merges write into the last level, which usually has nine tenths of all
    /// entries and is rewritten seldom. None: as `compression`.
    last_level_compression: Option<Compression>, Option<Compression> = None,
        "none, lz4, zstd:1 to zstd:22" if |it| it.is_none_or(Compression::is_sensible);
    /// The largest dictionary that a merge makes for `zstd`, from a sample of its input. It holds
    /// what blocks have in common, so that no block repeats it. A table gets one only if part of
    /// the sample shows that it pays. In memory it takes 27 KiB more than its size, for each table.
    /// 0: no dictionaries. More: smaller blocks, more memory.
    dictionary_bytes: usize = 16 << 10, "0, or 256 to 1048576"
        if |it| *it == 0 || (256..=DICTIONARY_BYTES_MAX).contains(it);
    /// Bytes from which on a value is apart: it is written once, to a value file, and log, memory
    /// and tables have a reference. 0: no value is apart. Operands of a merge operator, and what it
    /// makes of them, never are. Less: merges rewrite less; such a value needs one more read, and
    /// its space is freed later.
    value_threshold: usize = 16 << 10, "0, or 256 and more"
        if |it| *it == 0 || *it >= VALUE_THRESHOLD_MIN;
    /// The share of garbage from which on a file's other values are moved: merges into the last
    /// level write them to another file, so that this one can be removed. Less: less disk, more is
    /// written.
    value_garbage_share: f64 = 0.3, "0.05 to 0.95" if |it| (0.05..=0.95).contains(it);
    /// The share of the oldest files of values whose values such merges move, whatever garbage the
    /// files have. 0: age does not matter. 1: each such merge rewrites all its values. More: old
    /// values get the compression of `last_level_compression` and lie together; more is written.
    value_move_oldest: f64 = 0.0, "0 to 1" if |it| (0.0..=1.0).contains(it);
    /// Bytes after which values go on in another file. Less: space is freed in smaller steps, with
    /// more files.
    value_file_bytes: u64 = 256 << 20, "at least 4096" if |it| *it >= 4096;
    /// Memory for blocks that were read. 0: no block is cached.
    block_cache_bytes: usize = 32 << 20, "any number";
    /// Which transfers of tables go past the operating system's cache, where the file system
    /// supports that.
    direct: DirectIo = DirectIo::default(), "none, all, or some of reads, flushes, merges";
    /// How reads of blocks that are asked for together are done at once, where the storage supports
    /// that. Unless it is `one-by-one`, data that bypass the system's cache are also read ahead and
    /// written behind. Merges and long scans read ahead one MiB in each table that they are in.
    overlap: Overlap = Overlap::Ring, "io_uring, pool, one-by-one";
    /// Runs of level 0 (flushed and not yet merged) at which writers begin to be slowed down. With
    /// more runs they get slower, from 64 MB/s down to a hundredth of that. None: 2 T + 4, with
    /// level 0's ratio T. More: fewer pauses, more runs to search while merges catch up. (A level
    /// between the first and the last slows writers down from 2 T + 4 runs on, with its own T,
    /// whatever this option says.)
    slow_down_runs: Option<usize>, Option<usize> = None, "any number";
    /// Runs of level 0 at which writers wait for a merge. None: twice the larger of
    /// `slow_down_runs` and 2 T + 4. Must exceed level 0's ratio and `slow_down_runs`. More: later,
    /// longer stops. (Memory has its own limits. Writers are slowed down when three full write
    /// buffers wait for their flush, and stopped when four wait and a fifth is full.)
    stop_runs: Option<usize>, Option<usize> = None,
        "above slow_down_runs and size_ratio (of level 0)";
    /// Bytes that merges may read in a second, in all threads together; flushes count, too, but
    /// never wait. Merges exceed the limit while writers wait for them. None: no limit. Less:
    /// steadier reads, more runs while merges catch up.
    merge_bytes_per_second: Option<u64>, Option<u64> = None, "at least 1" if |it| *it != Some(0);
    /// Bytes after which a run goes on in another file.
    table_bytes: u64 = 64 << 20, "at least 4096" if |it| *it >= 4096;
    /// How much of a level a merge rewrites at once. It is always the whole level with a guard that
    /// knows which run each key is in (`chucky`, `remix`, ...). Such a merge rebuilds the guard.
    granularity: Granularity = Granularity::Partitioned, "full, partitioned, partial";
    /// Bytes of a partition of the last level, approximately, where merges into it proceed by
    /// partitions. A smaller tree has one partition. More: fewer parts of the filter, fewer blocks
    /// read twice; a merge needs more free disk.
    partition_bytes: u64 = 256 << 20, "at least 1024" if |it| *it >= 1024;
    /// Whether merges above the last level drop a deletion, or an expired entry, when the guard
    /// says that no older run has its key. Then the entry hides nothing. This costs a probe for
    /// each deletion in a merge. Guards that know which run each key is in (`chucky`, `remix`, ...)
    /// ignore this option.
    eager_tombstones: bool = false, "true or false";
    /// What makes a value of the operands that [`Db::merge`](crate::Keyspace::merge) writes. Reads,
    /// flushes and merges apply it. A key space keeps the name of its operator for ever, and
    /// opening it with another one is an error. It may be opened without one: built-in operators
    /// are found by that name. With any other, keys with operands cannot be read then.
    merge_operator: OperatorOption, OperatorOption = OperatorOption::none(),
        "none, add-le, add-be, concat: and a separator, or a name of one's own"
        if |it| it.is_named_well();
    /// The most merges that are open at once, each of different runs. A thread continues the merge
    /// that began last, usually a small one. None: one more than there are merging threads; one in
    /// stepped mode. Guards that a merge updates with every key (`chucky`, `remix`, `grf-huffman`,
    /// ...) always have one merge at a time. More: small merges wait less for large ones; more disk
    /// and memory meanwhile.
    merges_at_once: Option<usize>, Option<usize> = None, "at least 1" if |it| *it != Some(0);
    /// Bytes of a submerge, about. A merge of at least twice as many bytes is split by key ranges
    /// into submerges, which several threads share. In stepped mode it is split if several merges
    /// may be open. Less: threads share smaller merges. More: larger tables, where `table_bytes`
    /// allows that. While the last level is merged, a global range filter has the keys of up to one
    /// submerge per thread in memory.
    merge_piece_bytes: u64 = 64 << 20, "at least 1024" if |it| *it >= 1024;
    /// Files of tables that are open at most, at least 1; others are closed and reopened as needed.
    /// None: half of the process's limit (`RLIMIT_NOFILE` when the store is opened). The other half
    /// is for logs, new tables and rings, and for the rest of the program and its other stores.
    /// What tables have in memory (filters, fence pointers, deleted ranges) stays there. More:
    /// fewer files are reopened. Less: reads by more threads than this wait for each other; read
    /// queues may use half of them. In a follower, files that the writer has removed stay open
    /// beyond this limit.
    max_open_files: Option<usize>, Option<usize> = None, "at least 1" if |it| *it != Some(0);
    /// Whether writes go into the log before they are visible. Without a log they are only in
    /// memory until they are flushed. A crash keeps a key space's writes up to some number, at
    /// least [`Stats::durable_through`](crate::stats::Stats::durable_through), and no later ones.
    /// Closing the store flushes them. `sync` guarantees nothing for them, and change feeds do not
    /// tell them. Of a batch over several key spaces, the part in those with a log stays or goes as
    /// a whole. For programs with a log of their own.
    log: bool = true, "true or false";
    /// Whether small writes go into the log by mapped memory: on Linux, on the file systems ext4
    /// and tmpfs. A write then needs no system call, and still outlives the process. While the log
    /// is open, its file ends in up to 4 MiB of zeros. If the file system fails, or somebody
    /// shortens the log, a write may end the process (SIGBUS). False: each write is a system call,
    /// and returns an error in such a case.
    mapped_log: bool = false, "true or false";
    /// When a write is safe on disk.
    sync: SyncPolicy = SyncPolicy::Interval(Duration::from_secs(1)), "always, never, or seconds";
    /// Bytes of logs from which on shared ones are made fewer: what a rarely written key space has
    /// in old logs is written to the newest one again, or flushed. A store with one key space has a
    /// log for each memtable, whatever this option says.
    max_log_bytes: u64 = 512 << 20, "at least 65536" if |it| *it >= 65536;
    /// Bytes of logs that are kept for change feeds alone. Each log counts as 4096 bytes at least.
    /// Value files that only logs need count as a whole, once they take no new values: theirs were
    /// overwritten or moved. The oldest logs are removed first, with the files that only they name.
    /// An option that is set also holds for later openings: see
    /// [`Db::changes_since`](crate::Db::changes_since). More: more disk, and a reader of changes
    /// may fall further behind before it must begin anew. An opening reads the kept logs if the
    /// store has value files.
    kept_log_bytes: u64 = 0, "any number";
    /// Memory for what transactions need of filters that merges have replaced since they began.
    /// With it, a commit can prove without reading that what it has read is still current. More:
    /// fewer reads for transactions that last while the last level is merged.
    transaction_memory: u64 = 64 << 20, "any number";
    /// How long a call waits for keys that transactions have locked, in seconds. This holds for
    /// reads of a key for update, and for all writes of it. 0: no wait. Less: a transaction that
    /// does not end is noticed sooner.
    lock_timeout: Duration = Duration::from_secs(1), "seconds, up to a day"
        if |it| *it <= Duration::from_secs(24 * 60 * 60);
    /// What flushes and merges.
    background: Background = Background::Threads(1),
        "1 to 1024 threads, or stepped" if |it| it.is_sensible();
    /// Whether one of 32 gets, first steps of scans and writes is timed: see
    /// [`Stats::gets`](crate::stats::Stats::gets) and the next two fields. Without it, a get reads
    /// no clock.
    time_calls: bool = false, "true or false";
    /// Whether `open` creates a store that does not exist.
    create_if_missing: bool = true, "true or false";
}

/// Compares the values, not which of them were set.
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

/// Access by name and text.
impl Options {
    /// Returns the defaults.
    pub fn new() -> Options {
        Options::default()
    }

    /// Returns the options of filters besides their memory. [`set`](Options::set) sets these, too.
    pub fn filter_list() -> Vec<&'static TuningOption> {
        let mut all: Vec<&TuningOption> = Vec::new();
        for option in registry::filters().into_iter().flat_map(|kind| kind.tuning_options()) {
            if all.iter().all(|other| other.name != option.name) {
                all.push(option);
            }
        }
        all
    }

    /// Sets the parameters of the tables' filters besides their memory.
    #[must_use]
    pub fn filter(mut self, filter: FilterTuning) -> Self {
        self.values.filter = filter;
        self.mark("filter");
        self
    }

    /// Changes the parameters of one type for the tables' filters.
    #[must_use]
    pub fn tune<T: Tuning>(mut self, change: impl FnOnce(&mut T)) -> Self {
        self.values.filter.change(change);
        self.mark("filter");
        self
    }

    /// Returns every option that has a text.
    pub fn list() -> &'static [OptionInfo] {
        LIST
    }

    /// Sets an option from its text. It does not check whether the value is allowed:
    /// [`check`](Options::check) does.
    ///
    /// # Errors
    /// `Option`: no option has this name (the error names the nearest one, or all), or the text is
    /// not a value of the option. Then nothing is set.
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

    /// Returns the text of an option.
    ///
    /// # Errors
    /// `Option`: no option has this name.
    pub fn text_of(&self, name: &str) -> Result<String> {
        Ok(match known(name)? {
            Known::OfStore(option) => (option.write)(&self.values),
            Known::OfFilter(option) => (option.write)(&self.values.filter),
        })
    }

    /// Makes an option that was set hold for this opening only: the store keeps its former value.
    #[must_use]
    pub fn for_now(mut self, name: &str) -> Self {
        self.for_now.push(name.replace('-', "_"));
        self
    }

    /// Whether the option was set, by its setter or by text, to any value. False for an unknown
    /// name.
    pub fn is_set(&self, name: &str) -> bool {
        self.set.contains(&name)
    }

    /// Whether no option was set.
    pub(crate) fn sets_nothing(&self) -> bool {
        self.set.is_empty()
    }

    /// Returns the names of the options that were set, except those for one opening only.
    pub(crate) fn lasting(&self) -> impl Iterator<Item = &'static str> + '_ {
        let lasts = |name: &&str| !self.for_now.iter().any(|other| other == name);
        self.set.iter().copied().filter(lasts)
    }

    /// Whether no option is for one opening only.
    pub(crate) fn all_last(&self) -> bool {
        self.for_now.is_empty()
    }

    /// Returns the first option that needs a missing feature of this build, and what to do about
    /// it.
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

    /// Checks all options, each by itself and together.
    ///
    /// # Errors
    /// `Option`: names the first option whose value is not allowed.
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

/// An option, by where it is set.
enum Known {
    OfStore(&'static OptionInfo),
    OfFilter(&'static TuningOption),
}

/// Returns the option of this name. The error names the nearest option, or all.
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
    /// Returns the policy with the ratio of every level.
    pub(crate) fn schedule(&self) -> Schedule<'_> {
        Schedule { policy: &self.policy, size_ratio: self.size_ratio }
    }

    /// Returns the bytes that parts of a global filter share by queries. None: all parts have the
    /// same number of bits per key.
    pub(crate) fn part_memory(&self) -> Option<u64> {
        Some(self.filter_memory).filter(|&bytes| bytes > 0 && self.guard == GuardKind::Grf)
    }

    /// Returns how tables should be read and written, if the storage supports it.
    pub(crate) fn io(&self) -> IoStats {
        IoStats { direct: self.direct, overlap: self.overlap }
    }

    /// Returns how logs should be written, if the storage supports it.
    pub(crate) fn log_access(&self) -> Access {
        Access { mapped: self.mapped_log, ..Access::default() }
    }

    /// Returns how merges are divided.
    pub(crate) fn division(&self) -> Division {
        // A filter that knows which run each key is in grows only when a merge rebuilds it from all
        // keys.
        let granularity = match self.guard.locator() {
            Some(_) => Granularity::Full,
            None => self.granularity,
        };
        let OptionValues { partition_bytes, table_bytes, .. } = *self;
        Division { granularity, partition_bytes, table_bytes }
    }

    /// Returns how merges compress what they write into the last level, or above it.
    pub(crate) fn packing(&self, into_last: bool) -> Packing {
        let last = self.last_level_compression.filter(|_| into_last);
        Packing {
            compression: last.unwrap_or(self.compression),
            dictionary_bytes: self.dictionary_bytes,
            table_bytes: self.table_bytes,
        }
    }

    /// Returns how many merges may be open at once.
    pub(crate) fn open_merges_max(&self) -> usize {
        // A merge rebuilds such a guard from the one that it began with. Of two merges, each would
        // lack the other's changes.
        if self.guard.locator().is_some() || self.guard.run_codes() == RunCodes::Huffman {
            return 1;
        }
        self.merges_at_once.unwrap_or(match self.background {
            // A small merge need not wait until a thread is done with a large one.
            Background::Threads(count) => count.saturating_add(1),
            Background::Stepped => 1,
        })
    }

    /// Whether large merges are split for several threads.
    pub(crate) fn subdivides(&self) -> bool {
        self.background != Background::Threads(1) && self.open_merges_max() > 1
    }
}

/// The limits that an error names if a store may not have `monkey`.
const NO_MONKEY: &str = "false, but for a guard with a filter for each table whose rate follows from its bits, such as bloom";
