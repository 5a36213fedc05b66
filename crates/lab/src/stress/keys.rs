//! The keys of a history. They are few, so that they are overwritten, deleted and read again. Their
//! kinds are hard for filters and cursors.
//! ```text
//! seed -> kind (hot, text, ids, clustered, ...) -> sorted list     a key is its place in it
//! ```
//! Invariant: keys are sorted and distinct, so the order of places is the order of keys.

use std::ops::Bound;

use trommel::limits::KEY_BYTES_MAX;

use crate::keys::rng::Rng;

/// A key, by its place in the list.
pub(crate) type KeyIndex = u16;

/// The bounds of a range.
pub(crate) type Edges = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys of a history, and how it draws them.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    sorted: Vec<Vec<u8>>,
    /// The exponent of draws: the larger it is, the more often the first keys come.
    skew: i32,
    /// Whether others write further keys into the same store.
    is_share: bool,
}

type Maker = fn(&mut Rng) -> Vec<Vec<u8>>;

const MAKERS: [Maker; 10] =
    [hot, text, ids, clustered, short_bytes, uniform, long, look_alikes, many, mixed];

impl Keys {
    pub(crate) fn draw_from(rng: &mut Rng) -> Self {
        let maker = MAKERS[rng.place(MAKERS.len())];
        let mut sorted = maker(rng);
        sorted.sort_unstable();
        sorted.dedup();
        Keys { sorted, skew: [1, 1, 2, 5][rng.place(4)], is_share: false }
    }

    /// Returns `count` consecutive numbers.
    pub(crate) fn dense(count: u64) -> Self {
        let sorted = (0..count).map(|id| id.to_be_bytes().to_vec()).collect();
        Keys { sorted, skew: 1, is_share: false }
    }

    /// Returns some of the keys; others write the rest.
    pub(crate) fn share(&self, places: impl Iterator<Item = usize>) -> Self {
        let sorted = places.map(|place| self.sorted[place].clone()).collect();
        Keys { sorted, skew: self.skew, is_share: true }
    }

    /// Whether a key that a scan returned belongs to another writer.
    pub(crate) fn is_foreign(&self, key: &[u8]) -> bool {
        self.is_share && self.place_of(key).is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    pub(crate) fn get(&self, place: KeyIndex) -> &[u8] {
        &self.sorted[usize::from(place)]
    }

    /// Returns the place of a key. None: it is none of these keys.
    pub(crate) fn place_of(&self, key: &[u8]) -> Option<KeyIndex> {
        let found = self.sorted.binary_search_by(|known| known.as_slice().cmp(key));
        found.ok().map(|place| place as KeyIndex)
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> KeyIndex {
        (rng.unit().powi(self.skew) * self.len() as f64) as KeyIndex
    }

    /// Draws the bounds of a range: keys, or neighbours that are no keys, mostly in order.
    pub(crate) fn draw_edges(&self, rng: &mut Rng) -> Edges {
        let (one, other) = (rng.place(self.len()), rng.place(self.len()));
        // Ranges over half of many keys take most of the time and find little.
        let near = rng.below(if self.len() > 300 { 12 } else { 2 }) != 1;
        let other = if near { (one + rng.place(8)).min(self.len() - 1) } else { other };
        let in_order = rng.below(16) != 0;
        let (lower, upper) = if one <= other || !in_order { (one, other) } else { (other, one) };
        (self.draw_edge(lower, rng), self.draw_edge(upper, rng))
    }

    fn draw_edge(&self, place: usize, rng: &mut Rng) -> Bound<Vec<u8>> {
        let mut key = self.sorted[place].clone();
        match rng.below(8) {
            0 => key.push(0),
            1 => drop(key.pop()),
            2 => key.last_mut().into_iter().for_each(|byte| *byte = byte.saturating_add(1)),
            _ => {}
        }
        match rng.below(10) {
            0 => Bound::Unbounded,
            1..5 => Bound::Excluded(key),
            _ => Bound::Included(key),
        }
    }

    /// Returns the places of the keys in a range.
    pub(crate) fn places(&self, (lower, upper): &Edges) -> std::ops::Range<usize> {
        let below = |bound: &[u8]| self.sorted.partition_point(|key| key.as_slice() < bound);
        let up_to = |bound: &[u8]| self.sorted.partition_point(|key| key.as_slice() <= bound);
        let start = match lower {
            Bound::Included(key) => below(key),
            Bound::Excluded(key) => up_to(key),
            Bound::Unbounded => 0,
        };
        let end = match upper {
            Bound::Included(key) => up_to(key),
            Bound::Excluded(key) => below(key),
            Bound::Unbounded => self.len(),
        };
        start..end.max(start)
    }
}

fn some(rng: &mut Rng, least: usize, most: usize) -> usize {
    least + rng.place(most - least)
}

/// A few keys, including the empty one: each is written hundreds of times.
fn hot(_rng: &mut Rng) -> Vec<Vec<u8>> {
    let few: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"a", b"ab", b"b", b"hot", b"\xff", b"\xff\xff"];
    few.map(<[u8]>::to_vec).to_vec()
}

/// Paths: long common prefixes, and keys that are prefixes of other keys.
fn text(rng: &mut Rng) -> Vec<Vec<u8>> {
    const WORDS: [&str; 8] = ["usr", "lib", "a", "ab", "share", "node_modules", "é", ""];
    let count = some(rng, 40, 500);
    let path = |rng: &mut Rng| {
        let depth = rng.place(6);
        let words = (0..depth).map(|_| WORDS[rng.place(WORDS.len())]).collect::<Vec<_>>();
        format!("{}/{}", words.join("/"), rng.below(9)).into_bytes()
    };
    (0..count).map(|_| path(rng)).collect()
}

/// Consecutive numbers.
fn ids(rng: &mut Rng) -> Vec<Vec<u8>> {
    let (count, first) = (some(rng, 50, 1500) as u64, rng.next_u64() >> (1 + rng.below(63)));
    (first..first + count).map(|id| id.to_be_bytes().to_vec()).collect()
}

/// Clusters of numbers, far apart, with gaps of many sizes within.
fn clustered(rng: &mut Rng) -> Vec<Vec<u8>> {
    let centers: Vec<u64> = (0..some(rng, 1, 12)).map(|_| rng.next_u64()).collect();
    let near = |rng: &mut Rng| {
        let offset = rng.next_u64() >> (20 + rng.below(44));
        centers[rng.place(centers.len())].wrapping_add(offset).to_be_bytes().to_vec()
    };
    (0..some(rng, 50, 1500)).map(|_| near(rng)).collect()
}

/// Short keys over few edge-case bytes: prefixes of each other, with zeros and ones at the end.
fn short_bytes(rng: &mut Rng) -> Vec<Vec<u8>> {
    let key = |rng: &mut Rng| {
        let len = rng.place(7);
        (0..len).map(|_| [0, 1, b'a', 0xff][rng.place(4)]).collect()
    };
    (0..some(rng, 20, 400)).map(|_| key(rng)).collect()
}

fn uniform(rng: &mut Rng) -> Vec<Vec<u8>> {
    (0..some(rng, 50, 1500)).map(|_| rng.next_u64().to_be_bytes().to_vec()).collect()
}

/// Keys longer than a block, some as long as keys may be.
fn long(rng: &mut Rng) -> Vec<Vec<u8>> {
    let shared: Vec<u8> = (0..2000).map(|place| (place / 7) as u8).collect();
    let key = |rng: &mut Rng| {
        let mut key = shared[..rng.place(shared.len())].to_vec();
        key.extend((0..rng.place(5)).map(|_| [0, b'z', 0xff][rng.place(3)]));
        key
    };
    let mut keys: Vec<Vec<u8>> = (0..some(rng, 8, 60)).map(|_| key(rng)).collect();
    if rng.below(4) == 0 {
        keys.push(vec![b'k'; KEY_BYTES_MAX]);
    }
    keys
}

/// Keys that share their first bits and most other bits.
fn look_alikes(rng: &mut Rng) -> Vec<Vec<u8>> {
    let (count, step) = (some(rng, 50, 1500), 1 + rng.below(1000));
    let key = |number| format!("tenant/0001/user:{:08}", number as u64 * step).into_bytes();
    (0..count).map(key).collect()
}

/// More keys than one step of a merge reads.
fn many(rng: &mut Rng) -> Vec<Vec<u8>> {
    let (count, gaps) = (some(rng, 4000, 6000), 1 + rng.below(1 << 40));
    let mut number = rng.below(1 << 40);
    let mut next = |_| {
        number += 1 + rng.below(gaps);
        number.to_be_bytes().to_vec()
    };
    (0..count).map(&mut next).collect()
}

fn mixed(rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut keys = hot(rng);
    for _ in 0..2 {
        // The last maker is this function.
        keys.extend(MAKERS[rng.place(MAKERS.len() - 1)](rng));
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_keys_in_order_and_places_find_them() {
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            let keys = Keys::draw_from(&mut rng);
            assert!(keys.len() > 3 && keys.len() < usize::from(KeyIndex::MAX));
            assert!(keys.sorted.is_sorted());
            let place = keys.draw(&mut rng);
            assert_eq!(keys.place_of(keys.get(place)), Some(place));
        }
    }

    #[test]
    fn ranges_have_the_keys_between_their_ends() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let keys = Keys::draw_from(&mut rng);
            let edges = keys.draw_edges(&mut rng);
            let inside = |key: &&Vec<u8>| {
                use std::ops::RangeBounds;
                edges.contains(*key)
            };
            let expected: Vec<_> = keys.sorted.iter().filter(inside).collect();
            let found: Vec<_> = keys.sorted[keys.places(&edges)].iter().collect();
            assert_eq!(found, expected, "{edges:?}");
        }
    }
}
