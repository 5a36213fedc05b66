//! Snapshots, scans and followers that stay open while the store changes.
//! ```text
//! taken:  the state, or what the scan must still give      compared whenever it is read or moved
//! ```
//! Invariant: they show the moment at which they were taken, whatever is written, merged or flushed
//! later.

use std::collections::VecDeque;

use trommel::{Follower, KeyValue, Scan, Snapshot};

use super::keys::{KeyIndex, Keys};
use super::model::{State, expiry_of, number_of, value_of};
use super::operation::{Write, key_text, way};

/// A follower, and the expected state.
pub(crate) struct HeldFollower {
    pub(crate) follower: Follower,
    /// None: the state of the store at the follower's number is unknown.
    pub(crate) state: Option<State>,
    /// A snapshot of what it showed before.
    pub(crate) before: Option<HeldSnapshot>,
}

/// A snapshot, and the expected state.
pub(crate) struct HeldSnapshot {
    pub(crate) snapshot: Snapshot,
    pub(crate) state: State,
}

/// A scan, and the entries that it must still return.
pub(crate) struct HeldScan {
    scan: Scan,
    expected: VecDeque<Write>,
}

/// Returns the keys that have values, at some places of a state.
pub(crate) fn entries_of(
    state: &State,
    places: std::ops::Range<usize>,
) -> impl DoubleEndedIterator<Item = Write> {
    let numbers = places.map(|place| Write { place: place as KeyIndex, number: state.0[place] });
    numbers.filter(|entry| entry.number != 0)
}

/// Returns the next entry whose key belongs to the history.
pub(crate) fn next_of(
    scan: &mut Scan,
    back: bool,
    keys: &Keys,
) -> trommel::Result<Option<KeyValue>> {
    loop {
        let found = if back { scan.next_back() } else { scan.next() };
        let found = found.transpose()?;
        if !found.as_ref().is_some_and(|(key, _)| keys.is_foreign(key)) {
            return Ok(found);
        }
    }
}

/// Compares an entry with the expected one; the error describes the difference.
pub(crate) fn compare(
    found: Option<&KeyValue>,
    expected: Option<Write>,
    keys: &Keys,
) -> Result<(), String> {
    let same = match (found, expected) {
        (Some((key, value)), Some(entry)) => {
            key == keys.get(entry.place) && **value == value_of(entry.number)
        }
        (None, None) => true,
        _ => false,
    };
    if same {
        return Ok(());
    }
    let found = found.map(|(key, value)| format!("{} = {}", key_text(key), value_text(value)));
    let text_of = |entry: Write| format!("{} = #{}", key_text(keys.get(entry.place)), entry.number);
    let nothing = || "nothing".to_string();
    let expected = expected.map_or_else(nothing, text_of);
    Err(format!("found {}, expected {expected}", found.unwrap_or_else(nothing)))
}

/// Describes a value by its number.
pub(crate) fn value_text(value: &[u8]) -> String {
    number_of(value).map_or_else(|| format!("no value: {}", key_text(value)), |n| format!("#{n}"))
}

impl HeldScan {
    pub(crate) fn new(scan: Scan, state: &State, places: std::ops::Range<usize>) -> Self {
        HeldScan { scan, expected: entries_of(state, places).collect() }
    }

    /// Removes the entries that expire by this tick.
    pub(crate) fn expire(&mut self, tick: u32) {
        let stays = |write: &Write| expiry_of(write.number).is_none_or(|expiry| expiry > tick);
        self.expected.retain(stays);
    }

    /// Moves the scan, and compares. The inner error is the store's.
    pub(crate) fn step(
        &mut self,
        back: bool,
        keys: &Keys,
    ) -> Result<Result<(), trommel::Error>, String> {
        let found = match next_of(&mut self.scan, back, keys) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let expected = if back { self.expected.pop_back() } else { self.expected.pop_front() };
        let compared = compare(found.as_ref(), expected, keys);
        compared.map_err(|wrong| format!("a scan that was held open{}: {wrong}", way(back)))?;
        Ok(Ok(()))
    }
}
