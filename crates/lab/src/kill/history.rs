//! The writes of a kill test. Each operation follows from its name alone.
//! ```text
//! seed, session, lane, number -> a put, a deletion, or a batch      the killer derives it, too
//! keys      0017:3       slot 17 of lane 3: lanes lie between each other, in every table
//! values    session | lane | number | place in the batch, and a filler
//! ```
//! Invariant: one thread at a time writes the keys of a lane, in the order of its numbers. All
//! changes have different values.

use crate::keys::rng::{Rng, scramble};
use crate::stress::model::filler;

/// The most writer threads; each has its own keys.
pub(super) const LANES: usize = 8;
/// Keys of a lane.
pub(super) const SLOTS: usize = 600;

/// The name of one operation of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// The process that writes it; the first is 1.
    pub(super) session: u32,
    pub(super) lane: u8,
    /// The number within the session, counted from 0.
    pub(super) number: u32,
}

/// A change of a key's value. Value 0 deletes the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) slot: usize,
    pub(super) value: u64,
}

impl Name {
    /// Returns the value of the change at `place` in the batch.
    fn value(self, place: usize) -> u64 {
        let Name { session, lane, number } = self;
        u64::from(session) << 44 | u64::from(lane) << 40 | u64::from(number) << 8 | place as u64
    }

    /// Returns the changes of the operation, in order. They are atomic.
    pub(super) fn changes(self, seed: u64) -> Vec<Change> {
        let mut rng = Rng::new(seed ^ scramble(self.value(0)));
        let (count, deletions) = match rng.below(40) {
            0 => (100, 0.3),
            1..8 => (1, 1.0),
            8..18 => (2 + rng.place(11), 0.2),
            _ => (1, 0.0),
        };
        let change = |place| {
            // Lower slots are more frequent.
            let slot = (rng.unit().powi(2) * SLOTS as f64) as usize;
            let value = if rng.unit() < deletions { 0 } else { self.value(place + 1) };
            Change { slot, value }
        };
        (0..count).map(change).collect()
    }
}

/// Returns the key of a slot.
pub(super) fn key_of(lane: usize, slot: usize) -> Vec<u8> {
    format!("{slot:04}:{lane}").into_bytes()
}

/// Returns the lane and the slot of a key. None: the key is never written.
pub(super) fn place_of(key: &[u8]) -> Option<(usize, usize)> {
    let (slot, lane) = std::str::from_utf8(key).ok()?.split_once(':')?;
    let (slot, lane) = (slot.parse().ok()?, lane.parse().ok()?);
    (lane < LANES && slot < SLOTS && key_of(lane, slot) == key).then_some((lane, slot))
}

/// Returns the bytes stored for a value.
pub(super) fn bytes_of(value: u64) -> Vec<u8> {
    let draw = scramble(value);
    let extra = (draw >> 16) as usize;
    let bytes = match draw % 256 {
        0 => 6000,
        // Some are longer than a piece of a value file.
        1 if extra.is_multiple_of(4) => (520 << 10) + extra % 1000,
        1..9 => 240 + extra % 24,
        9..40 => 246 + extra % 4755,
        _ => extra % 200,
    };
    value.to_le_bytes().into_iter().chain(filler(draw, bytes)).collect()
}

/// Returns the value of stored bytes. None: no write stores them.
pub(super) fn value_of(bytes: &[u8]) -> Option<u64> {
    let value = u64::from_le_bytes(*bytes.first_chunk()?);
    (value != 0 && bytes_of(value) == bytes).then_some(value)
}

/// Describes a value for readers.
pub(super) fn value_text(value: u64) -> String {
    if value == 0 {
        return "nothing".into();
    }
    let (session, lane, number) = (value >> 44, value >> 40 & 15, value >> 8 & 0xffff_ffff);
    format!("write {number} of lane {lane} in session {session}, change {}", value & 255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_tell_where_they_come_from() {
        for slot in 0..SLOTS {
            assert_eq!(place_of(&key_of(slot % LANES, slot)), Some((slot % LANES, slot)));
        }
        for strange in ["", "0001", "1:1", "0001:8", "9999:0", "0001:01"] {
            assert_eq!(place_of(strange.as_bytes()), None, "{strange}");
        }
        let name = Name { session: 7, lane: 3, number: 99 };
        let value = name.value(2);
        assert_eq!(value_of(&bytes_of(value)), Some(value));
        assert_eq!(value_of(&bytes_of(value)[1..]), None);
        assert_eq!(value_text(value), "write 99 of lane 3 in session 7, change 2");
    }

    #[test]
    fn a_name_has_one_meaning_and_all_kinds_come() {
        let mut lens = std::collections::BTreeSet::new();
        for number in 0..300 {
            let name = Name { session: 1, lane: 0, number };
            let changes = name.changes(5);
            assert_eq!(changes, name.changes(5));
            assert!(changes.iter().all(|change| change.slot < SLOTS));
            lens.insert(changes.len());
        }
        assert!(lens.contains(&1) && lens.contains(&100) && lens.len() > 8, "{lens:?}");
    }
}
