//! The multi-queue, move by move.

use super::*;

/// Units of 100 bytes that halve the rate, `units` of them to be had.
fn of(units: u8) -> UnitsOfTable {
    UnitsOfTable { unit_bytes: 100, unit_rate: 0.5, units }
}

/// Tables 0, 1, 2, … with so many units in memory, nothing free.
fn full(life_time: u64, loaded: &[u8]) -> ElasticPolicy {
    let mut policy = ElasticPolicy::new(Some(life_time));
    for (table, &loaded) in (0..).zip(loaded) {
        policy.insert(table, of(4), loaded);
    }
    policy.set_budget_bytes(policy.loaded_bytes());
    policy
}

fn ask(policy: &mut ElasticPolicy, table: u64, times: u64) {
    for _ in 0..times {
        policy.tick();
        policy.asked(table);
    }
}

fn queues(policy: &ElasticPolicy) -> Vec<Vec<u64>> {
    policy.queues().collect()
}

// Figure 4 of the paper: the elements of Q_i are the tables that have enabled exactly i units.
#[test]
fn a_queue_has_the_tables_with_as_many_units() {
    let mut policy = full(10, &[2, 0, 1, 2, 4]);
    assert_eq!(queues(&policy), [vec![1], vec![2], vec![0, 3], vec![], vec![4]]);
    ask(&mut policy, 0, 1);
    assert_eq!(queues(&policy)[2], [3, 0], "the most recently asked one comes last");
    policy.remove(3);
    assert_eq!(queues(&policy)[2], [0]);
    assert_eq!(policy.loaded_bytes(), 700);
}

// Section 3.3: a table that was not read in the past lifetime is expired, and gives one unit.
#[test]
fn an_expired_table_gives_a_unit_to_a_hot_one() {
    let mut policy = full(10, &[1, 1]);
    ask(&mut policy, 0, 10);
    assert_eq!(policy.adjustment(0), None, "nothing is expired: skipped this time");
    ask(&mut policy, 0, 1);
    let adjustment = policy.adjustment(0).expect("table 1 is expired");
    assert_eq!(adjustment, Adjustment { load: 0, drop: vec![1] });
    let before = policy.expected_needless_reads();
    policy.apply(&adjustment);
    assert!(policy.expected_needless_reads() < before);
    assert_eq!(queues(&policy), [vec![1], vec![], vec![0]]);
    assert_eq!(policy.loaded_bytes(), policy.budget_bytes());
}

// Section 3.3: from Q_m to Q_1, in each from the LRU side, and on to the next queue at one that is not expired.
#[test]
fn expired_tables_are_searched_from_the_top() {
    let mut policy = full(10, &[3, 1, 3, 2, 1]);
    ask(&mut policy, 4, 5);
    ask(&mut policy, 0, 1);
    ask(&mut policy, 4, 6);
    // 2 is expired; 0, asked five questions ago, is not, and is the recent end of its queue.
    assert_eq!(policy.adjustment(4).expect("2 gives").drop, [2]);
    policy.apply(&Adjustment { load: 4, drop: vec![2] });
    // A table that was downgraded has a lifetime before it: 3 is next, which was in Q_2 before 2 came there.
    assert_eq!(policy.adjustment(4).expect("3 gives").drop, [3]);
    policy.apply(&Adjustment { load: 4, drop: vec![3] });
    assert_eq!(policy.adjustment(4).expect("1 gives").drop, [1]);
    policy.apply(&Adjustment { load: 4, drop: vec![1] });
    assert_eq!(queues(&policy), [vec![1], vec![3], vec![2], vec![0], vec![4]]);
    assert_eq!(policy.adjustment(4), None, "it has all its units");
}

// Section 3.2: "only when the metric E[Extra IO] could be reduced under the fixed memory usage".
#[test]
fn an_adjustment_that_spares_nothing_is_not_made() {
    let mut policy = full(10, &[1, 1]);
    ask(&mut policy, 1, 100);
    ask(&mut policy, 0, 11);
    // 1 is expired, but was asked so often that its unit spares more reads than a second one of 0.
    assert_eq!(policy.adjustment(0), None);
    ask(&mut policy, 0, 189);
    assert_eq!(policy.adjustment(0), None, "200 questions times 1/4 are as many as 100 times 1/2");
    ask(&mut policy, 0, 1);
    assert_eq!(policy.adjustment(0).expect("more now").drop, [1]);
}

#[test]
fn free_memory_goes_to_whoever_asks_for_it_first() {
    let mut policy = full(10, &[0, 0]);
    policy.set_budget_bytes(250);
    ask(&mut policy, 1, 1);
    for units in 1..=2 {
        let adjustment = policy.adjustment(1).expect("there is room");
        assert!(adjustment.drop.is_empty());
        policy.apply(&adjustment);
        assert_eq!(policy.units(1), Some(units));
    }
    assert_eq!(policy.adjustment(1), None, "50 bytes are too few, and no table has expired");
}

#[test]
fn small_tables_pay_for_a_large_one_together() {
    let mut policy = full(10, &[1, 1, 1]);
    policy.insert(9, UnitsOfTable { unit_bytes: 250, unit_rate: 0.5, units: 2 }, 0);
    ask(&mut policy, 9, 12);
    let adjustment = policy.adjustment(9).expect("they are expired");
    assert_eq!(adjustment.drop, [0, 1, 2]);
    policy.apply(&adjustment);
    assert_eq!((policy.units(9), policy.loaded_bytes()), (Some(1), 250));
    policy.insert(10, UnitsOfTable { unit_bytes: 400, unit_rate: 0.5, units: 2 }, 0);
    ask(&mut policy, 10, 30);
    assert_eq!(policy.adjustment(10), None, "all that is expired is not enough");
}

#[test]
fn less_memory_takes_what_spares_least() {
    let mut policy = full(10, &[4, 2, 1]);
    ask(&mut policy, 0, 3);
    ask(&mut policy, 1, 100);
    ask(&mut policy, 2, 10);
    policy.set_budget_bytes(300);
    // The last units of 0 spare 3/16, 3/8, 3/4 and 3/2 reads, those of 1 spare 25 and more, that of 2 spares 5.
    assert_eq!(policy.shrink(), [0, 0, 0, 0]);
    assert_eq!((policy.loaded_bytes(), policy.shrink()), (300, vec![]));
    policy.set_budget_bytes(0);
    assert_eq!(policy.shrink(), [2, 1, 1]);
}

#[test]
fn what_was_hot_once_does_not_stay_so() {
    let mut policy = full(1, &[1, 1]);
    policy.insert(7, of(1), 0);
    ask(&mut policy, 0, 60);
    assert_eq!(policy.counted_questions(), 60.0);
    ask(&mut policy, 7, 10);
    assert_eq!(policy.counted_questions(), 60.0 / 2.0 + (4.0 / 2.0 + 6.0), "at the 65th question");
}

#[test]
fn a_unit_that_is_lost_is_not_asked_for_again() {
    let mut policy = full(10, &[1]);
    policy.set_budget_bytes(1000);
    ask(&mut policy, 0, 1);
    (0..3).for_each(|_| policy.lose_unit(0));
    assert_eq!((policy.adjustment(0), policy.worth(0)), (None, 0.0));
    policy.lose_unit(99);
    assert_eq!((policy.units(99), policy.adjustment(99)), (None, None));
}

#[test]
fn tables_that_leave_give_back_their_memory() {
    let mut policy = full(10, &[1, 2, 3]);
    assert_eq!(policy.retain(|table| table == 1), [0, 2]);
    assert_eq!((policy.loaded_bytes(), policy.units(0)), (200, None));
    policy.insert(1, of(4), 4);
    assert_eq!(policy.units(1), Some(2), "a table that is there stays as it is");
}

/// Zipf's law over 200 tables: of what equal shares of the same memory leave, the best division of bits (any number of them) would
/// leave 46 of 100 needless reads, the mean of frequencies to their geometric mean.
#[test]
fn skewed_questions_settle_well_below_equal_shares() {
    let tables = 200u64;
    let mut policy = ElasticPolicy::new(None);
    (0..tables).for_each(|table| policy.insert(table, of(8), 2));
    policy.set_budget_bytes(tables * 3 * 100);
    let mut state = 1u64;
    let mut random = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut adjustments = 0;
    for _ in 0..40_000 {
        // The logarithm of the table's rank is spread evenly: Zipf's law of exponent 1.
        let table = ((tables as f64 + 1.0).powf(random()) - 1.0) as u64;
        policy.tick();
        policy.asked(table);
        if let Some(adjustment) = policy.adjustment(table) {
            policy.apply(&adjustment);
            adjustments += 1;
            assert!(policy.loaded_bytes() <= policy.budget_bytes());
        }
    }
    let equal = policy.counted_questions() / 8.0;
    let settled = policy.expected_needless_reads();
    assert!(settled < 0.55 * equal, "{settled} expected, {equal} with equal shares");
    assert!(adjustments < 4000, "{adjustments} units were moved");
    let sizes: Vec<usize> = policy.queues().map(|queue| queue.len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 200);
}

#[test] // Times beyond all questions overflowed.
fn a_lifetime_without_end_expires_nobody() {
    let mut policy = full(u64::MAX, &[2, 0, 1]);
    ask(&mut policy, 0, 50);
    assert_eq!(queues(&policy), [vec![1], vec![2], vec![0]]);
    assert_eq!(policy.expired().count(), 0);
}
