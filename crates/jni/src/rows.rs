//! Rows of a range, a piece at a time.
//! ```text
//! begin --> null: the range is empty, and there is no handle
//!       --> handle: 8 bytes | rows         the handle is 0 if these were all rows
//! next  --> rows                           no rows: the scan has ended
//! ```
//! In a transaction, each piece is a scan of its own. The transaction notes the range that it went
//! over.
//!
//! Invariant: rows that precede an error are given before it, and no rows follow it. What Java had
//! no memory for, rows or an error, is given by the next call.

use std::ops::Bound;
use std::ptr::null_mut;
use std::sync::Arc;

use jni_sys::{jboolean, jbyteArray, jint};
use trommel::{KeyBounds, KeyValue, Keyspace, Scan};

use crate::border::{Handle, number_of};
use crate::bytes::{Room, push_row};
use crate::error::{Failure, Outcome};
use crate::reader::{Reader, Source, bounds, in_snapshot};
use crate::transaction::Open;

/// Bytes of the handle in front of the rows of the first piece.
const HANDLE_BYTES: usize = 8;
/// Initial capacity in bytes of the first piece.
const SHORT_PIECE: usize = 512;

/// When a piece is full. It has one row at least.
#[derive(Clone, Copy)]
struct Limits {
    rows: usize,
    bytes: usize,
}

impl Limits {
    fn of(rows: jint, bytes: jint) -> Limits {
        let number = |number| usize::try_from(number).unwrap_or_default();
        Limits { rows: number(rows), bytes: number(bytes) }
    }

    fn are_reached(self, rows: usize, bytes: usize) -> bool {
        rows > 0 && (rows >= self.rows || bytes >= self.bytes)
    }
}

/// The rows that are still to come.
pub(crate) struct Rows {
    /// None: the scan has ended.
    source: Option<RowSource>,
    is_reverse: bool,
    /// The error that follows the last rows, for every call from then on.
    failed: Option<Failure>,
    /// Rows that were read and not given. The next piece reuses the memory.
    piece: Vec<u8>,
}

#[expect(clippy::large_enum_variant, reason = "one is in each `Rows`, and most are scans")]
enum RowSource {
    Scan(Scan),
    Transaction { open: Arc<Open>, keyspace: Keyspace, left: KeyBounds },
}

impl Rows {
    fn of(reader: &Reader, bounds: KeyBounds, is_reverse: bool) -> Outcome<Rows> {
        let source = match &reader.source {
            Source::Keyspace(keyspace) => RowSource::Scan(keyspace.range(bounds)),
            Source::Snapshot(place) => {
                RowSource::Scan(in_snapshot(place, |snapshot| Ok(snapshot.range(bounds)))?)
            }
            Source::Transaction(open, keyspace) => {
                let (open, keyspace) = (Arc::clone(open), keyspace.clone());
                RowSource::Transaction { open, keyspace, left: bounds }
            }
        };
        Ok(Rows { source: Some(source), is_reverse, failed: None, piece: Vec::new() })
    }

    /// Gives the next piece. It stays until it could be given.
    fn give<T>(&mut self, limits: Limits, give: impl FnOnce(&[u8]) -> Outcome<T>) -> Outcome<T> {
        let mut piece = std::mem::take(&mut self.piece);
        if piece.is_empty() {
            self.fill(&mut piece, limits)?;
        }
        let given = give(&piece);
        if given.is_ok() {
            piece.clear();
        }
        self.piece = piece;
        given
    }

    /// Appends the next piece. An error after some rows is kept for the next call.
    fn fill(&mut self, piece: &mut Vec<u8>, limits: Limits) -> Outcome<()> {
        let begin = piece.len();
        let filled = match &mut self.source {
            None => Ok(true),
            Some(RowSource::Scan(scan)) => fill_from_scan(scan, self.is_reverse, piece, limits),
            Some(RowSource::Transaction { open, keyspace, left }) => {
                let rows = read_ahead(open, keyspace, left.clone(), self.is_reverse, limits);
                rows.and_then(|(rows, is_end)| {
                    if let Some((last, _)) = rows.last() {
                        *left = behind(left, last, self.is_reverse);
                    }
                    rows.iter().try_for_each(|(key, value)| push_row(piece, key, value))?;
                    Ok(is_end)
                })
            }
        };
        match filled {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            Err(failure) => self.failed = Some(failure),
        }
        self.source = None;
        match &self.failed {
            Some(failure) if piece.len() == begin => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    fn has_more(&self) -> bool {
        self.source.is_some() || self.failed.is_some()
    }
}

/// Appends rows of a scan. True: the scan has ended.
fn fill_from_scan(
    scan: &mut Scan,
    is_reverse: bool,
    piece: &mut Vec<u8>,
    limits: Limits,
) -> Outcome<bool> {
    let (begin, mut rows) = (piece.len(), 0);
    while !limits.are_reached(rows, piece.len() - begin) {
        let next = if is_reverse { scan.next_back_lent() } else { scan.next_lent() };
        let Some(row) = next else { return Ok(true) };
        let (key, value) = row?;
        push_row(piece, key, &value)?;
        rows += 1;
    }
    Ok(false)
}

/// Reads rows of a transaction. True: they are the last ones.
fn read_ahead(
    open: &Open,
    keyspace: &Keyspace,
    left: KeyBounds,
    is_reverse: bool,
    limits: Limits,
) -> Outcome<(Vec<KeyValue>, bool)> {
    open.within(keyspace, |it| {
        let (mut scan, mut rows, mut bytes) = (it.range(left), Vec::new(), 0);
        while !limits.are_reached(rows.len(), bytes) {
            let next = if is_reverse { scan.next_back() } else { scan.next() };
            let Some(row) = next else { return Ok((rows, true)) };
            let (key, value) = row?;
            bytes += key.len() + value.len();
            rows.push((key, value));
        }
        Ok((rows, false))
    })
}

/// The rest of a range after a row, in the direction of the scan.
fn behind(bounds: &KeyBounds, last: &[u8], is_reverse: bool) -> KeyBounds {
    match is_reverse {
        true => KeyBounds::from((Bound::Included(bounds.start()), Bound::Excluded(last))),
        false => {
            let end = bounds.end().map_or(Bound::Unbounded, Bound::Excluded);
            KeyBounds::from((Bound::Excluded(last), end))
        }
    }
}

native! {
    "rows" fn rows(
        env,
        of: Handle<Reader>,
        from: jbyteArray,
        from_len: jint,
        to: jbyteArray,
        to_len: jint,
        is_reverse: jboolean,
        rows: jint,
        bytes: jint,
    ) -> jbyteArray {
        let (mut from_room, mut to_room) = (Room::new(), Room::new());
        let from = env.some_bytes(&mut from_room, from, from_len)?;
        let to = env.some_bytes(&mut to_room, to, to_len)?;
        let reader = of.get()?;
        // Most short ranges are empty, and the filter proves it. Then there is nothing to set up.
        if to.is_some() && !reader.may_contain(bounds(from, to))? {
            return Ok(null_mut());
        }
        let mut rows_to_come = Rows::of(reader, bounds(from, to), is_reverse)?;
        let mut piece = Vec::with_capacity(SHORT_PIECE);
        piece.extend_from_slice(&[0; HANDLE_BYTES]);
        rows_to_come.fill(&mut piece, Limits::of(rows, bytes))?;
        if piece.len() == HANDLE_BYTES {
            return Ok(null_mut());
        }
        let handle = match rows_to_come.has_more() {
            true => number_of(Box::new(rows_to_come)),
            false => 0,
        };
        piece[..HANDLE_BYTES].copy_from_slice(&handle.to_le_bytes());
        env.new_bytes(&piece).inspect_err(|_| {
            let handle = Handle::<Rows>::of_number(handle);
            drop(handle.take());
        })
    }
}

native! {
    "nextRows" fn next_rows(env, of: Handle<Rows>, rows: jint, bytes: jint) -> jbyteArray {
        let mut of = of;
        of.get_mut()?.give(Limits::of(rows, bytes), |piece| env.new_bytes(piece))
    }
}

native! {
    "freeRows" fn free_rows(_env, of: Handle<Rows>) -> () {
        drop(of.take()?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { rows: 1, bytes: 1 };

    /// Rows of which the last ones were read.
    fn read(piece: &[u8], failed: Option<Failure>) -> Rows {
        Rows { source: None, is_reverse: false, failed, piece: piece.to_vec() }
    }

    #[test]
    fn rows_stay_until_they_could_be_given() {
        let mut rows = read(b"rows", None);
        for _ in 0..2 {
            let refused = rows.give(LIMITS, |_| Err::<(), _>(Failure::Pending));
            assert!(matches!(refused, Err(Failure::Pending)));
        }
        assert_eq!(rows.give(LIMITS, |piece| Ok(piece.to_vec())).expect("memory"), b"rows");
        assert!(rows.give(LIMITS, |piece| Ok(piece.is_empty())).expect("the end is no error"));
    }

    #[test]
    fn an_error_follows_the_last_rows_and_stays() {
        let mut rows = read(b"rows", Some(Failure::corrupt("damaged")));
        assert_eq!(rows.give(LIMITS, |piece| Ok(piece.to_vec())).expect("rows"), b"rows");
        for _ in 0..2 {
            let failed = rows.give(LIMITS, |_| Ok(())).expect_err("it is damaged");
            assert!(matches!(failed, Failure::Told { .. }));
        }
    }
}
