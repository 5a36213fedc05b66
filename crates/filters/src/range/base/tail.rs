//! The end of a filter's image: what its payload means, under a checksum.
//! ```text
//! | payload | fields | fields' length u16 | checksum u32 | kind u16 | version u8 | parameter u8 |
//! ```
//! Invariant: a flipped bit from the fields on, or another length of the payload, is an error. The
//! payload's own bits are not checked.

use crate::base::filter::FilterKind;
use crate::base::hash::checksum;
use crate::base::wire::{Corrupt, Reader, Writer};

/// What follows the fields.
pub(crate) const FIXED_BYTES: usize = 2 + 4 + 2 + 1 + 1;

/// Which filter an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) kind: FilterKind,
    pub(crate) version: u8,
    pub(crate) parameter: u8,
}

impl Tail {
    /// Appends fields and tail to a payload. Requires: fewer than 65536 bytes of fields.
    pub(crate) fn seal(self, payload: Vec<u8>, fields: &[u8]) -> Vec<u8> {
        let mut out = Writer::new();
        out.bytes(fields);
        out.u16(u16::try_from(fields.len()).expect("fields are short"));
        out.u32(self.checksum(payload.len(), fields));
        out.u16(self.kind.tag());
        out.u8(self.version);
        out.u8(self.parameter);
        let mut image = payload;
        image.extend_from_slice(out.as_slice());
        image
    }

    fn checksum(self, payload_len: usize, fields: &[u8]) -> u32 {
        let mut summed = Writer::new();
        summed.u64(payload_len as u64);
        summed.u16(self.kind.tag());
        summed.u8(self.version);
        summed.u8(self.parameter);
        summed.bytes(fields);
        checksum(summed.as_slice()) as u32
    }
}

/// An image, cut into its parts.
pub(crate) struct Parts<'a> {
    pub(crate) payload: &'a [u8],
    pub(crate) fields: &'a [u8],
    pub(crate) parameter: u8,
}

/// Cuts an image of this kind and version into its parts, after all checks.
pub(crate) fn open(image: &[u8], kind: FilterKind, version: u8) -> Result<Parts<'_>, Corrupt> {
    let missing = Corrupt { at: 0, what: "the tail of a filter" };
    let tail_at = image.len().checked_sub(FIXED_BYTES).ok_or(missing)?;
    let wrong = |what| Corrupt { at: tail_at, what };
    let mut input = Reader::new(&image[tail_at..]);
    let fields_len = usize::from(input.u16()?);
    let sum = input.u32()?;
    if input.u16()? != kind.tag() {
        return Err(wrong("the tag of the filter"));
    }
    if input.u8()? != version {
        return Err(wrong("a version of the filter that is known"));
    }
    let parameter = input.u8()?;
    input.end()?;
    let fields_at = tail_at.checked_sub(fields_len).ok_or(wrong("no more fields than bytes"))?;
    let fields = &image[fields_at..tail_at];
    if (Tail { kind, version, parameter }).checksum(fields_at, fields) != sum {
        return Err(wrong("the checksum of what the filter's bytes mean"));
    }
    Ok(Parts { payload: &image[..fields_at], fields, parameter })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: Tail = Tail { kind: FilterKind::BlockedBloom, version: 3, parameter: 77 };

    #[test]
    fn what_is_sealed_opens() {
        let image = TAIL.seal(vec![1, 2, 3], b"fields");
        let parts = open(&image, TAIL.kind, 3).expect("whole");
        assert_eq!((parts.payload, parts.fields), (&[1, 2, 3][..], &b"fields"[..]));
        assert_eq!(parts.parameter, 77);
        assert!(open(&image, TAIL.kind, 4).is_err());
    }

    #[test]
    fn every_flipped_bit_behind_the_payload_is_an_error() {
        let image = TAIL.seal(vec![1, 2, 3], b"fields");
        for bit in 0..image.len() * 8 {
            let mut damaged = image.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&damaged, TAIL.kind, 3).is_err(), bit / 8 >= 3, "bit {bit}");
        }
        for cut in 1..=image.len() {
            assert!(open(&image[cut..], TAIL.kind, 3).is_err());
            assert!(open(&image[..image.len() - cut], TAIL.kind, 3).is_err());
        }
    }
}
