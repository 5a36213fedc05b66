//! A change feed: committed writes in their order, read from the logs as long as these exist.
//! ```text
//! chain of logs   [7 41..52] [9 53..60] [12 61.. durable end | not durable yet
//! feed                           ^ delivered up to 55: 56 and later come next, group by group
//! ```
//! A log that follows a failed one begins with a copy of the entries that were only in memory. The
//! feed delivers that copy once, as one batch, since the borders of its batches are lost.
//!
//! Invariants: what the feed delivers is durable and visible to readers. It delivers nothing twice
//! and skips nothing: where it cannot continue, it ends with `Gone`. Between calls it has no file
//! open, apart from those of readers that it gave out. It holds no lock while it reads a file.

use std::collections::{BTreeMap, VecDeque};

use crate::entries::entry::{Entry, Kind, Sequence};
use crate::entries::expiry::{EXPIRY_BYTES, Expiry};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::value_ref::ValueRef;
use crate::error::{Error, Result};
use crate::files::names::wal_name;
use crate::files::wal::{self, WalBatch};
use crate::read::value_reader::ValueReader;
use crate::storage::traits::ReadAt;
use crate::sync::Arc;
use crate::tree::log_chain::{GoneBefore, LogPosition, LogStretch};
use crate::tree::open_tree::OpenTree;

/// Bytes of keys and values that are read in one go, about.
const PART_BYTES: usize = 1 << 20;

/// What a write did to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The key has this value.
    Put(Vec<u8>),
    /// The key has this value until it expires.
    PutWithExpiry {
        /// The value.
        value: Vec<u8>,
        /// When it expires.
        expiry: Expiry,
    },
    /// This operand is merged into the key's value: see [`merge`](crate::Keyspace::merge).
    Merge(Vec<u8>),
    /// The key was deleted.
    Delete,
    /// All keys from this one (inclusive) to `to` (exclusive) were deleted.
    DeleteRange {
        /// The end of the range, exclusive.
        to: Vec<u8>,
    },
}

/// A single write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Its sequence number, greater than that of every earlier write.
    pub sequence: u64,
    /// The number of its key space; 0 is the default one. Numbers are never reused.
    pub keyspace: u32,
    /// The name that the key space had when the feed first met it. None: it had been dropped by
    /// then.
    pub keyspace_name: Option<Arc<str>>,
    /// The key.
    pub key: Vec<u8>,
    /// What the write did to the key.
    pub kind: ChangeKind,
}

/// Writes that were committed together: one or several whole batches and transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeBatch {
    /// The writes in the order of their sequence numbers; at least one.
    pub changes: Vec<Change>,
}

impl ChangeBatch {
    /// Returns the sequence number of its last write. A feed that starts after it continues behind
    /// the batch.
    pub fn sequence(&self) -> u64 {
        self.changes.last().map_or(0, |change| change.sequence)
    }
}

/// A batch of which some values were not read. They are empty in it, and have readers instead.
pub(crate) struct BatchWithReaders {
    pub(crate) batch: ChangeBatch,
    /// These values, in the order of the writes.
    pub(crate) long: Vec<LongValue>,
}

/// Which values apart a feed reads into memory. The others get readers.
#[derive(Clone, Copy)]
pub(crate) struct ReadWhole {
    /// A value has fewer bytes.
    pub(crate) value_below: u64,
    /// All of a batch together have at most so many bytes. A batch may be a group of any number of
    /// writes, since the size of a group does not count values apart.
    pub(crate) batch_bytes: u64,
}

impl ReadWhole {
    const ALL: ReadWhole = ReadWhole { value_below: u64::MAX, batch_bytes: u64::MAX };
}

/// A long value, to be read in parts. Its file is kept while this lives.
pub(crate) struct LongValue {
    /// The sequence number of its write.
    pub(crate) sequence: u64,
    /// The checksum in the store's reference. It is not a CRC32C of the value's bytes.
    pub(crate) mark: u32,
    pub(crate) reader: ValueReader,
}

/// Committed writes in their order: see [`Db::changes_since`](crate::Db::changes_since).
///
/// As an iterator, it ends when nothing more can be delivered now, and continues when it is asked
/// again later. It also ends after an error; [`next_batch`](Changes::next_batch) then tries again.
pub struct Changes {
    tree: Arc<OpenTree>,
    /// Everything up to this write was delivered to the caller.
    delivered: Sequence,
    /// Everything up to this write was read from the logs.
    read: Sequence,
    /// Where reading continues.
    at: Option<LogPosition>,
    ready: VecDeque<ReadBatch>,
    names: BTreeMap<u32, Option<Arc<str>>>,
    has_failed: bool,
}

impl Changes {
    /// Returns a feed of the writes after `since`. `main`: the default tree.
    pub(crate) fn since(main: &Arc<OpenTree>, since: Sequence) -> Result<Changes> {
        let _call = main.life().enter()?;
        let visible = main.snapshots.visible();
        if since > visible {
            return Err(Error::Gone { since: since.0, first: visible.0 + 1, file: None });
        }
        let changes = Changes {
            tree: Arc::clone(main),
            delivered: since,
            read: since,
            at: None,
            ready: VecDeque::new(),
            names: BTreeMap::new(),
            has_failed: false,
        };
        changes.look(|changes| main.logs.chain(|chain| chain.check(changes.read)))?;
        Ok(changes)
    }

    /// Returns the next writes that were committed together. None: nothing more is durable yet. Ask
    /// again later, or make the writes durable with [`Db::sync`](crate::Db::sync).
    ///
    /// # Errors
    /// `Gone`: no log holds the next writes any more, or a bulk load bypassed the logs. Or a value
    /// stored apart was overwritten, or moved by a merge, and its file no longer exists. `Corrupt`:
    /// a log is damaged. `Io`: a log cannot be read; ask again. `Closed`: the store was closed.
    /// `ValueTooLong`: the next value has more than 1 GiB, which the feed cannot deliver; continue
    /// from a snapshot. An error skips nothing.
    pub fn next_batch(&mut self) -> Result<Option<ChangeBatch>> {
        let next = self.next_with_readers(ReadWhole::ALL)?;
        Ok(next.map(|next| next.batch))
    }

    /// As `next_batch`, but values that are stored apart get readers instead of being read, except
    /// those that `whole` allows. So long values take no memory, and none is too long.
    pub(crate) fn next_with_readers(
        &mut self,
        whole: ReadWhole,
    ) -> Result<Option<BatchWithReaders>> {
        let next = self.try_next(whole);
        self.has_failed = next.is_err();
        next
    }

    fn try_next(&mut self, whole: ReadWhole) -> Result<Option<BatchWithReaders>> {
        let tree = Arc::clone(&self.tree);
        let _call = tree.life().enter()?;
        while self.ready.is_empty() && self.read_part()? {}
        let long = match self.ready.front_mut() {
            Some(next) => next.read_values(&tree, self.delivered, whole)?,
            None => Vec::new(),
        };
        let next = self.ready.pop_front().map(|next| next.batch);
        let last = next.as_ref().map(|batch| Sequence(batch.sequence()));
        self.delivered = last.unwrap_or(self.read).max(self.delivered);
        Ok(next.map(|batch| BatchWithReaders { batch, long }))
    }

    /// Returns the sequence number up to which the feed has delivered all changes that feeds
    /// deliver. A feed that starts after it continues where this one is.
    pub fn sequence(&self) -> u64 {
        self.delivered.0
    }

    fn look<T>(
        &self,
        look: impl FnOnce(&Changes) -> std::result::Result<T, GoneBefore>,
    ) -> Result<T> {
        look(self).map_err(|GoneBefore(first)| Error::Gone {
            since: self.read.0,
            first: first.0,
            file: None,
        })
    }

    fn next_stretch(&self) -> Result<Option<LogStretch>> {
        self.look(|it| it.tree.logs.chain(|chain| chain.next(it.read, it.at)))
    }

    /// Reads the next part of a log. Returns false if nothing more can be delivered.
    fn read_part(&mut self) -> Result<bool> {
        if self.tree.snapshots.visible() <= self.read {
            return Ok(false);
        }
        let Some(stretch) = self.next_stretch()? else { return Ok(false) };
        // Taken after the stretch: entries that a log repeats from a failed one are visible before
        // the log exists.
        let visible = self.tree.snapshots.visible();
        let Some(file) = self.open(&stretch)? else { return Ok(true) };
        if !stretch.has_repeats {
            // The log was read back at opening. Its groups say what is durable in it, but its name
            // may not be durable yet.
            self.tree.table_files.folder.sync()?;
        }
        // When a log replaces a damaged one of the same name, the chain is marked before the file
        // exists.
        self.look(|it| it.tree.logs.chain(|chain| chain.check_unlogged(it.read)))?;
        let LogPosition { log, offset, forgotten } = stretch.from;
        let path = self.tree.table_files.folder.path_of(&wal_name(log));
        let mut part = Part::new(self.read, visible, stretch.after);
        let range = (offset, stretch.end);
        let end = wal::read_between((file, &path), log, range, &mut |group| part.take(&group))?;
        part.end(end == stretch.end && stretch.has_repeats);
        let has_moved = end > offset || part.read > self.read;
        (self.read, self.at) = (part.read, Some(LogPosition { log, offset: end, forgotten }));
        let mut batches = part.batches;
        let changes = batches.iter_mut().flat_map(|it| &mut it.batch.changes);
        changes.for_each(|it| self.name(it));
        self.ready.extend(batches);
        Ok(has_moved)
    }

    /// Opens the log of a stretch. None: the log was removed meanwhile, so the stretch must be
    /// found anew.
    fn open(&self, stretch: &LogStretch) -> Result<Option<Arc<dyn ReadAt>>> {
        let name = wal_name(stretch.from.log);
        match self.tree.table_files.folder.open_file(&name) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                let still = self.next_stretch()?.map(|now| now.from.log);
                if still != Some(stretch.from.log) {
                    return Ok(None);
                }
                let path = self.tree.table_files.folder.path_of(&name);
                let what = "the store has it for change feeds, and somebody has removed it";
                Err(Error::FileMissing { path, what: what.into() })
            }
            opened => opened.map(Some),
        }
    }

    fn name(&mut self, change: &mut Change) {
        let id = change.keyspace;
        let name = || {
            let manifest = self.tree.manifest();
            let known = manifest.layout().keyspaces.get(&KeyspaceId(id));
            known.map(|keyspace| Arc::from(keyspace.record.name.as_str()))
        };
        change.keyspace_name = self.names.entry(id).or_insert_with(name).clone();
    }
}

impl Iterator for Changes {
    type Item = Result<ChangeBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if std::mem::take(&mut self.has_failed) {
            return None;
        }
        self.next_batch().transpose()
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Changes").field(&self.sequence()).finish()
    }
}

/// A change, and the reference to its value if that is stored apart. The value is empty then.
type ReadChange = (Change, Option<ValueRef>);

/// A batch read from a log. Its values apart are read when it is delivered.
struct ReadBatch {
    batch: ChangeBatch,
    /// For each change: the reference to its value, if that is stored apart.
    apart: Vec<Option<ValueRef>>,
}

impl ReadBatch {
    /// Reads the values apart that `whole` allows, and returns readers for the others. `delivered`:
    /// the last write that was delivered.
    ///
    /// # Errors
    /// `Gone`: the value was overwritten, or a merge has moved it, and its file no longer exists.
    fn read_values(
        &mut self,
        tree: &OpenTree,
        delivered: Sequence,
        whole: ReadWhole,
    ) -> Result<Vec<LongValue>> {
        let (store, mut long, mut left) =
            (&tree.table_files.values.store, Vec::new(), whole.batch_bytes);
        for (change, apart) in self.batch.changes.iter_mut().zip(&mut self.apart) {
            let Some(at) = apart.as_ref() else { continue };
            let gone =
                |_| Error::Gone { since: delivered.0, first: change.sequence + 1, file: None };
            let file = store.held(at.file).map_err(gone)?;
            if at.len >= whole.value_below || at.len > left {
                let reader = ValueReader::of_file((file, store.files()), *at, None)?;
                long.push(LongValue { sequence: change.sequence, mark: at.checksum, reader });
                continue;
            }
            left -= at.len;
            let read = file.read(store.files(), at)?;
            let bytes = read.bytes[read.range].to_vec();
            match &mut change.kind {
                ChangeKind::Put(value) | ChangeKind::PutWithExpiry { value, .. } => *value = bytes,
                ChangeKind::Merge(_) | ChangeKind::Delete | ChangeKind::DeleteRange { .. } => {}
            }
            *apart = None;
        }
        Ok(long)
    }
}

/// What is read of one log in one go.
struct Part {
    read: Sequence,
    visible: Sequence,
    /// The newest write before the log.
    after: Sequence,
    /// Entries that the log repeats from a failed one.
    repeated: Vec<ReadChange>,
    batches: Vec<ReadBatch>,
    bytes: usize,
}

impl Part {
    fn new(read: Sequence, visible: Sequence, after: Sequence) -> Self {
        let (repeated, batches) = (Vec::new(), Vec::new());
        Part { read, visible, after, repeated, batches, bytes: 0 }
    }

    /// Takes the next group of the log. Returns false if the part ends before this group.
    fn take(&mut self, group: &WalBatch<'_>) -> Result<bool> {
        let Some(last) = group.entries.last() else { return Ok(true) };
        if last.sequence > self.visible {
            return Ok(false);
        }
        if group.repeats {
            self.repeat(group);
            return Ok(true);
        }
        self.end(true);
        if self.bytes >= PART_BYTES {
            return Ok(false);
        }
        let new = group.writes().filter(|(_, entry)| entry.sequence > self.read);
        let changes = new.map(|(keyspace, entry)| change(keyspace, entry)).collect();
        self.bytes += group.entries.iter().map(|it| it.key.len() + it.value.len()).sum::<usize>();
        self.give(changes);
        Ok(true)
    }

    /// Takes repeated entries. They were delivered before, unless the failed log could not make
    /// them durable.
    fn repeat(&mut self, group: &WalBatch<'_>) {
        let delivered = self.repeated.last().map_or(self.read.0, |(last, _)| last.sequence);
        let new = group.writes().filter(|(_, entry)| entry.sequence.0 > delivered);
        self.repeated.extend(new.map(|(keyspace, entry)| change(keyspace, entry)));
    }

    /// Ends the repeated entries. `is_whole`: all of them were read.
    fn end(&mut self, is_whole: bool) {
        let repeated = std::mem::take(&mut self.repeated);
        self.give(repeated);
        if is_whole {
            self.read = self.read.max(self.after);
        }
    }

    fn give(&mut self, changes: Vec<ReadChange>) {
        let Some((last, _)) = changes.last() else { return };
        self.read = Sequence(last.sequence);
        let (changes, apart) = changes.into_iter().unzip();
        self.batches.push(ReadBatch { batch: ChangeBatch { changes }, apart });
    }
}

fn change(keyspace: KeyspaceId, entry: &Entry<'_>) -> ReadChange {
    // The reader of the log has reported malformed references.
    let apart = entry.value_ref().and_then(std::result::Result::ok);
    let kind = match entry.kind {
        Kind::Put => ChangeKind::Put(entry.value.to_vec()),
        Kind::Merge => ChangeKind::Merge(entry.value.to_vec()),
        Kind::Delete => ChangeKind::Delete,
        Kind::DeleteRange => ChangeKind::DeleteRange { to: entry.value.to_vec() },
        Kind::PutWithExpiry => {
            let (expiry, value) = (Expiry::of_stored(entry.value), &entry.value[EXPIRY_BYTES..]);
            ChangeKind::PutWithExpiry { value: value.to_vec(), expiry }
        }
        Kind::PutApart => ChangeKind::Put(Vec::new()),
        Kind::PutApartWithExpiry => {
            let expiry = Expiry::of_stored(entry.value);
            ChangeKind::PutWithExpiry { value: Vec::new(), expiry }
        }
    };
    let (sequence, key) = (entry.sequence.0, entry.key.to_vec());
    let change = Change { sequence, keyspace: keyspace.0, keyspace_name: None, key, kind };
    (change, apart)
}
