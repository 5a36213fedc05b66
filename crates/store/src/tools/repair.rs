//! Repairs a store that does not open, or that `verify` finds damaged.
//! ```text
//! sound manifest   its trees, without what is lost  (repair_tables.rs, repair_logs.rs)
//! else             trees of all readable tables     (repair_layout.rs, repair_untangle.rs)
//! damaged logs     their readable writes become a table, the newest run
//! then             lost/ gets what was damaged -> MANIFEST -> what is in lost/ leaves the folder,
//!                  except value files with other values, which are in both
//! ```
//! A manifest is sound if all of its tables exist and no other table is newer. Its end must be
//! intact, too, or the logs must continue where its tables end. The manifest of a sound store meets
//! this.
//!
//! Invariants: nothing is deleted: a file that leaves the tree has a durable name in `lost/` before
//! it loses its own. The new manifest is written when everything that it names is durable. A sound
//! store is not touched. A crash on the way leaves a store that can be repaired again. An untrusted
//! manifest always leaves a doubt, since only an intact one tells what is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use trommel_filters::{FlushNumber, Part, Span};

use crate::entries::entry::{Entry, Sequence};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::MemtableSize;
use crate::error::{Error, Result};
use crate::files::cache::BlockCache;
use crate::files::log_check::LogCheck;
use crate::files::log_replay::replay_logs;
use crate::files::manifest::{MANIFEST_NAME, Manifest};
use crate::files::names::{free_number, image_name, numbers_of, table_name, value_name, wal_name};
use crate::files::store_folder::{lock_folder, store_folder};
use crate::files::table::Table;
use crate::files::table::made_of::MadeOf;
use crate::files::table::parts::TableParts;
use crate::plan::guard_kind::GuardKind;
use crate::plan::layout::{FlushRecord, Layout, RunRecord, TableRecord};
use crate::plan::options::Options;
use crate::plan::store_layout::{
    GoneNumbers, KeyspaceChange, KeyspaceEdit, LogNumbers, StoreEdit, StoreLayout,
};
use crate::shared::environment::Environment;
use crate::storage::io_mode::IoStats;
use crate::storage::link_or_copy::link_or_copy;
use crate::sync::Arc;
use crate::tools::own_numbers;
use crate::tools::progress::{OnProgress, Steps, unheard};
use crate::tools::repair_layout::{TableFacts, layout_of};
use crate::tools::repair_logs::{SavedWrite, is_newer_than_all, save_writes, write_run};
use crate::tools::repair_manifest::FoundManifest;
use crate::tools::repair_report::{Doubt, Loss, RepairReport};
use crate::tools::repair_tables::{Mended, mend};
use crate::tools::repair_untangle::{Untangled, untangle};
use crate::tools::repair_values::{lost_in_logs, referred_files};
use crate::tree::guard_image;
use crate::tree::obsolete_files::Obsolete;
use crate::tree::run_writer::RunOutput;
use crate::tree::table_files::TableFiles;

/// The subfolder for files that no longer belong to the store.
const LOST_NAME: &str = "lost";

/// Repairs the store in a folder. See [`repair_with`].
pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
    repair_with(path, &Environment::default())
}

/// Repairs a store so that it opens and verifies, and reports what could not be saved. It reads
/// everything. Damaged files move to the subfolder `lost`; nothing is deleted. Where entries are
/// lost, older values of their keys may reappear, and so may deleted keys. If anything is lost or
/// in doubt, later writes get numbers that no write had: backups and change feeds begin anew.
///
/// All was saved if `lost` and `doubts` of the report are both empty. Only the manifest tells which
/// tables and logs there were. If it is damaged or missing, other missing files leave no trace, and
/// `doubts` says so. A log or manifest with an end torn by a crash is no doubt, since
/// [`Db::open`](crate::Db::open) accepts it, too.
///
/// # Errors
/// `Locked`: the store is open. `Missing` or `NotAStore`: there is no store. `Version`: another
/// version of Trommel wrote it. `Io`: the disk refuses. Then nothing has changed, or the repair can
/// be run again.
pub fn repair_with(path: impl AsRef<Path>, environment: &Environment) -> Result<RepairReport> {
    repair_with_progress(path, environment, &mut unheard)
}

/// Like [`repair_with`], and reports how many tables are read.
///
/// # Errors
/// `Cancelled`: the listener stopped it. Others as for [`repair_with`].
pub fn repair_with_progress(
    path: impl AsRef<Path>,
    environment: &Environment,
    listener: &mut OnProgress<'_>,
) -> Result<RepairReport> {
    let (dir, storage) = (path.as_ref(), &*environment.storage);
    let folder = store_folder(storage, dir)?;
    let _lock = lock_folder(&folder)?;
    let names = folder.list()?;
    let manifest = FoundManifest::read(&folder)?;
    // Logs are read into memtables that nobody queries, so these do not reserve their memory at
    // once.
    let (guard, write_buffer_bytes) = (GuardKind::Open, 1 << 20);
    let options = Arc::new(Options::new().guard(guard).write_buffer_bytes(write_buffer_bytes));
    let next_file = free_number(&names, manifest.layout.as_ref());
    let cache = Arc::new(BlockCache::new(options.block_cache_bytes as u64)).share();
    let table_files = TableFiles::new(folder, &options, cache, IoStats::default(), next_file);
    let table_files = Arc::new(table_files);
    let mut repair = Repair {
        table_files,
        names,
        report: RepairReport::default(),
        written: Vec::new(),
        steps: Steps::new(listener),
    };
    match repair.run(&manifest, environment) {
        Ok(()) => Ok(repair.report),
        Err(error) => {
            let written = repair.written.iter().map(|&file| Obsolete::Table(file));
            written.for_each(|file| repair.table_files.discard(file));
            Err(error)
        }
    }
}

/// A repair in progress.
struct Repair<'a, 'l> {
    table_files: Arc<TableFiles>,
    /// The files in the folder at the beginning.
    names: Vec<String>,
    report: RepairReport,
    /// Tables that were written and that no manifest can name yet.
    written: Vec<u64>,
    /// Counts the tables that are read.
    steps: Steps<'a, 'l>,
}

/// The readable tables of a tree.
#[derive(Default)]
struct Readable {
    facts: Vec<TableFacts>,
    tables: Vec<Arc<Table>>,
}

/// The repaired store, and the files that leave its folder.
struct RepairedStore {
    layout: StoreLayout,
    aside: Vec<String>,
}

impl Repair<'_, '_> {
    fn run(&mut self, manifest: &FoundManifest, environment: &Environment) -> Result<()> {
        let repaired = match &manifest.layout {
            Some(layout) if self.trusts(layout, manifest)? => self.keep(layout)?,
            _ => Some(self.rebuild(manifest)?),
        };
        self.report.changed = repaired.is_some();
        if let Some(mut repaired) = repaired {
            repaired.layout = self.with_own_numbers(repaired.layout, environment);
            self.count(&repaired.layout)?;
            self.install(repaired)?;
        } else if let Some(layout) = &manifest.layout {
            self.count(layout)?;
        }
        Ok(())
    }

    /// Has the store leave numbers out if anything is lost, or may be. Otherwise it would give
    /// numbers again that backups and change feeds know.
    fn with_own_numbers(&self, store: StoreLayout, environment: &Environment) -> StoreLayout {
        if self.report.lost.is_empty() && self.report.doubts.is_empty() {
            return store;
        }
        let used = store.next_file().max(store.last_sequence().0);
        let begin = own_numbers::begin((environment, self.table_files.folder.path()), used);
        store.leaving_out(GoneNumbers { next_file: begin, last_sequence: Sequence(begin) })
    }

    /// Whether the manifest describes the newest tree. A manifest that has lost its last edits may
    /// still be readable. In that case tables that it names are missing, or logs do not continue
    /// where its tables end, or other tables are newer.
    fn trusts(&self, store: &StoreLayout, manifest: &FoundManifest) -> Result<bool> {
        let tables = || store.trees().flat_map(|tree| &tree.runs).flat_map(|run| &run.tables);
        let all_there = tables().all(|table| self.has(&table_name(table.file)));
        let mut unknown = self.numbers(table_name);
        unknown.retain(|&file| !manifest.knows(file));
        if unknown.is_empty() && !manifest.is_torn {
            return Ok(true);
        }
        let Some(last) = self.last_in_logs(store)?.filter(|_| all_there) else {
            return Ok(false);
        };
        let last = last.max(store.last_sequence());
        // Without a torn end, such tables prove nothing: a crash leaves tables that are in no edit
        // and may be incomplete.
        for file in unknown.into_iter().filter(|_| manifest.is_torn) {
            let parts = TableParts::read(&self.table_files.folder, &table_name(file), file)?;
            if parts.properties.is_some_and(|known| known.sequences.1 > last) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the newest sequence number in logs. None: the logs are damaged.
    fn last_in_logs(&self, store: &StoreLayout) -> Result<Option<Sequence>> {
        let size = MemtableSize::of(self.table_files.options.write_buffer_bytes);
        let files = (&self.table_files.folder, &*self.table_files.values.store);
        match replay_logs(files, &self.names, store, &|_| size) {
            Ok(replayed) => Ok(Some(replayed.last())),
            Err(error) if error.tells_of_damage() => Ok(None),
            Err(Error::Version { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn count(&mut self, store: &StoreLayout) -> Result<()> {
        let runs = || store.trees().flat_map(|tree| &tree.runs);
        let logs = LogCheck { folder: &self.table_files.folder, layout: store, misses_logs: false };
        self.report.logs = logs.run(&self.names, &mut |_| Ok(()))?;
        self.report.tables = runs().map(|run| run.tables.len() as u64).sum();
        self.report.entries = runs().map(RunRecord::entries).sum();
        if !self.report.lost.is_empty() {
            let note = "older values of keys that were lost, and keys that had been deleted, may be seen again";
            self.report.notes.push(note.into());
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    /// Returns the numbers of all files of one kind, ascending.
    fn numbers(&self, name_of: fn(u64) -> String) -> Vec<u64> {
        numbers_of(&self.names, name_of)
    }

    /// Returns the manifest's trees without what is lost. None: nothing needs repair.
    fn keep(&mut self, store: &StoreLayout) -> Result<Option<RepairedStore>> {
        let mut next = store.clone();
        let mut aside = Vec::new();
        let tables = store.trees().flat_map(|tree| &tree.runs).map(|run| run.tables.len() as u64);
        self.steps.begin(tables.sum())?;
        for (&id, keyspace) in &store.keyspaces {
            let tree = self.keep_tables(id, &keyspace.tree, &mut aside)?;
            next = next.with(id, tree);
        }
        let files = (&self.table_files.folder, &*self.table_files.values.store);
        let lost = lost_in_logs(files, &self.names, store)?;
        if !lost.is_empty() || self.last_in_logs(store)?.is_none() {
            self.keep_logs(&mut next, &mut aside)?;
        }
        for (&id, keyspace) in &store.keyspaces {
            let (before, mut tree) = (&keyspace.tree, Layout::clone(&next.keyspaces[&id].tree));
            let was_oldest = before.runs.last().map(|run| run.id);
            if let Some(oldest) = tree.runs.last_mut().filter(|run| Some(run.id) != was_oldest) {
                oldest.tables.iter_mut().for_each(begin_at_0);
            }
            tree.end_last_merge();
            self.keep_images(before, &mut tree, &mut aside)?;
            next = next.with(id, tree);
        }
        let kept = LogCheck { folder: &self.table_files.folder, layout: store, misses_logs: false };
        for log in kept.damaged_kept(&self.names)? {
            let note = "it was kept for change feeds alone, which begin behind it now";
            self.report.notes.push(format!("{}: {note}", wal_name(log)));
            aside.push(wal_name(log));
        }
        if next == *store && aside.is_empty() {
            return Ok(None);
        }
        // Merges have left these tables behind, and an opening would remove them. But they may have
        // entries that are lost elsewhere.
        let named = store.table_files();
        let is_left_over = |file: &u64| !named.contains(file);
        let left_over = self.numbers(table_name).into_iter().filter(is_left_over);
        aside.extend(left_over.map(table_name));
        let next_file = self.table_files.next_file();
        let tree = Layout { next_file, ..Layout::clone(next.default_tree()) };
        Ok(Some(RepairedStore { layout: next.with(KeyspaceId::DEFAULT, tree), aside }))
    }

    /// Returns a tree with its readable tables only.
    fn keep_tables(
        &mut self,
        id: KeyspaceId,
        tree: &Layout,
        aside: &mut Vec<String>,
    ) -> Result<Layout> {
        let mut next = tree.clone();
        for run in &mut next.runs {
            let mut tables = Vec::new();
            for record in std::mem::take(&mut run.tables) {
                tables.extend(self.keep_table(id, tree, record, aside)?);
                self.steps.advance(1)?;
            }
            run.tables = tables;
        }
        next.runs.retain(|run| !run.tables.is_empty());
        Ok(next)
    }

    /// Returns the files of a key space's tables.
    fn files_of(&self, id: KeyspaceId) -> Arc<TableFiles> {
        Arc::new(self.table_files.sharing(id, &self.table_files.options))
    }

    fn keep_table(
        &mut self,
        id: KeyspaceId,
        layout: &Layout,
        record: TableRecord,
        aside: &mut Vec<String>,
    ) -> Result<Vec<TableRecord>> {
        let TableRecord { run, level, span, .. } = record;
        let name = table_name(record.file);
        if !self.has(&name) {
            self.lose_table(name, "the table is missing", record.entries);
            return Ok(Vec::new());
        }
        let mended = mend(&self.files_of(id), record.file, Some(&record), &mut self.report)?;
        let is_another = !mended.belongs(layout, &record);
        if is_another {
            self.lose_table(name.clone(), "another table is in its place", record.entries);
        }
        match mended {
            Mended::Sound(table) if !is_another => {
                let facts = TableFacts::of_piece(&table, Some(&record));
                return Ok(vec![facts.record(run, level, span)]);
            }
            Mended::Sound(_) => {}
            Mended::Rewritten(output) if is_another => output.abandon(&self.table_files),
            Mended::Rewritten(output) => {
                aside.push(name);
                self.note_rewritten(&output);
                return Ok(output.records(run, level, span));
            }
        }
        aside.push(name);
        Ok(Vec::new())
    }

    fn note_rewritten(&mut self, output: &RunOutput) {
        self.report.rewritten += output.tables.len() as u64;
        self.written.extend(output.tables.iter().map(|(file, _)| *file));
    }

    /// Turns the readable writes of the logs into one more flush of each tree.
    fn keep_logs(&mut self, next: &mut StoreLayout, aside: &mut Vec<String>) -> Result<()> {
        let live = next.logs.live;
        let mut numbers = self.numbers(wal_name);
        numbers.retain(|&number| number >= live);
        let known = next.clone();
        let mut keeps = |id: KeyspaceId, entry: &Entry<'_>| {
            Ok(known.tree(id).is_some_and(|tree| entry.sequence > tree.last_sequence))
        };
        let (folder, values) = (&self.table_files.folder, &self.table_files.values.store);
        let saved =
            save_writes((folder, values), &numbers, Some(&known), &mut self.report, &mut keeps)?;
        aside.extend(numbers.into_iter().map(wal_name));
        next.logs.live = self.table_files.next_file();
        for (id, writes) in saved {
            let tree = next.tree(id).expect("others are not kept");
            let mut tree = Layout::clone(tree);
            self.add_flush(id, &mut tree, &writes)?;
            *next = std::mem::take(next).with(id, tree);
        }
        Ok(())
    }

    /// Adds a run of these writes.
    fn add_flush(
        &mut self,
        id: KeyspaceId,
        tree: &mut Layout,
        writes: &[SavedWrite],
    ) -> Result<()> {
        let Some(output) = self.write_run(id, writes)? else { return Ok(()) };
        let flush = tree.next_flush;
        let (first, last) = sequences(writes);
        let span = Span::of_flush(flush);
        let run = output.tables[0].0;
        let tables = output.records(run, 0, span);
        tree.runs.insert(0, RunRecord { id: run, level: 0, tables });
        tree.flushes.push(FlushRecord { flush, first });
        (tree.next_flush, tree.last_sequence) = (flush.next(), last);
        tree.next_file = self.table_files.next_file();
        Ok(())
    }

    /// Keeps the images that still fit. Parts of the filter without one are rebuilt when the store
    /// is opened.
    fn keep_images(
        &self,
        layout: &Layout,
        next: &mut Layout,
        aside: &mut Vec<String>,
    ) -> Result<()> {
        for record in std::mem::take(&mut next.images) {
            let base = |layout: &Layout| {
                let mut partitions = layout.partitions();
                let bounds = partitions.find(|bounds| bounds.from == record.lower);
                bounds.map(|bounds| layout.base_files(&bounds))
            };
            let fits = match guard_image::read(&self.table_files.folder, &record) {
                // Even in a sound tree, a run may have become the oldest without its image
                // recording that.
                Ok(bytes) => Part::read_image(&bytes).is_ok() && base(next) == base(layout),
                Err(Error::Corrupt { .. } | Error::FileMissing { .. }) => false,
                Err(other) => return Err(other),
            };
            let name = image_name(record.file);
            if fits {
                next.images.push(record);
            } else if self.has(&name) {
                aside.push(name);
            }
        }
        Ok(())
    }

    /// Makes trees of all readable tables, except those that the manifest has removed.
    fn rebuild(&mut self, manifest: &FoundManifest) -> Result<RepairedStore> {
        self.report.manifest_rebuilt = true;
        self.doubt_manifest(manifest);
        let (mut trees, mut aside) = (BTreeMap::<KeyspaceId, Readable>::new(), Vec::new());
        let files = self.numbers(table_name);
        self.steps.begin(files.len() as u64)?;
        for file in files {
            self.steps.advance(1)?;
            if manifest.removed.contains(&file) {
                aside.push(table_name(file));
                continue;
            }
            let (id, made_of) = self.known_of(file)?;
            let files = self.files_of(id);
            let tree = trees.entry(id).or_default();
            for record in manifest.pieces_of(file) {
                match mend(&files, file, record, &mut self.report)? {
                    Mended::Sound(table) => {
                        let facts = TableFacts::of_piece(&table, record);
                        tree.facts.push(TableFacts { made_of: made_of.clone(), ..facts });
                        tree.tables.push(table);
                    }
                    Mended::Rewritten(output) => {
                        aside.push(table_name(file));
                        self.note_rewritten(&output);
                        let facts = output.opened.values().map(|table| TableFacts::of(table));
                        tree.facts.extend(facts.map(|facts| TableFacts { was: file, ..facts }));
                        tree.tables.extend(output.opened.into_values());
                    }
                }
            }
        }
        let logs = self.numbers(wal_name);
        self.rebuild_logs(&logs, &mut trees)?;
        aside.extend(logs.into_iter().map(wal_name));
        aside.extend(self.numbers(image_name).into_iter().map(image_name));
        let layout = self.rebuilt_layout(manifest, trees, &mut aside)?;
        Ok(RepairedStore { layout, aside })
    }

    /// Returns the key space of a table, and the tables that it was made of. An unreadable table
    /// counts as one of the default key space.
    fn known_of(&self, file: u64) -> Result<(KeyspaceId, MadeOf)> {
        let parts = TableParts::read(&self.table_files.folder, &table_name(file), file)?;
        let keyspace = parts.properties.map_or(KeyspaceId::DEFAULT, |known| known.keyspace);
        Ok((keyspace, parts.made_of))
    }

    fn rebuilt_layout(
        &mut self,
        manifest: &FoundManifest,
        trees: BTreeMap<KeyspaceId, Readable>,
        aside: &mut Vec<String>,
    ) -> Result<StoreLayout> {
        let mut store = StoreLayout::default().leaving_out(manifest.gone);
        let mut left_over = Vec::new();
        let named = manifest.names.keys().copied().chain([KeyspaceId::DEFAULT]);
        let ids: BTreeSet<KeyspaceId> = named.chain(trees.keys().copied()).collect();
        let mut trees = trees;
        for id in ids {
            let Readable { facts, .. } = trees.remove(&id).unwrap_or_default();
            let last = facts.iter().map(|table| table.sequences.1).max().unwrap_or_default();
            let Untangled { facts, merged } =
                untangle(&self.files_of(id), facts, &mut self.written)?;
            aside.extend(merged.iter().map(|&file| table_name(file)).filter(|it| self.has(it)));
            let (mut tree, doubtful) = layout_of(facts);
            left_over.extend([merged, doubtful].concat());
            tree.last_sequence = last.max(manifest.last_sequence);
            tree.next_file = self.table_files.next_file();
            store = self.with_tree(store, id, tree, manifest)?;
        }
        self.doubt_tables(manifest, &left_over);
        store.next_keyspace = store.next_keyspace.max(manifest.next_keyspace);
        store.logs = LogNumbers { live: self.table_files.next_file(), newest: 0, ..store.logs };
        Ok(store)
    }

    /// Adds a tree to the store, with what the manifest tells of its key space.
    fn with_tree(
        &mut self,
        store: StoreLayout,
        id: KeyspaceId,
        tree: Layout,
        manifest: &FoundManifest,
    ) -> Result<StoreLayout> {
        let change = (id != KeyspaceId::DEFAULT).then(|| {
            let name = self.name_of(&store, id, manifest.names.get(&id));
            KeyspaceChange::Created { name }
        });
        let options = manifest.options.get(&id).into_iter().flatten();
        let options = options.map(|(name, text)| (name.clone(), text.clone())).collect();
        let edit = KeyspaceEdit { change, options, ..KeyspaceEdit::default() };
        let made = StoreEdit { keyspaces: vec![(id, edit)], ..StoreEdit::default() };
        let path = self.table_files.folder.path_of(MANIFEST_NAME);
        let store = store.followed_by(&made).map_err(|wrong| Error::corrupt(path, 0, wrong))?;
        Ok(store.with(id, tree))
    }

    /// Returns the name of a key space. If it is unknown, the key space gets a new one.
    fn name_of(&mut self, store: &StoreLayout, id: KeyspaceId, name: Option<&String>) -> String {
        let invented = || {
            let names = (0..).map(|n| match n {
                0 => format!("recovered-{}", id.0),
                n => format!("recovered-{}-{n}", id.0),
            });
            let mut free = names.filter(|name| store.named(name).is_none());
            free.next().expect("numbers do not end")
        };
        let known = name.filter(|name| store.named(name).is_none()).cloned();
        if known.is_none() {
            let what = format!("the name of key space {} cannot be read", id.0);
            self.report.notes.push(format!("{what}: it is {} now", invented()));
        }
        known.unwrap_or_else(invented)
    }

    /// Turns entries of logs that are in no table into tables.
    fn rebuild_logs(
        &mut self,
        logs: &[u64],
        trees: &mut BTreeMap<KeyspaceId, Readable>,
    ) -> Result<()> {
        let (folder, values) = (&self.table_files.folder, &self.table_files.values.store);
        let mut keeps = |id: KeyspaceId, entry: &Entry<'_>| {
            trees.get(&id).map_or(Ok(true), |tree| is_newer_than_all(entry, &tree.tables))
        };
        let saved = save_writes((folder, values), logs, None, &mut self.report, &mut keeps)?;
        for (id, writes) in saved {
            let Some(output) = self.write_run(id, &writes)? else { continue };
            let facts = output.opened.values().map(|table| TableFacts::of(table));
            let newest = facts.map(|facts| TableFacts { is_newest: true, ..facts });
            trees.entry(id).or_default().facts.extend(newest);
        }
        Ok(())
    }

    /// Only an intact manifest tells which tables and logs there were. Without one, missing files
    /// leave no trace.
    fn doubt_manifest(&mut self, manifest: &FoundManifest) {
        let unknown = "which tables and logs are gone as well, nobody can tell";
        if !manifest.is_there {
            self.doubt(MANIFEST_NAME.into(), None, format!("it is missing: {unknown}"));
        }
        for (offset, what) in &manifest.damage {
            self.doubt(MANIFEST_NAME.into(), Some(*offset), format!("{what}: {unknown}"));
        }
        let note = "options that key spaces kept may be gone, or be older ones: set them anew";
        self.report.notes.push(format!("{MANIFEST_NAME}: {note}"));
        if manifest.layout.is_some() {
            let what = format!("it ends here, and does not fit the files: {unknown}");
            self.doubt(MANIFEST_NAME.into(), Some(manifest.end), what);
        }
    }

    fn doubt(&mut self, file: String, offset: Option<u64>, what: String) {
        self.report.doubts.push(Doubt { file, offset, what });
    }

    /// `left_over`: tables that share keys and ages with others.
    fn doubt_tables(&mut self, manifest: &FoundManifest, left_over: &[u64]) {
        for file in left_over {
            let what = "it has keys and ages in common with another table: \
                if it is left over from a merge, keys that were deleted may be seen again, \
                and merged operands may be missing or count twice";
            self.doubt(table_name(*file), None, what.into());
        }
        let is_unknown = |file: &u64| !manifest.knows(*file);
        let may_be_merged = self.numbers(table_name).iter().any(is_unknown)
            || !manifest.damage.is_empty()
            || manifest.is_torn;
        for (&file, pieces) in &manifest.added {
            let name = table_name(file);
            if self.has(&name) {
                continue;
            }
            if may_be_merged {
                let what = "it is missing: it was merged into another, or is lost";
                self.doubt(name, None, what.into());
            } else {
                let entries = pieces.iter().map(|piece| piece.entries).sum();
                self.lose_table(name, "the table is missing", entries);
            }
        }
    }

    fn lose_table(&mut self, file: String, what: &str, entries: u64) {
        let (what, entries) = (what.to_string(), Some(entries));
        self.report.lost.push(Loss { file, offset: 0, what, entries });
    }

    /// Writes sorted entries as a run. None: there are no entries.
    fn write_run(&mut self, id: KeyspaceId, writes: &[SavedWrite]) -> Result<Option<RunOutput>> {
        let Some(output) = write_run(&self.files_of(id), writes)? else { return Ok(None) };
        self.report.saved_from_logs += writes.len() as u64;
        self.written.extend(output.tables.iter().map(|(file, _)| *file));
        Ok(Some(output))
    }

    /// Sets value files aside that the repaired store does not refer to: an opening would remove
    /// them. Returns those that it does refer to, and that have lost values as well.
    fn set_values_aside(&self, repaired: &mut RepairedStore) -> Result<Vec<String>> {
        let files_of = |id| self.files_of(id);
        let stays = |name: &&String| !repaired.aside.contains(name);
        let names: Vec<String> = self.names.iter().filter(stays).cloned().collect();
        let referred = referred_files(&files_of, &names, &repaired.layout)?;
        let (needed, others): (Vec<_>, Vec<_>) =
            self.numbers(value_name).into_iter().partition(|file| referred.contains(file));
        repaired.aside.extend(others.into_iter().map(value_name));
        let damaged = needed.into_iter().filter(|file| self.report.lost_in_values.contains(file));
        Ok(damaged.map(value_name).collect())
    }

    fn install(&mut self, mut repaired: RepairedStore) -> Result<()> {
        let damaged = self.set_values_aside(&mut repaired)?;
        // A file with several pieces leaves the folder once.
        repaired.aside.sort_unstable();
        repaired.aside.dedup();
        let folder = &self.table_files.folder;
        let lost = folder.make_folder(LOST_NAME)?;
        folder.sync()?;
        let mut taken = lost.list()?;
        let manifest = self.has(MANIFEST_NAME).then(|| MANIFEST_NAME.to_string());
        for name in repaired.aside.iter().chain(&damaged).chain(&manifest) {
            let free = free_name(name, &taken);
            link_or_copy((folder, name), (&lost, &free))?;
            taken.push(free.clone());
            self.report.set_aside.push(free);
        }
        lost.sync()?;
        folder.sync()?;
        // From here on the manifest may name the written tables.
        self.written.clear();
        Manifest::create(folder, repaired.layout)?;
        for name in &repaired.aside {
            // A file that remains is in no tree. The next opening removes it.
            let _ = folder.remove(name);
        }
        folder.sync()
    }
}

/// Makes the span begin at 0: the run is now the oldest, since all older runs are lost.
fn begin_at_0(table: &mut TableRecord) {
    let from_0 = Span::new(FlushNumber(0), table.span.hi());
    table.span = from_0.expect("no span ends at 0");
}

/// Returns the least and the greatest sequence number. Requires: there are writes.
fn sequences(writes: &[SavedWrite]) -> (Sequence, Sequence) {
    let numbers = || writes.iter().map(|write| write.sequence);
    let (least, greatest) = (numbers().min(), numbers().max());
    (least.expect("not empty"), greatest.expect("not empty"))
}

/// Returns the name, or the name with the first number that is not taken.
fn free_name(name: &str, taken: &[String]) -> String {
    let numbered = (1..).map(|number| format!("{name}.{number}"));
    let mut names = std::iter::once(name.to_string()).chain(numbered);
    names.find(|name| !taken.contains(name)).expect("numbers do not end")
}
