//! Builds the filter of a table's fingerprints.
//! ```text
//! keys --> waiting --> is it text? does a model pay? --> names --> groups --> image
//! ```
//! Invariant: every key that was added is counted once, and lies in a cell.

use trommel_filters::fingerprint::builder::{Beside, CUTS_OF_LINE_BLOCK, GroupsPlan, HASH_ABOVE};
use trommel_filters::fingerprint::keys::{KEY_BYTES_MAX, Pushed};
use trommel_filters::{FilterKind, NamedGroupsBuilder, OutOfOrder, TableFilterBuilder, TextModel};

use super::encoding::Encoding;
use super::image;
use super::place::cut;
use super::waiting::Waiting;

const BITS_PER_KEY_MIN: f64 = 1.0;
const BITS_PER_KEY_MAX: f64 = 64.0;

/// Builds the filter of a table's fingerprints. Keys that look like text wait for the last one, in
/// memory: where many of them are told apart better by a model of text, the filter has one.
pub struct FingerprintFilterBuilder {
    encoding: Encoding,
    groups: NamedGroupsBuilder,
    /// None: it is known whether there is a model.
    waiting: Option<Waiting>,
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
            has_newer: false,
        };
        let groups = NamedGroupsBuilder::new(plan);
        let waiting = (encoding != Encoding::Snarf).then(Waiting::new);
        FingerprintFilterBuilder { encoding, groups, waiting, last: None }
    }

    /// Takes codes of this model in place of some `keys` keys, whatever they are. What the model
    /// takes is part of the budget. Requires: no key was added.
    #[must_use]
    pub fn with_text(self, model: TextModel, keys: u64) -> Self {
        FingerprintFilterBuilder {
            groups: self.groups.with_text(model, keys),
            waiting: None,
            ..self
        }
    }

    /// Which filter it makes.
    pub fn kind(&self) -> &'static dyn FilterKind {
        self.encoding.kind()
    }

    /// Adds a key to those that wait.
    #[inline(never)]
    fn wait(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        let Some(waiting) = &mut self.waiting else { unreachable!("it was there") };
        waiting.push(key)?;
        if waiting.is_in_vain() {
            self.end_waiting();
        }
        Ok(())
    }

    /// Adds the keys that wait.
    fn end_waiting(&mut self) {
        let Some(waiting) = self.waiting.take() else { return };
        waiting.keys().iter().for_each(|key| self.add(key).expect("keys waited in order"));
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
        if self.waiting.is_some() {
            return self.wait(key);
        }
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

    fn finish(mut self) -> Vec<u8> {
        if let Some(waiting) = &self.waiting {
            let keys = waiting.keys().len() as u64;
            self.groups = self.groups.with_sample(&waiting.sample(), keys);
            self.end_waiting();
        }
        let (groups, text) = self.groups.finish();
        image::write(self.encoding, groups, text.as_deref())
    }
}
