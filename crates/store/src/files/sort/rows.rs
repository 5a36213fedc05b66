//! Rows in memory, on their way to be sorted.
//! ```text
//! chunk   | key's length u32 | value's u32 | key | value | ...    a row never crosses chunks
//! index   (head of a key, place of its row), sorted               made when all rows are there
//! ```
//! Invariants: places ascend in the order of the input, so of rows with one key the one with the
//! greatest place is the last. Chunks and index together take no more memory than was given, unless
//! one row alone does.

use trommel_filters::prefetch_at;

use crate::entries::keys::key_head;

/// What stands before key and value.
const LENGTHS_BYTES: usize = 8;
const CHUNK_BYTES_MAX: usize = 1 << 20;
const CHUNK_BYTES_MIN: usize = 1 << 10;
/// So many rows before it is read a row's memory is asked for.
const ROWS_AHEAD: usize = 8;

/// The number of a chunk, and where in it a row begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    chunk: u32,
    at: u32,
}

/// A row of the index: the head of its key, and where it is.
type Indexed = (u64, Place);

/// Rows in the order in which they came.
pub(super) struct Rows {
    memory_bytes: usize,
    chunk_bytes: usize,
    chunks: Vec<Vec<u8>>,
    /// Room of all chunks.
    room_bytes: usize,
    len: usize,
}

impl Rows {
    /// For so many bytes of memory.
    pub(super) fn new(memory_bytes: usize) -> Self {
        let chunk_bytes = (memory_bytes / 16).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        Rows { memory_bytes, chunk_bytes, chunks: Vec::new(), room_bytes: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether this row can be added. The first one always can.
    pub(super) fn has_room(&self, key: &[u8], value: &[u8]) -> bool {
        let bytes = row_bytes(key, value);
        let more = if self.fits_last(bytes) { 0 } else { self.chunk_bytes.max(bytes) };
        let index_bytes = (self.len + 1) * size_of::<Indexed>();
        self.len == 0 || self.room_bytes + more + index_bytes <= self.memory_bytes
    }

    /// Adds a row. Requires: it has room, and its lengths are those that a store takes.
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

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        (self.room_bytes, self.len) = (0, 0);
        self.chunks.clear();
    }

    /// Requires: a row is there.
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

    /// All rows, with the heads of their keys behind the first `prefix` bytes, in the order of
    /// keys, and of places for rows with one key.
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

/// A walk over rows in the order of keys, of those with one key the last one.
pub(super) struct SortedRows {
    rows: Rows,
    index: Vec<Indexed>,
    /// The place in the index of the present row, plus one; 0: before the first.
    next: usize,
}

impl SortedRows {
    /// Before the first row. Requires: all keys begin with the same `prefix` bytes.
    pub(super) fn new(rows: Rows, prefix: usize) -> Self {
        let index = rows.index(prefix);
        SortedRows { rows, index, next: 0 }
    }

    /// The rows, in no order.
    pub(super) fn into_rows(self) -> Rows {
        self.rows
    }

    /// To the next row. False: there is none.
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

    /// Whether the row after this one has the same key. Requires: there is one.
    fn is_replaced(&self, at: usize) -> bool {
        let ((head, place), (next_head, next)) = (self.index[at], self.index[at + 1]);
        head == next_head && self.rows.row(place).0 == self.rows.row(next).0
    }

    /// Key and value. Requires: at a row.
    pub(super) fn row(&self) -> (&[u8], &[u8]) {
        self.rows.row(self.index[self.next - 1].1)
    }
}
