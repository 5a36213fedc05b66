//! Tests that every change of a tree has an event.

use super::*;

fn run(span: (u64, u64), entries: u64) -> ReplayRun {
    ReplayRun { span, entries }
}

#[test]
fn changes_are_told_apart() {
    let oldest = run((0, 9), 90);
    let flushed: Levels = vec![vec![run((10, 11), 9), run((9, 10), 10)], vec![oldest]];
    let before: Levels = vec![vec![run((9, 10), 10)], vec![oldest]];
    assert_eq!(event(&before, &before), None);
    assert_eq!(event(&before, &flushed), Some(ReplayEvent::Flush { span: (10, 11) }));
    let merged: Levels = vec![vec![], vec![run((0, 11), 105)]];
    let inputs = vec![(10, 11), (9, 10), (0, 9)];
    let expected = ReplayEvent::Merge { inputs, outputs: vec![(0, 11)], level: 1 };
    assert_eq!(event(&flushed, &merged), Some(expected));
    let moved: Levels = vec![vec![], vec![run((9, 10), 10)], vec![oldest]];
    assert_eq!(event(&before, &moved), Some(ReplayEvent::Move { runs: vec![(9, 10), (0, 9)] }));
    // A partial merge of two runs: the rest of the newer run stays.
    let partly: Levels = vec![vec![run((9, 10), 4)], vec![run((0, 10), 96)]];
    let (inputs, outputs) = (vec![(9, 10), (0, 9)], vec![(9, 10), (0, 10)]);
    let expected = ReplayEvent::Merge { inputs, outputs, level: 1 };
    assert_eq!(event(&before, &partly), Some(expected));
    let nothing: Levels = vec![vec![]];
    let inputs = vec![(9, 10), (0, 9)];
    let expected = ReplayEvent::Merge { inputs, outputs: vec![], level: 1 };
    assert_eq!(event(&before, &nothing), Some(expected));
}
