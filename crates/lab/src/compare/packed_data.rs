//! Entries with realistic values, for measuring compression.
//! ```text
//! text      sentences of common and rare words         json     objects of ten fields
//! numbers   eight numbers, most of them near others    osm      Morton keys; an edit and its tags
//! ```
//! Invariant: an entry follows from its number and the seed alone.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, random_order, scattered_key, scramble};
use crate::keys::skew::Zipf;

/// A kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackedData {
    /// Sentences.
    Text,
    /// JSON objects.
    Json,
    /// Numbers in their binary form.
    Numbers,
    /// Edits of a map, with keys by place.
    Osm,
}

impl PackedData {
    /// All of them.
    pub const ALL: [PackedData; 4] =
        [PackedData::Text, PackedData::Json, PackedData::Numbers, PackedData::Osm];

    fn name(self) -> &'static str {
        match self {
            PackedData::Text => "text",
            PackedData::Json => "json",
            PackedData::Numbers => "numbers",
            PackedData::Osm => "osm",
        }
    }
}

impl fmt::Display for PackedData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PackedData {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let known = PackedData::ALL.into_iter().find(|data| data.name() == name);
        known.ok_or_else(|| {
            let names = PackedData::ALL.map(PackedData::name).join(", ");
            format!("no data '{name}'; there are: {names}")
        })
    }
}

/// Words of an invented language; the first ones are frequent.
const WORDS: u64 = 5000;

/// A number of entries of one kind.
pub(crate) struct PackedEntries {
    data: PackedData,
    seed: u64,
    count: usize,
    words: Zipf,
    /// For `osm`: the keys, and the key of each entry.
    places: Option<(SortedKeys, Vec<u32>)>,
}

impl PackedEntries {
    pub(crate) fn new(data: PackedData, count: usize, seed: u64) -> Result<Self> {
        let places = match data {
            PackedData::Osm => {
                let dist: Dist = "osm".parse()?;
                let keys = KeySet::new(&dist, FileFormat::Lines, Some(count), seed)?;
                let stored = keys.with_held_out();
                let order = random_order(stored.len(), seed);
                Some((stored, order))
            }
            PackedData::Text | PackedData::Json | PackedData::Numbers => None,
        };
        let count = places.as_ref().map_or(count, |(_, order)| order.len().min(count));
        if count == 0 {
            return Err(LabError::Plan("an entry is the least to measure".into()));
        }
        Ok(PackedEntries { data, seed, count, words: Zipf::new(1.0, WORDS), places })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the key of an entry. Numbers map to keys in random order.
    pub(crate) fn key(&self, number: usize) -> Vec<u8> {
        match &self.places {
            Some((keys, order)) => keys.get(order[number] as usize).to_vec(),
            None => scattered_key(self.seed, number as u64).to_vec(),
        }
    }

    /// Replaces `value` by the value of an entry.
    pub(crate) fn fill_value(&self, value: &mut Vec<u8>, number: usize) {
        value.clear();
        let rng = &mut Rng::new(scramble(self.seed) ^ number as u64);
        match self.data {
            PackedData::Text => self.text(rng, value),
            PackedData::Json => self.json(rng, number, value),
            PackedData::Numbers => numbers(rng, number, value),
            PackedData::Osm => self.edit(rng, number, value),
        }
    }

    fn word(&self, rng: &mut Rng) -> String {
        const BEGINNINGS: [&str; 16] =
            ["b", "br", "d", "dr", "f", "g", "k", "kl", "l", "m", "n", "p", "s", "st", "t", "w"];
        const ENDS: [&str; 10] = ["a", "an", "e", "en", "i", "is", "o", "or", "u", "um"];
        let mut rank = self.words.draw(rng) - 1;
        let mut word = String::new();
        loop {
            word += BEGINNINGS[(rank % 16) as usize];
            word += ENDS[(rank / 16 % 10) as usize];
            rank /= 160;
            if rank == 0 {
                return word;
            }
        }
    }

    fn text(&self, rng: &mut Rng, value: &mut Vec<u8>) {
        for _ in 0..4 {
            let words: Vec<String> = (0..6 + rng.below(8)).map(|_| self.word(rng)).collect();
            value.extend_from_slice(words.join(" ").as_bytes());
            value.extend_from_slice(b". ");
        }
    }

    fn json(&self, rng: &mut Rng, number: usize, value: &mut Vec<u8>) {
        let (first, last) = (self.word(rng), self.word(rng));
        let states = ["new", "active", "active", "active", "closed"];
        let text = format!(
            "{{\"id\":{number},\"name\":\"{first} {last}\",\"email\":\"{first}.{last}@example.com\",\
             \"state\":\"{}\",\"balance\":{:.2},\"visits\":{},\"verified\":{},\
             \"created_at\":\"2026-{:02}-{:02}T{:02}:{:02}:00Z\",\"tags\":[\"{}\",\"{}\"],\
             \"address\":{{\"street\":\"{} {}\",\"city\":\"{}\"}}}}",
            states[rng.place(5)],
            rng.unit() * 10_000.0,
            rng.below(500),
            rng.below(3) > 0,
            1 + rng.below(12),
            1 + rng.below(28),
            rng.below(24),
            rng.below(60),
            self.word(rng),
            self.word(rng),
            self.word(rng),
            1 + rng.below(200),
            self.word(rng),
        );
        value.extend_from_slice(text.as_bytes());
    }

    fn edit(&self, rng: &mut Rng, number: usize, value: &mut Vec<u8>) {
        let user = rng.below(3000);
        let changeset = 90_000_000 + number as u64 / 40;
        for number in [1 + rng.below(6), changeset, user, 1_700_000_000 + rng.below(1 << 26)] {
            value.extend_from_slice(&(number as u32).to_le_bytes());
        }
        let roads = ["residential", "service", "track", "footway", "tertiary", "path"];
        let mut tags = format!("highway={}", roads[rng.place(6)]);
        if rng.below(2) == 0 {
            let _ = write!(tags, ";name={} {}", self.word(rng), self.word(rng));
        }
        if rng.below(3) == 0 {
            let _ = write!(tags, ";maxspeed={};surface=asphalt", [30, 50, 70, 100][rng.place(4)]);
        }
        let _ = write!(tags, ";source=survey;created_by=JOSM/1.5 ({})", 18_000 + user);
        value.extend_from_slice(tags.as_bytes());
    }
}

fn numbers(rng: &mut Rng, number: usize, value: &mut Vec<u8>) {
    let moment = 1_700_000_000_000_000u64 + number as u64 * 1000 + rng.below(1000);
    let sensor = rng.below(2000);
    let readings = (0..6).map(|nth| 20_000 * (nth + 1) + sensor + rng.below(256));
    for number in [moment, sensor].into_iter().chain(readings.collect::<Vec<_>>()) {
        value.extend_from_slice(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_follows_from_its_number() {
        for data in PackedData::ALL {
            assert_eq!(data.to_string().parse(), Ok(data));
            let [one, same] = [1, 1].map(|seed| PackedEntries::new(data, 300, seed).expect("made"));
            let (mut value, mut other, mut all) = (Vec::new(), Vec::new(), Vec::new());
            let mut keys = std::collections::BTreeSet::new();
            for number in 0..one.count() {
                one.fill_value(&mut value, number);
                same.fill_value(&mut other, number);
                assert_eq!((one.key(number), &value), (same.key(number), &other), "{data}");
                assert!((40..600).contains(&value.len()), "{data}: {} bytes", value.len());
                keys.insert(one.key(number));
                all.push(value.clone());
            }
            assert_eq!(keys.len(), one.count(), "{data}: a key twice");
            all.sort();
            all.dedup();
            assert!(all.len() > one.count() * 9 / 10, "{data}: {} values", all.len());
        }
        assert!("jason".parse::<PackedData>().is_err_and(|problem| problem.contains("json")));
    }
}
