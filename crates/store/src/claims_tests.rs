//! Merges on layouts alone that are begun and ended in any order: no keys, a table is a run.
//! ```text
//! flush, begin, end (any of those that are open), flush, ... -> all ended -> in shape, as if there had been one at a time
//! ```
//! Invariant of every step: spans descend and are disjoint, levels ascend, no run is claimed twice.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::compaction::{flush_entries, last_level, pick};
use crate::layout::tests::table;
use crate::layout::{Edit, RunRecord};
use crate::partitions::Granularity;
use crate::policy::{Policy, Schedule};

const DIVISION: Division =
    Division { granularity: Granularity::Full, partition_bytes: 1 << 20, table_bytes: 1 << 20 };

/// A tree of layouts, and its open merges.
struct Tree {
    layout: Layout,
    policy: Policy,
    size_ratio: u32,
    open: Vec<(RangeJob, Claim)>,
    /// The most that were open at once.
    most_open: usize,
}

impl Tree {
    fn new(policy: Policy, size_ratio: u32) -> Self {
        Tree { layout: Layout::default(), policy, size_ratio, open: Vec::new(), most_open: 0 }
    }

    fn schedule(&self) -> Schedule<'_> {
        Schedule { policy: &self.policy, size_ratio: self.size_ratio }
    }

    fn apply(&mut self, edit: Edit) {
        let next_flush =
            edit.added.iter().map(|table| table.span.hi()).chain([self.layout.next_flush]).max();
        let next_file = Some(self.layout.next_file + 1);
        let edit = Edit { next_file, next_flush, ..edit };
        self.layout = self.layout.apply(&edit).expect("fits");
        assert_eq!(self.layout.check(), Ok(()));
        let in_order = |pair: &[RunRecord]| {
            pair[0].span().lo() >= pair[1].span().hi() && pair[0].level <= pair[1].level
        };
        assert!(self.layout.runs.windows(2).all(in_order), "{:?}", self.layout.runs);
    }

    fn flush(&mut self) {
        let (file, flush) = (self.layout.next_file, self.layout.next_flush.0);
        let added = vec![table(file, file, 0, flush, flush + 1)];
        self.apply(Edit { added, ..Edit::default() });
    }

    fn claims(&self) -> Vec<Claim> {
        self.open.iter().map(|(_, claim)| claim.clone()).collect()
    }

    fn next(&self) -> Option<RangeJob> {
        let plan = (&self.schedule(), DIVISION);
        next_beside(&self.layout, &self.claims(), plan, false).map(|(job, _)| job)
    }

    /// False: none is due.
    fn begin(&mut self) -> bool {
        let Some(job) = self.next() else { return false };
        assert!(!self.open.iter().any(|(_, claim)| claim.meets(&job.merge)), "claimed twice");
        let claim = Claim::of(&job);
        self.open.push((job, claim));
        self.most_open = self.most_open.max(self.open.len());
        true
    }

    /// Installs an open merge. Its inputs are still neighbours, whatever was installed since it began.
    fn end(&mut self, at: usize) {
        let (RangeJob { merge, .. }, _) = self.open.remove(at);
        let place = self.layout.runs.iter().position(|run| run.id == merge.inputs[0]);
        let place = place.expect("an input is there");
        let inputs = &self.layout.runs[place..place + merge.inputs.len()];
        assert!(inputs.iter().map(|run| run.id).eq(merge.inputs.iter().copied()), "neighbours");
        let (lo, hi) = (inputs[inputs.len() - 1].span().lo().0, inputs[0].span().hi().0);
        let inner: Vec<&RunRecord> = inputs[..inputs.len() - 1].iter().collect();
        let level = match merge.target {
            Target::Inner(level) => level,
            Target::Last => {
                let flush = flush_entries(inner).expect("inner runs");
                last_level(flush, hi - lo, &self.schedule())
            }
        };
        let removed = inputs.iter().flat_map(|run| run.files()).collect();
        let file = self.layout.next_file;
        let added = vec![table(file, file, level, lo, hi)];
        self.apply(Edit { removed, added, ..Edit::default() });
    }

    /// One merge after the other, until none is due.
    fn settle(&mut self) {
        for merges in 0.. {
            while !self.open.is_empty() {
                self.end(0);
            }
            if !self.begin() {
                return;
            }
            assert!(merges < 1000, "{:?} has no end", self.layout);
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Flush,
    Begin,
    End(usize),
    /// What is open is forgotten, as by a crash.
    Crash,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        8 => Just(Event::Flush),
        8 => Just(Event::Begin),
        4 => any::<usize>().prop_map(Event::End),
        1 => Just(Event::Crash),
    ];
    vec(event, 1..400)
}

fn policies() -> impl Strategy<Value = (Policy, u32)> {
    let presets = Policy::NAMES.map(|name| Policy::named(name).expect("a preset"));
    (prop::sample::select(presets.to_vec()), 2..7u32)
}

proptest! {
    // DESIGN 2, rule 1: a merge takes a contiguous stretch and its output takes that place, whatever else is open.
    #[test]
    fn merges_that_end_in_any_order_keep_runs_in_order_of_age(
        events in events(),
        (policy, size_ratio) in policies(),
    ) {
        let mut tree = Tree::new(policy, size_ratio);
        for event in events {
            match event {
                Event::Flush => tree.flush(),
                Event::Begin => {
                    tree.begin();
                }
                Event::End(at) => {
                    if let Some(at) = at.checked_rem(tree.open.len()) {
                        tree.end(at);
                    }
                }
                Event::Crash => tree.open.clear(),
            }
        }
        tree.settle();
        prop_assert!(pick(&tree.layout, &tree.schedule()).is_none());
    }
}

// As long as the last level stays as it is: when that is merged, its number follows from what was flushed by then.
#[test]
fn merges_beside_each_other_make_the_same_tree() {
    for name in Policy::NAMES {
        let of = || Tree::new(Policy::named(name).expect("a preset"), 4);
        let (mut one, mut many) = (of(), of());
        for tree in [&mut one, &mut many] {
            tree.apply(Edit { added: vec![table(0, 0, 5, 0, 1000)], ..Edit::default() });
        }
        for count in 0..1000 {
            one.flush();
            one.settle();
            many.flush();
            // Merges of the newest runs may be waiting meanwhile: those that are open end from new to old.
            while many.begin() {}
            if count % 7 == 6 {
                while let Some(newest) = many.open.len().checked_sub(1) {
                    many.end(newest);
                    while many.begin() {}
                }
                assert_eq!(many.layout.shape(), one.layout.shape(), "{name} after {count}");
            }
        }
    }
}

#[test]
fn newer_runs_merge_beside_a_merge_into_the_last_level() {
    let mut tree = Tree::new(Policy::lazy_leveling(), 4);
    (0..63).for_each(|_| {
        tree.flush();
        tree.settle();
    });
    tree.flush();
    assert!(tree.begin());
    assert_eq!(tree.open[0].0.merge.target, Target::Last);
    // The next carries, and not one that would be another run of the last level.
    (0..16).for_each(|_| {
        tree.flush();
        tree.begin();
    });
    let targets: Vec<Target> = tree.open.iter().map(|(job, _)| job.merge.target).collect();
    let beside = [Target::Inner(1), Target::Inner(1), Target::Inner(1)];
    assert_eq!(targets[1..], beside, "{targets:?}");
    assert_eq!(tree.most_open, 4);
}

#[test]
fn what_is_asked_for_of_all_runs_waits_for_those_that_are_open() {
    let mut tree = Tree::new(Policy::lazy_leveling(), 4);
    (0..7).for_each(|_| tree.flush());
    let all =
        |tree: &Tree| next_beside(&tree.layout, &tree.claims(), (&tree.schedule(), DIVISION), true);
    assert!(tree.begin());
    assert_eq!(all(&tree), None);
    tree.end(0);
    let (job, is_everything) = all(&tree).expect("now");
    assert!(is_everything);
    assert_eq!(job.merge.inputs.len(), tree.layout.runs.len());
}

#[test]
fn a_merge_that_was_installed_a_moment_ago_hides_nothing() {
    let mut tree = Tree::new(Policy::lazy_leveling(), 4);
    (0..5).for_each(|_| tree.flush());
    assert!(tree.begin());
    let claim = tree.open[0].1.clone();
    tree.end(0);
    assert_eq!(planned(&tree.layout, &[claim]), tree.layout);
}
