//! Pronounceable names from random bits, for hosts, people and words.

const CONSONANTS: &[u8; 18] = b"bcdfghjklmnprstvwz";
const VOWELS: &[u8; 5] = b"aeiou";
/// One syllable in this many ends in a consonant.
const CLOSED_EVERY: u64 = 3;

/// Takes numbers out of random bits, the lowest bits first.
struct Bits(u64);

impl Bits {
    fn below(&mut self, bound: u64) -> u64 {
        let number = self.0 % bound;
        self.0 /= bound;
        number
    }

    fn letter(&mut self, letters: &[u8]) -> u8 {
        letters[self.below(letters.len() as u64) as usize]
    }
}

/// Appends a name of `least` to `least + more` syllables. The same bits give the same name.
/// Requires: at most five syllables.
pub(super) fn push_name(key: &mut Vec<u8>, bits: u64, least: u64, more: u64) {
    let mut bits = Bits(bits);
    let syllables = least + bits.below(more + 1);
    for _ in 0..syllables {
        let (consonant, vowel) = (bits.letter(CONSONANTS), bits.letter(VOWELS));
        key.extend([consonant, vowel]);
        if bits.below(CLOSED_EVERY) == 0 {
            key.push(bits.letter(CONSONANTS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::laws::traits::trait_of;
    use std::collections::HashSet;

    #[test]
    fn names_are_short_and_differ() {
        let name = |bits| {
            let mut name = Vec::new();
            push_name(&mut name, bits, 2, 2);
            name
        };
        let names: HashSet<Vec<u8>> = (0..10_000).map(|place| name(trait_of(1, place))).collect();
        assert!(names.len() > 9000, "{} of 10,000", names.len());
        assert!(names.iter().all(|name| (4..=12).contains(&name.len())));
        assert_eq!(name(99), name(99));
    }
}
