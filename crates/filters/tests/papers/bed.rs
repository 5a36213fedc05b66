//! Trees of keys, in two forms: with codes collected at every flush, and with whole codes, the
//! oracle.
//! ```text
//! keys --> base           in the last level, flushes [0, BASE_END)
//!      --> flush 0, 1 ..  BASE_END + 0, BASE_END + 1, ...; some keys in two of them
//! ```
//! Invariant: keys and flushes follow from the seed alone.

use std::collections::BTreeSet;
use trommel_filters::{
    Codes, Fingerprints, FlushNumber, GrfOptions, KeyRange, Part, PartBuilder, Query, Shape,
};

pub(crate) type Key = Vec<u8>;

/// A last level of one round before.
pub(crate) const BASE_END: u64 = 64;

/// A generator: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// How keys are spread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spread {
    Uniform,
    Clustered,
    Text,
}

impl Spread {
    pub(crate) const ALL: [Spread; 3] = [Spread::Uniform, Spread::Clustered, Spread::Text];

    pub(crate) fn key(self, random: &mut Random) -> Key {
        match self {
            Spread::Uniform => (random.next() >> 14).to_be_bytes().to_vec(),
            Spread::Clustered => {
                let cluster = random.below(40);
                let centre = Random(cluster).next() >> 14;
                (centre + random.below(1 << (16 + cluster / 2))).to_be_bytes().to_vec()
            }
            Spread::Text => {
                let words = ["sieve", "drum", "grain", "chaff", "mill", "stone", "husk", "bran"];
                let mut word = || words[random.below(8) as usize];
                let path = format!("/{}/{}/{}-{}", word(), word(), word(), word());
                format!("{path}-{}", random.below(10_000)).into_bytes()
            }
        }
    }
}

/// What is in the tree.
pub(crate) struct Bed {
    pub(crate) base: BTreeSet<Key>,
    pub(crate) flushes: Vec<BTreeSet<Key>>,
}

impl Bed {
    /// `base` keys, and so many flushes of `each` keys. Every eighth key of a flush is one of an
    /// earlier flush as well.
    pub(crate) fn new(spread: Spread, base: usize, flushes: usize, each: usize) -> Bed {
        let mut random = Random(11);
        let mut used = BTreeSet::new();
        let mut draw = |count: usize, random: &mut Random| -> BTreeSet<Key> {
            let mut keys = BTreeSet::new();
            while keys.len() < count {
                let key = spread.key(random);
                if used.insert(key.clone()) {
                    keys.insert(key);
                }
            }
            keys
        };
        let base = draw(base, &mut random);
        let mut dealt: Vec<BTreeSet<Key>> = Vec::new();
        for flush in 0..flushes {
            let mut keys = draw(each, &mut random);
            if flush > 0 {
                let earlier = dealt[random.below(flush as u64) as usize].iter();
                keys.extend(earlier.skip(flush % 5).step_by(8).cloned());
            }
            dealt.push(keys);
        }
        Bed { base, flushes: dealt }
    }

    /// Without flushes.
    pub(crate) fn base_part(&self, fingerprints: Fingerprints) -> Part {
        let options = GrfOptions { fingerprints, ..GrfOptions::default() };
        let mut builder = PartBuilder::new(&options);
        self.base.iter().for_each(|key| builder.push(key));
        builder.finish(FlushNumber(BASE_END))
    }

    /// The flushes of a key, as numbers; not those of the base.
    pub(crate) fn flushes_of(&self, key: &Key) -> Vec<u64> {
        let numbered = (BASE_END..).zip(&self.flushes);
        numbered.filter(|(_, keys)| keys.contains(key)).map(|(number, _)| number).collect()
    }

    /// Every key that was flushed.
    pub(crate) fn flushed(&self) -> BTreeSet<&Key> {
        self.flushes.iter().flatten().collect()
    }
}

/// The part with one more flush, for a version with the runs of `shape`.
pub(crate) fn insert(part: &Part, number: u64, keys: &BTreeSet<Key>, shape: &Shape) -> Part {
    let mut inserter = part.inserter(FlushNumber(number), shape);
    keys.iter().for_each(|key| inserter.push(key));
    inserter.finish()
}

pub(crate) fn answer(part: &Part, query: &Query<'_>) -> Codes {
    let mut codes = Codes::new();
    part.candidates(query, &mut codes);
    codes
}

/// The runs that a part names for a query.
pub(crate) fn runs(part: &Part, shape: &Shape, query: &Query<'_>) -> BTreeSet<u16> {
    shape.resolve(&answer(part, query)).map(|run| run.0).collect()
}

/// Asks for keys as points, and for the ranges between each and the next but `apart`.
pub(crate) fn ask_all(keys: &[Key], apart: usize, mut ask: impl FnMut(&Query<'_>)) {
    keys.iter().for_each(|key| ask(&Query::Point(key)));
    for pair in keys.windows(apart + 1).step_by(apart) {
        let range = KeyRange::new(&pair[0], Some(&pair[apart])).expect("sorted");
        ask(&Query::Range(range));
    }
}
