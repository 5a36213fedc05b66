//! The results of benchmarks as plain data. Field names are an interface: they never change.

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
    /// How many runs the plan foresees. It differs from `runs` only if the store merges in another
    /// way.
    pub runs_planned: u64,
    /// The runs of each level, newest level first.
    pub levels: Vec<LevelRuns>,
    /// Entries of the smallest run.
    pub smallest_run_keys: u64,
    /// The guard's memory in bits per entry of the tree, everything included. Without deletions
    /// this is bits per key.
    pub guard_bits_per_key: f64,
    /// Bits per key that were asked for.
    pub bits_per_key: f64,
    /// The setting of bits per key with which the guard takes the memory that was asked for, if
    /// such a setting was searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_setting: Option<f64>,
    /// True if no setting takes the memory that was asked for, within 3 %.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfit: bool,
    /// Whether runs share the guard's memory as Monkey divides it.
    pub monkey: bool,
    /// Bytes of all tables.
    pub data_bytes: u64,
    /// Capacity of the block cache, if it was limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_cache_bytes: Option<u64>,
    /// Whether tables bypass the operating system's cache.
    pub direct: bool,
    /// The most memory that one rebuild of the guard took, in bytes.
    pub guard_rebuild_peak_bytes: u64,
    /// Where the keys come from.
    pub dist: String,
    /// Lengths and shared prefixes of the keys.
    pub key_shape: KeysReport,
    /// The seed of keys and queries.
    pub seed: u64,
    /// How many neighbouring keys a range spans.
    pub range_width: u64,
    /// How gets are spread over the keys.
    pub skew: String,
    /// How many threads asked at once.
    pub threads: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// T, the size ratio.
    pub size_ratio: u64,
    /// The merge policy.
    pub policy: &'static str,
    /// How loading went.
    pub load: LoadReport,
    /// Wrong answers, among them stored keys that the store did not find. Must be 0.
    pub false_negatives: u64,
    /// Gets of keys that are not stored.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub point_miss: KindReport,
    /// Gets of stored keys.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub point_hit: KindReport,
    /// Gets of which half miss.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub point_half: KindReport,
    /// Closed ranges without a stored key; each asks for the first key.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub empty_range: KindReport,
    /// Closed ranges around a stored key; each asks for the first key.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub range_hit: KindReport,
    /// Seeks: the first key at or after a key.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub seek: KindReport,
    /// Seeks, each followed by fifty more keys.
    #[serde(skip_serializing_if = "KindReport::is_nothing")]
    pub seek_next_50: KindReport,
    /// Estimates of the number of keys in ranges of about a thousand keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<CountReport>,
    /// Questions in batches (`multi_get`, `multi_may_contain`), in turns with the same ones alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_get: Option<ManyReport>,
    /// Full scans, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_scan: Option<FullScanReport>,
    /// Gets by the level of their key, if asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_level: Vec<LevelCost>,
    /// How often each table is asked, if that was asked for. The questions are those of the first
    /// of `point_half`, `point_hit` and `point_miss` that was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_table: Vec<TableAsks>,
    /// Gets of stored keys through a queue, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipelined: Option<PipelinedReport>,
    /// The largest distance of misses and empty ranges behind a stored key, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlated: Option<u64>,
    /// The deleted keys, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<DeletedReport>,
    /// The effect of keys of another distribution in newer runs, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<ShiftReport>,
    /// Closed seeks, for each share of seeks that should find nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub closed_seek: Vec<ClosedSeekReport>,
    /// Further kinds of questions that no stored key answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<EmptyQueryCost>,
}

impl ReadReport {
    /// Returns the kinds that were asked, with their names, in the order of the fields.
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

/// The cost of full scans.
#[derive(Clone, Debug, Serialize)]
pub struct FullScanReport {
    /// Entries of one scan.
    pub entries: u64,
    /// Time per entry, from the first key to the last: the median of the rounds.
    pub ns_per_entry: f64,
    /// The same, from the last key to the first.
    pub backward_ns_per_entry: f64,
}

/// The keys that were deleted after they were written. Misses and empty ranges lie where they were.
#[derive(Clone, Debug, Serialize)]
pub struct DeletedReport {
    /// Deleted keys; `ReadReport::keys` does not count them.
    pub keys: u64,
    /// Stretches of neighbouring keys that were deleted.
    pub stretches: u64,
    /// How they were deleted: one by one (`key`), or one range deletion for each stretch (`range`).
    pub by: String,
}

/// The effect of keys of another distribution in newer runs.
#[derive(Clone, Debug, Serialize)]
pub struct ShiftReport {
    /// Where the keys of newer runs come from.
    pub inserts: String,
    /// Keys of the last level.
    pub base_keys: u64,
    /// Keys of newer runs.
    pub new_keys: u64,
    /// Nanoseconds spent on the guard until the last level was complete, per key of that level.
    pub guard_ns_per_base_key: f64,
    /// Nanoseconds spent on the guard after that, per key of newer runs.
    pub guard_ns_per_insert: f64,
    /// `guard_ns_per_insert` of each load.
    pub guard_ns_per_insert_rounds: Vec<f64>,
    /// Rates when only the last level was there.
    pub before: ShiftRates,
    /// Rates of the same questions after everything was loaded.
    pub after: ShiftRates,
}

/// Needless run searches per question.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ShiftRates {
    /// Keys that are not stored. As many of them are like newer keys as newer keys are among all
    /// keys.
    pub point_miss: f64,
    /// Ranges without a stored key, drawn in the same way.
    pub empty_range: f64,
}

/// The cost of closed seeks of which a given share finds nothing.
#[derive(Clone, Debug, Serialize)]
pub struct ClosedSeekReport {
    /// The intended share of seeks that find nothing, in percent.
    pub empty_percent: f64,
    /// The actual share of these seeks that find nothing.
    pub empty_share: f64,
    /// The width of a range, counted in numbers of the keys' first eight bytes.
    pub range_width: u64,
    /// The cost of one question.
    #[serde(flatten)]
    pub cost: KindReport,
}

/// The cost of one kind of question that no stored key answers.
#[derive(Clone, Debug, Serialize)]
pub struct EmptyQueryCost {
    /// The kind of question.
    pub question: &'static str,
    /// The cost of one question.
    #[serde(flatten)]
    pub cost: KindReport,
}

/// Lengths and shared prefixes of the stored keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KeysReport {
    /// Mean length.
    pub bytes_mean: f64,
    /// The longest one's length.
    pub bytes_max: u64,
    /// How many bytes a key shares with the next one in key order: the mean.
    pub shared_prefix_bytes_mean: f64,
    /// Duplicate keys of a file, which were dropped.
    pub duplicates: u64,
}

/// How many runs a level has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LevelRuns {
    /// The level; 0 is the newest.
    pub level: u64,
    /// How many runs it has.
    pub runs: u64,
}

/// The cost of loading. Of several loads, this is the one of median time.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// Time in seconds, flushes and merges included.
    pub seconds: f64,
    /// Keys per second.
    pub ops_per_s: f64,
    /// Bytes written by flushes and merges per byte that the user wrote.
    pub write_amplification: f64,
    /// The part of the time that was spent on the guard.
    pub guard_seconds: f64,
    /// The times of all loads, in the order of the loads.
    pub seconds_of_all: Vec<f64>,
    /// Keys per second of all loads.
    pub ops_per_s_rounds: Vec<f64>,
}

/// The cost of one kind of question. If the kind was not asked, all fields are 0 and JSON omits it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KindReport {
    /// Questions per round, of all threads together.
    pub ops: u64,
    /// Time per question as one thread sees it: the median of the rounds.
    pub ns_per_op: f64,
    /// The time of each round. Within a round, all guards of the report take turns.
    pub ns_per_op_rounds: Vec<f64>,
    /// Questions per second of all threads together, in the median round.
    pub ops_per_s: f64,
    /// The 99th percentile, from a pass that reads the clock around each question. It includes one
    /// reading of the clock.
    pub ns_p99: f64,
    /// Data blocks asked for, cached ones included.
    pub blocks_read_per_op: f64,
    /// Data blocks read from the disk.
    pub disk_reads_per_op: f64,
    /// Filter probes per question that no memtable answered. A range or a cursor counts once per
    /// filter.
    pub guard_probes_per_op: f64,
    /// Cache lines of filter memory touched. An open seek is traced up to the last key that it
    /// reads.
    pub guard_lines_per_op: f64,
    /// Needless run searches per question, summed over the runs: it can exceed 1.
    pub false_positive_rate: f64,
}

impl KindReport {
    /// Whether this kind was not asked.
    pub fn is_nothing(&self) -> bool {
        self.ops == 0
    }
}

/// The cost of questions in batches, and of the same questions alone. A batch of empty ranges asks
/// only whether a key may be there, which reads no block.
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

/// The cost of the same questions alone and in batches.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TurnsReport {
    /// Questions per round.
    pub ops: u64,
    /// Time per question, asked alone: the median of the rounds.
    pub alone_ns_per_op: f64,
    /// Time per question of a batch: the median of the rounds.
    pub ns_per_op: f64,
}

/// The cost and the error of estimated counts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CountReport {
    /// Ranges per round.
    pub ops: u64,
    /// Time per range: the median of the rounds.
    pub ns_per_op: f64,
    /// The relative error of the estimate: the mean.
    pub mean_relative_error: f64,
    /// The largest relative error.
    pub worst_relative_error: f64,
}

/// What `bench probe` measured for one guard: its filter alone, without a store.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeReport {
    /// The guard.
    pub guard: &'static str,
    /// How many keys it holds.
    pub keys: u64,
    /// Where the keys come from.
    pub dist: String,
    /// Lengths and shared prefixes of the keys.
    pub key_shape: KeysReport,
    /// The seed of keys and queries.
    pub seed: u64,
    /// The largest distance of misses and empty ranges behind a stored key, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlated: Option<u64>,
    /// How points and ranges are spread over the keys.
    pub skew: String,
    /// Questions of each kind.
    pub queries: u64,
    /// How many neighbouring keys a range spans.
    pub range_width: u64,
    /// Ranges that trained the filters that learn from ranges, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<u64>,
    /// Bits per key that were asked for.
    pub bits_per_key: f64,
    /// The setting of bits per key with which the filter was built.
    pub bits_setting: f64,
    /// True if no setting was found that takes the memory that was asked for, within 3 percent.
    /// None: no setting was searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfit: Option<bool>,
    /// The filter's memory in bits per key, everything included. For per-table guards: of the one
    /// filter of all keys.
    pub guard_bits_per_key: f64,
    /// For per-table guards: memory of the filters of a tree of 19 runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree_bits_per_key: Option<f64>,
    /// Bytes of the same filter, to compare with the processor's caches.
    pub filter_bytes: u64,
    /// The processor's largest cache. None: the system does not report it.
    pub cache_bytes: Option<u64>,
    /// Time to build the static part, per key of that part.
    pub build_ns_per_key: f64,
    /// Time to add the keys of one flush, per key. For per-table guards: to build the filter of a
    /// flushed table.
    pub insert_ns_per_key: f64,
    /// Keys per flush.
    pub flush_keys: u64,
    /// Time of one probe. For per-table guards: of the one filter of all keys.
    pub probe_ns: ProbeNs,
    /// For per-table guards: time to probe the filters of a tree of 19 runs, newest first, until
    /// one says "maybe".
    pub probe_all_ns: Option<ProbeNs>,
    /// For global guards: time per key of point probes in batches of 16.
    pub batch_ns: Option<ProbeNs>,
    /// What several threads answer at once, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<ProbeThreads>,
    /// A dependent random read of one cache line in memory of the filter's size, in the same run.
    pub line_ns: f64,
    /// The share of absent keys and empty ranges for which the filter says "maybe".
    pub false_positive_rate: ProbeRates,
    /// Further kinds of questions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<EmptyQueryReport>,
    /// Stored keys, and ranges around them, that the filter denies. At most a million keys are
    /// checked. Must be 0.
    pub false_negatives: u64,
}

/// How often a filter says "maybe" in vain, for one kind of question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EmptyQueryReport {
    /// The kind of question.
    pub question: &'static str,
    /// How many questions without a stored answer were found.
    pub ops: u64,
    /// Runs of a tree of 19 that one question searches in vain. None: the filter cannot answer this
    /// kind, or no question was found.
    pub needless_runs_per_op: Option<f64>,
}

/// Times by kind of question, in nanoseconds. None: the filter cannot answer that kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProbeNs {
    /// Keys that the filter does not hold.
    pub point_miss: Option<f64>,
    /// Keys that the filter holds.
    pub point_hit: Option<f64>,
    /// Ranges without a key.
    pub empty_range: Option<f64>,
    /// Ranges drawn like those that train filters, with a key or without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed_range: Option<f64>,
    /// `point_miss` of each round. All guards take turns within a round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub point_miss_rounds: Vec<f64>,
    /// `point_hit` of each round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub point_hit_rounds: Vec<f64>,
    /// `empty_range` of each round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub empty_range_rounds: Vec<f64>,
    /// `mixed_range` of each round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mixed_range_rounds: Vec<f64>,
}

impl ProbeNs {
    /// Takes the medians of the rounds of misses, hits, empty ranges and mixed ranges. Without
    /// rounds there is no time.
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
    /// Keys that the filter does not hold.
    pub point_miss: Option<f64>,
    /// Ranges without a key.
    pub empty_range: Option<f64>,
}

/// What `bench fpr` measured for one distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FprReport {
    /// Where the keys come from.
    pub dist: String,
    /// Lengths and shared prefixes of the keys.
    pub key_shape: KeysReport,
    /// The seed of keys, flushes and questions.
    pub seed: u64,
    /// How many keys there are.
    pub keys: u64,
    /// T of the tree that the filters would guard.
    pub size_ratio: u64,
    /// The filters, ordered by fingerprints, then bits, then filling.
    pub filters: Vec<FprFilter>,
}

/// One filter of `bench fpr`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FprFilter {
    /// How keys become fingerprints.
    pub fingerprints: &'static str,
    /// The tree's merge policy.
    pub policy: &'static str,
    /// Bits per key that were asked for.
    pub bits_per_key: f64,
    /// L, the tree's number of levels.
    pub levels: u64,
    /// Z, how full the last level is.
    pub fill: u64,
    /// The elapsed share of the round: 0 after a merge into the last level, 1 before the next one.
    pub since: f64,
    /// Flushes that wait in level 0 because a merge into the last level is overdue.
    pub owed: u64,
    /// Keys of the last level.
    pub base_keys: u64,
    /// Keys above it.
    pub overlay_keys: u64,
    /// Bits per key that the filter takes, everything included.
    pub guard_bits_per_key: f64,
    /// The same in the fullest tree, for which the budget holds. None: that tree was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard_bits_per_key_filled: Option<f64>,
    /// The base's memory in bits per key of the last level.
    pub base_bits_per_key: f64,
    /// The overlay's memory in bits per key above the last level. None: there is no such key.
    pub overlay_bits_per_key: Option<f64>,
    /// Questions for stored keys, and for ranges around them.
    pub hits: u64,
    /// Answers to these that leave out the run that has the key. Must be 0.
    pub false_negatives: u64,
    /// The false positive rates, one for each kind of question and width.
    pub rates: Vec<FprRate>,
}

/// The false positive rate of questions of one kind and width that no key answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FprRate {
    /// The kind: points, ranges, absent-prefix, present-prefix, second-part, next.
    pub question: &'static str,
    /// How many neighbouring keys a range spans; 1: points. None: each question is as wide as its
    /// prefix.
    pub range_width: Option<u64>,
    /// Questions; 0 if the keys leave (nearly) no room for such a range.
    pub queries: u64,
    /// How many of the questions differ.
    pub queries_distinct: u64,
    /// Questions for which the filter says "maybe".
    pub false_positives: u64,
    /// The share of false positives. None: there was no question.
    pub false_positive_rate: Option<f64>,
    /// Wilson's 95 % interval of the share.
    pub interval_95: Option<[f64; 2]>,
    /// Needless run searches per question; can exceed the share.
    pub needless_runs_per_op: Option<f64>,
    /// The rate that the GRF paper gives for the start of a round: 2^-(bits - 5).
    pub rate_of_paper: f64,
    /// The share as a multiple of the paper's rate.
    pub times_paper: Option<f64>,
    /// The interval of `times_paper`.
    pub times_paper_interval: Option<[f64; 2]>,
    /// For a filter at the start of a round: the mean of that round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<FprGrowth>,
    /// For a filter at the start of the last round: the mean of all rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<FprGrowth>,
}

/// A mean rate, compared with the rate at the start of a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FprGrowth {
    /// The mean rate.
    pub rate: f64,
    /// The mean as a multiple of the rate at the start.
    pub times_start: f64,
    /// The 95 % interval of `times_start`.
    pub times_start_interval: [f64; 2],
}

/// The cost of gets whose keys lie in one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelCost {
    /// The level of each key's newest entry; "none": no level has the key.
    pub place: String,
    /// Gets.
    pub gets: u64,
    /// Runs searched in vain per get.
    pub needless_runs_per_op: f64,
    /// Blocks read per get.
    pub blocks_read_per_op: f64,
    /// Cache lines of filter memory that one answer reads.
    pub guard_lines_per_op: f64,
}

/// How often a table is asked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TableAsks {
    /// The table's number, counted from the newest run on.
    pub table: u64,
    /// The table's level.
    pub level: u64,
    /// Gets that would search the table without a filter.
    pub asked: u64,
}

/// The gain of gets through a queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PipelinedReport {
    /// Gets in flight at once.
    pub depth: u64,
    /// How reads overlap: `io_uring`, `pool`, `one-by-one`.
    pub overlap: &'static str,
    /// Whether block reads bypass the system's cache.
    pub direct: bool,
    /// Gets per round.
    pub ops: u64,
    /// Time of a get, one after the other: the median of the rounds.
    pub one_by_one_ns: f64,
    /// Time of a get through the queue.
    pub queue_ns: f64,
    /// The speed-up of the queue: its gets per unit of time, divided by those one after the other.
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
