//! The distinct user keys of runs and memtables, for building guards.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use trommel_filters::{FlushNumber, Inserter, KeyList, PartBuilder, Recoder};

use crate::entries::cursor::Cursor;
use crate::entries::entry::{Entry, Sequence};
use crate::error::{Error, Result};
use crate::files::run::Run;
use crate::sync::Arc;

/// A consumer of sorted keys that is faster with keys of eight bytes.
pub(crate) trait TakeKeys {
    fn take(&mut self, key: &[u8]);
    fn take_words(&mut self, words: &[[u8; 8]]);
}

macro_rules! takes_keys {
    ($($filter:ty),*) => {$(
        impl TakeKeys for $filter {
            fn take(&mut self, key: &[u8]) {
                self.push(key);
            }

            fn take_words(&mut self, words: &[[u8; 8]]) {
                self.push_words(words);
            }
        }
    )*};
}

takes_keys!(PartBuilder, Inserter, Recoder);

/// Consecutive keys of a list.
pub(crate) struct Keys<'a> {
    pub(crate) list: &'a KeyList,
    pub(crate) places: Range<usize>,
}

impl Keys<'_> {
    /// Adds the keys to a filter.
    pub(crate) fn give_to(self, filter: &mut impl TakeKeys) {
        let Keys { list, places } = self;
        match list.words(places.clone()) {
            Some(words) => filter.take_words(words),
            None => places.for_each(|place| filter.take(list.get(place))),
        }
    }
}

/// Calls `f` with each entry, from the first one on.
pub(crate) fn for_each_entry(
    cursor: &mut dyn Cursor,
    mut f: impl FnMut(&Entry<'_>) -> Result<()>,
) -> Result<()> {
    cursor.seek_first()?;
    while let Some(entry) = cursor.entry() {
        f(&entry)?;
        cursor.next()?;
    }
    Ok(())
}

/// Calls `f` once with each user key of a run, ascending. Reads the blocks past the cache. Returns
/// an error if keys descend somewhere.
pub(crate) fn for_each_key(run: &Arc<Run>, mut f: impl FnMut(&[u8])) -> Result<()> {
    let mut last: Option<Vec<u8>> = None;
    for_each_entry(&mut run.cursor().end_to_end(), |&Entry { key, .. }| {
        match &mut last {
            Some(last) if !is_next(last, key, run.path())? => return Ok(()),
            Some(last) => key.clone_into(last),
            None => last = Some(key.to_vec()),
        }
        f(key);
        Ok(())
    })
}

/// Returns whether `key` differs from `last`, the key before it. Checksums do not prove order, so
/// it is checked before anything is built on it.
fn is_next(last: &[u8], key: &[u8], path: &Path) -> Result<bool> {
    match last.cmp(key) {
        Ordering::Less => Ok(true),
        Ordering::Equal => Ok(false),
        Ordering::Greater => {
            let what = format!("key {} is out of order", key.escape_ascii());
            Err(Error::corrupt(path, 0, what))
        }
    }
}

/// Returns an error that names `path` if `key` is less than `last`, which was read before it.
pub(crate) fn is_in_order(last: &[u8], key: &[u8], path: &Path) -> Result<()> {
    is_next(last, key, path).map(drop)
}

/// Collects the keys of each flush in a run, ascending and distinct. Reads the blocks past the
/// cache. Returns an error if keys descend somewhere.
pub(crate) fn keys_by_flush(
    run: &Arc<Run>,
    flush_of: impl Fn(Sequence) -> Result<FlushNumber>,
) -> Result<BTreeMap<FlushNumber, KeyList>> {
    let mut lists: BTreeMap<FlushNumber, KeyList> = BTreeMap::new();
    for_each_entry(&mut run.cursor().end_to_end(), |&Entry { key, sequence, .. }| {
        let list = lists.entry(flush_of(sequence)?).or_default();
        if list.last().map_or(Ok(true), |last| is_next(last, key, run.path()))? {
            list.push(key);
        }
        Ok(())
    })?;
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trommel_filters::GrfOptions;

    fn image(give: impl FnOnce(&mut PartBuilder)) -> Vec<u8> {
        let mut builder = PartBuilder::new(&GrfOptions::default());
        give(&mut builder);
        let mut image = Vec::new();
        builder.finish(FlushNumber(1)).write_image(&mut image);
        image
    }

    /// Keys of eight bytes take a separate path, but only if all keys have that length.
    #[test]
    fn a_filter_gets_the_same_keys_whatever_their_lengths() {
        let words: Vec<Vec<u8>> =
            (0..3000u64).map(|i| ((i * i) << 20).to_be_bytes().to_vec()).collect();
        let mut mixed = words.clone();
        mixed[1234].push(7);
        let shorter = words.iter().map(|word| word[..7].to_vec()).collect();
        let mut list = KeyList::default();
        for keys in [&mixed, &words, &shorter] {
            list.clear();
            keys.iter().for_each(|key| list.push(key));
            for places in [0..list.len(), 0..0, 1200..1201, 700..2999] {
                let expected = image(|filter| {
                    keys[places.clone()].iter().for_each(|key| filter.push(key));
                });
                assert!(
                    image(|filter| Keys { list: &list, places: places.clone() }.give_to(filter))
                        == expected
                );
            }
        }
    }
}
