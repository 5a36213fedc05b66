//! The recoding table: from a combination to the number of its code.
//! ```text
//! few combinations    rank ──> array
//! many                rank ──> hash table of those that have a code
//! ```
//! Invariant: a combination without a number has no code of its own.

use std::collections::HashMap;

use super::combinations::{Combination, combinations, rank};
use super::hasher::QuickHash;

/// There is an array if there are at most so many combinations for each that has a number: a hash
/// table takes nearly four times as much for one.
const ARRAY_PART: usize = 4;

/// In the array: no number.
const NONE: u32 = u32::MAX;

/// Numbers of combinations.
#[derive(Clone, Debug)]
pub(super) enum Recoding {
    Array(Vec<u32>),
    Hashed(HashMap<u32, u32, QuickHash>),
}

impl Recoding {
    /// The table of these, for combinations of so many slots.
    pub(super) fn new(slots: usize, numbered: Vec<(Combination, u32)>) -> Self {
        let numbered = numbered.into_iter();
        if combinations(slots) > ARRAY_PART * numbered.len() {
            return Recoding::Hashed(
                numbered.map(|(slots, number)| (rank(slots), number)).collect(),
            );
        }
        let mut array = vec![NONE; combinations(slots)];
        numbered.for_each(|(slots, number)| array[rank(slots) as usize] = number);
        Recoding::Array(array)
    }

    /// The number of a combination. None: it has none.
    pub(super) fn get(&self, combination: Combination) -> Option<u32> {
        let rank = rank(combination);
        match self {
            Recoding::Array(array) => Some(array[rank as usize]).filter(|&number| number != NONE),
            Recoding::Hashed(map) => map.get(&rank).copied(),
        }
    }

    pub(super) fn size_bytes(&self) -> usize {
        match self {
            Recoding::Array(array) => size_of_val(&**array),
            Recoding::Hashed(map) => super::hasher::map_bytes(map),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_and_hash_table_say_the_same() {
        let numbered = [([0, 0, 0, 1], 7), ([0, 1, 1, 1], 0), ([1; 4], 9)];
        for slots in [2, 200] {
            let recoding = Recoding::new(slots, numbered.to_vec());
            assert_eq!(matches!(recoding, Recoding::Array(_)), slots == 2);
            for (combination, number) in numbered {
                assert_eq!(recoding.get(combination), Some(number));
            }
            assert_eq!(recoding.get([0, 0, 0, 0]), None);
        }
    }
}
