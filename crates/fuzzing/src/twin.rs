//! Decoders that are too plain to be wrong, written after `docs/format.md`: what a block and a log
//! hold.
//! ```text
//! block -> every entry in order, or nothing            log -> every group in order, or nothing
//! ```
//! Invariant: each is at most as lenient as the store's: what it takes, the store must take, and
//! answer alike.

use std::collections::BTreeMap;

use trommel_filters::Reader;

use crate::ask::Contents;
use crate::frame::{self, About};

const KIND_DELETE: u8 = 1;
const KIND_RANGE_DELETE: u8 = 2;
const KIND_EXPIRING: u8 = 3;
const KINDS: u8 = 4;
/// The time before the value of a put with expiry. The clock of these stores stands at 0: only what
/// expires then has.
const EXPIRY_BYTES: usize = 8;
const KEY_BYTES_MAX: usize = 1 << 16;
const RESTART_BYTES: usize = 8;
/// Sequence numbers and numbers of logs that a store believes.
const NUMBER_MAX: u64 = 1 << 60;

/// A key's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) sequence: u64,
    pub(crate) kind: u8,
    pub(crate) value: Vec<u8>,
}

/// The entries of a block as a writer makes it: sorted, shared beginnings whole. None: it is none.
pub(crate) fn block(bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut input = Reader::new(bytes);
    let (restart_count, heads_len) = (input.u32().ok()? as usize, input.u32().ok()? as usize);
    let restarts = input.bytes(restart_count.checked_mul(RESTART_BYTES)?).ok()?;
    let mut heads = Reader::new(input.bytes(heads_len).ok()?);
    let mut values = Reader::new(input.bytes(input.left()).ok()?);
    let (restarts, _) = restarts.as_chunks::<RESTART_BYTES>();
    let mut restarts = restarts.iter().peekable();
    let mut entries: Vec<Entry> = Vec::new();
    while heads.left() > 0 {
        let place = [(heads.at() as u32).to_le_bytes(), (values.at() as u32).to_le_bytes()];
        let is_restart = restarts.next_if(|restart| restart[..] == *place.as_flattened()).is_some();
        let entry = entry(&mut heads, &mut values, entries.last(), is_restart)?;
        if entries.is_empty() && !is_restart {
            return None;
        }
        entries.push(entry);
    }
    let is_whole = restarts.next().is_none() && values.left() == 0 && !entries.is_empty();
    is_whole.then_some(entries)
}

fn entry(
    heads: &mut Reader<'_>,
    values: &mut Reader<'_>,
    before: Option<&Entry>,
    is_restart: bool,
) -> Option<Entry> {
    let (shared, rest) = (heads.len().ok()?, heads.len().ok()?);
    let value = heads.len().ok()?;
    let tag = heads.varint().ok()?;
    let (sequence, kind) = (tag >> 3, (tag & 7) as u8);
    let before_key = before.map_or(&[][..], |entry| &entry.key);
    let key = [before_key.get(..shared)?, heads.bytes(rest).ok()?].concat();
    let common = before_key.iter().zip(&key).take_while(|(a, b)| a == b).count();
    let is_right = shared == if is_restart { 0 } else { common };
    let follows = before.is_none_or(|before| {
        (&before.key, !before.sequence) < (&key, !sequence) && before.sequence < NUMBER_MAX
    });
    let value = values.bytes(value).ok()?.to_vec();
    let is_whole = kind != KIND_EXPIRING || value.len() >= EXPIRY_BYTES;
    let is_entry = is_right && follows && kind < KINDS && key.len() <= KEY_BYTES_MAX && is_whole;
    (is_entry && sequence < NUMBER_MAX).then_some(Entry { key, sequence, kind, value })
}

/// What the properties say of a table with these entries. Requires: there are some.
pub(crate) fn about(entries: &[Entry]) -> About {
    let sequences = || entries.iter().map(|entry| entry.sequence);
    let bounds = (sequences().min(), sequences().max());
    let sum = entries.iter().map(|entry| (entry.key.len() + entry.value.len()) as u64).sum();
    About {
        entries: entries.len() as u64,
        deletes: entries.iter().filter(|entry| entry.kind == KIND_DELETE).count() as u64,
        raw_bytes: sum,
        sequences: (bounds.0.unwrap_or(0), bounds.1.unwrap_or(0)),
        first_key: entries[0].key.clone(),
        last_key: entries[entries.len() - 1].key.clone(),
        deleted: None,
    }
}

/// What readers see of these entries: of each key the newest.
pub(crate) fn visible<'e>(entries: impl Iterator<Item = &'e Entry>) -> Contents {
    let mut newest: BTreeMap<&[u8], &Entry> = BTreeMap::new();
    for entry in entries {
        let place = newest.entry(&entry.key).or_insert(entry);
        if place.sequence < entry.sequence {
            *place = entry;
        }
    }
    let value = |entry: &Entry| match entry.kind {
        KIND_DELETE | KIND_RANGE_DELETE => None,
        KIND_EXPIRING => {
            let (time, value) = entry.value.split_first_chunk::<EXPIRY_BYTES>()?;
            (time != &[0; EXPIRY_BYTES]).then(|| value.to_vec())
        }
        _ => Some(entry.value.clone()),
    };
    newest.into_iter().filter_map(|(key, entry)| Some((key.to_vec(), value(entry)?))).collect()
}

/// What readers see of the writes of a log: of each key the newest, unless a range around it was
/// deleted later.
pub(crate) fn visible_of_log(entries: &[Entry]) -> Contents {
    let ranges = || entries.iter().filter(|entry| entry.kind == KIND_RANGE_DELETE);
    let is_hidden = |entry: &Entry| {
        let hides = |range: &Entry| range.key <= entry.key && entry.key < range.value;
        ranges().any(|range| hides(range) && range.sequence > entry.sequence)
    };
    let others = entries.iter().filter(|entry| entry.kind != KIND_RANGE_DELETE);
    visible(others.filter(|entry| !is_hidden(entry)))
}

/// The entries of a log whose every record is whole. None: another log, or one that must be
/// refused.
pub(crate) fn log(file: &[u8], number: u64) -> Option<Vec<Entry>> {
    let (header, payloads) = (file.get(..frame::HEADER_BYTES)?, frame::payloads(file, number)?);
    let (first, groups) = payloads.split_first()?;
    let mut before = Reader::new(first);
    let (_, valid) = (before.varint().ok()?, before.varint().ok()?);
    if header != frame::LOG_HEADER || valid != 0 || before.left() > 0 {
        return None;
    }
    let (mut entries, mut last) = (Vec::new(), 0);
    for group in groups {
        let mut input = Reader::new(group);
        let (_, first, count) = (input.varint().ok()?, input.varint().ok()?, input.varint().ok()?);
        if first <= last || first >= NUMBER_MAX {
            return None;
        }
        for sequence in first..first.checked_add(count)? {
            entries.push(log_entry(&mut input, sequence)?);
            last = sequence;
        }
        input.end().ok()?;
    }
    Some(entries)
}

fn log_entry(input: &mut Reader<'_>, sequence: u64) -> Option<Entry> {
    let kind = input.u8().ok()?;
    let key = input.string().ok()?.to_vec();
    let value = if kind == KIND_DELETE { vec![] } else { input.string().ok()?.to_vec() };
    let is_range = kind != KIND_RANGE_DELETE || (key < value && value.len() <= KEY_BYTES_MAX);
    let is_whole = kind != KIND_EXPIRING || value.len() >= EXPIRY_BYTES;
    let is_entry = kind < KINDS && key.len() <= KEY_BYTES_MAX && is_range && is_whole;
    is_entry.then_some(Entry { key, sequence, kind, value })
}
