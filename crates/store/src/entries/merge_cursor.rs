//! Many cursors as one, forward only: what flushes and merges read.
//! ```text
//! cursor 0   a9      c3  d8
//! cursor 1   a4  b7      d2      ->   a9 a4 b7 c3 d8 d2
//! ```
//! Invariant: every cursor of the heap is at an entry; those that came to their ends are gone.

use std::cmp::Ordering;

use crate::entries::cursor::{Cursor, Reads};
use crate::entries::cursor_heap::{AnyCursor, CursorHeap, head, order};
use crate::entries::entry::Entry;
use crate::error::Result;

/// A cursor that is merged with others.
struct Input {
    cursor: AnyCursor,
    /// Its place among the inputs.
    place: usize,
}

/// The entries of all inputs, in order; none is dropped.
pub(crate) struct MergeCursor {
    heap: CursorHeap<Input>,
    /// What the cursors that came to their ends have read.
    reads: Reads,
}

impl Input {
    fn order(&self, other: &Input) -> Ordering {
        order(&*self.cursor, &*other.cursor).then_with(|| self.place.cmp(&other.place))
    }
}

impl MergeCursor {
    /// At the first entry of all. Of inputs that share an entry the first one's comes first.
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

    /// Likewise, of cursors of one kind.
    pub(crate) fn over<C: Cursor + Send + 'static>(
        inputs: impl Iterator<Item = C>,
    ) -> Result<MergeCursor> {
        Self::new(inputs.map(|cursor| Box::new(cursor) as AnyCursor).collect())
    }

    /// The entry. None: past the end of all.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.heap.top()?.cursor.entry()
    }

    /// Which input the entry is of. Past the end of all: none, 0.
    #[inline]
    pub(crate) fn input(&self) -> usize {
        self.heap.top().map_or(0, |input| input.place)
    }

    /// To the entry after. Past the end it stays. After an error the merge cannot go on.
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
