//! The state that all parts of an open store share, and the one short step that installs a change.
//! ```text
//! readers     current.pin()                        no lock
//! engine      writes, flushes, merges        -> installer: manifest, then the new version
//! ```
//! Invariant: the version changes only under the installer's lock, and always from the newest
//! version, not from the one that a job began with.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use trommel_filters::{FlushNumber, Shape};

use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::merge_operator::MergeOperator;
use crate::error::{Error, Result};
use crate::files::held_values::HeldValues;
use crate::files::manifest::Manifest;
use crate::files::names::value_name;
use crate::files::table::Table;
use crate::files::value_file::ValueFile;
use crate::guard::Guard;
use crate::guard::allotment::Allotment;
use crate::guard::elastic::Elastic;
use crate::guard::filter_recovery::FilterRecovery;
use crate::guard::monkey::filter_bits;
use crate::guard::parts::Parts;
use crate::plan::layout::{Edit, ImageRecord, Layout};
use crate::plan::store_layout::StoreEdit;
use crate::shared::environment::Environment;
use crate::shared::worker_pool::{WorkKind, Workers};
use crate::storage::clock::Clock;
use crate::storage::life::Life;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, Switch, lock};
use crate::tree::empty_query_sample::EmptyQuerySample;
use crate::tree::live_logs::LiveLogs;
use crate::tree::obsolete_files::{Obsolete, ObsoleteFiles};
use crate::tree::query_mix::QueryMixRounds;
use crate::tree::run_writer::RunOutput;
use crate::tree::snapshots::Snapshots;
use crate::tree::stats::Counters;
use crate::tree::table_files::{DamagedFilter, TableFiles};
use crate::tree::tree_view::{Follower, PinnedTree};
use crate::tree::version::{Active, Holder, Sealed, Version};

/// The open tree.
pub(crate) struct OpenTree {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) table_files: Arc<TableFiles>,
    pub(crate) env: Arc<Environment>,
    pub(crate) current: Switch<Version>,
    /// The epoch of the current version, for a quick check.
    pub(crate) merge_epoch: AtomicU64,
    /// Files that the newest version does not name but that still exist.
    pub(crate) obsolete_files: Arc<ObsoleteFiles>,
    /// The logs of the store.
    pub(crate) logs: Arc<LiveLogs>,
    /// The threads that work for this store.
    pub(crate) workers: Arc<Workers>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) installer: Mutex<Installer>,
    /// Locked behind the installer.
    pub(crate) manifest: Arc<Mutex<Manifest>>,
    pub(crate) counters: Counters,
    pub(crate) query_mix: QueryMixRounds,
    pub(crate) empty_query_sample: EmptyQuerySample,
    /// Filters that were found damaged at the opening, and are not used.
    pub(crate) damaged_filters: Box<[DamagedFilter]>,
    /// Decides which sub-filters of `elastic` filters are in memory. None: the store has another
    /// guard.
    pub(crate) elastic: Option<Box<Elastic>>,
    /// Whether a merge is due that frees space in value files.
    pub(crate) value_merge_due: AtomicBool,
    /// The value files that the last merge into the last level moves because they are old. Empty
    /// after an opening amid such a merge: its remaining ranges move none.
    pub(crate) oldest_values: Mutex<BTreeSet<u64>>,
    /// The merge operator. Empty: this program lacks it, and operands stay as they are.
    pub(crate) merge_operator: OnceLock<Arc<dyn MergeOperator>>,
    /// Whether the key space was dropped.
    pub(crate) dropped: Dropped,
    /// The source of the global filter at the opening.
    pub(crate) filter_recovery: FilterRecovery,
    /// The seconds that it took to make the guard at the opening.
    pub(crate) guard_open_seconds: f64,
}

/// Whether a key space was dropped, and its name.
#[derive(Default)]
pub(crate) struct Dropped(OnceLock<Box<str>>);

impl Dropped {
    /// Marks the key space as dropped.
    pub(crate) fn set(&self, name: &str) {
        let _ = self.0.set(name.into());
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    #[inline]
    fn check(&self) -> Result<()> {
        if self.is_set() { Err(self.error()) } else { Ok(()) }
    }

    #[cold]
    fn error(&self) -> Error {
        Error::KeyspaceDropped {
            name: self.0.get().map(|name| name.to_string()).unwrap_or_default(),
        }
    }
}

impl OpenTree {
    /// Returns an error if the tree may no longer be used: the store is not open, or the key space
    /// was dropped. Requires: the caller pins a version before it calls this.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        self.life().check()?;
        self.dropped.check()
    }

    /// Whether writes go into the log.
    #[inline]
    pub(crate) fn has_log(&self) -> bool {
        self.table_files.options.log
    }

    /// Returns the clock, if calls are to be timed.
    #[inline]
    pub(crate) fn timing(&self) -> Option<&dyn Clock> {
        self.table_files.options.time_calls.then(|| &*self.env.clock)
    }

    /// Returns the state that says whether the store may be used.
    #[inline]
    pub(crate) fn life(&self) -> &Arc<Life> {
        self.table_files.folder.life()
    }

    /// Describes the damaged filters that the tree still has, and sub-filters that were damaged
    /// when read. A merge replaces those of its inputs.
    pub(crate) fn damage_of_filters(&self, version: &Version) -> Vec<String> {
        let sub_filters = version.tables().filter_map(|table| table.table.sub_filters());
        let of_sub_filters = sub_filters.flat_map(|sub_filters| sub_filters.damage());
        self.damage_at_open(version).into_iter().chain(of_sub_filters).collect()
    }

    /// Describes the filters that were damaged at the opening and that the tree still has.
    pub(crate) fn damage_at_open(&self, version: &Version) -> Vec<String> {
        let stays = |damaged: &&DamagedFilter| {
            let file = damaged.file;
            let is_image = version.layout.images.iter().any(|image| image.file == file);
            is_image || version.tables().any(|table| table.table.file() == file)
        };
        self.damaged_filters.iter().filter(stays).map(|damaged| damaged.what.clone()).collect()
    }

    /// Returns the time since `start`.
    pub(crate) fn since(&self, start: std::time::Duration) -> std::time::Duration {
        self.env.clock.now().saturating_sub(start)
    }

    /// Returns the bits per key for the filters of a new run with this many entries, made of
    /// `inputs`. None: use the options.
    pub(crate) fn filter_bits(&self, inputs: &[u64], entries: u64) -> Option<f64> {
        filter_bits(&self.table_files.options, &self.current.hold().runs, inputs, entries)
    }

    /// Returns the bits that parts should have by recent queries. None: use the options.
    pub(crate) fn allotment(&self, parts: &Parts) -> Option<Allotment> {
        let options = &self.table_files.options;
        let (limit, recent) = (options.part_memory()?, self.empty_query_sample.recent()?);
        Some(Allotment::of(parts, &recent.counts(parts), limit, options.bits_per_key))
    }

    pub(crate) fn installer(&self) -> MutexGuard<'_, Installer> {
        lock(&self.installer)
    }

    /// Locks the store's manifest. Requires: the caller holds no lock that is taken after the
    /// installer's.
    pub(crate) fn manifest(&self) -> MutexGuard<'_, Manifest> {
        lock(&self.manifest)
    }

    /// Seals the active memtable and replaces it with a new one.
    pub(crate) fn seal(&self, installer: &mut Installer, active: Active, last: Sequence) {
        let now = self.current.hold();
        let flush = installer.take_flush();
        let old = &now.active;
        let sealed = Sealed {
            memtable: Arc::clone(&old.memtable),
            first_log: old.first_log(),
            first: old.first,
            last,
            flush,
            values: Arc::clone(&old.values),
        };
        sealed.first_log.into_iter().for_each(|it| self.logs.seal_memtable(self.keyspace, it));
        self.current.store(Arc::new(now.seal(Arc::new(sealed), active)));
    }

    /// Returns the runs with keys in a range, as codes of their entries may be widened. A
    /// committing transaction asks what came since it began. So no code may span both sides of that
    /// moment.
    pub(crate) fn shape_within(&self, layout: &Layout, bounds: &KeyBounds) -> Shape {
        let begun = self.snapshots.committing().into_iter();
        let first = begun.map(|at| layout.flush_of(Sequence(at.0.saturating_add(1))));
        let borders: Vec<FlushNumber> = first.flatten().collect();
        layout.shape_within(bounds).divided_at(&borders)
    }

    /// Has logs hold the value files of a memtable for change feeds. `last`: its last entry.
    pub(crate) fn keep_values(&self, in_log: bool, values: &HeldValues, last: Sequence) {
        if in_log && self.table_files.options.kept_log_bytes > 0 {
            self.logs.hold_values(values, last);
        }
    }

    /// Runs `install`, which is to install the tables of a run. Gives them up unless it succeeds,
    /// even after a panic.
    pub(crate) fn or_give_up(
        &self,
        run: &RunOutput,
        install: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        struct Tables<'t>(&'t OpenTree, &'t RunOutput);

        impl Drop for Tables<'_> {
            fn drop(&mut self) {
                let Tables(tree, run) = *self;
                tree.installer().give_up(tree, run);
            }
        }

        let tables = Tables(self, run);
        install()?;
        std::mem::forget(tables);
        Ok(())
    }

    /// Removes obsolete files. If some could not be removed, a background thread tries again.
    pub(crate) fn sweep_or_call(&self) {
        if self.sweep() {
            self.workers.call(&[WorkKind::Keep]);
        }
    }

    /// Removes obsolete files. True: some could not be removed, and must be tried again.
    pub(crate) fn sweep(&self) -> bool {
        let values = self.sweep_values();
        let free = self.obsolete_files.free();
        let is_gone = |file: &Obsolete| self.table_files.remove(*file);
        let gone: HashSet<Obsolete> = free.iter().copied().filter(is_gone).collect();
        self.obsolete_files.forget(&gone);
        let left_over = self.table_files.sweep_left_over();
        values || left_over || free.iter().any(|file| !gone.contains(file))
    }

    /// Removes value files that nobody holds; logs let go of those beyond their limit. True: some
    /// could not be removed. Requires: all trees of the store are open, and hold their value files.
    fn sweep_values(&self) -> bool {
        self.table_files.values.drop_unreferenced();
        let kept_bytes = self.table_files.options.kept_log_bytes;
        let gone = (kept_bytes > 0).then(|| self.logs.let_go_beyond(kept_bytes)).flatten();
        gone.into_iter().for_each(|gone| self.obsolete_files.add_logs_before(gone));
        let (store, mut stays) = (&self.table_files.values.store, false);
        for file in store.free() {
            match self.table_files.folder.remove(&value_name(file)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => stays = true,
                _ => store.forget(file),
            }
        }
        stays
    }
}

/// The source of entries that an edit brings into tables.
#[derive(Clone, Copy, Default)]
pub(crate) struct Origin {
    /// The log with the first entry of their memtable.
    pub(crate) first_log: Option<u64>,
    /// The entries are in no log, and are not newer than this.
    pub(crate) unlogged: Option<Sequence>,
}

/// Makes an edit durable, and returns the tree's new layout. `first_log`: the log of a memtable
/// that the edit brings into tables.
fn append(tree: &OpenTree, mut edit: StoreEdit, first_log: Option<u64>) -> Result<Arc<Layout>> {
    let mut manifest = tree.manifest();
    // Memtables of other trees may have been flushed since the last edit.
    let live = tree.logs.live_without(first_log);
    let frees = live > manifest.layout().logs.live;
    edit.live_wal = frees.then_some(live);
    manifest.append(&edit)?;
    first_log.into_iter().for_each(|first| tree.logs.end_memtable(first));
    if frees {
        let kept_bytes = tree.table_files.options.kept_log_bytes;
        let gone = tree.logs.let_go_below(live, kept_bytes);
        tree.obsolete_files.add_logs_before(gone);
    }
    let tree = manifest.layout().tree(tree.keyspace);
    Ok(Arc::clone(tree.expect("an edit of it went well")))
}

/// A file that the manifest may name.
struct Doubtful {
    file: Obsolete,
    /// Value files that this file refers to. They must be kept as long, for a store that finds this
    /// file.
    _values: Vec<Arc<ValueFile>>,
}

/// The right to change the version.
#[derive(Default)]
pub(crate) struct Installer {
    /// The next flush number. Numbers are taken at sealing, in the order of sequence numbers
    /// (ordering rule 1).
    pub(crate) next_flush: trommel_filters::FlushNumber,
    /// Images whose edit failed, and tables that were given up while the manifest might name them.
    /// After the next edit it does not.
    doubtful: Vec<Doubtful>,
    /// Whether the tree has changed since the opening.
    pub(crate) has_changed: bool,
    /// A function that gets the tree after every edit.
    follower: Option<Follower>,
}

impl Installer {
    pub(crate) fn new(next_flush: trommel_filters::FlushNumber) -> Self {
        Installer { next_flush, ..Installer::default() }
    }

    /// Gives a follower the present tree, and the tree after every later edit. The follower
    /// replaces the former one.
    pub(crate) fn follow(&mut self, tree: &OpenTree, mut follower: Follower) {
        follower(PinnedTree::new(tree, Holder::Follower));
        self.follower = Some(follower);
    }

    /// Removes the follower.
    pub(crate) fn unfollow(&mut self) {
        self.follower = None;
    }

    /// Takes the next flush number.
    pub(crate) fn take_flush(&mut self) -> trommel_filters::FlushNumber {
        let flush = self.next_flush;
        self.next_flush = flush.next();
        flush
    }

    /// Applies `edit` to the newest version: first on disk, then for readers. The caller sweeps
    /// obsolete files later, since the change must be complete before the storage is used again.
    pub(crate) fn install(
        &mut self,
        tree: &OpenTree,
        edit: &Edit,
        opened: &HashMap<u64, Arc<Table>>,
        guard: Guard,
    ) -> Result<()> {
        self.install_flushed(tree, edit, Origin::default(), opened, guard)
    }

    /// Like `install`, for an edit that brings entries into tables.
    pub(crate) fn install_flushed(
        &mut self,
        tree: &OpenTree,
        edit: &Edit,
        origin: Origin,
        opened: &HashMap<u64, Arc<Table>>,
        guard: Guard,
    ) -> Result<()> {
        tree.dropped.check()?;
        let now = tree.current.hold();
        let mut edit_of_store = StoreEdit::of_tree(tree.keyspace, edit.clone());
        if let Some(last) = origin.unlogged {
            // Before the edit can be on disk, whatever its outcome.
            tree.logs.chain(|chain| chain.note_unlogged(last));
            edit_of_store.unlogged = Some(last);
        }
        let layout = append(tree, edit_of_store, origin.first_log)?;
        for sealed in now.sealed.iter().filter(|sealed| sealed.is_flushed_by(edit)) {
            tree.keep_values(sealed.first_log.is_some(), &sealed.values, sealed.last);
        }
        let gone = layout.without(&edit.removed);
        if !edit.removed.is_empty() {
            let tables = now.files().filter(|table| gone.contains(table.file()));
            tree.obsolete_files.add_tables(&now, tables, Arc::clone(&tree.workers) as _);
        }
        let old_images = now.layout.images.iter().filter(|image| !layout.images.contains(image));
        let old_images = old_images.map(|image| Obsolete::Image(image.file));
        tree.obsolete_files.add(old_images);
        self.end_doubt(tree);
        self.has_changed = true;
        let lagging_runs = tree.table_files.options.lagging_runs(&layout);
        let next = now.apply(edit, (layout, lagging_runs), opened, guard);
        drop(now);
        let merge_epoch = next.merge_epoch;
        tree.current.store(Arc::new(next));
        tree.merge_epoch.store(merge_epoch, Ordering::Release);
        tree.note_value_garbage();
        if let Some(elastic) = &tree.elastic {
            elastic.follow(tree.current.pin().files());
        }
        self.call_follower(tree);
        Ok(())
    }

    /// Releases the files in doubt: the manifest certainly does not name them any more.
    pub(crate) fn end_doubt(&mut self, tree: &OpenTree) {
        tree.obsolete_files.add(self.doubtful.drain(..).map(|it| it.file));
    }

    /// Gives up the tables of a run that could not be installed. They are removed once the manifest
    /// certainly does not name them. Otherwise each attempt of a merge would leave tables on a full
    /// disk.
    pub(crate) fn give_up(&mut self, tree: &OpenTree, run: &RunOutput) {
        let names = |layout: &Arc<Layout>| {
            let mut tables = layout.runs.iter().flat_map(|run| &run.tables);
            tables.any(|table| run.opened.contains_key(&table.file))
        };
        // After a panic amid the installation, the manifest may name them.
        if tree.manifest().layout().tree(tree.keyspace).is_some_and(names) {
            return;
        }
        for &(file, _) in &run.tables {
            if tree.manifest().may_name(file) {
                let table = run.opened.get(&file);
                let values = table.map_or_else(Vec::new, |table| table.held_values().to_vec());
                self.doubtful.push(Doubtful { file: Obsolete::Table(file), _values: values });
            } else {
                tree.obsolete_files.add([Obsolete::Table(file)]);
            }
        }
    }

    /// Calls the follower. A follower that panics is removed, but the change stays installed.
    fn call_follower(&mut self, tree: &OpenTree) {
        let Some(mut follower) = self.follower.take() else { return };
        let tree = PinnedTree::new(tree, Holder::Follower);
        let called = catch_unwind(AssertUnwindSafe(|| follower(tree)));
        self.follower = called.is_ok().then_some(follower);
    }

    /// Writes an edit that changes nothing, so that the edit before it is not the manifest's last
    /// one.
    pub(crate) fn repeat_edit(&mut self, tree: &OpenTree) -> Result<()> {
        let edit = Edit { next_file: Some(tree.table_files.next_file()), ..Edit::default() };
        let guard = tree.current.hold().guard.clone();
        self.install(tree, &edit, &HashMap::new(), guard)
    }

    /// Records a durable log in the manifest: from then on its absence is an error. Requires:
    /// writes to the log are acknowledged only later.
    pub(crate) fn record_log(&mut self, tree: &OpenTree, number: u64) -> Result<()> {
        {
            let mut manifest = tree.manifest();
            if manifest.layout().logs.newest >= number {
                return manifest.make_durable();
            }
        }
        let next_file = Some(tree.table_files.next_file());
        let edit = Edit { next_file, ..Edit::default() };
        let edit = StoreEdit::of_tree(tree.keyspace, edit);
        let layout = append(tree, StoreEdit { newest_wal: Some(number), ..edit }, None)?;
        let mut next = (*tree.current.hold()).clone();
        next.layout = layout;
        tree.current.store(Arc::new(next));
        Ok(())
    }

    /// Marks that no log will have everything that was written so far. Change feeds do not cross
    /// the mark.
    pub(crate) fn end_feeds(&mut self, tree: &OpenTree) -> Result<()> {
        let last = tree.snapshots.visible();
        tree.logs.chain(|chain| {
            chain.note_unlogged(last);
            chain.forget_places();
        });
        let edit = StoreEdit::of_tree(tree.keyspace, Edit::default());
        append(tree, StoreEdit { unlogged: Some(last), ..edit }, None).map(drop)
    }

    /// Releases logs that no memtable needs.
    pub(crate) fn free_logs(&mut self, tree: &OpenTree) -> Result<()> {
        let live = tree.logs.live_without(None);
        if live <= tree.manifest().layout().logs.live {
            return Ok(());
        }
        append(tree, StoreEdit::of_tree(tree.keyspace, Edit::default()), None).map(drop)
    }

    /// Records images in the manifest, for those parts whose base is still that of the newest
    /// version.
    pub(crate) fn install_images(
        &mut self,
        tree: &OpenTree,
        images: Vec<ImageRecord>,
    ) -> Result<()> {
        let now = tree.current.hold();
        let is_newest = |image: &ImageRecord| {
            let mut partitions = now.layout.partitions();
            let bounds = partitions.find(|bounds| bounds.from == image.lower);
            bounds.is_some_and(|bounds| now.layout.base_files(&bounds) == image.tables)
        };
        let (images, late): (Vec<_>, Vec<_>) = images.into_iter().partition(is_newest);
        tree.obsolete_files.add(late.iter().map(|image| Obsolete::Image(image.file)));
        if images.is_empty() {
            return Ok(());
        }
        let files: Vec<_> = images.iter().map(|image| Obsolete::Image(image.file)).collect();
        let next_file = Some(tree.table_files.next_file());
        let edit = Edit { images, next_file, ..Edit::default() };
        let installed = self.install(tree, &edit, &HashMap::new(), now.guard.clone());
        let in_doubt = |file| Doubtful { file, _values: Vec::new() };
        installed.inspect_err(|_| self.doubtful.extend(files.into_iter().map(in_doubt)))
    }
}
