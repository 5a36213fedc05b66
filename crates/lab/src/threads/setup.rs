//! The theme of a history, and the options of its store.
//! ```text
//! seed mod 8   0 churn  1 hot key  2 churn  3 log  4 churn  5 slow disk  6 churn  7 churn
//! ```
//! Invariant: a seed always draws the same plan: keys, options, rounds, and what each lane does.
//! Only the interleaving of threads differs.

use std::time::Duration;

use trommel::options::{DirectIo, Overlap, ResourceOptions};
use trommel::{Background, Options, Resources, SyncPolicy};

use super::share::Shares;
use crate::keys::rng::Rng;
use crate::stress::keys::Keys;
use crate::stress::setup;

/// The theme of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    /// Small buffers, so that flushes and merges are frequent.
    Churn,
    /// One large memtable, in which versions of a key pile up.
    HotKey,
    /// One large memtable, in which overlapping range deletions pile up.
    Log,
    /// Flushes and merges that take seconds.
    SlowDisk,
}

/// The pattern of a lane's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Drawn operations.
    Drawn,
    /// One key again and again.
    HotKey,
    /// Consecutive keys, with range deletions of those behind.
    Log,
}

/// Keys of a lane beside its hot one: few, so that most scans meet the hot one.
const HOT_KEYS: u64 = 8;
/// Keys of a lane's log, which is truncated again and again.
const LOG_KEYS: u64 = 8000;
/// The versions of a hot key that pile up.
const HOT_KEY_PILE: u64 = 1 << 20;
/// The writes to a log that pile up. Half of them are deletions of single keys by range deletions.
const LOG_PILE: u64 = 40_000;
/// A write buffer large enough for things to pile up.
const LARGE_BUFFER: usize = 512 << 20;
/// The delay of each table on a slow disk.
const SLOW_DELAY: Duration = Duration::from_secs(4);
/// A write buffer that fills up soon.
const SLOW_BUFFER: usize = 32 << 10;
/// An interval of syncing that is much shorter than that delay.
const SLOW_INTERVAL: Duration = Duration::from_millis(50);

/// Kept logs, as a multiple of those of the simulation: what threads write between two shipments.
const KEPT_LOGS: u64 = 64;

impl Theme {
    pub(super) fn of(seed: u64) -> Self {
        match seed % 8 {
            1 => Theme::HotKey,
            3 => Theme::Log,
            5 => Theme::SlowDisk,
            _ => Theme::Churn,
        }
    }

    pub(super) fn shares(self, lanes: usize, rng: &mut Rng) -> Shares {
        match self {
            Theme::Churn | Theme::SlowDisk => Shares::draw_from(rng, lanes),
            Theme::HotKey => Shares::new(Keys::dense(HOT_KEYS * lanes as u64), lanes, 1),
            Theme::Log => {
                let lanes_at_most = lanes.min(8);
                let count = LOG_KEYS * lanes_at_most as u64;
                Shares::new(Keys::dense(count), lanes, count as usize / lanes)
            }
        }
    }

    /// Draws the pattern of a lane.
    pub(super) fn pattern(self, lane: usize, rng: &mut Rng) -> Pattern {
        let of_theme = match self {
            Theme::Churn | Theme::SlowDisk => [Pattern::HotKey, Pattern::Log][rng.place(2)],
            Theme::HotKey => Pattern::HotKey,
            Theme::Log => Pattern::Log,
        };
        let follows = match self {
            Theme::Churn => rng.below(8) == 0,
            Theme::SlowDisk => false,
            Theme::HotKey | Theme::Log => lane.is_multiple_of(2),
        };
        if follows { of_theme } else { Pattern::Drawn }
    }

    /// Draws how often the store is opened.
    pub(super) fn rounds(self, rng: &mut Rng) -> u32 {
        match self {
            Theme::Churn => 2 + rng.place(4) as u32,
            Theme::HotKey | Theme::Log => 3,
            Theme::SlowDisk => 1,
        }
    }

    /// Returns the theme of a round. After the first round, small buffers flush and merge what has
    /// piled up.
    pub(super) fn of_round(self, round: u32) -> Self {
        match self {
            Theme::HotKey | Theme::Log if round > 0 => Theme::Churn,
            theme => theme,
        }
    }

    pub(super) fn round_time(self, rng: &mut Rng) -> Duration {
        let milliseconds = match self {
            Theme::Churn => [100, 400, 800, 1600][rng.place(4)],
            Theme::HotKey | Theme::Log => 4000,
            Theme::SlowDisk => 9000,
        };
        Duration::from_millis(milliseconds)
    }

    /// Returns how many writes the first lane must make in a round, however busy the machine is.
    /// With fewer, too little has piled up.
    pub(super) fn pile(self) -> u64 {
        match self {
            Theme::Churn | Theme::SlowDisk => 0,
            Theme::HotKey => HOT_KEY_PILE,
            Theme::Log => LOG_PILE,
        }
    }

    /// Returns the delay of each table.
    pub(super) fn disk_delay(self) -> Duration {
        if self == Theme::SlowDisk { SLOW_DELAY } else { Duration::ZERO }
    }

    /// Whether flushes are requested. If things must pile up in memory, they are not.
    pub(super) fn flushes(self) -> bool {
        matches!(self, Theme::Churn)
    }

    /// Draws the options of an opening.
    pub(super) fn options(self, rng: &mut Rng) -> Options {
        let options = options(rng);
        match self {
            Theme::Churn => options,
            Theme::HotKey | Theme::Log => {
                options.write_buffer_bytes(LARGE_BUFFER).sync(SyncPolicy::Never)
            }
            Theme::SlowDisk => {
                options.write_buffer_bytes(SLOW_BUFFER).sync(SyncPolicy::Interval(SLOW_INTERVAL))
            }
        }
    }
}

/// Draws the resources that stores of a history share. None: they share none, or much must pile up
/// in memory.
pub(super) fn resources(seed: u64, options: &Options) -> Option<Resources> {
    let mut rng = Rng::new(seed ^ 0x5ea5);
    let piles_up = matches!(Theme::of(seed), Theme::HotKey | Theme::Log);
    let shared = ResourceOptions::new()
        .write_memory_bytes([1 << 14, 1 << 18, 64 << 20][rng.place(3)])
        .block_cache_bytes(options.block_cache_bytes)
        .merge_threads(1 + rng.place(3))
        .merge_bytes_per_second(options.merge_bytes_per_second);
    (!piles_up && rng.below(2) == 0).then(|| Resources::new(shared).expect("they make sense"))
}

/// Draws options of the simulation, and those that need threads and a real disk.
pub(super) fn options(rng: &mut Rng) -> Options {
    let interval = SyncPolicy::Interval(Duration::from_millis(5));
    let mut toss = |chance| rng.below(chance) == 0;
    let direct = DirectIo { reads: toss(2), flushes: toss(2), merges: toss(2) };
    let drawn = setup::of_tree(rng.next_u64());
    // With that many runs, there are more files than a process may open, unless buffers are larger.
    let grows =
        drawn.policy.last_runs > 64 || drawn.policy.inner_runs.iter().any(|&runs| runs > 64);
    let buffers = if grows { [1 << 16, 1 << 18, 1 << 20] } else { [1 << 13, 1 << 15, 1 << 18] };
    let (table_bytes, partition_bytes) = (drawn.table_bytes, drawn.partition_bytes);
    let piece_bytes = drawn.merge_piece_bytes;
    let kept_log_bytes = drawn.kept_log_bytes * KEPT_LOGS;
    drawn
        .write_buffer_bytes(buffers[rng.place(3)])
        .table_bytes(table_bytes.max(1 << 14))
        .partition_bytes(partition_bytes.max(1 << 14))
        .merge_piece_bytes(piece_bytes.max(1 << 12))
        .kept_log_bytes(kept_log_bytes)
        .background(Background::Threads(1 + rng.place(4)))
        .merges_at_once([None, None, Some(1), Some(2), Some(4)][rng.place(5)])
        .merge_bytes_per_second([None, None, None, Some(8 << 20)][rng.place(4)])
        .overlap(Overlap::ALL[rng.place(Overlap::ALL.len())])
        .direct(direct)
        .sync([SyncPolicy::Always, SyncPolicy::Never, SyncPolicy::Never, interval][rng.place(4)])
        .max_open_files([None, None, Some(64), Some(16), Some(4), Some(1)][rng.place(6)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_makes_sense_and_all_themes_come() {
        let mut guards = std::collections::HashSet::new();
        for seed in 0..400 {
            let mut rng = Rng::new(seed);
            let options = Theme::of(seed).options(&mut rng);
            options.check().expect("sensible");
            guards.insert(options.guard);
        }
        assert_eq!(guards.len(), trommel_guards::all_guards().len());
        let themes: Vec<Theme> = (0..8).map(Theme::of).collect();
        let all = [Theme::Churn, Theme::HotKey, Theme::Log, Theme::SlowDisk];
        assert!(all.iter().all(|theme| themes.contains(theme)));
    }
}
