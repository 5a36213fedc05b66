//! The open trees of a store, as its writer knows them.
//! ```text
//! batch   default: a b    key space 3: c    key space 5: d   -->  the engines that it writes into
//! log     has failed                                         -->  every engine: its memtable
//! edit    has failed: a drop, a new name, a bulk load        -->  undone before the next write,
//!                                                                 or when the store is closed
//! ```
//! Invariant: a tree is registered from before its first write until its key space is dropped or
//! the store is closed.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::entries::batch::Batch;
use crate::entries::entry::{Entry, Kind, Sequence};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::Memtable;
use crate::entries::value_ref::ref_in;
use crate::error::{Error, Result};
use crate::files::wal::NumberedWrite;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, Pinned, Weak, lock};
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;
use crate::write::engine::Engine;

/// Size of the cache of recently used trees.
const RECENT: usize = 16;

/// The registered trees: all but the default one, which may be registered too.
#[derive(Default)]
pub(crate) struct Trees {
    known: Mutex<Known>,
    /// The manifest may contain a failed edit: a drop, a new name, a bulk load. The next opening
    /// could make the edit take effect, and remove or hide what was written after it.
    is_in_doubt: AtomicBool,
}

#[derive(Default)]
struct Known {
    all: BTreeMap<KeyspaceId, Weak<Engine>>,
    /// A cache of trees, each at a place that its number determines.
    recent: [Option<(KeyspaceId, Weak<Engine>)>; RECENT],
}

impl Known {
    fn get(&mut self, keyspace: KeyspaceId) -> Option<&Weak<Engine>> {
        let place = &mut self.recent[keyspace.0 as usize % RECENT];
        if place.as_ref().is_none_or(|(recent, _)| *recent != keyspace) {
            *place = self.all.get(&keyspace).map(|engine| (keyspace, Weak::clone(engine)));
        }
        place.as_ref().map(|(_, engine)| engine)
    }

    fn forget_recent(&mut self, keyspace: KeyspaceId) {
        let place = &mut self.recent[keyspace.0 as usize % RECENT];
        place.take_if(|(recent, _)| *recent == keyspace);
    }
}

impl Trees {
    pub(crate) fn add(&self, engine: &Arc<Engine>) {
        let mut known = lock(&self.known);
        known.forget_recent(engine.keyspace);
        known.all.insert(engine.keyspace, Arc::downgrade(engine));
    }

    pub(crate) fn remove(&self, keyspace: KeyspaceId) {
        let mut known = lock(&self.known);
        known.forget_recent(keyspace);
        known.all.remove(&keyspace);
    }

    pub(super) fn get(&self, keyspace: KeyspaceId) -> Option<Arc<Engine>> {
        lock(&self.known).get(keyspace)?.upgrade()
    }

    /// Returns the tree of a key space. `main`: the default tree.
    pub(crate) fn of(&self, main: &Engine, keyspace: KeyspaceId) -> Result<Arc<OpenTree>> {
        match keyspace == main.keyspace {
            true => Ok(Arc::clone(&main.tree)),
            false => self.find(keyspace).map(|engine| Arc::clone(&engine.tree)),
        }
    }

    fn find(&self, keyspace: KeyspaceId) -> Result<Arc<Engine>> {
        let dropped = || Error::KeyspaceDropped { name: format!("number {}", keyspace.0) };
        self.get(keyspace).ok_or_else(dropped)
    }

    /// Notes that an edit has failed which no write may follow. Requires: the caller is the writer.
    pub(crate) fn doubt(&self) {
        self.is_in_doubt.store(true, Ordering::Relaxed);
    }

    /// Removes failed edits from the manifest. Requires: the caller is the writer.
    ///
    /// # Errors
    /// `Io`: the manifest may still contain one.
    #[inline]
    pub(crate) fn make_certain(&self, main: &Engine) -> Result<()> {
        if self.is_in_doubt.load(Ordering::Relaxed) { self.undo(main) } else { Ok(()) }
    }

    #[cold]
    fn undo(&self, main: &Engine) -> Result<()> {
        let mut manifest = main.manifest();
        if !manifest.is_certain() {
            manifest.keep()?;
        }
        self.is_in_doubt.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Calls `f` for each tree with entries in its active memtable. `own`: a tree, registered or
    /// not.
    fn each_active(&self, own: &Engine, mut f: impl FnMut(&Engine)) {
        for keyspace in own.logs.active() {
            match keyspace == own.keyspace {
                true => f(own),
                false => self.get(keyspace).into_iter().for_each(|engine| f(&engine)),
            }
        }
    }

    /// Returns the memtables whose entries are only in logs. `own`: as in `each_active`.
    pub(super) fn active_memtables(&self, own: &Engine) -> Vec<(KeyspaceId, Arc<Memtable>)> {
        let mut memtables = Vec::new();
        self.each_active(own, |engine| {
            let memtable = Arc::clone(&engine.current.pin().active.memtable);
            if !memtable.is_empty() {
                memtables.push((engine.keyspace, memtable));
            }
        });
        memtables
    }

    /// Returns those of these trees that are registered and have entries in their active memtables.
    pub(super) fn active_among(&self, keyspaces: Vec<KeyspaceId>) -> Vec<Arc<Engine>> {
        let is_active = |engine: &Arc<Engine>| !engine.current.pin().active.memtable.is_empty();
        keyspaces.into_iter().filter_map(|it| self.get(it)).filter(is_active).collect()
    }

    /// Records that the newest log has all entries of active memtables.
    pub(super) fn move_to_newest(&self, own: &Engine) {
        self.each_active(own, |engine| {
            engine.current.pin().active.move_to_newest(&engine.logs, engine.keyspace);
        });
    }
}

/// A tree other than the default one, and what a group writes into it.
pub(super) struct Touch {
    engine: Arc<Engine>,
    tally: Tally,
}

/// The trees that a group of batches writes into.
pub(super) struct Touched<'e> {
    main: &'e Engine,
    of_main: Tally,
    /// Ordered by key space number.
    others: Vec<Touch>,
    /// Whether some of them have no log.
    some_unlogged: bool,
}

impl<'e> Touched<'e> {
    /// Returns an empty set. `main`: the default tree. `room`: memory to reuse.
    pub(super) fn new(main: &'e Engine, room: Vec<Touch>) -> Self {
        Touched { main, of_main: Tally::default(), others: room, some_unlogged: false }
    }

    /// Returns the default tree's engine.
    pub(super) fn main(&self) -> &'e Engine {
        self.main
    }

    /// Returns the memory, to be reused for the next group.
    pub(super) fn into_room(self) -> Vec<Touch> {
        let mut room = self.others;
        room.clear();
        room
    }

    /// Looks up the trees that a batch writes into.
    ///
    /// # Errors
    /// `KeyspaceDropped`: one of them no longer exists.
    pub(super) fn find(&mut self, trees: &Trees, batch: &Batch) -> Result<()> {
        match batch.only_keyspace() {
            Some(KeyspaceId::DEFAULT) => Ok(()),
            Some(only) => self.find_one(trees, only),
            None => batch.other_keyspaces().try_for_each(|other| self.find_one(trees, other)),
        }
    }

    #[inline]
    fn find_one(&mut self, trees: &Trees, keyspace: KeyspaceId) -> Result<()> {
        if let Err(place) = self.place_of(keyspace) {
            let (engine, tally) = (trees.find(keyspace)?, Tally::default());
            self.others.insert(place, Touch { engine, tally });
        }
        Ok(())
    }

    fn place_of(&self, keyspace: KeyspaceId) -> std::result::Result<usize, usize> {
        self.others.binary_search_by_key(&keyspace, |touch| touch.engine.keyspace)
    }

    /// Counts the writes of a batch. Requires: its trees were looked up.
    pub(super) fn count(&mut self, batch: &Batch) {
        if let Some(only) = batch.only_keyspace() {
            return self.give(only, batch.len() as u64, batch.size_bytes());
        }
        for (keyspace, _, key, value) in batch.logged() {
            self.give(keyspace, 1, key.len() + value.len());
        }
    }

    fn give(&mut self, keyspace: KeyspaceId, writes: u64, bytes: usize) {
        let (has_log, tally) = match self.place_of(keyspace) {
            Ok(place) => {
                let Touch { engine, tally } = &mut self.others[place];
                (engine.has_log(), tally)
            }
            Err(_) => (self.main.has_log(), &mut self.of_main),
        };
        tally.writes += writes;
        tally.bytes += bytes;
        self.some_unlogged |= !has_log;
    }

    /// Whether some of them have no log.
    pub(super) fn some_unlogged(&self) -> bool {
        self.some_unlogged
    }

    /// Returns the sequence number of the first write that the log takes, and the number of such
    /// writes. None: it takes none.
    pub(super) fn logged<'w>(
        &self,
        writes: impl Iterator<Item = NumberedWrite<'w>>,
        (first, count): (Sequence, usize),
    ) -> Option<(Sequence, usize)> {
        if !self.some_unlogged {
            return Some((first, count));
        }
        let mut logged = writes.filter(|write| self.is_logged(write));
        let (_, first) = logged.next()?;
        Some((Sequence(first), 1 + logged.count()))
    }

    /// Whether the log takes a write.
    #[inline]
    pub(super) fn is_logged(&self, ((keyspace, ..), _): &NumberedWrite<'_>) -> bool {
        !self.some_unlogged || self.engine_of(*keyspace).has_log()
    }

    /// Returns the engine of a key space. Requires: the group writes into it.
    fn engine_of(&self, keyspace: KeyspaceId) -> &Engine {
        self.place_of(keyspace).map_or(self.main, |place| &self.others[place].engine)
    }

    /// Iterates over the trees that the group writes into.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Engine, Tally)> {
        let others = self.others.iter().map(|touch| (&*touch.engine, touch.tally));
        let all = std::iter::once((self.main, self.of_main)).chain(others);
        all.filter(|(_, tally)| tally.writes > 0)
    }

    /// Prefetches the memory that inserting a write will touch.
    pub(super) fn prefetch(&self, ((keyspace, _, key, _), _): NumberedWrite<'_>) {
        self.engine_of(keyspace).current.pin().active.memtable.prefetch_insert(key);
    }

    /// Inserts writes, with their sequence numbers, into memtables.
    pub(super) fn insert<'w>(&self, writes: impl Iterator<Item = NumberedWrite<'w>>) {
        let mut current: Option<Filling<'_, 'w>> = None;
        for ((keyspace, kind, key, value), sequence) in writes {
            let filling = match &mut current {
                Some(filling) if filling.engine.keyspace == keyspace => filling,
                // Replacing the previous filling drops it, which counts its memory.
                other => {
                    other.iter_mut().for_each(Filling::put_taken);
                    other.insert(self.filling(keyspace))
                }
            };
            if kind.is_apart() {
                filling.hold_value(kind, value);
            }
            filling.take(Entry { key, sequence: Sequence(sequence), kind, value });
        }
        current.iter_mut().for_each(Filling::put_taken);
    }

    /// Returns the memtable that takes writes of a key space. Requires: the group writes into it.
    fn filling<'w>(&self, keyspace: KeyspaceId) -> Filling<'_, 'w> {
        let engine = self.engine_of(keyspace);
        let now = engine.current.pin();
        if engine.has_log() {
            now.active.note_first_log(&engine.logs, engine.keyspace);
        }
        Filling { engine, now, taken: SmallVec::new() }
    }
}

/// Entries that are inserted into a memtable together.
const TOGETHER: usize = 16;

/// A memtable that is being filled. Dropping this counts the memory that the memtable takes.
struct Filling<'e, 'w> {
    engine: &'e Engine,
    /// The version whose active memtable it is.
    now: Pinned<Version>,
    /// Entries that are not yet inserted.
    taken: SmallVec<[Entry<'w>; TOGETHER]>,
}

impl<'w> Filling<'_, 'w> {
    #[inline]
    fn take(&mut self, entry: Entry<'w>) {
        self.taken.push(entry);
        if self.taken.len() == TOGETHER {
            self.put_taken();
        }
    }

    fn put_taken(&mut self) {
        self.now.active.memtable.insert_all(&self.taken);
        self.taken.clear();
    }

    /// Makes the memtable hold the file of a value to which its next entry refers. Requires: the
    /// writer of the value holds the file meanwhile.
    #[cold]
    fn hold_value(&self, kind: Kind, stored: &[u8]) {
        let at = ref_in(kind, stored).and_then(std::result::Result::ok);
        let at = at.expect("a write has sound references");
        let file = self.engine.table_files.values.store.held(at.file);
        let file = file.expect("who puts a value holds its file");
        self.now.active.values.hold(&file, &at);
    }
}

impl Drop for Filling<'_, '_> {
    fn drop(&mut self) {
        if let Some(memory) = self.engine.memory() {
            memory.note_active(self.now.active.memtable.size_bytes());
        }
    }
}

/// The number and size of the writes that a group makes into a tree.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) writes: u64,
    pub(super) bytes: usize,
}
