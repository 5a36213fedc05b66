//! Seeded mutations of bytes, for tests that have no fuzzer at hand.
//! ```text
//! seed, bytes -> a few of: flip, set, insert, remove, repeat, cut, number      -> other bytes
//! ```
//! Invariant: a seed gives the same mutations everywhere.

use trommel_lab::Rng;

/// Bytes that stand at the ends of ranges of numbers.
const EDGES: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff];
/// Mutations of one input.
const CHANGES_MAX: u64 = 4;
/// Bytes that are inserted, removed or repeated at once.
const STRETCH_MAX: u64 = 12;

/// Changes bytes at random.
#[derive(Clone, Debug)]
pub struct Mutator {
    rng: Rng,
}

impl Mutator {
    /// The mutations of a seed.
    pub fn new(seed: u64) -> Self {
        Mutator { rng: Rng::new(seed) }
    }

    /// Changes the bytes in a few places.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.rng.below(CHANGES_MAX) {
            self.change(bytes);
        }
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return bytes.push(self.byte());
        }
        let at = self.rng.place(bytes.len());
        let end = bytes.len().min(at + 1 + self.rng.below(STRETCH_MAX) as usize);
        match self.rng.below(8) {
            0 | 1 => bytes[at] ^= 1 << self.rng.below(8),
            2 | 3 => bytes[at] = self.byte(),
            4 => bytes.insert(at, self.byte()),
            5 => drop(bytes.drain(at..end)),
            6 => {
                let stretch = bytes[at..end].to_vec();
                bytes.splice(at..at, stretch);
            }
            _ => {
                let byte = self.byte();
                bytes[at..end].fill(byte);
            }
        }
    }

    fn byte(&mut self) -> u8 {
        match self.rng.below(2) {
            0 => EDGES[self.rng.place(EDGES.len())],
            _ => self.rng.next_u64() as u8,
        }
    }
}
