//! Keys that wait until it is decided whether a model of text pays for all of them.
//! ```text
//! 1024 keys, 2048, ... --look like numbers?--> wait no longer, without a model
//! all keys             --sample--------------> judged
//! ```
//! Invariant: keys ascend.

use trommel_filters::{KeyList, KeySample, OutOfOrder};

/// The first check comes after this many keys.
const LOOK_FIRST: usize = 1 << 10;
/// More bytes are not a single table's, and a sample of only the first keys would mislead.
const BYTES_MAX: usize = 256 << 20;

/// Keys that wait.
pub(super) struct Waiting {
    keys: KeyList,
    bytes: usize,
    /// The number of keys at the next check.
    look_at: usize,
}

impl Waiting {
    pub(super) fn new() -> Waiting {
        Waiting { keys: KeyList::default(), bytes: 0, look_at: LOOK_FIRST }
    }

    /// Adds a key, if it is new.
    pub(super) fn push(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        match self.keys.last() {
            Some(last) if key < last => {
                return Err(OutOfOrder { last: last.to_vec(), key: key.to_vec() });
            }
            Some(last) if key == last => return Ok(()),
            _ => {}
        }
        self.keys.push(key);
        self.bytes += key.len() + size_of::<usize>();
        Ok(())
    }

    /// Whether waiting is useless, as no model would result. Call this after each key.
    pub(super) fn is_in_vain(&mut self) -> bool {
        if self.keys.len() == self.look_at {
            self.look_at *= 2;
            return !self.sample().is_text();
        }
        self.bytes > BYTES_MAX
    }

    /// Samples the keys.
    pub(super) fn sample(&self) -> KeySample {
        KeySample::evenly(self.keys.len(), |place| self.keys.get(place))
    }

    pub(super) fn keys(&self) -> &KeyList {
        &self.keys
    }
}
