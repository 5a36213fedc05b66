//! The value files that a table's entries refer to, with the number of bytes.
//! ```text
//! section  count | (file, bytes) (file, bytes) ...     files ascend
//! ```
//! Invariant: bytes are those of whole records, counted once for each entry.

use std::collections::BTreeMap;

use trommel_filters::{Corrupt, Reader, Writer};

use crate::entries::entry::NUMBER_MAX;
use crate::entries::value_ref::ValueRef;
use crate::files::value_file::format::record_bytes;

/// For each value file, the bytes that some entries refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedValues(BTreeMap<u64, u64>);

impl NamedValues {
    /// Counts the reference of an entry.
    pub(crate) fn count(&mut self, at: &ValueRef) {
        *self.0.entry(at.file).or_default() += record_bytes(at);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each file with its bytes, by ascending file number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(file, bytes)| (*file, *bytes))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.varint(self.0.len() as u64);
        for (file, bytes) in self.iter() {
            out.varint(file);
            out.varint(bytes);
        }
        out.finish()
    }

    pub(super) fn decode(section: &[u8]) -> Result<NamedValues, Corrupt> {
        let (mut input, mut all) = (Reader::new(section), BTreeMap::new());
        let (mut last, mut sum) = (None, 0u64);
        for _ in 0..input.varint()? {
            let (file, bytes) = (input.varint()?, input.varint()?);
            sum = sum.saturating_add(bytes);
            if file > NUMBER_MAX || sum > NUMBER_MAX || last.is_some_and(|last| last >= file) {
                return Err(input.corrupt("a value file that cannot be"));
            }
            last = Some(file);
            all.insert(file, bytes);
        }
        input.end()?;
        Ok(NamedValues(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes_of_named_values() {
        let mut values = NamedValues::default();
        let at = ValueRef { file: 12, offset: 28, len: 280, checksum: 0, packed_bytes: None };
        [at, at, ValueRef { file: 3, ..at }].iter().for_each(|at| values.count(at));
        let bytes = values.encode();
        assert_eq!(bytes, [2, 3, 0xac, 2, 12, 0xd8, 4]);
        assert_eq!(NamedValues::decode(&bytes), Ok(values));
        (0..bytes.len()).for_each(|len| assert!(NamedValues::decode(&bytes[..len]).is_err()));
        assert!(NamedValues::decode(&[2, 12, 1, 3, 1]).is_err(), "out of order");
        assert!(NamedValues::decode(&[2, 3, 1, 3, 1]).is_err(), "twice");
        let huge = [&[2, 1][..], &[0xff; 9], &[1, 2], &[0xff; 9], &[1]].concat();
        assert!(NamedValues::decode(&huge).is_err(), "more than there can be");
    }
}
