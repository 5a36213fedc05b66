//! Read-ahead for values apart in a scan. The system is asked to prefetch some before they are
//! needed; if its page cache is bypassed, queues read them.
//! ```text
//! entries    k1    k2    k3 -> @   k4 -> @   k5 -> @   k6 -> @  ...
//!                        read      returned  '-- found and requested ahead --'
//! ```
//! The first value apart is read when it is returned. From the second one on, entries are found
//! ahead: two, then four, at most [`FOUND_MAX`]. Invariant: read-ahead does not change what the
//! scan returns: only entries within its present bounds, and none that has expired meanwhile.
//! Operands do not expire: they are merged again if the value below them has.

use super::{Direction, FoundValue, Lazy, Side, ValueKind, ValuesAhead};
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keys::successor;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::files::value_file::AHEAD_BYTES_MAX;
use crate::read::lookup::PointQuery;
use crate::tree::open_tree::OpenTree;

/// Entries that are found ahead, at most.
const FOUND_MAX: usize = 16;

impl Side {
    /// Returns the key whose value was returned last.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        let given = self.ahead.as_ref().and_then(|ahead| ahead.given.as_deref());
        given.unwrap_or(&self.key)
    }

    /// Moves to the next key within the bounds that is neither deleted nor expired. Its value can
    /// be taken then. Returns false if there is none.
    #[inline]
    pub(crate) fn step(&mut self, bounds: &KeyBounds, tree: &OpenTree) -> Result<bool> {
        if self.ahead.is_some() || self.keys_only {
            return self.step_otherwise(bounds, tree);
        }
        self.find(bounds, tree)
    }

    #[cold]
    fn step_otherwise(&mut self, bounds: &KeyBounds, tree: &OpenTree) -> Result<bool> {
        self.value = match self.keys_only {
            true => self.find(bounds, tree)?.then(Value::empty),
            false => self.step_among_values(bounds, tree)?,
        };
        Ok(self.value.is_some())
    }

    /// Reads the value of the first reference that is found. Later references are returned as they
    /// are, and `value_kind` is set.
    #[cold]
    pub(super) fn found_apart(&mut self, stored: Value, tree: &OpenTree) -> Result<Value> {
        if self.keys_only {
            return Ok(stored);
        }
        if self.ahead.is_some() {
            self.value_kind = ValueKind::Apart;
            return Ok(stored);
        }
        self.ahead = Some(Box::default());
        tree.value_apart(&stored, None, &mut self.of_operands)
    }

    fn find_any(&mut self, bounds: &KeyBounds, tree: &OpenTree) -> Result<Option<FoundValue>> {
        if !self.find(bounds, tree)? {
            return Ok(None);
        }
        let (kind, value) = (std::mem::take(&mut self.value_kind), self.take_value());
        Ok(Some(match kind {
            ValueKind::Plain => FoundValue::Here(value),
            ValueKind::Apart => FoundValue::Apart(value, None),
            ValueKind::Made => FoundValue::Made(value),
        }))
    }

    fn find_next(&mut self, bounds: &KeyBounds, tree: &OpenTree) -> Result<Option<FoundValue>> {
        let found = self.find_any(bounds, tree)?;
        // Finding entries ahead overwrites the scan's own key.
        let key = found.is_some().then(|| self.key.clone());
        self.ahead.get_or_insert_default().given = key;
        Ok(found)
    }

    fn step_among_values(&mut self, bounds: &KeyBounds, tree: &OpenTree) -> Result<Option<Value>> {
        let has_expired = |value: &Value| {
            value.expiry().is_some_and(|expiry| expiry.has_come(tree.env.clock.since_epoch()))
        };
        loop {
            let found = match self.ahead.as_mut().and_then(|ahead| ahead.found.pop_front()) {
                // The caller gave up what was to be found ahead, but now asks for it.
                Some((_, Err(Error::Cancelled))) => {
                    let behind = self.behind_key(bounds);
                    self.find_next(&behind, tree)?
                }
                Some((key, found)) => {
                    if self.is_outside(&key, bounds) {
                        return Ok(None);
                    }
                    self.ahead.get_or_insert_default().given = Some(key);
                    found.map(Some)?
                }
                None => self.find_next(bounds, tree)?,
            };
            let value = match found {
                None => return Ok(None),
                Some(FoundValue::Here(value)) => value,
                Some(FoundValue::Made(value)) if has_expired(&value) => {
                    return self.merged_again(tree).map(Some);
                }
                Some(FoundValue::Made(value)) => return Ok(Some(value)),
                Some(FoundValue::Apart(stored, coming)) => {
                    self.find_ahead(&stored, bounds, tree);
                    tree.value_apart(&stored, coming, &mut self.of_operands)?
                }
            };
            if !has_expired(&value) {
                return Ok(Some(value));
            }
        }
    }

    /// Merges the operands of the key that is being returned, since the value below them has
    /// expired.
    #[cold]
    fn merged_again(&mut self, tree: &OpenTree) -> Result<Value> {
        let key = self.key().to_vec();
        let query = PointQuery { version: &self.version, key: &key, at: self.at };
        tree.merged_value(query, &mut self.of_operands)
    }

    fn is_outside(&self, key: &[u8], bounds: &KeyBounds) -> bool {
        match self.direction {
            Direction::Forward => bounds.to.as_deref().is_some_and(|end| key >= end),
            Direction::Backward => key < bounds.from.as_slice(),
        }
    }

    /// Finds entries behind the current one, whose value is about to be read. If the caller
    /// supplies blocks to the scan, it does nothing, since blocks might be requested in vain.
    fn find_ahead(&mut self, stored: &Value, bounds: &KeyBounds, tree: &OpenTree) {
        if self.blocks.is_some() {
            return;
        }
        let ahead = self.ahead.get_or_insert_default();
        ahead.depth = (2 * ahead.depth).clamp(2, FOUND_MAX);
        ahead.bytes -= bytes_of(stored, tree).min(ahead.bytes);
        let mut bounds = bounds.clone();
        while self.ahead.as_ref().is_some_and(|ahead| ahead.has_room()) {
            if !matches!(self.guard, Lazy::Done) {
                // Runs that are positioned from now on begin behind the key.
                match self.direction {
                    Direction::Forward => bounds.from = successor(&self.key),
                    Direction::Backward => bounds.to = Some(self.key.clone()),
                }
            }
            let mut found = match self.find_any(&bounds, tree) {
                Ok(None) => break,
                Ok(Some(found)) => Ok(found),
                Err(error) => Err(error),
            };
            let ahead = self.ahead.get_or_insert_default();
            if let Ok(FoundValue::Apart(stored, coming)) = &mut found {
                let (bytes, read) = tree.will_read_value(stored);
                ahead.bytes += bytes;
                *coming = read;
            }
            ahead.found.push_back((self.key.clone(), found));
        }
    }
}

impl ValuesAhead {
    /// After an error no more entries are found ahead.
    fn has_room(&self) -> bool {
        let is_sound = self.found.back().is_none_or(|(_, found)| found.is_ok());
        is_sound && self.found.len() < self.depth && self.bytes < AHEAD_BYTES_MAX
    }
}

/// Returns the length of the value of a reference.
fn bytes_of(stored: &Value, tree: &OpenTree) -> u64 {
    tree.ref_of(stored).map_or(0, |at| at.len)
}
