//! Rows and writes packed back to back in a buffer, which a language binding passes in one call.
//! ```text
//! row     key length | value length | key | value             lengths: 4 bytes, little-endian
//! write   tag | key length | value length | key | value       tag: a byte
//!           1 put    2 delete, no value    3 delete range, the value is its end
//!           4 put with a lifetime: the value begins with nanoseconds, 8 bytes, little-endian
//!           5 merge: the value is an operand
//! ```
//! Invariant: decoding returns what was encoded. All other bytes are an error with an offset.

use std::time::Duration;

use crate::entries::batch::Batch;
use crate::error::{Error, Result};

const PUT: u8 = 1;
const DELETE: u8 = 2;
const DELETE_RANGE: u8 = 3;
const PUT_TTL: u8 = 4;
const MERGE: u8 = 5;
/// Bytes of a length and of a lifetime.
const LENGTH_BYTES: usize = 4;
const LIFETIME_BYTES: usize = 8;

/// Appends a row. Requires: the store accepts the key and the value.
pub(crate) fn push_row(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let length =
        |len: usize| u32::try_from(len).expect("keys and values are shorter").to_le_bytes();
    let lengths = [key.len(), value.len()].map(length);
    out.reserve(2 * LENGTH_BYTES + key.len() + value.len());
    out.extend_from_slice(lengths.as_flattened());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Decodes a buffer of writes.
pub(crate) fn batch_of(bytes: &[u8]) -> Result<Batch> {
    let (mut batch, mut reader) = (Batch::new(), Reader { bytes, at: 0 });
    while reader.at < bytes.len() {
        let start = reader.at;
        let malformed = |what: &str| Error::Malformed { offset: start, what: what.into() };
        let [tag] = *reader.take(1)? else { unreachable!("one byte was taken") };
        let (key_len, value_len) = (reader.length()?, reader.length()?);
        let (key, value) = (reader.take(key_len)?, reader.take(value_len)?);
        match tag {
            PUT => batch.put(key, value),
            DELETE if value.is_empty() => batch.delete(key),
            DELETE => return Err(malformed("a deletion has no value")),
            DELETE_RANGE => batch.delete_range(key, value),
            PUT_TTL => {
                let (lifetime, value) = value
                    .split_first_chunk::<LIFETIME_BYTES>()
                    .ok_or_else(|| malformed("a lifetime has 8 bytes"))?;
                batch.put_ttl(key, value, Duration::from_nanos(u64::from_le_bytes(*lifetime)))
            }
            MERGE => batch.merge(key, value),
            _ => return Err(malformed("a write begins with a byte from 1 to 5")),
        };
    }
    Ok(batch)
}

/// Reads a buffer from its start.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, len: usize) -> Result<&'b [u8]> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..len).ok_or_else(|| {
            let what = format!("{len} bytes are to come, and {} are left", rest.len());
            Error::Malformed { offset: self.at, what }
        })?;
        self.at += len;
        Ok(taken)
    }

    fn length(&mut self) -> Result<usize> {
        let bytes = self.take(LENGTH_BYTES)?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("as long as a length")) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(tag: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag];
        push_row(&mut bytes, key, value);
        bytes
    }

    #[test]
    fn writes_are_read_as_they_were_written() {
        let hour = Duration::from_secs(3600);
        let lifetime = (hour.as_nanos() as u64).to_le_bytes();
        let bytes = [
            write(PUT, b"a", b"1"),
            write(PUT, b"", b""),
            write(DELETE, b"b", b""),
            write(DELETE_RANGE, b"c", b"d"),
            write(PUT_TTL, b"e", &[&lifetime[..], b"5"].concat()),
            write(MERGE, b"f", b"6"),
        ];
        let batch = batch_of(&bytes.concat()).expect("well formed");
        let mut expected = Batch::new();
        expected.put("a", "1").put("", "").delete("b").delete_range("c", "d");
        expected.put_ttl("e", "5", hour).merge("f", "6");
        assert!(batch.writes().eq(expected.writes()));
        assert!(batch_of(b"").expect("well formed").is_empty());
    }

    #[test]
    fn malformed_bytes_say_where() {
        let sound = write(PUT, b"key", b"value");
        for cut in 1..sound.len() {
            let Err(Error::Malformed { offset, .. }) = batch_of(&sound[..cut]) else {
                panic!("{cut} bytes are no write");
            };
            assert!(offset <= cut);
        }
        let second = |bytes: Vec<u8>| [sound.clone(), bytes].concat();
        for wrong in [
            write(0, b"k", b""),
            write(6, b"k", b""),
            write(DELETE, b"k", b"v"),
            write(PUT_TTL, b"k", b"7 bytes"),
            [&[PUT][..], &u32::MAX.to_le_bytes(), &[0; 4]].concat(),
        ] {
            let message = batch_of(&second(wrong)).expect_err("malformed").to_string();
            assert!(message.contains("at byte "), "{message}");
        }
    }
}
