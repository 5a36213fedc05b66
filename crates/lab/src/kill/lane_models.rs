//! The model of a killed store: the expected contents, lane by lane.
//! ```text
//! base | write  write  write? | write  write  write?    write? was under way when its process
//!      '---- session 1 -----'  '---- session 2 ----'    was killed
//! ```
//! Invariant: an acknowledged write is there, at its place in the order. A write that was under way
//! is there as a whole or not at all. In a key space without a log, the last writes may be missing.
//! The state that a check finds is the next base.

use std::ops::RangeInclusive;

use super::history::{Change, LANES, Name, SLOTS, key_of, value_text};
use super::session::SessionLog;
use super::spaces::{UNLOGGED, has_unlogged, space_of};
use crate::keys::rng::scramble;

/// The value of each slot of a lane; 0: the slot has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slots(pub(super) Vec<u64>);

impl Default for Slots {
    fn default() -> Self {
        Slots(vec![0; SLOTS])
    }
}

/// A subset of the slots of a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Logged,
    Unlogged,
}

impl Part {
    fn has(self, slot: usize) -> bool {
        let is_unlogged = space_of(slot) == UNLOGGED;
        match self {
            Part::All => true,
            Part::Logged => !is_unlogged,
            Part::Unlogged => is_unlogged,
        }
    }
}

impl Slots {
    fn digest(&self, part: Part) -> u64 {
        let each = |(slot, &value)| digest_of(slot, value);
        let slots = self.0.iter().enumerate().filter(|(slot, _)| part.has(*slot));
        slots.map(each).fold(0, u64::wrapping_add)
    }

    /// Applies a change. Returns the difference of the digest.
    fn apply(&mut self, change: &Change) -> u64 {
        let old = std::mem::replace(&mut self.0[change.slot], change.value);
        digest_of(change.slot, change.value).wrapping_sub(digest_of(change.slot, old))
    }
}

fn digest_of(slot: usize, value: u64) -> u64 {
    if value == 0 { 0 } else { scramble(scramble(slot as u64) ^ value) }
}

struct LaneWrite {
    changes: Vec<Change>,
    acknowledged: bool,
}

/// The model of one lane.
#[derive(Default)]
struct LaneModel {
    base: Slots,
    groups: Vec<LaneWrite>,
    doubts: u32,
    /// This many writes are durable even without a log.
    durable: usize,
}

/// The models of all lanes.
pub(super) struct LaneModels {
    seed: u64,
    lanes: Vec<LaneModel>,
}

impl LaneModels {
    pub(super) fn new(seed: u64) -> Self {
        LaneModels { seed, lanes: (0..LANES).map(|_| LaneModel::default()).collect() }
    }

    /// Returns the number of writes of each lane since the last check.
    pub(super) fn lens(&self) -> [usize; LANES] {
        std::array::from_fn(|lane| self.lanes[lane].groups.len())
    }

    /// Whether the last key space has no log.
    pub(super) fn has_unlogged(&self) -> bool {
        has_unlogged(self.seed)
    }

    /// Adds the writes of a killed process. If its writers had begun, each lane may have one more
    /// write than was acknowledged.
    pub(super) fn add_session(&mut self, session: u32, heard: &SessionLog) {
        let had_begun = heard.had_begun();
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let (done, durable) = (heard.done[index], heard.durable[index]);
            lane.durable = lane.groups.len() + durable as usize;
            for number in 0..done + u32::from(had_begun) {
                let name = Name { session, lane: index as u8, number };
                let acknowledged = number < done;
                lane.groups.push(LaneWrite { changes: name.changes(self.seed), acknowledged });
            }
            lane.doubts += u32::from(had_begun);
        }
    }

    /// Compares a store with everything written; its contents become the new base. Returns how many
    /// of the writes that were under way are there.
    pub(super) fn settle(&mut self, found: Vec<Slots>) -> Result<u64, String> {
        let lens = self.lens();
        let there = match self.has_unlogged() {
            true => self.find_parts(&found)?,
            false => self.find(&found, &lens, &lens)?,
        };
        for (lane, found) in self.lanes.iter_mut().zip(found) {
            *lane = LaneModel { base: found, ..LaneModel::default() };
        }
        Ok(there)
    }

    /// Compares a store that has a key space without a log. Slots with a log have all writes. Slots
    /// without one have a prefix, at least up to the writes reported as durable. If one half of a
    /// batch over both is there, so is the other.
    fn find_parts(&self, found: &[Slots]) -> Result<u64, String> {
        let mut there = 0;
        for (index, (lane, found)) in self.lanes.iter().zip(found).enumerate() {
            let (len, durable) = (lane.groups.len(), lane.durable);
            let passes = |choice: &u32| {
                lane.passes(*choice, found, &(len..=len), Part::Logged)
                    && lane.passes(*choice, found, &(durable..=len), Part::Unlogged)
            };
            let Some(choice) = (0..1u32 << lane.doubts).find(passes) else {
                let wrong = lane.explain(index, found, len..=len);
                return Err(format!(
                    "{wrong}. (Key space {UNLOGGED} has no log: {durable} writes must be there.)"
                ));
            };
            there += u64::from(choice.count_ones());
        }
        Ok(there)
    }

    /// Compares a store with the model: each lane has at least `least` and at most `most` writes.
    pub(super) fn find(
        &self,
        found: &[Slots],
        least: &[usize; LANES],
        most: &[usize; LANES],
    ) -> Result<u64, String> {
        let mut there = 0;
        for (index, (lane, found)) in self.lanes.iter().zip(found).enumerate() {
            let range = least[index]..=most[index].min(lane.groups.len());
            let Some(choice) = lane.find(found, range.clone()) else {
                return Err(lane.explain(index, found, range));
            };
            there += u64::from(choice.count_ones());
        }
        Ok(there)
    }
}

impl LaneModel {
    /// Returns a choice of the doubtful writes, as bits, that leads to the state `found` after a
    /// number of writes in `range`. None: no choice does.
    fn find(&self, found: &Slots, range: RangeInclusive<usize>) -> Option<u32> {
        (0..1u32 << self.doubts).find(|&choice| self.passes(choice, found, &range, Part::All))
    }

    fn passes(
        &self,
        choice: u32,
        found: &Slots,
        range: &RangeInclusive<usize>,
        part: Part,
    ) -> bool {
        let wanted = found.digest(part);
        let (mut slots, mut digest, mut doubts) = (self.base.clone(), self.base.digest(part), 0);
        if range.contains(&0) && digest == wanted {
            return true;
        }
        for (place, group) in self.groups.iter().enumerate() {
            let there = group.acknowledged || choice >> doubts & 1 == 1;
            doubts += u32::from(!group.acknowledged);
            for change in group.changes.iter().filter(|change| there && part.has(change.slot)) {
                digest = digest.wrapping_add(slots.apply(change));
            }
            if range.contains(&(place + 1)) && digest == wanted {
                return true;
            }
        }
        false
    }

    fn explain(&self, index: usize, found: &Slots, range: RangeInclusive<usize>) -> String {
        const SHOWN: usize = 5;
        let mut last = self.base.clone();
        let groups = self.groups[..*range.end()].iter().filter(|group| group.acknowledged);
        for change in groups.flat_map(|group| &group.changes) {
            last.apply(change);
        }
        let differs = |slot: &usize| last.0[*slot] != found.0[*slot];
        let slots: Vec<usize> = (0..SLOTS).filter(differs).collect();
        let shown = slots.iter().take(SHOWN).map(|&slot| {
            let key = String::from_utf8_lossy(&key_of(index, slot)).into_owned();
            let (found, last) = (value_text(found.0[slot]), value_text(last.0[slot]));
            format!("{key} has {found}; the last that was acknowledged gave {last}")
        });
        format!(
            "lane {index} is not as after {} to {} of its writes ({} of them in doubt); {} keys differ: {}",
            range.start(),
            range.end(),
            self.doubts,
            slots.len(),
            shown.collect::<Vec<_>>().join("; "),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Activity, Message};
    use super::*;

    /// Returns a seed whose first writes all put something, since the deletion of an absent key is
    /// invisible.
    fn seed() -> u64 {
        (0..).find(|seed| !has_unlogged(*seed) && puts_alone(*seed)).expect("one in some dozens")
    }

    fn puts_alone(seed: u64) -> bool {
        let mut changes = (0..7).flat_map(|number| changes(seed, number));
        changes.all(|change| change.value != 0)
    }

    fn changes(seed: u64, number: u32) -> Vec<Change> {
        Name { session: 1, lane: 0, number }.changes(seed)
    }

    /// Returns the contents of a store after these writes of lane 0.
    fn after(numbers: &[u32]) -> Vec<Slots> {
        after_parts(seed(), &[(Part::All, numbers)])
    }

    fn after_parts(seed: u64, parts: &[(Part, &[u32])]) -> Vec<Slots> {
        let mut found = vec![Slots::default(); LANES];
        for (part, numbers) in parts {
            let changes = numbers.iter().flat_map(|number| changes(seed, *number));
            changes.filter(|change| part.has(change.slot)).for_each(|change| {
                found[0].apply(&change);
            });
        }
        found
    }

    fn lanes() -> LaneModels {
        let (mut lanes, mut done) = (LaneModels::new(seed()), [0; LANES]);
        done[0] = 5;
        lanes.add_session(1, &heard(done));
        lanes
    }

    /// Returns the messages of a process whose writers had begun.
    fn heard(done: [u32; LANES]) -> SessionLog {
        let mut heard = SessionLog::default();
        for (lane, &count) in (0..).zip(&done) {
            (0..count).for_each(|_| heard.hear(Some(Message::Done { lane })));
        }
        heard.hear(Some(Message::Begin { activity: Activity::Write, number: 0 }));
        heard
    }

    #[test]
    fn all_that_was_acknowledged_is_there_and_what_was_under_way_may_be() {
        assert_eq!(lanes().settle(after(&[0, 1, 2, 3, 4])), Ok(0));
        assert_eq!(lanes().settle(after(&[0, 1, 2, 3, 4, 5])), Ok(1));
        for wrong in [&[0, 1, 2, 3][..], &[0, 2, 3, 4], &[1, 0, 2, 3, 4, 6], &[]] {
            lanes().settle(after(wrong)).expect_err("something is wrong");
        }
    }

    #[test]
    fn half_a_batch_is_found() {
        let batch = (0..99).find(|&number| {
            let changes = Name { session: 1, lane: 0, number }.changes(seed());
            changes.len() > 2 && changes.iter().all(|change| change.value != 0)
        });
        let number = batch.expect("a batch of puts");
        let (mut lanes, mut done) = (LaneModels::new(seed()), [0; LANES]);
        done[0] = number;
        lanes.add_session(1, &heard(done));
        let mut found = after(&(0..number).collect::<Vec<_>>());
        let changes = Name { session: 1, lane: 0, number }.changes(seed());
        found[0].apply(&changes[0]);
        assert!(lanes.settle(found).expect_err("half a batch").contains("lane 0 is not as after"));
    }

    #[test]
    fn what_has_no_log_may_lose_its_last_writes_but_no_durable_one() {
        let is_in_both = |seed: u64, number| {
            let has = |part: Part| changes(seed, number).iter().any(|it| part.has(it.slot));
            has(Part::Logged) && has(Part::Unlogged)
        };
        let fits = |seed: &u64| is_in_both(*seed, 1) && is_in_both(*seed, 5);
        let mut seeds = (0..).filter(|seed| has_unlogged(*seed) && puts_alone(*seed));
        let seed = seeds.find(fits).expect("one in some thousands");
        let settles = |logged: u32, unlogged: u32| {
            let (mut lanes, mut done) = (LaneModels::new(seed), [0; LANES]);
            done[0] = 5;
            let mut heard = heard(done);
            heard.hear(Some(Message::Durable { lane: 0, count: 2 }));
            lanes.add_session(1, &heard);
            let numbers = |count: u32| (0..count).collect::<Vec<_>>();
            let (logged, unlogged) = (numbers(logged), numbers(unlogged));
            let parts = [(Part::Logged, &logged[..]), (Part::Unlogged, &unlogged)];
            lanes.settle(after_parts(seed, &parts)).is_ok()
        };
        assert!((2..=5).all(|unlogged| settles(5, unlogged)));
        assert!(settles(6, 6) && settles(6, 5));
        assert!(!settles(5, 1), "a durable write is lost");
        assert!(!settles(4, 4), "a write with a log is lost");
        assert!(!settles(5, 6), "half a batch");
    }

    #[test]
    fn a_copy_has_the_writes_up_to_some_moment_of_its_making() {
        let (mut least, mut most) = ([0; LANES], [0; LANES]);
        (least[0], most[0]) = (2, 4);
        let lanes = lanes();
        for (numbers, right) in [(0..1, false), (0..2, true), (0..4, true), (0..5, false)] {
            let numbers: Vec<u32> = numbers.collect();
            let found = lanes.find(&after(&numbers), &least, &most);
            assert_eq!(found.is_ok(), right, "{numbers:?}");
        }
    }
}
