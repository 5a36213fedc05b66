//! An attempt of the writer: a batch that follows from its number.
//! ```text
//! seed, number -> its own number under a key, and one to four writes in three key spaces
//! ```
//! Invariant: the effect of attempts on a store follows from the seed and their numbers alone.

use std::collections::BTreeMap;

use crate::keys::rng::{Rng, scramble};

/// The key whose value is the number of the last attempt.
pub(super) const LAST: &[u8] = b"#";
/// Keys of a key space.
pub(super) const KEYS: u64 = 600;
/// A value of this size is stored apart from its key, whatever threshold the writer's options have.
pub(super) const APART_BYTES: usize = 1024;
/// The attempts after which a new passing key space replaces the old one.
const GENERATION: u64 = 1500;

/// A key space: the default one, another permanent one, or a passing one that is dropped later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Space {
    Default,
    Other,
    Passing(u64),
}

impl Space {
    pub(super) fn name(self) -> String {
        match self {
            Space::Default => "default".into(),
            Space::Other => "other".into(),
            Space::Passing(number) => format!("passing-{number}"),
        }
    }

    /// Returns the passing key space of an attempt.
    pub(super) fn passing(attempt: u64) -> Space {
        Space::Passing(attempt / GENERATION)
    }
}

/// One write of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// Returns the key of a place.
pub(super) fn key(place: u64) -> Vec<u8> {
    format!("{place:05}").into_bytes()
}

/// Returns the writes of an attempt, in order.
pub(super) fn acts(seed: u64, attempt: u64) -> Vec<(Space, Act)> {
    let mut rng = Rng::new(seed ^ scramble(attempt));
    let last = Act::Put(LAST.to_vec(), attempt.to_string().into_bytes());
    let mut acts = vec![(Space::Default, last)];
    for place in 0..=rng.below(4) {
        let space = match rng.below(4) {
            0 => Space::Other,
            1 => Space::passing(attempt),
            _ => Space::Default,
        };
        let key_of = |rng: &mut Rng| key(rng.below(KEYS));
        let (key, text) = (key_of(&mut rng), format!("{attempt}.{place} "));
        let act = match rng.below(100) {
            0..60 => Act::Put(key, text.repeat(1 + rng.below(40) as usize).into_bytes()),
            60..64 => Act::Put(key, text.repeat(400).into_bytes()),
            64..78 => Act::Delete(key),
            78..98 => Act::Merge(key, text.into_bytes()),
            _ => {
                let from = rng.below(KEYS);
                Act::DeleteRange(self::key(from), self::key(from + rng.below(20)))
            }
        };
        acts.push((space, act));
    }
    acts
}

/// The expected contents of a store, by key space and key.
#[derive(Clone, Debug, Default)]
pub(super) struct Model(BTreeMap<(Space, Vec<u8>), Vec<u8>>);

impl Model {
    /// Applies the writes of an attempt.
    pub(super) fn apply(&mut self, seed: u64, attempt: u64) {
        for (space, act) in acts(seed, attempt) {
            match act {
                Act::Put(key, value) => {
                    self.0.insert((space, key), value);
                }
                Act::Delete(key) => {
                    self.0.remove(&(space, key));
                }
                Act::Merge(key, operand) => {
                    self.0.entry((space, key)).or_default().extend_from_slice(&operand);
                }
                Act::DeleteRange(from, to) => {
                    let range = (space, from)..(space, to);
                    let gone: Vec<_> = self.0.range(range).map(|(key, _)| key.clone()).collect();
                    gone.iter().for_each(|key| _ = self.0.remove(key));
                }
            }
        }
    }

    pub(super) fn get(&self, space: Space, key: &[u8]) -> Option<&[u8]> {
        self.0.get(&(space, key.to_vec())).map(|value| &**value)
    }

    /// Returns the entries of a range of keys.
    pub(super) fn range(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
    ) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        let range = (space, from.to_vec())..(space, to.to_vec());
        self.0.range(range).map(|((_, key), value)| (&**key, &**value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_follows_from_its_number() {
        assert_eq!(acts(7, 30), acts(7, 30));
        assert_ne!(acts(7, 30), acts(7, 31));
        let mut model = Model::default();
        (1..=2000).for_each(|attempt| model.apply(7, attempt));
        assert_eq!(model.get(Space::Default, LAST), Some(&b"2000"[..]));
        let all = |space| model.range(space, b"0", b"9").count();
        assert!(all(Space::Default) > 50 && all(Space::Other) > 50);
        assert!(all(Space::Passing(0)) > 50 && all(Space::Passing(1)) > 20);
    }
}
