//! CRC-32C, the checksum of everything that a store writes. See docs/format.md.

use crc_fast::{CrcAlgorithm, Digest};

/// All 32 bits set: the initial value of a CRC, and what it is inverted with at the end.
const ALL: u64 = u32::MAX as u64;

/// Returns the checksum of `bytes`.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Extends a checksum: returns that of the bytes that have the checksum `before`, followed by
/// `bytes`.
pub(crate) fn crc32c_append(before: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, ALL ^ u64::from(before));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An independent implementation, which wrote earlier stores.
    #[test]
    fn checksums_are_those_that_were_always_written() {
        let bytes: Vec<u8> =
            (0..70_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        let lengths = (0..300).chain([511, 512, 4095, 4096, 65_535, 65_536, 70_000]);
        for len in lengths {
            // Starts at varying alignments.
            let some = &bytes[len.min(70_000 - len) % 17..][..len.min(69_980)];
            let whole = ::crc32c::crc32c(some);
            assert_eq!(crc32c(some), whole, "{len} bytes");
            for cut in [0, 1, len / 3, len / 2, some.len()].map(|cut| cut.min(some.len())) {
                let (first, rest) = some.split_at(cut);
                assert_eq!(crc32c_append(crc32c(first), rest), whole, "{len} bytes, cut at {cut}");
            }
        }
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
