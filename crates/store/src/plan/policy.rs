//! When runs merge: the policy of a tree, as plain data.
//! ```text
//!                       level 0     inner levels    last level
//! leveling              1 run       1 run           1 run       least to read, most to write
//! lazy-leveling         T - 1       T - 1           1 run
//! tiering               T - 1       T - 1           T - 1       least to write, most to read
//! rocksdb   (T_0 = 4)   T - 1       1 run           1 run
//! levelled-from:2       T - 1       T - 1 in level 1,       of four levels, two are levelled
//!                                   1 run from level 2 on
//! ```
//! A level counts *units*: a unit is one run of the level above, when that level is full. Level l
//! holds 0 to T_l - 1 units, in at most K_l runs (Z in the last level). The next unit takes the
//! level's runs along into the next level and leaves it empty: a carry of an odometer, whatever K
//! is. Run limits only say how many units one run holds.
//!
//! Invariant: a schedule depends on the policy alone, never on time. So the layout alone determines
//! which merge is due.

/// When runs merge: the value of [`Options::policy`](crate::Options::policy). Let T be
/// [`Options::size_ratio`](crate::Options::size_ratio), K `inner_runs` and Z `last_runs`. A key is
/// written about (T - 1) / (K + 1) times in each inner level, and about (T - 1) / (Z + 1) times in
/// the last one. A store may be opened with another policy at any time: each level adopts it when
/// the level is next emptied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// T of the first levels, from level 0 on: the number of units that empties a level into the
    /// next one, 2 to 255 each. Deeper levels have `size_ratio`. Empty: all levels have it.
    pub ratios: Vec<u32>,
    /// K: the most runs of each level above the last, from level 0 on; the last number holds for
    /// all deeper levels. At least 1; more than T - 1 means T - 1. More: cheaper writes, more runs
    /// (which a guard makes cheap to have).
    pub inner_runs: Vec<u32>,
    /// Z: the most runs of the last level, with the same bounds as `inner_runs`. More: cheaper
    /// writes, more space for replaced entries. Only the oldest run is in a global range filter's
    /// base, the filter's cheapest part.
    pub last_runs: u32,
    /// Whether levels whose runs hold several units count units by entries. Where entries replace
    /// each other, such a level waits for up to twice as many merges, until it has its planned
    /// size.
    pub delay_merges: bool,
}

/// A run limit that does not limit: each unit is a run.
pub(crate) const EACH: u32 = u32::MAX;

/// Names of policies, by the first level that has one run.
const LEVELLED_FROM: [&str; 9] = [
    "levelled-from:0",
    "levelled-from:1",
    "levelled-from:2",
    "levelled-from:3",
    "levelled-from:4",
    "levelled-from:5",
    "levelled-from:6",
    "levelled-from:7",
    "levelled-from:8",
];

impl Default for Policy {
    fn default() -> Self {
        Policy::lazy_leveling()
    }
}

impl Policy {
    /// The names of the presets.
    pub const NAMES: [&'static str; 4] = ["lazy-leveling", "leveling", "tiering", "rocksdb"];

    fn of(ratios: &[u32], inner_runs: &[u32], last_runs: u32) -> Policy {
        let (ratios, inner_runs) = (ratios.to_vec(), inner_runs.to_vec());
        Policy { ratios, inner_runs, last_runs, delay_merges: false }
    }

    /// The default: many runs in each level but the last, which has one.
    pub fn lazy_leveling() -> Policy {
        Policy::of(&[], &[EACH], 1)
    }

    /// One run in each level.
    pub fn leveling() -> Policy {
        Policy::of(&[], &[1], 1)
    }

    /// Many runs in each level.
    pub fn tiering() -> Policy {
        Policy::of(&[], &[EACH], EACH)
    }

    /// Four flushed runs merge into level 1. Level 1 and all deeper levels have one run.
    pub fn rocksdb() -> Policy {
        Policy::of(&[4], &[EACH, 1], 1)
    }

    /// Many runs in each level above `level`, one run in it and in all deeper levels. So of L
    /// levels, L - `level` are levelled. Level 0 means leveling.
    pub fn levelled_from(level: usize) -> Policy {
        let inner_runs = std::iter::repeat_n(EACH, level).chain([1]).collect::<Vec<_>>();
        Policy::of(&[], &inner_runs, 1)
    }

    /// Returns this policy with these [`ratios`](Policy::ratios).
    #[must_use]
    pub fn ratios(self, ratios: Vec<u32>) -> Policy {
        Policy { ratios, ..self }
    }

    /// Returns this policy with these [`inner_runs`](Policy::inner_runs).
    #[must_use]
    pub fn inner_runs(self, inner_runs: Vec<u32>) -> Policy {
        Policy { inner_runs, ..self }
    }

    /// Returns this policy with these [`last_runs`](Policy::last_runs).
    #[must_use]
    pub fn last_runs(self, last_runs: u32) -> Policy {
        Policy { last_runs, ..self }
    }

    /// Returns this policy with or without [`delay_merges`](Policy::delay_merges).
    #[must_use]
    pub fn delay_merges(self, delay_merges: bool) -> Policy {
        Policy { delay_merges, ..self }
    }

    /// Returns the preset of this name, or `levelled-from:LEVEL` for levels 0 to 8. None: no policy
    /// has this name.
    pub fn named(name: &str) -> Option<Policy> {
        Self::known().find(|(known, _)| *known == name).map(|(_, policy)| policy)
    }

    /// Returns every policy that has a name.
    pub(crate) fn known() -> impl Iterator<Item = (&'static str, Policy)> {
        let presets = [Self::lazy_leveling(), Self::leveling(), Self::tiering(), Self::rocksdb()];
        let levelled = (0..LEVELLED_FROM.len()).map(Self::levelled_from);
        Self::NAMES.into_iter().chain(LEVELLED_FROM).zip(presets.into_iter().chain(levelled))
    }

    /// Returns the name of the policy with these run limits, or `custom`. Of several, the policy
    /// with the same ratios counts.
    pub fn name(&self) -> &'static str {
        let is_alike = |(_, policy): &(&str, Policy)| {
            policy.inner_runs == self.inner_runs && policy.last_runs == self.last_runs
        };
        let known: Vec<_> = Self::known().filter(is_alike).collect();
        let exact = known.iter().find(|(_, policy)| policy.ratios == self.ratios);
        exact.or(known.first()).map_or("custom", |(name, _)| name)
    }

    /// Returns the numbers of one level. `size_ratio` is the ratio of levels beyond `ratios`.
    pub fn rule(&self, size_ratio: u32, level: usize) -> LevelRule {
        let schedule = Schedule { policy: self, size_ratio };
        LevelRule {
            ratio: schedule.ratio(level) as u64,
            inner_runs: schedule.inner_runs(level) as u64,
            run_units: schedule.run_units(level) as u64,
            last_runs: schedule.last_runs(level) as u64,
        }
    }

    /// Returns the first invalid option, and why it is invalid.
    pub(crate) fn problem(&self) -> Option<(&'static str, &'static str)> {
        let ratios = self.ratios.iter().all(|ratio| (2..=255).contains(ratio));
        let runs = !self.inner_runs.is_empty() && self.inner_runs.iter().all(|&runs| runs > 0);
        let rules = [
            ("policy.ratios", ratios, "must be 2 to 255 each"),
            ("policy.ratios", self.ratios.len() <= 32, "must be at most 32"),
            ("policy.inner_runs", runs, "must be at least one number, each at least 1"),
            ("policy.inner_runs", self.inner_runs.len() <= 32, "must be at most 32"),
            ("policy.last_runs", self.last_runs > 0, "must be at least 1"),
        ];
        let wrong = rules.into_iter().find(|(_, holds, _)| !holds);
        wrong.map(|(option, _, problem)| (option, problem))
    }
}

/// The numbers of a policy for one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelRule {
    /// T: the units that empty it.
    pub ratio: u64,
    /// K: the most runs of the level while a level lies below it.
    pub inner_runs: u64,
    /// The most units of such a run.
    pub run_units: u64,
    /// Z: the most runs of the level as the last one.
    pub last_runs: u64,
}

/// A policy together with the ratio of its deeper levels. It gives the numbers of every level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) size_ratio: u32,
}

impl Schedule<'_> {
    /// T: the units that empty a level.
    pub(crate) fn ratio(&self, level: usize) -> usize {
        self.policy.ratios.get(level).copied().unwrap_or(self.size_ratio).max(2) as usize
    }

    /// K: the most runs of a level above the last.
    pub(crate) fn inner_runs(&self, level: usize) -> usize {
        let limits = &self.policy.inner_runs;
        let limit = limits.get(level).or(limits.last()).copied().unwrap_or(EACH);
        (limit as usize).clamp(1, self.ratio(level) - 1)
    }

    /// Z: the most runs of the last level, if that is this one.
    pub(crate) fn last_runs(&self, level: usize) -> usize {
        (self.policy.last_runs as usize).clamp(1, self.ratio(level) - 1)
    }

    /// The most units of one run of a level above the last.
    pub(crate) fn run_units(&self, level: usize) -> usize {
        (self.ratio(level) - 1).div_ceil(self.inner_runs(level))
    }

    /// Whether runs of a level above the last take in what merges bring into the level.
    #[cfg(test)]
    pub(crate) fn joins(&self, level: usize) -> bool {
        self.run_units(level) > 1
    }

    /// Whether a level has at most one run. `last` is the last level.
    pub(crate) fn is_levelled(&self, level: usize, last: usize) -> bool {
        let runs = if level == last { self.last_runs(level) } else { self.inner_runs(level) };
        runs == 1
    }

    /// Returns the number of flushes that a level above the last has room for.
    pub(crate) fn level_flushes(&self, level: usize) -> f64 {
        (self.ratio(level) - 1) as f64 * self.unit_flushes(level)
    }

    /// Returns the number of flushes in one unit of a level.
    pub(crate) fn unit_flushes(&self, level: usize) -> f64 {
        (0..level).map(|above| self.ratio(above) as f64).product()
    }

    /// Returns the number of units in a run of this many flushes.
    pub(crate) fn units_of(&self, level: usize, flushes: u64) -> usize {
        ((flushes as f64 / self.unit_flushes(level)).round() as usize).max(1)
    }

    /// Returns the number of flushes above the oldest run just before its merge, if it is in this
    /// level.
    pub(crate) fn overlay_flushes(&self, level: usize) -> f64 {
        self.last_runs(level) as f64 * self.unit_flushes(level) - 1.0
    }

    /// Returns the share of entries above the oldest run just before its merge, if it is in this
    /// level and fills it.
    pub(crate) fn full_overlay_share(&self, level: usize) -> f64 {
        self.last_runs(level) as f64 / self.ratio(level) as f64
    }

    /// Returns the level of an oldest run of this many flushes: the lowest that is not yet full.
    /// The count is rounded, since entries that replace each other make a level slightly smaller
    /// than its flushes.
    pub(crate) fn level_holding(&self, flushes: f64) -> usize {
        let mut level = 0;
        while level < 60 && flushes >= (self.ratio(level) as f64 - 0.5) * self.unit_flushes(level) {
            level += 1;
        }
        level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_names_and_make_sense() {
        for name in Policy::NAMES {
            let policy = Policy::named(name).expect("a preset");
            assert_eq!((policy.name(), policy.problem()), (name, None));
        }
        for level in 1..=8 {
            let name = format!("levelled-from:{level}");
            let policy = Policy::named(&name).expect("is known");
            assert_eq!((policy.name(), policy.problem()), (&*name, None));
            let limits = [0, level - 1, level, level + 5].map(|at| policy.rule(4, at).inner_runs);
            assert_eq!(limits, [3, 3, 1, 1], "{name}");
        }
        assert_eq!(Policy::levelled_from(0), Policy::leveling());
        assert_eq!(Policy { ratios: vec![5], ..Policy::rocksdb() }.name(), "rocksdb");
        assert_eq!(Policy::named("levelled-from:9"), None);
        assert_eq!(Policy::named("levelling"), None);
        assert_eq!(Policy { last_runs: 3, ..Policy::leveling() }.name(), "custom");
    }

    #[test]
    fn nonsense_is_named() {
        let sound = Policy::default();
        for (wrong, option) in [
            (Policy { ratios: vec![4, 1], ..sound.clone() }, "policy.ratios"),
            (Policy { ratios: vec![4; 33], ..sound.clone() }, "policy.ratios"),
            (Policy { inner_runs: vec![], ..sound.clone() }, "policy.inner_runs"),
            (Policy { inner_runs: vec![2, 0], ..sound.clone() }, "policy.inner_runs"),
            (Policy { last_runs: 0, ..sound }, "policy.last_runs"),
        ] {
            assert_eq!(wrong.problem().map(|(option, _)| option), Some(option));
        }
    }

    #[test]
    fn run_limits_say_how_many_units_a_run_holds() {
        let of = |inner_runs: &[u32], last_runs| Policy::of(&[4, 6], inner_runs, last_runs);
        let (policy, each) = (of(&[EACH, 2, 1], 3), of(&[EACH], EACH));
        let schedule = Schedule { policy: &policy, size_ratio: 10 };
        let numbers =
            |level| (schedule.ratio(level), schedule.inner_runs(level), schedule.run_units(level));
        assert_eq!([0, 1, 2, 7].map(numbers), [(4, 3, 1), (6, 2, 3), (10, 1, 9), (10, 1, 9)]);
        assert_eq!([0, 1, 2, 3].map(|level| schedule.unit_flushes(level)), [1.0, 4.0, 24.0, 240.0]);
        assert_eq!((schedule.last_runs(0), schedule.last_runs(2)), (3, 3));
        assert_eq!(schedule.overlay_flushes(2), 71.0);
        assert_eq!(schedule.full_overlay_share(2), 0.3);
        let schedule = Schedule { policy: &each, size_ratio: 10 };
        assert_eq!([0, 1, 2].map(|level| schedule.last_runs(level)), [3, 5, 9]);
        assert_eq!(
            [3.0, 4.0, 21.0, 23.0, 239.0].map(|f| schedule.level_holding(f)),
            [0, 1, 1, 2, 3]
        );
    }
}
