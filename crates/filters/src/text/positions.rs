//! Maps a key to a number by its rank among the keys of a sample.
//! ```text
//! key --model of text, or the bytes behind the common prefix--> word of 64 bits
//! word --between which marks--> position       mark 1     mark 2 mark 3        mark 4
//!                               0 ............... | .......... | ...|............. | ..... 2^64
//!                               equally spaced positions of marks
//! ```
//! Marks are keys at equally spaced ranks. So whatever the keys are, parts of equal length on the
//! line hold about equally many. A host can keep a bit for each such part.
//!
//! Invariant: if a <= b, then position(a) <= position(b).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::code::KeyCode;
use super::model::TextModel;
use super::sample::KeySample;

/// The maximum number of marks: searching them stays in the nearest caches.
const MARKS_MAX: usize = 1023;
/// Leading bits of a word that index the marks: usually few marks share them.
const INDEX_BITS: u32 = 10;
const WORD_BYTES: usize = size_of::<u64>();

/// A mark, and the slope of positions after it.
#[derive(Clone, Copy, Debug)]
struct Mark {
    word: u64,
    /// Positions per unit of a word, up to the next mark.
    slope: f64,
}

/// An order-preserving map from keys to numbers that spreads keys like those of a sample evenly.
#[derive(Clone, Debug)]
pub struct KeyPositions {
    model: Option<TextModel>,
    /// The prefix that words leave out if there is no model.
    prefix: Box<[u8]>,
    words: Box<[u64]>,
    /// For each value of the leading bits, how many of `words` are below it; one more for the end.
    index: Box<[u16]>,
    /// The mark before each of `words`, and the one after the last.
    marks: Box<[Mark]>,
    /// The distance between the positions of two marks.
    apart: u64,
}

impl KeyPositions {
    /// Learns from a sample of about `keys` keys, and from keys at equally spaced ranks. If later
    /// keys differ from these, positions crowd, but stay in order.
    pub fn of<'k>(
        sample: &KeySample,
        keys: u64,
        evenly: impl Iterator<Item = &'k [u8]> + Clone,
    ) -> KeyPositions {
        let is_text = !sample.is_empty() && sample.is_text();
        let model = is_text.then(|| TextModel::of(sample, keys).with_code_bits(u64::BITS));
        let prefix = shared_prefix(evenly.clone());
        let named = KeyPositions {
            model,
            prefix: prefix.into(),
            words: Box::default(),
            index: Box::default(),
            marks: Box::default(),
            apart: 0,
        };
        let mut words: Vec<u64> = evenly.map(|key| named.word(key)).collect();
        words.sort_unstable();
        let marks = words.len().min(MARKS_MAX);
        let words: Box<[u64]> = (0..marks).map(|mark| words[mark * words.len() / marks]).collect();
        let apart = ((1u128 << u64::BITS) / (words.len() as u128 + 1)).min(u64::MAX.into()) as u64;
        let starts = [0].into_iter().chain(words.iter().copied());
        let ends = words.iter().copied().chain([u64::MAX]);
        let between = starts
            .zip(ends)
            .map(|(word, end)| Mark { word, slope: apart as f64 / (end - word).max(1) as f64 });
        let index = index_of(&words);
        KeyPositions { marks: between.collect(), words, index, apart, ..named }
    }

    /// Returns the position of a key. Takes tens of nanoseconds; for text, a few per byte.
    #[inline]
    pub fn position(&self, key: &[u8]) -> u64 {
        let word = self.word(key);
        let first_bits = (word >> (u64::BITS - INDEX_BITS)) as usize;
        let [from, to] = [0, 1].map(|more| usize::from(self.index[first_bits + more]));
        let before = from + self.words[from..to].partition_point(|mark| *mark <= word);
        let mark = self.marks[before];
        let behind = (word - mark.word) as f64 * mark.slope;
        before as u64 * self.apart + (behind as u64).min(self.apart - 1)
    }

    #[inline]
    fn word(&self, key: &[u8]) -> u64 {
        match &self.model {
            Some(model) => first_word(model.encode(key, &mut KeyCode::new())),
            None => match key.strip_prefix(&*self.prefix) {
                Some(rest) => first_word(rest),
                None if *key < *self.prefix => 0,
                None => u64::MAX,
            },
        }
    }

    /// The approximate size, in bytes.
    pub fn size_bytes(&self) -> usize {
        let model = self.model.as_ref().map_or(0, TextModel::size_bytes);
        let index = size_of_val(&*self.index);
        model + size_of_val(&*self.words) + index + size_of_val(&*self.marks) + self.prefix.len()
    }
}

fn index_of(words: &[u64]) -> Box<[u16]> {
    let lacks = |first_bits: u64| {
        words.partition_point(|mark| mark >> (u64::BITS - INDEX_BITS) < first_bits) as u16
    };
    (0..=1 << INDEX_BITS).map(lacks).collect()
}

/// Returns the first eight bytes as a number, padded with zeros.
#[inline]
fn first_word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk::<WORD_BYTES>() {
        return u64::from_be_bytes(*word);
    }
    let mut word = [0; WORD_BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

fn shared_prefix<'k>(mut keys: impl Iterator<Item = &'k [u8]>) -> Vec<u8> {
    let mut prefix = keys.next().unwrap_or_default();
    for key in keys {
        let shared = prefix.iter().zip(key).take_while(|(a, b)| a == b).count();
        prefix = &prefix[..shared];
    }
    prefix.to_vec()
}
