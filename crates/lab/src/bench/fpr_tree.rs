//! The trees whose filters `bench fpr` asks: the flush of each key, and the run of each flush.
//! ```text
//! T = 10, L = 3      level 2           level 1                  level 0
//! runs               one               nine of ten flushes      nine of one flush, and those owed
//! flushes            0 .. B            B .. B + 90              B + 90 .. B + 99 + owed; B = 100 Z
//! filter             base              overlay ------------------------------->
//! ```
//! Invariant: every flush is in exactly one run. Runs ascend with the age of their flushes.

use trommel::Policy;
use trommel::options::LevelRule;
use trommel_filters::{FlushNumber, Shape, Span};

use crate::keys::rng::random_order;

/// T, the size ratio of all trees.
pub(crate) const SIZE_RATIO: u32 = 10;

/// How full a tree is, between two merges into its last level.
#[derive(Clone, Debug)]
pub(crate) struct Filling<'p> {
    pub(crate) policy: &'p Policy,
    /// L, at least 1.
    pub(crate) levels: u32,
    /// Z, at least 1.
    pub(crate) fill: u32,
    /// The share of the flushes above the last level that are there, 0 to 1.
    pub(crate) since: f64,
    /// Flushes that came after the next merge into the last level became due.
    pub(crate) owed: u32,
}

impl Filling<'_> {
    fn last(&self) -> usize {
        self.levels as usize - 1
    }

    fn rule(&self, level: usize) -> LevelRule {
        self.policy.rule(SIZE_RATIO, level)
    }

    /// Flushes in one unit of a level.
    fn unit(&self, level: usize) -> u64 {
        (0..level).map(|above| self.rule(above).ratio).product()
    }

    /// Returns the number of all flushes.
    pub(crate) fn flushes(&self) -> u64 {
        let base = self.base_flushes();
        let newer = (self.flushes_in_shape() - base) as f64 * self.since;
        base + newer.round() as u64 + u64::from(self.owed)
    }

    fn flushes_in_shape(&self) -> u64 {
        (u64::from(self.fill) + 1) * self.unit(self.last()) - 1
    }

    /// Units of the oldest run: all of the last level. If that level may have several runs, it is
    /// the units that the last merge of all its runs found.
    fn base_units(&self) -> u64 {
        let newer = (u64::from(self.fill) - 1) % self.rule(self.last()).last_runs;
        u64::from(self.fill) - newer
    }

    /// Returns the number of flushes in the oldest run.
    pub(crate) fn base_flushes(&self) -> u64 {
        self.base_units() * self.unit(self.last())
    }

    /// Returns the shares of keys above the oldest run that a store expects when it builds the
    /// filter: now, and with a full last level. None: the store builds the filter of its first
    /// flush, and knows no share.
    pub(crate) fn overlay_shares(&self) -> Option<(f64, f64)> {
        let (base, all, rule) =
            (self.base_flushes(), self.flushes_in_shape(), self.rule(self.last()));
        let now = (all - base) as f64 / all as f64;
        (base > 1).then_some((now, rule.last_runs as f64 / rule.ratio as f64))
    }

    /// Units that the runs of a level, other than the oldest run, have room for.
    fn room(&self, level: usize) -> u64 {
        match level {
            0 => u64::MAX,
            _ if level == self.last() => u64::from(self.fill) - self.base_units(),
            _ => self.rule(level).ratio - 1,
        }
    }
}

/// Returns the runs of all flushes below `next`, newest first in each level. Requires: `next` is
/// not below the flushes of the oldest run.
pub(crate) fn runs(filling: &Filling<'_>, next: u64) -> Shape {
    let run = |from: u64, flushes: u64| {
        let span = Span::new(FlushNumber(from), FlushNumber(from + flushes));
        span.expect("a run has flushes")
    };
    let mut end = filling.base_flushes();
    let mut levels = vec![Vec::new(); filling.levels as usize];
    levels[filling.last()].push(run(0, end));
    for level in (0..levels.len()).rev() {
        let unit = filling.unit(level);
        // Apart from the oldest run, runs of the last level have one unit each.
        let most = if level == filling.last() { 1 } else { filling.rule(level).run_units };
        let mut left = ((next - end) / unit).min(filling.room(level));
        while left > 0 {
            let units = left.min(most);
            levels[level].insert(0, run(end, units * unit));
            (end, left) = (end + units * unit, left - units);
        }
    }
    Shape { levels }
}

/// A tree with a filling, to whose flushes keys are dealt.
pub(crate) struct FilledTree<'p> {
    pub(crate) filling: Filling<'p>,
    pub(crate) base_end: u64,
    /// The flush of each key, by the key's place.
    pub(crate) flush_of: Vec<u16>,
    /// The places of the keys of each flush from `base_end` on, ascending.
    pub(crate) newer: Vec<Vec<u32>>,
    pub(crate) shape: Shape,
}

impl<'p> FilledTree<'p> {
    /// Deals the keys to flushes of equal size, at random.
    pub(crate) fn deal(key_count: usize, filling: Filling<'p>, seed: u64) -> Self {
        let (flushes, base_end) = (filling.flushes(), filling.base_flushes());
        let mut flush_of = vec![0u16; key_count];
        for (turn, place) in random_order(key_count, seed ^ 2).into_iter().enumerate() {
            flush_of[place as usize] = (turn as u64 * flushes / key_count as u64) as u16;
        }
        let mut newer = vec![Vec::new(); (flushes - base_end) as usize];
        for (place, flush) in (0..).zip(&flush_of) {
            if let Some(number) = u64::from(*flush).checked_sub(base_end) {
                newer[number as usize].push(place);
            }
        }
        let shape = runs(&filling, flushes);
        FilledTree { filling, base_end, flush_of, newer, shape }
    }

    pub(crate) fn flush_of(&self, place: usize) -> FlushNumber {
        FlushNumber(u64::from(self.flush_of[place]))
    }
}
