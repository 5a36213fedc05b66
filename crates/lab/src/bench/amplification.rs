//! Theoretical write amplification of any policy: simulated over a number of flushes, and by
//! Dostoevsky's formula.
//! ```text
//! exact        the odometer of units: each merge of u flushes adds u; no entry replaces another
//!              (partial merges: `partial_writes`)
//! dostoevsky   inner levels (T - 1) / (K + 1) each, the last (T - 1) / (Z + 1): a tree for ever
//! ```
//! Invariant: the model never looks at a store; a store's writes are compared with it.

use trommel::Policy;
use trommel::options::{Granularity, LevelRule};

use crate::bench::partial_writes::partial_writes;

/// How often an entry is written into tables, the flush included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedWrites {
    /// Simulated over the flushes and the merges that become due.
    pub exact: f64,
    /// By the formula, for the levels that these flushes make.
    pub dostoevsky: f64,
}

/// Computes the writes for `flushes` flushes of equal size. None: there are no flushes.
pub fn expected_writes(
    policy: &Policy,
    granularity: Granularity,
    size_ratio: u32,
    flushes: u64,
) -> Option<ExpectedWrites> {
    let mut tree = SimulatedTree { policy, size_ratio, levels: vec![Vec::new()], written: 0 };
    (0..flushes).for_each(|_| tree.flush());
    let partial = match granularity {
        Granularity::Partial => partial_writes(policy, size_ratio, flushes),
        _ => None,
    };
    (flushes > 0).then(|| ExpectedWrites {
        exact: partial.unwrap_or(tree.written as f64 / flushes as f64),
        dostoevsky: dostoevsky(policy, size_ratio, tree.levels.len()),
    })
}

fn dostoevsky(policy: &Policy, size_ratio: u32, levels: usize) -> f64 {
    let of_level = |level: usize| {
        let rule = policy.rule(size_ratio, level);
        let runs = if level + 1 == levels { rule.last_runs } else { rule.inner_runs };
        (rule.ratio - 1) as f64 / (runs + 1) as f64
    };
    (0..levels).map(of_level).sum()
}

/// Levels of runs, the newest run last. A run is its number of flushes.
struct SimulatedTree<'p> {
    policy: &'p Policy,
    size_ratio: u32,
    levels: Vec<Vec<u64>>,
    /// Flushes written so far; rewriting a flush counts again.
    written: u64,
}

impl SimulatedTree<'_> {
    fn rule(&self, level: usize) -> LevelRule {
        self.policy.rule(self.size_ratio, level)
    }

    /// Returns the flushes in a unit of a level.
    fn unit(&self, level: usize) -> u64 {
        (0..level).map(|above| self.rule(above).ratio).product()
    }

    fn units(&self, level: usize) -> u64 {
        let flushes: u64 = self.levels[level].iter().sum();
        flushes / self.unit(level)
    }

    fn flush(&mut self) {
        self.levels[0].push(1);
        self.written += 1;
        if self.levels.len() == 1 {
            if self.levels[0].len() as u64 > self.rule(0).last_runs {
                self.merge_all();
            }
        } else if self.units(0) >= self.rule(0).ratio {
            self.carry();
        } else if let [.., joined, newest] = self.levels[0][..]
            && joined + newest <= self.rule(0).run_units
        {
            let older = self.levels[0].len() - 2;
            self.levels[0].truncate(older);
            self.put(0, joined + newest);
        }
    }

    fn carry(&mut self) {
        let last = self.levels.len() - 1;
        let mut target = 1;
        while target < last && self.units(target) + 1 >= self.rule(target).ratio {
            target += 1;
        }
        if target == last && self.levels[last].len() as u64 >= self.rule(last).last_runs {
            return self.merge_all();
        }
        let mut merged: u64 =
            self.levels[..target].iter_mut().flat_map(|runs| runs.drain(..)).sum();
        let room = self.rule(target).run_units * self.unit(target);
        if target < last && self.levels[target].last().is_some_and(|&newest| newest < room) {
            merged += self.levels[target].pop().unwrap_or(0);
        }
        self.put(target, merged);
    }

    fn merge_all(&mut self) {
        let merged: u64 = self.levels.iter().flatten().sum();
        let mut level = 0;
        while merged >= self.unit(level + 1) {
            level += 1;
        }
        self.levels = vec![Vec::new(); level + 1];
        self.put(level, merged);
    }

    fn put(&mut self, level: usize, flushes: u64) {
        self.levels[level].push(flushes);
        self.written += flushes;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use trommel::Environment;
    use trommel::storage::Memory;
    use trommel::{Background, Db, Options, SyncPolicy};

    use super::*;

    fn presets() -> impl Iterator<Item = (&'static str, Policy)> {
        let names = Policy::NAMES.into_iter().chain(["levelled-from:2"]);
        names.map(|name| (name, Policy::named(name).expect("a preset")))
    }

    /// Returns the bytes of tables written per byte flushed, in a real store.
    fn measured(policy: &Policy, granularity: Granularity, size_ratio: u32, flushes: u64) -> f64 {
        let options = Options::new()
            .granularity(granularity)
            .table_bytes(16 << 10)
            .partition_bytes(1 << 20)
            .size_ratio(size_ratio)
            .policy(policy.clone())
            .compression(false)
            .sync(SyncPolicy::Never)
            .background(Background::Stepped);
        let storage = Arc::new(Memory::new());
        let environment = Environment::new().storage(storage);
        let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
        for number in 0..flushes * 100 {
            let key = crate::keys::rng::scramble(number).to_be_bytes();
            db.put(key, [7; 100]).expect("puts");
            if number % 100 == 99 {
                db.flush().expect("flushes");
                db.settle().expect("merges");
            }
        }
        let stats = db.stats().expect("open");
        assert_eq!(stats.flushes, flushes);
        (stats.bytes_flushed + stats.bytes_merged) as f64 / stats.bytes_flushed as f64
    }

    #[test] // The issue asks for 25 %; what is left is what tables have beside entries.
    fn stores_write_what_the_closed_form_says() {
        for (name, policy) in presets() {
            for (size_ratio, flushes) in [(4, 255), (5, 130), (10, 399)] {
                let full = Granularity::Full;
                let expected = expected_writes(&policy, full, size_ratio, flushes);
                let expected = expected.expect("flushes");
                let measured = measured(&policy, full, size_ratio, flushes);
                let case = format!("{name}, T = {size_ratio}: {measured}, {expected:?}");
                assert!((0.9..1.05).contains(&(measured / expected.exact)), "{case}");
                assert!((0.7..1.4).contains(&(expected.exact / expected.dostoevsky)), "{case}");
            }
        }
    }

    #[test]
    fn partial_merges_write_what_their_closed_form_says() {
        for name in ["leveling", "rocksdb"] {
            let policy = Policy::named(name).expect("a preset");
            for (size_ratio, flushes) in [(4, 255), (4, 900), (10, 600)] {
                let partial = Granularity::Partial;
                let expected = expected_writes(&policy, partial, size_ratio, flushes);
                let expected = expected.expect("flushes").exact;
                let measured = measured(&policy, partial, size_ratio, flushes);
                let case = format!("{name}, T = {size_ratio}, {flushes}: {measured}, {expected}");
                assert!((0.75..1.25).contains(&(measured / expected)), "{case}");
            }
        }
        let of = |granularity| expected_writes(&Policy::default(), granularity, 10, 999);
        assert_eq!(of(Granularity::Partial), of(Granularity::Full), "its levels have many runs");
    }

    #[test] // Dostoevsky, as Chucky's section 2 tells it.
    fn a_tree_of_three_levels_by_hand() {
        let of = |name: &str| {
            let policy = Policy::named(name).expect("a preset");
            let expected = expected_writes(&policy, Granularity::Full, 10, 999).expect("flushes");
            (expected.dostoevsky, expected.exact)
        };
        let (formula, exact) = of("lazy-leveling");
        assert_eq!(formula, 0.9 + 0.9 + 4.5);
        // 999 flushes, 900 in nine or ninety runs of level 1; level 2 was written as 1, 2, ... 9
        // hundreds; and the first ninety in ones and tens.
        assert!((6.0..7.0).contains(&exact), "{exact}");
        assert_eq!(of("tiering").0, 3.0 * 0.9);
        assert_eq!(of("leveling").0, 3.0 * 4.5);
        assert!(of("tiering").1 < exact && exact < of("leveling").1);
        assert_eq!(expected_writes(&Policy::default(), Granularity::Full, 10, 0), None);
    }
}
