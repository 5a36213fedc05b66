//! fjall behind the `Engine` trait: a levelled LSM-tree in Rust.
//! ```text
//! filter   in every table
//! bloom    Bloom, whole keys, the same bits in every level
//! none     nothing
//! ```
//! Invariant: settings that all stores share are set here; everything else is fjall's default.

use std::path::Path;
use std::time::Duration;

use fjall::config::{BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{AbstractTree, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions};
use trommel_lab::{Compression, Engine, LabError, Peer, PeerSettings, PeerShape};

use crate::lock::version_of;

type Result<T> = std::result::Result<T, LabError>;

/// The engine fjall.
pub(crate) struct Fjall;

struct Opened {
    db: Database,
    keys: Keyspace,
    settings: String,
}

/// The levels of fjall's tree.
const LEVELS: usize = 7;
/// Pause between two checks for pending work.
const LOOK: Duration = Duration::from_millis(10);
/// Checks in a row that must find nothing, since a compaction that is due starts a little later.
const LOOKS: usize = 5;

fn filter_policy(name: &str, bits_per_key: f64) -> Option<FilterPolicy> {
    match name {
        "bloom" => {
            let bits = BloomConstructionPolicy::BitsPerKey(bits_per_key as f32);
            Some(FilterPolicy::all(FilterPolicyEntry::Bloom(bits)))
        }
        "none" => Some(FilterPolicy::disabled()),
        _ => None,
    }
}

impl Engine for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn filters(&self) -> Vec<String> {
        ["bloom", "none"].map(String::from).to_vec()
    }

    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>> {
        let policy = filter_policy(filter, settings.bits_per_key)
            .ok_or_else(|| LabError::Plan(format!("no filter '{filter}'")))?;
        if matches!(settings.shape, PeerShape::Runs(_)) {
            return Err(LabError::Plan("fjall cannot be given its runs: --shape default".into()));
        }
        if settings.packing.compression != Compression::None {
            return Err(LabError::Plan("fjall is built without compression: --pack none".into()));
        }
        let db = Database::builder(folder)
            .cache_size(settings.block_cache_bytes as u64)
            .worker_threads(settings.merge_threads + 1)
            .open()
            .map_err(failed)?;
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(settings.write_buffer_bytes as u64)
                .filter_policy(policy.clone())
                .with_kv_separation(separation(settings))
        };
        let keys = db.keyspace("keys", options).map_err(failed)?;
        let filter = match filter {
            "none" => "no filter".to_string(),
            _ => format!("{filter} at {} bits per key in every level", settings.bits_per_key),
        };
        let settings = format!(
            "fjall {}; levelled, as by default; {} threads flush and merge; {filter}; cache {} MiB, \
             blocks of 4096 bytes, no compression, through the system's cache; {}; log written, not synced; write buffer {} MiB; else \
             defaults",
            version_of("fjall"),
            settings.merge_threads + 1,
            settings.block_cache_bytes >> 20,
            values_text(settings),
            settings.write_buffer_bytes >> 20,
        );
        Ok(Box::new(Opened { db, keys, settings }))
    }
}

/// Options for large values. With a share of garbage, all files are candidates for garbage
/// collection. Without one, the defaults apply.
fn separation(settings: &PeerSettings) -> Option<KvSeparationOptions> {
    let threshold = u32::try_from(settings.values_apart_from?).unwrap_or(u32::MAX);
    let options = KvSeparationOptions::default().separation_threshold(threshold);
    Some(match settings.value_garbage_share {
        Some(share) => options.staleness_threshold(share as f32).age_cutoff(1.0),
        None => options,
    })
}

fn values_text(settings: &PeerSettings) -> String {
    let collection = settings.value_garbage_share.map_or("age cutoff 0.25".into(), |share| {
        format!("age cutoff 1, staleness threshold {share}")
    });
    settings.values_apart_from.map_or("values in tables".into(), |bytes| {
        format!("values apart from {bytes} bytes on, in files of 64 MiB, {collection}")
    })
}

fn failed(error: fjall::Error) -> LabError {
    LabError::Peer(format!("fjall: {error}"))
}

impl Opened {
    fn is_idle(&self) -> bool {
        self.db.outstanding_flushes() == 0
            && self.keys.tree.sealed_memtable_count() == 0
            && self.db.active_compactions() == 0
    }
}

impl Peer for Opened {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.keys.insert(key, value).map_err(failed)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.keys.remove(key).map_err(failed)
    }

    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.keys.get(key).map_err(failed)?;
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
        let entries = match before {
            Some(before) if before <= from => return Ok(0),
            Some(before) => self.keys.range(from..before),
            None => self.keys.range(from..),
        };
        let mut count = 0;
        for entry in entries.take(limit) {
            let (key, value) = entry.into_inner().map_err(failed)?;
            seen(&key, &value);
            count += 1;
        }
        Ok(count)
    }

    fn scan_keys(&self, seen: &mut dyn FnMut(&[u8])) -> Result<usize> {
        let mut count = 0;
        for entry in self.keys.iter() {
            seen(&entry.key().map_err(failed)?);
            count += 1;
        }
        Ok(count)
    }

    fn flush(&self) -> Result<()> {
        self.keys.rotate_memtable_and_wait().map_err(failed)
    }

    /// Waits until no compaction has run for some time, because fjall does not report which are
    /// due.
    fn settle(&self) -> Result<()> {
        let mut idle = 0;
        while idle < LOOKS {
            idle = if self.is_idle() { idle + 1 } else { 0 };
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.flush()?;
        self.settle()?;
        self.keys.major_compact().map_err(failed)
    }

    /// Counts the runs of level 0, and one for each other level that has tables.
    fn runs(&self) -> Result<Option<u64>> {
        let has_tables = |level: &usize| {
            self.keys.tree.level_table_count(*level).is_some_and(|tables| tables > 0)
        };
        let deeper = (1..LEVELS).filter(has_tables).count();
        Ok(Some((self.keys.tree.l0_run_count() + deeper) as u64))
    }

    fn filter_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.keys.tree.filter_size()))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
