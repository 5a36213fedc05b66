//! Encodings of the bytes that cross the border.
//! ```text
//! list    length | bytes   length | bytes   ...       a length: a u32 in little-endian order
//! row     key length | value length | key | value
//! values  as a list; the length of a missing value is u32::MAX
//! ```
//! Invariant: malformed bytes are an error, whoever made them.

use jni_sys::jint;

use crate::error::{Failure, Outcome};

/// Bytes of an encoded length.
pub(crate) const LENGTH_BYTES: usize = 4;
/// The length of a missing value.
pub(crate) const ABSENT: u32 = u32::MAX;
/// Arguments of up to this many bytes are copied to the stack.
const SHORT: usize = 256;

/// A buffer for the bytes of an argument.
pub(crate) struct Room {
    short: [u8; SHORT],
    long: Vec<u8>,
}

impl Room {
    #[inline]
    pub(crate) fn new() -> Room {
        Room { short: [0; SHORT], long: Vec::new() }
    }

    /// Returns `len` bytes of room.
    #[inline]
    pub(crate) fn make(&mut self, len: jint) -> Outcome<&mut [u8]> {
        match usize::try_from(len) {
            Ok(len) if len <= SHORT => Ok(&mut self.short[..len]),
            Ok(len) => self.make_long(len),
            Err(_) => Err(Failure::argument(format!("a length of {len}"))),
        }
    }

    fn make_long(&mut self, len: usize) -> Outcome<&mut [u8]> {
        self.long.try_reserve_exact(len).map_err(|_| Failure::no_memory(len))?;
        self.long.resize(len, 0);
        Ok(&mut self.long)
    }
}

/// Appends an item to a list.
pub(crate) fn push(list: &mut Vec<u8>, bytes: &[u8]) -> Outcome<()> {
    push_length(list, bytes.len())?;
    list.extend_from_slice(bytes);
    Ok(())
}

/// Appends a value to a list.
pub(crate) fn push_value(list: &mut Vec<u8>, value: Option<&[u8]>) -> Outcome<()> {
    match value {
        Some(value) => push(list, value),
        None => {
            list.extend_from_slice(&ABSENT.to_le_bytes());
            Ok(())
        }
    }
}

/// Appends a row.
pub(crate) fn push_row(rows: &mut Vec<u8>, key: &[u8], value: &[u8]) -> Outcome<()> {
    push_length(rows, key.len())?;
    push_length(rows, value.len())?;
    rows.extend_from_slice(key);
    rows.extend_from_slice(value);
    Ok(())
}

fn push_length(list: &mut Vec<u8>, len: usize) -> Outcome<()> {
    let len = u32::try_from(len).ok().filter(|len| *len != ABSENT);
    let len = len.ok_or_else(|| Failure::argument("4 GiB are too long"))?;
    list.extend_from_slice(&len.to_le_bytes());
    Ok(())
}

/// Encodes a list of texts.
pub(crate) fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Outcome<Vec<u8>> {
    let mut list = Vec::new();
    texts.into_iter().try_for_each(|text| push(&mut list, text.as_ref().as_bytes()))?;
    Ok(list)
}

/// Decodes bytes from front to back.
pub(crate) struct Cutter<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cutter<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Cutter<'b> {
        Cutter { bytes, at: 0 }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The offset of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn take(&mut self, len: usize) -> Outcome<&'b [u8]> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..len).ok_or_else(|| {
            let (at, left) = (self.at, rest.len());
            Failure::malformed(at, format!("{len} bytes are to come, and {left} are left"))
        })?;
        self.at += len;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Outcome<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn length(&mut self) -> Outcome<u32> {
        let bytes = self.take(LENGTH_BYTES)?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("as long as a length")))
    }

    /// Takes the next item of a list.
    pub(crate) fn next(&mut self) -> Outcome<&'b [u8]> {
        let len = self.length()?;
        self.take(len as usize)
    }

    /// Takes the next item of a list of texts.
    pub(crate) fn text(&mut self) -> Outcome<&'b str> {
        let at = self.at;
        let text = std::str::from_utf8(self.next()?);
        text.map_err(|_| Failure::malformed(at, "a text in UTF-8 is to come".into()))
    }

    /// Takes the next row.
    pub(crate) fn row(&mut self) -> Outcome<(&'b [u8], &'b [u8])> {
        let (key, value) = (self.length()?, self.length()?);
        Ok((self.take(key as usize)?, self.take(value as usize)?))
    }
}

/// Decodes a whole list.
pub(crate) fn cut(list: &[u8]) -> Outcome<Vec<&[u8]>> {
    let (mut cutter, mut all) = (Cutter::new(list), Vec::new());
    while !cutter.is_at_end() {
        all.push(cutter.next()?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_as_they_were_made() {
        let mut list = Vec::new();
        for bytes in [&b"a"[..], b"", b"long enough"] {
            push(&mut list, bytes).expect("short");
        }
        assert_eq!(cut(&list).expect("a list"), [&b"a"[..], b"", b"long enough"]);
        let between = [0, 5, 9];
        for end in 0..list.len() {
            assert_eq!(cut(&list[..end]).is_ok(), between.contains(&end), "{end} bytes of it");
        }
    }

    #[test]
    fn what_is_not_there_has_no_bytes() {
        let mut list = Vec::new();
        push_value(&mut list, None).expect("short");
        assert!(cut(&list).is_err());
        assert_eq!(Cutter::new(&list).length().ok(), Some(ABSENT));
    }

    #[test]
    fn room_is_made_for_short_and_long() {
        let mut room = Room::new();
        assert_eq!(room.make(256).expect("on the stack").len(), 256);
        assert_eq!(room.make(257).expect("in memory").len(), 257);
        assert!(room.make(-1).is_err());
    }
}
