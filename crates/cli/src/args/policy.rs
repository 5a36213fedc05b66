//! The merge policy, as typed on the command line.
//! ```text
//! --policy leveling --size-ratio 10             --policy "rocksdb;ratios=4,10;last_runs=3"
//! --granularity partitioned --partition-bytes 64MiB --background 2
//! ```
//! Invariant: without these options a tree uses lazy leveling with ten units per level.

use trommel::options::Granularity;
use trommel::{Background, Policy};

use crate::args::store_options::{Selected, Selection};

/// The selection of options about merges.
#[derive(Clone, Debug)]
pub(crate) struct Merging;

impl Selection for Merging {
    const GROUP: &'static str = "PolicyArgs";
    const NAMES: &'static [&'static str] =
        &["size_ratio", "policy", "granularity", "partition_bytes", "background", "table_bytes"];
}

/// The options about merges.
pub(crate) type PolicyArgs = Selected<Merging>;

impl PolicyArgs {
    /// Returns T, the size ratio of deep levels.
    pub(crate) fn size_ratio(&self) -> u32 {
        self.options.size_ratio
    }

    /// Returns how much of a level one merge rewrites.
    pub(crate) fn granularity(&self) -> Granularity {
        self.options.granularity
    }

    /// Returns the number of threads that merge. None: the writer merges between its writes.
    pub(crate) fn merge_threads(&self) -> Option<usize> {
        match self.options.background {
            Background::Threads(count) => Some(count),
            _ => None,
        }
    }

    pub(crate) fn table_bytes(&self) -> u64 {
        self.options.table_bytes
    }

    pub(crate) fn partition_bytes(&self) -> u64 {
        self.options.partition_bytes
    }

    /// Returns the chosen policy.
    pub(crate) fn policy(&self) -> Policy {
        self.options.policy.clone()
    }
}

/// Parses a policy.
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

    #[test] // Recorded command lines have both names.
    fn who_merges_has_one_option() {
        let threads = |line: &str| {
            let line = Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace()));
            line.map(|line| line.policy.merge_threads())
        };
        assert_eq!(threads("").expect("sound"), Some(1));
        assert_eq!(threads("--merge-threads 3").expect("sound"), Some(3));
        assert_eq!(threads("--background stepped").expect("sound"), None);
        assert!(threads("--background stepped --merge-threads 3").is_err(), "they are the same");
    }
}
