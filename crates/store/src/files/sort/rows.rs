//! Rows in memory, to be sorted.
//! ```text
//! chunk   | key length u32 | value length u32 | key | value | ...    a row never crosses chunks
//! index   (head of a key, place of its row), sorted                  made when all rows are there
//! ```
//! Invariants: places ascend in the order of the input. So of rows with the same key, the one with
//! the greatest place is the last. Chunks and index together stay within the given memory, unless a
//! single row exceeds it.

use trommel_filters::prefetch_at;

use crate::entries::keys::key_head;

/// Bytes of the lengths before key and value.
const LENGTHS_BYTES: usize = 8;
const CHUNK_BYTES_MAX: usize = 1 << 20;
const CHUNK_BYTES_MIN: usize = 1 << 10;
/// A row's memory is prefetched this many rows before it is read.
const ROWS_AHEAD: usize = 8;

/// The place of a row: the number of its chunk, and its offset there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    chunk: u32,
    at: u32,
}

/// An index entry: the head of a row's key, and its place.
type Indexed = (u64, Place);

/// Rows in the order of arrival.
pub(super) struct Rows {
    memory_bytes: usize,
    chunk_bytes: usize,
    chunks: Vec<Vec<u8>>,
    /// Total capacity of all chunks.
    room_bytes: usize,
    len: usize,
}

impl Rows {
    /// Creates a buffer of `memory_bytes` bytes.
    pub(super) fn new(memory_bytes: usize) -> Self {
        let chunk_bytes = (memory_bytes / 16).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        Rows { memory_bytes, chunk_bytes, chunks: Vec::new(), room_bytes: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether this row can be added. The first row always can.
    pub(super) fn has_room(&self, key: &[u8], value: &[u8]) -> bool {
        let bytes = row_bytes(key, value);
        let more = if self.fits_last(bytes) { 0 } else { self.chunk_bytes.max(bytes) };
        let index_bytes = (self.len + 1) * size_of::<Indexed>();
        self.len == 0 || self.room_bytes + more + index_bytes <= self.memory_bytes
    }

    /// Adds a row. Requires: it has room, and a store accepts its lengths.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let bytes = row_bytes(key, value);
        if !self.fits_last(bytes) {
            let room = self.chunk_bytes.max(bytes);
            self.chunks.push(Vec::with_capacity(room));
            self.room_bytes += room;
        }
        let chunk = self.chunks.last_mut().expect("one was added");
        chunk.extend_from_slice(&(key.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&(value.len() as u32).to_le_bytes());
        chunk.extend_from_slice(key);
        chunk.extend_from_slice(value);
        self.len += 1;
    }

    fn fits_last(&self, bytes: usize) -> bool {
        self.chunks.last().is_some_and(|chunk| chunk.capacity() - chunk.len() >= bytes)
    }

    /// Removes all rows.
    pub(super) fn clear(&mut self) {
        (self.room_bytes, self.len) = (0, 0);
        self.chunks.clear();
    }

    /// Requires: a row is at `place`.
    #[inline]
    fn row(&self, place: Place) -> (&[u8], &[u8]) {
        let row = &self.chunks[place.chunk as usize][place.at as usize..];
        let (lengths, bytes) = row.split_at(LENGTHS_BYTES);
        let length = |at: usize| {
            let length = lengths[at..at + 4].try_into().expect("four bytes");
            u32::from_le_bytes(length) as usize
        };
        let (key, rest) = bytes.split_at(length(0));
        (key, &rest[..length(4)])
    }

    /// Builds the index, sorted by key and, for rows with the same key, by place. Heads are those
    /// of the keys behind their first `prefix` bytes.
    fn index(&self, prefix: usize) -> Vec<Indexed> {
        let mut index = Vec::with_capacity(self.len);
        for (number, chunk) in self.chunks.iter().enumerate() {
            let mut at = 0;
            while at < chunk.len() {
                let place = Place { chunk: number as u32, at: at as u32 };
                let (key, value) = self.row(place);
                index.push((key_head(&key[prefix..]), place));
                at += row_bytes(key, value);
            }
        }
        index.sort_unstable_by(|(one_head, one), (other_head, other)| {
            let heads = one_head.cmp(other_head);
            heads.then_with(|| {
                let keys = self.row(*one).0.cmp(self.row(*other).0);
                keys.then_with(|| one.cmp(other))
            })
        });
        index
    }
}

fn row_bytes(key: &[u8], value: &[u8]) -> usize {
    LENGTHS_BYTES + key.len() + value.len()
}

/// Iterates over rows in key order. Of rows with the same key it returns only the last.
pub(super) struct SortedRows {
    rows: Rows,
    index: Vec<Indexed>,
    /// The index of the current row plus one. 0: before the first.
    next: usize,
}

impl SortedRows {
    /// Positions before the first row. Requires: all keys share their first `prefix` bytes.
    pub(super) fn new(rows: Rows, prefix: usize) -> Self {
        let index = rows.index(prefix);
        SortedRows { rows, index, next: 0 }
    }

    /// Returns the rows, not sorted.
    pub(super) fn into_rows(self) -> Rows {
        self.rows
    }

    /// Moves to the next row. False: there is none.
    pub(super) fn next_row(&mut self) -> bool {
        self.next += 1;
        while self.next < self.index.len() && self.is_replaced(self.next - 1) {
            self.next += 1;
        }
        if let Some(&(_, ahead)) = self.index.get(self.next + ROWS_AHEAD) {
            let row = &self.rows.chunks[ahead.chunk as usize][ahead.at as usize..];
            prefetch_at(row.as_ptr(), 1);
        }
        self.next <= self.index.len()
    }

    /// Whether the next row has the same key. Requires: there is a next row.
    fn is_replaced(&self, at: usize) -> bool {
        let ((head, place), (next_head, next)) = (self.index[at], self.index[at + 1]);
        head == next_head && self.rows.row(place).0 == self.rows.row(next).0
    }

    /// Returns key and value. Requires: at a row.
    pub(super) fn row(&self) -> (&[u8], &[u8]) {
        self.rows.row(self.index[self.next - 1].1)
    }
}
