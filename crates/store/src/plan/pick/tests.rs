//! Merges on layouts alone, begun and ended in any order. There are no keys; a table is a run.
//! ```text
//! flush, begin, end (any open merge), flush, ... -> all ended -> in shape, as if there
//!                                                               had been one at a time
//! ```
//! Invariants of every step: spans descend and are disjoint, levels ascend, no run is claimed
//! twice.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::plan::flush_size::FlushSize;
use crate::plan::layout::tests::table;
use crate::plan::layout::{Edit, RunRecord};
use crate::plan::policy::Policy;

/// A tree as a layout, with its open merges.
struct Tree {
    layout: Layout,
    options: Options,
    open: Vec<Arc<MergeJob>>,
    /// The most merges that were open at once.
    most_open: usize,
}

impl Tree {
    fn new(policy: Policy, size_ratio: u32) -> Self {
        let granularity = Granularity::Full;
        let options = Options::new().policy(policy).size_ratio(size_ratio).granularity(granularity);
        Tree { layout: Layout::default(), options, open: Vec::new(), most_open: 0 }
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

    fn next(&self) -> Option<MergeJob> {
        pick(&self.layout, &self.open, &self.options, false)
    }

    /// Begins the merge that is due. False: none is due.
    fn begin(&mut self) -> bool {
        let Some(job) = self.next() else { return false };
        assert!(!self.open.iter().any(|claim| claim.shares_a_run(&job)), "claimed twice");
        self.open.push(Arc::new(job));
        self.most_open = self.most_open.max(self.open.len());
        true
    }

    /// Installs an open merge. Its inputs are still neighbours, whatever was installed since it
    /// began.
    fn end(&mut self, at: usize) {
        let merge = self.open.remove(at);
        let place = self.layout.runs.iter().position(|run| run.id == merge.inputs[0]);
        let place = place.expect("an input is there");
        let inputs = &self.layout.runs[place..place + merge.inputs.len()];
        assert!(inputs.iter().map(|run| run.id).eq(merge.inputs.iter().copied()), "neighbours");
        let (lo, hi) = (inputs[inputs.len() - 1].span().lo().0, inputs[0].span().hi().0);
        let newer = &inputs[..inputs.len() - 1];
        let level = match merge.target {
            Target::Inner(level) => level,
            Target::Last => {
                let level = FlushSize::mean(newer).last_level(hi - lo, &self.options.schedule());
                level.expect("inner runs")
            }
        };
        let removed = inputs.iter().flat_map(|run| run.files()).collect();
        let file = self.layout.next_file;
        let added = vec![table(file, file, level, lo, hi)];
        self.apply(Edit { removed, added, ..Edit::default() });
    }

    /// Runs one merge after the other, until none is due.
    fn wait_idle(&mut self) {
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
    /// Forgets the open merges, as a crash does.
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
    // docs/design/merges.md: a merge takes contiguous runs, and its output takes their place,
    // whatever else is open.
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
        tree.wait_idle();
        prop_assert!(tree.next().is_none());
    }
}

// This holds as long as the last level stays the same. When the last level is merged, its number
// follows from what was flushed by then.
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
            one.wait_idle();
            many.flush();
            // Merges of the newest runs may be waiting meanwhile: the open merges end from new to
            // old.
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
        tree.wait_idle();
    });
    tree.flush();
    assert!(tree.begin());
    assert_eq!(tree.open[0].target, Target::Last);
    // The next carries, not a merge that would add another run to the last level.
    (0..16).for_each(|_| {
        tree.flush();
        tree.begin();
    });
    let targets: Vec<Target> = tree.open.iter().map(|job| job.target).collect();
    let beside = [Target::Inner(1), Target::Inner(1), Target::Inner(1)];
    assert_eq!(targets[1..], beside, "{targets:?}");
    assert_eq!(tree.most_open, 4);
}

#[test]
fn what_is_asked_for_of_all_runs_waits_for_those_that_are_open() {
    let mut tree = Tree::new(Policy::lazy_leveling(), 4);
    (0..7).for_each(|_| tree.flush());
    let all = |tree: &Tree| pick(&tree.layout, &tree.open, &tree.options, true);
    assert!(tree.begin());
    assert_eq!(all(&tree), None);
    tree.end(0);
    let job = all(&tree).expect("now");
    assert_eq!(job.inputs.len(), tree.layout.runs.len());
}

#[test]
fn a_merge_that_was_installed_a_moment_ago_hides_nothing() {
    let mut tree = Tree::new(Policy::lazy_leveling(), 4);
    (0..5).for_each(|_| tree.flush());
    assert!(tree.begin());
    let claim = Arc::clone(&tree.open[0]);
    tree.end(0);
    assert_eq!(*planned(&tree.layout, &[claim]), tree.layout);
}
