//! The end of a filter's image: describes the payload, under a checksum.
//! ```text
//! | payload | fields | fields' length u16 | checksum u32 | kind u16 | version u8 | parameter u8 |
//! ```
//! Invariant: a flipped bit from the fields on, or another payload length, is an error. The
//! payload's own bits are not checked.

use trommel_filters::hash::checksum;
use trommel_filters::{Corrupt, Reader, Signature};

/// The bytes after the fields.
pub(crate) const FIXED_BYTES: usize = 2 + 4 + 2 + 1 + 1;

/// Appends fields and tail to a payload. Requires: fewer than 65536 bytes of fields.
pub(crate) fn seal(signature: Signature, payload: Vec<u8>, fields: &[u8]) -> Vec<u8> {
    let sum = checksum_of(signature, payload.len(), fields);
    let fields_len = u16::try_from(fields.len()).expect("fields are short");
    let mut image = payload;
    image.extend_from_slice(fields);
    image.extend_from_slice(&fields_len.to_le_bytes());
    image.extend_from_slice(&sum.to_le_bytes());
    image.extend_from_slice(&signature.encode());
    image
}

fn checksum_of(signature: Signature, payload_len: usize, fields: &[u8]) -> u32 {
    let payload_len = (payload_len as u64).to_le_bytes();
    checksum(&[&payload_len[..], &signature.encode(), fields].concat()) as u32
}

/// The parts of an image.
pub(crate) struct Parts<'a> {
    pub(crate) payload: &'a [u8],
    pub(crate) fields: &'a [u8],
    pub(crate) parameter: u8,
}

/// Checks an image of this kind and version, and splits it into its parts.
pub(crate) fn open(image: &[u8], tag: u16, version: u8) -> Result<Parts<'_>, Corrupt> {
    let missing = Corrupt { at: 0, what: "the tail of a filter" };
    let tail_at = image.len().checked_sub(FIXED_BYTES).ok_or(missing)?;
    let wrong = |what| Corrupt { at: tail_at, what };
    let mut input = Reader::new(&image[tail_at..]);
    let fields_len = usize::from(input.u16()?);
    let sum = input.u32()?;
    let signature = Signature::read(&mut input)?;
    input.end()?;
    if signature.tag != tag {
        return Err(wrong("the tag of the filter"));
    }
    if signature.version != version {
        return Err(wrong("a version of the filter that is known"));
    }
    let fields_at = tail_at.checked_sub(fields_len).ok_or(wrong("no more fields than bytes"))?;
    let fields = &image[fields_at..tail_at];
    if checksum_of(signature, fields_at, fields) != sum {
        return Err(wrong("the checksum of what the filter's bytes mean"));
    }
    Ok(Parts { payload: &image[..fields_at], fields, parameter: signature.parameter })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: Signature = Signature { tag: 1, version: 3, parameter: 77 };

    #[test]
    fn what_is_sealed_opens() {
        let image = seal(SIGNATURE, vec![1, 2, 3], b"fields");
        let parts = open(&image, SIGNATURE.tag, 3).expect("whole");
        assert_eq!((parts.payload, parts.fields), (&[1, 2, 3][..], &b"fields"[..]));
        assert_eq!(parts.parameter, 77);
        assert!(open(&image, SIGNATURE.tag, 4).is_err());
    }

    #[test]
    fn every_flipped_bit_behind_the_payload_is_an_error() {
        let image = seal(SIGNATURE, vec![1, 2, 3], b"fields");
        for bit in 0..image.len() * 8 {
            let mut damaged = image.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&damaged, SIGNATURE.tag, 3).is_err(), bit / 8 >= 3, "bit {bit}");
        }
        for cut in 1..=image.len() {
            assert!(open(&image[cut..], SIGNATURE.tag, 3).is_err());
            assert!(open(&image[..image.len() - cut], SIGNATURE.tag, 3).is_err());
        }
    }
}
