//! The open trees of a store, as its writer knows them.
//! ```text
//! batch   default: a b    key space 3: c    key space 5: d   -->  the engines that it touches
//! log     has failed                                         -->  every engine: what is in memory
//! ```
//! Invariant: a tree is known from before its first write until its key space is dropped or the
//! store is closed.

use std::collections::BTreeMap;

use crate::entries::batch::Batch;
use crate::entries::entry::Sequence;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::Memtable;
use crate::error::{Error, Result};
use crate::files::wal::LoggedWrite;
use crate::sync::{Arc, Mutex, Weak, lock};
use crate::tree::open_tree::OpenTree;
use crate::write::engine::Engine;

/// All but the default one, and that too where it has said so.
#[derive(Default)]
pub(crate) struct Trees(Mutex<BTreeMap<KeyspaceId, Weak<Engine>>>);

impl Trees {
    pub(crate) fn add(&self, engine: &Arc<Engine>) {
        lock(&self.0).insert(engine.keyspace, Arc::downgrade(engine));
    }

    pub(crate) fn remove(&self, keyspace: KeyspaceId) {
        lock(&self.0).remove(&keyspace);
    }

    fn get(&self, keyspace: KeyspaceId) -> Option<Arc<Engine>> {
        lock(&self.0).get(&keyspace)?.upgrade()
    }

    /// Fails if a key space that a batch writes into is not there any more.
    pub(super) fn check(&self, batch: &Batch) -> Result<()> {
        batch.other_keyspaces().try_for_each(|keyspace| self.find(keyspace).map(drop))
    }

    /// The tree of a key space. `main`: the default one.
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

    /// Those with entries in active memtables. `own`: a tree, known or not.
    fn each_active(&self, own: &Engine, mut f: impl FnMut(&Engine)) {
        for keyspace in own.logs.active() {
            match keyspace == own.keyspace {
                true => f(own),
                false => self.get(keyspace).into_iter().for_each(|engine| f(&engine)),
            }
        }
    }

    /// The memtables whose entries are in logs alone. `own`: as above.
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

    /// Those that are known of these, with entries in active memtables.
    pub(super) fn active_among(&self, keyspaces: Vec<KeyspaceId>) -> Vec<Arc<Engine>> {
        let is_active = |engine: &Arc<Engine>| !engine.current.pin().active.memtable.is_empty();
        keyspaces.into_iter().filter_map(|it| self.get(it)).filter(is_active).collect()
    }

    /// The newest log has all entries of active memtables.
    pub(super) fn move_to_newest(&self, own: &Engine) {
        self.each_active(own, |engine| {
            engine.current.pin().active.move_to_newest(&engine.logs, engine.keyspace);
        });
    }

    /// The trees that batches write into. `main`: the default one.
    ///
    /// # Errors
    /// `KeyspaceDropped`: one of them is not there any more.
    pub(super) fn touched<'e>(&self, main: &'e Engine, batches: &[&Batch]) -> Result<Touched<'e>> {
        let mut others: Vec<Arc<Engine>> = Vec::new();
        for keyspace in batches.iter().flat_map(|batch| batch.other_keyspaces()) {
            if let Err(place) = others.binary_search_by_key(&keyspace, |engine| engine.keyspace) {
                others.insert(place, self.find(keyspace)?);
            }
        }
        let writes_main = |batch: &&Batch| batch.touches_default();
        let main_is_written = others.is_empty() || batches.iter().any(writes_main);
        Ok(Touched { main, main_is_written, others })
    }
}

/// The trees that a group of batches writes into.
pub(super) struct Touched<'e> {
    main: &'e Engine,
    main_is_written: bool,
    /// By number.
    others: Vec<Arc<Engine>>,
}

impl Touched<'_> {
    /// Each of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Engine> {
        let main = self.main_is_written.then_some(self.main);
        main.into_iter().chain(self.others.iter().map(|engine| &**engine))
    }

    /// How much each of them is given, in the same order.
    pub(super) fn tallies(&self, batches: &[&Batch]) -> Vec<Tally> {
        if self.others.is_empty() {
            let writes = batches.iter().map(|batch| batch.len() as u64).sum();
            return vec![Tally { writes, bytes: batches.iter().map(|it| it.size_bytes()).sum() }];
        }
        let mut tallies: BTreeMap<KeyspaceId, Tally> = BTreeMap::new();
        for (keyspace, _, key, value) in batches.iter().flat_map(|batch| batch.logged()) {
            let tally = tallies.entry(keyspace).or_default();
            tally.writes += 1;
            tally.bytes += key.len() + value.len();
        }
        self.iter().map(|engine| tallies.remove(&engine.keyspace).unwrap_or_default()).collect()
    }

    /// Puts writes, with their sequence numbers, into memtables.
    pub(super) fn insert<'w>(&self, writes: impl Iterator<Item = (LoggedWrite<'w>, u64)>) {
        let mut current: Option<(KeyspaceId, Arc<Memtable>)> = None;
        for ((keyspace, kind, key, value), sequence) in writes {
            let (_, memtable) = match &mut current {
                Some(current) if current.0 == keyspace => current,
                other => other.insert((keyspace, self.memtable(keyspace))),
            };
            memtable.insert(key, Sequence(sequence), kind, value);
        }
        for engine in self.iter() {
            if let Some(memory) = engine.memory() {
                memory.note_active(engine.current.pin().active.memtable.size_bytes());
            }
        }
    }

    /// The memtable that takes writes of a key space. Requires: it is one of them.
    fn memtable(&self, keyspace: KeyspaceId) -> Arc<Memtable> {
        let place = self.others.binary_search_by_key(&keyspace, |engine| engine.keyspace);
        let engine = place.map_or(self.main, |place| &*self.others[place]);
        let now = engine.current.pin();
        now.active.note_first_log(&engine.logs, engine.keyspace);
        Arc::clone(&now.active.memtable)
    }
}

/// What a tree is given by a group.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) writes: u64,
    pub(super) bytes: usize,
}
