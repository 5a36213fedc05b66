//! A follower process: follows the store, and compares every answer.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use trommel::merge_operators::Concat;
use trommel::{Db, Error, FollowOptions, Follower, KeyspaceOptions, Moment, Options, Snapshot};

use super::attempt::{APART_BYTES, KEYS, LAST, Model, Space, key};
use super::ledger::{Done, END, LAST_OF_ALL, Ledger};
use super::writer::STORE;
use super::{FollowRole, FollowerReport};
use crate::keys::rng::{Rng, scramble};

/// How long a follower waits for the store to exist, and for the ledger to reach the store's
/// number.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(2);
/// Keys that are read at one moment.
const GETS: u64 = 60;
/// How often a held moment is checked before it is released.
const HELD_LOOKS: u32 = 40;

/// Follows until the test ends and everything has been seen.
pub(super) fn run(role: &FollowRole) -> FollowerReport {
    let seed = role.seed ^ scramble(1000 + u64::from(role.number));
    let mut reader = Reader {
        seed: role.seed,
        rng: Rng::new(seed),
        ledger: Ledger::open(&role.folder),
        ahead: VecDeque::new(),
        last: 0,
        has_all: false,
        model: Model::default(),
        report: FollowerReport::default(),
    };
    let wrong = reader.follow(role).err();
    FollowerReport { wrong, ..reader.report }
}

struct Reader {
    seed: u64,
    rng: Rng,
    ledger: Ledger,
    /// Records that the follower has not reached.
    ahead: VecDeque<Done>,
    /// The sequence number of the newest record.
    last: u64,
    /// Whether the last record has come.
    has_all: bool,
    /// The expected contents at the number that was checked last.
    model: Model,
    report: FollowerReport,
}

type Checked = std::result::Result<(), String>;

fn failed(what: &str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {error}")
}

impl Reader {
    fn follow(&mut self, role: &FollowRole) -> Checked {
        let follower = open(role)?;
        let mut held: Option<(Moment, Model, u32)> = None;
        loop {
            let is_over = role.folder.join(END).exists();
            let has_moved = follower.catch_up().map_err(failed("catching up"))?;
            let moment = follower.moment().map_err(failed("a moment"))?;
            if moment.sequence() < self.report.sequence {
                return Err(format!("{} after {}", moment.sequence(), self.report.sequence));
            }
            self.report.sequence = moment.sequence();
            self.come_to(moment.sequence())?;
            let model = std::mem::take(&mut self.model);
            let checked = self.check(&moment, &model);
            self.model = model;
            checked?;
            self.report.moments += 1;
            if let Some((moment, model, looks)) = &mut held {
                self.check(moment, model).map_err(|wrong| format!("a held moment: {wrong}"))?;
                (self.report.held, *looks) = (self.report.held + 1, *looks + 1);
            }
            if held.as_ref().is_none_or(|(.., looks)| *looks >= HELD_LOOKS) {
                held = Some((moment, self.model.clone(), 0));
            }
            if is_over && self.has_all && self.ahead.is_empty() && self.report.sequence >= self.last
            {
                return Ok(());
            }
            if !has_moved {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Advances the model to a sequence number.
    fn come_to(&mut self, sequence: u64) -> Checked {
        let begun = Instant::now();
        loop {
            let new = self.ledger.next();
            self.has_all |= new.last().is_some_and(|done| done.attempt == LAST_OF_ALL);
            self.ahead.extend(new.into_iter().filter(|done| done.attempt != LAST_OF_ALL));
            self.last = self.ahead.back().map_or(self.last, |done| done.sequence);
            // Refused writes take numbers, too, and may have the greatest number that tables name.
            if self.last >= sequence || self.has_all {
                break;
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("{sequence} was seen, and the last write is {}", self.last));
            }
            std::thread::sleep(PAUSE);
        }
        while let Some(done) = self.ahead.front().filter(|done| done.sequence <= sequence) {
            self.model.apply(self.seed, done.attempt);
            self.ahead.pop_front();
        }
        Ok(())
    }

    fn check(&mut self, moment: &Moment, model: &Model) -> Checked {
        let at = moment.sequence();
        let wrong = |what: String| format!("at {at}: {what}");
        self.check_key(&snapshot(moment, Space::Default)?, model, (Space::Default, LAST.to_vec()))
            .map_err(wrong)?;
        let names = moment.keyspaces();
        for name in &names {
            let number = name.strip_prefix("passing-").and_then(|number| number.parse().ok());
            let space = match (&**name, number) {
                (_, Some(number)) => Space::Passing(number),
                ("other", _) => Space::Other,
                _ => Space::Default,
            };
            let checked = self.check_space(&snapshot(moment, space)?, model, space);
            checked.map_err(|what| wrong(format!("{name}: {what}")))?;
        }
        Ok(())
    }

    fn check_space(&mut self, snapshot: &Snapshot, model: &Model, space: Space) -> Checked {
        for _ in 0..GETS {
            let key = key(self.rng.below(KEYS + 20));
            self.check_key(snapshot, model, (space, key))?;
        }
        let (from, count) = (self.rng.below(KEYS), self.rng.below(60));
        let (from, to) = (key(from), key(from + count));
        let own = |entry: trommel::Result<(Vec<u8>, trommel::Value)>| {
            entry.map(|(key, value)| (key, value.to_vec()))
        };
        let expected = || model.range(space, &from, &to);
        let owned = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
        let forward: trommel::Result<Vec<_>> = snapshot.range(&from..&to).map(own).collect();
        let backward: trommel::Result<Vec<_>> = snapshot.range(&from..&to).rev().map(own).collect();
        for (found, expected) in [
            (forward, expected().map(owned).collect::<Vec<_>>()),
            (backward, expected().rev().map(owned).collect()),
        ] {
            let Some(found) = self.unless_gone(found)? else { return Ok(()) };
            self.report.answers += 1 + found.len() as u64;
            found.iter().for_each(|(_, value)| self.note_length(value));
            if found != expected {
                let (found, expected) = (found.len(), expected.len());
                return Err(format!(
                    "a range from {} has {found} entries, and should have {expected}, or others",
                    from.escape_ascii()
                ));
            }
        }
        let may = snapshot.may_contain_range(&from..&to);
        let Some(may) = self.unless_gone(may)? else { return Ok(()) };
        self.report.answers += 1;
        if !may && expected().next().is_some() {
            return Err(format!("the guard denies the range from {}", from.escape_ascii()));
        }
        Ok(())
    }

    fn check_key(
        &mut self,
        snapshot: &Snapshot,
        model: &Model,
        (space, key): (Space, Vec<u8>),
    ) -> Checked {
        let Some(found) = self.unless_gone(snapshot.get(&key))? else { return Ok(()) };
        self.report.answers += 1;
        found.iter().for_each(|value| self.note_length(value));
        let expected = model.get(space, &key);
        if found.as_deref() == expected {
            return Ok(());
        }
        let short = |value: Option<&[u8]>| {
            value.map(|value| value[..value.len().min(60)].escape_ascii().to_string())
        };
        let (found, expected) = (short(found.as_deref()), short(expected));
        Err(format!("{} is {found:?}, and should be {expected:?}", key.escape_ascii()))
    }

    /// Counts long values. Merged operands may be as long without being stored apart, but they are
    /// few.
    fn note_length(&mut self, value: &[u8]) {
        self.report.long += u64::from(value.len() >= APART_BYTES);
    }

    /// Returns None if files that the answer needs were removed. This is counted, and is no wrong
    /// answer.
    fn unless_gone<T>(
        &mut self,
        answer: trommel::Result<T>,
    ) -> std::result::Result<Option<T>, String> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(Error::Gone { .. }) => {
                self.report.gone += 1;
                Ok(None)
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

fn snapshot(moment: &Moment, space: Space) -> std::result::Result<Snapshot, String> {
    moment.keyspace(space.name()).map_err(failed("a key space"))
}

/// Follows the store as soon as it exists. Every second follower may open only a few files.
fn open(role: &FollowRole) -> std::result::Result<Follower, String> {
    let begun = Instant::now();
    let operator = || Concat::new("");
    let options = Options::new().merge_operator(operator());
    let options = match role.number % 2 {
        0 => options,
        _ => options.max_open_files(6).block_cache_bytes(64 << 10),
    };
    let other = KeyspaceOptions::new().merge_operator(operator());
    let options = FollowOptions::new().options(options).keyspace("other", other);
    loop {
        match Db::follow(role.folder.join(STORE), options.clone()) {
            Err(Error::Missing { .. }) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            opened => return opened.map_err(failed("following")),
        }
    }
}
