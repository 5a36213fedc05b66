//! Reads and checks everything: checksums, the order of entries, the manifest, the logs, the
//! filter's images, and every key against the guard.
//! ```text
//! MANIFEST   describes the open tree       tables    checksums, order, index, counts
//! logs       checksums, lengths, ages      entries   flush within the span, guard says "maybe"
//! image      length, checksum              runs      newer runs have the newer entries of a key
//! ```
//! Invariants: each tree is checked in one version, which is pinned, while writes, flushes and
//! merges continue. A file that leaves the tree meanwhile is no damage.

use trommel_filters::{KeyRange, Query, Span};

use crate::entries::cursor::Cursor;
use crate::entries::entry::{Entry, Kind, Sequence};
use crate::error::{Error, Result};
use crate::files::distinct_keys::for_each_entry;
use crate::files::log_check::{LogCheck, LogCounts};
use crate::files::manifest::{MANIFEST_NAME, Manifest};
use crate::files::placed_run::PlacedRun;
use crate::files::run::RunCursor;
use crate::files::run_table::RunTable;
use crate::files::table::Table;
use crate::plan::layout::{ImageRecord, Layout, RunRecord, TableRecord};
use crate::plan::store_layout::StoreLayout;
use crate::read::get;
use crate::storage::open_folder::OpenFolder;
use crate::sync::Arc;
use crate::tools::progress::Steps;
use crate::tree::guard_image;
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;

/// What was checked, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The number of tables that were read.
    pub tables: u64,
    /// Entries in these tables.
    pub entries: u64,
    /// Bytes of these tables.
    pub bytes: u64,
    /// The logs that were read, and their entries that are in no table yet.
    pub logs: LogCounts,
    /// Entries in memtables. None: the store was not open.
    pub memtable_entries: Option<u64>,
    /// The damage, with file and offset. Empty: the store is sound.
    pub damage: Vec<String>,
}

impl VerifyReport {
    /// Adds damage to the report; returns other errors to the caller.
    pub(crate) fn note(&mut self, checked: Result<()>) -> Result<()> {
        checked.or_else(|error| report_damage(&mut self.damage, error))
    }
}

/// Adds damage to the list, but only once. Returns other errors to the caller.
pub(crate) fn report_damage(list: &mut Vec<String>, error: Error) -> Result<()> {
    if !matches!(error, Error::Corrupt { .. } | Error::FileMissing { .. }) {
        return Err(error);
    }
    let damage = error.to_string();
    if !list.contains(&damage) {
        list.push(damage);
    }
    Ok(())
}

/// The number of entries between two calls of the listener.
const STEP_ENTRIES: u64 = 4096;

/// Checks the trees of a store. Requires: at least one.
pub(crate) fn verify(trees: &[Arc<OpenTree>], steps: &mut Steps<'_, '_>) -> Result<VerifyReport> {
    let mut report = verify_trees(trees, steps)?;
    check_logs(&trees[0], &mut report)?;
    report.note(check_manifest(&trees[0]))?;
    trees.iter().try_for_each(|tree| report.note(check_layout(tree)))?;
    Ok(report)
}

/// Like `verify`, for trees that another process writes, with their layout and their logs.
pub(crate) fn verify_followed(
    trees: &[Arc<OpenTree>],
    (folder, layout): (&OpenFolder, &StoreLayout),
    steps: &mut Steps<'_, '_>,
) -> Result<VerifyReport> {
    let mut report = verify_trees(trees, steps)?;
    check_logs_of(folder, layout, &mut report)?;
    Ok(report)
}

fn verify_trees(trees: &[Arc<OpenTree>], steps: &mut Steps<'_, '_>) -> Result<VerifyReport> {
    let mut report = VerifyReport { memtable_entries: Some(0), ..Default::default() };
    let entries = |tree: &Arc<OpenTree>| -> u64 {
        tree.current.pin().layout.runs.iter().map(RunRecord::entries).sum()
    };
    steps.begin(trees.iter().map(entries).sum())?;
    trees.iter().try_for_each(|tree| verify_tree(tree, &mut report, steps))?;
    Ok(report)
}

fn verify_tree(
    tree: &OpenTree,
    report: &mut VerifyReport,
    steps: &mut Steps<'_, '_>,
) -> Result<()> {
    let version = tree.current.hold();
    report.damage.extend(tree.damage_at_open(&version));
    report.memtable_entries = report.memtable_entries.map(|all| all + version.memtable_entries());
    let values = Vec::new();
    let mut unreadable = Unreadable { tree, version: &version, key: None, values };
    unreadable.ask_memtables();
    unreadable.read_values_of_memtables()?;
    for (placed, record) in version.runs.iter().zip(&version.layout.runs) {
        for (table, record) in placed.run.tables().iter().zip(&record.tables) {
            report.tables += 1;
            report.entries += table.entry_count();
            report.bytes += table.bytes_within();
            let checked = check_table(&mut unreadable, placed, (table, record), steps);
            report.note(checked)?;
        }
    }
    report.damage.extend(unreadable.message());
    unreadable.values.into_iter().try_for_each(|lost| report.note(Err(lost)))?;
    for (place, newer) in version.runs.iter().enumerate() {
        for older in &version.runs[place + 1..] {
            report.note(check_ages(newer, older, steps))?;
        }
    }
    for image in &version.layout.images {
        report.note(check_image(tree, image))?;
    }
    Ok(())
}

/// Looks for a key that cannot be read because its merge operator is missing, and for damaged
/// values apart.
struct Unreadable<'v> {
    tree: &'v OpenTree,
    version: &'v Version,
    /// The first such key.
    key: Option<Vec<u8>>,
    /// The damage to values.
    values: Vec<Error>,
}

impl Unreadable<'_> {
    /// Reads the value that an entry refers to, if any.
    fn read_value(&mut self, entry: &Entry<'_>) -> Result<()> {
        let Some(Ok(at)) = entry.value_ref() else { return Ok(()) };
        let store = &self.tree.table_files.values.store;
        match store.held(at.file).and_then(|file| file.check(store.files(), &at)) {
            Err(error) if error.tells_of_damage() => self.values.push(error),
            checked => checked?,
        }
        Ok(())
    }

    fn read_values_of_memtables(&mut self) -> Result<()> {
        let version = self.version;
        let sealed = version.sealed.iter().map(|sealed| &sealed.memtable);
        let mut memtables = std::iter::once(&version.active.memtable).chain(sealed);
        memtables.try_for_each(|it| it.entries().try_for_each(|entry| self.read_value(&entry)))
    }

    fn ask_memtables(&mut self) {
        let sealed = self.version.sealed.iter().map(|sealed| &sealed.memtable);
        for memtable in std::iter::once(&self.version.active.memtable).chain(sealed) {
            let operands = memtable.entries().filter(|entry| entry.kind == Kind::Merge);
            operands.for_each(|entry| self.ask(entry.key));
        }
    }

    /// Notes a key with an operand if it cannot be read. Below a newer value, an operand does no
    /// harm.
    fn ask(&mut self, key: &[u8]) {
        if self.key.is_none() && self.tree.merge_operator.get().is_none() {
            let read = get::get_at(self.tree, self.version, key, Sequence::MAX);
            let fails = matches!(read, Err(Error::NoMergeOperator { .. }));
            self.key = fails.then(|| key.to_vec());
        }
    }

    fn message(&self) -> Option<String> {
        let key = self.key.as_ref()?.escape_ascii();
        let manifest = self.tree.manifest();
        let keyspace = manifest.layout().keyspaces.get(&self.tree.keyspace);
        let name = keyspace.map_or("", |keyspace| &keyspace.record.name);
        let store = self.tree.table_files.folder.path().display();
        Some(format!(
            "{store}, key space {name}: {key} has operands and cannot be read, since the key space is open \
             without its merge operator: open it with the one it was made with"
        ))
    }
}

/// Checks that a table's file is as long as the manifest says.
pub(crate) fn check_size(table: &Table, record: &TableRecord) -> Result<()> {
    let (named, there) = (record.bytes, table.bytes());
    let what = || format!("it has {there} bytes; the manifest names {named}");
    if named == there { Ok(()) } else { Err(Error::corrupt(table.path(), 0, what())) }
}

/// Checks that the bytes of a filter's image are those that were written.
fn check_image(tree: &OpenTree, record: &ImageRecord) -> Result<()> {
    let read = guard_image::read(&tree.table_files.folder, record);
    // A newer image may have replaced it meanwhile.
    let is_named = tree.current.pin().layout.images.contains(record);
    if is_named { read.map(|_| ()) } else { Ok(()) }
}

fn check_table(
    unreadable: &mut Unreadable<'_>,
    placed: &PlacedRun,
    (table, record): (&RunTable, &TableRecord),
    steps: &mut Steps<'_, '_>,
) -> Result<()> {
    let version = unreadable.version;
    let wrong = |what: String| Error::corrupt(table.table.path(), 0, what);
    check_size(&table.table, record)?;
    table.table.verify()?;
    if table.key_bounds() != record.key_bounds() {
        return Err(wrong("its keys are not those that the manifest names".into()));
    }
    let is_oldest = version.runs.last().is_some_and(|oldest| oldest.id == placed.id);
    for delete in table.tombstones().pieces() {
        check_flush(&version.layout, table.span, is_oldest, delete.sequence).map_err(|what| {
            wrong(format!("the range deleted from {}: {what}", delete.from.escape_ascii()))
        })?;
    }
    let mut last_key: Option<Vec<u8>> = None;
    let mut entries = 0u64;
    for_each_entry(&mut table.cursor().end_to_end(), |entry| {
        let &Entry { key, sequence, kind, .. } = entry;
        unreadable.read_value(entry)?;
        entries += 1;
        if entries.is_multiple_of(STEP_ENTRIES) {
            steps.advance(STEP_ENTRIES)?;
        }
        check_flush(&version.layout, table.span, is_oldest, sequence)
            .map_err(|what| wrong(format!("key {}: {what}", key.escape_ascii())))?;
        match &mut last_key {
            Some(last) if last == key => return Ok(()),
            Some(last) => key.clone_into(last),
            None => last_key = Some(key.to_vec()),
        }
        if kind == Kind::Merge {
            unreadable.ask(key);
        }
        let queries = [Query::Point(key), Query::Range(KeyRange::of_key(key))];
        if queries.iter().all(|query| version.guard.ask(query).may_hold(table)) {
            return Ok(());
        }
        Err(wrong(format!("the guard denies its key {}", key.escape_ascii())))
    })?;
    steps.advance(entries % STEP_ENTRIES)?;
    let named = record.entries;
    let what = || format!("it has {entries} entries of the {named} that the manifest names");
    if entries == named { Ok(()) } else { Err(wrong(what())) }
}

/// Checks that an entry fits the manifest: its flush is on record and within its table's span.
pub(crate) fn check_flush(
    layout: &Layout,
    span: Span,
    is_oldest: bool,
    sequence: Sequence,
) -> std::result::Result<(), &'static str> {
    if sequence > layout.last_sequence {
        return Err("an entry that is newer than all that the manifest tells of");
    }
    match layout.flush_of(sequence) {
        // The oldest run begins at 0, unless it became the oldest because all older runs were
        // deleted.
        None if is_oldest && span.lo().0 == 0 => Ok(()),
        None => Err("an entry of a flush that is not on record"),
        Some(flush) if span.lo() <= flush && flush < span.hi() => Ok(()),
        Some(_) => Err("an entry of a flush outside the span that the manifest names"),
    }
}

/// Returns the least and the greatest sequence number in a run.
fn sequences(placed: &PlacedRun) -> (Sequence, Sequence) {
    let of_tables = placed.run.tables().iter().map(|table| table.table.properties().sequences);
    let hull = of_tables.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    hull.expect("a run has tables")
}

/// Checks that the newer run has the newest entry of every key that both have: a search that finds
/// the key there goes no further.
fn check_ages(newer: &PlacedRun, older: &PlacedRun, steps: &mut Steps<'_, '_>) -> Result<()> {
    if sequences(newer).0 > sequences(older).1 {
        return Ok(());
    }
    let mut cursors = [newer, older].map(|placed| placed.run.cursor().end_to_end());
    cursors.iter_mut().try_for_each(|cursor| cursor.seek_first())?;
    let [newer_cursor, older_cursor] = &mut cursors;
    steps.advance(0)?;
    while let (Some(new), Some(old)) = (newer_cursor.entry(), older_cursor.entry()) {
        match new.key.cmp(old.key) {
            std::cmp::Ordering::Less => skip_key(newer_cursor)?,
            std::cmp::Ordering::Greater => skip_key(older_cursor)?,
            std::cmp::Ordering::Equal if new.sequence < old.sequence => {
                let holder = older.run.find(old.key).expect("a run finds its own keys");
                let what = format!("its key {} is newer in an older run", old.key.escape_ascii());
                return Err(Error::corrupt(holder.table.path(), 0, what));
            }
            std::cmp::Ordering::Equal => {
                skip_key(newer_cursor)?;
                skip_key(older_cursor)?;
            }
        }
    }
    Ok(())
}

/// Moves to the newest entry of the next key. Requires: the cursor is at an entry.
fn skip_key(cursor: &mut RunCursor) -> Result<()> {
    let key = cursor.entry().map(|entry| entry.key.to_vec());
    while cursor.entry().is_some_and(|entry| Some(entry.key) == key.as_deref()) {
        cursor.next()?;
    }
    Ok(())
}

/// Reads every log with entries that are in no table.
fn check_logs(tree: &OpenTree, report: &mut VerifyReport) -> Result<()> {
    let layout = tree.manifest().layout().clone();
    check_logs_of(&tree.table_files.folder, &layout, report)
}

fn check_logs_of(
    folder: &OpenFolder,
    layout: &StoreLayout,
    report: &mut VerifyReport,
) -> Result<()> {
    // Only names in the folder are checked, not all numbers up to the next one: a damaged manifest
    // may name any number.
    let check = LogCheck { folder, layout, misses_logs: false };
    report.logs =
        check.run(&folder.list()?, &mut |error| report_damage(&mut report.damage, error))?;
    Ok(())
}

/// Checks that the manifest's file matches the open store. Holds the manifest's lock meanwhile.
fn check_manifest(tree: &OpenTree) -> Result<()> {
    let folder = &tree.table_files.folder;
    let manifest = tree.manifest();
    let read = Manifest::read(folder)?;
    let read =
        read.ok_or_else(|| Error::corrupt(folder.path_of(MANIFEST_NAME), 0, "it is missing"))?;
    let is_other = manifest.is_certain() && read != *manifest.layout();
    if is_other { Err(another_tree(tree)) } else { Ok(()) }
}

/// Checks that a tree matches the store's manifest, unless its key space was dropped.
fn check_layout(tree: &OpenTree) -> Result<()> {
    let _installer = tree.installer();
    let manifest = tree.manifest();
    let is_other = |recorded: &Arc<Layout>| *recorded != tree.current.hold().layout;
    let recorded = manifest.layout().tree(tree.keyspace).filter(|_| manifest.is_certain());
    if recorded.is_some_and(is_other) { Err(another_tree(tree)) } else { Ok(()) }
}

fn another_tree(tree: &OpenTree) -> Error {
    let path = tree.table_files.folder.path_of(MANIFEST_NAME);
    Error::corrupt(path, 0, "it tells of another tree than the one that is open")
}

#[cfg(test)]
mod tests;
