//! Whether a model pays: what codes promise on the sample, beside what keys do.
//! ```text
//! stretch of the sample -> views of keys  -> rate of cells within the bits
//!                       -> views of codes -> rate of cells within the bits
//! ```
//! Invariant: without a model, keys stay as they are.

use super::code::Code;
use super::model::TextModel;
use super::sample::KeySample;
use crate::base::key_list::KeyList;
use crate::bits::key_bits::{bits_at, common_bits};
use crate::fingerprint::choose_kind::{OwnRates, uneven_gap_bits};

/// Keys of a sample and of a filter, at least.
const SAMPLE_MIN: usize = 512;
const KEYS_MIN: u64 = 1 << 14;
/// Codes must err so much less often: they take time.
const CLEARLY: f64 = 0.6;
/// Rates below this are good enough as they are.
const RATE_LEAST: f64 = 1e-3;
/// Keys of a stretch that are judged together, like a group.
const JUDGED: usize = 256;
/// Bits that a key takes beside what its neighbours ask for and its spare bits, about.
const BESIDE: f64 = 5.0;

impl TextModel {
    /// A model for a filter of some `keys` keys like those of the sample, with `bits` bits for
    /// each. None: it would not pay, or the sample is too small.
    pub fn learn(sample: &KeySample, keys: u64, bits: f64) -> Option<TextModel> {
        if sample.len() < SAMPLE_MIN || keys < KEYS_MIN {
            return None;
        }
        let model = TextModel::of(sample, keys);
        let mut rates = [Rate::default(), Rate::default()];
        let mut code = Code::new();
        for stretch in sample.stretches() {
            for first in stretch.clone().step_by(JUDGED) {
                let places = first..(first + JUDGED).min(stretch.end);
                let keys = places.map(|at| sample.keys().get(at));
                let mut coded = KeyList::default();
                keys.clone().for_each(|key| coded.push(model.encode(key, &mut code)));
                rates[0].add(keys, bits);
                rates[1].add((0..coded.len()).map(|at| coded.get(at)), bits);
            }
        }
        let [as_is, coded] = rates.map(|rate| rate.mean());
        (as_is > RATE_LEAST && coded < CLEARLY * as_is).then_some(model)
    }
}

/// The rate of some stretches.
#[derive(Clone, Copy, Default)]
struct Rate {
    sum: f64,
    keys: f64,
}

impl Rate {
    /// Adds a stretch of keys, which ascend; ties are one.
    fn add<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]> + Clone, bits: f64) {
        let pairs = keys.clone().zip(keys.clone().skip(1));
        let shared = pairs.filter_map(|(a, b)| common_bits(a, b));
        let Some(prefix_bits) = shared.min() else { return };
        let views: Vec<u64> = keys.map(|key| bits_at(key, prefix_bits)).collect();
        let count = views.len() as f64;
        let spare = bits - BESIDE - uneven_gap_bits(&views) as f64 / count;
        let rates = OwnRates::new(&views, spare);
        if rates.is_known() {
            self.sum += rates.near(spare) * count;
            self.keys += count;
        }
    }

    fn mean(self) -> f64 {
        self.sum / self.keys.max(1.0)
    }
}
