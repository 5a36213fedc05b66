//! The ledger of begun and acknowledged writes, which all threads read. It bounds the values that a
//! key may show.
//! ```text
//! of each lane   write 1  write 2 | write 3 | write 4  write 5 |         a group ends at each |
//!                              acknowledged ^           begun ^
//! of each key    floor: the newest write that was acknowledged, or that a reader has seen
//! ```
//! Invariants: a write is in the ledger before it is in the store. It counts as acknowledged only
//! after the store has said so. A floor only rises: a read that begins after a floor was taken may
//! see that write or a later one, but no earlier one.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::stress::keys::{KeyIndex, Keys};
use crate::stress::model::shown_at;
use crate::stress::operation::{Write, key_text};
use crate::stress::world::Checked;

/// The most writes of a lane.
const WRITES_MAX: usize = 1 << 21;
/// Marks the last write of a group.
const END: u64 = 1 << 63;

/// The ledgers of all lanes.
pub(super) struct Ledger {
    lanes: Vec<LaneLedger>,
}

struct LaneLedger {
    keys: Keys,
    /// The key and the number of each write; writes count from 1.
    writes: Vec<AtomicU64>,
    begun: AtomicU64,
    done: AtomicU64,
    floors: Vec<AtomicU64>,
}

/// A key, by its lane and its place among the lane's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spot {
    pub(super) lane: u8,
    pub(super) place: KeyIndex,
}

/// The state of the ledger before a read: of some keys, in order, and of all lanes.
pub(super) struct Before {
    spots: Vec<Spot>,
    floors: Vec<u64>,
    done: Vec<u64>,
}

/// The keys of a lane after some of its writes, from which frequent comparisons continue.
pub(super) struct Followed {
    at: u64,
    numbers: Vec<u32>,
}

impl Ledger {
    /// Creates the ledger of lanes with these keys.
    pub(super) fn new(lanes: &[Keys]) -> Self {
        let counters = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        let lane = |keys: &Keys| LaneLedger {
            keys: keys.clone(),
            writes: counters(WRITES_MAX),
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
            floors: counters(keys.len()),
        };
        Ledger { lanes: lanes.iter().map(lane).collect() }
    }

    /// Whether a lane can make this many more writes.
    pub(super) fn has_room(&self, lane: usize, writes: usize) -> bool {
        let lane = &self.lanes[lane];
        lane.begun.load(Ordering::SeqCst) as usize + writes < WRITES_MAX
    }

    /// Notes that a group of writes is about to be passed to the store. Requires: there is room,
    /// and the caller alone writes for the lane.
    pub(super) fn begin(&self, lane: usize, writes: &[Write]) {
        let lane = &self.lanes[lane];
        let begun = lane.begun.load(Ordering::SeqCst);
        for (nth, write) in (1..).zip(writes) {
            let end = if nth == writes.len() as u64 { END } else { 0 };
            let entry = end | u64::from(write.place) << 32 | u64::from(write.number);
            lane.writes[(begun + nth) as usize].store(entry, Ordering::SeqCst);
        }
        lane.begun.store(begun + writes.len() as u64, Ordering::SeqCst);
    }

    /// Notes that all begun writes of a lane are acknowledged.
    pub(super) fn acknowledge(&self, lane: usize) {
        let lane = &self.lanes[lane];
        let begun = lane.begun.load(Ordering::SeqCst);
        for nth in lane.done.load(Ordering::SeqCst) + 1..=begun {
            lane.floors[usize::from(lane.write(nth).place)].fetch_max(nth, Ordering::SeqCst);
        }
        lane.done.store(begun, Ordering::SeqCst);
    }

    /// Returns how many writes of each lane were acknowledged.
    pub(super) fn done(&self) -> Vec<u64> {
        self.lanes.iter().map(|lane| lane.done.load(Ordering::SeqCst)).collect()
    }

    /// Returns how many writes of each lane were begun.
    pub(super) fn begun(&self) -> Vec<u64> {
        self.lanes.iter().map(|lane| lane.begun.load(Ordering::SeqCst)).collect()
    }

    /// Returns the state before a read of some keys.
    pub(super) fn before(&self, mut spots: Vec<Spot>) -> Before {
        spots.sort_unstable();
        spots.dedup();
        let done = self.done();
        let floor = |spot: &Spot| {
            let lane = &self.lanes[usize::from(spot.lane)];
            lane.floors[usize::from(spot.place)].load(Ordering::SeqCst)
        };
        let floors = spots.iter().map(floor).collect();
        Before { spots, floors, done }
    }

    /// Checks that each key may show the number found; 0: no value. None: the key was not read.
    /// Raises the floors of the keys.
    pub(super) fn check(
        &self,
        before: &Before,
        found: impl Fn(Spot) -> Option<u32>,
        tick: u32,
    ) -> Checked<()> {
        let Before { spots, floors, done } = before;
        let found: Vec<Option<u32>> = spots.iter().map(|spot| found(*spot)).collect();
        let fits = |write: Write, place: usize| {
            found[place].is_none_or(|found| shown_at(write.number, tick) == found)
        };
        let at_floor = |(place, spot): (usize, &Spot)| {
            let lane = &self.lanes[usize::from(spot.lane)];
            fits(lane.write(floors[place]), place).then_some(floors[place])
        };
        let mut seen: Vec<Option<u64>> = spots.iter().enumerate().map(at_floor).collect();
        for (index, lane) in self.lanes.iter().enumerate() {
            for nth in done[index] + 1..=lane.begun.load(Ordering::SeqCst) {
                let write = lane.write(nth);
                let spot = Spot { lane: index as u8, place: write.place };
                let Ok(place) = spots.binary_search(&spot) else { continue };
                if nth > floors[place] && seen[place].is_none() && fits(write, place) {
                    seen[place] = Some(nth);
                }
            }
        }
        for (place, spot) in spots.iter().enumerate() {
            let (lane, Some(found)) = (&self.lanes[usize::from(spot.lane)], found[place]) else {
                continue;
            };
            let Some(nth) = seen[place] else {
                return Err(lane.explain(*spot, floors[place], found, tick));
            };
            lane.floors[usize::from(spot.place)].fetch_max(nth, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Returns a lane's keys before its first write.
    pub(super) fn follow(&self, lane: usize) -> Followed {
        Followed { at: 0, numbers: vec![0; self.lanes[lane].keys.len()] }
    }

    /// Checks a lane's keys, all read at one moment. They must be the state after some whole
    /// groups, between `least` and `most` writes. Advances `followed` to `least`.
    pub(super) fn check_moment(
        &self,
        lane: usize,
        followed: &mut Followed,
        found: &[u32],
        (least, most): (u64, u64),
        tick: u32,
    ) -> Checked<()> {
        let ledger = &self.lanes[lane];
        for nth in followed.at + 1..=least {
            let write = ledger.write(nth);
            followed.numbers[usize::from(write.place)] = write.number;
        }
        followed.at = followed.at.max(least);
        let mut numbers = followed.numbers.clone();
        let differs = |place: usize, number: u32| shown_at(number, tick) != found[place];
        let all = |numbers: &[u32]| {
            numbers.iter().enumerate().filter(|(at, n)| differs(*at, **n)).count()
        };
        let mut different = all(&numbers);
        let first = different;
        for nth in followed.at + 1..=most {
            if different == 0 && ledger.ends_group(nth - 1) {
                return Ok(());
            }
            let write = ledger.write(nth);
            let place = usize::from(write.place);
            different -= usize::from(differs(place, numbers[place]));
            numbers[place] = write.number;
            different += usize::from(differs(place, numbers[place]));
        }
        if different == 0 {
            return Ok(());
        }
        let which = (0..numbers.len()).find(|&place| differs(place, numbers[place]));
        let which = which.map(|place| {
            let key = key_text(ledger.keys.get(place as KeyIndex));
            format!("{key} has #{} and not #{}", found[place], numbers[place])
        });
        Err(format!(
            "the keys of lane {lane} are not as after any whole groups of its writes from {least} to {most}: {first} \
             differ at first, {different} at the end ({})",
            which.unwrap_or_default(),
        ))
    }
}

impl LaneLedger {
    /// Returns a write. Write 0 stands for the time when no key has a value.
    fn write(&self, nth: u64) -> Write {
        let entry = self.writes[nth as usize].load(Ordering::SeqCst);
        Write { place: (entry >> 32) as KeyIndex, number: entry as u32 }
    }

    fn ends_group(&self, nth: u64) -> bool {
        nth == 0 || self.writes[nth as usize].load(Ordering::SeqCst) & END != 0
    }

    fn explain(&self, spot: Spot, floor: u64, found: u32, tick: u32) -> String {
        let begun = self.begun.load(Ordering::SeqCst);
        let earlier = (1..floor).rev().map(|nth| (nth, self.write(nth)));
        let mut earlier = earlier.filter(|(_, write)| write.place == spot.place);
        let stale = earlier.find(|(_, write)| shown_at(write.number, tick) == found);
        let stale = match stale {
            Some((nth, _)) => {
                format!("which was right after write {nth}: someone has gone back in time")
            }
            None => "which it never had".into(),
        };
        format!(
            "{} of lane {} has #{found} (0: nothing), {stale}; write {floor}, #{}, was known before, {begun} were begun",
            key_text(self.keys.get(spot.place)),
            spot.lane,
            self.write(floor).number,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stress::model::expiring;

    const SPOT: Spot = Spot { lane: 0, place: 1 };

    fn ledger() -> Ledger {
        Ledger::new(&[Keys::dense(3)])
    }

    fn put(ledger: &Ledger, number: u32) {
        ledger.begin(0, &[Write { place: 1, number }]);
        ledger.acknowledge(0);
    }

    #[test]
    fn a_reader_may_see_what_was_known_or_what_came_meanwhile() {
        let ledger = ledger();
        put(&ledger, 5);
        put(&ledger, 6);
        let before = ledger.before(vec![SPOT]);
        put(&ledger, 0);
        ledger.begin(0, &[Write { place: 1, number: 7 }]);
        for (found, right) in [(5, false), (6, true), (0, true), (7, true), (8, false)] {
            let fresh = Before { spots: vec![SPOT], floors: vec![2], done: vec![2] };
            assert_eq!(ledger.check(&fresh, |_| Some(found), 0).is_ok(), right, "{found}");
        }
        // A reader has seen the last write, though it is not acknowledged. No later read may miss
        // it.
        ledger.check(&before, |_| Some(7), 0).expect("was begun");
        let wrong =
            ledger.check(&ledger.before(vec![SPOT]), |_| Some(6), 0).expect_err("an old value");
        assert!(wrong.contains("back in time"), "{wrong}");
    }

    #[test]
    fn what_expires_is_not_seen() {
        let ledger = ledger();
        put(&ledger, expiring(5, 3));
        let before = ledger.before(vec![SPOT]);
        ledger.check(&before, |_| Some(expiring(5, 3)), 2).expect("until then");
        ledger.check(&before, |_| Some(0), 3).expect("from then on");
        ledger.check(&before, |_| Some(0), 2).expect_err("not before");
    }

    #[test]
    fn a_moment_has_whole_groups() {
        let ledger = ledger();
        put(&ledger, 5);
        ledger.begin(0, &[(0, 6), (1, 7), (2, 8)].map(|(place, number)| Write { place, number }));
        for (found, right) in [
            ([0, 5, 0], true),
            ([6, 7, 8], true),
            ([6, 5, 0], false),
            ([6, 7, 0], false),
            ([0, 0, 0], false),
        ] {
            let mut followed = ledger.follow(0);
            let checked = ledger.check_moment(0, &mut followed, &found, (1, 4), 0);
            assert_eq!(checked.is_ok(), right, "{found:?}: {checked:?}");
        }
    }
}
