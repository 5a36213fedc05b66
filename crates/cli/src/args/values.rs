//! Values as they are typed: bytes.
//! ```text
//! 64MiB  -->  67108864
//! ```
//! Invariant: the error of a malformed value lists what is allowed.

use trommel::options::whole_number;

/// Reads a number of bytes like 4096, 64KiB, 32MiB or 1GiB.
pub(crate) fn byte_count(text: &str) -> Result<usize, String> {
    usize::try_from(whole_number(text)?).map_err(|_| "more bytes than there can be".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_have_units() {
        assert_eq!(byte_count("4096"), Ok(4096));
        assert_eq!((byte_count("64MiB"), byte_count("2k")), (Ok(64 << 20), Ok(2048)));
        for wrong in ["", "MiB", "1TB", "-1", "99999999999999999999", "9999999999999GiB"] {
            assert!(byte_count(wrong).is_err(), "{wrong}");
        }
    }
}
