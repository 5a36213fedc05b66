//! The tables that a merge made a table of.
//! ```text
//! key 5   28 +1         22 +1         tables 31 and 24
//! key 5   28 +2                       table 40, made of 24 and 31: it replaces them for its keys
//! ```
//! A merge combines operands into one with the number of the newest. So the entries 22 and 28 do
//! not show whether 28 already includes 22. A repair without a manifest needs to know, since it may
//! find tables that a merge has replaced.
//!
//! Invariant: file numbers ascend. For keys from its first to its last, a table has everything that
//! these tables had there.

use trommel_filters::{Corrupt, Reader, Writer};

use crate::entries::entry::NUMBER_MAX;

/// File numbers of tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MadeOf(Vec<u64>);

impl MadeOf {
    pub(crate) fn new(mut files: Vec<u64>) -> MadeOf {
        files.sort_unstable();
        files.dedup();
        MadeOf(files)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.varint(self.0.len() as u64);
        let mut before = 0;
        for file in &self.0 {
            out.varint(file - before);
            before = *file;
        }
        out.finish()
    }

    pub(super) fn decode(section: &[u8]) -> Result<MadeOf, Corrupt> {
        let (mut input, mut all) = (Reader::new(section), Vec::new());
        let mut last = 0u64;
        for place in 0..input.varint()? {
            let step = input.varint()?;
            last = last.saturating_add(step);
            if last > NUMBER_MAX || step == 0 && place > 0 {
                return Err(input.corrupt("a table that cannot be"));
            }
            all.push(last);
        }
        input.end()?;
        Ok(MadeOf(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes_of_what_a_table_was_made_of() {
        let made_of = MadeOf::new(vec![312, 12, 12, 13]);
        let bytes = made_of.encode();
        assert_eq!(bytes, [3, 12, 1, 0xab, 2]);
        assert_eq!(MadeOf::decode(&bytes), Ok(made_of.clone()));
        assert!(made_of.files().eq([12, 13, 312]));
        (0..bytes.len()).for_each(|len| assert!(MadeOf::decode(&bytes[..len]).is_err()));
        assert!(MadeOf::decode(&[2, 12, 0]).is_err(), "twice");
        let huge = [&[2, 1][..], &[0xff; 9], &[1]].concat();
        assert!(MadeOf::decode(&huge).is_err(), "more than there can be");
    }
}
