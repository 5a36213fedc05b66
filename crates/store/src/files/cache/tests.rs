//! Tests of the block cache: bytes are counted exactly, and the right blocks stay.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::entries::block::BlockBuilder;
use crate::entries::entry::{Entry, Kind, Sequence};
use crate::sync::{AtomicBool, Ordering};

/// Makes a block that identifies itself, with a value of `value_len` bytes.
fn block(table: u64, number: usize, value_len: usize) -> Block {
    let key = [table.to_be_bytes(), (number as u64).to_be_bytes()].concat();
    let entry =
        Entry { key: &key, sequence: Sequence(1), kind: Kind::Put, value: &vec![7; value_len] };
    let mut builder = BlockBuilder::new();
    builder.add(&entry);
    Block::new(&builder.finish()).unwrap()
}

fn is_block(found: &Block, table: u64, number: usize) -> bool {
    let key = [table.to_be_bytes(), (number as u64).to_be_bytes()].concat();
    found.get(&key, Sequence::MAX).is_some()
}

fn cache_of(bytes_max: u64) -> Arc<BlockCache> {
    Arc::new(BlockCache::new(bytes_max))
}

fn slots(cache: &Arc<BlockCache>, block_count: usize) -> BlockSlots {
    slots_of(&cache.share(), block_count)
}

fn slots_of(share: &Arc<CacheShare>, block_count: usize) -> BlockSlots {
    BlockSlots::new(Arc::clone(share), Arc::new(Life::new("store".as_ref())), block_count, true)
}

/// Whether a block is cached. Does not touch it.
fn is_kept(slots: &BlockSlots, number: usize) -> bool {
    !slots.slots[number].is_empty()
}

/// Checks the invariant. `tables` are all open tables.
fn check(cache: &BlockCache, tables: &[BlockSlots]) {
    let queues = lock(&cache.queues);
    let full = tables.iter().flat_map(|table| table.slots.iter()).filter_map(Slot::hold);
    let costs: Vec<u64> = full.map(|memory| cost(&Block::from(memory))).collect();
    assert_eq!(queues.used, costs.iter().sum::<u64>(), "used is what full slots hold");
    assert!(queues.used <= cache.bytes_max, "{} of {}", queues.used, cache.bytes_max);
    let (dead, living): (Vec<_>, Vec<_>) =
        queues.fresh.iter().chain(&queues.kept).partition(|place| place.slot().is_empty());
    assert_eq!((dead.len(), living.len()), (queues.dead_count, costs.len()));
    let held = |place: &FilledSlot| place.slot().hold().map(Block::from);
    let fresh: u64 = queues.fresh.iter().filter_map(held).map(|block| cost(&block)).sum();
    assert_eq!(queues.fresh_bytes, fresh);
    let distinct: HashSet<_> =
        living.iter().map(|place| std::ptr::from_ref(place.slot())).collect();
    assert_eq!(distinct.len(), living.len(), "a slot has one place");
    let shares: HashMap<_, _> =
        tables.iter().map(|table| (Arc::as_ptr(&table.share), table.share.size_bytes())).collect();
    assert_eq!(shares.values().sum::<u64>(), queues.used, "shares count what is used");
}

const TABLES: usize = 3;
const BLOCKS: usize = 40;

#[derive(Clone, Debug)]
enum Action {
    Insert { table: usize, number: usize, value_len: usize },
    Get { table: usize, number: usize },
    Close { table: usize },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let insert = (0..TABLES, 0..BLOCKS, 0usize..3_000)
        .prop_map(|(table, number, value_len)| Action::Insert { table, number, value_len });
    let get = (0..TABLES, 0..BLOCKS).prop_map(|(table, number)| Action::Get { table, number });
    let close = (0..TABLES).prop_map(|table| Action::Close { table });
    prop::collection::vec(prop_oneof![20 => insert, 20 => get, 1 => close], 1..400)
}

proptest! {
    #[test]
    fn what_is_kept_is_counted(actions in actions(), bytes_max in 1u64..40_000) {
        let cache = cache_of(bytes_max);
        let open = || slots(&cache, BLOCKS);
        let mut tables: Vec<BlockSlots> = (0..TABLES).map(|_| open()).collect();
        for action in actions {
            match action {
                Action::Insert { table, number, value_len } => {
                    let new = block(table as u64, number, value_len);
                    tables[table].insert(number, &new);
                    let fits = cost(&new) <= bytes_max;
                    prop_assert!(is_kept(&tables[table], number) || !fits, "it was just asked for");
                }
                Action::Get { table, number } => {
                    let found = tables[table].get(number);
                    prop_assert!(found.is_none_or(|found| is_block(&found, table as u64, number)));
                }
                Action::Close { table } => {
                    tables[table] = open();
                    let queues = lock(&cache.queues);
                    prop_assert!(queues.dead_count * 2 <= queues.places());
                }
            }
            check(&cache, &tables);
        }
        drop(tables);
        prop_assert_eq!((cache.size_bytes(), lock(&cache.queues).places()), (0, 0));
    }
}

#[test]
fn a_scan_does_not_push_out_what_is_asked_for_again_and_again() {
    let cache = cache_of(100 * cost(&block(0, 0, 1_000)));
    let (hot, scanned) = (slots(&cache, 50), slots(&cache, 5_000));
    for number in 0..50 {
        hot.insert(number, &block(1, number, 1_000));
    }
    for number in 0..5_000 {
        assert!(hot.get(number % 50).is_some(), "lost after {number} blocks of the scan");
        scanned.insert(number, &block(2, number, 1_000));
    }
    check(&cache, &[hot, scanned]);
}

#[test]
fn blocks_that_were_read_once_go_before_those_that_were_read_again() {
    let cache = cache_of(100 * cost(&block(0, 0, 1_000)));
    let (hot, first, second) = (slots(&cache, 30), slots(&cache, 70), slots(&cache, 70));
    (0..30).for_each(|number| hot.insert(number, &block(1, number, 1_000)));
    (0..30).for_each(|number| assert!(hot.get(number).is_some()));
    (0..70).for_each(|number| first.insert(number, &block(2, number, 1_000)));
    (0..70).for_each(|number| second.insert(number, &block(3, number, 1_000)));
    assert!((0..30).all(|number| is_kept(&hot, number)));
    assert!((0..70).all(|number| !is_kept(&first, number) && is_kept(&second, number)));
}

#[test]
fn a_round_ends_when_every_block_was_touched() {
    let cache = cache_of(10 * cost(&block(0, 0, 100)));
    let table = slots(&cache, 11);
    for number in 0..10 {
        table.insert(number, &block(1, number, 100));
        assert!(table.get(number).is_some());
    }
    table.insert(10, &block(1, 10, 100));
    assert!(!is_kept(&table, 0) && (1..11).all(|number| is_kept(&table, number)));
    check(&cache, &[table]);
}

#[test]
fn a_block_that_comes_back_soon_after_it_left_is_kept() {
    let cache = cache_of(100 * cost(&block(0, 0, 1_000)));
    let (back, hot, scanned) = (slots(&cache, 1), slots(&cache, 80), slots(&cache, 5_000));
    let scan = |numbers: std::ops::Range<usize>| {
        numbers.for_each(|number| scanned.insert(number, &block(3, number, 1_000)));
    };
    for number in 0..80 {
        hot.insert(number, &block(2, number, 1_000));
        assert!(hot.get(number).is_some());
    }
    back.insert(0, &block(1, 0, 1_000));
    scan(0..100);
    assert!(!is_kept(&back, 0), "asked for by nobody");
    back.insert(0, &block(1, 0, 1_000));
    scan(100..150);
    assert!(is_kept(&back, 0), "a scan pushes out its own blocks");
    let mut left_once = slots(&cache, 1);
    left_once.insert(0, &block(4, 0, 1_000));
    scan(150..1_000);
    assert!(!is_kept(&left_once, 0));
    left_once.insert(0, &block(4, 0, 1_000));
    scan(1_000..1_050);
    assert!(!is_kept(&left_once, 0), "it came back too late");
    left_once = slots(&cache, 1);
    check(&cache, &[back, hot, scanned, left_once]);
}

#[test]
fn large_blocks_that_were_read_once_go_before_small_ones_that_were_read_again() {
    let (small, large) = (block(0, 0, 1_000), block(0, 0, 100_000));
    let cache = cache_of(1_000 * cost(&small));
    let (hot, once) = (slots(&cache, 500), slots(&cache, 200));
    for number in 0..500 {
        hot.insert(number, &block(1, number, 1_000));
        (0..2).for_each(|_| assert!(hot.get(number).is_some()));
    }
    for number in 0..200 {
        once.insert(number, &block(2, number, 100_000));
        assert!((0..500).all(|number| is_kept(&hot, number)), "after {number}");
    }
    let fresh = (0..200).filter(|number| is_kept(&once, *number)).count() as u64;
    assert!(fresh > 0 && fresh * cost(&large) <= 600 * cost(&small));
    check(&cache, &[hot, once]);
}

#[test]
fn slots_for_anything_remember_nothing() {
    let cache = cache_of(20 * cost(&block(0, 0, 1_000)));
    let any = BlockSlots::new(cache.share(), Arc::new(Life::new("store".as_ref())), 400, false);
    for round in 0..2 {
        (0..400).for_each(|number| any.insert(number, &block(round, number, 1_000)));
        assert_eq!(lock(&cache.queues).kept.len(), 0, "nothing was asked for");
    }
    check(&cache, &[any]);
}

#[test]
fn eras_are_remembered_for_a_while_also_when_their_numbers_begin_anew() {
    let mut era = Era::default();
    for _ in 0..600 {
        let number = era.number;
        assert!(number > 0 && era.remembers(number) && !era.remembers(0));
        for age in 0..8 {
            assert_eq!(era.remembers(number), age < REMEMBERED, "era {number}, {age} later");
            (0..25).for_each(|_| era.notes_one(100));
        }
        (0..25 * 248).for_each(|_| era.notes_one(100));
    }
}

/// Blocks are requested by rank: the n-th one n times as rarely as the first.
#[test]
fn popular_blocks_among_many_rare_ones_miss_less_than_with_the_least_recent_one_pushed_out() {
    const BLOCKS: usize = 2_000;
    const ROOM: usize = 200;
    let cache = cache_of(ROOM as u64 * cost(&block(0, 0, 100)));
    let table = slots(&cache, BLOCKS);
    let weights = (1..=BLOCKS).map(|rank| 1.0 / rank as f64);
    let sums: Vec<f64> =
        weights.scan(0.0, |sum, weight| Some(std::mem::replace(sum, *sum + weight))).collect();
    let mut random = 1u64;
    let (mut misses, mut misses_least_recent) = (0, 0);
    let mut recent: Vec<usize> = Vec::new();
    for _ in 0..40_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let point = (random >> 11) as f64 / (1u64 << 53) as f64 * sums[BLOCKS - 1];
        let number = sums.partition_point(|sum| *sum <= point) - 1;
        if table.get(number).is_none() {
            misses += 1;
            table.insert(number, &block(0, number, 100));
        }
        match recent.iter().position(|other| *other == number) {
            Some(place) => drop(recent.remove(place)),
            None => misses_least_recent += 1,
        }
        recent.push(number);
        if recent.len() > ROOM {
            recent.remove(0);
        }
    }
    assert!(misses * 10 < misses_least_recent * 9, "{misses}, LRU {misses_least_recent}");
    check(&cache, &[table]);
}

#[test]
fn the_first_of_two_stays() {
    let cache = cache_of(1 << 20);
    let table = slots(&cache, 1);
    let (first, second) = (block(1, 0, 10), block(1, 0, 10));
    table.insert(0, &first);
    table.insert(0, &second);
    let same =
        |block: &Block| block.bytes(0..1).as_ptr() == table.get(0).unwrap().bytes(0..1).as_ptr();
    assert!(same(&first) && !same(&second));
    check(&cache, &[table]);
}

#[test]
fn no_budget_is_no_cache() {
    let cache = cache_of(0);
    let table = slots(&cache, 1_000);
    table.insert(1, &block(1, 1, 10));
    assert!(table.get(1).is_none());
    assert_eq!((cache.size_bytes(), table.heap_bytes()), (0, 0));
}

#[test]
fn a_block_greater_than_the_budget_pushes_nothing_out() {
    let small = block(1, 0, 100);
    let cache = cache_of(cost(&small));
    let table = slots(&cache, 2);
    table.insert(0, &small);
    table.insert(1, &block(1, 1, 101));
    assert!(is_kept(&table, 0) && !is_kept(&table, 1));
    check(&cache, &[table]);
}

#[test]
fn a_table_that_goes_gives_its_bytes_back_at_once() {
    let cache = cache_of(1 << 20);
    let (goes, stays) = (slots(&cache, 10), slots(&cache, 10));
    for number in 0..10 {
        goes.insert(number, &block(1, number, 500));
        stays.insert(number, &block(2, number, 900));
    }
    let (held, used) = (goes.get(3).unwrap(), cache.size_bytes());
    drop(goes);
    assert!((1..used).contains(&cache.size_bytes()));
    assert!((0..10).all(|number| is_kept(&stays, number)));
    assert!(is_block(&held, 1, 3), "who holds a block keeps it");
    check(&cache, &[stays]);
    assert_eq!(cache.size_bytes(), 0, "all tables are gone");
}

/// Reads every block of an open table, as a reader does: what is not cached is read again.
fn read_all(table: &(u64, BlockSlots)) {
    let (name, slots) = table;
    for number in 0..BLOCKS {
        match slots.get(number) {
            Some(found) => assert!(is_block(&found, *name, number), "a block of another place"),
            None => slots.insert(number, &block(*name, number, 200 + number)),
        }
    }
}

/// A share's size used to be a sum over its tables, one after another. Blocks evicted meanwhile
/// were counted beside those that replaced them.
#[test]
fn a_share_of_a_busy_cache_never_exceeds_the_budget() {
    const BLOCKS: usize = 400;
    let cache = cache_of(100 * cost(&block(0, 0, 200)));
    let share = cache.share();
    let tables: Vec<_> = (0..20).map(|_| slots_of(&share, BLOCKS)).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                assert!(share.size_bytes() <= cache.bytes_max, "{}", share.size_bytes());
            }
        });
        for round in 0..5 {
            for (name, table) in tables.iter().enumerate() {
                (0..BLOCKS).for_each(|number| table.insert(number, &block(round, name, 200)));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    check(&cache, &tables);
}

#[test]
fn readers_meet_tables_that_go() {
    let cache = cache_of(50 * cost(&block(0, 0, 200)));
    let open = |name| Arc::new((name, slots(&cache, BLOCKS)));
    let tables = Mutex::new([open(0), open(1)]);
    let done = AtomicBool::new(false);
    let read = || {
        while !done.load(Ordering::Relaxed) {
            let at_hand = lock(&tables).clone();
            at_hand.iter().for_each(|table| read_all(table));
            assert!(cache.size_bytes() <= cache.bytes_max);
        }
    };
    std::thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read)];
        for name in 2..2_000 {
            let gone = std::mem::replace(&mut lock(&tables)[name as usize % 2], open(name));
            drop(gone);
            if name % 16 == 0 {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    let left = tables.into_inner().unwrap().map(|table| Arc::into_inner(table).expect("ours").1);
    check(&cache, &left);
    drop(left);
    assert_eq!((cache.size_bytes(), lock(&cache.queues).places()), (0, 0));
}

/// See `models.rs`.
#[cfg(loom)]
mod loom_models {
    use super::*;

    #[test]
    fn a_slot_has_the_right_block_or_none() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let [first, second] = [block(1, 0, 100), block(1, 1, 100)];
            let cache = cache_of(cost(&first) + cost(&second) / 2);
            let table = Arc::new(slots(&cache, 2));
            let others = [(0, first.clone()), (1, second)].map(|(number, block)| {
                let table = Arc::clone(&table);
                loom::thread::spawn(move || table.insert(number, &block))
            });
            for number in 0..2 {
                let found = table.get(number);
                assert!(found.is_none_or(|found| is_block(&found, 1, number)));
            }
            others.into_iter().for_each(|thread| thread.join().unwrap());
            let table = Arc::into_inner(table).unwrap();
            check(&cache, std::slice::from_ref(&table));
            drop(table);
            assert_eq!(cache.size_bytes(), 0);
        });
    }
}
