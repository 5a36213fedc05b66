//! Moves a follower's view on to what the writer has shown since.
//! ```text
//! MANIFEST   new edits --> layout --> new tables, and what the guard lacks of them
//! logs       those that the manifest names, as it was read: new groups --> memtables
//! both       --> readers: a greater number, or another view
//! ```
//! The manifest is read first. Everything in tables was in logs before, and a log is removed only
//! after an edit that drops it. So any prefix of the edits, together with the logs that it names,
//! is complete if all of its files exist. If a file is gone, a later edit explains that, and the
//! manifest is read again.
//!
//! Invariants: nothing is written. A view is the store as of its number: it has batches only as a
//! whole, and no write that was refused. Numbers only grow.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::files::log_replay::{ReplayedMemtable, replay_followed};
use crate::files::log_tail::{LogTail, Read, Stretch, all_live};
use crate::files::manifest::MANIFEST_NAME;
use crate::files::manifest_tail::ManifestTail;
use crate::files::wal::{HEADER_SIZE, WalBatch};
use crate::follow::memtables;
use crate::follow::view::{FollowedStore, View};
use crate::plan::store_layout::{KeyspaceLayout, StoreLayout};
use crate::sync::{Arc, Switch};
use crate::tree::open_tree::OpenTree;
use crate::tree::opening::{Recovered, nothing};

type Trees = BTreeMap<KeyspaceId, Arc<OpenTree>>;

/// How far a follower has read.
pub(super) struct Progress {
    manifest: ManifestTail,
    /// The layout that the manifest describes.
    layout: Arc<StoreLayout>,
    pub(super) logs: LogTail,
    /// All writes up to this one are in the trees of the current view.
    applied: Sequence,
    /// The newest log that was read incrementally, and the end of its whole groups.
    newest_log: Option<(u64, u64)>,
    /// Whether the manifest has edits that the current view lacks.
    is_edited: bool,
    /// Whether the memtables must be rebuilt from all live logs.
    must_replay: bool,
    /// A log whose next group refers to a value that a crash has taken. Its owner continues in this
    /// log, rewritten without the group, or in another one. So each look replays all logs.
    torn: Option<u64>,
}

/// The outcome of a step.
enum Step {
    /// Everything that the manifest describes was read.
    Done,
    /// The manifest, as it was read, does not explain a group.
    Unexplained,
    /// The manifest has new edits meanwhile.
    Overtaken,
}

/// The result of a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CatchUpOutcome {
    /// Whether readers see more than before.
    pub(super) has_moved: bool,
    /// Whether the writer was at work: something is new, even if it does not count yet.
    pub(super) has_news: bool,
}

impl Progress {
    /// The state when only the manifest was read.
    pub(super) fn new(manifest: ManifestTail) -> Self {
        Progress {
            layout: Arc::new(manifest.layout().clone()),
            manifest,
            logs: LogTail::default(),
            applied: Sequence(0),
            newest_log: None,
            is_edited: true,
            must_replay: true,
            torn: None,
        }
    }

    /// Moves the view on as far as possible.
    pub(super) fn catch_up(
        &mut self,
        store: &FollowedStore,
        current: &Switch<View>,
    ) -> Result<CatchUpOutcome> {
        let mut outcome = CatchUpOutcome::default();
        self.read_manifest(store, false)?;
        outcome.has_news |= self.is_edited;
        loop {
            let was_replayed = self.must_replay;
            match self.step(store, current, &mut outcome) {
                Ok(Step::Done) => return Ok(outcome),
                Ok(Step::Overtaken) => {}
                // Only a later edit explains a group.
                Ok(Step::Unexplained) => {
                    if !self.find_reason(store)? {
                        return Ok(outcome);
                    }
                }
                Err(error) if may_be_gone(&error) => {
                    if !self.find_reason(store)? {
                        if was_replayed {
                            return Err(error);
                        }
                        // Try again with all live logs: perhaps the newest log ends here.
                        self.must_replay = true;
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the manifest for an edit that explains what was seen, and so proves an edit that would
    /// not count yet. That is an edit held back before, or one that this call finds. False: there
    /// is none.
    fn find_reason(&mut self, store: &FollowedStore) -> Result<bool> {
        Ok(self.read_manifest(store, true)? || self.read_manifest(store, true)?)
    }

    /// Reads new edits. False: there are none.
    fn read_manifest(&mut self, store: &FollowedStore, proved: bool) -> Result<bool> {
        let is_new = self.manifest.follow(&store.folder, proved)?;
        if is_new {
            self.layout = Arc::new(self.manifest.layout().clone());
            self.is_edited = true;
        }
        Ok(is_new)
    }

    /// Reads what the manifest describes: the new part of the logs, or all live logs.
    fn step(
        &mut self,
        store: &FollowedStore,
        current: &Switch<View>,
        outcome: &mut CatchUpOutcome,
    ) -> Result<Step> {
        let goes_back = self.is_edited && goes_back(&current.hold().layout, &self.layout);
        self.must_replay |= self.torn.is_some() || goes_back;
        let stretches = match self.must_replay {
            true => None,
            false => self.logs.next(&store.folder, self.layout.logs)?,
        };
        match stretches {
            Some(stretches) => self.read_on(store, current, &stretches, outcome),
            None => self.replay(store, current, outcome),
        }
    }

    /// Reads the new part of the logs into the memtables.
    fn read_on(
        &mut self,
        store: &FollowedStore,
        current: &Switch<View>,
        stretches: &[Stretch],
        outcome: &mut CatchUpOutcome,
    ) -> Result<Step> {
        let (view, layout) = (current.hold(), Arc::clone(&self.layout));
        let mut trees = view.trees.clone();
        if self.is_edited {
            trees = self.edited(store, &view, &layout)?;
        }
        // An error would leave entries in memtables, with no number to say how many.
        self.must_replay = true;
        let mut reading = Reading {
            store,
            layout: &layout,
            trees: &mut trees,
            applied: self.applied,
            whole: self.applied,
            held_back: self.manifest.held_back(),
        };
        let sure = in_tables(&layout).max(self.applied);
        let last = reading.read(stretches, sure, &mut self.logs)?;
        // So would entries after the last whole batch.
        self.must_replay = reading.applied != reading.whole;
        self.applied = reading.whole.max(in_tables(&layout));
        self.logs.forget_below(layout.logs.live);
        // After a replay the newest log is not known yet; its edit has counted as news already.
        let newest = last.map(|(number, read)| (number, read.whole)).or(self.newest_log);
        let before = std::mem::replace(&mut self.newest_log, newest);
        outcome.has_news |= before.is_some() && before != newest;
        if self.is_edited || trees.len() != view.trees.len() {
            self.show(store, current, View::new(layout, trees, self.applied), outcome);
        } else if self.applied > view.visible() {
            view.publish(self.applied);
            outcome.has_moved = true;
        }
        let was_stopped = last.is_some_and(|(_, read)| read.was_stopped);
        Ok(if was_stopped { Step::Unexplained } else { Step::Done })
    }

    /// Rebuilds all trees, with the entries of all live logs.
    fn replay(
        &mut self,
        store: &FollowedStore,
        current: &Switch<View>,
        outcome: &mut CatchUpOutcome,
    ) -> Result<Step> {
        let (view, layout) = (current.hold(), Arc::clone(&self.layout));
        let (was_torn, applied) = (self.torn, self.applied);
        (self.must_replay, self.newest_log) = (true, None);
        let Some(trees) = self.replayed_trees(store, &view, &layout)? else {
            return Ok(Step::Unexplained);
        };
        // A missing value may be in tables by now, and its file removed.
        if self.torn.is_some() && self.read_manifest(store, false)? {
            self.must_replay = true;
            return Ok(Step::Overtaken);
        }
        let is_same = self.torn == was_torn && self.applied == applied && !self.is_edited;
        if was_torn.is_none() || !is_same {
            self.show(store, current, View::new(layout, trees, self.applied), outcome);
        }
        Ok(Step::Done)
    }

    /// Makes a view visible to readers.
    fn show(
        &mut self,
        store: &FollowedStore,
        current: &Switch<View>,
        view: View,
        outcome: &mut CatchUpOutcome,
    ) {
        current.store(Arc::new(view));
        (self.is_edited, outcome.has_moved) = (false, true);
        // Forgets the names of value files that nobody holds.
        let values = &store.files.values.store;
        values.free().into_iter().for_each(|file| values.forget(file));
    }

    /// Returns the trees that a layout describes. Trees that it does not change are reused.
    fn edited(&self, store: &FollowedStore, view: &View, layout: &StoreLayout) -> Result<Trees> {
        let mut trees = Trees::new();
        for (&id, keyspace) in &layout.keyspaces {
            let before = view.trees.get(&id).zip(view.layout.keyspaces.get(&id));
            let size = store.size_of(id, keyspace);
            let tree = match before {
                Some((tree, before)) if is_same(before, keyspace) => Arc::clone(tree),
                Some((tree, before)) => {
                    let flushed = (keyspace.tree.last_sequence, self.applied);
                    let memtables = memtables::kept(&tree.current.hold(), size, flushed);
                    store.tree((id, keyspace), memtables, Some((&**tree, before)))?
                }
                None if keyspace.tree.runs.is_empty() => continue,
                None => store.tree_without_memtables((id, keyspace), following(self.applied))?,
            };
            trees.insert(id, tree);
        }
        Ok(trees)
    }

    /// Returns all trees, with the entries of the live logs. None: the manifest does not explain a
    /// group.
    fn replayed_trees(
        &mut self,
        store: &FollowedStore,
        view: &View,
        layout: &StoreLayout,
    ) -> Result<Option<Trees>> {
        let (folder, values) = (&store.folder, &store.files.values.store);
        let (names, end) = all_live(folder, layout.logs, in_tables(layout).max(self.applied))?;
        let size_of = |id: KeyspaceId| store.size_of(id, &layout.keyspaces[&id]);
        let (replayed, torn_at) =
            replay_followed((folder, values), (&names, end), layout, &size_of)?;
        let newest = replayed.last_entry();
        let is_held_back = self.manifest.held_back().is_some_and(|held_back| held_back < newest);
        if replayed.is_ahead || is_held_back {
            return Ok(None);
        }
        let applied = newest.max(in_tables(layout));
        if applied < self.applied {
            let what = format!(
                "it tells of writes up to {}, and the store was followed up to {}: its last change has failed, or it is \
                 another one; try again, or follow it anew",
                applied.0, self.applied.0
            );
            return Err(Error::corrupt(folder.path_of(MANIFEST_NAME), 0, what));
        }
        let trees = trees_with(replayed.trees, store, view, layout, applied)?;
        self.logs = LogTail::default();
        for log in &replayed.logs {
            self.logs.note(log.number, log.counts.bytes.max(HEADER_SIZE as u64));
        }
        self.torn = torn_at.and(replayed.logs.last().map(|newest| newest.number));
        (self.applied, self.must_replay) = (applied, false);
        Ok(Some(trees))
    }
}

/// Returns the trees of a layout, with the memtables that were read back from logs. `applied`: the
/// newest write in them.
fn trees_with(
    mut replayed: BTreeMap<KeyspaceId, Vec<ReplayedMemtable>>,
    store: &FollowedStore,
    view: &View,
    layout: &StoreLayout,
    applied: Sequence,
) -> Result<Trees> {
    let mut trees = Trees::new();
    for (&id, keyspace) in &layout.keyspaces {
        let memtables = replayed.remove(&id).unwrap_or_default();
        let before = view.trees.get(&id).zip(view.layout.keyspaces.get(&id));
        if memtables.is_empty() && keyspace.tree.runs.is_empty() && before.is_none() {
            continue;
        }
        let nothing = || nothing(store.size_of(id, keyspace), following(applied));
        let memtables = Recovered::of(memtables, keyspace.tree.next_flush, nothing);
        let before = before.map(|(tree, before)| (&**tree, before));
        trees.insert(id, store.tree((id, keyspace), memtables, before)?);
    }
    Ok(trees)
}

/// Reads groups into memtables.
struct Reading<'r> {
    store: &'r FollowedStore,
    layout: &'r StoreLayout,
    trees: &'r mut Trees,
    /// The newest write that was seen.
    applied: Sequence,
    /// All batches up to this write are whole.
    whole: Sequence,
    /// An edit that was not read describes writes after this one.
    held_back: Option<Sequence>,
}

impl Reading<'_> {
    /// Reads the new part of the logs, up to a group that is not explained. Returns the last log
    /// that was read.
    fn read(
        &mut self,
        stretches: &[Stretch],
        sure: Sequence,
        logs: &mut LogTail,
    ) -> Result<Option<(u64, Read)>> {
        let (folder, mut last) = (&self.store.folder, None);
        for stretch in stretches {
            if last.is_some() {
                // A log ends, and the next one begins.
                self.trees.iter().for_each(|(id, tree)| self.seal(*id, tree, true));
            }
            let read = stretch.read(folder, sure, &mut |group| self.group(&group))?;
            logs.note(stretch.number(), read.to);
            last = Some((stretch.number(), read));
            if read.was_stopped {
                break;
            }
            self.whole = self.applied;
        }
        Ok(last)
    }

    fn seal(&self, id: KeyspaceId, tree: &OpenTree, log_ends: bool) {
        let size = self.store.size_of(id, &self.layout.keyspaces[&id]);
        memtables::seal_if_full(tree, size, self.applied, log_ends);
    }

    /// Applies the writes of a group that are in neither tables nor memtables. False: only an
    /// unread edit explains the group.
    fn group(&mut self, group: &WalBatch<'_>) -> Result<bool> {
        let is_later = |number: &Sequence| *number < group.first;
        let is_ahead = |id: KeyspaceId| id.0 >= self.layout.next_keyspace;
        if self.held_back.as_ref().is_some_and(is_later)
            || group.writes().any(|(id, _)| is_ahead(id))
        {
            return Ok(false);
        }
        for (id, entry) in group.writes() {
            if entry.sequence <= self.applied {
                continue;
            }
            self.applied = entry.sequence;
            // A key space that does not exist was dropped.
            let Some(keyspace) = self.layout.keyspaces.get(&id) else { continue };
            if entry.sequence <= keyspace.tree.last_sequence {
                continue;
            }
            if !self.trees.contains_key(&id) {
                let made = self.store.tree_without_memtables((id, keyspace), entry.sequence)?;
                self.trees.insert(id, made);
            }
            let tree = &self.trees[&id];
            memtables::insert(tree, entry)?;
            self.seal(id, tree, false);
        }
        // What a log repeats may end within a batch, which continues in the next group.
        if !group.repeats {
            self.whole = self.applied;
        }
        Ok(true)
    }
}

fn following(last: Sequence) -> Sequence {
    Sequence(last.0 + 1)
}

/// Returns a number up to which all writes are in tables or in logs that are needed.
fn in_tables(layout: &StoreLayout) -> Sequence {
    layout.last_sequence().max(layout.logs.unlogged)
}

fn is_same(one: &KeyspaceLayout, other: &KeyspaceLayout) -> bool {
    let same_tree = Arc::ptr_eq(&one.tree, &other.tree) || one.tree == other.tree;
    same_tree && one.record.options == other.record.options
}

/// Whether an edit that was read has failed after all, so that the next manifest may lack it.
fn goes_back(before: &StoreLayout, after: &StoreLayout) -> bool {
    let has_less = |(id, keyspace): (&KeyspaceId, &KeyspaceLayout)| {
        let then = after.tree(*id);
        then.is_some_and(|then| then.last_sequence < keyspace.tree.last_sequence)
    };
    after.logs.live < before.logs.live
        || after.logs.unlogged != before.logs.unlogged
        || before.keyspaces.iter().any(has_less)
}

/// Whether a file was missing, or not as it should be. A later edit may explain that.
fn may_be_gone(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => source.kind() == ErrorKind::NotFound,
        Error::Gone { .. } => true,
        error => error.tells_of_damage(),
    }
}
