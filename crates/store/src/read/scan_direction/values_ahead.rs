//! The values apart that a scan comes to: the system is told of some before they are needed.
//! ```text
//! entries    k1    k2    k3 -> @   k4 -> @   k5 -> @   k6 -> @  ...
//!                        read      given     '-- found already, and told of --'
//! ```
//! The first value apart is read when it is given; from the second one on, entries are found ahead:
//! two, then four, at most [`FOUND_MAX`]. Invariant: what was found ahead is given as it would be
//! without: in the bounds that then hold, and unless it has expired by then.

use super::{Direction, Found, Lazy, Side};
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keys::successor;
use crate::entries::value::Value;
use crate::error::Result;
use crate::tree::open_tree::OpenTree;

/// Entries that are found ahead, at most.
const FOUND_MAX: usize = 16;
/// Bytes of values that the system is told of ahead, at most; one value may be longer.
const BYTES_MAX: u64 = 2 << 20;

impl Side {
    /// The key whose value was given last.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        let given = self.ahead.as_ref().and_then(|ahead| ahead.given.as_deref());
        given.unwrap_or(&self.key)
    }

    /// The value of the next key within the bounds that is not deleted and has not expired.
    #[inline]
    pub(crate) fn step(&mut self, bounds: &KeyBounds, tree: &OpenTree) -> Result<Option<Value>> {
        if self.ahead.is_some() {
            return self.step_among_values(bounds, tree);
        }
        let found = self.find(bounds, tree);
        if self.is_apart { self.first_apart(found?, tree) } else { found }
    }

    /// The value of the first reference that was found.
    #[cold]
    fn first_apart(&mut self, stored: Option<Value>, tree: &OpenTree) -> Result<Option<Value>> {
        self.is_apart = false;
        let Some(stored) = stored.filter(|_| !self.keys_only) else {
            return Ok(Some(Value::empty()));
        };
        self.ahead = Some(Box::default());
        tree.value_apart(&stored, &mut self.of_operands).map(Some)
    }

    fn find_any(&mut self, bounds: &KeyBounds, tree: &OpenTree) -> Result<Option<Found>> {
        let found = self.find(bounds, tree)?;
        let of = if std::mem::take(&mut self.is_apart) { Found::Apart } else { Found::Here };
        Ok(found.map(of))
    }

    #[cold]
    fn step_among_values(&mut self, bounds: &KeyBounds, tree: &OpenTree) -> Result<Option<Value>> {
        loop {
            let found = match self.ahead.as_mut().and_then(|ahead| ahead.found.pop_front()) {
                Some((key, found)) => {
                    if self.is_outside(&key, bounds) {
                        return Ok(None);
                    }
                    self.ahead.get_or_insert_default().given = Some(key);
                    found.map(Some)?
                }
                None => {
                    let found = self.find_any(bounds, tree)?;
                    // What is found ahead of it moves the scan's own key on.
                    let key = found.is_some().then(|| self.key.clone());
                    self.ahead.get_or_insert_default().given = key;
                    found
                }
            };
            let value = match found {
                None => return Ok(None),
                Some(Found::Here(value)) => value,
                Some(Found::Apart(stored)) => {
                    self.find_ahead(&stored, bounds, tree);
                    tree.value_apart(&stored, &mut self.of_operands)?
                }
            };
            if value.expiry().is_none_or(|expiry| !expiry.has_come(tree.env.clock.since_epoch())) {
                return Ok(Some(value));
            }
        }
    }

    fn is_outside(&self, key: &[u8], bounds: &KeyBounds) -> bool {
        match self.direction {
            Direction::Forward => bounds.to.as_deref().is_some_and(|end| key >= end),
            Direction::Backward => key < bounds.from.as_slice(),
        }
    }

    /// Finds entries behind the one in hand, whose value is read now. Where blocks are read for the
    /// scan, it asks for none that it may not need.
    fn find_ahead(&mut self, stored: &Value, bounds: &KeyBounds, tree: &OpenTree) {
        if self.blocks.is_some() {
            return;
        }
        let mut ahead = self.ahead.take().unwrap_or_default();
        ahead.depth = (2 * ahead.depth).clamp(2, FOUND_MAX);
        ahead.bytes -= bytes_of(stored, tree).min(ahead.bytes);
        let mut bounds = bounds.clone();
        while ahead.found.len() < ahead.depth && ahead.bytes < BYTES_MAX {
            if ahead.found.back().is_some_and(|(_, found)| found.is_err()) {
                break;
            }
            if !matches!(self.guard, Lazy::Done) {
                // Runs that are positioned from now on begin behind it.
                match self.direction {
                    Direction::Forward => bounds.from = successor(&self.key),
                    Direction::Backward => bounds.to = Some(self.key.clone()),
                }
            }
            let found = match self.find_any(&bounds, tree) {
                Ok(None) => break,
                Ok(Some(found)) => Ok(found),
                Err(error) => Err(error),
            };
            if let Ok(Found::Apart(stored)) = &found {
                tell(stored, tree);
                ahead.bytes += bytes_of(stored, tree);
            }
            ahead.found.push_back((self.key.clone(), found));
        }
        self.ahead = Some(ahead);
    }
}

/// Bytes of the value of a reference.
fn bytes_of(stored: &Value, tree: &OpenTree) -> u64 {
    tree.ref_of(stored).map_or(0, |at| at.len)
}

/// The system is told of a value.
fn tell(stored: &Value, tree: &OpenTree) {
    let store = &tree.table_files.values.store;
    if let Ok(at) = tree.ref_of(stored)
        && let Ok(file) = store.held(at.file)
    {
        file.will_read(store.files(), &at);
    }
}
