//! The paper's digits and our spans name the same run: in every version, after garbage collection,
//! beside merges.
//! ```text
//! flush k  ->  positions   --place by the version's shape-->  level, run  --newest first-->  run
//! flush k  ->  [k, k + 1)  -----------met by the spans of the version's runs------------->  run
//! ```
//! A tree here is lazily levelled; its last level has the flushes below `BASE_END`. Invariant:
//! `History` merges runs step by step and knows what each holds; it uses neither rule.

use crate::digits::{Place, Tree, collected, place, place_beside_a_merge, run_index};
use std::ops::Range;
use trommel_filters::{Codes, FlushNumber, Shape, Span};

const BASE_END: u64 = 7;

fn span(range: Range<u64>) -> Span {
    Span::new(FlushNumber(range.start), FlushNumber(range.end)).expect("not empty")
}

/// The runs that a code meets, newest first.
fn runs_of(shape: &Shape, code: Span) -> Vec<usize> {
    let mut codes = Codes::new();
    codes.push(code);
    shape.resolve(&codes).map(|run| usize::from(run.0)).collect()
}

/// Our garbage collection: the span of the one run that has the flush; the flush alone if none has.
fn widened(shape: &Shape, flush: u64) -> Span {
    let own = Span::of_flush(FlushNumber(flush));
    shape.runs().find(|run| run.meets(own)).unwrap_or(own)
}

/// A tree that is flushed and merged step by step: per level, newest first, the flushes of each
/// run.
struct History {
    size_ratio: u64,
    inner: Vec<Vec<Range<u64>>>,
}

impl History {
    fn new(tree: Tree) -> Self {
        History { size_ratio: tree.size_ratio, inner: vec![Vec::new(); tree.levels - 1] }
    }

    fn flush(&mut self, number: u64) {
        self.inner[0].insert(0, number..number + 1);
    }

    /// Merges the oldest runs of level 0, as many as fill it, and all levels below that this fills.
    /// False: there are too few.
    fn merge(&mut self) -> bool {
        let ratio = self.size_ratio as usize;
        if self.inner[0].len() < ratio {
            return false;
        }
        let kept = self.inner[0].len() - ratio;
        let inputs = self.inner[0].split_off(kept);
        let newest = inputs[0].end;
        let mut oldest = inputs[ratio - 1].start;
        let mut level = 1;
        // The run that arrives fills the level: merged at once. The last inner level has no bound.
        while level + 1 < self.inner.len() && self.inner[level].len() + 1 == ratio {
            let inputs = std::mem::take(&mut self.inner[level]);
            oldest = inputs[inputs.len() - 1].start;
            level += 1;
        }
        self.inner[level].insert(0, oldest..newest);
        true
    }

    fn shape(&self) -> Shape {
        let spans = |runs: &Vec<Range<u64>>| runs.iter().cloned().map(span).collect();
        let inner = self.inner.iter().map(spans);
        Shape { levels: inner.chain([vec![span(0..BASE_END)]]).collect() }
    }

    /// The run that has a flush, newest first over all levels.
    fn run_with(&self, flush: u64) -> Option<usize> {
        self.inner.iter().flatten().position(|run| run.contains(&flush))
    }
}

/// Some rounds of every level but the last inner one, and that one beyond its limit.
const TREES: [(Tree, u64); 6] = [
    (Tree { size_ratio: 2, levels: 4 }, 40),
    (Tree { size_ratio: 2, levels: 7 }, 70),
    (Tree { size_ratio: 3, levels: 4 }, 70),
    (Tree { size_ratio: 4, levels: 4 }, 150),
    (Tree { size_ratio: 10, levels: 3 }, 130),
    (Tree { size_ratio: 10, levels: 4 }, 1250),
];

/// The shapes after 0, 1, ... flushes, all merges done.
fn shapes(tree: Tree, flushes: u64) -> Vec<Shape> {
    let mut history = History::new(tree);
    let mut shapes = vec![history.shape()];
    for number in BASE_END..BASE_END + flushes {
        history.flush(number);
        while history.merge() {}
        shapes.push(history.shape());
    }
    shapes
}

// GRF, section 4.2: a key's encoding is its flush number, a version's the number of the next flush.
#[test]
fn a_tree_has_the_runs_that_its_encoding_says() {
    for (tree, flushes) in TREES {
        for (flush, shape) in shapes(tree, flushes).iter().enumerate() {
            let digits: Vec<u64> = shape.digits().iter().map(|&runs| runs as u64).collect();
            assert_eq!(digits, tree.encoding(flush as u64), "{tree:?}");
        }
    }
}

// And `Shape::of_round` is that tree, while the last inner level has no more runs than the others.
#[test]
fn the_shape_of_a_round_is_the_tree_with_all_merges_done() {
    for (tree, flushes) in TREES {
        let within = tree.size_ratio.pow(tree.levels as u32 - 1);
        for (flush, shape) in shapes(tree, flushes.min(within - 1)).iter().enumerate() {
            let next = FlushNumber(BASE_END + flush as u64);
            let round = Shape::of_round(FlushNumber(BASE_END), next, tree.size_ratio as u32);
            assert!(round.runs().eq(shape.runs()), "{tree:?}: {round:?}, {shape:?}");
        }
    }
}

#[test] // GRF, section 4.2: the rule of the common suffix and the rule of spans.
fn digits_and_spans_name_the_same_run_in_every_later_version() {
    for (tree, flushes) in TREES {
        for (next, shape) in (0..).zip(&shapes(tree, flushes)) {
            let vse = tree.encoding(next);
            for flush in 0..next {
                let found = place(&tree.encoding(flush), &vse).expect("an older flush");
                let number = BASE_END + flush;
                let ours = runs_of(shape, Span::of_flush(FlushNumber(number)));
                assert_eq!(ours, [run_index(found, &vse)], "{tree:?}: {flush} in {vse:?}");
            }
            // What is not flushed yet is nowhere, what was before this round in the last level.
            assert_eq!(place(&vse, &vse), None);
            assert!(runs_of(shape, Span::of_flush(FlushNumber(BASE_END + next))).is_empty());
            let last_level = place(&[1], &vse).expect("the last level is there");
            for older in 0..BASE_END {
                let ours = runs_of(shape, Span::of_flush(FlushNumber(older)));
                assert_eq!(ours, [run_index(last_level, &vse)]);
            }
        }
    }
}

/// Versions after `from`: all soon after it, then ever fewer.
fn versions_from(from: u64, flushes: u64) -> impl Iterator<Item = u64> {
    let far = (1..).map(|step: u64| step * step / 4 + step);
    far.map(move |step| from + step - 1).take_while(move |&version| version <= flushes)
}

// GRF, section 4.2, garbage collection: the last m + 1 positions, and the span of the oldest
// version's run.
#[test]
fn truncated_digits_and_widened_spans_name_the_same_run() {
    for (tree, flushes) in TREES {
        let shapes = shapes(tree, flushes);
        let mut dropped = 0;
        for oldest in versions_from(1, flushes) {
            let oldest_vse = tree.encoding(oldest);
            for flush in (0..oldest).step_by(1 + oldest as usize / 100) {
                let whole = tree.encoding(flush);
                let kept = collected(&whole, &oldest_vse);
                let code = widened(&shapes[oldest as usize], BASE_END + flush);
                dropped += whole.len() - kept.len();
                for version in versions_from(oldest, flushes) {
                    let vse = tree.encoding(version);
                    let found = place(kept, &vse).expect("an older flush");
                    assert_eq!(Some(found), place(&whole, &vse), "{kept:?} in {vse:?}");
                    let ours = runs_of(&shapes[version as usize], code);
                    assert_eq!(ours, [run_index(found, &vse)], "{code:?} in {vse:?}");
                }
            }
        }
        assert!(dropped > 100, "{tree:?}: {dropped} positions");
    }
}

// A span is the block of all flushes that have the kept positions: as much is forgotten, no more
// and no less.
#[test]
fn a_widened_span_is_the_block_of_the_kept_digits() {
    for (tree, flushes) in TREES {
        let shapes = shapes(tree, flushes);
        for oldest in versions_from(1, flushes) {
            let oldest_vse = tree.encoding(oldest);
            for flush in 0..oldest {
                let whole = tree.encoding(flush);
                let kept = collected(&whole, &oldest_vse);
                let alike = (0..oldest).filter(|&other| tree.encoding(other).ends_with(kept));
                let block: Vec<u64> = alike.map(|other| BASE_END + other).collect();
                let code = widened(&shapes[oldest as usize], BASE_END + flush);
                let ends = (block.first(), block.last());
                assert_eq!(ends, (Some(&code.lo().0), Some(&(code.hi().0 - 1))));
                assert_eq!(block.len() as u64, code.hi().0 - code.lo().0, "without holes");
            }
        }
    }
}

/// The merges of a tree fall behind, and come one at a time: what is checked at every step.
fn assert_beside_merges(tree: Tree, flushes: u64, lag: u64) {
    let mut history = History::new(tree);
    let ratio = tree.size_ratio;
    // The flushes that merges have seen to: those since then wait in level 0.
    let (mut merged, mut waited) = (0, 0);
    let mut versions: Vec<(u64, u64, Shape)> = Vec::new();
    for next in 1..=flushes {
        history.flush(BASE_END + next - 1);
        if next % lag == 0 && history.merge() {
            merged += ratio;
        }
        waited = waited.max(next - merged);
        let shape = history.shape();
        for flush in 0..next {
            let waiting = next - merged;
            let found = place_beside_a_merge(tree, flush, merged, waiting).expect("it is there");
            let index = index_beside_a_merge(tree, found, (merged, waiting));
            let truth = history.run_with(BASE_END + flush);
            assert_eq!(truth, Some(index), "{tree:?}: {flush} of {merged} + {waiting}");
            let code = Span::of_flush(FlushNumber(BASE_END + flush));
            assert_eq!(runs_of(&shape, code), [index]);
        }
        versions.push((next, merged, shape));
    }
    assert!(waited > ratio, "{tree:?}: merges were never late");
    assert_widened_beside_merges(tree, &versions);
}

/// The index of a place where level 0 has waiting runs on top of those that the encoding shows.
fn index_beside_a_merge(tree: Tree, found: Place, (merged, waiting): (u64, u64)) -> usize {
    let mut runs = tree.encoding(merged);
    runs[0] += waiting;
    run_index(found, &runs)
}

/// Codes that were widened for any version name one run, the true one, in every later version.
fn assert_widened_beside_merges(tree: Tree, versions: &[(u64, u64, Shape)]) {
    for (place, (next, merged, oldest)) in versions.iter().enumerate().step_by(3) {
        for flush in (0..*next).step_by(2) {
            let code = widened(oldest, BASE_END + flush);
            let whole = tree.encoding(flush);
            // Positions of keys that wait are still to be needed: the paper's collection must spare
            // them.
            let waits = flush >= *merged;
            let kept = if waits { &whole[..] } else { collected(&whole, &tree.encoding(*merged)) };
            for (next, merged, later) in versions[place..].iter().step_by(5) {
                let own = Span::of_flush(FlushNumber(BASE_END + flush));
                assert_eq!(runs_of(later, code), runs_of(later, own), "{code:?} in {later:?}");
                if flush < *merged {
                    let found = crate::digits::place(kept, &tree.encoding(*merged));
                    let found = found.expect("an older flush");
                    let index = index_beside_a_merge(tree, found, (*merged, next - merged));
                    assert_eq!(runs_of(later, code), [index]);
                }
            }
        }
    }
}

#[test] // GRF, section 5, generalization 1.
fn digits_and_spans_name_the_same_run_while_merges_lag_behind() {
    for (size_ratio, levels) in [(2, 5), (3, 4), (4, 4), (10, 3)] {
        let tree = Tree { size_ratio, levels };
        for lag in [size_ratio + 1, size_ratio + 3, 2 * size_ratio + 1] {
            assert_beside_merges(tree, 9 * size_ratio + 40, lag);
        }
    }
}

// Section 4.2 does not say so, but a key of a flush beside a merge would lose what later versions
// ask for.
#[test]
fn garbage_collection_must_spare_keys_that_are_larger_than_the_version() {
    let tree = Tree { size_ratio: 4, levels: 4 };
    let (key, oldest, later) = (tree.encoding(32), tree.encoding(31), tree.encoding(33));
    assert_eq!((&key[..], &oldest[..]), (&[0, 0, 2, 1][..], &[3, 3, 1, 1][..]));
    let kept = collected(&key, &oldest);
    assert_eq!(kept, [2, 1]);
    assert_eq!(place(&key, &later), Some(Place { level: 0, run: 0 }));
    assert_eq!(place(kept, &later), None, "the truncated one is lost");
    // Our code stays whole until some run has the flush.
    let shape = Shape::of_round(FlushNumber(BASE_END), FlushNumber(BASE_END + 31), 4);
    let number = FlushNumber(BASE_END + 32);
    assert_eq!(widened(&shape, number.0), Span::of_flush(number));
}
