//! Builds groups of fingerprints from keys, or from their codes if a text model pays.
//! ```text
//! sample --judge--> no model: keys ----------> groups
//!                   a model:  keys -> codes -> groups, in the bits that the model leaves
//! ```
//! The name of a key is the key itself or its code. Invariant: names ascend as keys do, and each
//! key is counted once.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::code::KeyCode;
use super::judge::Judged;
use super::model::TextModel;
use super::sample::KeySample;
use crate::fingerprint::Fingerprints;
use crate::fingerprint::builder::{Groups, GroupsBuilder, GroupsPlan};
use crate::fingerprint::demand::Demand;
use crate::fingerprint::keys::{Pushed, WORD_BYTES};
use crate::fingerprint::query_mix::QueryMix;
use core::cmp::Ordering;

/// The least bits per key, however much the model takes: fewer would be useless.
const BITS_LEAST: f64 = 1.0;

/// Builds groups of fingerprints from sorted keys, or from their codes.
pub struct NamedGroupsBuilder {
    groups: GroupsBuilder,
    coder: Option<Coder>,
}

/// Encodes keys.
struct Coder {
    model: Box<TextModel>,
    code: KeyCode,
    /// The last key pushed.
    last: Vec<u8>,
}

impl NamedGroupsBuilder {
    /// An empty builder, without a model.
    pub fn new(plan: GroupsPlan) -> Self {
        NamedGroupsBuilder { groups: GroupsBuilder::new(plan), coder: None }
    }

    /// The plan of the groups.
    pub fn plan(&self) -> &GroupsPlan {
        self.groups.plan()
    }

    /// Changes the plan of the groups. Requires: no key was pushed.
    #[must_use]
    pub(crate) fn with_plan(self, change: impl FnOnce(&mut GroupsPlan)) -> Self {
        let mut plan = *self.plan();
        change(&mut plan);
        NamedGroupsBuilder { groups: GroupsBuilder::new(plan), ..self }
    }

    /// Chooses the best representation of about `keys` keys like those of the sample, within the
    /// plan's bits. (`Fingerprints::Spline`, the GRF paper's, has no model.)
    pub(crate) fn judge(&self, sample: &KeySample, keys: u64, mix: QueryMix) -> Judged {
        let GroupsPlan { fingerprints, bits_per_key, .. } = *self.plan();
        match fingerprints {
            Fingerprints::Spline => Judged::default(),
            _ => Judged::of(sample, keys, bits_per_key, mix),
        }
    }

    /// Uses a model of this sample of about `keys` keys, if it pays without hash bits. A sample
    /// unlike the keys costs accuracy, never correctness. Requires: no key was pushed.
    #[must_use]
    pub fn with_sample(self, sample: &KeySample, keys: u64) -> Self {
        // Without hashes, points cost the same as ranges.
        match self.judge(sample, keys, QueryMix { points: 0.0 }).model {
            Some(model) => self.with_text(model, keys),
            None => self,
        }
    }

    /// Stores codes of `model` in place of about `keys` keys, whether that pays or not. The model's
    /// memory comes out of the budget. Requires: no key was pushed.
    #[must_use]
    pub fn with_text(self, model: TextModel, keys: u64) -> Self {
        let bits = 8.0 * model.size_bytes() as f64 / keys.max(1) as f64;
        let code_bits = model.code_bits() as usize;
        let named = self.with_plan(|plan| {
            plan.key_bits = Some(code_bits);
            plan.expected_keys = keys;
            plan.bits_per_key = (plan.bits_per_key - bits).max(BITS_LEAST);
        });
        let (code, last) = (KeyCode::new(), Vec::new());
        NamedGroupsBuilder { coder: Some(Coder { model: Box::new(model), code, last }), ..named }
    }

    /// Divides bits among groups by `demand`, whose queries are names, too. Requires: no key was
    /// pushed.
    pub(crate) fn set_demand(&mut self, demand: Demand) {
        self.groups.set_demand(demand);
    }

    /// Returns the name of a key: the key, or its code.
    pub(crate) fn name<'k>(&self, key: &'k [u8], code: &'k mut KeyCode) -> &'k [u8] {
        match &self.coder {
            None => key,
            Some(coder) => coder.model.encode(key, code),
        }
    }

    /// Adds the next key if it is above the one before. Requires: at most
    /// [`KEY_BYTES_MAX`](crate::fingerprint::keys::KEY_BYTES_MAX) bytes.
    #[inline(always)]
    pub fn push(&mut self, key: &[u8]) -> Pushed {
        match &mut self.coder {
            None => self.groups.push(key),
            Some(coder) => coder.push(key, &mut self.groups),
        }
    }

    /// Adds each word as [`NamedGroupsBuilder::push`] does, while they ascend. Returns the first
    /// word that does not.
    pub fn push_words<'w>(
        &mut self,
        words: &'w [[u8; WORD_BYTES]],
    ) -> Option<&'w [u8; WORD_BYTES]> {
        if self.coder.is_none() {
            return self.groups.push_words(words);
        }
        let is_refused =
            |word: &&[u8; WORD_BYTES]| matches!(self.push(*word), Pushed::Repeated | Pushed::Below);
        words.iter().find(is_refused)
    }

    /// Counts another key in the cell of the last one. Requires: a key was pushed.
    pub fn count_more(&mut self) {
        self.groups.count_more();
    }

    /// Returns the last key that is not another key followed by zeros. None: no key was pushed.
    #[inline]
    pub fn last(&self) -> Option<&[u8]> {
        match &self.coder {
            None => self.groups.last(),
            Some(coder) => self.groups.last().map(|_| &coder.last[..]),
        }
    }

    /// Returns the groups of all pushed keys, and the model if they store codes.
    pub fn finish(self) -> (Groups, Option<Box<TextModel>>) {
        (self.groups.finish(), self.coder.map(|coder| coder.model))
    }

    /// The peak heap size of the build so far, in bytes.
    pub fn peak_bytes(&self) -> usize {
        self.groups.peak_bytes()
    }
}

impl Coder {
    /// Adds the code of the next key to the groups.
    fn push(&mut self, key: &[u8], groups: &mut GroupsBuilder) -> Pushed {
        if groups.last().is_some() {
            match key.cmp(&self.last) {
                Ordering::Less => return Pushed::Below,
                Ordering::Equal => return Pushed::Repeated,
                Ordering::Greater => {}
            }
        }
        key.clone_into(&mut self.last);
        match groups.push(self.model.encode(key, &mut self.code)) {
            Pushed::Kept | Pushed::Zeros => {}
            // A tie: the key shares the last one's cell.
            Pushed::Repeated => groups.count_more(),
            Pushed::Below => unreachable!("codes ascend as keys do"),
        }
        Pushed::Kept
    }
}
