//! Operands that a flush or merge has in hand until it knows what lies below them.
//! ```text
//! one stripe      28 +1   22 +1   15 put 5          28 put 7
//! a snapshot      28 +1   22 +1 | 15 put 5          28 +2 | 15 put 5
//! operator fails  28 +1   22 +1   15 put 5          as they were
//! ```
//! Invariants: what is made has the number of the newest entry that is in it, so it takes that
//! one's place. What is in it is of one stripe: each reader sees all of it or nothing. Entries are
//! in hand from new to old, and come out as they went in if the operator makes nothing of them.

use std::sync::Arc;

use crate::entries::entry::{Entry, Kind, Sequence, VALUE_BYTES_MAX};
use crate::entries::merge_operator::{MergeOperator, combined, merged};

/// Bytes of operands of one key and stripe that are in hand at most, about. Beyond that the newest
/// ones stay as they are.
const HELD_BYTES_MAX: usize = 32 << 20;
/// What an operand in hand takes beside its bytes, about.
const OPERAND_BYTES: usize = 48;

/// What lies below operands, for readers of their stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below<'a> {
    /// This value.
    Value(&'a [u8]),
    /// No value.
    Nothing,
    /// It is not known, or not for ever.
    Unknown,
}

/// An entry that was made of others, or was in hand for a while.
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

/// The operands of one key and stripe.
#[derive(Default)]
pub(crate) struct HeldOperands {
    operator: Option<Arc<dyn MergeOperator>>,
    stripe: usize,
    /// Newest first.
    operands: Vec<(Sequence, Vec<u8>)>,
    bytes: usize,
    /// The number of the key's last operand.
    last: Option<Sequence>,
    /// What is to be written before the next entry.
    ready: Vec<MadeEntry>,
}

impl HeldOperands {
    /// Nothing, for an operator. None: operands stay as they are.
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

    /// What is to be written before all that comes.
    pub(crate) fn take_ready(&mut self) -> Vec<MadeEntry> {
        std::mem::take(&mut self.ready)
    }

    pub(crate) fn stripe(&self) -> usize {
        self.stripe
    }

    /// Another key comes. Requires: nothing is in hand.
    #[inline]
    pub(crate) fn begin_key(&mut self) {
        self.last = None;
    }

    /// Whether an operand with this number has come before. (A merge has left a table over.)
    pub(crate) fn has_come(&mut self, sequence: Sequence) -> bool {
        self.last.replace(sequence).is_some_and(|last| last <= sequence)
    }

    /// Takes an operand. False: it stays as it is. Requires: what is in hand is newer, of its key
    /// and stripe.
    pub(crate) fn hold(&mut self, entry: &Entry<'_>, stripe: usize) -> bool {
        if self.operator.is_none() {
            return false;
        }
        self.stripe = stripe;
        self.operands.push((entry.sequence, entry.value.to_vec()));
        self.bytes += entry.value.len() + OPERAND_BYTES;
        if self.bytes > HELD_BYTES_MAX {
            self.combine(entry.key);
            // The others become a value with the next one below, so there are fewer each time.
            self.release_to(entry.key, HELD_BYTES_MAX / 2);
        }
        true
    }

    /// Lets go of all in hand, as one value if it can be told. True: it is one, and nothing below
    /// is seen by readers of the stripe.
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

    /// Makes one of two, again and again: so no operand is copied often. Ends where few are made.
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

    /// Lets go of all in hand, as they are.
    fn release(&mut self, key: &[u8]) {
        self.release_to(key, 0);
    }

    /// As above, of the newest ones, until the others have so many bytes at most.
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
