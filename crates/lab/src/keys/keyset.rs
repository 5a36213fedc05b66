//! The keys of a measurement: the stored keys, and a source of other keys like them.
//! ```text
//! a law (uniform, ...)    draws -> stored            more draws     -> misses
//! groups (user-time, ...) 7 of 8 -> stored           held out, 1 of 8 -> misses
//! a set (file, shipped)   7 of 8 -> stored           held out, 1 of 8 -> misses
//! ids                     10 of 11 -> stored         held out, 1 of 11 -> misses
//! ```
//! Invariant: held-out keys are never stored.

use std::collections::HashSet;

use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::key_files::{read_file, read_sosd};
use crate::keys::key_list::{KeyList, SortedKeys};
use crate::keys::laws::{GroupLaw, Law, NumberLaw, StringLaw};
use crate::keys::natural_earth::natural_earth;
use crate::keys::real_sets;
use crate::keys::rng::Rng;
use crate::report::KeysReport;

/// The stored keys, and a source of keys like them.
#[derive(Clone, Debug)]
pub struct KeySet {
    stored: SortedKeys,
    source: Source,
    dist: Dist,
    duplicates: u64,
}

#[derive(Clone, Debug)]
enum Source {
    Law(Law),
    HeldOut(SortedKeys),
    /// The held-out keys of groups, and the law of further groups.
    Groups(SortedKeys, GroupLaw),
    /// One of two sources; the number is the second one's share.
    Either(Box<[Source; 2]>, f64),
}

impl Source {
    fn draw(&self, rng: &mut Rng) -> Vec<u8> {
        match self {
            Source::Law(law) => {
                let mut key = Vec::new();
                law.draw(&mut key, rng);
                key
            }
            Source::HeldOut(keys) | Source::Groups(keys, _) => {
                keys.get(rng.place(keys.len())).to_vec()
            }
            Source::Either(sources, share) => sources[usize::from(rng.unit() < *share)].draw(rng),
        }
    }
}

impl Source {
    fn draw_stranger(&self, rng: &mut Rng) -> Vec<u8> {
        match self {
            Source::Law(_) | Source::HeldOut(_) => self.draw(rng),
            Source::Groups(_, law) => {
                let mut group = KeyList::new();
                law.draw(&mut group, rng);
                group.get(rng.place(group.len())).to_vec()
            }
            Source::Either(sources, share) => {
                sources[usize::from(rng.unit() < *share)].draw_stranger(rng)
            }
        }
    }
}

/// The default number of keys of a law.
const COUNT_DEFAULT: usize = 1_000_000;
/// One key in this many of a set is held out.
const HELD_OUT_EVERY: usize = 8;
/// Of dense ids, one is missing for this many stored ones.
const IDS_PER_MISSING: usize = 10;
/// Draws per key before a law counts as exhausted.
const DRAWS_PER_KEY: usize = 100;

impl KeySet {
    /// Returns the keys of a distribution. `count`: how many to store. By default all keys of a set
    /// are stored, otherwise a random choice.
    pub fn new(dist: &Dist, format: FileFormat, count: Option<usize>, seed: u64) -> Result<Self> {
        Self::with_default(dist, format, count, COUNT_DEFAULT, seed)
    }

    /// Like [`Self::new`], but a law has `default` keys if `count` is None.
    pub(crate) fn with_default(
        dist: &Dist,
        format: FileFormat,
        count: Option<usize>,
        default: usize,
        seed: u64,
    ) -> Result<Self> {
        let folder = real_sets::folder();
        let dist = dist.in_folder(&folder);
        if count == Some(0) {
            return Err(LabError::Plan("0 keys: there is nothing to measure".into()));
        }
        if dist.is_set() {
            let (whole, read) = match &dist {
                Dist::File(path) => read_file(path, format)?,
                Dist::Sosd(path) => read_sosd(path)?,
                Dist::Real(set) => read_file(&set.path(&folder), set.format())?,
                _ => counted(natural_earth()),
            };
            return of_set(whole, read, dist, count, seed);
        }
        let mut rng = Rng::new(seed);
        let count = count.unwrap_or(default);
        let (stored, source) = match (Law::of(&dist, count), GroupLaw::of(&dist)) {
            (Some(law), _) => (drawn(&law, count, &mut rng)?, Source::Law(law)),
            (None, Some(law)) => of_groups(law, count, &mut rng)?,
            (None, None) => dense_ids(count, &mut rng)?,
        };
        Ok(KeySet { stored, source, dist, duplicates: 0 })
    }

    /// Returns the keys to store.
    pub fn stored(&self) -> &SortedKeys {
        &self.stored
    }

    /// Returns the stored keys and the held-out keys.
    pub(crate) fn with_held_out(self) -> SortedKeys {
        match self.source {
            Source::HeldOut(others) | Source::Groups(others, _) => {
                SortedKeys::from_list(&self.stored.iter().chain(others.iter()).collect())
            }
            Source::Law(_) | Source::Either(..) => self.stored,
        }
    }

    /// Returns the actual source: the stand-in of a real set that was not downloaded.
    pub fn dist(&self) -> &Dist {
        &self.dist
    }

    /// Draws a key like the stored ones, which may be one of them by chance.
    pub fn draw(&self, rng: &mut Rng) -> Vec<u8> {
        self.source.draw(rng)
    }

    /// Like `draw`, but if keys come in groups, draws a key of a new group.
    pub(crate) fn draw_stranger(&self, rng: &mut Rng) -> Vec<u8> {
        self.source.draw_stranger(rng)
    }

    /// Replaces the stored keys and keeps the source.
    pub(crate) fn with_stored(self, stored: SortedKeys) -> Self {
        KeySet { stored, ..self }
    }

    /// Joins two sets. Of the other set, only the keys `fresh` are stored. Draws come from both
    /// sources in proportion to their stored keys.
    /// Requires: the keys `fresh` are not stored yet.
    pub(crate) fn joined(self, other: KeySet, fresh: &SortedKeys) -> Self {
        let all: KeyList = self.stored.iter().chain(fresh.iter()).collect();
        let stored = SortedKeys::from_list(&all);
        let share = fresh.len() as f64 / stored.len() as f64;
        let source = Source::Either(Box::new([self.source, other.source]), share);
        KeySet { stored, source, ..self }
    }

    /// Returns the lengths and shared prefixes of the stored keys.
    pub fn shape(&self) -> KeysReport {
        let neighbours = self.stored.iter().zip(self.stored.iter().skip(1));
        let shared = neighbours.map(|(a, b)| a.iter().zip(b).take_while(|(a, b)| a == b).count());
        let mean = |sum: usize, count: usize| sum as f64 / count.max(1) as f64;
        KeysReport {
            bytes_mean: mean(self.stored.size_bytes(), self.stored.len()),
            bytes_max: self.stored.longest() as u64,
            shared_prefix_bytes_mean: mean(shared.sum(), self.stored.len().saturating_sub(1)),
            duplicates: self.duplicates,
        }
    }
}

/// Returns the keys with their number.
fn counted(keys: SortedKeys) -> (SortedKeys, usize) {
    let count = keys.len();
    (keys, count)
}

/// Holds out every eighth key of a set. `read`: the number of keys before duplicates were removed.
fn of_set(
    whole: SortedKeys,
    read: usize,
    dist: Dist,
    count: Option<usize>,
    seed: u64,
) -> Result<KeySet> {
    let duplicates = (read - whole.len()) as u64;
    let (kept, held_out) = whole.split(|place| place % HELD_OUT_EVERY == HELD_OUT_EVERY - 1);
    if held_out.is_empty() {
        let problem = format!("{dist}: at least {HELD_OUT_EVERY} distinct keys are needed");
        return Err(LabError::Plan(problem));
    }
    let stored = match count {
        Some(count) if count > kept.len() => {
            let problem = format!("{dist}: {count} keys asked for, it has {}", kept.len());
            return Err(LabError::Plan(problem));
        }
        Some(count) => split_at_random(&kept, count, &mut Rng::new(seed)).1,
        None => kept,
    };
    Ok(KeySet { stored, source: Source::HeldOut(held_out), dist, duplicates })
}

/// Returns `count` distinct draws.
fn drawn(law: &Law, count: usize, rng: &mut Rng) -> Result<SortedKeys> {
    match law {
        Law::Numbers(law) => drawn_numbers(law, count, rng),
        Law::Strings(law) => drawn_strings(law, count, rng),
    }
}

fn drawn_numbers(law: &NumberLaw, count: usize, rng: &mut Rng) -> Result<SortedKeys> {
    let mut numbers = room_for(count)?;
    let mut known: HashSet<u64> = HashSet::new();
    known.try_reserve(count).map_err(|_| too_many(count))?;
    numbers.extend((0..count).map(|_| law.draw(rng)));
    numbers.retain(|number| known.insert(*number));
    let mut draws = 0;
    while numbers.len() < count {
        let number = law.draw(rng);
        draws += 1;
        if known.insert(number) {
            numbers.push(number);
        } else if draws > count.saturating_mul(DRAWS_PER_KEY) {
            return Err(exhausted(count));
        }
    }
    Ok(SortedKeys::from_integers(numbers))
}

/// Draws as many strings as are missing, until none is missing.
fn drawn_strings(law: &StringLaw, count: usize, rng: &mut Rng) -> Result<SortedKeys> {
    drop(room_for(count)?);
    let (mut keys, mut key, mut draws) = (SortedKeys::default(), Vec::new(), 0);
    while keys.len() < count {
        if draws > count.saturating_mul(DRAWS_PER_KEY) {
            return Err(exhausted(count));
        }
        let mut list: KeyList = keys.iter().collect();
        for _ in keys.len()..count {
            key.clear();
            law.draw(&mut key, rng);
            list.push(&key);
        }
        draws += count - keys.len();
        keys = SortedKeys::from_list(&list);
    }
    Ok(keys)
}

/// Draws groups until there are enough keys, and holds out one key in eight; `count` are stored.
fn of_groups(law: GroupLaw, count: usize, rng: &mut Rng) -> Result<(SortedKeys, Source)> {
    let others = HELD_OUT_EVERY - 1;
    let wanted = count.saturating_add((count / others).max(1));
    drop(room_for(wanted)?);
    let mut list = KeyList::new();
    let (mut keys, mut draws) = (SortedKeys::default(), 0);
    while keys.len() < wanted {
        if draws > DRAWS_PER_KEY {
            return Err(exhausted(count));
        }
        draws += 1;
        let missing = wanted - keys.len();
        let enough = list.len() + missing;
        while list.len() < enough {
            law.draw(&mut list, rng);
        }
        keys = SortedKeys::from_list(&list);
    }
    let (stored, held_out) = split_at_random(&keys, keys.len() - count, rng);
    Ok((stored, Source::Groups(held_out, law)))
}

/// Returns an empty list with memory for `count` numbers.
fn room_for(count: usize) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    // Keys are counted in 32 bits, and memory may not suffice even for fewer.
    let reserved = count <= u32::MAX as usize && numbers.try_reserve_exact(count).is_ok();
    reserved.then_some(numbers).ok_or_else(|| too_many(count))
}

fn too_many(count: usize) -> LabError {
    LabError::Plan(format!("{count} keys are more than memory holds"))
}

fn exhausted(count: usize) -> LabError {
    LabError::Plan(format!("the distribution has not {count} distinct keys"))
}

/// Stores `count` of the numbers from 0 on. The others, at random places, are held out.
fn dense_ids(count: usize, rng: &mut Rng) -> Result<(SortedKeys, Source)> {
    let missing = (count / IDS_PER_MISSING).max(1);
    let ids = count.saturating_add(missing);
    let mut numbers = room_for(ids)?;
    numbers.extend(0..ids as u64);
    let whole = SortedKeys::from_integers(numbers);
    let (stored, held_out) = split_at_random(&whole, missing, rng);
    Ok((stored, Source::HeldOut(held_out)))
}

/// Splits off a random choice of `count` keys, the second set returned. Requires: there are as
/// many.
pub(crate) fn split_at_random(
    keys: &SortedKeys,
    count: usize,
    rng: &mut Rng,
) -> (SortedKeys, SortedKeys) {
    let mut left = keys.len();
    let mut wanted = count;
    keys.split(|_| {
        let take = rng.place(left) < wanted;
        left -= 1;
        wanted -= usize::from(take);
        take
    })
}

#[cfg(test)]
mod tests;
