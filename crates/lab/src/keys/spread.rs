//! Keys that are far apart, in the order of their numbers.

/// The distance of two keys. A hundred thousand keys fit.
const STEP: u64 = 0x0000_8967_89ab_cdef;

/// Returns the key of a number.
pub(crate) fn spread_key(number: usize) -> [u8; 8] {
    (number as u64).wrapping_mul(STEP).to_be_bytes()
}

/// Returns the number of a key. None: it is not the key of a number.
pub(crate) fn number_of_spread(key: &[u8]) -> Option<usize> {
    let place = u64::from_be_bytes(key.try_into().ok()?);
    place.is_multiple_of(STEP).then_some((place / STEP) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_by_their_numbers() {
        let keys: Vec<[u8; 8]> = (0..100_000).map(spread_key).collect();
        assert!(keys.is_sorted());
        assert!(keys.iter().enumerate().all(|(number, key)| number_of_spread(key) == Some(number)));
        assert_eq!(
            (number_of_spread(b"drum"), number_of_spread(&1u64.to_be_bytes())),
            (None, None)
        );
    }
}
