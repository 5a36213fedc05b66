//! What all handles of a store share, whatever key space they are of.
//! ```text
//! Db, Keyspace, Transaction, ... --> Owner --> the trees that are open; the last one closes them
//! ```
//! Invariant: a store is closed once: by a call, or when its owner goes.

use crate::db::single_keys;
use crate::entries::batch::Batch;
use crate::entries::entry::{Kind, Sequence};
use crate::entries::expiry::EXPIRY_BYTES;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::files::value_file::ValueFile;
use crate::plan::options::VALUE_THRESHOLD_MIN;
use crate::plan::options::keyspace::Named;
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

    /// Keeps options of a key space, which hold when it is opened next.
    pub(crate) fn keep_options(&self, keyspace: KeyspaceId, options: Named) -> Result<()> {
        self.keyspaces.keep(&self.engine, keyspace, options)
    }

    /// Gives the number of the last write. What it is given may be empty then.
    pub(crate) fn write(&self, write: &mut Write, sync: bool) -> Result<Sequence> {
        let engine = &self.engine;
        write.batch.check()?;
        // In a child the locks of writers may be held for ever.
        engine.life().check()?;
        for (keyspace, key) in write.batch.merged_keys() {
            if engine.commit.trees.of(engine, keyspace)?.merge_operator.get().is_none() {
                let path = engine.table_files.folder.path().to_path_buf();
                let (keyspace, key) = (keyspace.0, key.to_vec());
                return Err(Error::NoMergeOperator { path, keyspace, key });
            }
        }
        self.write_checked(write, sync)
    }

    /// Writes what another store has told. Its operands were taken there: they are written as they
    /// are, whether or not their operator is here.
    pub(crate) fn write_told(&self, write: &mut Write) -> Result<Sequence> {
        write.batch.check()?;
        self.engine.life().check()?;
        self.write_checked(write, false)
    }

    #[inline]
    fn write_checked(&self, write: &mut Write, sync: bool) -> Result<Sequence> {
        let engine = &self.engine;
        write.batch.start_lifetimes(&*engine.env.clock);
        let _held = self.put_values_apart(&mut write.batch)?;
        let (commit, clock) = (&engine.commit, engine.timing());
        let expected = write.batch.take_expected();
        engine.counters.batches.time(clock, || match expected.is_empty() {
            true => commit.write_if(engine, write, sync),
            false => single_keys::write_as_expected(engine, write, &expected, sync),
        })
    }

    /// Writes the values of a batch that are to be apart into their files. These are held until the
    /// batch is written, or has failed.
    #[inline]
    fn put_values_apart(&self, batch: &mut Batch) -> Result<Vec<Arc<ValueFile>>> {
        match batch.may_have_value_of(VALUE_THRESHOLD_MIN) {
            true => self.put_large_values_apart(batch),
            false => Ok(Vec::new()),
        }
    }

    #[cold]
    fn put_large_values_apart(&self, batch: &mut Batch) -> Result<Vec<Arc<ValueFile>>> {
        let mut held: Vec<Arc<ValueFile>> = Vec::new();
        if !self.has_values_apart(batch)? {
            return Ok(held);
        }
        batch.put_values_apart(|keyspace, value| {
            let tree = self.engine.commit.trees.of(&self.engine, keyspace)?;
            if !tree.is_apart(value) {
                return Ok(None);
            }
            let (at, file) = tree.table_files.values.put(value)?;
            if held.last().is_none_or(|last| !Arc::ptr_eq(last, &file)) {
                held.push(file);
            }
            Ok(Some(at))
        })?;
        Ok(held)
    }

    fn has_values_apart(&self, batch: &Batch) -> Result<bool> {
        for (keyspace, kind, _, stored) in batch.logged() {
            let value = match kind {
                Kind::Put => stored,
                Kind::PutWithExpiry => &stored[EXPIRY_BYTES..],
                _ => continue,
            };
            if value.len() >= VALUE_THRESHOLD_MIN
                && self.engine.commit.trees.of(&self.engine, keyspace)?.is_apart(value)
            {
                return Ok(true);
            }
        }
        Ok(false)
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
