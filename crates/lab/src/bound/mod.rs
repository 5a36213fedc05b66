//! What is possible for a set of keys: what cells cost that are coded by their entropy, and how
//! often they say "maybe" in vain. No filter is built.
//! ```text
//! keys ─┬─ seven of eight -> numbers in key order (places.rs) -> cells (cells.rs): bits
//!       └─ one of eight, drawn -> asked for as missing keys, and as absent prefixes -> rates
//! ```
//! Headers, directories and what newer runs add are left out: a real filter takes more.
//! Invariant: one seed, the same figures.

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

/// What to compute.
#[derive(Clone, Debug)]
pub struct BoundPlan {
    /// Where the keys come from.
    pub dist: Dist,
    /// How a file of keys is written.
    pub file_format: FileFormat,
    /// How many keys, before some are held out; None: 1,000,000, or all of a set.
    pub keys: Option<usize>,
    /// How many bytes before a byte tell its code; at most [`BoundPlan::ORDER_MAX`]. None: keys are
    /// numbers as they are.
    pub order: Option<usize>,
    /// The seed of keys, of those that are held out, and of those that the model is made from.
    pub seed: u64,
}

/// What is possible.
#[derive(Clone, Debug, Serialize)]
pub struct BoundReport {
    /// Where the keys come from.
    pub dist: String,
    /// How many keys have cells.
    pub keys: u64,
    /// How many are held out and asked for.
    pub asked: u64,
    /// The order of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<usize>,
    /// Contexts that the model tells apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<u64>,
    /// Neighbours that have one number, since that has no room for more of a key.
    pub ties: u64,
    /// The seed.
    pub seed: u64,
    /// Bits per key of the exponents of the gaps between keys, each for itself.
    pub exponent_bits: f64,
    /// The same, each given the one before.
    pub exponent_bits_in_context: f64,
    /// Bits per key with which every key is known exactly.
    pub exact_bits: f64,
    /// By s, ascending.
    pub cells: Vec<BoundRow>,
}

/// Cells of one fineness.
#[derive(Clone, Debug, Serialize)]
pub struct BoundRow {
    /// A key is known to 2^(m - s), m the lesser exponent of the gaps beside it.
    pub s: u32,
    /// Exponents and stored bits.
    pub bits_per_key: f64,
    /// Share of missing keys that are said to be there, perhaps.
    pub point_rate: f64,
    /// Share of prefixes that are, each the shortest of a missing key that no key begins with.
    /// None: keys are numbers of eight bytes, or there are no such prefixes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_rate: Option<f64>,
}

/// One key of so many is held out.
const HELD_OUT_EVERY: usize = 8;
/// Prefixes that are asked for.
const PREFIXES_MAX: usize = 20_000;
const FINENESS: [u32; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14];

impl BoundPlan {
    /// The most bytes that a model can look back.
    pub const ORDER_MAX: usize = 2;
}

/// Computes what is possible.
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
    let questions = Questions::of(&stored, &missing, &places);
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
        cells: FINENESS.iter().map(|s| questions.row(&cells, *s)).collect(),
    })
}

/// From a number to a number, both included.
type Ends = (u128, u128);

/// What is asked for, as numbers.
struct Questions {
    points: Vec<Ends>,
    prefixes: Vec<Ends>,
}

impl Questions {
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
        Questions { points, prefixes }
    }

    fn row(&self, cells: &Cells, s: u32) -> BoundRow {
        let rate = |asked: &[Ends]| {
            let vain = asked.iter().filter(|(first, last)| cells.may_meet(*first, *last, s));
            vain.count() as f64 / asked.len() as f64
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
