//! Opening a store: from files to a version.
//! ```text
//! MANIFEST --> layout --> tables --> guard (from its image and newer tables, or from the runs)
//! logs     --> sealed memtables (flushed at once) and the active one
//! ```
//! Invariant: nothing is removed before what replaces it is durable. Opening a store that was closed
//! in peace writes nothing: it works on a full disk too.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use trommel_filters::FlushNumber;

use crate::access::IoStats;
use crate::commit::{Commit, Log};
use crate::copying::{keep_folder, make_folder};
use crate::core::{Core, DamagedFilter, Installer};
use crate::elastic::Elastic;
use crate::entry::Sequence;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::exhausted::with_room;
use crate::guard::Guard;
use crate::image::{self, image_name};
use crate::keeper::Keeper;
use crate::layout::{Layout, NUMBER_MAX, TableRecord};
use crate::leaving::Leaving;
use crate::log_check::{LogCounts, beginning_lost, live_logs, missing, missing_newest};
use crate::manifest::{MANIFEST_NAME, MANIFEST_NEW_NAME, Manifest};
use crate::memtable::Memtable;
use crate::open_folder::OpenFolder;
use crate::options::Options;
use crate::output::{Shelf, table_name};
use crate::pacing::Pacer;
use crate::snapshots::Snapshots;
use crate::stalls::RunLimits;
use crate::stats::Counters;
use crate::storage::Storage;
use crate::sync::{Arc, AtomicU64, Condvar, Mutex, Switch};
use crate::table::Table;
use crate::version::{Active, Sealed, Version, deletes_ranges};
use crate::wal::{self, Predecessor, wal_name};

/// Locked while the store is open.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// Opens or makes a store, without its threads.
pub(crate) fn open(dir: &Path, options: &Options, env: Environment) -> Result<Core> {
    options.check()?;
    let (folder, lock) = take_folder(&*env.storage, dir, options.create_if_missing)?;
    let found = Manifest::read(&folder)?;
    let mut manifest = match &found {
        Some(_) => Manifest::open(&folder),
        None => Manifest::create(&folder, &Layout::default())?,
    };
    let layout = found.unwrap_or_default();
    let names = folder.list()?;
    let shelf = make_shelf(folder.clone(), options, &names, &layout);
    let (tables, mut damaged_filters) = open_tables(&shelf, &layout)?;
    let mut logs = replay_logs(&folder, &names, &layout, options)?;
    let last = logs.iter().map(|log| log.last).max().unwrap_or_default();
    let last = last.max(layout.last_sequence);
    let replaces = !logs.is_empty();
    let newest = logs.pop().unwrap_or_else(|| Replayed::nothing(shelf.new_file(), options));
    let first = newest.first.min(Sequence(last.0 + 1));
    let log_bytes = Arc::new(AtomicU64::new(newest.counts.bytes));
    let active = Active { memtable: newest.memtable, wal: newest.number, log_bytes, first };
    let log = Log::Unmade { number: newest.number, before: newest.before, replaces };
    let (sealed, next_flush) = seal_logs(&logs, layout.next_flush);
    let version = Version {
        active,
        sealed,
        runs: Vec::new(),
        guard: Guard::empty(options, &layout.cuts),
        deletes_ranges: false,
        layout: Arc::new(layout),
        round: 0,
        holders: Arc::default(),
    };
    let runs = version.reopen_runs(&version.layout, &tables);
    let version = Version { deletes_ranges: deletes_ranges(&runs), runs, ..version };
    let start = Instant::now();
    let recovered = image::recover(&shelf, &version)?;
    damaged_filters.extend(recovered.damage);
    let version = Version { guard: recovered.guard, ..version };
    // Not earlier: a manifest that has lost an edit to damage makes a table look like an orphan, and
    // then something above is missing.
    remove_orphans(&folder, &orphans(&names, &version.layout), || {
        manifest.keep(&version.layout).is_ok()
    });
    let elastic = Elastic::of(options);
    if let Some(elastic) = &elastic {
        elastic.follow(&version);
    }
    let life = Arc::clone(shelf.folder.life());
    Ok(Core {
        shelf,
        env,
        filter_recovery: recovered.recovery,
        guard_open_seconds: start.elapsed().as_secs_f64(),
        leaving: Leaving::expecting(live_logs(&names, &version.layout)),
        current: Switch::new(Arc::new(version)),
        round: AtomicU64::new(0),
        pacer: Pacer::new(options.merge_bytes_per_second),
        run_limits: RunLimits::of(options),
        keeper: Arc::new(Keeper::new(Arc::clone(&life))),
        snapshots: Arc::new(Snapshots::new(last, life)),
        commit: Commit::new(log, Sequence(last.0 + 1)),
        installer: Mutex::new(Installer::new(manifest, next_flush)),
        work: Mutex::default(),
        work_changed: Condvar::new(),
        counters: Counters::default(),
        damaged_filters,
        elastic,
        lock: Mutex::new(Some(lock)),
    })
}

/// The shelf of a folder that is taken.
fn make_shelf(folder: OpenFolder, options: &Options, names: &[String], layout: &Layout) -> Shelf {
    let next_file = free_number(names, Some(layout));
    let io = IoStats::granted(folder.handle(), LOCK_NAME, options.io());
    Shelf::new(folder, options, next_file).with_io(io)
}

/// What keeps others out of a folder.
pub(crate) type FolderLock = Box<dyn Send + Sync>;

/// Makes sure that the folder is a store or may become one, and takes it.
fn take_folder(
    storage: &dyn Storage,
    dir: &Path,
    create: bool,
) -> Result<(OpenFolder, FolderLock)> {
    let missing = || Error::Missing { path: dir.to_path_buf() };
    let folder = match OpenFolder::open(storage, dir) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => {
            let what = "a store is a folder, and this is a file";
            let source = std::io::Error::new(ErrorKind::NotADirectory, what);
            return Err(Error::io(dir)(source));
        }
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            if !create {
                return Err(missing());
            }
            make_folder(storage, dir)?;
            OpenFolder::open(storage, dir)?
        }
        opened => opened?,
    };
    let names = folder.list()?;
    if !names.iter().any(|name| name == MANIFEST_NAME) {
        if let Some(of_a_store) = names.iter().find(|name| file_number(name).is_some()) {
            return Err(manifest_missing(dir, of_a_store));
        }
        if !is_beginning(&names) {
            return Err(Error::NotAStore { path: dir.to_path_buf() });
        }
        if !create {
            return Err(missing());
        }
        keep_folder(storage, dir)?;
    }
    let lock = lock_folder(&folder)?;
    Ok((folder, lock))
}

/// Opens a folder that has files of a store, be it whole or not.
pub(crate) fn store_folder(storage: &dyn Storage, dir: &Path) -> Result<OpenFolder> {
    if !storage.dir_exists(dir) {
        return Err(Error::Missing { path: dir.to_path_buf() });
    }
    let folder = OpenFolder::open(storage, dir)?;
    let is_of_a_store = |name: &String| name == MANIFEST_NAME || file_number(name).is_some();
    let names = folder.list()?;
    let path = dir.to_path_buf();
    match names.iter().any(is_of_a_store) {
        true => Ok(folder),
        false if is_beginning(&names) => Err(Error::Missing { path }),
        false => Err(Error::NotAStore { path }),
    }
}

/// Whether a folder has no more than what a crash leaves while a store is being made.
fn is_beginning(names: &[String]) -> bool {
    names.iter().all(|name| [LOCK_NAME, MANIFEST_NEW_NAME].contains(&name.as_str()))
}

/// A folder without a manifest that has a file of a store.
pub(crate) fn manifest_missing(dir: &Path, of_a_store: &str) -> Error {
    let what = format!(
        "without it nobody knows which files make up the store that {of_a_store} is of. A checkpoint that was cut short is such a \
         folder, too: make it again"
    );
    Error::FileMissing { path: dir.join(MANIFEST_NAME), what }
}

/// Takes the lock of a folder. `Locked`: someone else has it.
pub(crate) fn lock_folder(folder: &OpenFolder) -> Result<FolderLock> {
    with_room(|| folder.handle().lock(LOCK_NAME)).map_err(|source| match source.kind() {
        ErrorKind::WouldBlock => Error::Locked { path: folder.path().to_path_buf() },
        // Also of those who only want to read.
        kind @ (ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
            let what = format!(
                "{source}. Who opens a store locks it, and so must be able to write in its folder: make that possible, or open a copy"
            );
            Error::io(folder.path_of(LOCK_NAME))(std::io::Error::new(kind, what))
        }
        _ => Error::io(folder.path_of(LOCK_NAME))(source),
    })
}

/// A number that no file has by its name, nor by the layout. A stray file with a number that no store comes to leaves room.
pub(crate) fn free_number(names: &[String], layout: Option<&Layout>) -> u64 {
    let named = names.iter().filter_map(|name| file_number(name));
    let greatest = named.filter(|&number| number < NUMBER_MAX / 2).max().unwrap_or(0);
    layout.map_or(0, |layout| layout.next_file).max(greatest + 1)
}

/// The number in the name of a table, log or image.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    let (number, kind) = name.split_once('.')?;
    matches!(kind, "table" | "wal" | "wal.new" | "filter").then_some(())?;
    number.parse().ok().filter(|&number| number <= NUMBER_MAX)
}

/// What a crash or a reader of the last session has left: it is in no layout.
fn orphans<'n>(names: &'n [String], layout: &Layout) -> Vec<&'n String> {
    let tables = layout.runs.iter().flat_map(|run| &run.tables);
    let live: HashSet<String> = tables.map(|table| table_name(table.file)).collect();
    let images: HashSet<u64> = layout.images.iter().map(|image| image.file).collect();
    let is_dead = |name: &&String| {
        let dead_log = |number| **name == wal_name(number) && number < layout.live_wal;
        file_number(name).is_some_and(|number| {
            dead_log(number)
                || name.ends_with(".wal.new")
                || (**name == table_name(number) && !live.contains(*name))
                || (**name == image_name(number) && !images.contains(&number))
        })
    };
    names.iter().filter(is_dead).collect()
}

/// Removes files that the layout does not need. The edit that says so may be one whose sync has failed, and that a power cut
/// would take back: so the layout is made durable first.
fn remove_orphans(folder: &OpenFolder, orphans: &[&String], keep_layout: impl FnOnce() -> bool) {
    if !orphans.is_empty() && keep_layout() {
        // What stays now is tried again by the next open.
        orphans.iter().for_each(|name| drop(folder.remove(name)));
    }
}

type OpenTables = (HashMap<u64, Arc<Table>>, Vec<DamagedFilter>);

/// Opens every table. One whose filter is damaged is used without it.
fn open_tables(shelf: &Shelf, layout: &Layout) -> Result<OpenTables> {
    let mut opened: HashMap<u64, Arc<Table>> = HashMap::new();
    let mut damaged = Vec::new();
    for record in layout.runs.iter().flat_map(|run| &run.tables) {
        if let Some(table) = opened.get(&record.file) {
            check_bounds(table, record)?;
            continue;
        }
        let table = match shelf.open_table(record.file) {
            Ok(table) => table,
            Err(error @ Error::Corrupt { .. }) => {
                let without = shelf.open_table_with(record.file, None);
                let Ok(table) = without else { return Err(error) };
                damaged.push(DamagedFilter { file: record.file, what: error.to_string() });
                table
            }
            Err(error) => return Err(table_missing(error, record)),
        };
        check_bounds(&table, record)?;
        opened.insert(record.file, table);
    }
    Ok((opened, damaged))
}

/// A table that is not there is gone: the manifest names it.
pub(crate) fn table_missing(error: Error, record: &TableRecord) -> Error {
    let entries = record.entries;
    match error {
        Error::Io { path, source } => {
            let what = format!("the manifest names it, with {entries} entries");
            Error::needed(path, what)(source)
        }
        other => other,
    }
}

pub(crate) fn check_bounds(table: &Table, record: &TableRecord) -> Result<()> {
    let (from, to) = table.key_bounds();
    let fits = match record.is_trimmed {
        true => from <= record.from && record.to <= to && table.has_piece(record),
        false => (&from, &to) == (&record.from, &record.to),
    };
    let same = fits && table.entry_count() == record.file_entries;
    let what = "its keys are not those that the manifest names: another store's table?";
    if same { Ok(()) } else { Err(Error::corrupt(table.path(), 0, what)) }
}

/// A log that was read back.
pub(crate) struct Replayed {
    number: u64,
    before: Predecessor,
    memtable: Arc<Memtable>,
    first: Sequence,
    pub(crate) last: Sequence,
    pub(crate) counts: LogCounts,
}

impl Replayed {
    fn nothing(number: u64, options: &Options) -> Self {
        let memtable = Arc::new(Memtable::new(options.write_buffer_bytes));
        let before = Predecessor { wal: 0, valid_bytes: 0 };
        let (first, last, counts) = (Sequence::MAX, Sequence(0), LogCounts::default());
        Replayed { number, before, memtable, first, last, counts }
    }
}

/// Reads the live logs, oldest first. Each but the last must have all the bytes that the next one
/// says it has; the last may have a torn tail.
pub(crate) fn replay_logs(
    folder: &OpenFolder,
    names: &[String],
    layout: &Layout,
    options: &Options,
) -> Result<Vec<Replayed>> {
    let numbers = live_logs(names, layout);
    let needed = layout.needed_wal();
    if let Some(gone) = needed.filter(|needed| !numbers.contains(needed)) {
        return Err(missing_newest(folder, gone));
    }
    // A log that was torn before it could name its predecessor has nothing that was acknowledged, unless it is on record.
    let mut logs: Vec<Replayed> = Vec::new();
    for &number in &numbers {
        match wal::predecessor(folder, number)? {
            Some(before) => {
                check_no_gap(folder, &numbers, &logs, (number, before), layout)?;
                logs.push(Replayed { before, ..Replayed::nothing(number, options) });
            }
            None if needed == Some(number) => return Err(beginning_lost(folder, number)),
            None => {}
        }
    }
    for place in 0..logs.len() {
        let next = logs.get(place + 1).map(|next| next.before);
        let valid = next.filter(|next| next.wal == logs[place].number);
        replay_log(folder, &mut logs[place], valid.map(|next| next.valid_bytes))?;
    }
    Ok(logs)
}

/// A log that this one follows, and that is neither read nor in tables, is missing or damaged.
fn check_no_gap(
    folder: &OpenFolder,
    numbers: &[u64],
    logs: &[Replayed],
    (number, before): (u64, Predecessor),
    layout: &Layout,
) -> Result<()> {
    let is_live = before.wal >= layout.live_wal && before.valid_bytes > 0;
    if !is_live || logs.iter().any(|log| log.number == before.wal) {
        return Ok(());
    }
    if !numbers.contains(&before.wal) {
        return Err(missing(folder, number, before));
    }
    let (follower, bytes) = (wal_name(number), before.valid_bytes);
    let what = format!("the log ends here, but {follower} says it has {bytes} bytes");
    Err(Error::corrupt(folder.path_of(&wal_name(before.wal)), 0, what))
}

fn replay_log(folder: &OpenFolder, log: &mut Replayed, valid: Option<u64>) -> Result<()> {
    let bytes = wal::replay(folder, log.number, valid, &mut |batch| {
        if batch.first <= log.last {
            let what = "a group of writes that is older than the one before it";
            return Err(Error::corrupt(folder.path_of(&wal_name(log.number)), 0, what));
        }
        for entry in &batch.entries {
            log.memtable.insert(entry.key, entry.sequence, entry.kind, entry.value);
            log.first = log.first.min(entry.sequence);
            log.last = log.last.max(entry.sequence);
        }
        log.counts.add_group(batch.entries.len());
        Ok(())
    })?;
    (log.counts.files, log.counts.bytes) = (1, bytes);
    Ok(())
}

/// The memtables of older logs, newest first, with their flush numbers.
fn seal_logs(logs: &[Replayed], mut next: FlushNumber) -> (Vec<Arc<Sealed>>, FlushNumber) {
    let mut sealed = Vec::new();
    for log in logs.iter().filter(|log| !log.memtable.is_empty()) {
        let memtable = Arc::clone(&log.memtable);
        let &Replayed {
            number: wal, first, last, counts: LogCounts { bytes: log_bytes, .. }, ..
        } = log;
        sealed.insert(0, Arc::new(Sealed { memtable, wal, log_bytes, first, last, flush: next }));
        next = next.next();
    }
    (sealed, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Kind;
    use crate::memory::Memory;
    use crate::wal::Wal;

    #[test]
    fn a_log_that_repeats_itself_is_damaged() {
        let (disk, dir) = (Memory::new(), Path::new("db"));
        let options = Options::default();
        disk.create_dir(dir).expect("makes the folder");
        let none = Predecessor { wal: 0, valid_bytes: 0 };
        let folder = OpenFolder::on(&disk, dir);
        let mut log = Wal::create(&folder, 7, none).expect("creates");
        for (first, goes_on) in [(5, true), (6, true), (6, false)] {
            let entry = (Kind::Put, &b"key"[..], &b"value"[..]);
            log.append(Sequence(first), 1, std::iter::once(entry)).expect("appends");
            let names = disk.list(dir).expect("lists");
            let read = replay_logs(&folder, &names, &Layout::default(), &options);
            assert_eq!(read.is_ok(), goes_on, "after {first}");
        }
    }

    #[test]
    fn numbers_of_files_are_small() {
        assert_eq!(file_number("000012.table"), Some(12));
        assert_eq!(file_number("000012.wal.new"), Some(12));
        assert_eq!(file_number(&format!("{}.table", u64::MAX)), None);
        assert_eq!(file_number("12.txt"), None);
    }
}
