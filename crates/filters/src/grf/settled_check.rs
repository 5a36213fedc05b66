//! Whether settled entries of an image are in order, and of codes that there are: a checksum does not tell.
//! ```text
//! slot      [12, code 0] [12, code 2] [40, code 1]      ascending, codes below the number of codes
//! ```
//! Out of order they would be searched in vain, and a code that is not there is beyond the chunk's end. Invariant: it believes
//! nothing but layout, tables and codes, which were checked before.

use super::settled::Settled;

impl Settled<'_> {
    /// Whether the entries of each slot ascend, and each has a code. Requires: layout, tables and codes are right.
    pub(super) fn has_entries(&self) -> bool {
        let mut entries = self.packed_entries();
        let code_bits = self.layout.code_bits();
        let codes = self.codes().count() as u64;
        self.slots().all(|(_, count)| {
            let mut last = 0;
            (0..count).all(|_| {
                let entry = entries.take();
                let is_one = entry >= last && entry & ((1 << code_bits) - 1) < codes;
                last = entry;
                is_one
            })
        })
    }
}
