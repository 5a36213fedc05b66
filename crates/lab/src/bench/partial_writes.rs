//! A model of what partial merges write. Levels are amounts of flushes, keys are spread evenly, and
//! tables are small.
//! ```text
//! level 0    T flushes wait                  -> merged with all of level 1
//! level l    full: the excess d              -> rewrites d / size of the next level, and itself
//! below it   nothing                         -> the tables only move
//! oldest     as large as it is               -> its level follows
//! ```
//! Real trees differ in two ways. They choose tables with little overlap, which saves writes. They
//! rewrite a table whole if any part of it overlaps, which costs writes. Invariant: the model never
//! looks at a store; a store's writes are compared with it.

use trommel::Policy;
use trommel::options::LevelRule;

/// Returns how often each flush is written. None: a level above the last has several runs, and so
/// is not emptied table by table.
pub(crate) fn partial_writes(policy: &Policy, size_ratio: u32, flushes: u64) -> Option<f64> {
    let rule = |level| policy.rule(size_ratio, level);
    let levels = 1..=PartialTree::last_level(&rule, flushes as f64);
    let is_levelled = |level| rule(level).inner_runs == 1 && rule(level).last_runs == 1;
    if flushes == 0 || !levels.into_iter().all(is_levelled) {
        return None;
    }
    let mut tree =
        PartialTree { rule: &rule, young: 0, inner: Vec::new(), oldest: 0.0, written: 0.0 };
    (0..flushes).for_each(|_| tree.flush());
    Some(tree.written / flushes as f64)
}

/// The sizes of a tree's levels, in flushes.
struct PartialTree<'r> {
    rule: &'r dyn Fn(usize) -> LevelRule,
    /// Level 0, without the oldest run.
    young: u64,
    /// Level 1 and so on, without the last level.
    inner: Vec<f64>,
    /// The oldest run.
    oldest: f64,
    written: f64,
}

impl PartialTree<'_> {
    /// Returns the flushes in a unit of a level.
    fn unit(rule: &dyn Fn(usize) -> LevelRule, level: usize) -> f64 {
        (0..level).map(|above| rule(above).ratio as f64).product()
    }

    /// Returns the level of a run of `flushes` flushes: the first level that is not full.
    fn last_level(rule: &dyn Fn(usize) -> LevelRule, flushes: f64) -> usize {
        let is_full =
            |level: usize| flushes >= (rule(level).ratio as f64 - 0.5) * Self::unit(rule, level);
        (0..60).find(|&level| !is_full(level)).unwrap_or(60)
    }

    fn flush(&mut self) {
        self.written += 1.0;
        if self.oldest == 0.0 {
            self.oldest = 1.0;
            return;
        }
        self.young += 1;
        let last = Self::last_level(self.rule, self.oldest);
        if last == 0 || self.young >= (self.rule)(0).ratio {
            self.carry(last);
        } else if (self.rule)(0).run_units > 1 && self.young > 1 {
            // Level 0 has one run, and every flush merges into it.
            self.written += self.young as f64;
        }
        let last = Self::last_level(self.rule, self.oldest);
        self.inner.resize(last.saturating_sub(1).max(self.inner.len()), 0.0);
        while let Some(level) = self.fullest() {
            self.push(level);
        }
    }

    fn carry(&mut self, last: usize) {
        let block = std::mem::take(&mut self.young) as f64;
        let into = if last <= 1 { &mut self.oldest } else { &mut self.inner[0] };
        *into += block;
        self.written += *into;
    }

    /// Returns the level that exceeds its size by the largest factor.
    fn fullest(&self) -> Option<usize> {
        let fullness = |level: usize| {
            let room = ((self.rule)(level).ratio - 1) as f64 * Self::unit(self.rule, level);
            self.inner[level - 1] / room
        };
        let levels = (1..=self.inner.len()).map(|level| (level, fullness(level)));
        let too_large = levels.filter(|(_, fullness)| *fullness > 1.0 + 1e-9);
        too_large.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(level, _)| level)
    }

    /// Moves the excess of a level into the next level.
    fn push(&mut self, level: usize) {
        let room = ((self.rule)(level).ratio - 1) as f64 * Self::unit(self.rule, level);
        let size = self.inner[level - 1];
        let moved = size - room;
        self.inner[level - 1] = room;
        let below = self.inner.get_mut(level).unwrap_or(&mut self.oldest);
        if *below > 0.0 {
            self.written += moved + *below * moved / size;
        }
        *below += moved;
    }
}
