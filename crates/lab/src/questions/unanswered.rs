//! Questions that no stored key answers, as applications ask them.
//! ```text
//! points           a key like the stored ones
//! ranges           [left, left + width - 1], left like the stored keys
//! absent-prefix    all that begin with the shortest prefix of such a key that is no stored key's
//! present-prefix   a stretch between two stored neighbours, behind the prefix that they share
//! second-part      all that have a first part that no stored key has
//! behind           a key at most 2^20 behind a stored one
//! next             from just behind a stored key to the key that is `width` further on
//! ```
//! A prefix query is the closed range up to the least string above all keys with the prefix, as a
//! store asks it. That string itself is part of the range, though it has not the prefix. If keys
//! are numbers of eight bytes, the range ends at the last number with the prefix.
//! Invariant: no stored key is in any of these ranges. The same seed gives the same questions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use trommel_filters::bits::key_bits::after_all_with;

use crate::error::{LabError, Result};
use crate::keys::dist::Dist;
use crate::keys::key_list::{SortedKeys, key_after};
use crate::keys::keyset::KeySet;
use crate::keys::laws::users::{BELOW, USER_BYTES, row};
use crate::keys::parts::FirstPart;
use crate::keys::rng::Rng;
use crate::questions::queries::{Kind, Queries};

/// A kind of question that no stored key answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// A single key.
    Points,
    /// A range of a given width.
    Ranges,
    /// All keys with a prefix that no stored key has.
    AbsentPrefix,
    /// A stretch between stored keys that share a prefix.
    PresentPrefix,
    /// All keys with an absent first part.
    SecondPart,
    /// A key close behind a stored one.
    Behind,
    /// The keys after a stored key, up to a distance.
    Next,
}

/// A stretch of a user's rows spans one moment in this many.
const STRETCH_SHARE: u64 = 1000;

/// The largest distance of a point behind a stored key.
const CLOSE: u64 = 1 << 20;

/// The ends of a closed range.
type Ends = (Vec<u8>, Vec<u8>);

impl Ask {
    /// All kinds.
    pub const ALL: [Ask; 7] = [
        Ask::Points,
        Ask::Ranges,
        Ask::AbsentPrefix,
        Ask::PresentPrefix,
        Ask::SecondPart,
        Ask::Behind,
        Ask::Next,
    ];

    /// Returns the name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            Ask::Points => "points",
            Ask::Ranges => "ranges",
            Ask::AbsentPrefix => "absent-prefix",
            Ask::PresentPrefix => "present-prefix",
            Ask::SecondPart => "second-part",
            Ask::Behind => "behind",
            Ask::Next => "next",
        }
    }

    /// Returns the known names.
    pub fn known() -> String {
        Self::ALL.map(Ask::name).join(", ")
    }

    /// Returns an error if keys of this distribution have no such question.
    pub(crate) fn check(asks: &[Ask], dist: &Dist) -> Result<()> {
        if asks.contains(&Ask::SecondPart) && FirstPart::of(dist).is_none() {
            let known = FirstPart::known();
            let problem =
                format!("--ask second-part: {dist} has keys of one part; of several: {known}");
            return Err(LabError::Plan(problem));
        }
        Ok(())
    }

    /// Whether it asks for one or more prefixes.
    pub(crate) fn has_prefixes(self) -> bool {
        matches!(self, Ask::AbsentPrefix | Ask::PresentPrefix | Ask::SecondPart)
    }

    /// Whether it asks for one key.
    pub(crate) fn is_point(self) -> bool {
        matches!(self, Ask::Points | Ask::Behind)
    }

    /// Returns those of the widths that the kind is asked with. A kind with its own width returns a
    /// single None.
    pub(crate) fn widths(self, widths: &[u64]) -> Vec<Option<u64>> {
        let those = |fits: fn(u64) -> bool| {
            widths.iter().copied().filter(|width| fits(*width)).map(Some).collect()
        };
        match self {
            Ask::Points => those(|width| width == 1),
            Ask::Ranges => those(|width| width > 1),
            Ask::Next => those(|_| true),
            Ask::AbsentPrefix | Ask::PresentPrefix | Ask::SecondPart | Ask::Behind => vec![None],
        }
    }

    /// Draws `count` questions, or as many as a bounded number of draws finds. An error if it finds
    /// none.
    pub(crate) fn draw_some(
        self,
        keys: &KeySet,
        count: usize,
        width: u64,
        rng: &mut Rng,
    ) -> Result<Queries> {
        let drawn = self.draw(keys, count, Some(width), rng);
        if drawn.is_empty() {
            let dist = keys.dist();
            return Err(LabError::Plan(format!("--ask {self}: {dist} has no such question")));
        }
        Ok(drawn)
    }

    /// Draws at most `count` questions; fewer, or none, if a bounded number of draws finds no more.
    pub(crate) fn draw(
        self,
        keys: &KeySet,
        count: usize,
        width: Option<u64>,
        rng: &mut Rng,
    ) -> Queries {
        let width = width.unwrap_or(1);
        let stored = keys.stored();
        let end = PrefixEnd::of(stored);
        let kind = Kind::Unanswered(self);
        let ranges = |draw: &dyn Fn(&mut Rng) -> Option<Ends>, rng: &mut Rng| {
            Queries::drawn(kind, count, || {
                let (lower, upper) = draw(rng).filter(|ends| is_empty(stored, ends))?;
                Some((lower, Some(upper)))
            })
        };
        match self {
            Ask::Points | Ask::Ranges => Queries::draw_misses(kind, keys, count, width, rng),
            Ask::AbsentPrefix => ranges(&|rng| absent_prefix(stored, &keys.draw(rng), end), rng),
            Ask::PresentPrefix if [Dist::UserTime, Dist::UserSessions].contains(keys.dist()) => {
                ranges(&|rng| Some(stretch_of_user(stored, rng)), rng)
            }
            Ask::PresentPrefix => {
                let bytes = bytes_used(stored);
                ranges(&|rng| stretch_between_neighbours(stored, &bytes, end, rng), rng)
            }
            Ask::SecondPart => {
                let Some(part) = FirstPart::of(keys.dist()) else {
                    return Queries::drawn(kind, 0, || None);
                };
                ranges(&|rng| end.all_with(part.of_key(&keys.draw_stranger(rng))?), rng)
            }
            Ask::Behind => Queries::drawn(kind, count, || {
                let key = stored.get(rng.place(stored.len()));
                let behind = key_after(key, 1 + rng.below(CLOSE));
                stored.first_in(&behind, &behind).is_none().then_some((behind, None))
            }),
            Ask::Next => {
                let is_fixed = is_fixed(stored);
                ranges(&|rng| Some(behind_key(stored, is_fixed, width, rng)), rng)
            }
        }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Ask {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|ask| ask.name() == name).ok_or_else(|| {
            let known = Self::known();
            LabError::Plan(format!("there is no question '{name}'; there are: {known}"))
        })
    }
}

/// Whether the ends are in order, and no stored key lies between.
fn is_empty(stored: &SortedKeys, (lower, upper): &Ends) -> bool {
    lower <= upper && stored.first_in(lower, upper).is_none()
}

/// The end of a range that covers a prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PrefixEnd {
    /// The least string above all keys with the prefix.
    Above,
    /// The last eight-byte number with the prefix.
    LastNumber,
}

const NUMBER_BYTES: usize = 8;

impl PrefixEnd {
    /// Returns the kind of end that suits these keys.
    pub(crate) fn of(stored: &SortedKeys) -> Self {
        let is_number = is_fixed(stored) && stored.longest() == NUMBER_BYTES;
        if is_number { PrefixEnd::LastNumber } else { PrefixEnd::Above }
    }

    /// Returns the range of a prefix. None: no string is above all keys with the prefix.
    pub(crate) fn all_with(self, prefix: &[u8]) -> Option<Ends> {
        self.between(prefix.to_vec(), prefix.to_vec())
    }

    /// Returns the first key behind a range of `between`, given the range's upper end. None:
    /// nothing is behind it.
    pub(crate) fn behind(self, upper: &[u8]) -> Option<Vec<u8>> {
        match self {
            PrefixEnd::Above => Some(upper.to_vec()),
            PrefixEnd::LastNumber => after_all_with(upper.to_vec()),
        }
    }

    /// Returns the range from one prefix to another.
    fn between(self, first: Vec<u8>, mut last: Vec<u8>) -> Option<Ends> {
        let upper = match self {
            PrefixEnd::Above => after_all_with(last)?,
            PrefixEnd::LastNumber => {
                last.resize(NUMBER_BYTES.max(last.len()), u8::MAX);
                last
            }
        };
        Some((first, upper))
    }
}

/// Whether all keys have the same length.
fn is_fixed(stored: &SortedKeys) -> bool {
    stored.longest() * stored.len() == stored.size_bytes()
}

fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns the range of a key's shortest absent prefix. None: a stored key begins with the whole
/// key.
fn absent_prefix(stored: &SortedKeys, key: &[u8], end: PrefixEnd) -> Option<Ends> {
    end.all_with(shortest_absent_prefix(stored, key)?)
}

/// Returns the shortest prefix of `key` that no stored key begins with. None: a stored key begins
/// with the whole key.
pub(crate) fn shortest_absent_prefix<'k>(stored: &SortedKeys, key: &'k [u8]) -> Option<&'k [u8]> {
    let place = stored.place_from(key);
    let neighbours = place.saturating_sub(1)..(place + 1).min(stored.len());
    let shared = neighbours.map(|place| shared_bytes(stored.get(place), key)).max()?;
    key.get(..=shared)
}

/// Draws a stretch of moments of a stored user.
fn stretch_of_user(stored: &SortedKeys, rng: &mut Rng) -> Ends {
    let user = &stored.get(rng.place(stored.len()))[..USER_BYTES];
    let digits = user[USER_BYTES - 8..].iter();
    let user = digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    let begin = rng.below(BELOW - BELOW / STRETCH_SHARE);
    (row(user, begin), row(user, begin + BELOW / STRETCH_SHARE))
}

/// Returns the bytes that occur in stored keys, ascending.
fn bytes_used(stored: &SortedKeys) -> Vec<u8> {
    let mut used = [false; 256];
    stored.iter().flatten().for_each(|byte| used[usize::from(*byte)] = true);
    (0..=u8::MAX).filter(|byte| used[usize::from(*byte)]).collect()
}

/// Returns a range between two stored neighbours: their common prefix, followed by bytes between
/// theirs. None: no byte that keys use lies between.
fn stretch_between_neighbours(
    stored: &SortedKeys,
    bytes: &[u8],
    end: PrefixEnd,
    rng: &mut Rng,
) -> Option<Ends> {
    let place = rng.place(stored.len().saturating_sub(1).max(1));
    let (left, right) = (stored.get(place), stored.get((place + 1).min(stored.len() - 1)));
    let shared = shared_bytes(left, right);
    let (after, before) = (left.get(shared), right.get(shared)?);
    let from = bytes.partition_point(|byte| after.is_some_and(|after| byte <= after));
    let to = bytes.partition_point(|byte| byte < before);
    if shared == 0 || from >= to {
        return None;
    }
    let mut stretch = [0; 2].map(|_| bytes[from + rng.place(to - from)]);
    stretch.sort_unstable();
    let with = |byte| [&left[..shared], &[byte]].concat();
    end.between(with(stretch[0]), with(stretch[1]))
}

/// Returns a range that begins right behind a stored key. `is_fixed`: keys have one length, so the
/// next key is the next number; otherwise it is the key with a zero byte.
fn behind_key(stored: &SortedKeys, is_fixed: bool, width: u64, rng: &mut Rng) -> Ends {
    let key = stored.get(rng.place(stored.len()));
    let lower = if is_fixed { key_after(key, 1) } else { [key, &[0]].concat() };
    (lower, key_after(key, width))
}

#[cfg(test)]
mod tests;
