//! Followers of the store. Each shows the state at its own sequence number, and catches up when
//! told to.
//! ```text
//! store      41   42   43   44   45              the model's journal knows the last states
//! follower             43                        reads are compared with the state at 43
//!            41                                  so are those of a snapshot that it has kept
//! ```
//! Invariant: a follower is dropped where another process would have to open it anew, or where its
//! simulated disk ends. That is at a power cut, a killed process, a fault and an opening.

use std::ops::Bound;
use std::path::Path;

use trommel::{Db, Error, FollowOptions, Options, Snapshot};

use super::check::{check_empty, check_value, read_scan};
use super::held::{HeldFollower, HeldSnapshot, entries_of};
use super::keys::{Edges, KeyIndex, Keys};
use super::model::State;
use super::operation::FollowerOperation;
use super::world::{Checked, DIR, Done, World};
use crate::keys::rng::Rng;

impl Done {
    /// Like `allowed`, for reads of a follower, which may also find that a file is gone.
    fn allowed_of_follower<T>(
        &mut self,
        what: &str,
        could_fail: bool,
        result: Result<T, Error>,
    ) -> Checked<Option<T>> {
        match result {
            Err(Error::Gone { .. }) => {
                self.gone += 1;
                Ok(None)
            }
            other => self.allowed(what, could_fail, other),
        }
    }
}

impl World<'_> {
    pub(crate) fn follower(&mut self, operation: &FollowerOperation) -> Checked<()> {
        match operation {
            FollowerOperation::Open(seed) => self.follow(*seed),
            FollowerOperation::CatchUp { which, keeps } => self.catch_up(*which, *keeps),
            FollowerOperation::Read { which, old, place, edges } => {
                self.read_follower(*which, *old, *place, edges)
            }
            FollowerOperation::Drop(which) => {
                self.followers.drop_one(*which);
                Ok(())
            }
        }
    }

    fn follow(&mut self, seed: u64) -> Checked<()> {
        // A first opening trusts the manifest's only edit, even if that load was refused.
        if self.load_in_doubt {
            return Ok(());
        }
        let could_fail = self.could_fail();
        let environment = self.environment_on(&self.disk);
        let opened = Db::follow_with(Path::new(DIR), options(&mut Rng::new(seed)), environment);
        let Some(follower) = self.done.allowed("follow", could_fail, opened)? else {
            return Ok(());
        };
        self.done.followers += 1;
        let state = self.journal.state_at(follower.sequence(), &self.model);
        self.followers.push(HeldFollower { follower, state, before: None });
        Ok(())
    }

    fn catch_up(&mut self, which: usize, keeps: bool) -> Checked<()> {
        let Some(which) = self.followers.place(which) else { return Ok(()) };
        let could_fail = self.could_fail();
        if keeps {
            self.keep_snapshot(which)?;
        }
        let follower = &self.followers[which].follower;
        let (before, caught_up) = (follower.sequence(), follower.catch_up());
        let now = follower.sequence();
        self.done.allowed("catch up", could_fail, caught_up)?;
        if now < before {
            return Err(format!("a follower goes back from {before} to {now}"));
        }
        if now != before {
            self.followers[which].state = self.journal.state_at(now, &self.model);
        }
        Ok(())
    }

    /// Keeps a snapshot of what a follower shows, if its state is known.
    fn keep_snapshot(&mut self, which: usize) -> Checked<()> {
        let could_fail = self.could_fail();
        let held = &mut self.followers[which];
        let Some(state) = held.state.clone() else { return Ok(()) };
        let taken = held.follower.snapshot();
        let taken = self.done.allowed_of_follower("a follower's snapshot", could_fail, taken)?;
        held.before = taken.map(|snapshot| HeldSnapshot { snapshot, state });
        Ok(())
    }

    /// Compares what a follower shows, or showed before, if the state is known.
    fn read_follower(
        &mut self,
        which: usize,
        old: bool,
        place: KeyIndex,
        edges: &Edges,
    ) -> Checked<()> {
        let Some(which) = self.followers.place(which) else { return Ok(()) };
        let (could_fail, tick, keys) = (self.could_fail(), self.model.tick(), self.keys);
        let held = &mut self.followers[which];
        let number = held.follower.sequence();
        let read = match old {
            true => held.read_before(tick, place, edges, keys),
            false => held.read(tick, place, edges, keys),
        };
        let read = read.map_err(|wrong| {
            let when = if old { "before" } else { "now" };
            format!("follower {which}, at {number}, of {when}: {wrong}")
        })?;
        let Some(read) = read else { return Ok(()) };
        if self.done.allowed_of_follower("a read of a follower", could_fail, read)?.is_some() {
            self.done.followed += 1;
        }
        Ok(())
    }

    /// Checks followers of a store that was closed without failures: its log says that all its
    /// entries count.
    pub(crate) fn check_followers_of_closed(&mut self) -> Checked<()> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        for which in 0..self.followers.len() {
            self.catch_up(which, false)?;
            let (now, newest) = (self.followers[which].follower.sequence(), self.journal.newest());
            if now < newest {
                return Err(format!("a closed store is at {newest}, and its follower at {now}"));
            }
            self.read_follower(which, false, 0, &all)?;
        }
        Ok(())
    }
}

/// The result of a follower's read: an error of the check, None for an unknown state, or the
/// follower's own result.
type Read = Checked<Option<trommel::Result<()>>>;

impl HeldFollower {
    fn read(&mut self, tick: u32, place: KeyIndex, edges: &Edges, keys: &Keys) -> Read {
        let Some(state) = &mut self.state else { return Ok(None) };
        state.expire(tick);
        match self.follower.snapshot() {
            Ok(snapshot) => compare(&snapshot, state, (place, edges), keys).map(Some),
            Err(error) => Ok(Some(Err(error))),
        }
    }

    fn read_before(&mut self, tick: u32, place: KeyIndex, edges: &Edges, keys: &Keys) -> Read {
        let Some(HeldSnapshot { snapshot, state }) = &mut self.before else { return Ok(None) };
        state.expire(tick);
        compare(snapshot, state, (place, edges), keys).map(Some)
    }
}

/// Compares a key, a range in both directions, and the guard's answers. The inner error is the
/// follower's.
fn compare(
    snapshot: &Snapshot,
    state: &State,
    (place, edges): (KeyIndex, &Edges),
    keys: &Keys,
) -> Checked<trommel::Result<()>> {
    let (key, places) = (keys.get(place), keys.places(edges));
    let answers =
        snapshot.get(key).and_then(|found| Ok((found, snapshot.may_contain_range(edges.clone())?)));
    let (found, may_have) = match answers {
        Ok(answers) => answers,
        Err(error) => return Ok(Err(error)),
    };
    check_value(key, found, state.0[usize::from(place)])?;
    if !may_have {
        check_empty(entries_of(state, places.clone()).count() as u64, edges)?;
    }
    for back in [false, true] {
        let scan = snapshot.range(edges.clone());
        let read = read_scan(scan, state, places.clone(), back, keys, usize::MAX)?;
        if read.is_err() {
            return Ok(read);
        }
    }
    Ok(Ok(()))
}

/// Draws options: those of the store, often with few files that may be open.
fn options(rng: &mut Rng) -> FollowOptions {
    let files = [None, Some(100), Some(4), Some(1)][rng.place(4)];
    let options = files.map_or_else(Options::new, |files| Options::new().max_open_files(files));
    FollowOptions::new().options(options)
}
