//! Builds the filter of a table's fingerprints.
//! ```text
//! keys --> groups (fingerprint/builder.rs) --> image
//! ```
//! Invariant: every key that was added is counted once, and lies in a cell.

use trommel_filters::fingerprint::builder::{
    Beside, CUTS_OF_LINE_BLOCK, GroupsBuilder, GroupsPlan, HASH_ABOVE,
};
use trommel_filters::fingerprint::keys::{KEY_BYTES_MAX, Pushed};
use trommel_filters::{FilterKind, OutOfOrder, TableFilterBuilder};

use super::encoding::Encoding;
use super::image;
use super::place::cut;

const BITS_PER_KEY_MIN: f64 = 1.0;
const BITS_PER_KEY_MAX: f64 = 64.0;

/// Builds the filter of a table's fingerprints.
pub struct FingerprintFilterBuilder {
    encoding: Encoding,
    groups: GroupsBuilder,
    /// The key that was added last, where the groups have it not: it lies in the cell of their last
    /// one.
    last: Option<Vec<u8>>,
}

impl FingerprintFilterBuilder {
    /// A filter whose fingerprints are positions on a line through some hundred keys each: what the
    /// SNARF paper and the GRF paper do. Best where keys are spread smoothly, of no use where gaps
    /// differ much. More bits per key (1 to 64): more memory, fewer false positives. Requires: a
    /// number.
    pub fn snarf(bits_per_key: f64) -> Self {
        Self::new(Encoding::Snarf, bits_per_key)
    }

    /// A filter whose fingerprints are prefixes, in bits, that tell a key from its neighbours, and
    /// some bits more.
    pub fn cell(bits_per_key: f64) -> Self {
        Self::new(Encoding::Cell, bits_per_key)
    }

    /// A filter whose fingerprints are as fine as the gaps beside a key: about half of the false
    /// positives of `cell`.
    pub fn gap(bits_per_key: f64) -> Self {
        Self::new(Encoding::Gap, bits_per_key)
    }

    /// A filter of `gap`'s fingerprints in fewer bits, whose exponents take as many as their
    /// frequency asks for: about a third of the false positives of `gap` where keys are even.
    pub fn coded(bits_per_key: f64) -> Self {
        Self::new(Encoding::Coded, bits_per_key)
    }

    pub(super) fn new(encoding: Encoding, bits_per_key: f64) -> Self {
        assert!(!bits_per_key.is_nan(), "bits per key is not a number");
        let plan = GroupsPlan {
            fingerprints: encoding.fingerprints(),
            bits_per_key: bits_per_key.clamp(BITS_PER_KEY_MIN, BITS_PER_KEY_MAX),
            point_bits: 0,
            hash_above: HASH_ABOVE,
            key_bits: None,
            is_text: false,
            beside: Beside::NOTHING,
            cuts_of_line_block: CUTS_OF_LINE_BLOCK,
        };
        FingerprintFilterBuilder { encoding, groups: GroupsBuilder::new(plan), last: None }
    }

    /// Which filter it makes.
    pub fn kind(&self) -> &'static dyn FilterKind {
        self.encoding.kind()
    }

    #[cold]
    fn refuse(&self, key: &[u8]) -> Result<(), OutOfOrder> {
        let last = self.groups.last().unwrap_or_default().to_vec();
        Err(OutOfOrder { last, key: key.to_vec() })
    }

    /// Adds a key that is long, or that comes after one that the groups lack.
    #[cold]
    fn add_odd(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        if let Some(last) = self.last.as_deref().or(self.groups.last()) {
            if key < last {
                return Err(OutOfOrder { last: last.to_vec(), key: key.to_vec() });
            }
            if key == last {
                return Ok(());
            }
        }
        // Cutting keeps order, so a long key lies in the cell of what is left of it.
        match self.groups.push(cut(key)) {
            Pushed::Kept | Pushed::Zeros => {}
            Pushed::Repeated | Pushed::Below => self.groups.count_more(),
        }
        self.last = (self.groups.last() != Some(key)).then(|| key.to_vec());
        Ok(())
    }
}

impl TableFilterBuilder for FingerprintFilterBuilder {
    #[inline(always)] // A call for each key takes 20 of 150 instructions.
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        if self.last.is_some() || key.len() > KEY_BYTES_MAX {
            return self.add_odd(key);
        }
        match self.groups.push(key) {
            Pushed::Kept | Pushed::Repeated => {}
            Pushed::Zeros => self.last = Some(key.to_vec()),
            Pushed::Below => return self.refuse(key),
        }
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        image::write(self.encoding, self.groups.finish())
    }
}
