//! Ranges that a history deletes: narrow and wide, nested, adjacent and empty ones.

use std::ops::Bound;

use super::keys::{KeyIndex, Keys};
use super::operation::Write;
use crate::keys::rng::Rng;

/// A range deletion, with writes of the same batch before and after it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RangeDeletion {
    pub(crate) before: Vec<Write>,
    pub(crate) from: Vec<u8>,
    pub(crate) to: Vec<u8>,
    pub(crate) after: Vec<Write>,
    pub(crate) synced: bool,
}

impl RangeDeletion {
    /// Returns the places of the keys in the range.
    pub(crate) fn places(&self, keys: &Keys) -> std::ops::Range<usize> {
        keys.places(&(Bound::Included(self.from.clone()), Bound::Excluded(self.to.clone())))
    }

    /// Returns the effect on each key, in order.
    pub(crate) fn writes(&self, keys: &Keys) -> Vec<Write> {
        let deleted = self.places(keys).map(|place| Write { place: place as KeyIndex, number: 0 });
        self.before.iter().copied().chain(deleted).chain(self.after.iter().copied()).collect()
    }
}

/// The bounds of the last deleted range, near which others are drawn.
#[derive(Default)]
pub(crate) struct RangeDrawer {
    last: Option<(Vec<u8>, Vec<u8>)>,
}

impl RangeDrawer {
    /// Draws bounds in order; sometimes both are the same.
    pub(crate) fn draw(&mut self, keys: &Keys, rng: &mut Rng) -> (Vec<u8>, Vec<u8>) {
        let first = rng.place(keys.len());
        let width = [1, 4, 40, keys.len()][rng.place(4)];
        let end = (first + rng.place(width + 1)).min(keys.len() - 1);
        let (mut from, mut to) = (edge(keys, first, rng), edge(keys, end, rng));
        match (rng.below(6), &self.last) {
            (0, Some((_, last))) => from.clone_from(last),
            (1, Some((last, _))) => to.clone_from(last),
            (2, Some((from_before, to_before))) => {
                from = from.max(from_before.clone());
                to = to.min(to_before.clone());
            }
            // The new range contains the last one.
            (3, Some((from_before, to_before))) => {
                from = from.min(from_before.clone());
                to = to.max(to_before.clone());
            }
            _ => {}
        }
        if from > to {
            std::mem::swap(&mut from, &mut to);
        }
        self.last = Some((from.clone(), to.clone()));
        (from, to)
    }
}

/// Returns a key, or a neighbour of it that may be no key.
fn edge(keys: &Keys, place: usize, rng: &mut Rng) -> Vec<u8> {
    let mut key = keys.get(place as KeyIndex).to_vec();
    match rng.below(8) {
        0 if key.len() < trommel::limits::KEY_BYTES_MAX => key.push(0),
        1 => drop(key.pop()),
        2 => key.last_mut().into_iter().for_each(|byte| *byte = byte.saturating_add(1)),
        _ => {}
    }
    key
}
