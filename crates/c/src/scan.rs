//! Scans: packed rows in the caller's buffer, or one row at a time.
//! ```text
//! buffer   key len | value len | key | value   key len | ...      lengths: 4 bytes, low first
//! scan     waiting: a row that did not fit       failed: an error behind rows that were given
//! ```
//! Invariant: each row is returned once, in either way.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null;
use std::sync::Arc;

use store::{Error, Keyspace, Result, Scan, Transaction, TransactionScan, Value};

use crate::border::{Outcome, bytes, copy_to, handle, handle_mut, out, places};
use crate::bounds::{OF_SCAN, TROMMEL_KEYS_ONLY, TROMMEL_REVERSE, bounds, trommel_range};
use crate::db::trommel_db;
use crate::error::{Failure, trommel_error};
use crate::keyspace::trommel_keyspace;

/// Bytes of a row before its key.
const HEAD_BYTES: usize = 8;

/// The rows of a range, as of the moment when the scan began.
///
/// Threads: one at a time, not always the same one.
pub struct trommel_scan {
    source: Source,
    reverse: bool,
    /// A row that did not fit into the buffer.
    waiting: Option<(Vec<u8>, Value)>,
    failed: Option<Error>,
    /// The row that the caller sees now.
    shown: (Vec<u8>, Value),
}

#[expect(clippy::large_enum_variant, reason = "one is in each scan, which is boxed")]
enum Source {
    Store(Scan),
    Transaction(OwnedScan),
}

/// A transaction's scan, with what it borrows.
struct OwnedScan {
    /// Dropped first.
    scan: TransactionScan<'static>,
    _transaction: Arc<Transaction>,
    _keyspace: Arc<Keyspace>,
}

impl OwnedScan {
    fn new(transaction: Arc<Transaction>, keyspace: Keyspace, bounds: store::KeyBounds) -> Self {
        let keyspace = Arc::new(keyspace);
        // SAFETY: both stay where they are as long as `OwnedScan` has its counts of them, which
        // it gives up behind the scan. The scan is never moved out of it.
        let (of, in_keyspace): (&'static Transaction, &'static Keyspace) =
            unsafe { (&*Arc::as_ptr(&transaction), &*Arc::as_ptr(&keyspace)) };
        let scan = of.of(in_keyspace).range(bounds);
        OwnedScan { scan, _transaction: transaction, _keyspace: keyspace }
    }
}

/// What a call has put into the buffer.
struct Filled {
    rows: usize,
    /// If there are no rows: the bytes that the next row needs; 0: there is no next row.
    bytes: usize,
}

/// The result for the next row.
enum Next {
    Given(usize),
    TooLong(usize),
    End,
}

impl trommel_scan {
    fn of(source: Source, flags: u32) -> Box<trommel_scan> {
        let reverse = flags & TROMMEL_REVERSE != 0;
        let shown = (Vec::new(), Value::empty());
        Box::new(trommel_scan { source, reverse, waiting: None, failed: None, shown })
    }

    pub(crate) fn of_store(scan: Scan, flags: u32) -> Box<trommel_scan> {
        trommel_scan::of(Source::Store(scan), flags)
    }

    pub(crate) fn of_transaction(
        transaction: Arc<Transaction>,
        keyspace: Keyspace,
        bounds: store::KeyBounds,
        flags: u32,
    ) -> Box<trommel_scan> {
        let scan = OwnedScan::new(transaction, keyspace, bounds);
        trommel_scan::of(Source::Transaction(scan), flags)
    }

    /// Advances by one row. Returns the result of `take`; None: the scan has ended.
    fn step<T>(&mut self, take: impl FnOnce(&[u8], Value) -> T) -> Option<Result<T>> {
        if let Some((key, value)) = self.waiting.take() {
            return Some(Ok(take(&key, value)));
        }
        match &mut self.source {
            Source::Store(scan) => {
                let row = if self.reverse { scan.next_back_lent() } else { scan.next_lent() };
                Some(row?.map(|(key, value)| take(key, value)))
            }
            Source::Transaction(own) => {
                let scan = &mut own.scan;
                let row = if self.reverse { scan.next_back_lent() } else { scan.next_lent() };
                Some(row?.map(|(key, value)| take(key, value)))
            }
        }
    }

    /// Puts the next row at the beginning of a buffer, if it fits.
    fn next_into(&mut self, buffer: &mut [MaybeUninit<u8>]) -> Result<Next> {
        let mut waits = None;
        let row = self.step(|key, value| {
            let needed = HEAD_BYTES + key.len() + value.len();
            if needed > buffer.len() {
                waits = Some((key.to_vec(), value));
                return Next::TooLong(needed);
            }
            put_row(buffer, key, &value);
            Next::Given(needed)
        });
        self.waiting = waits;
        row.unwrap_or(Ok(Next::End))
    }

    fn fill(&mut self, buffer: &mut [MaybeUninit<u8>]) -> Outcome<Filled> {
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        let mut filled = Filled { rows: 0, bytes: 0 };
        loop {
            match self.next_into(&mut buffer[filled.bytes..]) {
                Ok(Next::Given(bytes)) => {
                    filled.rows += 1;
                    filled.bytes += bytes;
                }
                Ok(Next::TooLong(bytes)) if filled.rows == 0 => {
                    return Ok(Filled { rows: 0, bytes });
                }
                Ok(Next::TooLong(_) | Next::End) => return Ok(filled),
                Err(error) if filled.rows == 0 => return Err(error.into()),
                Err(error) => {
                    // The rows before the error are returned first.
                    self.failed = Some(error);
                    return Ok(filled);
                }
            }
        }
    }

    /// Advances by one row, and shows it. False: the scan has ended.
    fn show(&mut self) -> Outcome<bool> {
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        let (mut shown_key, _) = std::mem::take(&mut self.shown);
        let row = self.step(|key, value| {
            key.clone_into(&mut shown_key);
            value
        });
        let Some(value) = row.transpose()? else { return Ok(false) };
        self.shown = (shown_key, value);
        Ok(true)
    }

    fn seek(&mut self, key: &[u8]) -> Outcome<()> {
        let Source::Store(scan) = &mut self.source else {
            return Err(Failure::argument(
                "the scan of a transaction does not seek: begin another",
            ));
        };
        match self.reverse {
            true => scan.seek_back(key),
            false => scan.seek(key),
        }
        let passed = |(waiting, _): &(Vec<u8>, Value)| match self.reverse {
            true => &**waiting > key,
            false => &**waiting < key,
        };
        if self.waiting.as_ref().is_some_and(passed) {
            self.waiting = None;
        }
        Ok(())
    }
}

/// Packs a row. Requires: the buffer has room for it.
fn put_row(buffer: &mut [MaybeUninit<u8>], key: &[u8], value: &[u8]) {
    let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect("shorter than 4 GiB").to_le_bytes();
    let mut rest = buffer;
    for part in [&len(key)[..], &len(value), key, value] {
        let (room, behind) = rest.split_at_mut(part.len());
        copy_to(room, part);
        rest = behind;
    }
}

/// Begins a scan of a range. trommel_scan_next or trommel_scan_row returns its rows. `flags`: the
/// flags of the range, TROMMEL_REVERSE, TROMMEL_KEYS_ONLY. It sees the store as it is now, whatever
/// is written meanwhile. Free it with trommel_scan_free.
///
/// Threads: any. Errors: TROMMEL_ARGUMENT. Errors of reading come with the rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_scan_begin(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    range: *const trommel_range,
    flags: u32,
    error: *mut *mut trommel_error,
) -> *mut trommel_scan {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        let scan = keyspace.range(bounds(range, flags, OF_SCAN)?);
        let scan = if flags & TROMMEL_KEYS_ONLY != 0 { scan.keys_only() } else { scan };
        Ok(trommel_scan::of_store(scan, flags))
    })
}

/// Fills a buffer with as many of the next rows as fit, one behind the other. A row is the lengths
/// of its key and of its value, its key and its value. A length has 4 bytes, little-endian.
/// trommel_row reads rows. `rows`: set to the number of rows. `len`: set to their bytes.
///
/// If `rows` and `len` are 0, the scan has ended. If only `rows` is 0, the next row needs `len`
/// bytes, which exceeds the buffer's capacity. Then nothing was written, and the row comes next.
///
/// Threads: one at a time. Errors: TROMMEL_IO, TROMMEL_CORRUPT, TROMMEL_CLOSED,
/// TROMMEL_KEYSPACE_DROPPED, TROMMEL_GONE. Rows before an error are returned first. The scan ends
/// after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_scan_next(
    scan: *mut trommel_scan,
    buffer: *mut c_void,
    capacity: usize,
    len: *mut usize,
    rows: *mut usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (len, rows) = (out("len", len)?, out("rows", rows)?);
        let buffer = places("buffer", buffer.cast(), capacity)?;
        let filled = handle_mut("scan", scan)?.fill(buffer)?;
        len.set(filled.bytes);
        rows.set(filled.rows);
        Ok(())
    })
}

/// Reads a row from a buffer that trommel_scan_next has filled. `place`: the offset of the row,
/// from 0 on; it is advanced behind the row. `len`: as trommel_scan_next set it. Returns false if
/// there is no complete row. Key and value point into the buffer.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_row(
    buffer: *const c_void,
    len: usize,
    place: *mut usize,
    key: *mut *const c_void,
    key_len: *mut usize,
    value: *mut *const c_void,
    value_len: *mut usize,
) -> bool {
    plain!(false, {
        let row = handle("place", place).and_then(|at| Ok((*at, bytes("buffer", buffer, len)?)));
        let row = row.ok().and_then(|(at, buffer)| row_at(buffer, at));
        if let Some((found_key, found_value, behind)) = row {
            place.write(behind);
            crate::border::out_if(key).set(found_key.as_ptr().cast());
            crate::border::out_if(key_len).set(found_key.len());
            crate::border::out_if(value).set(found_value.as_ptr().cast());
            crate::border::out_if(value_len).set(found_value.len());
        }
        row.is_some()
    })
}

/// Returns the row at an offset, and the offset behind it. None: there is no complete row.
pub(crate) fn row_at(buffer: &[u8], at: usize) -> Option<(&[u8], &[u8], usize)> {
    let (key_len, rest) = buffer.get(at..)?.split_first_chunk::<4>()?;
    let (value_len, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*key_len) as usize)?;
    let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_len) as usize)?;
    Some((key, value, buffer.len() - rest.len()))
}

/// Returns the next row alone. Key and value are valid until the scan's next call. At the end,
/// `key` is NULL. For many rows, trommel_scan_next costs less per row.
///
/// Threads: one at a time. Errors: as of trommel_scan_next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_scan_row(
    scan: *mut trommel_scan,
    key: *mut *const c_void,
    key_len: *mut usize,
    value: *mut *const c_void,
    value_len: *mut usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (key, key_len) = (out("key", key)?, out("key_len", key_len)?);
        let (value, value_len) = (out("value", value)?, out("value_len", value_len)?);
        let scan = handle_mut("scan", scan)?;
        let (shown_key, shown_value) = match scan.show()? {
            true => (Some(&*scan.shown.0), &*scan.shown.1),
            false => (None, &[][..]),
        };
        key.set(shown_key.map_or(null(), |key| key.as_ptr().cast()));
        key_len.set(shown_key.map_or(0, <[u8]>::len));
        value.set(shown_value.as_ptr().cast());
        value_len.set(shown_value.len());
        Ok(())
    })
}

/// Seeks to a key. The next row is the first one at or after the key that was not returned yet. In
/// reverse, it is the last such row at or before the key. A scan moves in one direction and never
/// returns to a key that it has passed.
///
/// Threads: one at a time. Errors: TROMMEL_ARGUMENT: it is the scan of a transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_scan_seek(
    scan: *mut trommel_scan,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let key = bytes("key", key, key_len)?;
        handle_mut("scan", scan)?.seek(key)
    })
}

/// Frees a scan. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_scan_free(scan: *mut trommel_scan) {
    free!(scan);
}
