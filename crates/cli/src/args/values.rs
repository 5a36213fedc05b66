//! Values as they are typed: bytes, and when writes are synced.
//! ```text
//! 64MiB  -->  67108864            always, never, 0.5  -->  SyncPolicy
//! ```
//! Invariant: the error of a malformed value lists what is allowed.

use std::time::Duration;

use trommel::SyncPolicy;

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

/// Reads `always`, `never`, or a number of seconds.
pub(crate) fn sync(text: &str) -> Result<SyncPolicy, String> {
    match text {
        "always" => Ok(SyncPolicy::Always),
        "never" => Ok(SyncPolicy::Never),
        seconds => {
            let seconds: f64 = seconds.parse().unwrap_or(f64::NAN);
            let interval = Duration::try_from_secs_f64(seconds).map_err(|_| ());
            interval
                .map(SyncPolicy::Interval)
                .map_err(|()| "there are: always, never, or seconds like 0.5".into())
        }
    }
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
    fn sync_is_a_word_or_seconds() {
        assert_eq!(sync("always"), Ok(SyncPolicy::Always));
        assert_eq!(sync("0.5"), Ok(SyncPolicy::Interval(Duration::from_millis(500))));
        for wrong in ["sometimes", "-1", "NaN", "1e400", ""] {
            assert!(sync(wrong).is_err(), "{wrong}");
        }
    }
}
