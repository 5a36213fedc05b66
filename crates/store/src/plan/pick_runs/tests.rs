//! The schedule on layouts alone. There are no keys; a table is a run.
//! ```text
//! flush -> layout -> pick -> merge -> ... -> None: compare with the digits of the flush count
//! ```
//! Invariants of every step: spans descend, levels ascend, and a merge takes neighbours.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::plan::flush_size::FlushSize;
use crate::plan::layout::tests::table;
use crate::plan::layout::{Edit, TableRecord};
use crate::plan::policy::Policy;

/// A tree as a layout. Of 8 entries, `kept` outlive a merge into the oldest run, and `kept_inner`
/// outlive any other merge.
struct Tree {
    layout: Layout,
    policy: Policy,
    size_ratio: u32,
    kept: u64,
    kept_inner: u64,
    merges_of_all: usize,
}

impl Tree {
    fn new(policy: Policy, size_ratio: u32) -> Self {
        let layout = Layout::default();
        Tree { layout, policy, size_ratio, kept: 8, kept_inner: 8, merges_of_all: 0 }
    }

    fn schedule(&self) -> Schedule<'_> {
        Schedule { policy: &self.policy, size_ratio: self.size_ratio }
    }

    fn add(&mut self, level: usize, flushes: u64, entries: u64) {
        let lo = self.layout.runs.first().map_or(0, |run| run.span().hi().0);
        let file = self.layout.next_file;
        let mut added = table(file, file, level, lo, lo + flushes);
        (added.entries, added.file_entries) = (entries, entries);
        self.apply(Edit { added: vec![added], ..Edit::default() });
    }

    fn apply(&mut self, edit: Edit) {
        let next_flush =
            edit.added.iter().map(|table| table.span.hi()).chain([self.layout.next_flush]).max();
        let next_file = Some(self.layout.next_file + 1);
        let edit = Edit { next_file, next_flush, ..edit };
        self.layout = self.layout.apply(&edit).expect("fits");
        self.layout.check_ages();
    }

    /// Flushes, and does all merges that are then due.
    fn flush(&mut self) {
        self.add(0, 1, 8);
        self.wait_idle();
    }

    fn wait_idle(&mut self) -> usize {
        let mut merges = 0;
        while let Some(job) = pick_runs(&self.layout, &self.schedule(), false) {
            self.merge(&job);
            merges += 1;
            assert!(merges < 1000, "{:?} has no end", self.layout);
        }
        merges
    }

    fn merge(&mut self, job: &MergeJob) {
        let place = self.layout.runs.iter().position(|run| run.id == job.inputs[0]);
        let place = place.expect("an input is there");
        let inputs = &self.layout.runs[place..place + job.inputs.len()];
        assert!(inputs.iter().map(|run| run.id).eq(job.inputs.iter().copied()), "neighbours");
        let takes_oldest = place + inputs.len() == self.layout.runs.len();
        assert_eq!(takes_oldest, job.target == Target::Last);
        let (lo, hi) = (inputs[inputs.len() - 1].span().lo().0, inputs[0].span().hi().0);
        let entries: u64 = inputs.iter().map(RunRecord::entries).sum();
        let kept = if takes_oldest { self.kept } else { self.kept_inner };
        let entries = (entries * kept / 8).max(1);
        let newer = &inputs[..inputs.len() - 1];
        let level = match job.target {
            Target::Inner(level) => level,
            Target::Last => {
                self.merges_of_all += 1;
                let level = FlushSize::mean(newer).last_level(entries, &self.schedule());
                level.expect("inner runs")
            }
        };
        let removed = inputs.iter().flat_map(|run| run.files()).collect();
        let file = self.layout.next_file;
        let added =
            TableRecord { entries, file_entries: entries, ..table(file, file, level, lo, hi) };
        self.apply(Edit { removed, added: vec![added], ..Edit::default() });
    }

    fn units(&self) -> Vec<usize> {
        let units_in = |level: usize| {
            let runs = self.layout.runs.iter().filter(|run| run.level == level);
            runs.map(|run| self.schedule().units_of(level, run.flush_count())).sum()
        };
        (0..self.layout.level_count()).map(units_in).collect()
    }

    fn assert_in_shape(&self) {
        let (last, schedule) = (self.layout.level_count() - 1, self.schedule());
        for level in 0..=last {
            let most = if level == last {
                schedule.last_runs(level)
            } else if schedule.joins(level) {
                schedule.inner_runs(level)
            } else {
                schedule.ratio(level) - 1
            };
            let runs = self.layout.runs_in(level);
            assert!(runs <= most, "{runs} runs in level {level}: {:?}", self.layout.runs);
        }
    }
}

impl Layout {
    fn check_ages(&self) {
        assert_eq!(self.check(), Ok(()));
        let in_order = |pair: &[RunRecord]| pair[0].span().lo() >= pair[1].span().hi();
        assert!(self.runs.windows(2).all(in_order), "{:?}", self.runs);
    }
}

fn shapes(size_ratio: u32, flushes: usize) -> Vec<Vec<usize>> {
    let mut tree = Tree::new(Policy::lazy_leveling(), size_ratio);
    let shape_after = |_| {
        tree.flush();
        tree.layout.shape().digits()
    };
    (0..flushes).map(shape_after).collect()
}

// GRF, section 6.6: a tree of four levels, of which one to three (here up to four) are levelled.
#[test]
fn a_tree_has_as_many_levelled_levels_as_its_policy_says() {
    for levelled in 1..=4 {
        let mut tree = Tree::new(Policy::levelled_from(4 - levelled), 4);
        (0..255).for_each(|_| tree.flush());
        assert_eq!(tree.units(), [3; 4], "255 is 3333");
        let runs = (0..4).map(|level| tree.layout.runs_in(level)).collect::<Vec<_>>();
        let expected = (0..4).map(|level| if level + levelled < 4 { 3 } else { 1 });
        assert_eq!(runs, expected.collect::<Vec<_>>(), "{levelled} levelled levels");
    }
}

#[test] // GRF paper, section 4.2: the shape is the number of flushes in base T.
fn the_shape_is_an_odometer_of_flushes() {
    for (count, shape) in (1u64..).zip(&shapes(10, 2345)) {
        let digits = format!("{count}").len();
        assert_eq!(shape.len(), digits, "after {count} flushes");
        assert_eq!(shape[digits - 1], 1, "after {count} flushes");
        for (level, &runs) in shape[..digits - 1].iter().enumerate() {
            let digit = count / 10u64.pow(level as u32) % 10;
            assert_eq!(runs as u64, digit, "level {level} after {count} flushes");
        }
    }
}

// GRF paper, section 5, generalizations 3 and 4: units are digits, in a radix for each level,
// whatever the run limits are.
#[test]
fn units_are_an_odometer_under_every_policy() {
    let custom = |inner_runs: &[u32], last_runs| {
        let (ratios, inner_runs) = (vec![3, 5, 2], inner_runs.to_vec());
        Policy { ratios, inner_runs, last_runs, ..Policy::default() }
    };
    let presets = Policy::NAMES.iter().filter_map(|name| Policy::named(name));
    let presets = presets.chain((1..4).map(Policy::levelled_from));
    let others = [custom(&[2, 3], 1), custom(&[1], 9), custom(&[9, 1, 2], 1), custom(&[1, 2], 9)];
    for (policy, size_ratio) in presets.chain(others).flat_map(|p| [(p.clone(), 4), (p, 7)]) {
        let mut tree = Tree::new(policy, size_ratio);
        for count in 1..=2000usize {
            tree.flush();
            let (mut digits, mut rest) = (Vec::new(), count);
            while rest > 0 {
                let ratio = tree.schedule().ratio(digits.len());
                digits.push(rest % ratio);
                rest /= ratio;
            }
            assert_eq!(tree.units(), digits, "{count} flushes, {:?}", tree.policy);
            tree.assert_in_shape();
        }
    }
}

// With Z between 1 and T - 1, the last level's runs are merged when they exceed Z, not when their
// units reach T.
#[test]
fn a_last_level_of_a_few_runs_grows_a_little_beyond_its_units() {
    let (last_runs, size_ratio) = (4, 10);
    let mut tree = Tree::new(Policy { last_runs, ..Policy::leveling() }, size_ratio);
    let mut most = 0;
    for _ in 0..5000 {
        tree.flush();
        tree.assert_in_shape();
        most = most.max(tree.units().pop().expect("a level"));
    }
    assert!((10..=9 + 3).contains(&most), "{most}");
}

#[test] // GRF paper, Figure 7 (T = 4): 2211, a flush makes 3211, the next one 0311.
fn figure_7_flush_and_carry() {
    // 64 flushes are in the last level; then 2 runs in level 2, 2 in 1 and 2 in 0 is 42 more.
    let shapes = shapes(4, 64 + 16 + 8 + 4);
    let after = |flushes: usize| shapes[flushes - 1].clone();
    assert_eq!(after(64 + 16 + 8 + 2), [2, 2, 1, 1]);
    assert_eq!(after(64 + 16 + 8 + 3), [3, 2, 1, 1]);
    assert_eq!(after(64 + 16 + 8 + 4), [0, 3, 1, 1]);
}

#[test] // GRF paper, Figure 7, end of the round: every run goes into the last level, 0001.
fn figure_7_the_last_flush_of_a_round() {
    let shapes = shapes(4, 128);
    assert_eq!(shapes[126], [3, 3, 3, 1]);
    assert_eq!(shapes[127], [0, 0, 0, 1]);
}

// Dostoevsky, as described in Chucky's section 2: K runs in each inner level, Z in the last one.
#[test]
fn presets_have_the_shapes_of_their_names() {
    let shape = |name: &str, flushes: usize| {
        let mut tree = Tree::new(Policy::named(name).expect("a preset"), 4);
        (0..flushes).for_each(|_| tree.flush());
        tree.layout.shape().digits()
    };
    let count = 3 + 3 * 4 + 3 * 16 + 2 * 64; // 3332 in base 4
    assert_eq!(shape("lazy-leveling", count), [3, 3, 3, 1]);
    assert_eq!(shape("leveling", count), [1, 1, 1, 1]);
    assert_eq!(shape("tiering", count), [3, 3, 3, 2]);
    assert_eq!(shape("rocksdb", count), [3, 1, 1, 1]);
    assert_eq!(shape("tiering", 255), [3, 3, 3, 3]);
    assert_eq!(shape("tiering", 256), [0, 0, 0, 0, 1]);
}

#[test]
fn newer_runs_wait_while_a_block_is_merged() {
    for name in ["lazy-leveling", "leveling", "tiering", "rocksdb"] {
        let mut tree = Tree::new(Policy::named(name).expect("a preset"), 4);
        tree.add(2, 100, 100);
        (0..7).for_each(|_| tree.add(0, 1, 1));
        let job = pick_runs(&tree.layout, &tree.schedule(), false).expect("seven wait, four merge");
        assert_eq!((job.inputs, job.target), (vec![4, 3, 2, 1], Target::Inner(1)), "{name}");
    }
}

#[test]
fn flushes_that_wait_join_a_levelled_run_together() {
    let mut tree = Tree::new(Policy::leveling(), 10);
    tree.add(2, 100, 100);
    tree.add(0, 3, 3);
    (0..3).for_each(|_| tree.add(0, 1, 1));
    let job = pick_runs(&tree.layout, &tree.schedule(), false).expect("three wait");
    assert_eq!((job.inputs, job.target), (vec![4, 3, 2, 1], Target::Inner(0)));
}

#[test]
fn overwrites_do_not_make_levels() {
    let (policy, flush) = (Policy::default(), table(1, 1, 0, 7, 8));
    let run = RunRecord { id: 1, level: 0, tables: vec![flush] };
    let size = FlushSize::mean([&run]);
    let schedule = Schedule { policy: &policy, size_ratio: 10 };
    let level = |entries| size.last_level(entries, &schedule).expect("a run");
    assert_eq!([1, 10, 100].map(level), [0, 1, 2]);
    assert_eq!(FlushSize::mean([]).entries(), None);
}

#[test] // GRF paper, section 5, generalization 3: T' > T where levels stay small.
fn levels_that_stay_small_wait_for_more_merges() {
    let flushes_until_all_merge = |delay_merges, kept_inner| {
        let policy = Policy { delay_merges, ..Policy::leveling() };
        let mut tree = Tree { kept_inner, ..Tree::new(policy, 4) };
        tree.add(2, 1000, 1000);
        let flushes = (1..1000).find(|_| {
            tree.flush();
            tree.merges_of_all > 0
        });
        flushes.expect("at last")
    };
    assert_eq!(flushes_until_all_merge(false, 8), 16);
    assert_eq!(flushes_until_all_merge(true, 8), 16, "nothing was replaced");
    assert_eq!(flushes_until_all_merge(false, 5), 16);
    let (some, most) = (flushes_until_all_merge(true, 7), flushes_until_all_merge(true, 3));
    assert!((17..=2 * 16).contains(&some) && (17..=2 * 16).contains(&most), "{some}, {most}");
}

// The level of the last run follows its entries: a deeper level appears or goes without a write.
#[test]
fn the_number_of_levels_follows_the_data() {
    for name in Policy::NAMES {
        let mut tree = Tree::new(Policy::named(name).expect("a preset"), 4);
        (0..300).for_each(|_| tree.flush());
        assert_eq!(tree.layout.level_count(), 5, "{name}");
        // From now on, merges into the oldest run drop most of its entries.
        tree.kept = 1;
        (0..2000).for_each(|_| tree.flush());
        assert!(tree.layout.level_count() < 5, "{name}: {:?}", tree.layout.shape());
    }
}

fn policies() -> impl Strategy<Value = (Policy, u32)> {
    let limits = || prop_oneof![Just(1u32), 2..5u32, Just(u32::MAX)];
    let lists = (vec(2..7u32, 0..3), vec(limits(), 1..3), limits(), any::<bool>());
    let policy = lists.prop_map(|(ratios, inner_runs, last_runs, delay_merges)| Policy {
        ratios,
        inner_runs,
        last_runs,
        delay_merges,
    });
    (policy, 2..7u32)
}

/// Runs as another policy may have left them, newest first: level, flushes and entries of each.
fn left_over() -> impl Strategy<Value = Vec<(usize, u64, u64)>> {
    let run = (0..4usize, prop_oneof![Just(1u64), 1..40u64], 1..400u64);
    vec(run, 0..24).prop_map(|mut runs| {
        runs.sort_by_key(|run| run.0);
        runs
    })
}

proptest! {
    #[test] // A store may be opened with another policy at any time, and adopts it as it merges.
    fn every_policy_brings_every_layout_into_shape(
        left in left_over(),
        (policy, size_ratio) in policies(),
        kept in 4..9u64,
    ) {
        let mut tree = Tree { kept, kept_inner: kept, ..Tree::new(policy, size_ratio) };
        for &(level, flushes, entries) in left.iter().rev() {
            tree.add(level, flushes, entries);
        }
        let left_below = tree.layout.next_file;
        let merges = tree.wait_idle();
        prop_assert!(merges <= left.len() + 4, "{merges} merges of {} runs", left.len());
        // The shape is exact only after everything was merged once: a merge of all leaves the
        // newest runs of level 0 as they are.
        let is_done = |tree: &Tree| {
            let is_left = |run: &RunRecord| run.id < left_below;
            tree.merges_of_all > 0 && !tree.layout.runs.iter().any(is_left)
        };
        let mut flushes = 0;
        while !is_done(&tree) && flushes < 20_000 {
            tree.flush();
            flushes += 1;
        }
        prop_assert!(is_done(&tree), "{:?}", tree.layout.runs);
        for _ in 0..300 {
            tree.flush();
            tree.assert_in_shape();
        }
    }
}
