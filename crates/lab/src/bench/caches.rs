//! The size of the processor's caches: a filter that fits into them answers faster than a larger
//! one.

use std::fs;

/// Returns the largest cache of the first core, in bytes. None: the system does not report it.
pub(crate) fn largest_cache() -> Option<u64> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = caches.filter_map(|cache| fs::read_to_string(cache.ok()?.path().join("size")).ok());
    sizes.filter_map(|size| bytes(size.trim())).max()
}

/// Parses a size as the system writes it: `512K`, `32M`.
fn bytes(size: &str) -> Option<u64> {
    let unit = match size.chars().last()? {
        'K' => 1 << 10,
        'M' => 1 << 20,
        'G' => 1 << 30,
        _ => return size.parse().ok(),
    };
    Some(size[..size.len() - 1].parse::<u64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(
            [bytes("512K"), bytes("32M"), bytes("64")],
            [Some(512 << 10), Some(32 << 20), Some(64)]
        );
        assert_eq!([bytes(""), bytes("K"), bytes("a lot")], [None; 3]);
        assert!(largest_cache().is_none_or(|bytes| bytes >= 1 << 10));
    }
}
