//! The tally of a stream: the number of entries, their bytes, and a checksum of all of them.
//! ```text
//! each entry: kind u8 | key's length u32 | value's u32 | expiry u64, if it has one | key | value
//! ```
//! Invariant: the same entries in the same order have the same tally in every form.

use trommel::Expiry;
use xxhash_rust::xxh3::Xxh3;

/// Kinds of entries, numbered as in tables.
pub(crate) const PUT: u8 = 0;
pub(crate) const PUT_WITH_EXPIRY: u8 = 3;

/// The end of a complete stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamEnd {
    /// Entries before it.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// XXH3 (64 bits) of the entries in native form.
    pub checksum: u64,
}

impl StreamEnd {
    /// Compares the claimed end with what was read. Returns the difference in words; None: both are
    /// equal.
    pub(crate) fn differs_from(&self, read: &StreamEnd) -> Option<String> {
        let StreamEnd { entries, bytes, checksum } = self;
        (self != read).then(|| {
            format!(
                "the stream tells of {entries} entries, {bytes} bytes, checksum {checksum:016x}; read were {}, {}, {:016x}",
                read.entries, read.bytes, read.checksum
            )
        })
    }
}

/// Counts entries as they pass.
#[derive(Default)]
pub(crate) struct Tally {
    entries: u64,
    bytes: u64,
    hash: Xxh3,
}

impl Tally {
    /// Counts an entry. Requires: key and value are within the limits of a store.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8], expiry: Option<Expiry>) {
        self.entries += 1;
        self.bytes += (key.len() + value.len()) as u64;
        self.hash.update(&head(key, value, expiry));
        self.hash.update(key);
        self.hash.update(value);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the totals.
    pub(crate) fn end(&self) -> StreamEnd {
        StreamEnd { entries: self.entries, bytes: self.bytes, checksum: self.hash.digest() }
    }
}

/// Returns the bytes of an entry before its key and value.
pub(crate) fn head(key: &[u8], value: &[u8], expiry: Option<Expiry>) -> Vec<u8> {
    let mut head = vec![if expiry.is_some() { PUT_WITH_EXPIRY } else { PUT }];
    head.extend_from_slice(&(key.len() as u32).to_le_bytes());
    head.extend_from_slice(&(value.len() as u32).to_le_bytes());
    if let Some(expiry) = expiry {
        head.extend_from_slice(&expiry.milliseconds().to_le_bytes());
    }
    head
}
