//! The distinct user keys of runs and memtables, for building guards.

use std::collections::BTreeMap;

use trommel_filters::FlushNumber;

use crate::cursor::Cursor;
use crate::entry::Sequence;
use crate::error::Result;

/// Byte strings behind each other in one allocation.
#[derive(Default)]
pub(crate) struct KeyList {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyList {
    pub(crate) fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|place| self.get(place))
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|place| self.get(place))
    }

    fn get(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.bytes[start..self.ends[place]]
    }
}

/// Calls `f` with each entry's key and sequence number, from the first entry on.
pub(crate) fn for_each_entry(
    cursor: &mut dyn Cursor,
    mut f: impl FnMut(&[u8], Sequence) -> Result<()>,
) -> Result<()> {
    cursor.seek_first()?;
    while let Some(entry) = cursor.entry() {
        f(entry.key, entry.sequence)?;
        cursor.next()?;
    }
    Ok(())
}

/// Calls `f` with each user key once, ascending.
pub(crate) fn for_each_key(cursor: &mut dyn Cursor, mut f: impl FnMut(&[u8])) -> Result<()> {
    let mut last: Option<Vec<u8>> = None;
    for_each_entry(cursor, |key, _| {
        match &mut last {
            Some(last) if last == key => return Ok(()),
            Some(last) => key.clone_into(last),
            None => last = Some(key.to_vec()),
        }
        f(key);
        Ok(())
    })
}

/// The keys of each flush, ascending and distinct, flushes in number order.
pub(crate) fn keys_by_flush(
    cursor: &mut dyn Cursor,
    flush_of: impl Fn(Sequence) -> Result<FlushNumber>,
) -> Result<BTreeMap<FlushNumber, KeyList>> {
    let mut lists: BTreeMap<FlushNumber, KeyList> = BTreeMap::new();
    for_each_entry(cursor, |key, sequence| {
        let list = lists.entry(flush_of(sequence)?).or_default();
        if list.last() != Some(key) {
            list.push(key);
        }
        Ok(())
    })?;
    Ok(lists)
}
