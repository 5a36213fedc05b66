//! Drawn histories of a writer, and followers that catch up always, often and seldom.
//! ```text
//! step       batch, load, flush, merge, drop, reopening; some fail     history: number -> state
//! follower   a moment, held or new        -->  the state at its number, under every question
//! ```

use std::collections::BTreeMap;

use trommel::merge_operators::Concat;
use trommel::storage::Memory;
use trommel::testing::Fault;
use trommel::{Batch, Db, FollowOptions, Follower, GuardKind, KeyspaceOptions, Options};

use super::{catch_up, environment, open_with, options, owned};

/// A store of three key spaces as it was at each of its numbers.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct State(BTreeMap<(usize, Vec<u8>), Vec<u8>>);

const NAMES: [&str; 3] = ["default", "one", "two"];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

struct World {
    disk: Memory,
    db: Option<Db>,
    options: Options,
    random: Random,
    now: State,
    history: BTreeMap<u64, State>,
    /// When the last key space was dropped, and what the store was then.
    drops: Vec<(u64, State)>,
    written: u64,
}

impl World {
    fn new(seed: u64, guard: GuardKind) -> World {
        let options = options().guard(guard).write_buffer_bytes(3 << 10).size_ratio(3);
        let options = options.value_threshold(256).merge_operator(Concat::new("+"));
        let (disk, random) = (Memory::new(), Random(seed));
        let db = Some(open_with(&disk, options.clone()));
        let history = BTreeMap::from([(0, State::default())]);
        let (now, drops) = (State::default(), Vec::new());
        World { disk, db, options, random, now, history, drops, written: 0 }
    }

    fn db(&self) -> Db {
        self.db.clone().expect("open")
    }

    fn keyspace(&self, place: usize) -> trommel::Result<trommel::Keyspace> {
        let options = KeyspaceOptions::new().write_buffer_bytes(2 << 10);
        self.db().keyspace(NAMES[place], options.merge_operator(Concat::new("+")))
    }

    /// One batch, which may be refused.
    fn write(&mut self) {
        let (mut batch, mut next) = (Batch::new(), self.now.clone());
        for _ in 0..=self.random.below(3) {
            let place = self.random.below(3) as usize;
            let Ok(keyspace) = self.keyspace(place) else { continue };
            batch.to(&keyspace);
            let key = format!("{:02}", self.random.below(40)).into_bytes();
            self.written += 1;
            let value = format!("{}", self.written).repeat(1 + self.random.below(90) as usize);
            let state = &mut next.0;
            match self.random.below(12) {
                0..=6 => {
                    batch.put(&key, &value);
                    state.insert((place, key), value.into_bytes());
                }
                7..=8 => {
                    batch.delete(&key);
                    state.remove(&(place, key));
                }
                9..=10 => {
                    let operand = format!("{}", self.written);
                    batch.merge(&key, &operand);
                    let old = state.entry((place, key)).or_default();
                    if !old.is_empty() {
                        old.push(b'+');
                    }
                    old.extend_from_slice(operand.as_bytes());
                }
                _ => {
                    let to = format!("{:02}", self.random.below(40)).into_bytes();
                    let (from, to) = (key.clone().min(to.clone()), key.max(to));
                    batch.delete_range(&from, &to);
                    let is_in =
                        |at: &usize, key: &Vec<u8>| *at == place && (&from..&to).contains(&key);
                    state.retain(|(at, key), _| !is_in(at, key));
                }
            }
        }
        if self.db().write(batch).is_ok() {
            self.note(next);
        }
    }

    fn note(&mut self, state: State) {
        self.history.insert(self.db().snapshot().sequence(), state.clone());
        self.now = state;
    }

    /// Anything that a writer does; some of it while the disk fails.
    fn step(&mut self) {
        let fails = self.random.below(12) == 0;
        if fails {
            let kind = [Fault::Io, Fault::NoSpace][self.random.below(2) as usize];
            self.disk.fail_at(self.random.below(20), kind);
        }
        match self.random.below(40) {
            0 => drop(self.db().flush()),
            1 => drop(self.db().compact()),
            2..=9 => drop(self.db().step()),
            10 => drop(self.db().sync()),
            11 => self.load(),
            12 if !fails => {
                self.db.take().expect("open").close().expect("closes");
                self.db = Some(open_with(&self.disk, self.options.clone()));
            }
            13 => {
                let (last, place) = (self.db().snapshot().sequence(), NAMES.len() - 1);
                if self.db().drop_keyspace(NAMES[place]).is_ok() {
                    self.drops.push((last, self.now.clone()));
                    self.now.0.retain(|(at, _), _| *at != place);
                }
            }
            _ => self.write(),
        }
        self.disk.mend();
    }

    fn load(&mut self) {
        let keys: Vec<String> = (0..self.random.below(6)).map(|it| format!("{it:02}")).collect();
        let entries = keys.iter().map(|key| (key, "loaded"));
        if self.db().ingest(entries).is_ok_and(|loaded| loaded > 0) {
            let mut next = self.now.clone();
            keys.iter().for_each(|key| {
                next.0.insert((0, key.clone().into_bytes()), b"loaded".to_vec());
            });
            self.note(next);
        }
    }

    /// What a follower shows must be what the store was at its number. Dropping a key space has no
    /// number: before and after it, it may be there, or not.
    fn check(&self, moment: &trommel::Moment, what: &str) {
        let at = moment.sequence();
        let (_, state) = self.history.range(..=at).next_back().expect("from 0 on");
        for (place, name) in NAMES.iter().enumerate() {
            let Ok(snapshot) = moment.keyspace(name) else { continue };
            let found: Vec<_> = snapshot.range(..).map(owned).collect();
            let expected = state.of(place);
            let was_dropped = place + 1 == NAMES.len() && found != expected && {
                let is_empty = found.is_empty() && self.drops.iter().any(|(drop, _)| *drop >= at);
                let before = |(drop, state): &(u64, State)| *drop <= at && state.of(place) == found;
                is_empty || self.drops.iter().any(before)
            };
            if was_dropped {
                continue;
            }
            let what = format!("{what}: {name} at {at}");
            assert_eq!(found, expected, "{what}");
            let mut back: Vec<_> = snapshot.range(..).rev().map(owned).collect();
            back.reverse();
            assert_eq!(back, expected, "{what}, backward");
            for key in (0..40).map(|it| format!("{it:02}")) {
                let found = snapshot.get(&key).expect("reads");
                let value = expected.iter().find(|(it, _)| *it == key.as_bytes());
                assert_eq!(found.as_deref(), value.map(|it| &*it.1), "{what}, {key}");
                let may = snapshot.may_contain_range(key.as_str()..=key.as_str()).expect("asks");
                assert!(may || value.is_none(), "{what}: the guard denies {key}");
            }
        }
    }
}

impl State {
    /// A key space of it.
    fn of(&self, place: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let own = self.0.iter().filter(|((of, _), _)| *of == place);
        own.map(|((_, key), value)| (key.clone(), value.clone())).collect()
    }
}

fn random_history(seed: u64, guard: GuardKind) {
    let mut world = World::new(seed, guard);
    let options = FollowOptions::new()
        .options(Options::new().merge_operator(Concat::new("+")))
        .keyspace("one", KeyspaceOptions::new().merge_operator(Concat::new("+")))
        .keyspace("two", KeyspaceOptions::new().merge_operator(Concat::new("+")));
    let follow = |world: &World| {
        Db::follow_with("db", options.clone(), environment(&world.disk)).expect("follows")
    };
    // They catch up always, often, seldom.
    let mut followers: Vec<(Follower, u64)> =
        [1, 5, 60].map(|every| (follow(&world), every)).into();
    let mut held: Vec<trommel::Moment> = Vec::new();
    let mut before = [0; 3];
    for step in 0..400 {
        world.step();
        for (place, (follower, every)) in followers.iter_mut().enumerate() {
            if world.random.below(*every) > 0 {
                continue;
            }
            let what = format!("seed {seed}, {guard}, step {step}, follower {place}");
            follower.catch_up().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(follower.sequence() >= before[place], "{what} went back");
            before[place] = follower.sequence();
            let moment = follower.moment().expect("open");
            world.check(&moment, &what);
            if world.random.below(20) == 0 {
                held.push(moment);
            }
            if held.len() > 3 {
                held.remove(0);
            }
            held.iter().for_each(|moment| world.check(moment, &format!("{what}, held")));
        }
        if world.random.below(80) == 0 {
            followers[1].0 = follow(&world);
            before[1] = followers[1].0.sequence();
        }
    }
    // All of it, in the end.
    world.db().close().expect("closes");
    for (follower, _) in &followers {
        catch_up(follower);
        let moment = follower.moment().expect("open");
        world.check(&moment, &format!("seed {seed}, in the end"));
        let last = world.history.last_key_value().expect("from 0 on");
        assert!(moment.sequence() >= *last.0, "{} before {}", moment.sequence(), last.0);
        assert_eq!(follower.verify().expect("verifies").damage, [""; 0]);
    }
}

#[test]
fn every_answer_is_from_a_state_that_was() {
    trommel_guards::register().expect("they have names of their own");
    for guard in ["grf", "none", "ribbon", "chucky", "elastic"] {
        let guard: GuardKind = guard.parse().expect("a guard");
        (0..4).for_each(|seed| random_history(seed, guard));
    }
}
