//! Goes through a part's entries in key order, forward or backward, each with a bound on its keys.
//! ```text
//! bucket by bucket:  cells of the base and entries of the overlay -> [least view .. greatest view] code, sorted
//! forward            next entry if its least view is at most the view of the key in hand, or its bucket before
//! backward           the same with greatest views, mirrored
//! ```
//! Invariant: for each key of the part within the cursor's range, its code is given at or before the key itself.

use super::Part;
use super::place::{FRACTION_BITS, place};
use crate::filter::Untraced;
use crate::shape::Span;

/// An entry with the views that its keys can have.
#[derive(Clone, Copy)]
struct Bounded {
    low: u64,
    high: u64,
    code: Span,
}

/// A key's bucket and its view in that bucket's list.
type Position = ((usize, usize), u64);

/// The position of a key that probably lies in the bucket where a cursor is.
fn position_near(part: &Part, bucket: (usize, usize), key: &[u8]) -> Position {
    match part.base().view_within(bucket, key) {
        Some(view) => (bucket, view),
        None => position(part, key),
    }
}

fn position(part: &Part, key: &[u8]) -> Position {
    let site = part.base().locate(key, &mut Untraced);
    (site.bucket_key(), site.view)
}

/// Decodes the entries of one bucket. A base cell that follows another one gives the same code.
/// Leaves out those with the code `muted`.
fn load_bucket(
    part: &Part,
    bucket: (usize, usize),
    muted: Option<Span>,
    (cells, entries): (&mut Vec<(u64, u64)>, &mut Vec<Bounded>),
) {
    entries.clear();
    cells.clear();
    part.base().cell_bounds(bucket, cells);
    if let Some(code) = part.base_code() {
        entries.extend(cells.iter().map(|&(low, high)| Bounded { low, high, code }));
    }
    let bounds = part.base().fraction_bounds(bucket, cells);
    part.overlay().for_each(part.base(), bucket, |fraction, bits, code| {
        let (low, high) = match &bounds {
            Some(bounds) => bounds.of(fraction, bits),
            None => edge_views(bucket.1, fraction, bits),
        };
        entries.push(Bounded { low, high, code });
    });
    entries.retain(|entry| Some(entry.code) != muted);
}

/// The views of keys at an edge with a fraction of `bits` bits: there places are views.
fn edge_views(bucket: usize, fraction: u64, bits: usize) -> (u64, u64) {
    let low = u64::from(place(bucket, fraction << (FRACTION_BITS - bits)));
    (low, low | ((1 << (FRACTION_BITS - bits)) - 1))
}

/// The codes of the entries from some key on, in key order.
pub struct Cursor {
    part: Part,
    bucket: (usize, usize),
    entries: Vec<Bounded>,
    /// Of the bucket's keys; kept for its memory.
    cells: Vec<(u64, u64)>,
    next: usize,
    muted: Option<Span>,
}

impl Cursor {
    pub(super) fn new(part: Part, from: &[u8]) -> Self {
        let (bucket, view) = position(&part, from);
        let (entries, cells) = (Vec::new(), Vec::new());
        let mut cursor = Cursor { part, bucket, entries, cells, next: 0, muted: None };
        cursor.load(bucket);
        cursor.entries.retain(|entry| entry.high >= view);
        cursor
    }

    fn load(&mut self, bucket: (usize, usize)) {
        (self.bucket, self.next) = (bucket, 0);
        let room = (&mut self.cells, &mut self.entries);
        load_bucket(&self.part, bucket, self.muted, room);
        self.entries.sort_unstable_by_key(|entry| entry.low);
    }

    /// Gives `code` no more: what it stands for is known. One code at a time.
    pub fn mute(&mut self, code: Span) {
        self.muted = Some(code);
        self.entries.drain(..self.next);
        self.entries.retain(|entry| entry.code != code);
        self.next = 0;
    }

    /// The code of the next entry, if a key of it may be at most `key` (None: no bound). None: no entry that is
    /// left has a key from the cursor's start up to `key`; a later call with a greater key goes on.
    pub fn next_at_most(&mut self, key: Option<&[u8]>) -> Option<Span> {
        let limit = key.map(|key| position_near(&self.part, self.bucket, key));
        loop {
            if let Some(entry) = self.entries.get(self.next) {
                let within = limit.is_none_or(|(bucket, view)| {
                    self.bucket < bucket || self.bucket == bucket && entry.low <= view
                });
                self.next += usize::from(within);
                return within.then_some(entry.code);
            }
            let after = self.part.base().bucket_after(self.bucket)?;
            if limit.is_some_and(|(bucket, _)| bucket < after) {
                return None;
            }
            self.load(after);
        }
    }
}

/// The codes of the entries up to some key, in reverse key order.
pub struct CursorBack {
    part: Part,
    bucket: (usize, usize),
    entries: Vec<Bounded>,
    /// Of the bucket's keys; kept for its memory.
    cells: Vec<(u64, u64)>,
    next: usize,
    muted: Option<Span>,
}

impl CursorBack {
    pub(super) fn new(part: Part, from: Option<&[u8]>) -> Self {
        let end = (part.base().last_bucket(), u64::MAX);
        let (bucket, view) = from.map_or(end, |from| position(&part, from));
        let (entries, cells) = (Vec::new(), Vec::new());
        let mut cursor = CursorBack { part, bucket, entries, cells, next: 0, muted: None };
        cursor.load(bucket);
        cursor.entries.retain(|entry| entry.low <= view);
        cursor
    }

    fn load(&mut self, bucket: (usize, usize)) {
        (self.bucket, self.next) = (bucket, 0);
        let room = (&mut self.cells, &mut self.entries);
        load_bucket(&self.part, bucket, self.muted, room);
        self.entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.high));
    }

    /// Gives `code` no more: what it stands for is known. One code at a time.
    pub fn mute(&mut self, code: Span) {
        self.muted = Some(code);
        self.entries.drain(..self.next);
        self.entries.retain(|entry| entry.code != code);
        self.next = 0;
    }

    /// The code of the next entry, if a key of it may be at least `key` (None: no bound). None: no entry that is
    /// left has a key from `key` up to the cursor's start; a later call with a smaller key goes on.
    pub fn next_at_least(&mut self, key: Option<&[u8]>) -> Option<Span> {
        let limit = key.map(|key| position_near(&self.part, self.bucket, key));
        loop {
            if let Some(entry) = self.entries.get(self.next) {
                let within = limit.is_none_or(|(bucket, view)| {
                    self.bucket > bucket || self.bucket == bucket && entry.high >= view
                });
                self.next += usize::from(within);
                return within.then_some(entry.code);
            }
            let before = self.part.base().bucket_before(self.bucket)?;
            if limit.is_some_and(|(bucket, _)| bucket > before) {
                return None;
            }
            self.load(before);
        }
    }
}
