//! This store as a peer.

use std::path::Path;

use trommel::options::{Compression, DirectIo, OptionValues};
use trommel::stats::{QueryStats, Stats};
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};

use crate::bench::unsynced::environment;
use crate::compare::peer::{Engine, Peer, PeerCounts, PeerSettings, PeerShape, RunLoad};
use crate::compare::transactional::TransactionalStore;
use crate::compare::trommel_transactions;
use crate::error::{LabError, Result};

/// The engine of this store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trommel;

/// An open store, and its options.
pub(crate) struct OpenStore {
    pub(crate) db: Db,
    pub(crate) options: Options,
}

impl Engine for Trommel {
    fn name(&self) -> &'static str {
        "trommel"
    }

    fn filters(&self) -> Vec<String> {
        let others =
            trommel_guards::all_guards().into_iter().filter(|guard| *guard != GuardKind::Grf);
        std::iter::once(GuardKind::Grf).chain(others).map(|guard| guard.name().into()).collect()
    }

    fn open(&self, folder: &Path, filter: &str, settings: &PeerSettings) -> Result<Box<dyn Peer>> {
        Ok(Box::new(OpenStore::open(folder, filter, settings)?))
    }

    fn open_transactional(
        &self,
        folder: &Path,
        filter: &str,
        settings: &PeerSettings,
        spaces: &[&str],
    ) -> Result<Option<Box<dyn TransactionalStore>>> {
        trommel_transactions::open(folder, filter, settings, spaces).map(Some)
    }
}

impl OpenStore {
    /// Opens the store, or creates it.
    pub(crate) fn open(folder: &Path, filter: &str, settings: &PeerSettings) -> Result<OpenStore> {
        let guard = trommel_guards::all_guards().into_iter().find(|guard| guard.name() == filter);
        let guard = guard.ok_or_else(|| LabError::Plan(format!("no filter '{filter}'")))?;
        let defaults = Options::new()
            .guard(guard)
            .bits_per_key(settings.bits_per_key)
            .block_cache_bytes(settings.block_cache_bytes)
            .write_buffer_bytes(settings.write_buffer_bytes)
            .direct(if settings.direct { DirectIo::ALL } else { DirectIo::default() })
            .background(Background::Threads(settings.merge_threads))
            .compression(settings.packing.compression)
            .dictionary_bytes(settings.packing.dictionary_bytes)
            .learn_questions(false)
            .sync(SyncPolicy::Never);
        let defaults = match settings.values_apart_from {
            Some(bytes) => defaults.value_threshold(bytes),
            None => defaults,
        };
        let defaults = match settings.value_garbage_share {
            Some(share) => defaults.value_garbage_share(share),
            None => defaults,
        };
        let options = match &settings.shape {
            PeerShape::Default(tree) => tree.options(guard, defaults)?,
            PeerShape::Runs(tree) => defaults
                .size_ratio(tree.size_ratio)
                .policy(tree.policy.clone())
                .background(Background::Stepped),
        };
        let db = Db::open_with(folder, options.clone(), environment(settings.synced))?;
        Ok(OpenStore { db, options })
    }
}

/// Describes the settings of filters besides their memory.
fn tuning_text(options: &Options) -> String {
    let tuned = options.guard.table_filter().and_then(|kind| kind.tuning_text(&options.filter));
    let monkey = options.monkey.then(|| "divided as Monkey does".to_string());
    let points = (options.point_bits > 0).then(|| format!("point bits {}", options.point_bits));
    [monkey, points, tuned].into_iter().flatten().map(|part| format!(", {part}")).collect()
}

/// Describes the packing of blocks.
fn packing_text(options: &Options) -> String {
    match (options.compression, options.dictionary_bytes) {
        (Compression::None, _) => "no compression".into(),
        (packed @ Compression::Zstd { .. }, 1..) => {
            format!("{packed} with dictionaries of {} bytes", options.dictionary_bytes)
        }
        (packed, _) => packed.to_string(),
    }
}

/// Returns the counts of one tree.
pub(crate) fn counts_of(stats: &Stats) -> PeerCounts {
    let reads = [stats.point, stats.open_seek, stats.closed_seek];
    let sum = |field: fn(&QueryStats) -> u64| reads.iter().map(field).sum();
    PeerCounts {
        blocks_read: sum(|kind| kind.blocks_read),
        disk_reads: sum(|kind| kind.disk_reads),
        guard_probes: sum(|kind| kind.guard_probes),
        needless_runs: sum(|kind| kind.false_positives),
        table_bytes: stats.bytes_flushed + stats.bytes_merged,
        stall_seconds: stats.stall_seconds,
        flushes: stats.flushes,
    }
}

impl Peer for OpenStore {
    fn settings(&self) -> String {
        let OptionValues { policy, size_ratio, guard, bits_per_key, .. } = &*self.options;
        let merges = match self.options.background {
            Background::Threads(count) => format!("{count} threads merge"),
            _ => "merges in steps, between writes".to_string(),
        };
        format!(
            "Trommel {}; {}, T = {size_ratio}, {merges}; {guard} at {bits_per_key} bits per key{}; block cache {} MiB, \
             blocks of {} bytes, {}, {}; values apart from {} bytes on; log written, not synced; write buffer {} MiB",
            env!("CARGO_PKG_VERSION"),
            policy.name(),
            tuning_text(&self.options),
            self.options.block_cache_bytes >> 20,
            self.options.block_bytes,
            packing_text(&self.options),
            if self.db.stats().is_ok_and(|stats| stats.io.direct == DirectIo::ALL) {
                "direct I/O"
            } else {
                "through the system's cache"
            },
            self.options.value_threshold,
            self.options.write_buffer_bytes >> 20,
        )
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.db.put(key, value)?)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        Ok(self.db.delete(key)?)
    }

    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.db.get(key)?;
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
        let mut scan = match before {
            Some(before) if before <= from => return Ok(0),
            Some(before) => self.db.range(from..before),
            None => self.db.range(from..),
        };
        // Entries are lent, as in other engines, and not copied.
        for count in 0..limit {
            let Some(entry) = scan.next_lent() else { return Ok(count) };
            let (key, value) = entry?;
            seen(key, &value);
        }
        Ok(limit)
    }

    fn scan_keys(&self, seen: &mut dyn FnMut(&[u8])) -> Result<usize> {
        let mut scan = self.db.iter().keys_only();
        let mut count = 0;
        while let Some(entry) = scan.next_lent() {
            seen(entry?.0);
            count += 1;
        }
        Ok(count)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.db.settle()?)
    }

    fn compact(&self) -> Result<()> {
        Ok(self.db.compact()?)
    }

    fn runs(&self) -> Result<Option<u64>> {
        Ok(Some(self.db.stats()?.run_count() as u64))
    }

    fn smallest_run(&self) -> Result<Option<u64>> {
        let levels = self.db.stats()?.levels;
        Ok(levels.iter().flat_map(|level| &level.runs).map(|run| run.entries).min())
    }

    fn copy_to(&self, folder: &Path) -> Result<bool> {
        self.db.checkpoint(folder)?;
        Ok(true)
    }

    fn filter_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.db.stats()?.guard.memory_bytes))
    }

    fn counts(&self) -> Option<PeerCounts> {
        Some(counts_of(&self.db.stats().ok()?))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close()?)
    }

    /// Makes the runs by this store's own merges.
    fn load_runs(&self, load: &RunLoad<'_>) -> Result<()> {
        for flush in 0..load.flushes() {
            load.each_entry(flush..flush + 1, &mut |key, value| self.put(key, value))?;
            self.flush()?;
            self.settle()?;
        }
        Ok(())
    }
}
