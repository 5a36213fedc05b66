//! Keys one behind the other, which a builder takes in one call.
//! ```text
//! bytes   |apple|pear|quince|
//! ends          5    9      15
//! ```
//! Invariant: the ends ascend, and the last one is the end of the bytes.

/// Keys on their way to a filter's builder.
#[derive(Clone, Debug, Default)]
pub struct KeyBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyBatch {
    /// Adds a key behind the others.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Forgets the keys and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The keys as they were added.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }
}
