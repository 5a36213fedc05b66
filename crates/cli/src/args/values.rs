//! Numbers and sizes, as typed on the command line.
//! ```text
//! 64MiB  -->  67108864
//! ```
//! Invariant: the error of a malformed value says what is allowed.

use trommel::options::whole_number;

/// Parses a number of bytes like 4096, 64KiB, 32MiB or 1GiB.
pub(crate) fn byte_count(text: &str) -> Result<usize, String> {
    usize::try_from(whole_number(text)?).map_err(|_| "more bytes than there can be".into())
}

/// Units of large numbers, of bytes or of anything that is counted.
const LARGE_UNITS: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("PB", 1_000_000_000_000_000), ("TiB", 1 << 40), ("PiB", 1 << 50)];

/// Parses a number like 1e10, 5TB, 2TiB or 1PB, or one that [`byte_count`] accepts.
pub(crate) fn large_number(text: &str) -> Result<u64, String> {
    let scaled = |number: &str, unit: u64| number.parse::<u64>().ok()?.checked_mul(unit);
    if let Some((number, exponent)) = text.split_once(['e', 'E']) {
        let unit = exponent.parse().ok().and_then(|exponent| 10_u64.checked_pow(exponent));
        let large = unit.and_then(|unit| scaled(number, unit));
        return large.ok_or_else(|| format!("'{text}' is no number like 1e9 or 25e9"));
    }
    for (name, unit) in LARGE_UNITS {
        if let Some(number) = text.strip_suffix(name) {
            let large = scaled(number.trim_end(), unit);
            return large.ok_or_else(|| format!("'{text}' is no number like 5{name}"));
        }
    }
    whole_number(text).map_err(|_| format!("'{text}' is no number like 1e10, 64MiB, 5TB or 2TiB"))
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

    #[test]
    fn large_numbers_have_exponents_and_units() {
        assert_eq!(
            (large_number("1e10"), large_number("25E9")),
            (Ok(10_000_000_000), Ok(25 * 10_u64.pow(9)))
        );
        assert_eq!(
            (large_number("5TB"), large_number("2 TiB")),
            (Ok(5 * 10_u64.pow(12)), Ok(2 << 40))
        );
        assert_eq!((large_number("1PB"), large_number("4096")), (Ok(10_u64.pow(15)), Ok(4096)));
        for wrong in ["", "e", "1e", "e9", "1e99", "1.5e9", "TB", "-1TB", "99999999999PB", "1EB"] {
            assert!(large_number(wrong).is_err(), "{wrong}");
        }
    }
}
