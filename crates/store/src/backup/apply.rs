//! Applies shipped changes to a store that was restored from a generation.
//! ```text
//! shipped         3 "events"      5 "cache"       numbers in the source, the store that shipped
//! own             3               7               numbers in the restored store: the same if its
//! batch  ->       one batch                       generation has the key space, else new ones
//! long values     value files first               then their references, with their batch
//! end of object   made, renamed, dropped, options: everything as it was shipped
//! ```
//! Changes do not say at which write a key space was made, renamed or dropped. That takes effect at
//! the end of the first object that shows it. But a key space that is written to is made before the
//! write. One that has its name until it is dropped has another name from then on.
//!
//! Invariant: a write goes into the key space with its number, whatever name that has meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use trommel_filters::{Corrupt, Reader};

use super::generation::Generation;
use super::object_store::ObjectStore;
use super::ship::ShippedName;
use super::shipped::{
    CHANGES_VERSION, Head, ShippedBatch, ShippedSpace, ShippedSpaces, head, next_batch,
};
use super::values::{Fetched, ShippedValue};
use super::{stored, values};
use crate::db::{Db, Keyspace};
use crate::entries::batch::Batch;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::files::value_file::ValueFile;
use crate::plan::options::Options;
use crate::plan::options::keyspace::{Kept, KeyspaceOptions};
use crate::read::changes::{Change, ChangeKind};
use crate::sync::Arc;
use crate::tools::progress::Steps;
use crate::tree::write_times::WriteTime;
use crate::write::conflicts::Write;

/// The largest group of writes, without its values apart, and as many of these as changes have,
/// with some margin.
const OBJECT_BYTES_MAX: u64 = 8 << 30;
/// A shipped batch is written in batches of about this many bytes.
const BATCH_BYTES: usize = 32 << 20;
/// The most files of long values that wait for their batch. Each has a file descriptor.
const HELD_FILES_MAX: usize = 64;
const MERGE_OPERATOR: &str = "merge_operator";

/// What a restore does with key spaces without a log. No change feed tells their writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unlogged {
    /// The restore fails if such a key space was written to after the generation, or may have been.
    #[default]
    Refuse,
    /// Such key spaces are restored as of the generation, as if after a crash.
    AsOfGeneration,
}

/// An object of changes, read into memory.
pub(super) struct Changes<'o> {
    objects: &'o dyn ObjectStore,
    name: ShippedName,
    bytes: Vec<u8>,
    /// The offset of the first batch.
    begin: usize,
    spaces: ShippedSpaces,
    marks: Vec<WriteTime>,
}

impl<'o> Changes<'o> {
    /// Reads an object of changes.
    ///
    /// # Errors
    /// `Corrupt`: the object is damaged. `Version`: another version wrote it. `Io`.
    pub(super) fn read(objects: &'o dyn ObjectStore, name: &ShippedName) -> Result<Self> {
        let (object, name) = (name.name(), *name);
        let bytes = stored::get(objects, &object, OBJECT_BYTES_MAX)?;
        let path = stored::path_of(objects, &object);
        let mut input = Reader::new(&bytes);
        let read = head(&bytes, &mut input);
        let begin = input.at();
        match read.map_err(|it| Error::corrupt(&path, it.at as u64, it.what))? {
            Head::Known(spaces, marks) => {
                Ok(Changes { objects, name, bytes, begin, spaces, marks })
            }
            Head::OfVersion(found) => Err(Error::Version { path, found, known: CHANGES_VERSION }),
        }
    }

    /// Returns an error if a key space without a log was written to after the generation.
    pub(super) fn check_unlogged(&self, generation: &Generation) -> Result<()> {
        let since = generation.sequence;
        let is_lacking = |it: &&ShippedSpace| it.unlogged.is_some_and(|through| through > since);
        let Some(ShippedSpace { name, .. }) = self.spaces.values().find(is_lacking) else {
            return Ok(());
        };
        let what = format!(
            "the key space {name} has no log: what was written to it behind write {since} was not \
             shipped. Restore a generation, or have such key spaces as they were at generation {}",
            generation.number
        );
        Err(self.lacking(what))
    }

    /// Returns the last of these writes that was surely begun by a time, as marks tell.
    pub(super) fn last_by(&self, time: Duration) -> Option<u64> {
        let is_by = |it: &&WriteTime| u128::from(it.milliseconds) <= time.as_millis();
        let by = self.marks.iter().filter(is_by).map(|it| it.sequence);
        by.filter(|it| (self.name.from..=self.name.to).contains(it)).max()
    }

    /// Returns the length of the object in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn lacking(&self, what: String) -> Error {
        Error::FileMissing { path: self.objects.place().into(), what }
    }

    fn wrong(&self, it: Corrupt) -> Error {
        let path = stored::path_of(self.objects, &self.name.name());
        Error::corrupt(path, it.at as u64, it.what)
    }

    /// Applies the batches after write `from` up to write `until`. If that is the whole object,
    /// applies its changes to key spaces, too. Returns the last write that was applied.
    pub(super) fn apply(
        &self,
        to: &mut Restored<'_>,
        (from, until): (u64, u64),
        steps: &mut Steps<'_, '_>,
    ) -> Result<u64> {
        let (mut input, mut last) = (self.batches()?, from);
        let is_whole = until >= self.name.to;
        while let Some(shipped) = self.next(&mut input)? {
            let number = shipped.batch.sequence();
            if number > until {
                return Ok(last);
            }
            if number > from {
                self.write(to, &shipped, is_whole, steps)?;
                last = number;
            }
        }
        if is_whole {
            self.check_end(&input, last)?;
            to.follow(&self.spaces)?;
        }
        Ok(last)
    }

    /// Returns the long values, in the order of their writes.
    ///
    /// # Errors
    /// `Corrupt`: the batches do not match the object's name.
    pub(super) fn long_values(&self) -> Result<Vec<ShippedValue>> {
        let (mut input, mut last, mut all) = (self.batches()?, 0, Vec::new());
        while let Some(shipped) = self.next(&mut input)? {
            last = shipped.batch.sequence();
            all.extend(shipped.values.into_values());
        }
        self.check_end(&input, last)?;
        Ok(all)
    }

    fn batches(&self) -> Result<Reader<'_>> {
        let mut input = Reader::new(&self.bytes);
        input.bytes(self.begin).map_err(|it| self.wrong(it))?;
        Ok(input)
    }

    fn next(&self, input: &mut Reader<'_>) -> Result<Option<ShippedBatch>> {
        next_batch(input).map_err(|it| self.wrong(it))
    }

    /// Checks that the batches end where the object's name says. `last`: the last write that was
    /// read.
    fn check_end(&self, input: &Reader<'_>, last: u64) -> Result<()> {
        match last == self.name.to {
            true => Ok(()),
            false => Err(self.wrong(input.corrupt("changes that end before their name says"))),
        }
    }

    /// Writes a batch. Leaves out writes into key spaces that no longer exist at the end of the
    /// object.
    fn write(
        &self,
        to: &mut Restored<'_>,
        shipped: &ShippedBatch,
        is_whole: bool,
        steps: &mut Steps<'_, '_>,
    ) -> Result<()> {
        let mut group = Group::default();
        for change in &shipped.batch.changes {
            if group.is_full() {
                to.write(std::mem::take(&mut group))?;
            }
            let long = shipped.values.get(&change.sequence);
            if !group.is_within(change.keyspace) {
                match to.keyspace(change.keyspace, &self.spaces)? {
                    Some(keyspace) => group.go_on_in(change.keyspace, keyspace),
                    None if is_whole => {
                        // Long values count as progress even if they are left out.
                        long.map_or(Ok(()), |long| steps.advance(long.name.bytes))?;
                        continue;
                    }
                    None => return Err(self.not_its_keyspace(change)),
                }
            }
            match long {
                Some(long) => {
                    let value = self.fetch(long, &group, steps)?;
                    group.add_long(change, value);
                }
                None => group.add(change),
            }
        }
        to.write(group)
    }

    fn fetch(
        &self,
        long: &ShippedValue,
        group: &Group,
        steps: &mut Steps<'_, '_>,
    ) -> Result<Fetched> {
        let (_, keyspace) = group.within.as_ref().expect("each change is into a key space");
        values::fetch(self.objects, long, &keyspace.engine.table_files, steps)
    }

    fn not_its_keyspace(&self, change: &Change) -> Error {
        let what = format!(
            "write {} is into a key space that was made and dropped between two \
             shipments: a store can be restored as of write {}, or of one before",
            change.sequence, self.name.to
        );
        self.lacking(what)
    }
}

/// Changes that are written as one batch.
#[derive(Default)]
struct Group {
    out: Batch,
    /// The files of its long values. Nothing else refers to them before the batch is written.
    held: Vec<Arc<ValueFile>>,
    /// The current key space, and its number in the source.
    within: Option<(u32, Keyspace)>,
}

impl Group {
    fn is_full(&self) -> bool {
        self.out.size_bytes() > BATCH_BYTES || self.held.len() >= HELD_FILES_MAX
    }

    fn is_within(&self, source_id: u32) -> bool {
        self.within.as_ref().is_some_and(|(within, _)| *within == source_id)
    }

    fn go_on_in(&mut self, source_id: u32, keyspace: Keyspace) {
        self.out.to(&keyspace);
        self.within = Some((source_id, keyspace));
    }

    fn add(&mut self, Change { key, kind, .. }: &Change) {
        match kind {
            ChangeKind::Put(value) => self.out.put(key, value),
            ChangeKind::PutWithExpiry { value, expiry } => {
                self.out.put_with_expiry(key, value, *expiry)
            }
            ChangeKind::Merge(operand) => self.out.merge(key, operand),
            ChangeKind::Delete => self.out.delete(key),
            ChangeKind::DeleteRange { to } => self.out.delete_range(key, to),
        };
    }

    /// Adds a put of a long value.
    fn add_long(&mut self, Change { key, kind, .. }: &Change, value: Fetched) {
        let expiry = match kind {
            ChangeKind::PutWithExpiry { expiry, .. } => Some(*expiry),
            _ => None,
        };
        match (value, expiry) {
            (Fetched::Whole(value), None) => self.out.put(key, value),
            (Fetched::Whole(value), Some(expiry)) => self.out.put_with_expiry(key, value, expiry),
            (Fetched::Apart((at, file)), expiry) => {
                self.held.push(file);
                match expiry {
                    Some(expiry) => self.out.put_apart_with_expiry(key, &at, expiry),
                    None => self.out.put_apart(key, &at),
                }
            }
        };
    }
}

/// The store that changes are applied to.
pub(super) struct Restored<'d> {
    db: &'d Db,
    /// Options that the caller has set. Shipped options do not replace them.
    given: &'d Options,
    /// The store's key spaces, by their numbers in the source.
    own: BTreeMap<u32, KeyspaceId>,
    open: BTreeMap<u32, Keyspace>,
}

impl<'d> Restored<'d> {
    /// Wraps a store that was restored from a generation and opened with these options.
    pub(super) fn new(db: &'d Db, given: &'d Options) -> Self {
        let own = db.engine.manifest().layout().keyspaces.keys().map(|id| (id.0, *id)).collect();
        Restored { db, given, own, open: BTreeMap::new() }
    }

    /// Writes a group. Merge operands are written as they are, even if their operator is unknown.
    fn write(&self, group: Group) -> Result<()> {
        let Group { out, held, .. } = group;
        self.db.owner.write_shipped(&mut Write::of(out))?;
        // A value file keeps its descriptor open until it is durable.
        if held.is_empty() { Ok(()) } else { self.db.sync() }
    }

    fn name(&self, id: KeyspaceId) -> String {
        let manifest = self.db.engine.manifest();
        let keyspace = manifest.layout().keyspaces.get(&id);
        keyspace.map_or_else(String::new, |keyspace| keyspace.record.name.clone())
    }

    fn kept(&self, id: KeyspaceId) -> Kept {
        let manifest = self.db.engine.manifest();
        let keyspace = manifest.layout().keyspaces.get(&id);
        keyspace.map_or_else(Kept::new, |keyspace| keyspace.record.options.clone())
    }

    /// Returns the key space with this number in the source; makes it if needed. None: it exists
    /// neither here nor when the changes were shipped.
    fn keyspace(&mut self, source_id: u32, spaces: &ShippedSpaces) -> Result<Option<Keyspace>> {
        if let Some(open) = self.open.get(&source_id) {
            return Ok(Some(open.clone()));
        }
        let shipped = spaces.get(&source_id);
        let Some(id) = self.own.get(&source_id).copied() else {
            return shipped.map(|space| self.make(source_id, space, spaces)).transpose();
        };
        let mut options = KeyspaceOptions::new();
        let operator = shipped.and_then(|space| space.options.get(MERGE_OPERATOR));
        if let Some(operator) = operator.filter(|it| self.kept(id).get(MERGE_OPERATOR) != Some(it))
        {
            options.set(MERGE_OPERATOR, operator)?;
        }
        let keyspace = self.db.keyspace(self.name(id), options)?;
        self.open.insert(source_id, keyspace.clone());
        Ok(Some(keyspace))
    }

    fn make(
        &mut self,
        source_id: u32,
        space: &ShippedSpace,
        spaces: &ShippedSpaces,
    ) -> Result<Keyspace> {
        self.free_name(&space.name, spaces)?;
        let mut options = KeyspaceOptions::new();
        space.options.iter().try_for_each(|(name, text)| options.set(name, text))?;
        let made = self.db.keyspace(&space.name, options)?;
        self.own.insert(source_id, made.engine.keyspace);
        self.open.insert(source_id, made.clone());
        Ok(made)
    }

    /// Frees a name. The key space that has it was renamed or dropped in the source. If it was
    /// renamed, its new name is freed first, and so on. If it was dropped, it gets a name that is
    /// free: there may be writes into it up to the end of the object.
    fn free_name(&self, name: &str, spaces: &ShippedSpaces) -> Result<()> {
        let (mut wanted, mut renamed) = (name.to_string(), Vec::new());
        while let Some(source_id) = self.source_id_of(&wanted) {
            let space = spaces.get(&source_id);
            let new = space.map_or_else(|| self.free_name_for(source_id), |it| it.name.clone());
            renamed.push((wanted, new.clone()));
            wanted = new;
        }
        renamed.iter().rev().try_for_each(|(from, to)| self.db.rename_keyspace(from, to))
    }

    /// Returns a name that no key space has.
    fn free_name_for(&self, source_id: u32) -> String {
        let names = (0u64..).map(|number| format!("renamed-{source_id}-{number}"));
        let mut free = names.filter(|it| self.source_id_of(it).is_none());
        free.next().expect("numbers do not end")
    }

    /// Returns the number in the source of the key space with this name here.
    fn source_id_of(&self, name: &str) -> Option<u32> {
        let id = self.db.engine.manifest().layout().named(name)?;
        self.own.iter().find(|(_, own)| **own == id).map(|(source_id, _)| *source_id)
    }

    fn drop_keyspace(&mut self, source_id: u32, name: &str) -> Result<()> {
        self.own.remove(&source_id);
        self.open.remove(&source_id);
        self.db.drop_keyspace(name)
    }

    /// Changes key spaces to what they were when the object was shipped.
    fn follow(&mut self, spaces: &ShippedSpaces) -> Result<()> {
        let gone = self.own.iter().filter(|(source_id, _)| !spaces.contains_key(source_id));
        let gone: Vec<_> = gone.map(|(source_id, id)| (*source_id, self.name(*id))).collect();
        for (source_id, name) in gone {
            self.drop_keyspace(source_id, &name)?;
        }
        self.rename(spaces)?;
        for (source_id, space) in spaces {
            let Some(id) = self.own.get(source_id).copied() else {
                self.make(*source_id, space, spaces)?;
                continue;
            };
            let kept = self.kept(id);
            let is_given = |name: &str| id == KeyspaceId::DEFAULT && self.given.is_set(name);
            let is_new = |(name, text): &(&String, &String)| {
                kept.get(*name) != Some(*text) && !is_given(name)
            };
            let new = space.options.iter().filter(is_new);
            let new: Vec<_> = new.map(|(name, text)| (name.clone(), text.clone())).collect();
            if !new.is_empty() {
                KeyspaceOptions::check_kept(
                    &space.options,
                    self.db.engine.table_files.folder.path(),
                )?;
                self.db.owner.keep_options(id, new)?;
            }
        }
        Ok(())
    }

    /// Renames key spaces. Some may have exchanged their names.
    fn rename(&self, spaces: &ShippedSpaces) -> Result<()> {
        let mut names = Vec::new();
        for (source_id, id) in &self.own {
            let (now, then) = (self.name(*id), &spaces[source_id].name);
            if now != *then {
                let between = self.free_name_for(*source_id);
                self.db.rename_keyspace(&now, &between)?;
                names.push((between, then));
            }
        }
        names.iter().try_for_each(|(between, then)| self.db.rename_keyspace(between, then))
    }
}
