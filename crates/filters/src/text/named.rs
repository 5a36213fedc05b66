//! Builds groups of what stands for keys: of the keys, or of codes, if a model of text pays.
//! ```text
//! sample --judge--> no model: keys ----------> groups
//!                   a model:  keys -> codes -> groups, in the bits that the model leaves
//! ```
//! Invariant: names ascend as keys do, and each key is counted once.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::code::KeyCode;
use super::judge::Judged;
use super::model::TextModel;
use super::sample::KeySample;
use crate::fingerprint::Fingerprints;
use crate::fingerprint::asked::Asked;
use crate::fingerprint::builder::{Groups, GroupsBuilder, GroupsPlan};
use crate::fingerprint::demand::Demand;
use crate::fingerprint::keys::{Pushed, WORD_BYTES};
use core::cmp::Ordering;

/// Less would tell nothing, however little a model leaves.
const BITS_LEAST: f64 = 1.0;

/// Builds the groups of sorted keys, or of their codes.
pub struct NamedGroupsBuilder {
    groups: GroupsBuilder,
    coder: Option<Coder>,
}

/// What makes codes of keys.
struct Coder {
    model: Box<TextModel>,
    code: KeyCode,
    /// The last key.
    last: Vec<u8>,
}

impl NamedGroupsBuilder {
    /// Starts without keys, and without a model.
    pub fn new(plan: GroupsPlan) -> Self {
        NamedGroupsBuilder { groups: GroupsBuilder::new(plan), coder: None }
    }

    /// How the groups are made.
    pub fn plan(&self) -> &GroupsPlan {
        self.groups.plan()
    }

    /// With groups that are planned otherwise. Requires: no key was pushed.
    #[must_use]
    pub(crate) fn with_plan(self, change: impl FnOnce(&mut GroupsPlan)) -> Self {
        let mut plan = *self.plan();
        change(&mut plan);
        NamedGroupsBuilder { groups: GroupsBuilder::new(plan), ..self }
    }

    /// How some `keys` keys like these are best told apart in the bits that there are.
    /// (`Fingerprints::Spline`, the GRF paper's, has no model.)
    pub(crate) fn judge(&self, sample: &KeySample, keys: u64, asked: Asked) -> Judged {
        let GroupsPlan { fingerprints, bits_per_key, .. } = *self.plan();
        match fingerprints {
            Fingerprints::Spline => Judged::default(),
            _ => Judged::of(sample, keys, bits_per_key, asked),
        }
    }

    /// With a model of this sample of some `keys` keys, if it pays where nothing but order tells
    /// keys apart. A sample that is unlike the keys costs accuracy, never truth. Requires: no key
    /// was pushed.
    #[must_use]
    pub fn with_sample(self, sample: &KeySample, keys: u64) -> Self {
        // Points are told apart as ranges are, without hashes.
        match self.judge(sample, keys, Asked { points: 0.0 }).model {
            Some(model) => self.with_text(model, keys),
            None => self,
        }
    }

    /// Takes codes of this model in place of some `keys` keys, whatever they are. What the model
    /// takes is part of the budget. Requires: no key was pushed.
    #[must_use]
    pub fn with_text(self, model: TextModel, keys: u64) -> Self {
        let bits = 8.0 * model.size_bytes() as f64 / keys.max(1) as f64;
        let code_bits = model.code_bits() as usize;
        let named = self.with_plan(|plan| {
            plan.key_bits = Some(code_bits);
            plan.bits_per_key = (plan.bits_per_key - bits).max(BITS_LEAST);
        });
        let (code, last) = (KeyCode::new(), Vec::new());
        NamedGroupsBuilder { coder: Some(Coder { model: Box::new(model), code, last }), ..named }
    }

    /// Divides bits between groups as questions fall, which have names, too. Requires: no key was
    /// pushed.
    pub(crate) fn set_demand(&mut self, demand: Demand) {
        self.groups.set_demand(demand);
    }

    /// What stands for a key.
    pub(crate) fn name<'k>(&self, key: &'k [u8], code: &'k mut KeyCode) -> &'k [u8] {
        match &self.coder {
            None => key,
            Some(coder) => coder.model.encode(key, code),
        }
    }

    /// Adds the next key, if it is above the one before. Requires: of at most
    /// [`KEY_BYTES_MAX`](crate::fingerprint::keys::KEY_BYTES_MAX) bytes.
    #[inline(always)]
    pub fn push(&mut self, key: &[u8]) -> Pushed {
        match &mut self.coder {
            None => self.groups.push(key),
            Some(coder) => coder.push(key, &mut self.groups),
        }
    }

    /// As [`NamedGroupsBuilder::push`] of each, as long as they ascend. Gives the first one that
    /// does not.
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

    /// Counts a key that lies in the cell of the last one. Requires: there is that one.
    pub fn count_more(&mut self) {
        self.groups.count_more();
    }

    /// The last key that is no zeros more than another one.
    #[inline]
    pub fn last(&self) -> Option<&[u8]> {
        match &self.coder {
            None => self.groups.last(),
            Some(coder) => self.groups.last().map(|_| &coder.last[..]),
        }
    }

    /// The groups of the keys pushed, and what makes codes of keys, if they are those of codes.
    pub fn finish(self) -> (Groups, Option<Box<TextModel>>) {
        (self.groups.finish(), self.coder.map(|coder| coder.model))
    }

    /// The most heap bytes that building has taken so far.
    pub fn peak_bytes(&self) -> usize {
        self.groups.peak_bytes()
    }
}

impl Coder {
    /// Gives the code of the next key to its group.
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
            // A tie: its cell is the last one's.
            Pushed::Repeated => groups.count_more(),
            Pushed::Below => unreachable!("codes ascend as keys do"),
        }
        Pushed::Kept
    }
}
