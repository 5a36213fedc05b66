//! A store as plain data: the trees of its key spaces, and its logs.
//! ```text
//! key space 0   layout        logs   [.. live) all in tables   [live ..= newest] needed
//! key space 3   layout
//! edit          changes any number of trees, and the logs: all of it, or nothing
//! ```
//! Invariants: the default key space always exists. A file number is used once, whichever tree the
//! file belongs to. No I/O here.

use std::collections::{BTreeMap, HashSet};

use crate::cost::step;
use crate::entries::entry::{NUMBER_MAX, Sequence};
use crate::entries::keyspace_id::KeyspaceId;
use crate::plan::layout::{Edit, Layout};
use crate::sync::Arc;

/// Which logs are needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogNumbers {
    /// All entries of logs below this one are in tables.
    pub(crate) live: u64,
    /// The newest recorded log. It exists, unless it is below `live`. 0: no log was recorded.
    pub(crate) newest: u64,
    /// The newest write that bypassed the logs. Change feeds do not cross it.
    pub(crate) unlogged: Sequence,
}

impl LogNumbers {
    /// Returns the newest log that must exist.
    pub(crate) fn needed(self) -> Option<u64> {
        Some(self.newest).filter(|&wal| wal > 0 && wal >= self.live)
    }
}

/// What the manifest knows of a key space, besides its tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyspaceRecord {
    pub(crate) name: String,
    /// Options that were set, as texts by name.
    pub(crate) options: BTreeMap<String, String>,
}

impl KeyspaceRecord {
    /// Whether the next opening that does not say otherwise has a log for its writes.
    pub(crate) fn has_log(&self) -> bool {
        self.options.get("log").is_none_or(|text| text != "false")
    }
}

/// A key space as plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyspaceLayout {
    pub(crate) record: Arc<KeyspaceRecord>,
    pub(crate) tree: Arc<Layout>,
}

/// The store as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreLayout {
    pub(crate) keyspaces: BTreeMap<KeyspaceId, KeyspaceLayout>,
    names: BTreeMap<String, KeyspaceId>,
    /// No key space has, or ever had, this number or a larger one.
    pub(crate) next_keyspace: u32,
    pub(crate) logs: LogNumbers,
    /// Numbers of dropped key spaces, and others that are not given.
    gone: GoneNumbers,
}

/// Upper bounds of the file numbers and sequence numbers of dropped key spaces, and of those that a
/// restored store leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GoneNumbers {
    pub(crate) next_file: u64,
    pub(crate) last_sequence: Sequence,
}

impl GoneNumbers {
    /// Returns bounds of both.
    #[must_use]
    pub(crate) fn max(self, other: GoneNumbers) -> Self {
        GoneNumbers {
            next_file: self.next_file.max(other.next_file),
            last_sequence: self.last_sequence.max(other.last_sequence),
        }
    }
}

impl Default for StoreLayout {
    fn default() -> Self {
        StoreLayout::of(Layout::default(), LogNumbers::default())
    }
}

/// A change to the existence or the name of a key space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyspaceChange {
    /// It is created, empty.
    Created {
        name: String,
    },
    Renamed {
        name: String,
    },
    /// It is dropped, with its tree.
    Dropped,
}

impl KeyspaceChange {
    /// Returns the name that the change assigns.
    fn name(&self) -> Option<&String> {
        match self {
            KeyspaceChange::Created { name } | KeyspaceChange::Renamed { name } => Some(name),
            KeyspaceChange::Dropped => None,
        }
    }
}

/// A change of one key space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyspaceEdit {
    pub(crate) change: Option<KeyspaceChange>,
    /// Options that are set from now on, as names and texts.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) tree: Edit,
}

/// A change of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreEdit {
    pub(crate) keyspaces: Vec<(KeyspaceId, KeyspaceEdit)>,
    pub(crate) next_keyspace: Option<u32>,
    /// All entries of logs below this one are in tables.
    pub(crate) live_wal: Option<u64>,
    /// This log was made, and is durable.
    pub(crate) newest_wal: Option<u64>,
    /// Writes up to this one may have bypassed the logs.
    pub(crate) unlogged: Option<Sequence>,
    /// The numbers of key spaces that were dropped before.
    pub(crate) gone: Option<GoneNumbers>,
}

/// The effect of an edit on a layout: the new state of its key spaces, and of the store's numbers.
#[derive(Clone)]
pub(crate) struct StoreChange {
    /// The key spaces that the edit names. Those that `part` lacks are dropped.
    keyspaces: Vec<KeyspaceId>,
    part: StoreLayout,
}

impl StoreChange {
    /// Returns an error if a number is implausibly large.
    pub(crate) fn check_numbers(&self) -> Result<(), &'static str> {
        self.part.check_numbers()
    }
}

impl StoreEdit {
    /// Returns an edit of one tree.
    pub(crate) fn of_tree(keyspace: KeyspaceId, tree: Edit) -> Self {
        let edit = KeyspaceEdit { tree, ..KeyspaceEdit::default() };
        StoreEdit { keyspaces: vec![(keyspace, edit)], ..StoreEdit::default() }
    }

    /// Returns the edits of trees.
    pub(crate) fn trees(&self) -> impl Iterator<Item = (KeyspaceId, &Edit)> {
        self.keyspaces.iter().map(|(keyspace, edit)| (*keyspace, &edit.tree))
    }

    /// Returns the files of the tables that join a tree.
    pub(crate) fn added(&self) -> impl Iterator<Item = u64> + '_ {
        self.trees().flat_map(|(_, edit)| &edit.added).map(|table| table.file)
    }
}

impl StoreLayout {
    /// Returns a store with the default key space alone.
    pub(crate) fn of(tree: Layout, logs: LogNumbers) -> Self {
        let record = KeyspaceRecord { name: DEFAULT_NAME.into(), ..KeyspaceRecord::default() };
        let keyspace = KeyspaceLayout { record: Arc::new(record), tree: Arc::new(tree) };
        let keyspaces = BTreeMap::from([(KeyspaceId::DEFAULT, keyspace)]);
        let names = BTreeMap::from([(DEFAULT_NAME.into(), KeyspaceId::DEFAULT)]);
        StoreLayout { keyspaces, names, next_keyspace: 1, logs, gone: GoneNumbers::default() }
    }

    /// Replaces the tree of a key space. Requires: the key space exists.
    #[must_use]
    pub(crate) fn with(mut self, keyspace: KeyspaceId, tree: Layout) -> Self {
        self.keyspaces.get_mut(&keyspace).expect("it is there").tree = Arc::new(tree);
        self
    }

    /// Never gives numbers below these.
    #[must_use]
    pub(crate) fn leaving_out(mut self, numbers: GoneNumbers) -> Self {
        self.gone = self.gone.max(numbers);
        self
    }

    pub(crate) fn trees(&self) -> impl Iterator<Item = &Arc<Layout>> {
        self.keyspaces.values().inspect(|_| step()).map(|keyspace| &keyspace.tree)
    }

    /// Returns the tree of a key space. None: there is no such key space.
    pub(crate) fn tree(&self, keyspace: KeyspaceId) -> Option<&Arc<Layout>> {
        self.keyspaces.get(&keyspace).map(|keyspace| &keyspace.tree)
    }

    /// Returns the tree of the default key space.
    pub(crate) fn default_tree(&self) -> &Arc<Layout> {
        &self.keyspaces[&KeyspaceId::DEFAULT].tree
    }

    /// Returns the files of all tables.
    pub(crate) fn table_files(&self) -> HashSet<u64> {
        let tables = self.trees().flat_map(|tree| &tree.runs).flat_map(|run| &run.tables);
        tables.map(|table| table.file).collect()
    }

    /// Returns the files of all filter images.
    pub(crate) fn image_files(&self) -> HashSet<u64> {
        self.trees().flat_map(|tree| &tree.images).map(|image| image.file).collect()
    }

    /// Returns the key space of this name.
    pub(crate) fn named(&self, name: &str) -> Option<KeyspaceId> {
        self.names.get(name).copied()
    }

    /// Returns the least number that is above all files.
    pub(crate) fn next_file(&self) -> u64 {
        let of_trees = self.trees().map(|tree| tree.next_file);
        of_trees.chain([self.gone.next_file]).max().unwrap_or_default()
    }

    /// Returns the greatest sequence number that any table has, or had.
    pub(crate) fn last_sequence(&self) -> Sequence {
        let of_trees = self.trees().map(|tree| tree.last_sequence);
        of_trees.chain([self.gone.last_sequence]).max().unwrap_or_default()
    }

    /// Returns the effect of `edit` on this layout, or an error that says what does not fit. The
    /// cost depends on the key spaces that the edit names, not on the others.
    pub(crate) fn change_by(&self, edit: &StoreEdit) -> Result<StoreChange, &'static str> {
        let mut part = self.part_of(edit);
        for (id, edit) in &edit.keyspaces {
            let Some(keyspace) = part.changed(*id, edit)? else { continue };
            keyspace.tree = Arc::new(keyspace.tree.apply(&edit.tree)?);
        }
        part.follow_numbers(edit);
        Ok(StoreChange { keyspaces: edit.keyspaces.iter().map(|(id, _)| *id).collect(), part })
    }

    /// Returns the key spaces that an edit names, and all names that these have or that the edit
    /// assigns.
    fn part_of(&self, edit: &StoreEdit) -> StoreLayout {
        let there = edit.keyspaces.iter().filter_map(|(id, _)| self.keyspaces.get_key_value(id));
        let keyspaces: BTreeMap<KeyspaceId, KeyspaceLayout> =
            there.map(|(id, keyspace)| (*id, keyspace.clone())).collect();
        let known = |name: &String| self.names.get_key_value(name);
        let given = edit.keyspaces.iter().filter_map(|(_, edit)| edit.change.as_ref()?.name());
        let before = keyspaces.values().map(|keyspace| &keyspace.record.name);
        let names = before.chain(given).filter_map(known).map(|(name, id)| (name.clone(), *id));
        let names = names.collect();
        let StoreLayout { next_keyspace, logs, gone, .. } = *self;
        StoreLayout { keyspaces, names, next_keyspace, logs, gone }
    }

    /// Applies a change. Requires: `change_by` of this layout made it.
    pub(crate) fn make(&mut self, StoreChange { keyspaces, part }: StoreChange) {
        for id in keyspaces {
            let before = self.keyspaces.remove(&id);
            before.map(|keyspace| self.names.remove(&keyspace.record.name));
        }
        let names = part.keyspaces.iter().map(|(id, it)| (it.record.name.clone(), *id));
        self.names.extend(names);
        self.keyspaces.extend(part.keyspaces);
        (self.next_keyspace, self.logs, self.gone) = (part.next_keyspace, part.logs, part.gone);
    }

    /// Returns the layout after `edit`. Consumes the layout and does not check the tables that the
    /// edit leaves alone, so that many edits are read fast. Requires: [`check`](Self::check)
    /// follows.
    pub(crate) fn followed_by(mut self, edit: &StoreEdit) -> Result<StoreLayout, &'static str> {
        for (id, edit) in &edit.keyspaces {
            let Some(keyspace) = self.changed(*id, edit)? else { continue };
            let tree = Arc::unwrap_or_clone(std::mem::take(&mut keyspace.tree));
            keyspace.tree = Arc::new(tree.followed_by(&edit.tree)?);
        }
        self.follow_numbers(edit);
        Ok(self)
    }

    /// Applies everything but the tree of an edit to a key space. None: the key space was dropped.
    fn changed(
        &mut self,
        id: KeyspaceId,
        edit: &KeyspaceEdit,
    ) -> Result<Option<&mut KeyspaceLayout>, &'static str> {
        let is_there = self.keyspaces.contains_key(&id);
        match &edit.change {
            Some(KeyspaceChange::Created { .. }) if is_there => return Err("a key space twice"),
            Some(KeyspaceChange::Created { name }) => self.create(id, name)?,
            _ if !is_there => return Err("an edit of a key space that is not there"),
            Some(KeyspaceChange::Dropped) if id == KeyspaceId::DEFAULT => {
                return Err("the default key space cannot be dropped");
            }
            Some(KeyspaceChange::Dropped) => {
                let dropped = self.keyspaces.remove(&id);
                dropped.into_iter().for_each(|keyspace| self.forget(&keyspace));
                return Ok(None);
            }
            Some(KeyspaceChange::Renamed { name }) => self.rename(id, name)?,
            None => {}
        }
        let keyspace = self.keyspaces.get_mut(&id).expect("looked at above");
        if !edit.options.is_empty() {
            let record = Arc::make_mut(&mut keyspace.record);
            record.options.extend(edit.options.iter().cloned());
        }
        Ok(Some(keyspace))
    }

    /// Notes the numbers of a dropped key space, and removes its name.
    fn forget(&mut self, KeyspaceLayout { record, tree }: &KeyspaceLayout) {
        self.names.remove(&record.name);
        let Layout { next_file, last_sequence, .. } = **tree;
        self.gone = self.gone.max(GoneNumbers { next_file, last_sequence });
    }

    fn create(&mut self, id: KeyspaceId, name: &str) -> Result<(), &'static str> {
        self.check_name(name)?;
        if id.0 < self.next_keyspace {
            return Err("a key space with the number of an older one");
        }
        let record = KeyspaceRecord { name: name.to_string(), ..KeyspaceRecord::default() };
        let keyspace = KeyspaceLayout { record: Arc::new(record), tree: Arc::default() };
        self.keyspaces.insert(id, keyspace);
        self.names.insert(name.to_string(), id);
        self.next_keyspace = id.0.checked_add(1).ok_or("a key space without a successor")?;
        Ok(())
    }

    fn rename(&mut self, id: KeyspaceId, name: &str) -> Result<(), &'static str> {
        self.check_name(name)?;
        let keyspace = self.keyspaces.get_mut(&id).expect("the caller has looked");
        let before = &mut Arc::make_mut(&mut keyspace.record).name;
        self.names.remove(&std::mem::replace(before, name.to_string()));
        self.names.insert(name.to_string(), id);
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), &'static str> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err("a name of a key space has 1 to 255 bytes");
        }
        if self.named(name).is_some() { Err("two key spaces of one name") } else { Ok(()) }
    }

    fn follow_numbers(&mut self, edit: &StoreEdit) {
        self.next_keyspace = edit.next_keyspace.unwrap_or(self.next_keyspace);
        self.logs.live = edit.live_wal.unwrap_or(self.logs.live);
        self.logs.newest = edit.newest_wal.unwrap_or(self.logs.newest);
        self.logs.unlogged = edit.unlogged.unwrap_or(self.logs.unlogged);
        self.gone = edit.gone.unwrap_or(self.gone);
    }

    /// Returns an error if a number is implausibly large.
    pub(crate) fn check_numbers(&self) -> Result<(), &'static str> {
        let (live, unlogged) = (self.logs.live, self.logs.unlogged.0);
        let numbers = [live, unlogged, self.gone.next_file, self.gone.last_sequence.0];
        if numbers.into_iter().any(|number| number > NUMBER_MAX) {
            return Err("a number beyond all that a store gives");
        }
        self.trees().try_for_each(|layout| layout.check_numbers())
    }

    /// Checks the rules that a layout from disk must obey, or the store could not go on.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        self.check_numbers()?;
        let next_file = self.next_file();
        if self.logs.live > next_file || self.logs.newest > next_file.saturating_sub(1) {
            return Err("a log that was never made");
        }
        if self.keyspaces.keys().any(|id| id.0 >= self.next_keyspace) {
            return Err("a key space that was never made");
        }
        self.trees().try_for_each(|layout| layout.check())?;
        match self.shares_files() {
            true => Err("a file of two key spaces"),
            false => Ok(()),
        }
    }

    fn shares_files(&self) -> bool {
        let mut known = HashSet::new();
        let files = |layout: &Layout| {
            let tables = layout.runs.iter().flat_map(|run| &run.tables).map(|table| table.file);
            let images = layout.images.iter().map(|image| image.file);
            tables.chain(images).collect::<HashSet<u64>>()
        };
        let mut is_known = |layout: &Layout| files(layout).into_iter().any(|it| !known.insert(it));
        self.keyspaces.len() > 1 && self.trees().any(|layout| is_known(layout))
    }

    /// Returns the edit that makes this layout out of an empty one.
    pub(crate) fn as_edit(&self) -> StoreEdit {
        let edit = |(id, keyspace): (&KeyspaceId, &KeyspaceLayout)| {
            let KeyspaceRecord { name, options } = &*keyspace.record;
            let change = match *id {
                KeyspaceId::DEFAULT => None,
                _ => Some(KeyspaceChange::Created { name: name.clone() }),
            };
            let options = options.iter().map(|(name, text)| (name.clone(), text.clone())).collect();
            (*id, KeyspaceEdit { change, options, tree: keyspace.tree.as_edit() })
        };
        StoreEdit {
            keyspaces: self.keyspaces.iter().map(edit).collect(),
            next_keyspace: (self.next_keyspace > 1).then_some(self.next_keyspace),
            live_wal: Some(self.logs.live),
            newest_wal: (self.logs.newest > 0).then_some(self.logs.newest),
            unlogged: Some(self.logs.unlogged).filter(|unlogged| unlogged.0 > 0),
            gone: Some(self.gone).filter(|gone| *gone != GoneNumbers::default()),
        }
    }
}

/// The name of the key space that every store has.
pub(crate) const DEFAULT_NAME: &str = "default";
/// The most bytes in the name of a key space.
pub(crate) const NAME_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::tests::table;

    fn change(id: u32, change: KeyspaceChange) -> StoreEdit {
        let edit = KeyspaceEdit { change: Some(change), ..KeyspaceEdit::default() };
        StoreEdit { keyspaces: vec![(KeyspaceId(id), edit)], ..StoreEdit::default() }
    }

    fn created(id: u32, name: &str) -> StoreEdit {
        change(id, KeyspaceChange::Created { name: name.into() })
    }

    fn renamed(id: u32, name: &str) -> StoreEdit {
        change(id, KeyspaceChange::Renamed { name: name.into() })
    }

    fn dropped(id: u32) -> StoreEdit {
        change(id, KeyspaceChange::Dropped)
    }

    /// An edit that adds a table of this file.
    fn adds(id: u32, file: u64) -> StoreEdit {
        let (next_file, next_flush) = (Some(file + 1), Some(trommel_filters::FlushNumber(2)));
        let added = vec![table(file, file, 0, 0, 1)];
        StoreEdit::of_tree(KeyspaceId(id), Edit { added, next_file, next_flush, ..Edit::default() })
    }

    fn after(edits: &[StoreEdit]) -> Result<StoreLayout, &'static str> {
        let all = edits.iter().try_fold(StoreLayout::default(), |mut store, edit| {
            let change = store.change_by(edit)?;
            store.make(change);
            Ok(store)
        });
        let read = edits.iter().try_fold(StoreLayout::default(), StoreLayout::followed_by);
        assert_eq!(all, read, "{edits:?}");
        let store = all?;
        store.check()?;
        let again = StoreLayout::default().followed_by(&store.as_edit());
        assert_eq!(again.as_ref(), Ok(&store));
        Ok(store)
    }

    #[test]
    fn key_spaces_come_and_go_by_name() {
        let made = [created(1, "events"), created(2, "users"), adds(2, 7), adds(0, 8)];
        let store = after(&made).expect("fits");
        assert_eq!(store.named("users"), Some(KeyspaceId(2)));
        assert_eq!((store.next_keyspace, store.next_file()), (3, 9));
        let store = after(&[&made[..], &[renamed(1, "old"), dropped(2)]].concat()).expect("fits");
        let names = ["default", "events", "old", "users"].map(|name| store.named(name));
        assert_eq!(names, [Some(KeyspaceId(0)), None, Some(KeyspaceId(1)), None]);
        assert_eq!((store.tree(KeyspaceId(2)), store.next_keyspace), (None, 3));
        let anew = after(&[&made[..], &[dropped(2), created(5, "users")]].concat()).expect("fits");
        assert_eq!((anew.named("users"), anew.next_keyspace), (Some(KeyspaceId(5)), 6));
    }

    #[test]
    fn what_options_are_set_is_kept() {
        let set = |text: &str| {
            let options = vec![("bits_per_key".to_string(), text.to_string())];
            let edit = KeyspaceEdit { options, ..KeyspaceEdit::default() };
            StoreEdit { keyspaces: vec![(KeyspaceId::DEFAULT, edit)], ..StoreEdit::default() }
        };
        let store = after(&[set("12"), set("14")]).expect("fits");
        let options = &store.keyspaces[&KeyspaceId::DEFAULT].record.options;
        assert_eq!(options["bits_per_key"], "14");
    }

    #[test]
    fn edits_of_key_spaces_that_do_not_fit_are_refused() {
        let long = "n".repeat(NAME_BYTES_MAX + 1);
        let edits = [
            created(0, "twice"),
            created(1, "default"),
            created(1, ""),
            created(1, &long),
            created(u32::MAX, "the last one"),
            renamed(0, ""),
            renamed(1, "nobody"),
            dropped(0),
            dropped(1),
            adds(1, 7),
        ];
        for edit in edits {
            assert!(after(std::slice::from_ref(&edit)).is_err(), "{edit:?}");
        }
        let made = [created(1, "a"), created(2, "b")];
        let more = [
            created(2, "number"),
            created(3, "a"),
            renamed(1, "b"),
            StoreEdit { next_keyspace: Some(2), ..StoreEdit::default() },
        ];
        for edit in more {
            assert!(after(&[&made[..], std::slice::from_ref(&edit)].concat()).is_err(), "{edit:?}");
        }
        let again = [&made[..], &[dropped(1), created(1, "an old number")]].concat();
        assert!(after(&again).is_err());
        assert_eq!(
            after(&[&made[..], &[adds(1, 7), adds(2, 7)]].concat()),
            Err("a file of two key spaces")
        );
    }
}
