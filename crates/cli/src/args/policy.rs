//! When runs merge, as it is typed.
//! ```text
//! --policy leveling --size-ratio 10             --policy "rocksdb;ratios=4,10;last_runs=3"
//! --granularity partitioned --partition-bytes 64MiB --merge-threads 2
//! ```
//! Invariant: without any of these a tree is lazily levelled, with ten units to a level.

use clap::Args;
use trommel::options::Granularity;
use trommel::{Options, Policy};

use crate::args::values::byte_count;

/// When runs merge.
#[derive(Clone, Debug, Args)]
pub(crate) struct PolicyArgs {
    /// T: how many units a level takes before it is emptied into the next one. (A unit is a full
    /// run of the level above.)
    #[arg(long, value_name = "T", default_value_t = Options::default().size_ratio)]
    pub(crate) size_ratio: u32,
    /// When runs merge: lazy-leveling, leveling, tiering, rocksdb, levelled-from:LEVEL. Lazy
    /// leveling has many runs in each level, one in the last; leveling one in each; tiering many in
    /// each. rocksdb has four flushed runs, then one in each level. levelled-from:LEVEL has many in
    /// each level above this one, one in it and in all below. Behind a name, what is otherwise:
    /// ratios=4,10;inner_runs=3,1;last_runs=2;delay_merges.
    #[arg(long, value_name = "NAME", value_parser = policy, default_value = "lazy-leveling")]
    policy: Policy,
    /// How much of a level a merge rewrites at once: full, partitioned, or partial. Partitioned:
    /// merges into the last level go from one partition to the next, and need little more disk than
    /// the store takes. Partial: one table of a level of one run at a time, as LevelDB and RocksDB
    /// merge.
    #[arg(long, value_name = "NAME", value_parser = granularity, default_value = "partitioned")]
    granularity: Granularity,
    /// Bytes of a partition of the last level.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "256MiB")]
    partition_bytes: usize,
    /// Threads that merge, small merges first; several share a large one. (One more flushes.)
    #[arg(long, value_name = "N", default_value_t = 1)]
    merge_threads: usize,
    /// Bytes after which a run goes on in another file: what a partial merge takes at once.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "64MiB")]
    table_bytes: usize,
}

impl PolicyArgs {
    /// T of deep levels.
    pub(crate) fn size_ratio(&self) -> u32 {
        self.size_ratio
    }

    /// How much of a level a merge rewrites at once.
    pub(crate) fn granularity(&self) -> Granularity {
        self.granularity
    }

    /// Threads that merge.
    pub(crate) fn merge_threads(&self) -> usize {
        self.merge_threads
    }

    pub(crate) fn table_bytes(&self) -> u64 {
        self.table_bytes as u64
    }

    pub(crate) fn partition_bytes(&self) -> u64 {
        self.partition_bytes as u64
    }

    /// The policy that was asked for.
    pub(crate) fn policy(&self) -> Policy {
        self.policy.clone()
    }
}

/// The granularity of this name; an error lists those that there are.
pub(crate) fn granularity(name: &str) -> Result<Granularity, String> {
    name.parse()
}

/// The preset of this name.
pub(crate) fn policy(name: &str) -> Result<Policy, String> {
    name.parse()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        policy: PolicyArgs,
    }

    fn typed(line: &str) -> Result<(u32, Policy), clap::Error> {
        let line = Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace()))?;
        Ok((line.policy.size_ratio(), line.policy.policy()))
    }

    #[test]
    fn policies_are_as_they_are_typed() {
        let parsed = |line| typed(line).expect("makes sense");
        assert_eq!(parsed(""), (10, Policy::default()));
        assert_eq!(parsed("--policy rocksdb --size-ratio 7"), (7, Policy::rocksdb()));
        let line = "--size-ratio 8 --policy leveling;ratios=4,6;last_runs=2";
        let (size_ratio, policy) = parsed(line);
        assert_eq!((size_ratio, policy.name()), (8, "custom"));
        assert_eq!([0, 1, 2, 9].map(|level| policy.rule(size_ratio, level).ratio), [4, 6, 8, 8]);
        assert_eq!(
            parsed("--policy tiering;inner_runs=3,1;delay_merges").1.rule(10, 5).inner_runs,
            1
        );
        let message = typed("--policy levelling").expect_err("unknown").to_string();
        assert!(
            message.contains("lazy-leveling, leveling, tiering, rocksdb, levelled-from"),
            "{message}"
        );
        assert_eq!(parsed("--policy levelled-from:2").1, Policy::levelled_from(2));
    }
}
