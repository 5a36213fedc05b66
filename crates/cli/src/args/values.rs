//! Values as they are typed: bytes.
//! ```text
//! 64MiB  -->  67108864
//! ```
//! Invariant: the error of a malformed value lists what is allowed.

/// Reads a number of bytes like 4096, 64KiB, 32MiB or 1GiB.
pub(crate) fn byte_count(text: &str) -> Result<usize, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err(format!("unknown unit '{unit}'; there are: KiB, MiB, GiB")),
    };
    let number: usize = number.parse().map_err(|_| "a number like 4096 or 64MiB".to_string())?;
    number.checked_mul(1 << shift).ok_or_else(|| "more bytes than there can be".to_string())
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
