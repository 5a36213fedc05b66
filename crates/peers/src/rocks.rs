//! RocksDB behind the seam.
//! ```text
//! filter          in every table                          a scan that it helps
//! bloom           Bloom, whole keys                       none
//! prefix-bloom:N  Bloom, the first N bytes of keys        from and to with the same first N bytes
//! none            nothing                                 none
//! ```
//! Invariant: a scan that may leave its prefix is asked in total order, so every filter gives the same answers.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DB, DBCompressionType,
    FlushOptions, Options, ReadOptions, SliceTransform, WaitForCompactOptions, WriteOptions,
};
use trommel_lab::{Engine, LabError, Peer, PeerSettings, PeerShape};

type Result<T> = std::result::Result<T, LabError>;

/// Opens RocksDB.
pub(crate) struct Rocks;

/// What tables have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Filter {
    None,
    WholeKey,
    /// Of so many bytes.
    Prefix(usize),
}

/// Lengths of prefixes that are offered.
const PREFIX_BYTES: std::ops::RangeInclusive<usize> = 1..=8;

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
            _ => {
                let bytes = name.strip_prefix("prefix-bloom:")?.parse().ok()?;
                PREFIX_BYTES.contains(&bytes).then_some(Filter::Prefix(bytes))
            }
        }
    }
}

impl Engine for Rocks {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn filters(&self) -> Vec<String> {
        let prefixes = PREFIX_BYTES.map(|bytes| format!("prefix-bloom:{bytes}"));
        ["bloom", "none"].map(String::from).into_iter().chain(prefixes).collect()
    }

    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>> {
        let known =
            Filter::named(filter).ok_or_else(|| LabError::Plan(format!("no filter '{filter}'")))?;
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_compression_type(DBCompressionType::None);
        options.set_block_based_table_factory(&tables(known, settings));
        if let Filter::Prefix(bytes) = known {
            options.set_prefix_extractor(SliceTransform::create_fixed_prefix(bytes));
        }
        let shape = match settings.shape {
            PeerShape::Default => "levelled, as by default",
            PeerShape::Runs(_) => {
                options.set_disable_auto_compactions(true);
                "runs as given: the oldest compacted to the last level, others flushed; no compaction"
            }
        };
        let settings = format!(
            "RocksDB (librocksdb-sys {}, {}); {shape}; {filter} at {} bits per key; block cache {} MiB (HyperClock), blocks of \
             4096 bytes, no compression; log written, not synced; write buffer 64 MiB; else defaults",
            sys_version(),
            instructions(),
            settings.bits_per_key,
            settings.block_cache_bytes >> 20,
        );
        let db = DB::open(&options, folder).map_err(failed)?;
        let (gets, writes) = (ReadOptions::default(), WriteOptions::default());
        Ok(Box::new(Opened { db, filter: known, gets, writes, settings }))
    }
}

fn tables(filter: Filter, settings: &PeerSettings) -> BlockBasedOptions {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&Cache::new_hyper_clock_cache(settings.block_cache_bytes, 0));
    if filter != Filter::None {
        tables.set_bloom_filter(settings.bits_per_key, false);
        // Prefixes alone: with whole keys beside them, filters would take twice the memory.
        tables.set_whole_key_filtering(filter == Filter::WholeKey);
    }
    tables
}

/// The version of the library, from the lock file: its last part is RocksDB's own.
fn sys_version() -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let package = lock.split("name = \"librocksdb-sys\"\nversion = \"").nth(1);
    package.and_then(|rest| rest.split('"').next()).expect("the lock file names it")
}

/// What the compiler was allowed to use, for both: RocksDB's build takes it from Rust's.
fn instructions() -> &'static str {
    if cfg!(target_feature = "avx2") { "built with AVX2" } else { "built for any processor" }
}

fn failed(error: rocksdb::Error) -> LabError {
    LabError::Peer(format!("rocksdb: {error}"))
}

impl Opened {
    /// Whether the filter may answer for a scan.
    fn stays_in_prefix(&self, from: &[u8], before: Option<&[u8]>) -> bool {
        let (Filter::Prefix(bytes), Some(before)) = (self.filter, before) else { return false };
        from.len() >= bytes && before.get(..bytes) == Some(&from[..bytes])
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

    /// Each file of level 0 is one, and each other level that has files.
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
