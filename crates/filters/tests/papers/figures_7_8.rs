//! GRF, Figures 7 and 8, by our codes: spans of flush numbers. `digits.rs` has them as the paper
//! does.

use trommel_filters::{Codes, FlushNumber, RunIndex, Shape, Span};

fn span(lo: u64, hi: u64) -> Span {
    Span::new(FlushNumber(lo), FlushNumber(hi)).expect("not empty")
}

fn run_of(shape: &Shape, flush: u64) -> Vec<RunIndex> {
    let mut codes = Codes::new();
    codes.push(Span::of_flush(FlushNumber(flush)));
    shape.resolve(&codes).collect()
}

/// T = 4, the last level holds the first 64 flushes. Digits are written as the paper does, level 0
/// first.
fn flush_at(digits: [u64; 4]) -> u64 {
    digits[0] + 4 * digits[1] + 16 * digits[2] + 64 * digits[3]
}

// GRF, Figure 8: k is flushed at shape 1211. In version 1 it is run 1 of level 0 (counted from the
// oldest).
#[test]
fn figure_8_version_1_has_the_key_in_its_newest_run() {
    let flush = flush_at([1, 2, 1, 1]);
    let base = flush_at([0, 2, 1, 1]);
    // The version just after the flush: two runs in level 0, two in level 1, one in level 2, one
    // last.
    let shape = Shape {
        levels: vec![
            vec![span(flush, flush + 1), span(base, base + 1)],
            vec![span(base - 4, base), span(base - 8, base - 4)],
            vec![span(64, 80)],
            vec![span(0, 64)],
        ],
    };
    assert_eq!(shape.digits(), [2, 2, 1, 1]);
    assert_eq!(run_of(&shape, flush), [RunIndex(0)]);
}

// GRF, Figure 8: in version 2 (3311) the same code finds run 2 of level 1: the third, the newest
// there.
#[test]
fn figure_8_version_2_has_it_in_run_2_of_level_1() {
    let flush = flush_at([1, 2, 1, 1]);
    let next = flush_at([0, 3, 1, 1]);
    let shape = Shape {
        levels: vec![
            (0..3).rev().map(|n| span(next + n, next + n + 1)).collect(),
            (0..3).rev().map(|n| span(80 + 4 * n, 84 + 4 * n)).collect(),
            vec![span(64, 80)],
            vec![span(0, 64)],
        ],
    };
    assert_eq!(shape.digits(), [3, 3, 1, 1]);
    let newest_of_level_1 = RunIndex(3);
    assert_eq!(run_of(&shape, flush), [newest_of_level_1]);
    // The stored code did not change: merging coarsens spans and writes nothing into the filter.
}

#[test] // GRF, Figure 7: 2211, a flush makes 3211, the next one 0311; at the end of the round 0001.
fn figure_7_a_code_follows_its_run_through_every_shape() {
    let flush = flush_at([2, 2, 1, 1]);
    let shapes = [
        vec![vec![span(flush, flush + 1), span(flush - 2, flush - 1)], vec![span(80, 88)]],
        vec![vec![], vec![span(88, 92), span(84, 88), span(80, 84)]],
        vec![vec![], vec![], vec![], vec![span(0, 128)]],
    ];
    for levels in shapes {
        let shape = Shape { levels };
        assert_eq!(run_of(&shape, flush), [RunIndex(0)], "{shape:?}");
    }
}

#[test] // Entries of flushes later than a version meet no run of it.
fn entries_newer_than_a_version_meet_none_of_its_runs() {
    let shape = Shape { levels: vec![vec![span(9, 10)], vec![span(0, 9)]] };
    assert_eq!(run_of(&shape, 10), []);
    assert_eq!(run_of(&shape, 9), [RunIndex(0)]);
}
