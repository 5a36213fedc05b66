//! The record of a transaction: its reads and writes, in order.

use crate::keys::spread::number_of_spread;
use crate::stress::operands::Mixed;

/// Key spaces of the transactions, and keys in each.
pub(super) const SPACES: usize = 4;
pub(super) const KEYS: usize = 60;
/// Accounts of the bank, and the initial balance of each.
pub(super) const ACCOUNTS: usize = 16;
pub(super) const BALANCE: i64 = 1000;
/// Counters that all threads add to.
pub(super) const COUNTERS: usize = 4;

/// The number that identifies a value. 0: the key has no value.
pub(super) type Number = u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Get {
        space: usize,
        key: usize,
        found: Number,
    },
    /// A scan of the keys `[from, to)`, forwards or backwards, up to `limit` entries; and the
    /// entries found.
    Scan {
        space: usize,
        keys: (usize, usize),
        back: bool,
        limit: usize,
        found: Vec<(usize, Number)>,
    },
    Put {
        space: usize,
        key: usize,
        number: Number,
    },
    /// A merge operand, by its number.
    Merge {
        space: usize,
        key: usize,
        operand: u32,
    },
    Delete {
        space: usize,
        key: usize,
    },
    DeleteRange {
        space: usize,
        keys: (usize, usize),
    },
}

impl Step {
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Step::Get { .. } | Step::Scan { .. })
    }
}

/// A committed transaction.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// The sequence number at which it has read.
    pub(super) begun: u64,
    /// The sequence number of its last write.
    pub(super) committed: u64,
    pub(super) is_serializable: bool,
    pub(super) steps: Vec<Step>,
}

/// Returns the number of a key. None: it is none of the test's keys.
pub(super) fn number_of_key(key: &[u8]) -> Option<usize> {
    number_of_spread(key).filter(|number| *number < KEYS)
}

/// Returns the bytes of a value. Some are large, so that flushes happen and some values are stored
/// apart.
pub(super) fn value(number: Number) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    let filler = if number % 16 == 7 { 240 + number as usize % 1900 } else { number as usize % 90 };
    bytes.resize(8 + filler, b'.');
    bytes
}

/// Returns the number of a value; `Number::MAX` if no transaction wrote it.
pub(super) fn number_of(bytes: &[u8]) -> Number {
    let number = bytes.first_chunk().map_or(Number::MAX, |bytes| Number::from_le_bytes(*bytes));
    if number != Number::MAX && value(number) == bytes { number } else { Number::MAX }
}

/// Returns the merge operator of the test.
pub(super) fn mixed() -> Mixed {
    Mixed { number_of: |bytes| Some(number_of(bytes)), value_of: value }
}

/// Decodes a balance.
pub(super) fn number(bytes: &[u8]) -> i64 {
    bytes.try_into().map_or(i64::MIN, i64::from_le_bytes)
}
