//! The laws of a store at rest, and of a closed store.
//! ```text
//! settled, without reads     files: the tree's tables, one log, kept ones, an image for each part;
//!                            bytes: those of the tree's files
//! closed, without holders    no file open, no thread
//! ```
//! Invariant: a law holds within about a second, whatever the threads do afterwards.

use std::path::Path;
use std::time::{Duration, Instant};

use trommel::Db;
use trommel::stats::Stats;

use super::process::{open_files, resident_bytes, store_threads};
use super::shared::{Sabotage, Shared};
use crate::stress::world::Checked;

/// How often a law is tested: for a second, or more on a busy machine.
const LOOKS: u32 = 100;
/// The time between two tests.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The most memory that a process may keep when no store is open.
const RESIDENT_BYTES_MAX: u64 = 3 << 30;

/// Waits until a law holds. Returns how long that took, or the last error.
fn comes_to(law: impl Fn() -> Checked<()>) -> Checked<Duration> {
    let start = Instant::now();
    for _ in 0..LOOKS {
        if law().is_ok() {
            return Ok(start.elapsed());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    law().map(|()| start.elapsed())
}

/// Checks a store at rest. Requires: there is no snapshot, scan or queue, and no thread writes.
pub(super) fn check_rest(db: &Db, shared: &Shared) -> Checked<()> {
    db.settle().map_err(|error| format!("settle: {error}"))?;
    if shared.lies(Sabotage::LeftTable) {
        let left = std::fs::write(shared.store.join("999999.table"), b"left");
        left.map_err(|error| error.to_string())?;
    }
    let waited = comes_to(|| {
        let stats = db.stats().map_err(|error| format!("stats: {error}"))?;
        check_space(&shared.store, &stats)
    })?;
    shared.counts.rest_us.rise_to(waited.as_micros() as u64);
    shared.counts.rests.add(1);
    Ok(())
}

fn check_space(folder: &Path, stats: &Stats) -> Checked<()> {
    let files = files(folder)?;
    let of = |end: &str| {
        let sizes = files.iter().filter(|(name, _)| name.ends_with(end)).map(|(_, size)| *size);
        (sizes.clone().count() as u64, sizes.sum::<u64>())
    };
    let tables: u64 = stats.levels.iter().flat_map(|level| &level.runs).map(|run| run.tables).sum();
    // The file of a trimmed table still has the part that was merged away.
    let (live, (count, bytes)) = (stats.table_file_bytes, of(".table"));
    let right = count <= tables
        && bytes <= live
        && of(".value").0 <= stats.value_files + stats.kept_value_files
        && of(".wal").0 <= 1 + stats.memtables + stats.kept_logs
        && of(".filter").0 <= stats.partitions.len() as u64
        && of(".new").0 == 0
        && stats.obsolete.tables == 0
        && stats.obsolete.bytes == 0;
    match right {
        true => Ok(()),
        false => Err(format!(
            "at rest {tables} tables have {live} bytes, and {count} files of tables {bytes}; {} value files, {} partitions, {} memtables, {} kept logs, {:?}: {files:?}",
            stats.value_files,
            stats.partitions.len(),
            stats.memtables,
            stats.kept_logs,
            stats.obsolete,
        )),
    }
}

/// Returns the files of a folder with their lengths.
pub(super) fn files(folder: &Path) -> Checked<Vec<(String, u64)>> {
    let files = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let of = |file: std::fs::DirEntry| {
        let name = file.file_name().to_string_lossy().into_owned();
        // A listing may name files that are removed meanwhile.
        Some((name, file.metadata().ok()?.len()))
    };
    Ok(files.flatten().filter_map(of).collect())
}

/// Checks a closed store. Requires: the threads that used it have ended.
pub(super) fn check_closed(shared: &Shared) -> Checked<()> {
    shared.let_go();
    let is_open = shared.lies(Sabotage::OpenFile);
    let _open = is_open.then(|| std::fs::File::open(shared.store.join("MANIFEST")));
    comes_to(|| {
        let files = open_files(&shared.store);
        match files.is_empty() {
            true => Ok(()),
            false => Err(format!("the store is closed, and has files open: {files:?}")),
        }
    })?;
    shared.counts.resident_bytes.rise_to(resident_bytes());
    if !shared.plan.alone {
        return Ok(());
    }
    comes_to(|| match store_threads() {
        threads if threads.is_empty() => Ok(()),
        threads => Err(format!("no store is open, and there are threads: {threads:?}")),
    })?;
    match resident_bytes() {
        0..RESIDENT_BYTES_MAX => Ok(()),
        bytes => Err(format!("no store is open, and the process has {bytes} bytes of memory")),
    }
}
