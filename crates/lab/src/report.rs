//! Results as plain data. The field names are an interface: they never change.

use serde::Serialize;

/// What `bench read` measured for one guard.
#[derive(Clone, Debug, Serialize)]
pub struct ReadReport {
    /// The guard.
    pub guard: &'static str,
    /// How many keys the store holds.
    pub keys: u64,
    /// How many sorted runs the tree has.
    pub runs: u64,
    /// How many runs the plan foresees. The tree differs only if the store merges in another way.
    pub runs_planned: u64,
    /// The runs of each level, newest level first.
    pub levels: Vec<LevelRuns>,
    /// Entries of the smallest run.
    pub smallest_run_keys: u64,
    /// The guard's memory in bits per entry of the tree, everything included. Without deletions
    /// that is per key.
    pub guard_bits_per_key: f64,
    /// Bits per key that were asked for.
    pub bits_per_key: f64,
    /// Bits per key that the guard was told so that it takes what was asked for, if that was
    /// searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_setting: Option<f64>,
    /// No setting takes what was asked for, within 3 %.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfit: bool,
    /// Whether runs share the memory as Monkey divides it.
    pub monkey: bool,
    /// Bytes of all tables.
    pub data_bytes: u64,
    /// Memory for blocks, if it was limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_cache_bytes: Option<u64>,
    /// Whether tables went past the operating system's cache.
    pub direct: bool,
    /// The most memory that one rebuild of the guard took, in bytes.
    pub guard_rebuild_peak_bytes: u64,
    /// Where the keys come from.
    pub dist: String,
    /// What they look like.
    pub key_shape: KeysReport,
    /// The seed of keys and queries.
    pub seed: u64,
    /// How many neighbouring keys a range takes in.
    pub range_width: u64,
    /// How gets are spread over the keys.
    pub skew: String,
    /// How many threads asked at once.
    pub threads: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// T.
    pub size_ratio: u64,
    /// When runs merge.
    pub policy: &'static str,
    /// How loading went.
    pub load: LoadReport,
    /// Stored keys that the store did not find, and every other wrong answer. Must be 0.
    pub false_negatives: u64,
    /// A key that is not stored.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub point_miss: KindReport,
    /// A stored key.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub point_hit: KindReport,
    /// A stored key, or one that is not: half of the gets miss.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub point_half: KindReport,
    /// A range without a stored key: the closed range is asked for its first key.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub empty_range: KindReport,
    /// A range around a stored key: the closed range is asked for its first key.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub range_hit: KindReport,
    /// The first key from a key on.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub seek: KindReport,
    /// The first key from a key on, and the fifty behind it.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub seek_next_50: KindReport,
    /// How many keys a range of about a thousand has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<CountReport>,
    /// Questions in batches, beside single ones in turns with them: `multi_get`,
    /// `multi_may_contain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_get: Option<ManyReport>,
    /// Scans of everything, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_scan: Option<FullScanReport>,
    /// Gets by the level of their key, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_level: Vec<LevelCost>,
    /// How often each table is asked, if that was requested. The questions are the first that was
    /// measured of `point_half`, `point_hit` and `point_miss`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_table: Vec<TableAsks>,
    /// Stored keys through a queue, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipelined: Option<PipelinedReport>,
    /// Misses and empty ranges begin at most so far behind a stored key, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlated: Option<u64>,
    /// What was deleted, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<DeletedReport>,
    /// What keys of another law in newer runs do, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<ShiftReport>,
    /// Closed seeks of each share that was to find nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub closed_seek: Vec<ClosedSeekReport>,
    /// What else no stored key answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedKindReport>,
}

impl ReadReport {
    /// The kinds that were asked, by name, in the order of the fields.
    pub fn kinds(&self) -> Vec<(&'static str, &KindReport)> {
        let all = [
            ("point_miss", &self.point_miss),
            ("point_hit", &self.point_hit),
            ("point_half", &self.point_half),
            ("empty_range", &self.empty_range),
            ("range_hit", &self.range_hit),
            ("seek", &self.seek),
            ("seek_next_50", &self.seek_next_50),
        ];
        all.into_iter().filter(|(_, kind)| !kind.is_nothing()).collect()
    }
}

/// What scans cost that read everything.
#[derive(Clone, Debug, Serialize)]
pub struct FullScanReport {
    /// Entries of a scan.
    pub entries: u64,
    /// Time per entry, from the first key to the last: the median of the rounds.
    pub ns_per_entry: f64,
    /// The same from the last key to the first.
    pub backward_ns_per_entry: f64,
}

/// Which keys were deleted after they were written. Misses and empty ranges are where they were.
#[derive(Clone, Debug, Serialize)]
pub struct DeletedReport {
    /// How many; they are none of `keys`.
    pub keys: u64,
    /// In so many stretches of neighbours.
    pub stretches: u64,
    /// One after the other (`key`), or a range for each stretch (`range`).
    pub by: String,
}

/// What keys of another law in newer runs do.
#[derive(Clone, Debug, Serialize)]
pub struct ShiftReport {
    /// Where the keys of newer runs come from.
    pub inserts: String,
    /// Keys of the last level.
    pub base_keys: u64,
    /// Keys of newer runs.
    pub new_keys: u64,
    /// Time that went into the guard until the last level was there, per key of it.
    pub guard_ns_per_base_key: f64,
    /// Time that went into the guard from then on, per key of newer runs.
    pub guard_ns_per_insert: f64,
    /// The same of each load.
    pub guard_ns_per_insert_rounds: Vec<f64>,
    /// When the last level alone was there.
    pub before: ShiftRates,
    /// When all was loaded: the same questions.
    pub after: ShiftRates,
}

/// Runs searched needlessly per question.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ShiftRates {
    /// A key that is not stored. The share of questions like newer keys is the share of newer keys.
    pub point_miss: f64,
    /// A range without a stored key, drawn in the same way.
    pub empty_range: f64,
}

/// What closed seeks cost of which some share finds nothing.
#[derive(Clone, Debug, Serialize)]
pub struct ClosedSeekReport {
    /// The share that was to find nothing, in percent.
    pub empty_percent: f64,
    /// The share of these questions that finds nothing.
    pub empty_share: f64,
    /// How many neighbouring numbers a range takes in: of the keys' first eight bytes.
    pub range_width: u64,
    /// What one costs.
    #[serde(flatten)]
    pub cost: KindReport,
}

/// What questions of one kind cost that no stored key answers.
#[derive(Clone, Debug, Serialize)]
pub struct AskedKindReport {
    /// What was asked.
    pub question: &'static str,
    /// What one costs.
    #[serde(flatten)]
    pub cost: KindReport,
}

/// What the stored keys look like.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KeysReport {
    /// Mean length.
    pub bytes_mean: f64,
    /// The longest one's length.
    pub bytes_max: u64,
    /// How many bytes a key shares with the next one, in order: the mean.
    pub shared_prefix_bytes_mean: f64,
    /// Keys of a file that were there already.
    pub duplicates: u64,
}

/// How many runs a level has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LevelRuns {
    /// The level; 0 is the newest.
    pub level: u64,
    /// Its runs.
    pub runs: u64,
}

/// How loading went. Of several loads, the one with the median time.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// How long it took, flushes and merges included.
    pub seconds: f64,
    /// Keys per second.
    pub ops_per_s: f64,
    /// Bytes written by flushes and merges per byte that the user wrote.
    pub write_amplification: f64,
    /// The part of the time that went into the guard.
    pub guard_seconds: f64,
    /// The times of all loads, in the order they were made.
    pub seconds_of_all: Vec<f64>,
    /// Keys per second of all loads.
    pub ops_per_s_rounds: Vec<f64>,
}

/// What one kind of question cost. Of a kind that was not asked everything is 0, and it is left out
/// of JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KindReport {
    /// Questions per round, of all threads.
    pub ops: u64,
    /// Time per question, as a thread sees it: the median of the rounds.
    pub ns_per_op: f64,
    /// The same of each round. In a round all guards of the report are asked, in turns.
    pub ns_per_op_rounds: Vec<f64>,
    /// Questions per second that all threads have answered together, in that round.
    pub ops_per_s: f64,
    /// 99 of 100 questions took less, in a pass that reads the clock around each of them (and so
    /// includes one reading of the clock).
    pub ns_p99: f64,
    /// Data blocks asked for, those in the cache included.
    pub blocks_read_per_op: f64,
    /// Data blocks that came from the disk.
    pub disk_reads_per_op: f64,
    /// Filter probes per question that no memtable answered; a range or a cursor counts once per
    /// filter.
    pub guard_probes_per_op: f64,
    /// Cache lines of filter memory touched. An open seek is traced up to the last key it reads.
    pub guard_lines_per_op: f64,
    /// Runs searched needlessly; summed over the runs, so it can exceed 1.
    pub false_positive_rate: f64,
}

impl KindReport {
    /// Whether it was not asked.
    pub fn is_nothing(&self) -> bool {
        self.ops == 0
    }
}

/// Questions in batches, and the same ones alone. (Of empty ranges: whether there may be a key,
/// which reads no block.)
#[derive(Clone, Debug, Default, Serialize)]
pub struct ManyReport {
    /// Questions of a batch.
    pub batch: u64,
    /// Keys that are not stored.
    pub point_miss: TurnsReport,
    /// Stored keys.
    pub point_hit: TurnsReport,
    /// Ranges without a stored key.
    pub empty_range: TurnsReport,
}

/// What the same questions cost alone and in batches.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TurnsReport {
    /// Questions per round.
    pub ops: u64,
    /// Time per question, asked alone: the median of the rounds.
    pub alone_ns_per_op: f64,
    /// Time per question of a batch: the median of the rounds.
    pub ns_per_op: f64,
}

/// What counting cost, and how far it was off.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CountReport {
    /// Ranges per round.
    pub ops: u64,
    /// Time per range: the median of the rounds.
    pub ns_per_op: f64,
    /// How far the estimate was off, as a share of the true count: the mean.
    pub mean_relative_error: f64,
    /// The same of the range where it was off most.
    pub worst_relative_error: f64,
}

/// What `bench probe` measured for one guard: the filter alone, no store.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeReport {
    /// The guard.
    pub guard: &'static str,
    /// How many keys it holds.
    pub keys: u64,
    /// Where the keys come from.
    pub dist: String,
    /// What they look like.
    pub key_shape: KeysReport,
    /// The seed of keys and queries.
    pub seed: u64,
    /// Misses and empty ranges begin at most so far behind a stored key, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlated: Option<u64>,
    /// How points and ranges are spread over the keys.
    pub skew: String,
    /// Questions of each kind.
    pub queries: u64,
    /// How many neighbouring keys a range takes in.
    pub range_width: u64,
    /// Ranges that trained the filters that learn from them, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<u64>,
    /// Bits per key that were asked for.
    pub bits_per_key: f64,
    /// Bits per key that the filter was told.
    pub bits_setting: f64,
    /// Whether no setting was found that takes what was asked for, within 3 percent. None: none was
    /// looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfit: Option<bool>,
    /// Bits per key that it takes, everything included. For per-table guards: the one filter that
    /// holds all keys.
    pub guard_bits_per_key: f64,
    /// For per-table guards: what the filters of the tables of a tree of 19 runs take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree_bits_per_key: Option<f64>,
    /// The same filter's bytes, to be compared with the caches.
    pub filter_bytes: u64,
    /// The processor's largest cache. None: the system does not tell.
    pub cache_bytes: Option<u64>,
    /// Time to build the static part, per key of it.
    pub build_ns_per_key: f64,
    /// Time to add the keys of one flush, per key. For per-table guards: to build that table's
    /// filter.
    pub insert_ns_per_key: f64,
    /// Keys per flush.
    pub flush_keys: u64,
    /// Time of one probe. For per-table guards: of the one filter that holds all keys.
    pub probe_ns: ProbeNs,
    /// For per-table guards: time to probe the tables of a tree of 19 runs, newest first, until one
    /// says "maybe".
    pub probe_all_ns: Option<ProbeNs>,
    /// For global guards: time per key of point probes in batches of 16.
    pub batch_ns: Option<ProbeNs>,
    /// What several threads answer at once, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<ProbeThreads>,
    /// A dependent random read of one cache line in memory of the filter's size, in the same run.
    pub line_ns: f64,
    /// Share of misses for which the filter says "maybe".
    pub false_positive_rate: ProbeRates,
    /// What else was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedReport>,
    /// Stored keys, and ranges around them, that the filter denies, of a million or fewer keys.
    /// Must be 0.
    pub false_negatives: u64,
}

/// How often a filter says "maybe" where nothing is, of one kind of question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AskedReport {
    /// What was asked.
    pub question: &'static str,
    /// How many questions were found that no stored key answers.
    pub ops: u64,
    /// Runs of a tree of 19 that are searched for one of them. None: the filter has no answer for
    /// this kind, or no question was found.
    pub needless_runs_per_op: Option<f64>,
}

/// Times by kind of question, in nanoseconds. None: the filter has no answer for that kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProbeNs {
    /// A key that it does not hold.
    pub point_miss: Option<f64>,
    /// A key that it holds.
    pub point_hit: Option<f64>,
    /// A range without a key.
    pub empty_range: Option<f64>,
    /// A range of those that train filters are like: with a key or without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed_range: Option<f64>,
    /// The rounds of which the median is above; all guards took turns within each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub point_miss_rounds: Vec<f64>,
    /// As above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub point_hit_rounds: Vec<f64>,
    /// As above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub empty_range_rounds: Vec<f64>,
    /// As above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mixed_range_rounds: Vec<f64>,
}

impl ProbeNs {
    /// The medians of rounds: misses, hits, empty ranges, mixed ranges. No rounds: no time.
    pub(crate) fn of(rounds: [Vec<f64>; 4]) -> Self {
        let [point_miss, point_hit, empty_range, mixed_range] = [0, 1, 2, 3]
            .map(|kind: usize| rounds[kind].clone())
            .map(|mut rounds| (!rounds.is_empty()).then(|| crate::median::median(&mut rounds)));
        let [point_miss_rounds, point_hit_rounds, empty_range_rounds, mixed_range_rounds] = rounds;
        ProbeNs {
            point_miss,
            point_hit,
            empty_range,
            mixed_range,
            point_miss_rounds,
            point_hit_rounds,
            empty_range_rounds,
            mixed_range_rounds,
        }
    }
}

/// Points that several threads ask a filter at once, half of them stored keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeThreads {
    /// How many threads.
    pub threads: u64,
    /// Points per second that one of them answers alone.
    pub alone_ops_per_s: f64,
    /// Points per second that all answer of one filter.
    pub shared_ops_per_s: f64,
    /// The same if each has a filter of its own.
    pub apart_ops_per_s: f64,
    /// How many times as many all answer of one filter as one alone.
    pub times_as_fast: f64,
    /// Its rounds, in which the three ways took turns.
    pub times_as_fast_rounds: Vec<f64>,
    /// How many times as many all answer of filters of their own: what the cores are worth.
    pub apart_times_as_fast: f64,
    /// Its rounds.
    pub apart_times_as_fast_rounds: Vec<f64>,
    /// What one filter gives if threads with filters of their own count as whole cores: `threads`
    /// times the one beside the other.
    pub of_cores_times_as_fast: f64,
    /// Its rounds.
    pub of_cores_times_as_fast_rounds: Vec<f64>,
}

impl ProbeThreads {
    /// Of nanoseconds per point, in rounds: of one thread, of all with one filter, of all with
    /// filters of their own.
    pub(crate) fn of(threads: usize, [alone, shared, apart]: &[Vec<f64>; 3]) -> Self {
        let middle = |rounds: &[f64]| crate::median::median(&mut rounds.to_vec());
        let ratios = |slow: &[f64], fast: &[f64]| -> Vec<f64> {
            slow.iter().zip(fast).map(|(slow, fast)| slow / fast).collect()
        };
        let (of_shared, of_apart) = (ratios(alone, shared), ratios(alone, apart));
        let of_cores: Vec<f64> =
            ratios(apart, shared).iter().map(|times| threads as f64 * times).collect();
        ProbeThreads {
            threads: threads as u64,
            alone_ops_per_s: 1e9 / middle(alone),
            shared_ops_per_s: 1e9 / middle(shared),
            apart_ops_per_s: 1e9 / middle(apart),
            times_as_fast: middle(&of_shared),
            times_as_fast_rounds: of_shared,
            apart_times_as_fast: middle(&of_apart),
            apart_times_as_fast_rounds: of_apart,
            of_cores_times_as_fast: middle(&of_cores),
            of_cores_times_as_fast_rounds: of_cores,
        }
    }
}

/// Rates by kind of question. None: the filter has no answer for that kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProbeRates {
    /// A key that it does not hold.
    pub point_miss: Option<f64>,
    /// A range without a key.
    pub empty_range: Option<f64>,
}

/// What `bench fpr` measured for one distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FprReport {
    /// Where the keys come from.
    pub dist: String,
    /// What they look like.
    pub key_shape: KeysReport,
    /// The seed of keys, flushes and questions.
    pub seed: u64,
    /// How many keys there are.
    pub keys: u64,
    /// T of the tree that the filters would guard.
    pub size_ratio: u64,
    /// The filters: by fingerprints, then bits, then filling.
    pub filters: Vec<FprFilter>,
}

/// One filter of `bench fpr`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FprFilter {
    /// How keys become fingerprints.
    pub fingerprints: &'static str,
    /// When runs of the tree merge.
    pub policy: &'static str,
    /// Bits per key that were asked for.
    pub bits_per_key: f64,
    /// L: levels of the tree.
    pub levels: u64,
    /// Z: how full the last level is.
    pub fill: u64,
    /// How much of the round is over, from one merge into the last level (0) to the next (1).
    pub since: f64,
    /// Flushes that wait in level 0 since a merge into the last level is owed.
    pub owed: u64,
    /// Keys of the last level.
    pub base_keys: u64,
    /// Keys above it.
    pub overlay_keys: u64,
    /// Bits per key that the filter takes, everything included.
    pub guard_bits_per_key: f64,
    /// The same in the fullest tree, for which the budget is. None: it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard_bits_per_key_filled: Option<f64>,
    /// Of that the base: bits per key of the last level.
    pub base_bits_per_key: f64,
    /// Of that the overlay: bits per key above the last level. None: there is no such key.
    pub overlay_bits_per_key: Option<f64>,
    /// Stored keys, and ranges around them, that were asked for.
    pub hits: u64,
    /// Of those, how many answers leave out the run that has the key. Must be 0.
    pub false_negatives: u64,
    /// The rates, one for each kind of question and width.
    pub rates: Vec<FprRate>,
}

/// How often a filter says "maybe" to questions of one kind and width that no key answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FprRate {
    /// What is asked: points, ranges, absent-prefix, present-prefix, second-part, next.
    pub question: &'static str,
    /// How many neighbouring keys a range takes in; 1: points. None: each question is as wide as
    /// its prefix.
    pub range_width: Option<u64>,
    /// Questions; 0 if the keys leave (nearly) no room for such a range.
    pub queries: u64,
    /// How many of them differ.
    pub queries_distinct: u64,
    /// Questions for which the filter says "maybe".
    pub false_positives: u64,
    /// Their share. None: there was no question.
    pub false_positive_rate: Option<f64>,
    /// Wilson's 95 % interval of the share.
    pub interval_95: Option<[f64; 2]>,
    /// Runs searched needlessly per question; can exceed the share.
    pub needless_runs_per_op: Option<f64>,
    /// The rate that the GRF paper gives for the start of a round: 2^-(bits - 5).
    pub rate_of_paper: f64,
    /// How many times that the share is.
    pub times_paper: Option<f64>,
    /// Its interval.
    pub times_paper_interval: Option<[f64; 2]>,
    /// At the start of a round: the mean of this round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<FprGrowth>,
    /// At the start of the last round: the mean of all rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<FprGrowth>,
}

/// How far a rate is, on average, above that at the start of a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FprGrowth {
    /// The mean rate.
    pub rate: f64,
    /// How many times the rate at the start it is.
    pub times_start: f64,
    /// Its 95 % interval.
    pub times_start_interval: [f64; 2],
}

/// What gets of the keys of one level cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelCost {
    /// The level that has the newest entry of each key; "none": no level has one.
    pub place: String,
    /// Gets.
    pub gets: u64,
    /// Runs that were searched in vain, for each.
    pub needless_runs_per_op: f64,
    /// Blocks read for each.
    pub blocks_read_per_op: f64,
    /// Cache lines of filter memory that one answer reads.
    pub guard_lines_per_op: f64,
}

/// How often a table is asked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TableAsks {
    /// Its number, counted from the newest run on.
    pub table: u64,
    /// Its level.
    pub level: u64,
    /// Gets that would search it without a filter.
    pub asked: u64,
}

/// What a queue gains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PipelinedReport {
    /// Gets under way at once.
    pub depth: u64,
    /// How reads are done at once: `io_uring`, `pool`, `one-by-one`.
    pub overlap: &'static str,
    /// Whether blocks are read past the system's cache.
    pub direct: bool,
    /// Gets per round.
    pub ops: u64,
    /// One get after the other: the median of the rounds.
    pub one_by_one_ns: f64,
    /// Through the queue, per get.
    pub queue_ns: f64,
    /// How many times as many gets the queue answers in the same time.
    pub times_as_fast: f64,
    /// `one_by_one_ns` of each round.
    pub one_by_one_ns_rounds: Vec<f64>,
    /// `queue_ns` of each round.
    pub queue_ns_rounds: Vec<f64>,
    /// `times_as_fast` of each round.
    pub times_as_fast_rounds: Vec<f64>,
    /// Wrong answers of the queue. Must be 0.
    pub wrong: u64,
}
