//! A bound for a set of keys: the size of entropy-coded cells, and their false positive rate. No
//! filter is built.
//! ```text
//! keys ─┬─ seven of eight -> numbers in key order (places.rs) -> cells (cells.rs): bits
//!       └─ one of eight, drawn -> asked for as missing keys, and as absent prefixes -> rates
//! ```
//! A real filter takes more: headers, directories and the entries of newer runs are left out.
//! Invariant: a seed always gives the same figures.

mod cells;
mod order_model;
mod places;

use serde::Serialize;

use crate::bound::cells::Cells;
use crate::bound::places::Places;
use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::{KeySet, split_at_random};
use crate::keys::rng::{Rng, scramble};
use crate::questions::unanswered::{PrefixEnd, shortest_absent_prefix};

/// What to compute the bound for.
#[derive(Clone, Debug)]
pub struct BoundPlan {
    /// Where the keys come from.
    pub dist: Dist,
    /// The format of a file of keys.
    pub file_format: FileFormat,
    /// How many keys, held-out ones included; None: 1,000,000, or all of a set.
    pub keys: Option<usize>,
    /// The order of the model: how many previous bytes a byte's code depends on, at most
    /// [`BoundPlan::ORDER_MAX`]. None: keys are numbers as they are.
    pub order: Option<usize>,
    /// The seed of the keys, of the held-out keys, and of the model's sample.
    pub seed: u64,
}

/// The bound for a set of keys.
#[derive(Clone, Debug, Serialize)]
pub struct BoundReport {
    /// Where the keys come from.
    pub dist: String,
    /// How many keys have cells.
    pub keys: u64,
    /// How many keys are held out, to be asked for.
    pub asked: u64,
    /// The order of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<usize>,
    /// Contexts that the model distinguishes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<u64>,
    /// Neighbouring keys with equal numbers, since a number has no room for more of a key.
    pub ties: u64,
    /// The seed.
    pub seed: u64,
    /// Bits per key of the exponents of gaps between keys, each coded alone.
    pub exponent_bits: f64,
    /// Bits per key of the exponents, each coded given the previous one.
    pub exponent_bits_in_context: f64,
    /// Bits per key with which every key is known exactly.
    pub exact_bits: f64,
    /// Cells by s, ascending.
    pub cells: Vec<BoundRow>,
}

/// Cells of one fineness.
#[derive(Clone, Debug, Serialize)]
pub struct BoundRow {
    /// The fineness: a key is known to 2^(m - s), where m is the lesser exponent of the gaps beside
    /// it.
    pub s: u32,
    /// Bits of exponents and of multiples, per key.
    pub bits_per_key: f64,
    /// The share of absent keys for which cells say "maybe".
    pub point_rate: f64,
    /// The share of absent prefixes for which cells say "maybe". Each is the shortest prefix of an
    /// absent key that no key begins with. None: keys are numbers of eight bytes, or there are no
    /// such prefixes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_rate: Option<f64>,
}

/// One key in this many is held out.
const HELD_OUT_EVERY: usize = 8;
/// The most prefixes that are asked for.
const PREFIXES_MAX: usize = 20_000;
const FINENESS: [u32; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14];

impl BoundPlan {
    /// The most previous bytes that a model can use.
    pub const ORDER_MAX: usize = 2;
}

/// Computes the bound.
pub fn bound(plan: &BoundPlan) -> Result<BoundReport> {
    if let Some(order) = plan.order.filter(|order| *order > BoundPlan::ORDER_MAX) {
        let most = BoundPlan::ORDER_MAX;
        return Err(LabError::Plan(format!("--order {order}: must be 0 to {most}")));
    }
    let keys = KeySet::new(&plan.dist, plan.file_format, plan.keys, plan.seed)?;
    let (dist, whole) = (keys.dist().to_string(), keys.with_held_out());
    let mut rng = Rng::new(scramble(plan.seed ^ 1));
    let whole = match plan.keys {
        Some(count) if count < whole.len() => split_at_random(&whole, count, &mut rng).1,
        _ => whole,
    };
    let (stored, missing) = split_at_random(&whole, whole.len() / HELD_OUT_EVERY, &mut rng);
    if missing.is_empty() {
        let problem = format!("{dist}: at least {HELD_OUT_EVERY} keys are needed");
        return Err(LabError::Plan(problem));
    }
    let places = Places::of(&stored, plan.order, &mut rng);
    let queries = PlacedQueries::of(&stored, &missing, &places);
    let cells = Cells::new(stored.iter().map(|key| places.of_key(key)).collect());
    Ok(BoundReport {
        dist,
        keys: stored.len() as u64,
        asked: missing.len() as u64,
        order: plan.order,
        contexts: places.contexts(),
        ties: cells.ties(),
        seed: plan.seed,
        exponent_bits: cells.exponent_bits(),
        exponent_bits_in_context: cells.exponent_bits_in_context(),
        exact_bits: cells.exact_bits(),
        cells: FINENESS.iter().map(|s| queries.row(&cells, *s)).collect(),
    })
}

/// The first and the last number of a range, both included.
type Ends = (u128, u128);

/// The questions as ranges of numbers.
struct PlacedQueries {
    points: Vec<Ends>,
    prefixes: Vec<Ends>,
}

impl PlacedQueries {
    fn of(stored: &SortedKeys, missing: &SortedKeys, places: &Places) -> Self {
        let point = |key: &[u8]| {
            let place = places.of_key(key);
            (place, place)
        };
        let points = missing.iter().map(point).collect();
        let prefixes = match PrefixEnd::of(stored) {
            PrefixEnd::LastNumber => Vec::new(),
            PrefixEnd::Above => {
                let every = missing.len().div_ceil(PREFIXES_MAX);
                let some = missing.iter().step_by(every);
                let absent = some.filter_map(|key| shortest_absent_prefix(stored, key));
                absent.map(|prefix| places.of_prefix(prefix)).collect()
            }
        };
        PlacedQueries { points, prefixes }
    }

    fn row(&self, cells: &Cells, s: u32) -> BoundRow {
        let rate = |ranges: &[Ends]| {
            let vain = ranges.iter().filter(|(first, last)| cells.may_meet(*first, *last, s));
            vain.count() as f64 / ranges.len() as f64
        };
        BoundRow {
            s,
            bits_per_key: cells.bits(s),
            point_rate: rate(&self.points),
            prefix_rate: (!self.prefixes.is_empty()).then(|| rate(&self.prefixes)),
        }
    }
}

#[cfg(test)]
mod tests;
