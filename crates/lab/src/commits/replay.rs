//! Replays transactions one by one, in commit order.
//! ```text
//! numbers     70: t1 commits    74: t2 has read here    75: t3 commits, and has read at 75 again
//! state       after t1          = what t2 has read       = what t3 has read, then t3's writes
//! ```

use super::record::{COUNTERS, KEYS, Number, Record, SPACES, Step};
use super::record::{number_of, number_of_key};
use crate::stress::operands::merged;
use crate::stress::world::Checked;

/// The number of each key's value.
type State = [[Number; KEYS]; SPACES];

/// The expected contents of a store after the replayed commits.
pub(super) struct Replayed {
    state: State,
    counters: [u64; COUNTERS],
}

impl Default for Replayed {
    fn default() -> Self {
        Replayed { state: [[0; KEYS]; SPACES], counters: [0; COUNTERS] }
    }
}

/// The events at one sequence number. A commit comes first: what it wrote is seen by reads at its
/// number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Commit,
    Read,
}

impl Replayed {
    pub(super) fn add(&mut self, adds: &[u64; COUNTERS]) {
        self.counters.iter_mut().zip(adds).for_each(|(counter, add)| *counter += add);
    }

    /// Replays the transactions. Returns how many reads were compared.
    pub(super) fn run_again(&mut self, records: Vec<Record>) -> Checked<u64> {
        let mut events: Vec<(u64, Event, &Record)> = Vec::new();
        for record in &records {
            if record.steps.iter().any(Step::writes) {
                events.push((record.committed, Event::Commit, record));
            }
            if !reads_at_commit(record) {
                events.push((record.begun, Event::Read, record));
            }
        }
        events.sort_by_key(|(number, event, _)| (*number, *event));
        let mut reads = 0;
        for (number, event, record) in events {
            let compares = event == Event::Read || reads_at_commit(record);
            // Later reads of the transaction see its own writes.
            let mut state = self.state;
            for step in &record.steps {
                if compares {
                    reads += u64::from(!step.writes());
                    check(&state, step).map_err(|wrong| {
                        format!("at {number}, {record:?}: run again it reads otherwise: {wrong}")
                    })?;
                }
                apply(&mut state, step);
            }
            if event == Event::Commit {
                self.state = state;
            }
        }
        Ok(reads)
    }

    /// Compares the contents of a key space.
    pub(super) fn check_space(&self, space: usize, scan: trommel::Scan) -> Checked<()> {
        let mut found = [0; KEYS];
        for entry in scan {
            let (key, value) = entry.map_err(|error| error.to_string())?;
            let key = number_of_key(&key).ok_or("a key that was never written")?;
            found[key] = number_of(&value);
        }
        let differs = |key: &usize| found[*key] != self.state[space][*key];
        match (0..KEYS).find(differs) {
            None => Ok(()),
            Some(key) => {
                let expected = self.state[space][key];
                Err(format!("key {key} has #{}, expected #{expected}", found[key]))
            }
        }
    }

    pub(super) fn check_counter(&self, counter: usize, found: i64) -> Checked<()> {
        let expected = self.counters[counter] as i64;
        match found == expected {
            true => Ok(()),
            false => Err(format!("counter {counter} is {found}, and {expected} were added")),
        }
    }
}

/// Whether the transaction must have read the state at its commit.
fn reads_at_commit(record: &Record) -> bool {
    record.is_serializable && record.steps.iter().any(Step::writes)
}

fn apply(state: &mut State, step: &Step) {
    match *step {
        Step::Put { space, key, number } => state[space][key] = number,
        Step::Merge { space, key, operand } => {
            state[space][key] = merged(state[space][key], operand);
        }
        Step::Delete { space, key } => state[space][key] = 0,
        Step::DeleteRange { space, keys: (from, to) } => state[space][from..to].fill(0),
        Step::Get { .. } | Step::Scan { .. } => {}
    }
}

/// Compares what a step has read with the state.
fn check(state: &State, step: &Step) -> Checked<()> {
    match step {
        Step::Get { space, key, found } if state[*space][*key] != *found => {
            Err(format!("{space}/{key} has #{}, and it found #{found}", state[*space][*key]))
        }
        Step::Scan { space, keys: (from, to), back, limit, found } => {
            let entries = (*from..*to).map(|key| (key, state[*space][key]));
            let entries = entries.filter(|(_, number)| *number > 0);
            let now: Vec<(usize, Number)> = match back {
                true => entries.rev().take(*limit).collect(),
                false => entries.take(*limit).collect(),
            };
            if now == *found { Ok(()) } else { Err(format!("{now:?}, and it found {found:?}")) }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(begun: u64, committed: u64, is_serializable: bool, steps: Vec<Step>) -> Record {
        Record { begun, committed, is_serializable, steps }
    }

    fn put(key: usize, number: Number) -> Step {
        Step::Put { space: 0, key, number }
    }

    fn get(key: usize, found: Number) -> Step {
        Step::Get { space: 0, key, found }
    }

    #[test]
    fn reads_must_hold_where_a_transaction_takes_its_place() {
        let first = record(0, 1, true, vec![put(1, 7)]);
        let run = |second: Record| Replayed::default().run_again(vec![second, first.clone()]);
        // Serializable with writes: as if it ran alone at its commit.
        assert_eq!(run(record(0, 2, true, vec![get(1, 7), put(2, 1), get(2, 1)])), Ok(2));
        assert!(run(record(0, 2, true, vec![get(1, 0), put(2, 1)])).is_err());
        // Snapshot isolation, or no writes: as the state was at its begin.
        assert_eq!(run(record(0, 2, false, vec![get(1, 0), put(2, 1)])), Ok(1));
        assert_eq!(run(record(0, 0, true, vec![get(1, 0)])), Ok(1));
        assert_eq!(run(record(1, 1, true, vec![get(1, 7)])), Ok(1));
        let scan = |found| Step::Scan { space: 0, keys: (0, 9), back: true, limit: 4, found };
        assert_eq!(run(record(0, 2, true, vec![scan(vec![(1, 7)]), put(2, 1)])), Ok(1));
        assert!(run(record(0, 2, true, vec![scan(vec![]), put(2, 1)])).is_err());
    }
}
