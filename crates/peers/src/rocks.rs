//! RocksDB behind the `Engine` trait.
//! ```text
//! filter          in every table                          a scan that it helps
//! bloom           Bloom, whole keys                       none
//! ribbon          Ribbon, whole keys, Bloom's accuracy    none
//! prefix-bloom:N  Bloom, the first N bytes of keys        where all keys share the first N bytes
//! min-max         the first key of each block, in the     with an end: tables and blocks whose
//!                 index beside its last one               keys lie outside are not read
//! none            nothing                                 none
//!
//! bloom+universal, ...: the same, with universal compaction instead of levelled compaction
//! ```
//! Scans pass their end (`iterate_upper_bound`), and set no `total_order_seek` if they stay within
//! a prefix, up to its successor. RocksDB's `auto_prefix_mode` would decide the same, but the crate
//! does not offer it.
//!
//! Invariant: a scan that may leave its prefix is done in total order, so every filter gives the
//! same answers.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DB, DBCompactionStyle,
    DBCompressionType, FlushOptions, Options, ReadOptions, SliceTransform, WaitForCompactOptions,
    WriteOptions,
};
use trommel_lab::{
    Compression, Engine, LabError, Peer, PeerPacking, PeerSettings, PeerShape, TransactionalStore,
    after_all_with,
};

use crate::lock::version_of;
use crate::rocks_transactions;

type Result<T> = std::result::Result<T, LabError>;

/// The engine RocksDB.
pub(crate) struct Rocks;

/// The filter of each table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Filter {
    None,
    WholeKey,
    Ribbon,
    /// Of prefixes of this many bytes.
    Prefix(usize),
    /// No filter, but the first key of each block.
    MinMax,
}

/// Prefix lengths that are offered.
const PREFIX_BYTES: std::ops::RangeInclusive<usize> = 1..=16;
/// The suffix of a filter's name that selects universal compaction.
const UNIVERSAL: &str = "+universal";

struct Opened {
    db: DB,
    filter: Filter,
    gets: ReadOptions,
    writes: WriteOptions,
    settings: String,
}

impl Filter {
    fn named(name: &str) -> Option<Filter> {
        match name {
            "none" => Some(Filter::None),
            "bloom" => Some(Filter::WholeKey),
            "ribbon" => Some(Filter::Ribbon),
            "min-max" => Some(Filter::MinMax),
            _ => {
                let bytes = name.strip_prefix("prefix-bloom:")?.parse().ok()?;
                PREFIX_BYTES.contains(&bytes).then_some(Filter::Prefix(bytes))
            }
        }
    }
}

impl Filter {
    /// Describes the filter for the report's settings.
    fn text(self, name: &str, settings: &PeerSettings) -> String {
        match self {
            Filter::None => "no filter".to_string(),
            Filter::MinMax => "no filter, first keys of blocks in the index".to_string(),
            _ => format!("{name} at {} bits per key", settings.bits_per_key),
        }
    }
}

impl Engine for Rocks {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn filters(&self) -> Vec<String> {
        let prefixes = PREFIX_BYTES.map(|bytes| format!("prefix-bloom:{bytes}"));
        let names = ["bloom", "ribbon", "min-max", "none"].map(String::from);
        let levelled: Vec<String> = names.into_iter().chain(prefixes).collect();
        let universal = levelled.iter().map(|name| format!("{name}{UNIVERSAL}"));
        levelled.iter().cloned().chain(universal).collect()
    }

    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>> {
        let name = filter.strip_suffix(UNIVERSAL).unwrap_or(filter);
        let known = Filter::named(name).ok_or_else(|| unknown(filter))?;
        let mut options = options(known, settings)?;
        let is_universal = name != filter;
        if is_universal {
            options.set_compaction_style(DBCompactionStyle::Universal);
        }
        let shape = match settings.shape {
            PeerShape::Default(_) if is_universal => "universal compaction",
            PeerShape::Default(_) => LEVELLED,
            PeerShape::Runs(_) => {
                options.set_disable_auto_compactions(true);
                "runs as given: the oldest compacted to the last level, others flushed; no compaction"
            }
        };
        let filter = known.text(name, settings);
        let settings = settings_text(&filter, shape, settings);
        let db = DB::open(&options, folder).map_err(failed)?;
        let (gets, writes) = (ReadOptions::default(), WriteOptions::default());
        Ok(Box::new(Opened { db, filter: known, gets, writes, settings }))
    }

    fn open_transactional(
        &self,
        folder: &Path,
        filter: &str,
        settings: &PeerSettings,
        spaces: &[&str],
    ) -> Result<Option<Box<dyn TransactionalStore>>> {
        rocks_transactions::open(folder, (filter, false), settings, spaces).map(Some)
    }
}

fn unknown(filter: &str) -> LabError {
    LabError::Plan(format!("no filter '{filter}'"))
}

/// Returns the options of a store with this filter and default levelled compaction.
pub(crate) fn options_named(filter: &str, settings: &PeerSettings) -> Result<Options> {
    options(Filter::named(filter).ok_or_else(|| unknown(filter))?, settings)
}

/// Describes everything that these options set.
pub(crate) fn settings_named(filter: &str, settings: &PeerSettings) -> Result<String> {
    let known = Filter::named(filter).ok_or_else(|| unknown(filter))?;
    Ok(settings_text(&known.text(filter, settings), LEVELLED, settings))
}

const LEVELLED: &str = "levelled, as by default";

fn options(filter: Filter, settings: &PeerSettings) -> Result<Options> {
    let mut options = Options::default();
    options.create_if_missing(true);
    set_packing(&mut options, &settings.packing)?;
    options.set_write_buffer_size(settings.write_buffer_bytes);
    let jobs = i32::try_from(settings.merge_threads + 1).unwrap_or(i32::MAX);
    options.set_max_background_jobs(jobs);
    options.set_use_direct_reads(settings.direct);
    options.set_use_direct_io_for_flush_and_compaction(settings.direct);
    let cache = Cache::new_hyper_clock_cache(settings.block_cache_bytes, 0);
    options.set_block_based_table_factory(&tables(filter, settings, &cache));
    if let Some(bytes) = settings.values_apart_from {
        set_values_apart(&mut options, (bytes, settings.value_garbage_share), &cache);
    }
    match filter {
        Filter::Prefix(bytes) => {
            options.set_prefix_extractor(SliceTransform::create_fixed_prefix(bytes));
            Ok(options)
        }
        Filter::MinMax => options.get_options_from_string(FIRST_KEYS).map_err(failed),
        Filter::None | Filter::WholeKey | Filter::Ribbon => Ok(options),
    }
}

/// Bytes of sample for each byte of a dictionary, as the documentation of RocksDB recommends.
const TRAINED_PER_BYTE: usize = 100;

fn set_packing(options: &mut Options, packing: &PeerPacking) -> Result<()> {
    let PeerPacking { compression, dictionary_bytes } = packing;
    let kind = match compression {
        Compression::None => DBCompressionType::None,
        Compression::Lz4 => DBCompressionType::Lz4,
        Compression::Zstd { level: of_zstd } => {
            // These window bits and this strategy are the defaults.
            let level = (*of_zstd).into();
            options.set_compression_options(-14, level, 0, *dictionary_bytes as i32);
            options.set_zstd_max_train_bytes((TRAINED_PER_BYTE * dictionary_bytes) as i32);
            DBCompressionType::Zstd
        }
        other => return Err(LabError::Plan(format!("no {other}"))),
    };
    options.set_compression_type(kind);
    options.set_blob_compression_type(kind);
    Ok(())
}

/// Enables blob files and their garbage collection. Without a share of garbage, the defaults apply:
/// compactions move values out of the oldest quarter of the files as they meet them. With a share,
/// all files take part, and a share of garbage above it starts compactions of its own. Values share
/// the cache with blocks.
fn set_values_apart(options: &mut Options, (bytes, share): (usize, Option<f64>), cache: &Cache) {
    options.set_enable_blob_files(true);
    options.set_min_blob_size(bytes as u64);
    options.set_blob_cache(cache);
    options.set_enable_blob_gc(true);
    let (age_cutoff, force_threshold) = collection(share);
    options.set_blob_gc_age_cutoff(age_cutoff);
    options.set_blob_gc_force_threshold(force_threshold);
}

/// The oldest files whose values compactions move, as a share of all files.
const BLOB_AGE_CUTOFF: f64 = 0.25;
/// The share of garbage in the oldest files that starts compactions for them. With 1 none are
/// started.
const BLOB_FORCE_THRESHOLD: f64 = 1.0;

/// Returns the age cutoff and the force threshold.
fn collection(share: Option<f64>) -> (f64, f64) {
    share.map_or((BLOB_AGE_CUTOFF, BLOB_FORCE_THRESHOLD), |share| (1.0, share))
}

fn values_text(settings: &PeerSettings) -> String {
    settings.values_apart_from.map_or("values in tables".into(), |bytes| {
        let (age_cutoff, force_threshold) = collection(settings.value_garbage_share);
        format!(
            "blob files from {bytes} bytes on, cached with blocks, age cutoff {age_cutoff}, force threshold {force_threshold}"
        )
    })
}

fn packing_text(packing: &PeerPacking) -> String {
    match packing.compression {
        Compression::None => "no compression".into(),
        _ => packing.to_string(),
    }
}

/// The crate has no name for this type of index.
const FIRST_KEYS: &str = "block_based_table_factory={index_type=kBinarySearchWithFirstKey}";

fn settings_text(filter: &str, shape: &str, settings: &PeerSettings) -> String {
    format!(
        "RocksDB (librocksdb-sys {}, {}); {shape}; {} threads merge and flush; {filter}; block cache {} MiB \
         (HyperClock), blocks of 4096 bytes, {}, {}; {}; log written, not synced; write buffer {} MiB; else defaults",
        version_of("librocksdb-sys"), // Behind `+`: the version of RocksDB.
        instructions(),
        settings.merge_threads + 1,
        settings.block_cache_bytes >> 20,
        packing_text(&settings.packing),
        if settings.direct { "direct I/O" } else { "through the system's cache" },
        values_text(settings),
        settings.write_buffer_bytes >> 20,
    )
}

fn tables(filter: Filter, settings: &PeerSettings, cache: &Cache) -> BlockBasedOptions {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(cache);
    match filter {
        Filter::WholeKey => tables.set_bloom_filter(settings.bits_per_key, false),
        Filter::Ribbon => tables.set_ribbon_filter(settings.bits_per_key),
        Filter::Prefix(_) => {
            tables.set_bloom_filter(settings.bits_per_key, false);
            // Prefixes alone: with whole keys beside them, filters would take twice the memory.
            tables.set_whole_key_filtering(false);
        }
        Filter::None | Filter::MinMax => {}
    }
    tables
}

/// Describes the instruction set. RocksDB is built for the same one as the Rust code.
fn instructions() -> &'static str {
    if cfg!(target_feature = "avx2") { "built with AVX2" } else { "built for any processor" }
}

pub(crate) fn failed(error: rocksdb::Error) -> LabError {
    LabError::Peer(format!("rocksdb: {error}"))
}

impl Opened {
    /// Whether the filter may answer a scan: all keys of the range share the prefix.
    fn stays_in_prefix(&self, from: &[u8], before: Option<&[u8]>) -> bool {
        let (Filter::Prefix(bytes), Some(before)) = (self.filter, before) else { return false };
        let Some(prefix) = from.get(..bytes) else { return false };
        after_all_with(prefix.to_vec()).is_none_or(|end| before <= &end[..])
    }
}

impl Peer for Opened {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_opt(key, value, &self.writes).map_err(failed)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.db.delete_opt(key, &self.writes).map_err(failed)
    }

    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.db.get_pinned_opt(key, &self.gets).map_err(failed)?;
        if let Some(value) = &value {
            seen(value);
        }
        Ok(value.is_some())
    }

    fn scan(
        &self,
        from: &[u8],
        before: Option<&[u8]>,
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        if before.is_some_and(|before| before <= from) {
            return Ok(0);
        }
        let mut options = ReadOptions::default();
        options.set_total_order_seek(!self.stays_in_prefix(from, before));
        if let Some(before) = before {
            options.set_iterate_upper_bound(before);
        }
        let mut iterator = self.db.raw_iterator_opt(options);
        iterator.seek(from);
        let mut count = 0;
        while count < limit {
            let Some((key, value)) = iterator.item() else { break };
            seen(key, value);
            count += 1;
            if count < limit {
                iterator.next();
            }
        }
        iterator.status().map_err(failed)?;
        Ok(count)
    }

    fn flush(&self) -> Result<()> {
        let mut options = FlushOptions::default();
        options.set_wait(true);
        self.db.flush_opt(&options).map_err(failed)
    }

    fn settle(&self) -> Result<()> {
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(failed)
    }

    fn compact(&self) -> Result<()> {
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        self.flush()?;
        self.db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        Ok(())
    }

    /// Counts each file of level 0, and one for each other level that has files.
    fn runs(&self) -> Result<Option<u64>> {
        let files = self.db.live_files().map_err(failed)?;
        let mut levels: Vec<i32> = files.iter().map(|file| file.level).collect();
        levels.sort_unstable();
        let newest = levels.iter().filter(|level| **level == 0).count();
        levels.dedup();
        let deeper = levels.iter().filter(|level| **level > 0).count();
        Ok(Some((newest + deeper) as u64))
    }

    fn filter_bytes(&self) -> Result<Option<u64>> {
        let name = "rocksdb.aggregated-table-properties";
        let text = self.db.property_value(name).map_err(failed)?.unwrap_or_default();
        let size = text.split("filter block size=").nth(1);
        Ok(size.and_then(|rest| rest.split(';').next()).and_then(|number| number.parse().ok()))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
