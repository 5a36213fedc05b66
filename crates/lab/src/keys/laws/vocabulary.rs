//! Words in UTF-8: the stand-in for lists of words.
//! ```text
//! a word      one of 50,000 stems of a language, and an ending: none, or the n-th of 30, by 1 / n
//! a language  letters of a script; 26 of the 42 are Latin
//! ```
//! The statistic that matters: neighbours share their stems, and letters of a script other than
//! Latin share their first bytes.

use super::names::push_name;
use super::traits::trait_of;
use crate::keys::rng::Rng;
use crate::keys::skew::Zipf;

/// The law of words.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    languages: u64,
    stems: u64,
    endings: Zipf,
}

const ENDINGS: u64 = 30;
const LANGUAGES: u64 = 42;
const LATIN: u64 = 26;
/// Scripts other than Latin: the first letter, the number of letters, and the fewest and most
/// letters of a word.
const SCRIPTS: [(u32, u64, [u64; 2]); 10] = [
    (0x0430, 32, [3, 7]), // Cyrillic
    (0x0430, 32, [3, 7]),
    (0x0430, 32, [3, 7]),
    (0x03b1, 25, [3, 7]),    // Greek
    (0x0628, 35, [3, 5]),    // Arabic
    (0x05d0, 27, [3, 5]),    // Hebrew
    (0x0915, 37, [2, 5]),    // Devanagari
    (0x3042, 80, [2, 5]),    // Hiragana
    (0xac00, 11172, [1, 3]), // Hangul
    (0x4e00, 5000, [1, 2]),  // Chinese
];

impl Vocabulary {
    pub(super) fn of_many_languages() -> Self {
        Vocabulary { languages: LANGUAGES, stems: 50_000, endings: Zipf::new(1.0, ENDINGS) }
    }

    pub(super) fn of_one_language() -> Self {
        Vocabulary { languages: 1, stems: 200_000, endings: Zipf::new(1.0, ENDINGS) }
    }

    #[cfg(test)]
    pub(super) fn of_few_stems() -> Self {
        Vocabulary { languages: 1, stems: 10, endings: Zipf::new(1.0, ENDINGS) }
    }

    pub(super) fn draw(&self, key: &mut Vec<u8>, rng: &mut Rng) {
        let language = rng.below(self.languages);
        let stem = trait_of(40 + language, rng.below(self.stems));
        push_letters(key, language, stem, [2, 2]);
        let ending = self.endings.draw(rng);
        if ending > 1 {
            push_letters(key, language, trait_of(140 + language, ending), [1, 1]);
        }
    }
}

/// Appends letters of a language's script. In Latin: `least` to `least + more` syllables.
fn push_letters(key: &mut Vec<u8>, language: u64, mut bits: u64, [least, more]: [u64; 2]) {
    let Some(other) = language.checked_sub(LATIN) else {
        return push_name(key, bits, least, more);
    };
    let (first, letters, [shortest, longest]) = SCRIPTS[(other % SCRIPTS.len() as u64) as usize];
    // An ending has the fewest letters.
    let span = if least == 1 { 1 } else { longest - shortest + 1 };
    let length = shortest.min(least + 1) + bits % span;
    for _ in 0..length {
        bits = trait_of(bits, letters);
        let letter = char::from_u32(first + (bits % letters) as u32);
        let letter = letter.expect("the scripts' ranges have no gaps");
        key.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}
