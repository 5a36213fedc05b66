//! Stores with tables of which a merge of key ranges has taken a piece: every way to read them, to
//! open them again, to mend and to copy them.
//! ```text
//! tables and runs -> a merge that is half done -> whatever may come then
//!     -> every answer against a map
//! ```

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::shapes::{Gap, KEYS, Keys, Model, Op, World, options, owned};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use trommel::tools::{Doubt, repair_with};
use trommel::{Db, Policy};

fn range() -> impl Strategy<Value = Range<u16>> {
    (0..KEYS, 0..KEYS).prop_map(|(one, other)| one.min(other)..one.max(other))
}

fn gap() -> impl Strategy<Value = Gap> {
    prop_oneof![Just(Gap::MergeStarted), Just(Gap::MergePrepared), Just(Gap::FlushPrepared)]
}

fn keys() -> impl Strategy<Value = Keys> {
    (0..KEYS, 1u16..40, 1u16..40).prop_map(|(from, step, count)| Keys { from, step, count })
}

/// Trees with several partitions, and with a merge through them that is half done.
fn half_done() -> impl Strategy<Value = Vec<Op>> {
    let load = (0u16..7, 3u16..11).prop_map(|(from, step)| {
        vec![Op::Put(Keys { from, step, count: KEYS / step }), Op::Flush, Op::Settle]
    });
    let newer = prop_oneof![
        3 => (0..KEYS, 1u16..40, 40u16..120)
            .prop_map(|(from, step, count)| Op::Put(Keys { from, step, count })),
        1 => keys().prop_map(Op::Delete),
        1 => range().prop_map(Op::DeleteRange),
        1 => keys().prop_map(Op::Ingest),
        1 => Just(Op::TakeSnapshot),
    ];
    let newer = newer.prop_map(|op| vec![op, Op::Flush, Op::StepIntoRanges]);
    (vec(load, 2..4), vec(newer, 1..6))
        .prop_map(|(loads, newer)| loads.into_iter().chain(newer).flatten().collect())
}

fn then() -> impl Strategy<Value = Op> {
    let moves = vec((any::<bool>(), 1u8..20), 1..4);
    prop_oneof![
        4 => keys().prop_map(Op::Put),
        2 => keys().prop_map(Op::Delete),
        2 => range().prop_map(Op::DeleteRange),
        1 => keys().prop_map(Op::Ingest),
        1 => (keys(), 0u8..4).prop_map(|(keys, ttl)| Op::PutTtl(keys, ttl)),
        1 => Just(Op::Tick),
        1 => Just(Op::Compact),
        2 => Just(Op::Flush),
        3 => (1u8..4).prop_map(Op::Steps),
        2 => Just(Op::StepIntoRanges),
        3 => (gap(), keys()).prop_map(|(gap, keys)| Op::StepIntoGap(gap, keys)),
        1 => Just(Op::TakeSnapshot),
        1 => Just(Op::DropSnapshot),
        1 => range().prop_map(Op::OpenScan),
        2 => moves.prop_map(Op::MoveScans),
        1 => Just(Op::DropScans),
        1 => any::<u32>().prop_map(Op::Reopen),
        1 => Just(Op::Crash),
        1 => Just(Op::Repair),
        1 => Just(Op::Checkpoint),
        4 => range().prop_map(Op::Read),
        1 => Just(Op::Check),
    ]
}

/// How many operations found trimmed tables.
fn run(number: u32, ops: &[Op]) -> u64 {
    let mut world = World::new(options(number));
    ops.iter().for_each(|op| world.apply(op));
    world.check();
    world.apply(&Op::Crash);
    world.check();
    world.apply(&Op::Settle);
    world.check();
    world.trimmed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 3000, ..Default::default() })]

    #[test]
    fn trimmed_tables_answer_like_a_map(
        number in any::<u32>(),
        begin in half_done(),
        then in vec(then(), 1..40),
    ) {
        run(number, &[begin, then].concat());
    }
}

#[test]
fn these_histories_have_trimmed_tables() {
    let mut runner = TestRunner::deterministic();
    let mut trimmed = 0;
    for number in 0..12 {
        let mut ops = half_done().new_tree(&mut runner).expect("generates").current();
        ops.extend(vec(then(), 10).new_tree(&mut runner).expect("generates").current());
        trimmed += u64::from(run(number, &ops) > 0);
    }
    assert!(trimmed >= 4, "{trimmed} of 12");
}

/// Repairs a copy of the store with one bit of the manifest flipped. Every key of the map must be
/// there, with its value; keys that should not be are told of.
fn repair_without(world: &World, byte: u64) {
    let disk = world.disk.crash_hard();
    disk.flip_bit(Path::new(&world.dir).join("MANIFEST"), byte, 3);
    let environment = world.environment().storage(Arc::new(disk));
    let report = repair_with(&world.dir, &environment).expect("repairs");
    let db = Db::open_with(Path::new(&world.dir), world.options.clone(), environment);
    let db = db.expect("opens");
    assert_eq!(db.verify().expect("verifies").damage, [""; 0], "byte {byte}, after {report:?}");
    let found: Model = db.range(..).map(owned).collect();
    for (key, value) in &world.model {
        assert_eq!(found.get(key), Some(value), "byte {byte}, {key:?}, after {report:?}");
        let got = db.get(key).expect("gets").map(|value| value.to_vec());
        assert_eq!(got.as_ref(), Some(value), "byte {byte}, get {key:?}");
    }
    let is_reported = |doubt: &Doubt| {
        let of = |words| doubt.what.contains(words);
        of("left over from a merge") || of("was merged into another")
    };
    let is_back = found.keys().any(|key| !world.model.contains_key(key));
    assert!(!is_back || report.doubts.iter().any(is_reported), "byte {byte}: {report:?}");
}

// A table that was trimmed was set aside, since it had left the tree; of two pieces one was
// forgotten.
#[test]
fn a_damaged_manifest_loses_no_piece_of_a_trimmed_table() {
    let mut runner = TestRunner::deterministic();
    let mut trimmed = 0;
    for number in 0..24 {
        let ops = half_done().new_tree(&mut runner).expect("generates").current();
        let mut world = World::new(options(number));
        ops.iter().filter(|op| !matches!(op, Op::TakeSnapshot)).for_each(|op| world.apply(op));
        trimmed += u64::from(world.db().stats().expect("open").trimmed_tables > 0);
        let manifest = world.disk.file(Path::new(&world.dir).join("MANIFEST")).expect("is there");
        // Behind the header. Some bit of each edit.
        (12..manifest.len() as u64).step_by(17).for_each(|byte| repair_without(&world, byte));
    }
    assert!(trimmed >= 4, "{trimmed} of 24");
}

#[test] // "edit: tables of a run overlap": the merge could never be installed.
fn a_table_around_a_range_makes_way_for_what_is_merged_there() {
    let policy = Policy::named("rocksdb").expect("a preset");
    let mut world = World::new(options(0).policy(policy).size_ratio(3));
    let every = |from, step, count| Keys { from, step, count };
    world.apply(&Op::Ingest(every(93, 1, 150)));
    // Nothing of it is left, but for its partitions; and the next run, across them, is the oldest
    // one.
    let ops = [
        Op::DeleteRange(0..KEYS),
        Op::Flush,
        Op::Settle,
        Op::Put(every(0, 250, 2)),
        Op::Flush,
        Op::Put(every(100, 5, 20)),
        Op::Flush,
        Op::Put(every(0, 250, 2)),
        Op::Flush,
        Op::Compact,
        Op::Check,
    ];
    ops.iter().for_each(|op| world.apply(op));
}

#[test] // It got another span, or lost the image of a part whose base had been nothing.
fn a_sound_store_with_another_oldest_run_than_before_is_not_mended() {
    let first = |count| Op::Put(Keys { from: 0, step: 1, count });
    let everything = Op::DeleteRange(0..KEYS);
    let loaded = Op::Ingest(Keys { from: 17, step: 1, count: 145 });
    let one_more = Op::Ingest(Keys { from: 0, step: 1, count: 1 });
    let span = [
        vec![first(60), loaded.clone(), first(1), Op::Flush, everything.clone(), Op::Flush],
        vec![Op::Reopen(117_959_532), first(1), Op::Flush, Op::Steps(1), Op::Repair],
    ];
    let image = [
        vec![first(1), loaded, Op::Steps(1), everything, Op::Flush, Op::DeleteRange(0..1)],
        vec![Op::Put(Keys { from: 65, step: 1, count: 1 }), Op::Steps(3), one_more, first(1)],
        vec![Op::Repair],
    ];
    for (number, ops) in [(514_367_577, span.concat()), (609_000_309, image.concat())] {
        let mut world = World::new(options(number));
        ops.iter().for_each(|op| world.apply(op));
        world.check();
    }
}
