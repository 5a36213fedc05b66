//! Merge operands that a flush or merge holds until it knows what lies below them.
//! ```text
//! one stripe      28 +1   22 +1   15 put 5          28 put 7
//! a snapshot      28 +1   22 +1 | 15 put 5          28 +2 | 15 put 5
//! operator fails  28 +1   22 +1   15 put 5          unchanged
//! ```
//! Invariants: a combined entry has the sequence number of its newest input, and takes that entry's
//! place. All its inputs are of one stripe, so a reader sees all of them or none. Operands are held
//! from new to old. If the operator fails, they come out unchanged.

use std::sync::Arc;

use crate::entries::entry::{Entry, Kind, Sequence, VALUE_BYTES_MAX};
use crate::entries::merge_operator::{MergeOperator, combined, merged};

/// Maximum bytes of held operands of one key and stripe, about. Beyond that the newest ones are
/// written unchanged.
const HELD_BYTES_MAX: usize = 32 << 20;
/// Memory of a held operand beside its bytes, about.
const OPERAND_BYTES: usize = 48;

/// What lies below the operands, as readers of their stripe see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below<'a> {
    /// This value.
    Value(&'a [u8]),
    /// No value.
    Nothing,
    /// It is unknown, or will change.
    Unknown,
}

/// An entry that was combined from others, or was held for a while.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MadeEntry {
    key: Vec<u8>,
    sequence: Sequence,
    kind: Kind,
    value: Vec<u8>,
}

impl MadeEntry {
    pub(crate) fn entry(&self) -> Entry<'_> {
        let MadeEntry { key, sequence, kind, value } = self;
        Entry { key, sequence: *sequence, kind: *kind, value }
    }
}

/// The held operands of one key and stripe.
#[derive(Default)]
pub(crate) struct HeldOperands {
    operator: Option<Arc<dyn MergeOperator>>,
    stripe: usize,
    /// Newest first.
    operands: Vec<(Sequence, Vec<u8>)>,
    bytes: usize,
    /// The sequence number of the key's last operand.
    last: Option<Sequence>,
    /// Entries to write before the next one.
    ready: Vec<MadeEntry>,
}

impl HeldOperands {
    /// Creates an empty holder for an operator. Without an operator, operands stay as they are.
    pub(crate) fn new(operator: Option<Arc<dyn MergeOperator>>) -> Self {
        HeldOperands { operator, ..HeldOperands::default() }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Removes and returns the entries to write before all later ones.
    pub(crate) fn take_ready(&mut self) -> Vec<MadeEntry> {
        std::mem::take(&mut self.ready)
    }

    pub(crate) fn stripe(&self) -> usize {
        self.stripe
    }

    /// Begins another key. Requires: no operand is held.
    #[inline]
    pub(crate) fn begin_key(&mut self) {
        self.last = None;
    }

    /// Records an operand's number, and returns whether it came before. (An input table that an
    /// earlier merge left behind repeats operands.)
    pub(crate) fn has_come(&mut self, sequence: Sequence) -> bool {
        self.last.replace(sequence).is_some_and(|last| last <= sequence)
    }

    /// Takes an operand. False: it is to be written as it is. Requires: the held operands are
    /// newer, and of the same key and stripe.
    pub(crate) fn hold(&mut self, entry: &Entry<'_>, stripe: usize) -> bool {
        if self.operator.is_none() {
            return false;
        }
        self.stripe = stripe;
        self.operands.push((entry.sequence, entry.value.to_vec()));
        self.bytes += entry.value.len() + OPERAND_BYTES;
        if self.bytes > HELD_BYTES_MAX {
            self.combine(entry.key);
            // The rest becomes a value with the entry below, so each merge leaves fewer operands.
            self.release_to(entry.key, HELD_BYTES_MAX / 2);
        }
        true
    }

    /// Releases all operands, as one value if the operator can make one. True: it did, and readers
    /// of the stripe see nothing below it.
    pub(crate) fn end(&mut self, key: &[u8], below: Below<'_>) -> bool {
        let Some(&(sequence, _)) = self.operands.first() else { return false };
        let value = match below {
            Below::Value(value) => self.merged(key, Some(value)),
            Below::Nothing => self.merged(key, None),
            Below::Unknown => {
                self.combine(key);
                None
            }
        };
        let Some(value) = value else {
            self.release(key);
            return false;
        };
        self.operands.clear();
        self.bytes = 0;
        self.ready.push(MadeEntry { key: key.to_vec(), sequence, kind: Kind::Put, value });
        true
    }

    fn merged(&self, key: &[u8], existing: Option<&[u8]>) -> Option<Vec<u8>> {
        let operands: Vec<&[u8]> = self.operands.iter().rev().map(|(_, value)| &**value).collect();
        merged(&**self.operator.as_ref()?, key, existing, &operands).ok()
    }

    /// Combines pairs of neighbours repeatedly, so that no operand is copied often. Stops when a
    /// pass combines few.
    fn combine(&mut self, key: &[u8]) {
        let Some(operator) = self.operator.clone() else { return };
        loop {
            let before = self.operands.len();
            let mut made = Vec::with_capacity(before);
            let mut all = std::mem::take(&mut self.operands).into_iter();
            while let Some((sequence, newer)) = all.next() {
                let Some((number, older)) = all.next() else {
                    made.push((sequence, newer));
                    break;
                };
                let both = combined(&*operator, key, &older, &newer);
                match both.filter(|both| both.len() <= VALUE_BYTES_MAX) {
                    Some(both) => made.push((sequence, both)),
                    None => made.extend([(sequence, newer), (number, older)]),
                }
            }
            self.operands = made;
            if before - self.operands.len() <= before / 8 {
                break;
            }
        }
        self.bytes = self.operands.iter().map(|(_, value)| value.len() + OPERAND_BYTES).sum();
    }

    /// Releases all operands unchanged.
    fn release(&mut self, key: &[u8]) {
        self.release_to(key, 0);
    }

    /// Releases the newest operands unchanged, until the rest take at most `bytes` bytes.
    fn release_to(&mut self, key: &[u8], bytes: usize) {
        let bytes_of = |(_, value): &(Sequence, Vec<u8>)| value.len() + OPERAND_BYTES;
        let mut count = 0;
        while self.bytes > bytes {
            self.bytes -= bytes_of(&self.operands[count]);
            count += 1;
        }
        self.ready.extend(self.operands.drain(..count).map(|(sequence, value)| MadeEntry {
            key: key.to_vec(),
            sequence,
            kind: Kind::Merge,
            value,
        }));
    }
}
