//! How a follower moves on.
//! ```text
//! MANIFEST   new edits --> layout --> tables that are new, and what the guard lacks of them
//! logs       what the manifest as it was read names: new groups --> memtables
//! both       --> readers: a greater number, or another view
//! ```
//! The manifest is read first. Whatever tables have was in logs before, and a log is removed only
//! when an edit tells so. So with the logs that one prefix of the edits names nothing is missing,
//! whichever prefix it is, if all of its files are there. If one is gone, a later edit tells why:
//! then the manifest is read again.
//!
//! Invariants: nothing is written. A view is the store as it was at its number: batches are in it
//! as a whole, and no write that was refused. Numbers only grow.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::files::log_replay::replay_followed;
use crate::files::log_tail::{LogTail, all_live};
use crate::files::manifest::MANIFEST_NAME;
use crate::files::manifest_tail::ManifestTail;
use crate::files::wal::{HEADER_SIZE, WalBatch};
use crate::follow::memtables;
use crate::follow::view::{Ground, View};
use crate::plan::store_layout::{KeyspaceLayout, StoreLayout};
use crate::sync::{Arc, Switch};
use crate::tree::open_tree::OpenTree;
use crate::tree::opening::{Recovered, nothing};

type Trees = BTreeMap<KeyspaceId, Arc<OpenTree>>;

/// How far a follower has come.
pub(super) struct Progress {
    manifest: ManifestTail,
    /// What it tells.
    layout: Arc<StoreLayout>,
    pub(super) logs: LogTail,
    /// All writes up to this one are in the trees of the present view.
    applied: Sequence,
    /// The newest log, and how many bytes it had.
    seen: (u64, u64),
    /// Whether the manifest tells more than the present view has.
    is_edited: bool,
    /// Whether the memtables are to be made anew, out of all live logs.
    is_lost: bool,
    /// A log whose next group refers to a value that a crash has taken. Its owner goes on in this
    /// one, made anew without the group, or in another one: all logs are read at each look.
    torn: Option<u64>,
}

/// What a step has come to.
enum Step {
    /// All that the manifest tells of was read.
    Done,
    /// There is a group that it does not explain.
    Unexplained,
    /// It has come to tell more meanwhile.
    Overtaken,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Readers see more than before.
    pub(super) has_moved: bool,
    /// The writer was at work: there is something new, even if it does not count yet.
    pub(super) has_news: bool,
}

impl Progress {
    /// Nothing was read yet but the manifest.
    pub(super) fn new(manifest: ManifestTail) -> Self {
        let (logs, applied, seen) = (LogTail::default(), Sequence(0), (0, 0));
        let layout = Arc::new(manifest.layout().clone());
        Progress {
            manifest,
            layout,
            logs,
            applied,
            seen,
            is_edited: true,
            is_lost: true,
            torn: None,
        }
    }

    /// Moves the view on as far as there is something.
    pub(super) fn catch_up(&mut self, ground: &Ground, current: &Switch<View>) -> Result<Found> {
        let mut found = Found::default();
        self.read_manifest(ground, false)?;
        found.has_news |= self.is_edited;
        loop {
            let was_lost = self.is_lost;
            match self.step(ground, current, &mut found) {
                Ok(Step::Done) => return Ok(found),
                Ok(Step::Overtaken) => {}
                // There is a group that only a later edit explains.
                Ok(Step::Unexplained) => {
                    if !self.find_reason(ground)? {
                        return Ok(found);
                    }
                }
                Err(error) if may_be_gone(&error) => {
                    if !self.find_reason(ground)? {
                        if was_lost {
                            return Err(error);
                        }
                        // Once more, by all live logs: perhaps the newest one ends here.
                        self.is_lost = true;
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the manifest for what explains something that was seen, and so proves an edit that
    /// would not count yet: one that was held back, or else one that this look finds. False: there
    /// is none.
    fn find_reason(&mut self, ground: &Ground) -> Result<bool> {
        Ok(self.read_manifest(ground, true)? || self.read_manifest(ground, true)?)
    }

    /// False: it tells nothing new.
    fn read_manifest(&mut self, ground: &Ground, proved: bool) -> Result<bool> {
        let is_new = self.manifest.follow(&ground.folder, proved)?;
        if is_new {
            self.layout = Arc::new(self.manifest.layout().clone());
            self.is_edited = true;
        }
        Ok(is_new)
    }

    /// Reads what the manifest as it was read tells of.
    fn step(&mut self, ground: &Ground, current: &Switch<View>, found: &mut Found) -> Result<Step> {
        let (view, layout) = (current.hold(), Arc::clone(&self.layout));
        let sure = in_tables(&layout).max(self.applied);
        let was_torn = self.torn;
        self.is_lost |= was_torn.is_some() || self.is_edited && goes_back(&view.layout, &layout);
        let stretches = match self.is_lost {
            true => None,
            false => self.logs.next(&ground.folder, layout.logs)?,
        };
        let Some(stretches) = stretches else {
            self.seen = (0, 0);
            let before = self.applied;
            let Some(trees) = self.read_anew(ground, &view, &layout, sure)? else {
                return Ok(Step::Unexplained);
            };
            // A value that is not there may be in tables by now, and its file removed.
            if self.torn.is_some() && self.read_manifest(ground, false)? {
                self.is_lost = true;
                return Ok(Step::Overtaken);
            }
            let is_same = self.torn == was_torn && self.applied == before && !self.is_edited;
            if was_torn.is_some() && is_same {
                return Ok(Step::Done);
            }
            self.show(ground, current, View::new(layout, trees, self.applied), found);
            return Ok(Step::Done);
        };
        let mut trees = view.trees.clone();
        if self.is_edited {
            trees = self.edited(ground, &view, &layout)?;
        }
        // What is in memtables by then, and is told of nowhere, is read anew after an error.
        self.is_lost = true;
        let mut reading = Reading {
            ground,
            layout: &layout,
            trees: &mut trees,
            applied: self.applied,
            whole: self.applied,
            held_back: self.manifest.held_back(),
        };
        let (mut was_stopped, mut seen) = (false, self.seen);
        for (place, stretch) in stretches.iter().enumerate() {
            reading.log(place > 0);
            let read = stretch.read(&ground.folder, sure, &mut |group| reading.group(&group))?;
            self.logs.note(stretch.number(), read.to);
            (was_stopped, seen) = (read.was_stopped, (stretch.number(), read.whole));
            if was_stopped {
                break;
            }
            reading.whole = reading.applied;
        }
        // It is new when all logs were read anew, and told by the edit that has led to that.
        let before = std::mem::replace(&mut self.seen, seen);
        found.has_news |= before != seen && before != (0, 0);
        // What is in memtables behind the last whole batch is not known by its number.
        let is_lost = reading.applied != reading.whole;
        let applied = reading.whole.max(in_tables(&layout));
        self.logs.forget_below(layout.logs.live);
        (self.is_lost, self.applied) = (is_lost, applied);
        let is_other = self.is_edited || trees.len() != view.trees.len();
        if is_other {
            self.show(ground, current, View::new(layout, trees, applied), found);
        } else if applied > view.visible() {
            view.publish(applied);
            found.has_moved = true;
        }
        Ok(if was_stopped { Step::Unexplained } else { Step::Done })
    }

    /// Lets readers see a view.
    fn show(&mut self, ground: &Ground, current: &Switch<View>, view: View, found: &mut Found) {
        current.store(Arc::new(view));
        (self.is_edited, found.has_moved) = (false, true);
        // Of value files that nobody holds any more no name is kept.
        let values = &ground.files.values.store;
        values.free().into_iter().for_each(|file| values.forget(file));
    }

    /// The trees as the layout has them. Those that it tells the same of as before stay.
    fn edited(&self, ground: &Ground, view: &View, layout: &StoreLayout) -> Result<Trees> {
        let mut trees = Trees::new();
        for (&id, keyspace) in &layout.keyspaces {
            let before = view.trees.get(&id).zip(view.layout.keyspaces.get(&id));
            let size = ground.size_of(id, keyspace);
            let tree = match before {
                Some((tree, before)) if is_same(before, keyspace) => Arc::clone(tree),
                Some((tree, before)) => {
                    let flushed = (keyspace.tree.last_sequence, self.applied);
                    let memtables = memtables::kept(&tree.current.hold(), size, flushed);
                    ground.tree((id, keyspace), memtables, Some((&**tree, before)))?
                }
                None if keyspace.tree.runs.is_empty() => continue,
                None => ground.tree_without_memtables((id, keyspace), following(self.applied))?,
            };
            trees.insert(id, tree);
        }
        Ok(trees)
    }

    /// All trees, with what the live logs have. None: there is a group that the manifest does not
    /// explain.
    fn read_anew(
        &mut self,
        ground: &Ground,
        view: &View,
        layout: &StoreLayout,
        sure: Sequence,
    ) -> Result<Option<Trees>> {
        self.is_lost = true;
        let (folder, values) = (&ground.folder, &ground.files.values.store);
        let (names, end) = all_live(folder, layout.logs, sure)?;
        let size_of = |id: KeyspaceId| ground.size_of(id, &layout.keyspaces[&id]);
        let replayed = replay_followed((folder, values), (&names, end), layout, &size_of)?;
        let (mut replayed, torn_at) = replayed;
        let newest = replayed.last_entry();
        let held_back = self.manifest.held_back();
        if replayed.is_ahead || held_back.is_some_and(|held_back| held_back < newest) {
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
        let mut trees = Trees::new();
        for (&id, keyspace) in &layout.keyspaces {
            let memtables = replayed.trees.remove(&id).unwrap_or_default();
            let before = view.trees.get(&id).zip(view.layout.keyspaces.get(&id));
            if memtables.is_empty() && keyspace.tree.runs.is_empty() && before.is_none() {
                continue;
            }
            let nothing = || nothing(size_of(id), following(applied));
            let memtables = Recovered::of(memtables, keyspace.tree.next_flush, nothing);
            let before = before.map(|(tree, before)| (&**tree, before));
            trees.insert(id, ground.tree((id, keyspace), memtables, before)?);
        }
        self.logs = LogTail::default();
        for log in &replayed.logs {
            self.logs.note(log.number, log.counts.bytes.max(HEADER_SIZE as u64));
        }
        self.torn = torn_at.and(replayed.logs.last().map(|newest| newest.number));
        (self.applied, self.is_lost) = (applied, false);
        Ok(Some(trees))
    }
}

/// Groups on their way into memtables.
struct Reading<'r> {
    ground: &'r Ground,
    layout: &'r StoreLayout,
    trees: &'r mut Trees,
    /// The newest write that was looked at.
    applied: Sequence,
    /// Up to here all batches are whole.
    whole: Sequence,
    /// Writes after this one are told of by an edit that was not read.
    held_back: Option<Sequence>,
}

impl Reading<'_> {
    /// A log begins. `follows`: another one ends.
    fn log(&mut self, follows: bool) {
        if follows {
            self.trees.iter().for_each(|(id, tree)| self.seal(*id, tree, true));
        }
    }

    fn seal(&self, id: KeyspaceId, tree: &OpenTree, log_ends: bool) {
        let size = self.ground.size_of(id, &self.layout.keyspaces[&id]);
        memtables::seal_if_full(tree, size, self.applied, log_ends);
    }

    /// Takes a group, as far as neither tables nor memtables have it. False: an edit that was not
    /// read explains it.
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
            // One that is not there was dropped.
            let Some(keyspace) = self.layout.keyspaces.get(&id) else { continue };
            if entry.sequence <= keyspace.tree.last_sequence {
                continue;
            }
            if !self.trees.contains_key(&id) {
                let made = self.ground.tree_without_memtables((id, keyspace), entry.sequence)?;
                self.trees.insert(id, made);
            }
            let tree = &self.trees[&id];
            memtables::insert(tree, entry)?;
            self.seal(id, tree, false);
        }
        // What a log repeats may end within a batch, which goes on in the next group.
        if !group.repeats {
            self.whole = self.applied;
        }
        Ok(true)
    }
}

fn following(last: Sequence) -> Sequence {
    Sequence(last.0 + 1)
}

/// All writes up to this one are in tables, or in logs that are needed.
fn in_tables(layout: &StoreLayout) -> Sequence {
    layout.last_sequence().max(layout.logs.unlogged)
}

fn is_same(one: &KeyspaceLayout, other: &KeyspaceLayout) -> bool {
    let same_tree = Arc::ptr_eq(&one.tree, &other.tree) || one.tree == other.tree;
    same_tree && one.record.options == other.record.options
}

/// Whether an edit that was read did not go well after all: the next one may lack it.
fn goes_back(before: &StoreLayout, after: &StoreLayout) -> bool {
    let has_less = |(id, keyspace): (&KeyspaceId, &KeyspaceLayout)| {
        let then = after.tree(*id);
        then.is_some_and(|then| then.last_sequence < keyspace.tree.last_sequence)
    };
    after.logs.live < before.logs.live
        || after.logs.unlogged != before.logs.unlogged
        || before.keyspaces.iter().any(has_less)
}

/// Whether a file was not there, or not as it should be: a later edit may tell why.
fn may_be_gone(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => source.kind() == ErrorKind::NotFound,
        Error::Gone { .. } => true,
        error => error.tells_of_damage(),
    }
}
