//! What all handles of a store share, whatever key space they are of.
//! ```text
//! Db, Keyspace, Transaction, ... --> Owner --> the trees that are open; the last one closes them
//! ```
//! Invariant: a store is closed once: by a call, or when its owner goes.

use crate::db::single_keys;
use crate::entries::entry::Sequence;
use crate::error::{Error, Result};
use crate::sync::Arc;
use crate::write::conflicts::Write;
use crate::write::engine::{Engine, EngineUse};
use crate::write::keyspaces::Keyspaces;

/// What all handles of a store share: it closes the store.
pub(crate) struct Owner {
    /// Of the default key space.
    engine: Arc<Engine>,
    pub(super) keyspaces: Keyspaces,
}

impl Owner {
    pub(super) fn new(engine: &Arc<Engine>, keyspaces: Keyspaces) -> Self {
        Owner { engine: Arc::clone(engine), keyspaces }
    }

    /// The trees that are open, the default one first.
    pub(crate) fn engines(&self) -> Vec<EngineUse> {
        std::iter::once(self.engine.used()).chain(self.keyspaces.used()).collect()
    }

    pub(super) fn each(&self, mut f: impl FnMut(&Arc<Engine>) -> Result<()>) -> Result<()> {
        self.engines().iter().try_for_each(|engine| f(engine))
    }

    /// Gives the number of the last write.
    pub(crate) fn write(&self, mut write: Write, sync: bool) -> Result<Sequence> {
        let engine = &self.engine;
        write.batch.check()?;
        write.batch.start_lifetimes(&*engine.env.clock);
        // In a child the locks of writers may be held for ever.
        engine.life().check()?;
        for (keyspace, key) in write.batch.merged_keys() {
            if engine.commit.trees.of(engine, keyspace)?.merge_operator.get().is_none() {
                let path = engine.table_files.folder.path().to_path_buf();
                let (keyspace, key) = (keyspace.0, key.to_vec());
                return Err(Error::NoMergeOperator { path, keyspace, key });
            }
        }
        let (commit, clock) = (&engine.commit, engine.timing());
        let expected = write.batch.take_expected();
        engine.counters.batches.time(clock, || match expected.is_empty() {
            true => commit.write_if(engine, &mut write, sync),
            false => single_keys::write_as_expected(engine, &write, &expected, sync),
        })
    }

    pub(super) fn close(&self) -> Result<()> {
        crate::write::closing::close(&self.engine, &self.keyspaces)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.engine.life().is_forked() {
            // What it is made of may be locked for ever, by threads that are not in this process.
            std::mem::forget(Arc::clone(&self.engine));
            return;
        }
        let _ = self.close();
    }
}
