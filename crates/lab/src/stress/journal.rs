//! The states of the store at its last sequence numbers, for followers and shipped changes.
//! ```text
//! number   41        42          43          44
//! state    known     <- undo     <- undo     as readers see it now
//! ```
//! Invariant: a state has a group of writes as a whole, or not at all.

use std::collections::VecDeque;

use super::model::{Model, State};
use super::operation::Write;

/// The most groups that can be undone. A follower that has caught up lacks only a few.
const GROUPS_MAX: usize = 64;

/// The last groups of writes, and the values that they have overwritten.
#[derive(Default)]
pub(crate) struct Journal {
    /// The least number whose state is known.
    from: u64,
    groups: VecDeque<Undo>,
}

struct Undo {
    /// The store's sequence number after the group.
    number: u64,
    before: Vec<Write>,
}

impl Journal {
    /// Begins anew: the store was opened at this number, and how it got there is unknown.
    pub(crate) fn begin(&mut self, number: u64) {
        self.from = number;
        self.groups.clear();
    }

    /// Notes an acknowledged group of writes. Requires: `seen` is the state before it.
    pub(crate) fn note(&mut self, number: u64, writes: &[Write], seen: &State) {
        let old = |write: &Write| Write { number: seen.0[usize::from(write.place)], ..*write };
        self.groups.push_back(Undo { number, before: writes.iter().map(old).collect() });
        if self.groups.len() > GROUPS_MAX {
            self.from = self.groups.pop_front().map_or(self.from, |group| group.number);
        }
    }

    /// Returns the number of the last group.
    pub(crate) fn newest(&self) -> u64 {
        self.groups.back().map_or(self.from, |group| group.number)
    }

    /// Returns the state at a number, without what has expired by now. None: the number is too old.
    pub(crate) fn state_at(&self, number: u64, model: &Model) -> Option<State> {
        if number < self.from {
            return None;
        }
        let mut state = model.seen().clone();
        for group in self.groups.iter().rev().take_while(|group| group.number > number) {
            for write in &group.before {
                state.0[usize::from(write.place)] = write.number;
            }
        }
        state.expire(model.tick());
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::expiring;
    use super::*;

    #[test]
    fn each_of_the_last_numbers_has_its_state() {
        let (mut model, mut journal) = (Model::new(2), Journal::default());
        let mut write = |model: &mut Model, number: u64, writes: &[Write]| {
            journal.note(number, writes, model.seen());
            model.wrote(writes, true);
        };
        let put = |place, number| Write { place, number };
        write(&mut model, 1, &[put(0, 5)]);
        write(&mut model, 3, &[put(0, 6), put(0, 7)]);
        write(&mut model, 4, &[put(1, expiring(8, 1))]);
        let at = |number| journal.state_at(number, &model).map(|state| state.0);
        assert_eq!(at(0), Some(vec![0, 0]));
        assert_eq!((at(1), at(2)), (Some(vec![5, 0]), Some(vec![5, 0])));
        assert_eq!((at(3), at(4)), (Some(vec![7, 0]), Some(vec![7, expiring(8, 1)])));
        assert_eq!((journal.newest(), at(9)), (4, at(4)));
        model.interval_passed();
        assert_eq!(journal.state_at(4, &model), Some(State(vec![7, 0])));
        journal.begin(4);
        assert_eq!(journal.state_at(3, &model), None);
    }

    #[test]
    fn what_is_too_old_is_not_told() {
        let (mut model, mut journal) = (Model::new(1), Journal::default());
        for number in 1..=100 {
            let writes = [Write { place: 0, number }];
            journal.note(number.into(), &writes, model.seen());
            model.wrote(&writes, true);
        }
        let first = 100 - GROUPS_MAX as u64;
        assert_eq!(journal.state_at(first - 1, &model), None);
        assert_eq!(journal.state_at(first, &model), Some(State(vec![first as u32])));
    }
}
