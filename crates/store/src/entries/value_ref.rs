//! A reference to a value that is stored apart from its entry.
//! ```text
//! entry    key | number, kind | form, file, offset, length, ..., checksum    about 20 bytes
//!                                |
//! 000012.value                   '-> head | chunk | chunk | ...           the value, written once
//! ```
//! Invariant: a reference never changes its meaning. A value that is moved gets a new reference.

use trommel_filters::{Corrupt, Reader, Writer};

use crate::entries::entry::{Entry, Kind, NUMBER_MAX};
use crate::entries::expiry::EXPIRY_BYTES;

/// The maximum length of a value that is stored apart, in bytes.
pub(crate) const VALUE_APART_BYTES_MAX: u64 = 1 << 40;

/// Form of a value in its file: plain.
const FORM_PLAIN: u8 = 0;
/// Form of a value in its file: in chunks that are compressed one by one.
const FORM_PACKED: u8 = 1;

/// The maximum length of a reference: form, four varints of at most ten bytes, checksum.
pub(crate) const VALUE_REF_BYTES_MAX: usize = 1 + 4 * 10 + size_of::<u32>();

/// The place of a value in a value file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueRef {
    /// The number of the file.
    pub(crate) file: u64,
    /// The offset of its record.
    pub(crate) offset: u64,
    /// The length of the value in bytes.
    pub(crate) len: u64,
    /// The checksum of its chunks' checksums, in order.
    pub(crate) checksum: u32,
    /// The length of its record in bytes, if its chunks are compressed.
    pub(crate) packed_bytes: Option<u64>,
}

impl ValueRef {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(if self.packed_bytes.is_some() { FORM_PACKED } else { FORM_PLAIN });
        [self.file, self.offset, self.len].into_iter().for_each(|number| out.varint(number));
        self.packed_bytes.into_iter().for_each(|bytes| out.varint(bytes));
        out.u32(self.checksum);
        out.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<ValueRef, Corrupt> {
        let mut input = Reader::new(bytes);
        let form = input.u8()?;
        if form > FORM_PACKED {
            return Err(input.corrupt("a form of values apart that is not known"));
        }
        let (file, offset, len) = (input.varint()?, input.varint()?, input.varint()?);
        let packed_bytes = if form == FORM_PACKED { Some(input.varint()?) } else { None };
        let checksum = input.u32()?;
        input.end()?;
        let longest = len.max(packed_bytes.unwrap_or_default());
        if file > NUMBER_MAX || offset > NUMBER_MAX || longest > VALUE_APART_BYTES_MAX {
            return Err(input.corrupt("a reference to what no store has"));
        }
        Ok(ValueRef { file, offset, len, checksum, packed_bytes })
    }
}

/// Decodes the reference in a stored value. `None`: the value is not apart.
pub(crate) fn ref_in(kind: Kind, stored: &[u8]) -> Option<Result<ValueRef, Corrupt>> {
    let bytes = match kind {
        Kind::PutApart => stored,
        Kind::PutApartWithExpiry => stored.get(EXPIRY_BYTES..).unwrap_or_default(),
        Kind::Put | Kind::Delete | Kind::DeleteRange | Kind::PutWithExpiry | Kind::Merge => {
            return None;
        }
    };
    Some(ValueRef::decode(bytes))
}

impl Entry<'_> {
    /// Decodes the entry's reference. `None`: the value is in the entry, or there is none.
    #[inline]
    pub(crate) fn value_ref(&self) -> Option<Result<ValueRef, Corrupt>> {
        ref_in(self.kind, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes_of_a_reference() {
        let at = ValueRef {
            file: 12,
            offset: 300,
            len: 1 << 20,
            checksum: 0x0403_0201,
            packed_bytes: None,
        };
        let bytes = at.encode();
        assert_eq!(bytes, [0, 12, 0xac, 2, 0x80, 0x80, 0x40, 1, 2, 3, 4]);
        assert_eq!(ValueRef::decode(&bytes), Ok(at));
        (0..bytes.len()).for_each(|len| assert!(ValueRef::decode(&bytes[..len]).is_err()));
        assert!(ValueRef::decode(&[&bytes[..], &[0]].concat()).is_err());
        assert!(ValueRef::decode(&[&[2], &bytes[1..]].concat()).is_err(), "an unknown form");
        let packed = ValueRef { packed_bytes: Some(300), ..at };
        let bytes = packed.encode();
        assert_eq!(bytes, [1, 12, 0xac, 2, 0x80, 0x80, 0x40, 0xac, 2, 1, 2, 3, 4]);
        assert_eq!(ValueRef::decode(&bytes), Ok(packed));
    }

    #[test]
    fn references_that_no_store_has_are_refused() {
        let sound = ValueRef {
            file: 1,
            offset: 28,
            len: VALUE_APART_BYTES_MAX,
            checksum: 0,
            packed_bytes: None,
        };
        assert_eq!(ValueRef::decode(&sound.encode()), Ok(sound));
        let absurd = [
            ValueRef { file: NUMBER_MAX + 1, ..sound },
            ValueRef { offset: u64::MAX, ..sound },
            ValueRef { len: VALUE_APART_BYTES_MAX + 1, ..sound },
            ValueRef { packed_bytes: Some(VALUE_APART_BYTES_MAX + 1), ..sound },
        ];
        absurd.iter().for_each(|at| assert!(ValueRef::decode(&at.encode()).is_err(), "{at:?}"));
    }

    #[test]
    fn the_time_comes_before_the_reference() {
        let at = ValueRef { file: 1, offset: 2, len: 3, checksum: 4, packed_bytes: None };
        let stored = [&7u64.to_le_bytes()[..], &at.encode()].concat();
        assert_eq!(ref_in(Kind::PutApartWithExpiry, &stored), Some(Ok(at)));
        assert_eq!(ref_in(Kind::PutApart, &at.encode()), Some(Ok(at)));
        assert_eq!(ref_in(Kind::Put, &at.encode()), None);
        assert!(ref_in(Kind::PutApartWithExpiry, b"short").is_some_and(|it| it.is_err()));
    }
}
