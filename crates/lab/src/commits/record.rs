//! What a transaction has read and written, in order.

use crate::keys::spread::number_of_spread;
use crate::stress::operands::Mixed;

/// Key spaces of the transactions, and keys of each.
pub(super) const SPACES: usize = 4;
pub(super) const KEYS: usize = 60;
/// Accounts between which is transferred, and what each has at first.
pub(super) const ACCOUNTS: usize = 16;
pub(super) const BALANCE: i64 = 1000;
/// Counters that all threads add to.
pub(super) const COUNTERS: usize = 4;

/// The value of a key, by its number. 0: it has none.
pub(super) type Number = u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Get {
        space: usize,
        key: usize,
        found: Number,
    },
    /// Of the keys [from, to), the first ones, or the last ones: how many were wanted, and which
    /// were found.
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
    /// An operand, by its number.
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

/// A transaction that has committed.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// The number of the moment that it has read.
    pub(super) begun: u64,
    /// The number of its last write.
    pub(super) committed: u64,
    pub(super) is_serializable: bool,
    pub(super) steps: Vec<Step>,
}

/// The number of a key. None: it is none of them.
pub(super) fn number_of_key(key: &[u8]) -> Option<usize> {
    number_of_spread(key).filter(|number| *number < KEYS)
}

/// The bytes of a value: some are large, so that flushes come, and some may be apart.
pub(super) fn value(number: Number) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    let filler = if number % 16 == 7 { 240 + number as usize % 1900 } else { number as usize % 90 };
    bytes.resize(8 + filler, b'.');
    bytes
}

/// The number of a value; the greatest one if it is nobody's.
pub(super) fn number_of(bytes: &[u8]) -> Number {
    let number = bytes.first_chunk().map_or(Number::MAX, |bytes| Number::from_le_bytes(*bytes));
    if number != Number::MAX && value(number) == bytes { number } else { Number::MAX }
}

/// What merges operands into values.
pub(super) fn mixed() -> Mixed {
    Mixed { number_of: |bytes| Some(number_of(bytes)), value_of: value }
}

/// A balance.
pub(super) fn number(bytes: &[u8]) -> i64 {
    bytes.try_into().map_or(i64::MIN, i64::from_le_bytes)
}
