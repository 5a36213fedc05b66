//! What all handles of a store share, across key spaces.
//! ```text
//! Db, Keyspace, Transaction, ... --> Owner --> the open trees; the last handle closes them
//! ```
//! Invariant: a store is closed once, by a call or when its owner is dropped.

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

/// The state that all handles of a store share. Dropping it closes the store.
pub(crate) struct Owner {
    /// The engine of the default key space.
    engine: Arc<Engine>,
    pub(super) keyspaces: Keyspaces,
}

impl Owner {
    pub(super) fn new(engine: &Arc<Engine>, keyspaces: Keyspaces) -> Self {
        Owner { engine: Arc::clone(engine), keyspaces }
    }

    /// Returns the open trees, the default one first.
    pub(crate) fn engines(&self) -> Vec<EngineUse> {
        std::iter::once(self.engine.used()).chain(self.keyspaces.used()).collect()
    }

    pub(super) fn each(&self, mut f: impl FnMut(&Arc<Engine>) -> Result<()>) -> Result<()> {
        self.engines().iter().try_for_each(|engine| f(engine))
    }

    /// Keeps options of a key space in the manifest. They take effect at its next opening.
    pub(crate) fn keep_options(&self, keyspace: KeyspaceId, options: Named) -> Result<()> {
        self.keyspaces.keep(&self.engine, keyspace, options)
    }

    /// Writes a batch if its conditions hold. Returns the sequence number of its last write. The
    /// batch may be empty afterwards.
    pub(crate) fn write(&self, write: &mut Write, sync: bool) -> Result<Sequence> {
        let engine = &self.engine;
        write.batch.check()?;
        // In a forked child, the writers' locks may be held forever.
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

    /// Writes changes that another store has shipped. That store has checked their merge operands.
    /// They are written as they are, even if their operator is not set here.
    pub(crate) fn write_shipped(&self, write: &mut Write) -> Result<Sequence> {
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

    /// Writes the large values of a batch to value files. Returns these files, to be held until the
    /// batch is written or has failed.
    #[inline]
    fn put_values_apart(&self, batch: &mut Batch) -> Result<Vec<Arc<ValueFile>>> {
        match batch.may_have_value_of(VALUE_THRESHOLD_MIN) {
            true => self.put_large_values_apart(batch),
            false => Ok(Vec::new()),
        }
    }

    #[cold]
    fn put_large_values_apart(&self, batch: &mut Batch) -> Result<Vec<Arc<ValueFile>>> {
        // Closing waits for this, but not for the write itself, which may have to wait.
        let _call = self.engine.life().enter()?;
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
            // The engine's parts may be locked forever, by threads that do not exist in this
            // process.
            std::mem::forget(Arc::clone(&self.engine));
            return;
        }
        let _ = self.close();
    }
}
