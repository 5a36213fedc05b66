//! The recoding table: maps a combination to the number of its code.
//! ```text
//! the most likely       combination ──> a table that stays in the cache
//! few combinations      rank ──> array
//! many                  rank ──> hash table of those with a code
//! ```
//! Invariant: a combination without a number has no code of its own.

use std::collections::HashMap;

use super::combinations::{Combination, combinations, rank};
use super::hasher::QuickHash;

/// An array is used if there are at most this many combinations per numbered one. A hash table
/// takes nearly four times as much for each.
const ARRAY_PART: usize = 4;

/// In the array: no number.
const NONE: u32 = u32::MAX;

/// The maximum size of the table of the most likely combinations, a power of two. Nearly every move
/// finds its combination there.
const LIKELY_MAX: usize = 512;

/// Maps combinations to numbers.
#[derive(Clone, Debug)]
pub(super) struct Recoding {
    /// Some combinations as words, with their numbers, each at the place given by its word.
    likely: Vec<(u32, u32)>,
    all: Numbers,
}

#[derive(Clone, Debug)]
enum Numbers {
    Array(Vec<u32>),
    Hashed(HashMap<u32, u32, QuickHash>),
}

impl Recoding {
    /// The table of these combinations, most likely first, over `slots` slots.
    pub(super) fn new(slots: usize, numbered: Vec<(Combination, u32)>) -> Self {
        let mut likely = vec![(0, NONE); likely_places(numbered.len())];
        for &(combination, number) in &numbered {
            let word = u32::from_le_bytes(combination);
            let place = likely_place(word, likely.len());
            if likely[place].1 == NONE {
                likely[place] = (word, number);
            }
        }
        Recoding { likely, all: Numbers::new(slots, numbered) }
    }

    /// Returns the number of a combination. None: it has none.
    #[inline(always)]
    pub(super) fn get(&self, combination: Combination) -> Option<u32> {
        let word = u32::from_le_bytes(combination);
        let (known, number) = self.likely[likely_place(word, self.likely.len())];
        if known == word && number != NONE {
            return Some(number);
        }
        self.all.get(combination)
    }

    pub(super) fn size_bytes(&self) -> usize {
        size_of_val(&*self.likely) + self.all.size_bytes()
    }

    /// The size in bytes of the table of the most likely combinations, if `numbered` have a number.
    pub(super) fn likely_bytes(numbered: usize) -> usize {
        likely_places(numbered) * size_of::<(u32, u32)>()
    }
}

fn likely_places(numbered: usize) -> usize {
    numbered.next_power_of_two().min(LIKELY_MAX)
}

/// Requires: `places` is a power of two.
#[inline(always)]
fn likely_place(word: u32, places: usize) -> usize {
    const MIX: u32 = 0x9e37_79b1; // odd and irregular: the golden ratio
    (word.wrapping_mul(MIX) >> 16) as usize & (places - 1)
}

impl Numbers {
    fn new(slots: usize, numbered: Vec<(Combination, u32)>) -> Self {
        let numbered = numbered.into_iter();
        if combinations(slots) > ARRAY_PART * numbered.len() {
            return Numbers::Hashed(
                numbered.map(|(slots, number)| (rank(slots), number)).collect(),
            );
        }
        let mut array = vec![NONE; combinations(slots)];
        numbered.for_each(|(slots, number)| array[rank(slots) as usize] = number);
        Numbers::Array(array)
    }

    #[inline(never)]
    fn get(&self, combination: Combination) -> Option<u32> {
        let rank = rank(combination);
        match self {
            Numbers::Array(array) => Some(array[rank as usize]).filter(|&number| number != NONE),
            Numbers::Hashed(map) => map.get(&rank).copied(),
        }
    }

    fn size_bytes(&self) -> usize {
        match self {
            Numbers::Array(array) => size_of_val(&**array),
            Numbers::Hashed(map) => super::hasher::map_bytes(map),
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
            assert_eq!(matches!(recoding.all, Numbers::Array(_)), slots == 2);
            for (combination, number) in numbered {
                assert_eq!(recoding.get(combination), Some(number));
            }
            assert_eq!(recoding.get([0, 0, 0, 0]), None);
        }
    }
}
