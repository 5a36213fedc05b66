//! Decompresses untrusted bytes.
//! ```text
//! form, body -> claimed length -> checked -> memory -> filled exactly
//! ```
//! Invariant: memory is allocated only for a claimed length that the body's own length makes
//! plausible. The decoder must report the same length before it runs, if its format has one.

use std::cell::Cell;

use trommel_filters::{Corrupt, Reader};

use super::form::{RATIO_MAX, Unreadable, forms};
#[cfg(not(feature = "zstd"))]
use super::without_zstd as zstd;
#[cfg(feature = "zstd")]
use super::zstd;
use crate::storage::traits::zeroed;

/// Maximum length of the buffer that a thread keeps.
const ROOM_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Decompresses a body and calls `then` with its bytes. `len_max` is the maximum length of a piece.
/// A thread allocates nothing for pieces of ordinary length, once it has read one of that length.
pub(crate) fn unpack<T>(
    (form, body): (u8, &[u8]),
    dictionary: Option<&zstd::Dictionary>,
    len_max: u64,
    then: impl FnOnce(&[u8]) -> Result<T, Corrupt>,
) -> Result<T, Unreadable> {
    let wrong = Unreadable::Damaged("a block that does not decompress");
    if form == forms::PLAIN {
        return Ok(then(body)?);
    }
    if form > forms::ZSTD_WITH_DICTIONARY {
        return Err(Unreadable::Damaged("a compression that is not known"));
    }
    let mut input = Reader::new(body);
    let len = input.len()?;
    let packed = input.bytes(input.left())?;
    if len / RATIO_MAX > packed.len() || len as u64 > len_max {
        return Err(wrong);
    }
    let dictionary = match (form, dictionary) {
        (forms::ZSTD_WITH_DICTIONARY, None) => {
            return Err(Unreadable::Damaged("a dictionary that the file does not have"));
        }
        (forms::ZSTD_WITH_DICTIONARY, dictionary) => dictionary,
        _ => None,
    };
    if form != forms::LZ4 && zstd::claimed_len(packed)? != Some(len as u64) {
        return Err(wrong);
    }
    in_room(len, |bytes| {
        let filled = match form {
            forms::LZ4 => lz4_flex::block::decompress_into(packed, bytes).ok(),
            _ => zstd::decompress(packed, dictionary, bytes)?,
        };
        if filled != Some(len) {
            return Err(wrong);
        }
        Ok(then(bytes)?)
    })
}

/// Calls `fill` with a buffer of `len` bytes and unspecified content.
fn in_room<T>(
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<T, Unreadable>,
) -> Result<T, Unreadable> {
    let beyond = |_| Unreadable::Damaged("a block beyond memory");
    if len > ROOM_BYTES_MAX {
        return fill(&mut zeroed(len).map_err(beyond)?);
    }
    // During thread exit the thread-local buffer is gone, but reads may still happen.
    let mut room = ROOM.try_with(Cell::take).unwrap_or_default();
    if room.len() < len {
        room = zeroed(len.next_power_of_two()).map_err(beyond)?;
    }
    let filled = fill(&mut room[..len]);
    let _ = ROOM.try_with(|kept| kept.set(room));
    filled
}
