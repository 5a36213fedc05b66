//! Builds the filter of a table from fingerprints of its keys.
//! ```text
//! keys --> waiting --> is it text? does a model pay? --> names --> groups --> image
//! ```
//! Invariant: every added key is counted once, and lies in a cell.

use trommel_filters::fingerprint::builder::{Beside, CUTS_OF_LINE_BLOCK, GroupsPlan, HASH_ABOVE};
use trommel_filters::fingerprint::keys::{KEY_BYTES_MAX, Pushed};
use trommel_filters::{FilterKind, NamedGroupsBuilder, OutOfOrder, TableFilterBuilder, TextModel};

use super::encoding::Encoding;
use super::image;
use super::place::cut;
use super::waiting::Waiting;

const BITS_PER_KEY_MIN: f64 = 1.0;
const BITS_PER_KEY_MAX: f64 = 64.0;

/// Builds the filter of a table from fingerprints of its keys. Keys that look like text are kept in
/// memory until the last one has come. If a model of text tells them apart better, the filter gets
/// one.
pub struct FingerprintFilterBuilder {
    encoding: Encoding,
    groups: NamedGroupsBuilder,
    /// None: it is decided whether there is a model.
    waiting: Option<Waiting>,
    /// The last key added, if the groups do not have it: it lies in their last key's cell.
    last: Option<Vec<u8>>,
}

impl FingerprintFilterBuilder {
    /// A builder with positions on lines through some hundred keys each, as in the SNARF and GRF
    /// papers. Best for smoothly distributed keys, useless where gaps differ much. `bits_per_key`
    /// is 1 to 64; more: more memory, fewer false positives.
    ///
    /// # Panics
    /// `bits_per_key` is not a number.
    pub fn snarf(bits_per_key: f64) -> Self {
        Self::new(Encoding::Snarf, bits_per_key)
    }

    /// A builder with the prefixes, in bits, that tell a key from its neighbours, plus spare bits.
    /// Otherwise as [`snarf`](Self::snarf).
    pub fn cell(bits_per_key: f64) -> Self {
        Self::new(Encoding::Cell, bits_per_key)
    }

    /// A builder with a resolution that follows the gaps beside a key: about half the false
    /// positives of `cell`. Otherwise as [`snarf`](Self::snarf).
    pub fn gap(bits_per_key: f64) -> Self {
        Self::new(Encoding::Gap, bits_per_key)
    }

    /// A builder with the fingerprints of `gap` in fewer bits, as exponents are coded by frequency.
    /// For even keys it has about a third of the false positives of `gap`. Otherwise as
    /// [`snarf`](Self::snarf).
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
            expected_keys: 0,
            beside: Beside::NOTHING,
            cuts_of_line_block: CUTS_OF_LINE_BLOCK,
            has_newer: false,
        };
        let groups = NamedGroupsBuilder::new(plan);
        let waiting = (encoding != Encoding::Snarf).then(Waiting::new);
        FingerprintFilterBuilder { encoding, groups, waiting, last: None }
    }

    /// Stores codes of `model` in place of about `keys` keys, whether that pays or not. The model's
    /// memory comes out of the budget. Requires: no key was added.
    #[must_use]
    pub fn with_text(self, model: TextModel, keys: u64) -> Self {
        FingerprintFilterBuilder {
            groups: self.groups.with_text(model, keys),
            waiting: None,
            ..self
        }
    }

    /// The kind of filter that it builds.
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

    /// Adds the waiting keys.
    fn end_waiting(&mut self) {
        let Some(waiting) = self.waiting.take() else { return };
        waiting.keys().iter().for_each(|key| self.add(key).expect("keys waited in order"));
    }

    #[cold]
    fn refuse(&self, key: &[u8]) -> Result<(), OutOfOrder> {
        let last = self.groups.last().unwrap_or_default().to_vec();
        Err(OutOfOrder { last, key: key.to_vec() })
    }

    /// Adds a long key, or a key after one that the groups do not have.
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
        // Truncation keeps order, so a long key lies in the cell of its truncated form.
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
