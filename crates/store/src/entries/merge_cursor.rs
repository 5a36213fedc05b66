//! A forward cursor over many cursors: the input of flushes and merges.
//! ```text
//! cursor 0   a9      c3  d8
//! cursor 1   a4  b7      d2      ->   a9 a4 b7 c3 d8 d2
//! ```
//! Invariant: every cursor in the heap is at an entry. Exhausted cursors are removed.

use std::cmp::Ordering;

use crate::entries::cursor::{Cursor, Reads};
use crate::entries::cursor_heap::{AnyCursor, CursorHeap, head, order};
use crate::entries::entry::Entry;
use crate::error::Result;

/// One of the merged cursors.
struct Input {
    cursor: AnyCursor,
    /// Its index among the inputs.
    place: usize,
}

/// The entries of all inputs, in order. None is dropped.
pub(crate) struct MergeCursor {
    heap: CursorHeap<Input>,
    /// What exhausted cursors have read.
    reads: Reads,
}

impl Input {
    fn order(&self, other: &Input) -> Ordering {
        order(&*self.cursor, &*other.cursor).then_with(|| self.place.cmp(&other.place))
    }
}

impl MergeCursor {
    /// Creates a merge cursor at the first entry. If inputs share an entry, the earlier input's
    /// comes first.
    pub(crate) fn new(inputs: Vec<AnyCursor>) -> Result<MergeCursor> {
        let (heap, reads) = (CursorHeap::new(Ordering::Less), Reads::default());
        let mut merged = MergeCursor { heap, reads };
        for (place, mut cursor) in inputs.into_iter().enumerate() {
            cursor.seek_first()?;
            let mut input = Input { cursor, place };
            match head(&*input.cursor) {
                Some(head) => merged.heap.push(head, input, Input::order),
                None => merged.reads += input.cursor.reads(),
            }
        }
        Ok(merged)
    }

    /// Does the same for cursors of one type.
    pub(crate) fn over<C: Cursor + Send + 'static>(
        inputs: impl Iterator<Item = C>,
    ) -> Result<MergeCursor> {
        Self::new(inputs.map(|cursor| Box::new(cursor) as AnyCursor).collect())
    }

    /// The current entry. `None`: past the end of all inputs.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.heap.top()?.cursor.entry()
    }

    /// Returns the index of the current entry's input; 0 past the end.
    #[inline]
    pub(crate) fn input(&self) -> usize {
        self.heap.top().map_or(0, |input| input.place)
    }

    /// Moves to the next entry. Past the end it stays there. After an error the cursor is unusable.
    pub(crate) fn next(&mut self) -> Result<()> {
        let Some(top) = self.heap.top_mut() else { return Ok(()) };
        top.cursor.next()?;
        let head = head(&*top.cursor);
        if let Some(mut ended) = self.heap.settle_top(head, Input::order) {
            self.reads += ended.cursor.reads();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::cursor::checks::{Owned, any_entries, entry, sorted};
    use crate::entries::entry::Sequence;
    use crate::entries::memtable::Memtable;
    use crate::error::Error;
    use crate::files::table::tests::{TableFiles, options};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn memtable(list: &[Owned]) -> AnyCursor {
        let memtable = Arc::new(Memtable::new(1 << 10));
        for (key, sequence, kind, value) in list {
            memtable.insert(key, Sequence(*sequence), *kind, value);
        }
        Box::new(memtable.cursor())
    }

    proptest! {
        #[test]
        fn a_merge_is_the_sorted_union(
            list in any_entries(200),
            places in prop::collection::vec(0usize..7, 200),
        ) {
            let list = sorted(list);
            let table_files = TableFiles::new(0);
            let mut parts: Vec<Vec<Owned>> = vec![Vec::new(); 7];
            list.iter().zip(places).for_each(|(owned, place)| parts[place].push(owned.clone()));
            let inputs = parts.iter().enumerate().map(|(number, part)| match number % 2 {
                1 if !part.is_empty() => Box::new(table_files.table(part, &options()).cursor()) as AnyCursor,
                _ => memtable(part),
            });
            let mut merged = MergeCursor::new(inputs.collect()).unwrap();
            for owned in &list {
                prop_assert_eq!(merged.entry(), Some(entry(owned)));
                prop_assert_eq!(merged.heap.top().unwrap().cursor.value(), owned.3.clone());
                merged.next().unwrap();
            }
            prop_assert_eq!(merged.entry(), None);
            merged.next().unwrap();
            let tables = parts.iter().skip(1).step_by(2).filter(|part| !part.is_empty()).count();
            prop_assert!(merged.reads.disk_reads >= tables as u64);
        }
    }

    #[test]
    fn a_merge_of_nothing_is_empty() {
        assert!(MergeCursor::new(vec![]).unwrap().entry().is_none());
        let merged = MergeCursor::new(vec![memtable(&[]), memtable(&[])]).unwrap();
        assert!(merged.entry().is_none());
    }

    #[test]
    fn damage_ends_a_merge() {
        let table_files = TableFiles::new(0);
        let list: Vec<Owned> =
            (0..200u8).map(|number| TableFiles::put(&[number], 1, &[number; 40])).collect();
        let table = table_files.table(&list, &options());
        table_files.disk.flip_bit(table.path(), 2_000, 0);
        let mut merged = MergeCursor::new(vec![Box::new(table.cursor())]).unwrap();
        let error = loop {
            if let Err(error) = merged.next() {
                break error;
            }
            assert!(merged.entry().is_some(), "the damage was not seen");
        };
        assert!(matches!(error, Error::Corrupt { path, .. } if path == table.path()));
    }
}
