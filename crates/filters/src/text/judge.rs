//! Whether a model pays, how long its codes are to be, and how many hash bits do.
//! ```text
//! sample -> keys as they are          -> spare bits of coded cells -> rate, for each number of
//!        -> codes of 32, 40, ... bits -> spare bits of coded cells -> rate, hash bits
//! cost      points x rate / 2^(hash bits) + ranges x rate
//! ```
//! Codes that are cut tie where keys lie so close together that telling them apart takes more bits
//! than it is worth. Invariant: the choice changes what a filter costs and how often it errs, never
//! its truth.

use alloc::vec::Vec;

use super::code::KeyCode;
use super::model::{CODE_BITS_MAX, TextModel};
use super::sample::KeySample;
use crate::fingerprint::Fingerprints;
use crate::fingerprint::asked::Asked;
use crate::fingerprint::chapter::Chapter;
use crate::fingerprint::choose_kind::OwnRates;
use crate::fingerprint::coded::unit_of;
use crate::fingerprint::keys::{KEY_BYTES_MAX, KeyBuffer, Pushed};
use core::ops::Range;

/// Keys of a sample and of a filter, at least.
const SAMPLE_MIN: usize = 512;
const KEYS_MIN: u64 = 1 << 14;
/// Codes must cost so much less: they take time.
const CLEARLY: f64 = 0.85;
/// Keys of a sample that are judged, about.
const KEYS_JUDGED: usize = 8192;
/// Costs that differ by less are about the same.
const ABOUT: f64 = 1.03;
/// Rates below this are good enough as they are.
const RATE_LEAST: f64 = 1e-3;
/// Keys of a block, and of a stretch that is judged together, like a group.
const BLOCK_KEYS: usize = 60;
const JUDGED: usize = 12 * BLOCK_KEYS;
/// Bits of a key beside coded cells, about: heads of blocks and groups, the directory.
const BESIDE_CELLS: f64 = 1.0;
/// The most hash bits that are judged.
const POINT_BITS_JUDGED: usize = 6;
/// Bits of codes that are judged.
const CODE_BITS_JUDGED: [u32; 9] = [32, 40, 48, 56, 64, 80, 96, 128, CODE_BITS_MAX];

/// How the keys of a part are best told apart.
#[derive(Default)]
pub(crate) struct Judged {
    /// None: they are best as they are.
    pub(crate) model: Option<TextModel>,
    /// Hash bits of each key.
    pub(crate) point_bits: usize,
    /// Whether hashes alone cost least: groups are asked whether they do in them, too.
    pub(crate) hashes: bool,
    /// Whether the sample was judged, and its keys are text.
    pub(crate) is_known: bool,
}

/// What a choice costs.
#[derive(Clone, Copy)]
struct Cost {
    point_bits: usize,
    wrong: f64,
}

impl Judged {
    /// For a filter of some `keys` keys like those of the sample, with `bits` bits for each.
    pub(crate) fn of(sample: &KeySample, keys: u64, bits: f64, asked: Asked) -> Judged {
        if sample.len() < SAMPLE_MIN || keys < KEYS_MIN {
            return Judged::default();
        }
        if !sample.is_text() {
            return Judged::default();
        }
        let mut model = TextModel::of(sample, keys);
        let as_is = Judgement::of(sample, None).rates(bits).of(0, asked);
        if as_is < RATE_LEAST {
            return Judged::default();
        }
        let with_model = bits - 8.0 * model.size_bytes() as f64 / keys as f64;
        let costs = CODE_BITS_JUDGED.map(|code_bits| {
            model.code_bits = code_bits;
            Judgement::of(sample, Some(&model)).rates(with_model).best(asked)
        });
        let least = costs.iter().map(|cost| cost.wrong).fold(f64::INFINITY, f64::min);
        let costs = costs.into_iter().zip(CODE_BITS_JUDGED);
        // Of those that are about as good, the longest: it is right where the sample is not.
        let best = costs.rev().find(|(cost, _)| cost.wrong <= ABOUT * least);
        let (cost, code_bits) = best.expect("one is the least");
        let hashes = asked.cost_of_hashes();
        if cost.wrong > CLEARLY * as_is.min(hashes) {
            return Judged { hashes: hashes < as_is, is_known: true, ..Judged::default() };
        }
        let model = Some(TextModel { code_bits, ..model });
        Judged { model, point_bits: cost.point_bits, hashes: false, is_known: true }
    }
}

/// Keys or codes, as they would be written.
#[derive(Default)]
struct Judgement {
    keys: KeyBuffer,
    /// Where blocks end, and the stretches that are judged together.
    cuts: Vec<usize>,
    stretches: Vec<Range<usize>>,
    /// Those that tie with the one before.
    ties: usize,
    /// Those that tie with any, and whether the last one does.
    tied: usize,
    is_tied: bool,
    /// Of all, if they have one length.
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
            // Of those that tie, each one would be taken for the others.
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

    /// The rates of cells that take so many bits for each key.
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
        // Beside hashes, cells must have room.
        let full = spare.iter().position(|&spare| spare < 0.0).unwrap_or(spare.len());
        cells[full.max(1)..].fill(f64::INFINITY);
        Rates { cells, tied: self.tied as f64 / all.max(1.0) }
    }
}

/// How often cells say "maybe" where nothing is.
struct Rates {
    /// For each number of hash bits.
    cells: [f64; POINT_BITS_JUDGED + 1],
    /// The share of keys that tie: they have one hash, too.
    tied: f64,
}

impl Rates {
    fn of(&self, point_bits: usize, asked: Asked) -> f64 {
        self.tied + (1.0 - self.tied) * asked.cost(self.cells[point_bits], point_bits)
    }

    /// The number of hash bits that costs least, and what it costs.
    fn best(&self, asked: Asked) -> Cost {
        let costs = (0..self.cells.len())
            .map(|point_bits| Cost { point_bits, wrong: self.of(point_bits, asked) });
        costs.min_by(|a, b| a.wrong.total_cmp(&b.wrong)).expect("there are choices")
    }
}
