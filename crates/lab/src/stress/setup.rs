//! The options of a history's store.
//! ```text
//! seed -> guard, ratio, buffer, blocks, cache, sync    all small: flushes and merges are many
//! ```
//! Invariant: a seed has one set of options. All background work is done in steps.

use std::time::Duration;

use trommel::options::{
    Compression, FilterTuning, Granularity, OptionValues, Overlap, ResourceOptions, SurfOptions,
    SurfSuffix,
};
use trommel::{Background, Options, Policy, Resources, SyncPolicy};
use trommel_guards::{
    ArfOptions, ElasticOptions, PrefixRule, RencoderPlan, RosettaPlan, RosettaSplit,
};

use crate::keys::rng::Rng;

/// The interval of syncing, which is also the length of a tick.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Returns the options of a seed.
pub(crate) fn options(seed: u64) -> Options {
    let mut rng = Rng::new(seed);
    let interval = SyncPolicy::Interval(INTERVAL);
    let syncs = [SyncPolicy::Always, SyncPolicy::Always, SyncPolicy::Never, interval];
    let options = Options::new()
        .size_ratio([2, 2, 3, 4, 10][rng.place(5)])
        .write_buffer_bytes([1 << 10, 1 << 10, 1 << 11, 1 << 12, 1 << 14][rng.place(5)])
        .guard(trommel_guards::all_guards()[rng.place(trommel_guards::all_guards().len())])
        .bits_per_key([2.0, 6.0, 10.0, 12.0, 20.0][rng.place(5)])
        .point_bits([0, 0, 2, 4][rng.place(4)])
        .block_bytes([256, 512, 4096][rng.place(3)])
        .compression(rng.below(2) == 0)
        .block_cache_bytes([0, 1 << 12, 1 << 16, 1 << 20][rng.place(4)])
        .overlap(Overlap::OneByOne)
        .table_bytes([4096, 1 << 14, 1 << 20][rng.place(3)])
        .sync(syncs[rng.place(4)])
        .background(Background::Stepped);
    let elastic = elastic(&mut rng);
    let options = options
        .granularity(Granularity::ALL[rng.place(Granularity::ALL.len())])
        .partition_bytes([1 << 10, 1 << 11, 1 << 13, 1 << 20][rng.place(4)]);
    let monkey = options.guard.rate_law().is_some() && rng.below(2) == 0;
    options
        .monkey(monkey)
        .filter(filter(&mut rng).with(elastic))
        .policy(policy(&mut rng))
        .merges_at_once([None, Some(2), Some(4)][rng.place(3)])
        .merge_piece_bytes([1 << 10, 1 << 12, 1 << 20][rng.place(3)])
        .max_open_files([None, Some(1), Some(4)][rng.place(3)])
        .eager_tombstones(rng.below(2) == 0)
        .transaction_memory([0, 1 << 12, 64 << 20][rng.place(3)])
        // Drawn last, so that other draws of a seed stay the same.
        .compression(compression(&mut rng))
        .last_level_compression((rng.below(2) == 0).then(|| compression(&mut rng)))
        .dictionary_bytes([0, 256, 512, 1 << 14][rng.place(4)])
        .value_threshold([0, 256, 256, 1024][rng.place(4)])
        .value_garbage_share([0.05, 0.2, 0.5, 0.9][rng.place(4)])
        .value_move_oldest([0.0, 0.0, 0.5, 1.0][rng.place(4)])
        .value_file_bytes([4 << 10, 16 << 10, 64 << 10][rng.place(3)])
        .filter_memory([0, 1, 500, 3000][rng.place(4)])
        .mapped_log(rng.below(2) == 0)
}

/// Returns the options of a history of one tree. In some, changes are kept for backups.
pub(crate) fn of_tree(seed: u64) -> Options {
    let mut rng = Rng::new(seed ^ 0x0c4a_96e5);
    options(seed).kept_log_bytes([0, 0, 1 << 20][rng.place(3)])
}

/// Draws one of the ways to compress blocks.
pub(crate) fn compression(rng: &mut Rng) -> Compression {
    let zstd = ["zstd:1", "zstd:3", "zstd:19"][rng.place(3)];
    let zstd = zstd.parse().ok().filter(|it: &Compression| it.is_built_in());
    [Compression::None, Compression::Lz4, zstd.unwrap_or_default()][rng.place(3)]
}

/// Draws which key spaces of a history have a log. In half of all histories, all have one.
pub(crate) fn have_logs<const SPACES: usize>(seed: u64) -> [bool; SPACES] {
    let mut rng = Rng::new(seed ^ 0x0f10_65ed);
    let all = rng.below(2) == 0;
    std::array::from_fn(|_| all || rng.below(2) == 0)
}

/// Returns resources that stores of some histories share, so that memtables are sealed before they
/// are full.
pub(crate) fn resources(seed: u64) -> Option<Resources> {
    let mut rng = Rng::new(seed ^ 0x5ea5);
    let options = ResourceOptions::new()
        .write_memory_bytes([1 << 10, 1 << 12, 1 << 14][rng.place(3)])
        .block_cache_bytes([0, 1 << 12, 1 << 20][rng.place(3)]);
    (rng.below(4) == 0).then(|| Resources::new(options).expect("they make sense"))
}

/// Draws a policy; half of them are presets.
pub(crate) fn policy(rng: &mut Rng) -> Policy {
    let limits = [1, 2, 3, u32::MAX];
    let preset = Policy::named(Policy::NAMES[rng.place(Policy::NAMES.len())]);
    let preset = preset.expect("a preset has a name");
    let any = Policy::default()
        .ratios((0..rng.place(4)).map(|_| [2, 3, 4, 6][rng.place(4)]).collect())
        .inner_runs((0..=rng.place(3)).map(|_| limits[rng.place(4)]).collect())
        .last_runs(limits[rng.place(4)])
        .delay_merges(rng.below(2) == 0);
    if rng.below(2) == 0 { preset } else { any }
}

/// Draws options of `elastic` whose sub-filters move often: only a few gets lie between two
/// decisions.
pub(crate) fn elastic(rng: &mut Rng) -> ElasticOptions {
    ElasticOptions {
        units: [1, 3, 8, 32][rng.place(4)],
        unit_bits_per_key: [None, None, Some(0.5), Some(4.0)][rng.place(4)],
        life_time: [None, Some(1), Some(5)][rng.place(3)],
        sample_gets: [1, 2, 16][rng.place(3)],
    }
}

/// Draws settings of the tables' filters, over their whole range.
pub(crate) fn filter(rng: &mut Rng) -> FilterTuning {
    let bits = |hash, real| SurfSuffix::Bits { hash, real };
    let splits = [RosettaSplit::Single, RosettaSplit::Variable, RosettaSplit::FirstCut];
    let (fixed, separator) = (PrefixRule::Fixed, PrefixRule::Separator);
    FilterTuning::new()
        .with(SurfOptions {
            suffix: [SurfSuffix::Fitted, bits(0, 0), bits(3, 5), bits(0, 64), bits(64, 0)]
                [rng.place(5)],
            size_ratio: [0, 1, 64, u32::MAX][rng.place(4)],
        })
        .with([fixed(1), fixed(3), fixed(6), separator(b'/'), separator(0)][rng.place(5)])
        .with(RosettaPlan { range_bits: [0, 2, 6, 31][rng.place(4)], split: splits[rng.place(3)] })
        .with(RencoderPlan { probes: [1, 2, 8][rng.place(3)] })
        .with(ArfOptions { questions: [0, 3, 200][rng.place(3)] })
}

/// Describes options for readers.
pub(crate) fn tell(options: &Options) -> String {
    let OptionValues { guard, size_ratio, write_buffer_bytes, bits_per_key, .. } = &**options;
    let OptionValues { monkey, point_bits, compression, block_cache_bytes, .. } = &**options;
    let last = options.last_level_compression.unwrap_or(*compression);
    let dictionary = options.dictionary_bytes;
    let OptionValues { block_bytes, table_bytes, sync, granularity, .. } = &**options;
    let OptionValues { partition_bytes, merges_at_once, merge_piece_bytes, .. } = &**options;
    let eager = options.eager_tombstones;
    let OptionValues { value_threshold, value_garbage_share, value_file_bytes, .. } = &**options;
    let old = options.value_move_oldest;
    let files = options.max_open_files.map_or("all".into(), |files| files.to_string());
    let merges = merges_at_once.unwrap_or(1);
    let Policy { ratios, inner_runs, last_runs, delay_merges, .. } = &options.policy;
    let tuning =
        guard.table_filter().and_then(|kind| kind.tuning_text(&options.filter)).unwrap_or_default();
    format!(
        "guard {guard} {tuning}, {bits_per_key} bits per key (monkey: {monkey}), {point_bits} of them for points, size ratio {size_ratio}, after {ratios:?}, runs {inner_runs:?} and {last_runs} (delayed: {delay_merges}), write buffer {write_buffer_bytes}, \
         blocks of {block_bytes}, tables of {table_bytes}, cache {block_cache_bytes}, compression {compression}, of the last level {last}, dictionaries of {dictionary}, sync {sync:?}, {granularity} merges, {merges} at once in pieces of {merge_piece_bytes}, partitions of {partition_bytes}, files open: {files}, eager tombstones: {eager}, values apart from {value_threshold} bytes on, in files of {value_file_bytes}, with garbage of {value_garbage_share}, the oldest {old} moved, filter memory {}",
        options.filter_memory
    )
}
