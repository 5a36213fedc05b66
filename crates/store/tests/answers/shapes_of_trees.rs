//! Trees of every shape: policies, granularities and guards that change from opening to opening;
//! deleted ranges, expiry, bulk loads and snapshots beside each other; every answer against a map.

use std::ops::Range;

use crate::shapes::{Gap, KEYS, Keys, Op, World, options};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

fn range() -> impl Strategy<Value = Range<u16>> {
    let anywhere = (0..KEYS, 0..KEYS).prop_map(|(one, other)| one.min(other)..one.max(other));
    let short = (0..KEYS, 0u16..30).prop_map(|(from, len)| from..(from + len).min(KEYS));
    prop_oneof![4 => anywhere, 20 => short, 1 => Just(0..KEYS)]
}

fn gap() -> impl Strategy<Value = Gap> {
    prop_oneof![Just(Gap::MergeStarted), Just(Gap::MergePrepared), Just(Gap::FlushPrepared)]
}

fn keys() -> impl Strategy<Value = Keys> {
    let few = (0..KEYS, 1u16..40, 1u16..12);
    let many = (0..KEYS, 1u16..8, 40u16..200);
    prop_oneof![few, many].prop_map(|(from, step, count)| Keys { from, step, count })
}

fn op() -> impl Strategy<Value = Op> {
    let moves = vec((any::<bool>(), 1u8..20), 1..4);
    prop_oneof![
        12 => keys().prop_map(Op::Put),
        4 => keys().prop_map(Op::Delete),
        4 => range().prop_map(Op::DeleteRange),
        4 => (keys(), 0u8..4).prop_map(|(keys, ttl)| Op::PutTtl(keys, ttl)),
        2 => Just(Op::Tick),
        4 => keys().prop_map(Op::Ingest),
        10 => Just(Op::Flush),
        8 => (1u8..5).prop_map(Op::Steps),
        8 => Just(Op::StepIntoRanges),
        3 => (gap(), keys()).prop_map(|(gap, keys)| Op::StepIntoGap(gap, keys)),
        1 => Just(Op::Settle),
        1 => Just(Op::Compact),
        2 => Just(Op::TakeSnapshot),
        2 => Just(Op::DropSnapshot),
        1 => range().prop_map(Op::OpenScan),
        3 => moves.prop_map(Op::MoveScans),
        1 => Just(Op::DropScans),
        3 => any::<u32>().prop_map(Op::Reopen),
        1 => Just(Op::Crash),
        1 => Just(Op::Repair),
        1 => Just(Op::Checkpoint),
        6 => range().prop_map(Op::Read),
        1 => Just(Op::Check),
    ]
}

fn run(number: u32, ops: &[Op]) -> World {
    let mut world = World::new(options(number));
    ops.iter().for_each(|op| world.apply(op));
    world.check();
    world.apply(&Op::Settle);
    world.apply(&Op::Crash);
    world.check();
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 3000, ..Default::default() })]

    #[test]
    fn every_tree_answers_like_a_map(number in any::<u32>(), ops in vec(op(), 1..120)) {
        run(number, &ops);
    }
}

/// A long history: more flushes, rounds and openings than proptest's short ones reach.
#[test]
fn a_tree_of_many_shapes_answers_like_a_map() {
    let mut runner = TestRunner::deterministic();
    let mut trimmed = 0;
    for number in [0, 1, 9] {
        let ops = vec(op(), 1000).new_tree(&mut runner).expect("generates").current();
        trimmed += run(number, &ops).trimmed;
    }
    assert!(trimmed > 20, "{trimmed} operations found trimmed tables");
}
