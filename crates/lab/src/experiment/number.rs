//! Numbers for readers, in pictures and tables.

/// Formats with three significant digits and no trailing zeros. Large numbers have commas, very
/// small ones powers of ten.
pub(crate) fn readable(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 {
        return "0".into();
    }
    if !number.is_finite() {
        return format!("{number}");
    }
    if !(1e-4..1e12).contains(&size) {
        return format!("{number:.1e}").replace(".0e", "e");
    }
    if size >= 1000.0 {
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}{}", whole(size.round() as u64));
    }
    let places = (2 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{number:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Formats a whole number with commas.
pub fn whole(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups = groups.map(|group| std::str::from_utf8(group).unwrap_or(""));
    groups.collect::<Vec<_>>().join(",")
}

/// Formats a chosen number with all its digits, and with commas if it is whole.
pub(crate) fn exact(number: f64) -> String {
    let is_whole = number.fract() == 0.0 && (0.0..1e15).contains(&number);
    if is_whole { whole(number as u64) } else { number.to_string() }
}

/// Formats a number briefly, for an axis.
pub(crate) fn tick(number: f64) -> String {
    let size = number.abs();
    let (scaled, unit) = match size {
        size if size >= 1e9 => (number / 1e9, "G"),
        size if size >= 1e6 => (number / 1e6, "M"),
        _ => (number, ""),
    };
    format!("{}{unit}", readable(scaled))
}

/// Formats a time in seconds, minutes or hours.
pub fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}
