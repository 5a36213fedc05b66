//! A row for each option: what it may be, and what not.

use std::fmt::Debug;
use std::time::Duration;

use trommel::options::{
    Compression, DirectIo, FilterTuning, Granularity, OptionValues, Overlap, SurfOptions,
    SurfSuffix,
};
use trommel::{Background, GuardKind, Options, Policy, SyncPolicy};
use trommel_guards::{
    ArfOptions, ElasticOptions, PrefixRule, RencoderPlan, RosettaPlan, RosettaSplit,
};

/// Small in everything, so that a life has flushes, merges and levels; deterministic.
pub(crate) fn small() -> Options {
    Options::new()
        .size_ratio(3)
        .write_buffer_bytes(4096)
        .block_bytes(512)
        .table_bytes(8192)
        .partition_bytes(16 << 10)
        .block_cache_bytes(64 << 10)
        .background(Background::Stepped)
}

fn guarded(guard: &str) -> Options {
    trommel_guards::register().expect("no other filter has these names");
    small().guard(guard.parse().expect("a guard that is known"))
}

/// An option: its name, what it may be and what not.
pub(crate) struct Row {
    pub name: &'static str,
    pub allowed: Vec<(String, Options)>,
    pub refused: Vec<(String, Options)>,
}

/// `default`: the option's, taken from the options. `set` must set that option.
fn row<T: Debug + PartialEq>(
    name: &'static str,
    base: Options,
    default: T,
    allowed: Vec<T>,
    refused: Vec<T>,
    set: fn(Options, T) -> Options,
) -> Row {
    let with = |value: T| {
        let text = format!("{name} = {value:?}");
        (text, set(base.clone(), value))
    };
    let changed = |options: &Options| *options != base;
    let allowed: Vec<_> = allowed.into_iter().map(with).collect();
    let refused: Vec<_> = refused.into_iter().map(with).collect();
    let any = || allowed.iter().chain(&refused);
    assert!(any().any(|(_, options)| changed(options)), "{name}: nothing is set");
    let defaults = set(Options::default(), default);
    assert_eq!(defaults, Options::default(), "{name}: another option is set");
    Row { name, allowed, refused }
}

/// One for each option.
pub(crate) fn rows() -> Vec<Row> {
    let OptionValues {
        size_ratio,
        policy,
        write_buffer_bytes,
        guard,
        bits_per_key,
        filter_memory,
        monkey,
        point_bits,
        filter,
        block_bytes,
        compression,
        last_level_compression,
        dictionary_bytes,
        block_cache_bytes,
        direct,
        overlap,
        slow_down_runs,
        stop_runs,
        merge_bytes_per_second,
        table_bytes,
        granularity,
        partition_bytes,
        merges_at_once,
        merge_piece_bytes,
        eager_tombstones,
        learn_questions,
        time_calls,
        max_open_files,
        mapped_log,
        max_log_bytes,
        kept_log_bytes,
        transaction_memory,
        lock_timeout,
        sync,
        background,
        create_if_missing,
        ..
    } = OptionValues::default();
    [
        guard_rows(guard, bits_per_key, point_bits, monkey),
        block_rows(block_bytes, block_cache_bytes),
        packing_rows(compression, last_level_compression, dictionary_bytes),
        file_rows(direct, overlap, table_bytes, max_open_files),
        tree_rows(size_ratio, write_buffer_bytes, granularity, partition_bytes),
        stall_rows(slow_down_runs, stop_runs, merge_bytes_per_second),
        merge_rows(merges_at_once, merge_piece_bytes, eager_tombstones, background),
        question_rows(learn_questions, time_calls),
        session_rows(sync, mapped_log, create_if_missing),
        log_rows(max_log_bytes, kept_log_bytes, transaction_memory),
        lock_rows(lock_timeout),
        filter_memory_rows(filter_memory),
        policy_rows(policy),
        elastic_rows(filter.get()),
        filter_rows(&filter),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn packing_rows(
    compression: Compression,
    last_level: Option<Compression>,
    dictionary_bytes: usize,
) -> Vec<Row> {
    let zstd = |level| Compression::Zstd { level };
    // Without the feature no level is allowed.
    let (mut allowed, mut refused) = (vec![zstd(1), zstd(22)], vec![zstd(0), zstd(23), zstd(255)]);
    if !zstd(1).is_built_in() {
        refused.append(&mut allowed);
    }
    allowed.extend([Compression::None, Compression::Lz4]);
    let some = |all: &[Compression]| all.iter().copied().map(Some).collect::<Vec<_>>();
    let (last_allowed, last_refused) = (some(&allowed), some(&refused));
    vec![
        row("compression", small(), compression, allowed, refused, |o, v| o.compression(v)),
        row("last_level_compression", small(), last_level, last_allowed, last_refused, |o, v| {
            o.last_level_compression(v)
        }),
        row(
            "dictionary_bytes",
            small().last_level_compression(Compression::Lz4),
            dictionary_bytes,
            vec![0, 256, 1 << 20],
            vec![1, 255, (1 << 20) + 1, usize::MAX],
            |o, v| o.dictionary_bytes(v),
        ),
    ]
}

fn guard_rows(guard: GuardKind, bits_per_key: f64, point_bits: u8, monkey: bool) -> Vec<Row> {
    let mut rows = vec![
        row("guard", small(), guard, trommel_guards::all_guards().to_vec(), vec![], |o, v| {
            o.guard(v)
        }),
        row("point_bits", small(), point_bits, vec![0, 16], vec![17, u8::MAX], |o, v| {
            o.point_bits(v)
        }),
        row("monkey", guarded("bloom"), monkey, vec![true], vec![], |o, v| o.monkey(v)),
        row("monkey", small(), monkey, vec![], vec![true], |o, v| o.monkey(v)),
    ];
    for guard in ["grf", "bloom", "surf-real", "chucky"] {
        let refused = vec![0.0, 0.99, 64.1, -1.0, f64::INFINITY];
        let (base, allowed) = (guarded(guard), vec![1.0, 64.0]);
        rows.push(row("bits_per_key", base, bits_per_key, allowed, refused, |o, v| {
            o.bits_per_key(v)
        }));
    }
    rows
}

fn block_rows(block_bytes: usize, block_cache_bytes: usize) -> Vec<Row> {
    vec![
        row(
            "block_bytes",
            small(),
            block_bytes,
            vec![256, 1 << 20],
            vec![0, 255, (1 << 20) + 1, usize::MAX],
            |o, v| o.block_bytes(v),
        ),
        row(
            "block_cache_bytes",
            small(),
            block_cache_bytes,
            vec![0, 1, usize::MAX],
            vec![],
            |o, v| o.block_cache_bytes(v),
        ),
    ]
}

fn file_rows(
    direct: DirectIo,
    overlap: Overlap,
    table_bytes: u64,
    max_open_files: Option<usize>,
) -> Vec<Row> {
    vec![
        row("direct", small(), direct, vec![DirectIo::default(), DirectIo::ALL], vec![], |o, v| {
            o.direct(v)
        }),
        row("overlap", small(), overlap, Overlap::ALL.to_vec(), vec![], |o, v| o.overlap(v)),
        row("table_bytes", small(), table_bytes, vec![4096, u64::MAX], vec![0, 4095], |o, v| {
            o.table_bytes(v)
        }),
        row(
            "max_open_files",
            small(),
            max_open_files,
            vec![None, Some(1), Some(usize::MAX)],
            vec![Some(0)],
            |o, v| o.max_open_files(v),
        ),
    ]
}

fn tree_rows(
    size_ratio: u32,
    write_buffer_bytes: usize,
    granularity: Granularity,
    partition_bytes: u64,
) -> Vec<Row> {
    vec![
        row("size_ratio", small(), size_ratio, vec![2, 255], vec![0, 1, 256, u32::MAX], |o, v| {
            o.size_ratio(v)
        }),
        row(
            "write_buffer_bytes",
            small(),
            write_buffer_bytes,
            vec![1 << 10, 1 << 36],
            vec![0, (1 << 10) - 1, (1 << 36) + 1, usize::MAX],
            |o, v| o.write_buffer_bytes(v),
        ),
        row("granularity", small(), granularity, Granularity::ALL.to_vec(), vec![], |o, v| {
            o.granularity(v)
        }),
        row(
            "partition_bytes",
            small(),
            partition_bytes,
            vec![1024, u64::MAX],
            vec![0, 1023],
            |o, v| o.partition_bytes(v),
        ),
    ]
}

fn stall_rows(
    slow_down_runs: Option<usize>,
    stop_runs: Option<usize>,
    merge_bytes_per_second: Option<u64>,
) -> Vec<Row> {
    vec![
        row(
            "slow_down_runs",
            small(),
            slow_down_runs,
            vec![None, Some(0), Some(usize::MAX - 1)],
            vec![],
            |o, v| o.slow_down_runs(v),
        ),
        // Nothing is beyond it to stop at.
        row("stop_runs", small(), slow_down_runs, vec![], vec![Some(usize::MAX)], |o, v| {
            o.slow_down_runs(v)
        }),
        row(
            "stop_runs",
            small().slow_down_runs(Some(3)),
            stop_runs,
            vec![None, Some(4), Some(usize::MAX)],
            vec![Some(0), Some(3)],
            |o, v| o.stop_runs(v),
        ),
        row(
            "merge_bytes_per_second",
            small(),
            merge_bytes_per_second,
            vec![None, Some(1), Some(u64::MAX)],
            vec![Some(0)],
            |o, v| o.merge_bytes_per_second(v),
        ),
    ]
}

fn lock_rows(lock_timeout: Duration) -> Vec<Row> {
    let day = Duration::from_secs(24 * 60 * 60);
    let (times, too_long) = (vec![Duration::ZERO, day], vec![day + Duration::from_nanos(1)]);
    vec![row("lock_timeout", small(), lock_timeout, times, too_long, |o, v| o.lock_timeout(v))]
}

fn log_rows(max_log_bytes: u64, kept_log_bytes: u64, transaction_memory: u64) -> Vec<Row> {
    let (allowed, refused) = (vec![65536, u64::MAX], vec![0, 65535]);
    let any = || vec![0, u64::MAX];
    vec![
        row("max_log_bytes", small(), max_log_bytes, allowed, refused, |o, v| o.max_log_bytes(v)),
        row("kept_log_bytes", small(), kept_log_bytes, any(), vec![], |o, v| o.kept_log_bytes(v)),
        row("transaction_memory", small(), transaction_memory, any(), vec![], |o, v| {
            o.transaction_memory(v)
        }),
    ]
}

fn filter_memory_rows(filter_memory: u64) -> Vec<Row> {
    let any = vec![0, 1, u64::MAX];
    vec![row("filter_memory", small(), filter_memory, any, vec![], |o, v| o.filter_memory(v))]
}

fn question_rows(learn_questions: bool, time_calls: bool) -> Vec<Row> {
    let timed =
        row("time_calls", small(), time_calls, vec![false, true], vec![], |o, v| o.time_calls(v));
    vec![
        timed,
        row("learn_questions", small(), learn_questions, vec![false, true], vec![], |o, v| {
            o.learn_questions(v)
        }),
    ]
}

fn merge_rows(
    merges_at_once: Option<usize>,
    merge_piece_bytes: u64,
    eager_tombstones: bool,
    background: Background,
) -> Vec<Row> {
    let threads = |counts: &[usize]| counts.iter().copied().map(Background::Threads).collect();
    vec![
        row(
            "merges_at_once",
            small(),
            merges_at_once,
            vec![None, Some(1), Some(usize::MAX)],
            vec![Some(0)],
            |o, v| o.merges_at_once(v),
        ),
        row(
            "merge_piece_bytes",
            small().merges_at_once(Some(3)),
            merge_piece_bytes,
            vec![1024, u64::MAX],
            vec![0, 1023],
            |o, v| o.merge_piece_bytes(v),
        ),
        row("eager_tombstones", small(), eager_tombstones, vec![false, true], vec![], |o, v| {
            o.eager_tombstones(v)
        }),
        row(
            "background",
            small(),
            background,
            threads(&[1, 1024]),
            threads(&[0, 1025, usize::MAX]),
            |o, v| o.background(v),
        ),
    ]
}

fn session_rows(sync: SyncPolicy, mapped_log: bool, create_if_missing: bool) -> Vec<Row> {
    let times = [Duration::ZERO, Duration::from_nanos(1), Duration::MAX].map(SyncPolicy::Interval);
    let syncs = times.into_iter().chain([SyncPolicy::Always, SyncPolicy::Never]).collect();
    vec![
        row("sync", small(), sync, syncs, vec![], |o, v| o.sync(v)),
        row("mapped_log", small(), mapped_log, vec![false, true], vec![], |o, v| o.mapped_log(v)),
        row("create_if_missing", small(), create_if_missing, vec![false, true], vec![], |o, v| {
            o.create_if_missing(v)
        }),
    ]
}

fn policy_rows(policy: Policy) -> Vec<Row> {
    let Policy { ratios, inner_runs, last_runs, delay_merges, .. } = policy;
    let long = |value: u32, len: usize| vec![value; len];
    vec![
        row(
            "policy.ratios",
            small(),
            ratios,
            vec![vec![], vec![2], vec![255], long(2, 32), long(255, 32)],
            vec![vec![1], vec![0], vec![256], long(2, 33)],
            |o, v| o.clone().policy(o.policy.clone().ratios(v)),
        ),
        row(
            "policy.inner_runs",
            small(),
            inner_runs,
            vec![vec![1], vec![u32::MAX], long(1, 32)],
            vec![vec![], vec![0], long(1, 33)],
            |o, v| o.clone().policy(o.policy.clone().inner_runs(v)),
        ),
        row("policy.last_runs", small(), last_runs, vec![1, u32::MAX], vec![0], |o, v| {
            o.clone().policy(o.policy.clone().last_runs(v))
        }),
        row(
            "policy.delay_merges",
            small().policy(Policy::leveling()),
            delay_merges,
            vec![false, true],
            vec![],
            |o, v| o.clone().policy(o.policy.clone().delay_merges(v)),
        ),
    ]
}

fn elastic_rows(elastic: ElasticOptions) -> Vec<Row> {
    let ElasticOptions { units, unit_bits_per_key, life_time, sample_gets } = elastic;
    let base = || {
        let mut base = guarded("elastic");
        base = base.tune(|elastic: &mut ElasticOptions| elastic.sample_gets = 1);
        base
    };
    vec![
        row("elastic.units", base(), units, vec![1, 32], vec![0, 33, u8::MAX], |o, v| {
            o.tune(|elastic: &mut ElasticOptions| elastic.units = v)
        }),
        row(
            "elastic.unit_bits_per_key",
            base(),
            unit_bits_per_key,
            vec![None, Some(0.5), Some(16.0)],
            vec![Some(0.49), Some(16.1), Some(f64::NAN)],
            |o, v| o.tune(|elastic: &mut ElasticOptions| elastic.unit_bits_per_key = v),
        ),
        row(
            "elastic.life_time",
            base(),
            life_time,
            vec![None, Some(0), Some(1), Some(u64::MAX)],
            vec![],
            |o, v| o.tune(|elastic: &mut ElasticOptions| elastic.life_time = v),
        ),
        row("elastic.sample_gets", base(), sample_gets, vec![1, 2, u32::MAX], vec![0], |o, v| {
            o.tune(|elastic: &mut ElasticOptions| elastic.sample_gets = v)
        }),
    ]
}

fn filter_rows(filter: &FilterTuning) -> Vec<Row> {
    let SurfOptions { suffix, size_ratio } = filter.get();
    let RosettaPlan { range_bits, split } = filter.get();
    let RencoderPlan { probes } = filter.get();
    let ArfOptions { questions } = filter.get();
    let prefix: PrefixRule = filter.get();
    let bits = |hash, real| SurfSuffix::Bits { hash, real };
    vec![
        row(
            "filter.surf.suffix",
            guarded("surf-mixed"),
            suffix,
            vec![SurfSuffix::Fitted, bits(0, 0), bits(64, 0), bits(0, 64), bits(32, 32)],
            vec![bits(65, 0), bits(0, 65), bits(32, 33), bits(u32::MAX, u32::MAX)],
            |o, v| o.tune(|surf: &mut SurfOptions| surf.suffix = v),
        ),
        row(
            "filter.surf.size_ratio",
            guarded("surf-base"),
            size_ratio,
            vec![0, 1, u32::MAX],
            vec![],
            |o, v| o.tune(|surf: &mut SurfOptions| surf.size_ratio = v),
        ),
        row(
            "filter.prefix",
            guarded("prefix-bloom"),
            prefix,
            [PrefixRule::Fixed(1), PrefixRule::Fixed(u8::MAX), PrefixRule::Separator(0)]
                .into_iter()
                .chain([PrefixRule::Separator(u8::MAX)])
                .collect(),
            vec![PrefixRule::Fixed(0)],
            |o, v| o.tune(|own| *own = v),
        ),
        row(
            "filter.rosetta.range_bits",
            guarded("rosetta"),
            range_bits,
            vec![0, 31],
            vec![32, u8::MAX],
            |o, v| o.tune(|plan: &mut RosettaPlan| plan.range_bits = v),
        ),
        row(
            "filter.rosetta.split",
            guarded("rosetta"),
            split,
            vec![RosettaSplit::Single, RosettaSplit::Variable, RosettaSplit::FirstCut],
            vec![],
            |o, v| o.tune(|plan: &mut RosettaPlan| plan.split = v),
        ),
        row(
            "filter.rencoder.probes",
            guarded("rencoder"),
            probes,
            vec![1, 8],
            vec![0, 9, u8::MAX],
            |o, v| o.tune(|plan: &mut RencoderPlan| plan.probes = v),
        ),
        row(
            "filter.arf_questions",
            guarded("arf"),
            questions,
            vec![0, 1, u32::MAX],
            vec![],
            |o, v| o.tune(|arf: &mut ArfOptions| arf.questions = v),
        ),
    ]
}
