//! Decides which sub-filters of which tables are in memory: ElasticBF's multi-queue.
//! ```text
//!      least recently accessed          most recently accessed
//! Q_m  [table] [table]                                         m sub-filters each
//! ...                                       ^
//! Q_1  [table] [table] [table] [table]      | one more, if that lowers the expected needless reads
//! Q_0  [table]                              v one less, if expired: not accessed for a lifetime
//! ```
//! Time counts queries, not seconds, so the same queries give the same sub-filters. Nothing here
//! reads a file: the caller is told what to load and what to drop.
//!
//! Invariants: Q_i has the tables with exactly i sub-filters. A table that gains a sub-filter takes
//! its memory from free memory or from expired tables. These are searched from Q_m to Q_1, each
//! queue from the least recently accessed table on. The sub-filter moves only if this lowers the
//! expected number of needless reads: the sum over tables of frequency times false positive rate.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use trommel_filters::{Adjustment, SubFilterPolicy, TableSubFilters};

/// All frequencies are halved after this many lifetimes, so that tables do not stay hot forever.
const LIFETIMES_TO_HALVE: u64 = 64;
/// The maximum number of expired tables to consider for one adjustment.
const VICTIMS_MAX: usize = 64;
const LIFETIME_LEAST: u64 = 16;

struct Tracked {
    of: TableSubFilters,
    loaded: u8,
    frequency: f64,
    expires: u64,
    /// Its position in its queue.
    stamp: u64,
}

impl Tracked {
    /// The needless reads expected with `sub_filters` sub-filters.
    fn needless_reads(&self, sub_filters: u8) -> f64 {
        self.frequency * self.of.sub_filter_rate.powi(i32::from(sub_filters))
    }

    /// How many needless reads one more sub-filter saves.
    fn gain(&self) -> f64 {
        self.needless_reads(self.loaded) - self.needless_reads(self.loaded + 1)
    }

    /// How many needless reads are added with one sub-filter less. Requires: it has one.
    fn loss(&self) -> f64 {
        self.needless_reads(self.loaded - 1) - self.needless_reads(self.loaded)
    }
}

/// Decides how many sub-filters of each table are in memory. The caller numbers the tables.
#[derive(Default)]
pub struct ElasticPolicy {
    /// None: as many queries as there are tables.
    life_time: Option<u64>,
    budget_bytes: u64,
    loaded_bytes: u64,
    now: u64,
    halve_at: u64,
    stamp: u64,
    tables: HashMap<u64, Tracked>,
    /// Q_0 to Q_m: tables by the time stamp of their last access.
    queues: Vec<BTreeMap<u64, u64>>,
}

impl ElasticPolicy {
    /// A policy without tables and without a memory budget. `life_time`: a table without an access
    /// during this many queries is expired; None: as many as there are tables. The paper finds that
    /// only the order of magnitude matters.
    pub fn new(life_time: Option<u64>) -> Self {
        ElasticPolicy { life_time, ..ElasticPolicy::default() }
    }

    /// Removes a table, whose sub-filters are no longer in memory.
    pub fn remove(&mut self, table: u64) {
        if let Some(gone) = self.tables.remove(&table) {
            self.queues[usize::from(gone.loaded)].remove(&gone.stamp);
            self.loaded_bytes -= u64::from(gone.loaded) * gone.of.sub_filter_bytes;
        }
    }

    /// The number of a table's sub-filters in memory. None: there is no such table.
    pub fn units(&self, table: u64) -> Option<u8> {
        self.tables.get(&table).map(|tracked| tracked.loaded)
    }

    /// Sums a number over all tables, in a fixed order: the same on every machine.
    fn sum(&self, number: impl Fn(&Tracked) -> f64) -> f64 {
        let mut numbers: Vec<f64> = self.tables.values().map(number).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        numbers.iter().sum()
    }

    fn life_time(&self) -> u64 {
        let tables = self.tables.len() as u64;
        self.life_time.unwrap_or(tables.max(LIFETIME_LEAST))
    }

    /// Returns a table with a sub-filter to drop, as an element of a heap: the greatest saves least
    /// per byte. (Savings are not negative, and such numbers sort like their bits.)
    fn to_give_up(&self, table: u64) -> Option<Reverse<(u64, u64)>> {
        let tracked = &self.tables[&table];
        let gives_room = tracked.loaded > 0 && tracked.of.sub_filter_bytes > 0;
        let loss_per_byte = || tracked.loss() / tracked.of.sub_filter_bytes as f64;
        gives_room.then(|| Reverse((loss_per_byte().to_bits(), table)))
    }

    /// Returns expired tables with a sub-filter, from Q_m to Q_1, each queue from the least
    /// recently accessed on.
    fn expired(&self) -> impl Iterator<Item = (u64, &Tracked)> {
        let queues = self.queues.iter().skip(1).rev();
        queues.flat_map(|queue| {
            let tables = queue.values().map(|table| (*table, &self.tables[table]));
            tables.take_while(|(_, tracked)| tracked.expires < self.now)
        })
    }

    fn set_sub_filters(&mut self, table: u64, sub_filters: u8) {
        let tracked = &self.tables[&table];
        let (before, sub_filter_bytes) = (tracked.loaded, tracked.of.sub_filter_bytes);
        self.loaded_bytes -= u64::from(before) * sub_filter_bytes;
        self.loaded_bytes += u64::from(sub_filters) * sub_filter_bytes;
        self.enqueue(table, sub_filters);
    }

    /// Moves a table to the recent end of a queue; it expires a lifetime from now. Requires: the
    /// table exists.
    fn enqueue(&mut self, table: u64, sub_filters: u8) {
        let expires = self.now.saturating_add(self.life_time());
        self.stamp += 1;
        let tracked = self.tables.get_mut(&table).expect("the caller has it");
        if let Some(queue) = self.queues.get_mut(usize::from(tracked.loaded)) {
            queue.remove(&tracked.stamp);
        }
        (tracked.loaded, tracked.expires, tracked.stamp) = (sub_filters, expires, self.stamp);
        if self.queues.len() <= usize::from(sub_filters) {
            self.queues.resize_with(usize::from(sub_filters) + 1, BTreeMap::new);
        }
        self.queues[usize::from(sub_filters)].insert(self.stamp, table);
    }
}

impl SubFilterPolicy for ElasticPolicy {
    /// Sets the memory budget of all sub-filters. If they exceed it, call
    /// [`shrink`](SubFilterPolicy::shrink).
    fn set_budget_bytes(&mut self, bytes: u64) {
        self.budget_bytes = bytes;
    }

    /// The memory budget of all sub-filters.
    fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// The memory of the loaded sub-filters.
    fn loaded_bytes(&self) -> u64 {
        self.loaded_bytes
    }

    /// Adds a table with `loaded` sub-filters in memory. A table that exists already stays as it
    /// is.
    fn insert(&mut self, table: u64, of: TableSubFilters, loaded: u8) {
        assert!(loaded <= of.count, "{loaded} of {} sub-filters", of.count);
        if self.tables.contains_key(&table) {
            return;
        }
        self.loaded_bytes += u64::from(loaded) * of.sub_filter_bytes;
        let tracked = Tracked { of, loaded, frequency: 0.0, expires: 0, stamp: 0 };
        self.tables.insert(table, tracked);
        self.enqueue(table, loaded);
    }

    /// Removes the tables for which `stays` is false, and returns them.
    fn retain(&mut self, stays: &dyn Fn(u64) -> bool) -> Vec<u64> {
        let mut gone: Vec<u64> =
            self.tables.keys().copied().filter(|table| !stays(*table)).collect();
        gone.sort_unstable();
        gone.iter().for_each(|table| self.remove(*table));
        gone
    }

    /// Records that one of a table's sub-filters is unavailable. Requires: not all of them are in
    /// memory.
    fn lose_one(&mut self, table: u64) {
        if let Some(tracked) = self.tables.get_mut(&table) {
            assert!(tracked.loaded < tracked.of.count, "a sub-filter in memory cannot be lost");
            tracked.of.count -= 1;
        }
    }

    /// Returns the tables of each queue, from Q_0 on, least recently accessed first.
    fn queues(&self) -> Vec<Vec<u64>> {
        self.queues.iter().map(|queue| queue.values().copied().collect()).collect()
    }

    /// The needless reads expected for the counted queries, with the sub-filters in memory.
    fn expected_needless_reads(&self) -> f64 {
        self.sum(|table| table.needless_reads(table.loaded))
    }

    /// The number of counted queries, after halvings.
    fn counted_questions(&self) -> f64 {
        self.sum(|table| table.frequency)
    }

    /// Advances time by one query of the store.
    fn tick(&mut self) {
        self.now += 1;
        if self.now >= self.halve_at {
            if self.halve_at > 0 {
                self.tables.values_mut().for_each(|table| table.frequency /= 2.0);
            }
            let time = self.life_time().saturating_mul(LIFETIMES_TO_HALVE);
            self.halve_at = self.now.saturating_add(time);
        }
    }

    /// Counts a query of a table that had no entry for it: only its filter could have saved the
    /// read.
    fn note_empty_query(&mut self, table: u64) {
        let Some(tracked) = self.tables.get_mut(&table) else { return };
        tracked.frequency += 1.0;
        let loaded = tracked.loaded;
        self.enqueue(table, loaded);
    }

    /// The needless reads that one more sub-filter of a table would save per byte. 0: none is
    /// available.
    fn worth(&self, table: u64) -> f64 {
        let Some(tracked) = self.tables.get(&table) else { return 0.0 };
        let none_left = tracked.loaded >= tracked.of.count;
        if none_left { 0.0 } else { tracked.gain() / tracked.of.sub_filter_bytes.max(1) as f64 }
    }

    /// Proposes that a table gains a sub-filter, and which tables lose one for it. None: it has all
    /// of them, expired tables have too little to give, or needless reads would not decrease.
    fn adjustment(&self, table: u64) -> Option<Adjustment> {
        let wanting = self.tables.get(&table)?;
        if wanting.loaded >= wanting.of.count {
            return None;
        }
        let room = self.budget_bytes.saturating_sub(self.loaded_bytes);
        let mut missing = wanting.of.sub_filter_bytes.saturating_sub(room);
        let (mut drop, mut loss) = (Vec::new(), 0.0);
        if missing > 0 {
            for (victim, tracked) in self.expired().filter(|(victim, _)| *victim != table) {
                drop.push(victim);
                loss += tracked.loss();
                missing = missing.saturating_sub(tracked.of.sub_filter_bytes);
                if missing == 0 || loss >= wanting.gain() || drop.len() == VICTIMS_MAX {
                    break;
                }
            }
        }
        (missing == 0 && wanting.gain() > loss).then_some(Adjustment { load: table, drop })
    }

    /// Makes an adjustment. Requires: nothing has changed since it was proposed.
    fn apply(&mut self, adjustment: &Adjustment) {
        for victim in &adjustment.drop {
            let sub_filters = self.units(*victim).expect("tables stay while an adjustment is made");
            self.set_sub_filters(*victim, sub_filters - 1);
        }
        let sub_filters =
            self.units(adjustment.load).expect("tables stay while an adjustment is made");
        self.set_sub_filters(adjustment.load, sub_filters + 1);
    }

    /// Drops sub-filters until the others fit into the budget: always the one that saves least per
    /// byte. Returns a table for each sub-filter dropped; a table may occur several times.
    fn shrink(&mut self) -> Vec<u64> {
        let mut dropped = Vec::new();
        if self.loaded_bytes <= self.budget_bytes {
            return dropped;
        }
        let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
            self.tables.keys().filter_map(|&table| self.to_give_up(table)).collect();
        while self.loaded_bytes > self.budget_bytes {
            let Some(Reverse((_, table))) = heap.pop() else { break };
            let sub_filters = self.tables[&table].loaded;
            self.set_sub_filters(table, sub_filters - 1);
            dropped.push(table);
            heap.extend(self.to_give_up(table));
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sub-filters of 100 bytes that halve the rate, `sub_filters` of them available.
    fn of(sub_filters: u8) -> TableSubFilters {
        TableSubFilters { sub_filter_bytes: 100, sub_filter_rate: 0.5, count: sub_filters }
    }

    /// Tables 0, 1, 2, … with these numbers of sub-filters in memory, and no free memory.
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
            policy.note_empty_query(table);
        }
    }

    // Figure 4 of the paper: the elements of Q_i are the tables that have enabled exactly i
    // sub-filters.
    #[test]
    fn a_queue_has_the_tables_with_as_many_sub_filters() {
        let mut policy = full(10, &[2, 0, 1, 2, 4]);
        assert_eq!(policy.queues(), [vec![1], vec![2], vec![0, 3], vec![], vec![4]]);
        ask(&mut policy, 0, 1);
        assert_eq!(policy.queues()[2], [3, 0], "the most recently asked one comes last");
        policy.remove(3);
        assert_eq!(policy.queues()[2], [0]);
        assert_eq!(policy.loaded_bytes(), 700);
    }

    // Section 3.3: a table that was not read in the past lifetime is expired, and gives one
    // sub-filter.
    #[test]
    fn an_expired_table_gives_a_sub_filter_to_a_hot_one() {
        let mut policy = full(10, &[1, 1]);
        ask(&mut policy, 0, 10);
        assert_eq!(policy.adjustment(0), None, "nothing is expired: skipped this time");
        ask(&mut policy, 0, 1);
        let adjustment = policy.adjustment(0).expect("table 1 is expired");
        assert_eq!(adjustment, Adjustment { load: 0, drop: vec![1] });
        let before = policy.expected_needless_reads();
        policy.apply(&adjustment);
        assert!(policy.expected_needless_reads() < before);
        assert_eq!(policy.queues(), [vec![1], vec![], vec![0]]);
        assert_eq!(policy.loaded_bytes(), policy.budget_bytes());
    }

    // Section 3.3: from Q_m to Q_1, in each from the LRU side, and on to the next queue at one that
    // is not expired.
    #[test]
    fn expired_tables_are_searched_from_the_top() {
        let mut policy = full(10, &[3, 1, 3, 2, 1]);
        ask(&mut policy, 4, 5);
        ask(&mut policy, 0, 1);
        ask(&mut policy, 4, 6);
        // 2 is expired. 0, accessed five queries ago, is not, and is at the recent end of its
        // queue.
        assert_eq!(policy.adjustment(4).expect("2 gives").drop, [2]);
        policy.apply(&Adjustment { load: 4, drop: vec![2] });
        // A downgraded table has a new lifetime. Next is 3, which was in Q_2 before 2 came there.
        assert_eq!(policy.adjustment(4).expect("3 gives").drop, [3]);
        policy.apply(&Adjustment { load: 4, drop: vec![3] });
        assert_eq!(policy.adjustment(4).expect("1 gives").drop, [1]);
        policy.apply(&Adjustment { load: 4, drop: vec![1] });
        assert_eq!(policy.queues(), [vec![1], vec![3], vec![2], vec![0], vec![4]]);
        assert_eq!(policy.adjustment(4), None, "it has all its sub-filters");
    }

    // Section 3.2: "only when the metric E[Extra IO] could be reduced under the fixed memory
    // usage".
    #[test]
    fn an_adjustment_that_spares_nothing_is_not_made() {
        let mut policy = full(10, &[1, 1]);
        ask(&mut policy, 1, 100);
        ask(&mut policy, 0, 11);
        // 1 is expired, but was accessed so often that its sub-filter saves more than a second one
        // of 0 would.
        assert_eq!(policy.adjustment(0), None);
        ask(&mut policy, 0, 189);
        assert_eq!(
            policy.adjustment(0),
            None,
            "200 questions times 1/4 are as many as 100 times 1/2"
        );
        ask(&mut policy, 0, 1);
        assert_eq!(policy.adjustment(0).expect("more now").drop, [1]);
    }

    #[test]
    fn free_memory_goes_to_whoever_asks_for_it_first() {
        let mut policy = full(10, &[0, 0]);
        policy.set_budget_bytes(250);
        ask(&mut policy, 1, 1);
        for sub_filters in 1..=2 {
            let adjustment = policy.adjustment(1).expect("there is room");
            assert!(adjustment.drop.is_empty());
            policy.apply(&adjustment);
            assert_eq!(policy.units(1), Some(sub_filters));
        }
        assert_eq!(policy.adjustment(1), None, "50 bytes are too few, and no table has expired");
    }

    #[test]
    fn small_tables_pay_for_a_large_one_together() {
        let mut policy = full(10, &[1, 1, 1]);
        policy.insert(
            9,
            TableSubFilters { sub_filter_bytes: 250, sub_filter_rate: 0.5, count: 2 },
            0,
        );
        ask(&mut policy, 9, 12);
        let adjustment = policy.adjustment(9).expect("they are expired");
        assert_eq!(adjustment.drop, [0, 1, 2]);
        policy.apply(&adjustment);
        assert_eq!((policy.units(9), policy.loaded_bytes()), (Some(1), 250));
        policy.insert(
            10,
            TableSubFilters { sub_filter_bytes: 400, sub_filter_rate: 0.5, count: 2 },
            0,
        );
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
        // The last sub-filters of 0 save 3/16, 3/8, 3/4 and 3/2 reads, those of 1 save 25 and more,
        // that of 2 saves 5.
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
        assert_eq!(
            policy.counted_questions(),
            60.0 / 2.0 + (4.0 / 2.0 + 6.0),
            "at the 65th question"
        );
    }

    #[test]
    fn a_sub_filter_that_is_lost_is_not_asked_for_again() {
        let mut policy = full(10, &[1]);
        policy.set_budget_bytes(1000);
        ask(&mut policy, 0, 1);
        (0..3).for_each(|_| policy.lose_one(0));
        assert_eq!((policy.adjustment(0), policy.worth(0)), (None, 0.0));
        policy.lose_one(99);
        assert_eq!((policy.units(99), policy.adjustment(99)), (None, None));
    }

    #[test]
    fn tables_that_leave_give_back_their_memory() {
        let mut policy = full(10, &[1, 2, 3]);
        assert_eq!(policy.retain(&|table| table == 1), [0, 2]);
        assert_eq!((policy.loaded_bytes(), policy.units(0)), (200, None));
        policy.insert(1, of(4), 4);
        assert_eq!(policy.units(1), Some(2), "a table that is there stays as it is");
    }

    /// Zipf's law over 200 tables, against equal shares of the same memory. The best division, with
    /// any fractions of bits, would leave 46 of 100 needless reads. That is the ratio of the
    /// frequencies' geometric mean to their mean.
    #[test]
    fn skewed_questions_settle_well_below_equal_shares() {
        let tables = 200u64;
        let mut policy = ElasticPolicy::new(None);
        (0..tables).for_each(|table| policy.insert(table, of(8), 2));
        policy.set_budget_bytes(tables * 3 * 100);
        let mut state = 1u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1u64 << 24) as f64
        };
        let mut adjustments = 0;
        for _ in 0..40_000 {
            // The logarithm of the table's rank is spread evenly: Zipf's law of exponent 1.
            let table = ((tables as f64 + 1.0).powf(random()) - 1.0) as u64;
            policy.tick();
            policy.note_empty_query(table);
            if let Some(adjustment) = policy.adjustment(table) {
                policy.apply(&adjustment);
                adjustments += 1;
                assert!(policy.loaded_bytes() <= policy.budget_bytes());
            }
        }
        let equal = policy.counted_questions() / 8.0;
        let settled = policy.expected_needless_reads();
        assert!(settled < 0.55 * equal, "{settled} expected, {equal} with equal shares");
        assert!(adjustments < 4000, "{adjustments} sub-filters were moved");
        let sizes: Vec<usize> = policy.queues().iter().map(Vec::len).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 200);
    }

    #[test] // Large lifetimes once overflowed.
    fn a_lifetime_without_end_expires_nobody() {
        let mut policy = full(u64::MAX, &[2, 0, 1]);
        ask(&mut policy, 0, 50);
        assert_eq!(policy.queues(), [vec![1], vec![2], vec![0]]);
        assert_eq!(policy.expired().count(), 0);
    }
}
