//! The keys of a measurement: those that are stored, and where other keys like them come from.
//! ```text
//! a rule (uniform, ...)   draws -> stored            more draws     -> misses
//! a set (file, shipped)   7 of 8 -> stored           held out, 1 of 8 -> misses
//! ids                     10 of 11 -> stored         held out, 1 of 11 -> misses
//! ```
//! Invariant: held-out keys are never stored.

use std::collections::HashSet;
use std::path::Path;

use crate::dist::{Dist, FileFormat, Sampler};
use crate::error::{LabError, Result};
use crate::keys::{KeyList, SortedKeys};
use crate::natural_earth::natural_earth;
use crate::rng::Rng;

/// Keys to store, and a source of keys like them.
#[derive(Clone, Debug)]
pub struct KeySet {
    stored: SortedKeys,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Rule(Sampler),
    HeldOut(SortedKeys),
}

/// How many keys a rule makes if nobody says.
const COUNT_DEFAULT: usize = 1_000_000;
/// Every so many keys of a set one is held out.
const HELD_OUT_EVERY: usize = 8;
/// Of so many dense ids that are stored, there is one more that is not.
const IDS_PER_MISSING: usize = 10;
/// Draws per key before a rule counts as exhausted.
const DRAWS_PER_KEY: usize = 100;

impl KeySet {
    /// The keys of a distribution. `count`: how many to store; of a set, all by default, else a
    /// random choice of them.
    pub fn new(dist: &Dist, format: FileFormat, count: Option<usize>, seed: u64) -> Result<Self> {
        let mut rng = Rng::new(seed);
        if count == Some(0) {
            return Err(LabError::Plan("0 keys: there is nothing to measure".into()));
        }
        if let Some(sampler) = Sampler::of(dist) {
            let stored = drawn(&sampler, count.unwrap_or(COUNT_DEFAULT), &mut rng)?;
            return Ok(KeySet { stored, source: Source::Rule(sampler) });
        }
        if *dist == Dist::Ids {
            return dense_ids(count.unwrap_or(COUNT_DEFAULT), &mut rng);
        }
        let whole = match dist {
            Dist::File(path) => read_file(path, format)?,
            _ => natural_earth(),
        };
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
            Some(count) => split_at_random(&kept, count, &mut rng).1,
            None => kept,
        };
        Ok(KeySet { stored, source: Source::HeldOut(held_out) })
    }

    /// The keys to store.
    pub fn stored(&self) -> &SortedKeys {
        &self.stored
    }

    /// A key like the stored ones; by chance it may be one of them.
    pub fn draw(&self, rng: &mut Rng) -> Vec<u8> {
        match &self.source {
            Source::Rule(sampler) => sampler.draw(rng).to_be_bytes().to_vec(),
            Source::HeldOut(keys) => keys.get(rng.place(keys.len())).to_vec(),
        }
    }
}

/// `count` distinct draws.
fn drawn(sampler: &Sampler, count: usize, rng: &mut Rng) -> Result<SortedKeys> {
    let mut numbers = room_for(count)?;
    let mut known: HashSet<u64> = HashSet::new();
    known.try_reserve(count).map_err(|_| too_many(count))?;
    numbers.extend((0..count).map(|_| sampler.draw(rng)));
    numbers.retain(|number| known.insert(*number));
    let mut draws = 0;
    while numbers.len() < count {
        let number = sampler.draw(rng);
        draws += 1;
        if known.insert(number) {
            numbers.push(number);
        } else if draws > count.saturating_mul(DRAWS_PER_KEY) {
            let problem = format!("the distribution has not {count} distinct keys");
            return Err(LabError::Plan(problem));
        }
    }
    Ok(SortedKeys::from_integers(numbers))
}

/// An empty list with memory for `count` numbers.
fn room_for(count: usize) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    // Keys are counted in 32 bits; of those that could be counted, memory may hold fewer.
    let reserved = count <= u32::MAX as usize && numbers.try_reserve_exact(count).is_ok();
    reserved.then_some(numbers).ok_or_else(|| too_many(count))
}

fn too_many(count: usize) -> LabError {
    LabError::Plan(format!("{count} keys are more than memory holds"))
}

/// The numbers from 0 on without some at random, which are held out; `count` are stored.
fn dense_ids(count: usize, rng: &mut Rng) -> Result<KeySet> {
    let missing = (count / IDS_PER_MISSING).max(1);
    let ids = count.saturating_add(missing);
    let mut numbers = room_for(ids)?;
    numbers.extend(0..ids as u64);
    let whole = SortedKeys::from_integers(numbers);
    let (stored, held_out) = split_at_random(&whole, missing, rng);
    Ok(KeySet { stored, source: Source::HeldOut(held_out) })
}

/// A random choice of `count` keys, behind the others. Requires: there are as many.
fn split_at_random(keys: &SortedKeys, count: usize, rng: &mut Rng) -> (SortedKeys, SortedKeys) {
    let mut left = keys.len();
    let mut wanted = count;
    keys.split(|_| {
        let take = rng.place(left) < wanted;
        left -= 1;
        wanted -= usize::from(take);
        take
    })
}

fn read_file(path: &Path, format: FileFormat) -> Result<SortedKeys> {
    let wrong = |problem: String| LabError::KeyFile { path: path.to_path_buf(), problem };
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    if bytes.is_empty() {
        return Err(wrong("the file is empty".into()));
    }
    match format {
        FileFormat::U64le if bytes.len() % 8 != 0 => {
            let problem = format!("{} bytes are not a whole number of 8-byte keys", bytes.len());
            Err(wrong(problem))
        }
        FileFormat::U64le => {
            let (words, _) = bytes.as_chunks::<8>();
            Ok(SortedKeys::from_integers(
                words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
            ))
        }
        FileFormat::Lines => lines(&bytes).map_err(wrong),
    }
}

/// The lines of a text that are not empty.
fn lines(bytes: &[u8]) -> std::result::Result<SortedKeys, String> {
    let mut list = KeyList::new();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.contains(&0) {
            return Err(format!(
                "line {number} has a zero byte: this is no text (try --file-format u64le)"
            ));
        }
        if line.len() > trommel::KEY_BYTES_MAX {
            let max = trommel::KEY_BYTES_MAX;
            return Err(format!("line {number} has {} bytes: a key has at most {max}", line.len()));
        }
        if !line.is_empty() {
            list.push(line);
        }
    }
    Ok(SortedKeys::from_list(&list))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_file(bytes: &[u8], format: FileFormat) -> Result<KeySet> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        std::fs::write(&path, bytes).expect("written");
        KeySet::new(&Dist::File(path), format, None, 1)
    }

    #[test]
    fn rules_give_as_many_keys_as_asked() {
        for dist in [Dist::Uniform, Dist::Normal, Dist::Lognormal, Dist::Clustered] {
            let keys = KeySet::new(&dist, FileFormat::Lines, Some(5000), 3).expect("keys");
            assert_eq!(keys.stored().len(), 5000);
            let again = KeySet::new(&dist, FileFormat::Lines, Some(5000), 3).expect("keys");
            assert!(keys.stored().iter().eq(again.stored().iter()));
        }
    }

    #[test]
    fn every_eighth_key_of_a_set_is_held_out() {
        let keys = KeySet::new(&Dist::NaturalEarth, FileFormat::Lines, None, 1).expect("keys");
        assert_eq!(keys.stored().len(), 472_391 - 472_391 / 8);
        let mut rng = Rng::new(5);
        assert!((0..1000).all(|_| !keys.stored().holds(&keys.draw(&mut rng))));
        let fewer =
            KeySet::new(&Dist::NaturalEarth, FileFormat::Lines, Some(1000), 1).expect("keys");
        assert_eq!(fewer.stored().len(), 1000);
        assert!(KeySet::new(&Dist::NaturalEarth, FileFormat::Lines, Some(500_000), 1).is_err());
    }

    #[test]
    fn dense_ids_lack_one_in_eleven() {
        let keys = KeySet::new(&Dist::Ids, FileFormat::Lines, Some(1000), 1).expect("keys");
        let stored = keys.stored();
        let missing: Vec<[u8; 8]> =
            (0..1100u64).map(u64::to_be_bytes).filter(|id| !stored.holds(id)).collect();
        assert_eq!((stored.len(), missing.len()), (1000, 100));
        let mut rng = Rng::new(5);
        let drawn: HashSet<Vec<u8>> = (0..5000).map(|_| keys.draw(&mut rng)).collect();
        assert!(drawn.len() == 100 && missing.iter().all(|id| drawn.contains(&id[..])));
        assert!(KeySet::new(&Dist::Ids, FileFormat::Lines, Some(usize::MAX), 1).is_err());
    }

    #[test]
    fn files_are_read_in_both_formats() {
        let text = b"b\na\r\n\nc\nd\ne\nf\ng\nh\na\ni";
        let keys = of_file(text, FileFormat::Lines).expect("lines");
        assert_eq!(keys.stored().len(), 8);
        assert_eq!(keys.draw(&mut Rng::new(1)), b"h");
        let numbers: Vec<u8> = (0..80u64).rev().flat_map(u64::to_le_bytes).collect();
        let keys = of_file(&numbers, FileFormat::U64le).expect("numbers");
        assert_eq!((keys.stored().len(), keys.stored().get(69)), (70, &78u64.to_be_bytes()[..]));
    }

    #[test]
    fn bad_files_are_errors_that_name_the_place() {
        for (bytes, format, word) in [
            (&b""[..], FileFormat::Lines, "empty"),
            (b"a\nb\0c\n", FileFormat::Lines, "line 2"),
            (b"123456789", FileFormat::U64le, "9 bytes"),
            (b"a\nb\n", FileFormat::Lines, "at least 8"),
        ] {
            let message = of_file(bytes, format).expect_err(word).to_string();
            assert!(message.contains(word), "{message}");
        }
        let long = of_file(&[b'x'; 65_537], FileFormat::Lines).expect_err("too long").to_string();
        assert!(long.contains("line 1"), "{long}");
        let missing = Dist::File("/nowhere/keys".into());
        assert!(KeySet::new(&missing, FileFormat::Lines, None, 1).is_err());
    }
}
