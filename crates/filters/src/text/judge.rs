//! Decides whether a model pays, and how many code bits and hash bits are best.
//! ```text
//! sample -> keys as they are          -> spare bits of coded cells -> rate, for each number of
//!        -> codes of 32, 40, ... bits -> spare bits of coded cells -> rate, hash bits
//! cost      points x rate / 2^(hash bits) + ranges x rate
//! ```
//! Truncated codes are equal where keys lie so close together that telling them apart costs more
//! bits than it is worth.
//!
//! Invariant: the choice affects a filter's size and error rate, never its correctness.

use alloc::vec::Vec;

use super::code::KeyCode;
use super::model::{CODE_BITS_MAX, TextModel};
use super::sample::KeySample;
use crate::fingerprint::Fingerprints;
use crate::fingerprint::chapter::Chapter;
use crate::fingerprint::choose_kind::OwnRates;
use crate::fingerprint::coded::unit_of;
use crate::fingerprint::keys::{KEY_BYTES_MAX, KeyBuffer, Pushed};
use crate::fingerprint::query_mix::QueryMix;
use core::ops::Range;

/// Minimum keys of a sample and of a filter.
const SAMPLE_MIN: usize = 512;
const KEYS_MIN: u64 = 1 << 14;
/// Codes must lower the cost to this share, since encoding takes time.
const CLEARLY: f64 = 0.85;
/// About this many keys of a sample are judged.
const KEYS_JUDGED: usize = 8192;
/// Costs within this factor count as equal.
const ABOUT: f64 = 1.03;
/// A rate below this needs no model.
const RATE_LEAST: f64 = 1e-3;
/// Keys per block, and per stretch that is judged together, as in a group.
const BLOCK_KEYS: usize = 60;
const JUDGED: usize = 12 * BLOCK_KEYS;
/// Approximate bits per key besides coded cells: block and group headers, the directory.
const BESIDE_CELLS: f64 = 1.0;
/// The largest number of hash bits considered.
const POINT_BITS_JUDGED: usize = 6;
/// The code lengths considered, in bits.
const CODE_BITS_JUDGED: [u32; 9] = [32, 40, 48, 56, 64, 80, 96, 128, CODE_BITS_MAX];

/// The best representation of a part's keys.
#[derive(Default)]
pub(crate) struct Judged {
    /// The model. None: keys are best as they are.
    pub(crate) model: Option<TextModel>,
    /// Hash bits per key.
    pub(crate) point_bits: usize,
    /// Whether hashes alone cost least. Each group then also considers hashes.
    pub(crate) hashes: bool,
    /// Whether the sample was judged and its keys are text.
    pub(crate) is_known: bool,
}

/// The cost of a choice.
#[derive(Clone, Copy)]
struct Cost {
    point_bits: usize,
    wrong: f64,
}

impl Judged {
    /// Judges a filter of about `keys` keys like those of the sample, at `bits` bits per key.
    pub(crate) fn of(sample: &KeySample, keys: u64, bits: f64, mix: QueryMix) -> Judged {
        if sample.len() < SAMPLE_MIN || keys < KEYS_MIN {
            return Judged::default();
        }
        if !sample.is_text() {
            return Judged::default();
        }
        let mut model = TextModel::of(sample, keys);
        let as_is = Judgement::of(sample, None).rates(bits).of(0, mix);
        if as_is < RATE_LEAST {
            return Judged::default();
        }
        let with_model = bits - 8.0 * model.size_bytes() as f64 / keys as f64;
        let costs = CODE_BITS_JUDGED.map(|code_bits| {
            model.code_bits = code_bits;
            Judgement::of(sample, Some(&model)).rates(with_model).best(mix)
        });
        let least = costs.iter().map(|cost| cost.wrong).fold(f64::INFINITY, f64::min);
        let costs = costs.into_iter().zip(CODE_BITS_JUDGED);
        // Among the equally good ones, the longest: it is safest where the sample is not typical.
        let best = costs.rev().find(|(cost, _)| cost.wrong <= ABOUT * least);
        let (cost, code_bits) = best.expect("one is the least");
        let hashes = mix.cost_of_hashes();
        if cost.wrong > CLEARLY * as_is.min(hashes) {
            return Judged { hashes: hashes < as_is, is_known: true, ..Judged::default() };
        }
        let model = Some(TextModel { code_bits, ..model });
        Judged { model, point_bits: cost.point_bits, hashes: false, is_known: true }
    }
}

/// Keys or codes, as a filter would store them.
#[derive(Default)]
struct Judgement {
    keys: KeyBuffer,
    /// The ends of blocks, and the stretches that are judged together.
    cuts: Vec<usize>,
    stretches: Vec<Range<usize>>,
    /// Keys that equal the one before.
    ties: usize,
    /// Keys that equal any other one, and whether the last key does.
    tied: usize,
    is_tied: bool,
    /// The length of all keys, if it is the same.
    key_bits: Option<usize>,
}

impl Judgement {
    fn of(sample: &KeySample, model: Option<&TextModel>) -> Judgement {
        let (mut judgement, mut code) = (Judgement::default(), KeyCode::new());
        let judged = (sample.len() / KEYS_JUDGED).max(1);
        for stretch in sample.stretches().step_by(judged) {
            for place in stretch {
                let key = sample.keys().get(place);
                judgement.push(model.map_or(key, |model| model.encode(key, &mut code)));
            }
            judgement.end_stretch();
        }
        let cut = model.map(|model| model.code_bits() as usize);
        judgement.key_bits = cut.or_else(|| judgement.keys.key_bits());
        judgement
    }

    fn push(&mut self, key: &[u8]) {
        match self.keys.push(&key[..key.len().min(KEY_BYTES_MAX)]) {
            Pushed::Kept => self.is_tied = false,
            Pushed::Below => {}
            // Each of several equal ones would be taken for the others.
            Pushed::Repeated | Pushed::Zeros => {
                self.ties += 1;
                self.tied += 1 + usize::from(!core::mem::replace(&mut self.is_tied, true));
            }
        }
    }

    fn end_stretch(&mut self) {
        let mut start = self.cuts.last().copied().unwrap_or(0);
        while start < self.keys.len() {
            let end = (start + JUDGED).min(self.keys.len());
            self.stretches.push(start..end);
            self.cuts.extend((start..end).step_by(BLOCK_KEYS).skip(1));
            self.cuts.push(end);
            start = end;
        }
    }

    /// Returns the rates of cells at `bits` bits per key.
    fn rates(&self, bits: f64) -> Rates {
        let distinct = self.keys.len() as f64;
        let all = distinct + self.ties as f64;
        let chapter =
            Chapter::new(Fingerprints::Coded, &self.keys, &self.cuts, self.key_bits, None);
        let bits = bits * all / distinct.max(1.0) - BESIDE_CELLS;
        let spare = core::array::from_fn(|hashed| chapter.spare(bits - hashed as f64));
        let spare: [f64; POINT_BITS_JUDGED + 1] = spare.map(|spare| spare.unwrap_or(0.0));
        let mut wrong = [0.0; POINT_BITS_JUDGED + 1];
        for stretch in &self.stretches {
            let commons = &self.keys.commons()[stretch.start + 1..stretch.end];
            let Some(&prefix_bits) = commons.iter().min() else { continue };
            let views = stretch.clone().map(|place| self.keys.view(place, prefix_bits as usize));
            let unit = unit_of(self.key_bits, prefix_bits as usize);
            let rates = OwnRates::new(&views.collect::<Vec<u64>>(), spare[0], unit);
            for (wrong, spare) in wrong.iter_mut().zip(spare) {
                *wrong += rates.near(spare) * stretch.len() as f64;
            }
        }
        let mut cells = wrong.map(|wrong| (wrong / distinct.max(1.0)).min(1.0));
        // Hash bits must leave room for the cells.
        let full = spare.iter().position(|&spare| spare < 0.0).unwrap_or(spare.len());
        cells[full.max(1)..].fill(f64::INFINITY);
        Rates { cells, tied: self.tied as f64 / all.max(1.0) }
    }
}

/// The false positive rates of cells.
struct Rates {
    /// One rate for each number of hash bits.
    cells: [f64; POINT_BITS_JUDGED + 1],
    /// The share of keys with equal codes, which share a hash, too.
    tied: f64,
}

impl Rates {
    fn of(&self, point_bits: usize, mix: QueryMix) -> f64 {
        self.tied + (1.0 - self.tied) * mix.cost(self.cells[point_bits], point_bits)
    }

    /// Returns the cheapest number of hash bits and its cost.
    fn best(&self, mix: QueryMix) -> Cost {
        let costs = (0..self.cells.len())
            .map(|point_bits| Cost { point_bits, wrong: self.of(point_bits, mix) });
        costs.min_by(|a, b| a.wrong.total_cmp(&b.wrong)).expect("there are choices")
    }
}
