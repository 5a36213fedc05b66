//! The directory of a filter's sub-filters, by which each can be read alone.
//! ```text
//! | sub-filter 0 | ... | sub-filter n-1 | checksum of each sub-filter: 8 bytes |
//! | bytes of a sub-filter | keys | probes | checksum | kind | version | n |
//!             8              8       4         4        2        1      1
//! ```
//! Invariant: whoever has a directory has verified its checksum, and that sub-filters and directory
//! have the length of the image.

use std::ops::Range;

use trommel_filters::hash::checksum;
use trommel_filters::{Corrupt, Reader, Signature, SubFilter, SubFilterDirectory, Writer};

use super::sub_filter::{ElasticSubFilter, PROBES_MAX, rate};

pub(super) const SUB_FILTERS_MAX: u8 = 32;
/// The number that identifies the kind in files.
pub(super) const TAG: u16 = 17;
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 8;
/// Bytes between the checksums of sub-filters and the directory's own checksum.
const NUMBERS_BYTES: usize = 8 + 8 + 4;
const OWN_CHECKSUM_BYTES: usize = 4;
const TRAILER_BYTES: usize = 2 + 1 + 1;
const FIXED_BYTES: usize = NUMBERS_BYTES + OWN_CHECKSUM_BYTES + TRAILER_BYTES;

/// The layout of a filter's sub-filters, and how to probe them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticDirectory {
    /// The checksum of each sub-filter.
    pub(super) checksums: Box<[u64]>,
    /// The length of each sub-filter, in bytes.
    pub(super) sub_filter_bytes: u64,
    /// The number of distinct keys in the table.
    pub(super) keys: u64,
    /// Probes per sub-filter.
    pub(super) probes: u8,
}

impl ElasticDirectory {
    /// The maximum size of a directory in bytes.
    pub const SIZE_MAX: usize = SUB_FILTERS_MAX as usize * CHECKSUM_BYTES + FIXED_BYTES;

    /// Reads the directory at the end of an image. `tail`: the image's last
    /// [`SIZE_MAX`](Self::SIZE_MAX) bytes or more, or the whole image.
    ///
    /// # Errors
    /// The directory is damaged or belongs to another kind, or `image_bytes` is wrong. Positions
    /// count from the start of `tail`.
    pub fn read(tail: &[u8], image_bytes: u64) -> Result<Self, Corrupt> {
        let too_short = Corrupt { at: 0, what: "a directory of units" };
        let trailer_at = tail.len().checked_sub(TRAILER_BYTES).ok_or(too_short.clone())?;
        let sub_filters = read_trailer(&tail[trailer_at..], trailer_at)?;
        let size = usize::from(sub_filters) * CHECKSUM_BYTES + FIXED_BYTES;
        let at = tail.len().checked_sub(size).ok_or(too_short)?;
        let wrong = |place: usize, what| Corrupt { at: place, what };
        let mut input = Reader::new(&tail[at..]);
        let checksums = (0..sub_filters).map(|_| input.u64()).collect::<Result<_, _>>()?;
        let sub_filter_bytes = input.u64()?;
        let keys = input.u64()?;
        let probes = input.u32()?;
        let own_at = at + input.at();
        if input.u32()? != own_checksum(&tail[at..own_at], sub_filters) {
            return Err(wrong(own_at, "the checksum of a directory of units"));
        }
        let sub_filters_bytes = sub_filter_bytes.checked_mul(u64::from(sub_filters));
        if sub_filters_bytes.and_then(|bytes| bytes.checked_add(size as u64)) != Some(image_bytes) {
            return Err(wrong(at, "as many bytes of units as the directory says"));
        }
        let probes = u8::try_from(probes).ok().filter(|probes| (1..=PROBES_MAX).contains(probes));
        let probes = probes.ok_or(wrong(own_at, "a number of probes"))?;
        if keys > 0 && sub_filter_bytes == 0 {
            return Err(wrong(at, "units for as many keys"));
        }
        Ok(ElasticDirectory { checksums, sub_filter_bytes, keys, probes })
    }

    /// Returns the image: sub-filters, then the directory.
    pub(super) fn encode_into(&self, sub_filters: Vec<u8>) -> Vec<u8> {
        let mut out = Writer::new();
        self.checksums.iter().for_each(|sum| out.u64(*sum));
        out.u64(self.sub_filter_bytes);
        out.u64(self.keys);
        out.u32(u32::from(self.probes));
        out.u32(own_checksum(out.as_slice(), self.count()));
        out.bytes(&signature(self.count()).encode());
        let mut image = sub_filters;
        image.extend_from_slice(out.as_slice());
        image
    }

    /// The number of distinct keys in the table.
    pub fn key_count(&self) -> u64 {
        self.keys
    }
}

impl SubFilterDirectory for ElasticDirectory {
    fn count(&self) -> u8 {
        self.checksums.len() as u8
    }

    fn part_bytes(&self) -> u64 {
        self.sub_filter_bytes
    }

    /// The theoretical rate.
    fn part_rate(&self) -> f64 {
        if self.keys == 0 {
            return 0.0;
        }
        rate(self.sub_filter_bytes as f64 * 8.0 / self.keys as f64, self.probes)
    }

    /// Requires: there is such a sub-filter.
    fn range(&self, number: u8) -> Range<u64> {
        assert!(number < self.count(), "sub-filter {number} of {}", self.count());
        let start = u64::from(number) * self.sub_filter_bytes;
        start..start + self.sub_filter_bytes
    }

    fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.checksums.len() * CHECKSUM_BYTES
    }

    /// Requires: there is such a sub-filter.
    fn part(&self, number: u8, bytes: Vec<u8>) -> Result<Box<dyn SubFilter>, Corrupt> {
        assert!(number < self.count(), "sub-filter {number} of {}", self.count());
        let fits = bytes.len() as u64 == self.sub_filter_bytes;
        if !fits || checksum(&bytes) != self.checksums[usize::from(number)] {
            return Err(Corrupt { at: 0, what: "the checksum of a unit" });
        }
        Ok(Box::new(ElasticSubFilter { bytes, number, probes: self.probes }))
    }
}

fn signature(sub_filters: u8) -> Signature {
    Signature { tag: TAG, version: VERSION, parameter: sub_filters }
}

/// Returns the number of sub-filters.
fn read_trailer(bytes: &[u8], at: usize) -> Result<u8, Corrupt> {
    let wrong = |offset: usize, what| Err(Corrupt { at: at + offset, what });
    let Signature { tag, version, parameter: sub_filters } =
        Signature::read(&mut Reader::new(bytes))?;
    if tag != TAG {
        return wrong(0, "the tag of ElasticBF");
    }
    if version != VERSION {
        return wrong(2, "a version of ElasticBF that is known");
    }
    if (1..=SUB_FILTERS_MAX).contains(&sub_filters) {
        Ok(sub_filters)
    } else {
        wrong(3, "a number of units")
    }
}

/// The checksum of the directory's bytes before it and of the trailer behind it.
fn own_checksum(bytes: &[u8], sub_filters: u8) -> u32 {
    checksum(&[bytes, &signature(sub_filters).encode()].concat()) as u32
}
