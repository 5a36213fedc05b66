//! Reads and writes bytes: little-endian and checked, as bytes from disk may be damaged.
//! ```text
//! Reader   bytes ----take----> value | Corrupt { at, what }
//! Writer   value ----put-----> bytes
//! ```
//! Invariant: a `Reader` never panics and never reads past its end. A decoder calls `end` at its
//! end.

use alloc::vec::Vec;

use crate::base::hash::checksum;

/// Bytes that do not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {what}")]
pub struct Corrupt {
    /// Offset in the bytes that were decoded.
    pub at: usize,
    /// What was expected there.
    pub what: &'static str,
}

/// Reads values from the front of a byte string.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// The number of bytes read so far.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns all bytes, including those already read.
    pub(crate) fn whole(&self) -> &'a [u8] {
        self.bytes
    }

    /// The number of bytes left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// An error at the current position.
    pub fn corrupt(&self, what: &'static str) -> Corrupt {
        Corrupt { at: self.at, what }
    }

    /// Reads `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Corrupt> {
        if len > self.left() {
            return Err(self.corrupt("more bytes than there are"));
        }
        let taken = &self.bytes[self.at..self.at + len];
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let taken = self.bytes(N)?;
        Ok(taken.try_into().expect("bytes(N) gives N bytes"))
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8, Corrupt> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads two bytes, little-endian.
    pub fn u16(&mut self) -> Result<u16, Corrupt> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Reads four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32, Corrupt> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64, Corrupt> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads an LEB128 varint: seven bits a byte, low bits first, at most ten bytes. A superfluous
    /// zero byte is an error.
    pub fn varint(&mut self) -> Result<u64, Corrupt> {
        let start = self.at;
        let wrong = |what| Corrupt { at: start, what };
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let low = u64::from(byte & 0x7f);
            if shift == 63 && low > 1 {
                return Err(wrong("a varint of more than 64 bits"));
            }
            value |= low << shift;
            if byte & 0x80 == 0 {
                let padded = byte == 0 && shift > 0;
                return if padded { Err(wrong("a padded varint")) } else { Ok(value) };
            }
        }
        Err(wrong("a varint of more than ten bytes"))
    }

    /// Reads a varint that is a length in memory.
    #[expect(
        clippy::len_without_is_empty,
        reason = "it reads a length, it is not the reader's own"
    )]
    pub fn len(&mut self) -> Result<usize, Corrupt> {
        let start = self.at;
        let value = self.varint()?;
        usize::try_from(value).map_err(|_| Corrupt { at: start, what: "a length beyond memory" })
    }

    /// Reads a byte string: its length as a varint, then its bytes.
    pub fn string(&mut self) -> Result<&'a [u8], Corrupt> {
        let len = self.len()?;
        self.bytes(len)
    }

    /// Checks that no bytes are left.
    pub fn end(&self) -> Result<(), Corrupt> {
        if self.left() == 0 { Ok(()) } else { Err(self.corrupt("bytes after the end")) }
    }
}

/// Appends values to a byte string.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of bytes written.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends raw bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends two bytes, little-endian.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends four bytes, little-endian.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends eight bytes, little-endian.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends an LEB128 varint, as [`Reader::varint`] reads it.
    pub fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    /// Appends a byte string: its length as a varint, then its bytes.
    pub fn string(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes(bytes);
    }

    /// Reserves room for `more` bytes.
    pub fn reserve(&mut self, more: usize) {
        self.bytes.reserve_exact(more);
    }

    /// Returns the bytes written.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes written so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes written so far, to be changed in place.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Removes all bytes and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// The signature at the end of a filter's bytes: its kind, format version and one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The kind's tag.
    pub tag: u16,
    /// The version of the format.
    pub version: u8,
    /// A byte of the filter's own, such as its number of probes.
    pub parameter: u8,
}

impl Signature {
    /// The length of the checksum and the signature, which follow a filter's fields.
    pub const BYTES: usize = 4 + 2 + 1 + 1;

    /// Appends a filter's fields, their checksum and this signature to `out`.
    pub fn sign(self, fields: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(fields);
        out.extend_from_slice(&self.check(fields).to_le_bytes());
        out.extend_from_slice(&self.encode());
    }

    /// Returns the `fields_len` bytes before checksum and signature, and the parameter.
    ///
    /// # Errors
    /// The bytes are too short, the checksum is wrong, or tag and version are not the given ones.
    pub fn fields(
        image: &[u8],
        (tag, version): (u16, u8),
        fields_len: usize,
    ) -> Result<(&[u8], u8), Corrupt> {
        let at = image.len().checked_sub(fields_len + Self::BYTES);
        let at = at.ok_or(Corrupt { at: 0, what: "a filter's trailer" })?;
        let mut input = Reader { bytes: image, at };
        let fields = input.bytes(fields_len)?;
        let check = input.u32()?;
        let signed = Signature::read(&mut input)?;
        input.end()?;
        if check != signed.check(fields) {
            return Err(Corrupt { at, what: "the checksum of a filter's trailer" });
        }
        if (signed.tag, signed.version) != (tag, version) {
            return Err(Corrupt { at, what: "the kind and the version of this filter" });
        }
        Ok((fields, signed.parameter))
    }

    /// Returns the signature's bytes, without a checksum.
    pub fn encode(self) -> [u8; 4] {
        let [low, high] = self.tag.to_le_bytes();
        [low, high, self.version, self.parameter]
    }

    /// Reads the bytes of [`encode`](Self::encode).
    pub fn read(input: &mut Reader<'_>) -> Result<Signature, Corrupt> {
        Ok(Signature { tag: input.u16()?, version: input.u8()?, parameter: input.u8()? })
    }

    fn check(self, fields: &[u8]) -> u32 {
        checksum(&[fields, &self.encode()].concat()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut out = Writer::new();
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        numbers.iter().for_each(|&number| out.varint(number));
        out.u8(7);
        out.u16(700);
        out.u32(70_000);
        out.u64(1 << 40);
        out.string(b"drum");
        let bytes = out.finish();
        let mut input = Reader::new(&bytes);
        numbers.iter().for_each(|&number| assert_eq!(input.varint(), Ok(number)));
        assert_eq!(input.u8(), Ok(7));
        assert_eq!(input.u16(), Ok(700));
        assert_eq!(input.u32(), Ok(70_000));
        assert_eq!(input.u64(), Ok(1 << 40));
        assert_eq!(input.string(), Ok(&b"drum"[..]));
        assert_eq!(input.end(), Ok(()));
        assert!(input.u8().is_err());
    }

    #[test]
    fn a_signature_is_broken_by_any_bit() {
        let signature = Signature { tag: 7, version: 1, parameter: 9 };
        let mut image = vec![5; 20];
        signature.sign(&[1, 2, 3], &mut image);
        assert_eq!(Signature::fields(&image, (7, 1), 3), Ok((&[1, 2, 3][..], 9)));
        assert!(Signature::fields(&image, (7, 2), 3).is_err());
        assert!(Signature::fields(&image, (7, 1), 4).is_err());
        assert!(Signature::fields(&image[..10], (7, 1), 3).is_err());
        for bit in 20 * 8..image.len() * 8 {
            image[bit / 8] ^= 1 << (bit % 8);
            assert!(Signature::fields(&image, (7, 1), 3).is_err(), "bit {bit}");
            image[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn hostile_varints_are_errors() {
        let too_long = [0x80u8; 11];
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        for bytes in [&too_long[..], &too_large[..], &[0x80, 0x00][..], &[0x80][..], &[][..]] {
            assert!(Reader::new(bytes).varint().is_err(), "{bytes:?}");
        }
        assert!(Reader::new(&[200, 1, 0]).string().is_err());
    }
}
