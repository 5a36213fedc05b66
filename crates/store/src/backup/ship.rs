//! Changes since a generation, stored as the change feed tells them.
//! ```text
//! changes-FROM-TO-TIME   magic | version | names of key spaces | batches | checksum
//! batch                  count | number, key space, kind, key, value | ...
//! ```
//! Invariant: an object has all writes behind FROM up to TO, and no other one.

use std::collections::BTreeMap;
use std::time::Duration;

use trommel_filters::{Corrupt, Reader, Writer};

use super::generation::{self, VERSION};
use super::object_store::ObjectStore;
use super::stored;
use crate::db::Db;
use crate::entries::batch::Batch;
use crate::entries::expiry::Expiry;
use crate::error::{Error, Result};
use crate::plan::options::keyspace::KeyspaceOptions;
use crate::read::changes::{Change, ChangeBatch, ChangeKind};
use crate::shared::environment::Environment;

const MAGIC: [u8; 8] = *b"TRMLCHNG";
const PREFIX: &str = "changes-";
/// An object is begun after so many bytes.
const PART_BYTES: usize = 8 << 20;
/// The largest group of writes and some more.
const OBJECT_BYTES_MAX: u64 = 8 << 30;

/// What a call has shipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shipped {
    /// All changes behind this write.
    pub from: u64,
    /// Up to this one.
    pub to: u64,
    /// How many bytes they take.
    pub bytes: u64,
}

/// What the name of an object with changes says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShippedName {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) milliseconds: u64,
}

impl ShippedName {
    pub(super) fn of(name: &str) -> Option<ShippedName> {
        let mut numbers = name.strip_prefix(PREFIX)?.split('-').map(|it| it.parse().ok());
        let mut next = || numbers.next().flatten();
        let told = ShippedName { from: next()?, to: next()?, milliseconds: next()? };
        (told.name() == name).then_some(told)
    }

    fn name(self) -> String {
        format!("{PREFIX}{:020}-{:020}-{}", self.from, self.to, self.milliseconds)
    }
}

/// All of them, by the write that they begin behind.
pub(super) fn names(objects: &dyn ObjectStore) -> Result<Vec<ShippedName>> {
    let names = objects.list(PREFIX).map_err(Error::io(objects.place()))?;
    let mut all: Vec<_> = names.iter().filter_map(|(name, _)| ShippedName::of(name)).collect();
    all.sort_unstable_by_key(|it| (it.from, it.to));
    Ok(all)
}

/// How far the changes lead from a write that were shipped up to a time.
pub(super) fn reached(all: &[ShippedName], from: u64, time: Duration) -> u64 {
    let mut at = from;
    let is_then = |it: &&ShippedName| u128::from(it.milliseconds) <= time.as_millis();
    for it in all.iter().filter(is_then) {
        if it.from <= at {
            at = at.max(it.to);
        }
    }
    at
}

/// Those that lead from one write to another.
///
/// # Errors
/// `FileMissing`: some are lacking.
pub(super) fn chain(
    objects: &dyn ObjectStore,
    all: &[ShippedName],
    from: u64,
    to: u64,
) -> Result<Vec<ShippedName>> {
    let (mut at, mut chain) = (from, Vec::new());
    while at < to {
        let next = all.iter().filter(|it| it.from <= at && it.to > at).max_by_key(|it| it.to);
        let Some(next) = next else {
            let what = format!(
                "the changes behind write {at} were not shipped: a store can be restored as of \
                 that write, or of a generation"
            );
            return Err(Error::FileMissing { path: objects.place().into(), what });
        };
        chain.push(*next);
        at = next.to;
    }
    Ok(chain)
}

pub(super) fn ship(
    objects: &dyn ObjectStore,
    db: &Db,
    environment: &Environment,
) -> Result<Shipped> {
    db.sync()?;
    let visible = db.snapshot().sequence();
    // What is behind comes from another store, which was restored to an older moment.
    let own = |number: &u64| *number <= visible;
    let generations = generation::all(objects)?;
    let Some(newest) = generations.iter().map(|it| it.sequence).filter(own).max() else {
        let what = "there is no generation yet, which changes could come after".to_string();
        return Err(Error::FileMissing { path: objects.place().into(), what });
    };
    // Behind what was shipped, even if a generation came since: so there is no gap.
    let before = names(objects)?.iter().map(|it| it.to).filter(own).max().unwrap_or(newest);
    let feed = match db.changes_since(before) {
        Err(Error::Gone { .. }) if before < newest => db.changes_since(newest),
        feed => feed,
    };
    let mut feed = feed?;
    let from = feed.sequence();
    let mut shipped = Shipped { from, to: from, bytes: 0 };
    loop {
        let mut part = Part::default();
        while part.out.as_slice().len() < PART_BYTES
            && let Some(batch) = feed.next_batch()?
        {
            part.add(&batch);
        }
        if part.last == 0 {
            return Ok(shipped);
        }
        let milliseconds = environment.clock.since_epoch().as_millis() as u64;
        let name = ShippedName { from: shipped.to, to: part.last, milliseconds };
        shipped.to = part.last;
        let bytes = part.encode();
        stored::put(objects, &name.name(), &bytes)?;
        shipped.bytes += bytes.len() as u64;
    }
}

/// Batches that become an object.
#[derive(Default)]
struct Part {
    names: BTreeMap<u32, String>,
    out: Writer,
    last: u64,
}

fn push(out: &mut Writer, bytes: &[u8]) {
    out.varint(bytes.len() as u64);
    out.bytes(bytes);
}

impl Part {
    fn add(&mut self, batch: &ChangeBatch) {
        self.last = batch.sequence();
        self.out.varint(batch.changes.len() as u64);
        for Change { sequence, keyspace, keyspace_name, key, kind } in &batch.changes {
            if let Some(name) = keyspace_name {
                self.names.entry(*keyspace).or_insert_with(|| name.to_string());
            }
            self.out.varint(*sequence);
            self.out.varint(u64::from(*keyspace));
            let (number, value): (u8, &[u8]) = match kind {
                ChangeKind::Put(value) => (0, value),
                ChangeKind::PutWithExpiry { value, .. } => (1, value),
                ChangeKind::Merge(operand) => (2, operand),
                ChangeKind::Delete => (3, &[]),
                ChangeKind::DeleteRange { to } => (4, to),
            };
            self.out.u8(number);
            push(&mut self.out, key);
            push(&mut self.out, value);
            if let ChangeKind::PutWithExpiry { expiry, .. } = kind {
                self.out.varint(expiry.milliseconds());
            }
        }
    }

    fn encode(self) -> Vec<u8> {
        let mut out = Writer::new();
        out.bytes(&MAGIC);
        out.u32(VERSION);
        out.varint(self.names.len() as u64);
        for (number, name) in &self.names {
            out.varint(u64::from(*number));
            push(&mut out, name.as_bytes());
        }
        out.bytes(self.out.as_slice());
        out.u32(crc32c::crc32c(out.as_slice()));
        out.finish()
    }
}

/// Applies the batches behind the first write up to the second one to a store. Gives the last write
/// that was applied.
pub(super) fn apply(
    objects: &dyn ObjectStore,
    name: &ShippedName,
    db: &Db,
    (from, to): (u64, u64),
) -> Result<u64> {
    let name = name.name();
    let (bytes, path) =
        (stored::get(objects, &name, OBJECT_BYTES_MAX)?, stored::path_of(objects, &name));
    let wrong = |it: Corrupt| Error::corrupt(&path, it.at as u64, it.what);
    let mut input = Reader::new(&bytes);
    let (version, names) = head(&bytes, &mut input).map_err(wrong)?;
    if version != VERSION {
        return Err(Error::Version { path, found: version, known: VERSION });
    }
    let mut last = from;
    while input.left() > size_of::<u32>() {
        let changes = batch(&mut input).map_err(wrong)?;
        let number = changes.last().map_or(0, |change| change.sequence);
        if number > to {
            break;
        }
        if number > from {
            write(db, &changes, &names)?;
            last = number;
        }
    }
    Ok(last)
}

type Names = BTreeMap<u32, String>;

fn head(bytes: &[u8], input: &mut Reader<'_>) -> std::result::Result<(u32, Names), Corrupt> {
    if input.bytes(MAGIC.len())? != MAGIC {
        return Err(Corrupt { at: 0, what: "no changes that were shipped" });
    }
    let version = input.u32()?;
    if version != VERSION {
        return Ok((version, Names::new()));
    }
    let is_wrong =
        |(rest, told): (&[u8], &[u8; 4])| crc32c::crc32c(rest) != u32::from_le_bytes(*told);
    if bytes.split_last_chunk::<4>().is_none_or(is_wrong) {
        return Err(input.corrupt("the checksum of shipped changes does not match"));
    }
    let mut names = Names::new();
    for _ in 0..input.varint()? {
        let number = number_of(input)?;
        let len = input.len()?;
        let name = String::from_utf8(input.bytes(len)?.to_vec());
        names.insert(number, name.map_err(|_| input.corrupt("a name that is no text"))?);
    }
    Ok((version, names))
}

fn number_of(input: &mut Reader<'_>) -> std::result::Result<u32, Corrupt> {
    let number = input.varint()?;
    u32::try_from(number).map_err(|_| input.corrupt("a key space that cannot be"))
}

fn batch(input: &mut Reader<'_>) -> std::result::Result<Vec<Change>, Corrupt> {
    let mut changes = Vec::new();
    for _ in 0..input.varint()? {
        let (sequence, keyspace, number) = (input.varint()?, number_of(input)?, input.u8()?);
        let mut bytes = || {
            let len = input.len()?;
            Ok(input.bytes(len)?.to_vec())
        };
        let (key, value) = (bytes()?, bytes()?);
        let kind = match number {
            0 => ChangeKind::Put(value),
            1 => {
                let expiry = Expiry::at_milliseconds(input.varint()?);
                ChangeKind::PutWithExpiry { value, expiry }
            }
            2 => ChangeKind::Merge(value),
            3 => ChangeKind::Delete,
            4 => ChangeKind::DeleteRange { to: value },
            _ => return Err(input.corrupt("a kind of change that is not known")),
        };
        changes.push(Change { sequence, keyspace, keyspace_name: None, key, kind });
    }
    Ok(changes)
}

/// Writes a batch. What went into key spaces that were dropped since is left out.
fn write(db: &Db, changes: &[Change], names: &Names) -> Result<()> {
    let (mut out, mut within) = (Batch::new(), None);
    for change in changes {
        if within != Some(change.keyspace) {
            within = Some(change.keyspace);
            match names.get(&change.keyspace) {
                _ if change.keyspace == 0 => out.to(db),
                Some(name) => out.to(&db.keyspace(name, KeyspaceOptions::new())?),
                None => {
                    within = None;
                    continue;
                }
            };
        }
        match &change.kind {
            ChangeKind::Put(value) => out.put(&change.key, value),
            ChangeKind::PutWithExpiry { value, expiry } => {
                out.put_with_expiry(&change.key, value, *expiry)
            }
            ChangeKind::Merge(operand) => out.merge(&change.key, operand),
            ChangeKind::Delete => out.delete(&change.key),
            ChangeKind::DeleteRange { to } => out.delete_range(&change.key, to),
        };
    }
    db.write(out)
}
