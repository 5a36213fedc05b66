//! Options: plain data, one `check`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use trommel_filters::{
    FilterKind, FilterTuning, Fingerprints, RateLaw, RunCodes, RunLocatorKind, kinds,
};

use crate::error::{Error, Result};
use crate::plan::partitions::{Division, Granularity};
use crate::plan::policy::{Policy, Schedule};
use crate::plan::registry;
use crate::plan::run_limits::RunLimits;
use crate::storage::io_mode::{DirectIo, IoStats, Overlap};

/// How a store is laid out and what it may use. Nothing here is fixed for ever: a store can be
/// opened with other options at any time, and moves there as it flushes and merges.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// T: how many runs of a level, when that is full, merge into one of the next. 2 to 255.
    /// More: cheaper writes, more runs (which a guard makes cheap to have).
    pub size_ratio: u32,
    /// How many runs levels have, and whether first levels have another ratio.
    pub policy: Policy,
    /// Bytes of new entries that are kept in memory before they become a run on disk. More: fewer,
    /// larger runs; more memory (up to five times this, under load) and longer recovery. 1 KiB to
    /// 64 GiB.
    pub write_buffer_bytes: usize,
    /// What decides which runs may hold a key or a range.
    pub guard: GuardKind,
    /// Memory of the guard, in bits per key. More: fewer needless reads.
    pub bits_per_key: f64,
    /// Whether the runs of the tree share the guard's memory as Monkey divides it: more bits per
    /// key for small runs, fewer for large ones. The average is `bits_per_key` just before a merge
    /// into the last level, and at most that at other times. A get of an absent key then reads
    /// several times fewer needless blocks. For guards with a point filter for each table. When the
    /// last level was written without it, filters gain from its next merge on.
    pub monkey: bool,
    /// Of these, bits of a hash of each key, which help `get` alone. Without them a global range
    /// filter says "maybe" for absent keys that are close to stored ones. Ranges pay for them. 0 to
    /// 16. With 0, `grf` chooses for each part: some where keys are text and mostly `get` asks.
    pub point_bits: u8,
    /// Whether questions that find nothing decide how the global range filter divides its bits,
    /// whenever it is built anew. Stretches of keys that are asked more have more of them. Where
    /// `get` asks for keys close behind stored ones, and for text, some are of hashes; without it,
    /// three of five questions are expected to be `get`. A sample of at most 2048 keys is in memory
    /// for it, and some are in images.
    pub learn_questions: bool,
    /// Of guards with a filter for each table: what that is told beside its memory. (A filter's
    /// bytes say how it was made: tables that there are keep theirs when this changes.)
    pub filter: FilterTuning,
    /// Bytes of entries in one block. A read takes whole blocks. More: less memory for fence
    /// pointers, better compression, more bytes per read.
    pub block_bytes: usize,
    /// Whether blocks are compressed with LZ4 (each only where that makes it smaller).
    pub compression: bool,
    /// Memory for blocks that were read. 0: none is kept.
    pub block_cache_bytes: usize,
    /// Which transfers of tables go past the operating system's cache, where the file system can do
    /// it.
    pub direct: DirectIo,
    /// How reads of blocks that are asked for together are done at once, where the storage can do
    /// it. Unless reads go one by one, data that bypass the system's cache are also read ahead and
    /// written behind. Merges and long scans read ahead a MiB for each table that they are in.
    pub overlap: Overlap,
    /// Runs of level 0 (flushed and not yet merged) at which writers begin to be slowed down. With
    /// more runs they are slower, from 64 MB/s to a hundredth of it. None: 2 T + 4, of level 0's
    /// ratio T.
    /// More: fewer pauses, more runs to search while merges catch up. (A level between the first
    /// and the last slows them down from 2 T + 4 runs on, of its own T, whatever this says.)
    pub slow_down_runs: Option<usize>,
    /// Runs of level 0 at which writers wait for a merge. None: twice the larger of
    /// `slow_down_runs` and 2 T + 4. More than level 0's ratio, and than `slow_down_runs`. More:
    /// later, longer stops. (In memory, writers are slowed down from three full write buffers on
    /// and stopped by four and a fifth, while they wait for their flush.)
    pub stop_runs: Option<usize>,
    /// Bytes that merges may read in a second, of all entries; flushes count too, but wait for
    /// nothing. Merges go faster while writers wait for them. None: as fast as they can. Less:
    /// steadier reads, more runs while merges catch up.
    pub merge_bytes_per_second: Option<u64>,
    /// Bytes after which a run goes on in another file.
    pub table_bytes: u64,
    /// How much of a level a merge rewrites at once. With a guard that knows in which run each key
    /// is (`chucky`, `remix`, ...), it is all, whatever this says. Such a merge rebuilds the guard.
    pub granularity: Granularity,
    /// Bytes of a partition of the last level, about, where merges into it go from one to the next.
    /// A tree with less has one. More: fewer parts of the filter, fewer blocks read twice; a merge
    /// needs more disk.
    pub partition_bytes: u64,
    /// Whether merges above the last level drop a deletion, or what has expired, when the guard
    /// says that no older run may have its key. Then it hides nothing. It costs a probe for each
    /// deletion in a merge. Guards that know in which run each key is (`chucky`, `remix`, ...) do
    /// nothing of it.
    pub eager_tombstones: bool,
    /// The most merges that are open at once, each of other runs. A thread goes on with the one
    /// that began last, mostly a small one. None: one more than threads merge; in stepped mode one.
    /// It is one, whatever this says, with a guard that merges give every key (`chucky`, `remix`,
    /// `grf-huffman`, ...). More: small merges wait less for large ones; more disk and memory while
    /// they last.
    pub merges_at_once: Option<usize>,
    /// Bytes of a submerge, about. Several threads share a merge of twice as much or more: it is
    /// split into submerges by key ranges. In stepped mode it is split where several merges may be
    /// open. Less: threads share smaller merges. More: larger tables where `table_bytes` allows for
    /// them. While the last level is merged, a global range filter has the keys of up to one
    /// submerge for each thread in memory.
    pub merge_piece_bytes: u64,
    /// Files of tables that are open at most, 1 at least; others are closed by use and opened
    /// again. None: half of the files that the process may have open (`RLIMIT_NOFILE` when the
    /// store is opened). The other half is left to logs, new tables and rings, to the rest of the
    /// program and to its other stores. What tables have in memory (filters, fences, deleted
    /// ranges) stays there. More: fewer files are opened again. Less: reads by more threads than
    /// this wait for each other; queues have half of them.
    pub max_open_files: Option<usize>,
    /// When a write is safe on disk.
    pub sync: Sync,
    /// What flushes and merges.
    pub background: Background,
    /// Whether `open` makes a store where there is none.
    pub create_if_missing: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            size_ratio: 10,
            policy: Policy::default(),
            write_buffer_bytes: 64 << 20,
            guard: GuardKind::Grf,
            bits_per_key: 12.0,
            monkey: false,
            point_bits: 0,
            learn_questions: true,
            filter: FilterTuning::default(),
            block_bytes: 4096,
            compression: true,
            block_cache_bytes: 32 << 20,
            direct: DirectIo::default(),
            overlap: Overlap::Ring,
            slow_down_runs: None,
            stop_runs: None,
            merge_bytes_per_second: None,
            table_bytes: 64 << 20,
            granularity: Granularity::Partitioned,
            partition_bytes: 256 << 20,
            merges_at_once: None,
            merge_piece_bytes: 64 << 20,
            eager_tombstones: false,
            max_open_files: None,
            sync: Sync::Interval(Duration::from_secs(1)),
            background: Background::Threads(1),
            create_if_missing: true,
        }
    }
}

impl Options {
    /// The policy with the ratio of every level.
    pub(crate) fn schedule(&self) -> Schedule<'_> {
        Schedule { policy: &self.policy, size_ratio: self.size_ratio }
    }

    /// An error that names the first option that makes no sense.
    pub fn check(&self) -> Result<()> {
        let bits = self.bits_per_key;
        let limits = RunLimits::of(self);
        let stops_late = limits.stop > limits.slow_down && limits.stop > self.schedule().ratio(0);
        let rules = [
            ("size_ratio", (2..=255).contains(&self.size_ratio), "must be 2 to 255"),
            ("write_buffer_bytes", sensible_buffer(self.write_buffer_bytes), BUFFER_LIMITS),
            ("bits_per_key", bits.is_finite() && (1.0..=64.0).contains(&bits), "must be 1 to 64"),
            ("monkey", !self.monkey || self.guard.rate_law().is_some(), NO_MONKEY),
            ("point_bits", self.point_bits <= 16, "must be 0 to 16"),
            ("block_bytes", (256..=1 << 20).contains(&self.block_bytes), "must be 256 to 1048576"),
            ("stop_runs", stops_late, "must be above slow_down_runs and size_ratio (of level 0)"),
            (
                "merge_bytes_per_second",
                self.merge_bytes_per_second != Some(0),
                "must be at least 1",
            ),
            ("table_bytes", self.table_bytes >= 4096, "must be at least 4096"),
            ("partition_bytes", self.partition_bytes >= 1024, "must be at least 1024"),
            ("merges_at_once", self.merges_at_once != Some(0), "must be at least 1"),
            ("merge_piece_bytes", self.merge_piece_bytes >= 1024, "must be at least 1024"),
            ("max_open_files", self.max_open_files != Some(0), "must be at least 1"),
            ("background", self.background.is_sensible(), "must be 1 to 1024 threads, or Stepped"),
        ];
        let wrong = rules.into_iter().find(|(_, holds, _)| !holds);
        let wrong = wrong.map(|(option, _, problem)| (option, problem));
        match wrong.or_else(|| self.policy.problem()).or_else(|| self.filter.problem()) {
            Some((option, problem)) => Err(Error::Option { option, problem: problem.into() }),
            None => Ok(()),
        }
    }
}

impl Options {
    /// How tables are read and written, if the storage can do it.
    pub(crate) fn io(&self) -> IoStats {
        IoStats { direct: self.direct, overlap: self.overlap }
    }

    /// How merges are divided.
    pub(crate) fn division(&self) -> Division {
        // A filter that knows in which run each key is grows only when a merge makes it anew, of
        // all keys.
        let granularity = match self.guard.locator() {
            Some(_) => Granularity::Full,
            None => self.granularity,
        };
        let Options { partition_bytes, table_bytes, .. } = *self;
        Division { granularity, partition_bytes, table_bytes }
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

/// What a write buffer may be.
const BUFFER_LIMITS: &str = "must be 1 KiB to 64 GiB";

/// Of a large one little is taken at once: the first part of the Bloom of each memtable
/// (`memtable_bloom.rs`).
fn sensible_buffer(bytes: usize) -> bool {
    (1 << 10..=1 << 36).contains(&(bytes as u64))
}

/// Why a store may not be opened with `monkey`.
const NO_MONKEY: &str =
    "needs a guard with a filter for each table whose rate follows from its bits, such as bloom";

/// What answers the question: which runs may hold this key or this key range?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardKind {
    /// `none`: nothing. Every run is searched; fence pointers alone help. The baseline.
    Open,
    /// A filter of this kind for each table, by the kind's name: `blocked-bloom`, ...
    Table(&'static dyn FilterKind),
    /// `grf`: the Global Range Filter, one filter for the whole tree, points and ranges.
    Grf,
    /// `grf-spline`: the same with the GRF paper's fingerprints alone.
    GrfSpline,
    /// `grf-gap`: the same with fingerprints as fine as the gaps between keys.
    GrfGap,
    /// `grf-coded`: as `grf-gap`, in fewer bits.
    GrfCoded,
    /// `grf-cell`: the same with the plainest fingerprints, against which the others are tested.
    GrfCell,
    /// `grf-huffman`: the same with the run of each key in a Huffman code, which every merge
    /// rewrites.
    GrfHuffman,
    /// One filter for the whole tree that knows in which run each key is now, by the kind's name:
    /// `remix`, ...
    Locator(&'static dyn RunLocatorKind),
}

impl GuardKind {
    /// The guards that are not of an open family.
    pub(crate) const CLOSED: [GuardKind; 7] = [
        GuardKind::Open,
        GuardKind::Grf,
        GuardKind::GrfSpline,
        GuardKind::GrfGap,
        GuardKind::GrfCoded,
        GuardKind::GrfCell,
        GuardKind::GrfHuffman,
    ];

    /// The built-in guard with a Bloom filter for each table.
    pub const BLOOM: GuardKind = GuardKind::Table(kinds::BLOOM);
    /// The built-in guard with a Bloom filter for each table whose bits for a key lie in one cache
    /// line.
    pub const BLOCKED_BLOOM: GuardKind = GuardKind::Table(kinds::BLOCKED_BLOOM);

    /// Every guard that is known, built in or registered. The order: `none`, filters of one table,
    /// those of the whole tree.
    pub fn all() -> Vec<GuardKind> {
        let (open, global) = Self::CLOSED.split_first().expect("there is one");
        let tables = registry::filters().into_iter().map(GuardKind::Table);
        let locator = registry::locators().into_iter().map(GuardKind::Locator);
        [*open].into_iter().chain(tables).chain(global.iter().copied()).chain(locator).collect()
    }

    /// The name that people write.
    pub fn name(self) -> &'static str {
        match self {
            GuardKind::Open => "none",
            GuardKind::Table(kind) => kind.name(),
            GuardKind::Grf => "grf",
            GuardKind::GrfSpline => "grf-spline",
            GuardKind::GrfGap => "grf-gap",
            GuardKind::GrfCoded => "grf-coded",
            GuardKind::GrfCell => "grf-cell",
            GuardKind::GrfHuffman => "grf-huffman",
            GuardKind::Locator(kind) => kind.name(),
        }
    }

    /// How the global range filter makes fingerprints; None: the guard is another one.
    pub fn fingerprints(self) -> Option<Fingerprints> {
        match self {
            GuardKind::Open | GuardKind::Table(_) | GuardKind::Locator(_) => None,
            GuardKind::Grf | GuardKind::GrfHuffman => Some(Fingerprints::Auto),
            GuardKind::GrfSpline => Some(Fingerprints::Spline),
            GuardKind::GrfGap => Some(Fingerprints::Gap),
            GuardKind::GrfCoded => Some(Fingerprints::Coded),
            GuardKind::GrfCell => Some(Fingerprints::Cell),
        }
    }

    /// What the global range filter keeps beside a key's fingerprint. Of use where there are
    /// [`GuardKind::fingerprints`].
    pub fn run_codes(self) -> RunCodes {
        match self {
            GuardKind::GrfHuffman => RunCodes::Huffman,
            _ => RunCodes::Shape,
        }
    }

    /// The kind of filter that it gives each table; None: it is another guard.
    pub fn table_filter(self) -> Option<&'static dyn FilterKind> {
        match self {
            GuardKind::Table(kind) => Some(kind),
            _ => None,
        }
    }

    /// Its kind, if it is one filter that knows in which run each key is now.
    pub fn locator(self) -> Option<&'static dyn RunLocatorKind> {
        match self {
            GuardKind::Locator(kind) => Some(kind),
            _ => None,
        }
    }

    /// How the false positives of its tables' filters fall with their memory, which Monkey divides.
    /// None: it has no filter for each table, or one whose rate does not follow from its memory.
    pub fn rate_law(self) -> Option<RateLaw> {
        self.table_filter().and_then(FilterKind::rate_law)
    }

    /// Whether it can answer for ranges of keys.
    pub fn knows_ranges(self) -> bool {
        match self {
            GuardKind::Table(kind) => kind.knows_ranges(),
            GuardKind::Locator(kind) => kind.knows_ranges(),
            _ => self.fingerprints().is_some(),
        }
    }
}

impl fmt::Display for GuardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for GuardKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = Self::all();
        all.iter().copied().find(|kind| kind.name() == name).ok_or_else(|| {
            let known = all.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
            let problem = format!("there is no guard '{name}'; there are: {known}");
            Error::Option { option: "guard", problem }
        })
    }
}

/// When a write is safe on disk.
///
/// It has the name of a trait of the prelude: after `use trommel::*`, `Sync` is this type and no
/// longer `std::marker::Sync`. Import by name, or write `trommel::Sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before it returns: it survives any crash. Writers that wait together share one sync.
    Always,
    /// A sync begins before an acknowledged write is this old, whatever its writer and the threads
    /// wait for. A crash loses at most the last writes, never one in the middle. In stepped mode
    /// only another write syncs one that is this old.
    Interval(Duration),
    /// When its memtable becomes full. A crash loses at most the last writes, never one in the
    /// middle.
    Never,
}

/// What flushes and merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// One thread that flushes, and this many that merge, 1 to 1024; beside them one that syncs in
    /// time and removes files, and sleeps mostly.
    Threads(usize),
    /// Only calls of [`Db::step`](crate::Db::step): for tests and measurements that must be the
    /// same every time. Full memtables wait in memory until then.
    Stepped,
}

impl Background {
    /// More threads than this wait for the disk and for each other alone.
    fn is_sensible(self) -> bool {
        match self {
            Background::Threads(count) => (1..=1024).contains(&count),
            Background::Stepped => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_make_sense_and_nonsense_is_named() {
        Options::default().check().expect("defaults");
        let nonsense = Options { bits_per_key: f64::NAN, ..Options::default() };
        let message = nonsense.check().expect_err("not a number").to_string();
        assert!(message.contains("bits_per_key"), "{message}");
    }

    #[test]
    fn monkey_needs_filters_whose_rate_follows_from_bits() {
        for guard in GuardKind::all() {
            let checked = Options { guard, monkey: true, ..Options::default() }.check();
            assert_eq!(checked.is_ok(), guard.rate_law().is_some(), "{guard}");
        }
        let refused = Options { monkey: true, ..Options::default() }.check();
        let message = refused.expect_err("grf is one filter").to_string();
        assert!(message.contains("monkey"), "{message}");
    }

    #[test]
    fn an_unknown_guard_lists_the_known_ones() {
        assert_eq!("grf".parse::<GuardKind>().expect("known"), GuardKind::Grf);
        let message = "blom".parse::<GuardKind>().expect_err("unknown").to_string();
        assert!(message.contains("none, blocked-bloom, "), "{message}");
    }
}
