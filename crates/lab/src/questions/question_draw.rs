//! Draws questions.
//! ```text
//! misses     like the keys     a draw like the stored keys that is none of them
//!            behind them       a stored key, and a distance up to a limit      (correlated)
//!            deleted           a key that was stored, and is no more
//! skew       misses, ranges and seeks: a pool of them is drawn like the keys, and of it some are
//!            asked for far more often, as of the stored keys    (behind them: behind hot keys)
//! closed     [n, n + width - 1] where n is the first eight bytes of a key, as a number
//! ```
//! Invariant: no miss and no empty range has a stored key. The same seed gives the same questions.

use crate::error::{LabError, Result};
use crate::keys::key_list::{KeyList, SortedKeys, key_after, key_before};
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, scramble};
use crate::keys::skew::{Places, Skew};
use crate::questions::queries::{Kind, Queries};

/// How questions are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw<'k> {
    /// Questions of each kind and thread.
    pub(crate) count: usize,
    /// How many neighbouring keys a range spans, at least 1.
    pub(crate) width: u64,
    /// How gets are distributed over the keys.
    pub(crate) skew: Skew,
    /// The location of misses and empty ranges.
    pub(crate) misses: Misses<'k>,
}

/// The location of misses and empty ranges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Misses<'k> {
    /// Drawn as the keys are.
    LikeKeys,
    /// At most this far behind a stored key.
    Behind(u64),
    /// At, or around, one of these keys, which were deleted.
    Deleted(&'k SortedKeys),
}

/// The most keys of a pool in which some are hot.
const POOL_MAX: usize = 1 << 20;
/// Draws per question before the width of ranges counts as too large.
const DRAWS_PER_QUERY: usize = 1000;
/// The most draws without any miss before the search ends.
const DRAWS_IN_VAIN_MAX: usize = 100_000;
/// The mean draws per question after which the search for more ends.
const DRAWS_PER_QUERY_MEAN: usize = 50;

impl Draw<'_> {
    /// Returns the rule for questions without skew.
    pub(crate) fn even(count: usize, width: u64) -> Self {
        Draw { count, width, skew: Skew::None, misses: Misses::LikeKeys }
    }
}

impl Queries {
    /// Draws `count` questions over all keys uniformly. `width`: how many neighbouring keys a range
    /// spans, at least 1.
    pub fn draw(
        kind: Kind,
        keys: &KeySet,
        count: usize,
        width: u64,
        rng: &mut Rng,
    ) -> Result<Self> {
        Self::draw_as(kind, keys, Draw::even(count, width), rng)
    }

    /// Draws questions by a rule.
    pub(crate) fn draw_as(
        kind: Kind,
        keys: &KeySet,
        draw: Draw<'_>,
        rng: &mut Rng,
    ) -> Result<Self> {
        let (mut lowers, mut uppers) = (KeyList::new(), KeyList::new());
        let places = Places::new(draw.skew, keys.stored().len());
        let longest = keys.stored().longest();
        let mut source = QuestionSource { keys, draw, places, pool: None, longest };
        source.pool = source.pool_of(kind)?;
        for _ in 0..draw.count {
            let (lower, upper) = source.question(kind, rng)?;
            lowers.push(&lower);
            if let Some(upper) = upper {
                uppers.push(&upper);
            }
        }
        Ok(Queries::of(kind, lowers, uppers))
    }

    /// Draws at most `count` misses, like the keys: points, or ranges of a width. There are fewer,
    /// or none, if a bounded number of draws finds no more.
    pub(crate) fn draw_misses(
        kind: Kind,
        keys: &KeySet,
        count: usize,
        width: u64,
        rng: &mut Rng,
    ) -> Self {
        let reach = if kind.is_point() { 0 } else { width.max(1) - 1 };
        Self::drawn(kind, count, || {
            let lower = keys.draw(rng);
            let upper = key_after(&lower, reach);
            let is_free = keys.stored().first_in(&lower, &upper).is_none();
            is_free.then(|| (lower, (!kind.is_point()).then_some(upper)))
        })
    }

    /// Takes at most `count` questions from `draw`: each a first key, and a last one if it is a
    /// closed range. There are fewer, or none, if a bounded number of draws gives no more.
    pub(crate) fn drawn(
        kind: Kind,
        count: usize,
        mut draw: impl FnMut() -> Option<(Vec<u8>, Option<Vec<u8>>)>,
    ) -> Self {
        let (mut lowers, mut uppers) = (KeyList::new(), KeyList::new());
        for drawn in 0..count.saturating_mul(DRAWS_PER_QUERY_MEAN) {
            if lowers.len() == count || (lowers.is_empty() && drawn == DRAWS_IN_VAIN_MAX) {
                break;
            }
            let Some((lower, upper)) = draw() else { continue };
            lowers.push(&lower);
            upper.iter().for_each(|upper| uppers.push(upper));
        }
        Queries::of(kind, lowers, uppers)
    }
}

/// Returns the width of closed seeks of which about `share` are empty: a quantile of the distances
/// to the next key, over `draws` draws. Also returns the share of these draws that are empty at
/// that width.
pub(crate) fn closed_width(keys: &KeySet, share: f64, draws: usize, rng: &mut Rng) -> (u64, f64) {
    let stored = keys.stored();
    let distance = |key: Vec<u8>| {
        let from = leading_number(&key);
        let next = stored.first_from(&from.to_be_bytes()).map(leading_number);
        next.map_or(u64::MAX, |next| next.saturating_sub(from))
    };
    let mut distances: Vec<u64> = (0..draws.max(1)).map(|_| distance(keys.draw(rng))).collect();
    distances.sort_unstable();
    let place = ((1.0 - share) * distances.len() as f64) as usize;
    let width = distances[place.min(distances.len() - 1)].max(1);
    let hits = distances.partition_point(|distance| *distance < width);
    (width, 1.0 - hits as f64 / distances.len() as f64)
}

/// Returns the first eight bytes as a number; shorter keys are padded with zeros.
fn leading_number(key: &[u8]) -> u64 {
    let mut word = [0; 8];
    let bytes = key.len().min(word.len());
    word[..bytes].copy_from_slice(&key[..bytes]);
    u64::from_be_bytes(word)
}

/// Keys of which some are hot.
struct Pool {
    keys: SortedKeys,
    places: Places,
}

/// Draws questions one by one.
struct QuestionSource<'k> {
    keys: &'k KeySet,
    draw: Draw<'k>,
    places: Places,
    /// The first keys of questions without a stored key, if some are hot.
    pool: Option<Pool>,
    /// The length of the longest key.
    longest: usize,
}

impl QuestionSource<'_> {
    /// Draws as many keys as are stored, like them; all threads get the same pool. None: all
    /// questions of this kind are equally likely.
    fn pool_of(&self, kind: Kind) -> Result<Option<Pool>> {
        let is_even = self.draw.skew == Skew::None;
        let is_like_keys = matches!(self.draw.misses, Misses::LikeKeys);
        let drawn: fn(&Self, &mut Rng) -> Result<Vec<u8>> = match kind {
            _ if is_even => return Ok(None),
            Kind::PointMiss | Kind::PointHalf if is_like_keys => Self::miss,
            Kind::EmptyRange if is_like_keys => Self::empty_range,
            Kind::Seek | Kind::SeekNext50 | Kind::ClosedSeek => Self::any,
            _ => return Ok(None),
        };
        let mut rng = Rng::new(scramble(self.keys.stored().len() as u64));
        let count = self.keys.stored().len().min(POOL_MAX);
        let mut keys = KeyList::new();
        for _ in 0..count {
            keys.push(&drawn(self, &mut rng)?);
        }
        let keys = SortedKeys::from_list(&keys);
        let places = Places::new(self.draw.skew, keys.len());
        Ok(Some(Pool { keys, places }))
    }

    /// Draws a key of the pool; without a pool, calls `drawn`.
    fn hot_or(
        &self,
        rng: &mut Rng,
        drawn: impl Fn(&Self, &mut Rng) -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        match &self.pool {
            Some(Pool { keys, places }) => Ok(keys.get(places.draw(rng)).to_vec()),
            None => drawn(self, rng),
        }
    }

    /// Draws the first key of a question, and the last one if it is a closed range.
    fn question(&self, kind: Kind, rng: &mut Rng) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
        let (stored, reach) = (self.keys.stored(), self.draw.width.max(1) - 1);
        match kind {
            Kind::PointMiss => Ok((self.hot_or(rng, Self::miss)?, None)),
            Kind::PointHit => Ok((self.hit(rng), None)),
            Kind::PointHalf if rng.below(2) == 0 => Ok((self.hit(rng), None)),
            Kind::PointHalf => Ok((self.hot_or(rng, Self::miss)?, None)),
            Kind::EmptyRange => {
                let lower = self.hot_or(rng, Self::empty_range)?;
                let upper = key_after(&lower, reach);
                Ok((lower, Some(upper)))
            }
            Kind::RangeHit => {
                let key = stored.get(self.places.draw(rng));
                let before = if reach == 0 { 0 } else { rng.below(reach) };
                Ok((key_before(key, before), Some(key_after(key, reach - before))))
            }
            Kind::Seek | Kind::SeekNext50 => Ok((self.hot_or(rng, Self::any)?, None)),
            Kind::ClosedSeek => {
                let first = leading_number(&self.hot_or(rng, Self::any)?);
                let mut upper = first.saturating_add(reach).to_be_bytes().to_vec();
                upper.resize(self.longest.max(upper.len()), u8::MAX);
                Ok((first.to_be_bytes().to_vec(), Some(upper)))
            }
            Kind::Unanswered(ask) => unreachable!("{ask} is drawn by `Ask::draw`"),
        }
    }

    fn hit(&self, rng: &mut Rng) -> Vec<u8> {
        self.keys.stored().get(self.places.draw(rng)).to_vec()
    }

    /// Draws a key that is not stored.
    fn miss(&self, rng: &mut Rng) -> Result<Vec<u8>> {
        let stored = self.keys.stored();
        let is_free = |key: &[u8]| !stored.holds(key);
        match self.draw.misses {
            Misses::Behind(most) => self.behind(&is_free, rng, most),
            Misses::Deleted(keys) => Ok(keys.get(rng.place(keys.len())).to_vec()),
            Misses::LikeKeys => self.redrawn(&is_free, rng),
        }
    }

    /// Draws the first key of a range without a stored key.
    fn empty_range(&self, rng: &mut Rng) -> Result<Vec<u8>> {
        let (stored, reach) = (self.keys.stored(), self.draw.width.max(1) - 1);
        let is_empty = |key: &[u8]| stored.first_in(key, &key_after(key, reach)).is_none();
        match self.draw.misses {
            Misses::LikeKeys => self.redrawn(&is_empty, rng),
            Misses::Behind(most) => self.behind(&is_empty, rng, most),
            Misses::Deleted(keys) => {
                let around = |rng: &mut Rng| {
                    let key = keys.get(rng.place(keys.len()));
                    key_before(key, if reach == 0 { 0 } else { rng.below(reach) })
                };
                let what = "where keys were deleted there is no empty range";
                first_that(&is_empty, rng, around, what)
            }
        }
    }

    /// Draws keys like the stored ones until one fits.
    fn redrawn(&self, fits: &dyn Fn(&[u8]) -> bool, rng: &mut Rng) -> Result<Vec<u8>> {
        let what = "among the keys' neighbours there is no miss";
        first_that(fits, rng, |rng| self.keys.draw(rng), what)
    }

    /// Draws a key like the stored ones.
    fn any(&self, rng: &mut Rng) -> Result<Vec<u8>> {
        Ok(self.keys.draw(rng))
    }

    /// Draws a key at most `reach` behind a stored one.
    fn behind(&self, fits: &dyn Fn(&[u8]) -> bool, rng: &mut Rng, reach: u64) -> Result<Vec<u8>> {
        let stored = self.keys.stored();
        let behind = |rng: &mut Rng| {
            let key = stored.get(self.places.draw(rng));
            key_after(key, 1 + rng.below(reach))
        };
        first_that(fits, rng, behind, "behind the stored keys there is no room for a miss")
    }
}

/// Returns the first of a bounded number of draws that fits, or an error that says what is missing.
fn first_that(
    fits: &dyn Fn(&[u8]) -> bool,
    rng: &mut Rng,
    draw: impl Fn(&mut Rng) -> Vec<u8>,
    what: &str,
) -> Result<Vec<u8>> {
    for _ in 0..DRAWS_PER_QUERY {
        let key = draw(rng);
        if fits(&key) {
            return Ok(key);
        }
    }
    Err(LabError::Plan(format!("{what} of that width: use a smaller --range-width")))
}
