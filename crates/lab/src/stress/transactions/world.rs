//! A store with several key spaces on a simulated disk, and its model.
//! ```text
//! step -> store (answer or error) -> model -> the touched keys, and now and then everything
//! ```
//! Invariant: an error is right only while the disk may fail. A conflict is right only where the
//! model expects one, and there it must occur. A crash leaves a prefix of all writes across all key
//! spaces.

use std::path::Path;
use std::sync::Arc;

use trommel::research::Research as _;
use trommel::storage::Memory;
use trommel::testing::ManualClock;
use trommel::{
    Batch, Db, Environment, Error, KeyspaceOptions, Options, Resources, Swap, SyncPolicy, Update,
};

use super::super::held::HeldSnapshot;
use super::super::held_list::HeldList;
use super::super::keys::Keys;
use super::super::model::{Reopened, State, expiry_of, is_streamed, mixed, number_of, value_of};
use super::super::operands::operand_of;
use super::super::operation::{End, Write};
use super::super::setup::{self, INTERVAL};
use super::super::values::{put, read_through};
use super::super::world::{Checked, DIR, Done, Door};
use super::super::writer::expiry_at;
use super::models::Models;
use super::open::{Locked, Now, OpenTransaction, Outcome, Spaces, Touched, Verdict, compare};
use super::step::{NumberedStep, Step, Stretch};
use super::{KEYS, SPACES, number_of_key};
use crate::keys::rng::scramble;
use crate::keys::spread::spread_key as key;

/// The name of a bulk load in messages.
const INGEST: &str = "ingest";
/// The steps between two comparisons of everything.
const FULL_EVERY: u32 = 64;

pub(crate) struct World {
    door: Door,
    disk: Memory,
    clock: Arc<ManualClock>,
    options: Options,
    resources: Option<Resources>,
    /// None only while it is reopened.
    db: Option<Db>,
    spaces: Spaces,
    names: Vec<String>,
    /// The number of lives and names given so far.
    given: u32,
    model: Models,
    /// The keys, for descriptions.
    keys: Keys,
    /// Everything written, in order.
    written: Vec<Touched>,
    open: HeldList<OpenTransaction>,
    snapshots: HeldList<HeldSnapshot>,
    /// Whether the disk could fail at some time since the last power cut.
    had_faults: bool,
    /// Whether a killed process left unsynced bytes, and nothing was written since.
    inherits: bool,
    done: Done,
}

impl World {
    pub(super) fn new(setup: u64, door: Door) -> Checked<Self> {
        let mut world = World {
            door,
            disk: Memory::new(),
            clock: Arc::default(),
            options: setup::options(setup),
            resources: setup::resources(setup),
            db: None,
            spaces: Spaces { handles: Vec::new(), lives: (0..SPACES as u32).collect() },
            names: (0..SPACES).map(|space| format!("space {space}")).collect(),
            given: SPACES as u32,
            model: Models::new(&setup::have_logs::<SPACES>(setup), KEYS),
            keys: Keys::dense((SPACES * KEYS) as u64),
            written: Vec::new(),
            open: HeldList::default(),
            snapshots: HeldList::default(),
            had_faults: false,
            inherits: false,
            done: Done::default(),
        };
        world.open(setup)?;
        Ok(world)
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    fn open_on(&self, disk: &Memory, dir: &Path) -> trommel::Result<Db> {
        let (storage, clock) = ((self.door)(disk.clone()), Arc::clone(&self.clock) as _);
        let mut environment = Environment::new().storage(storage).clock(clock);
        if let Some(resources) = &self.resources {
            environment = environment.resources(resources);
        }
        let options = self.options.clone().log(self.model.has_log(0)).merge_operator(mixed());
        Db::open_with(dir, options, environment)
    }

    fn options_of(&self, space: usize, setup: u64) -> KeyspaceOptions {
        let options = KeyspaceOptions::from(setup::options(setup)).merge_operator(mixed());
        options.log(self.model.has_log(space))
    }

    /// Opens the store and all key spaces, each with its own options.
    fn open(&mut self, setup: u64) -> Checked<()> {
        let wrong = |error: Error| format!("open: {error}");
        let db = self.open_on(&self.disk, Path::new(DIR)).map_err(wrong)?;
        let mut handles = vec![trommel::Keyspace::clone(&db)];
        for (space, name) in self.names.iter().enumerate().skip(1) {
            let options = self.options_of(space, scramble(setup ^ space as u64));
            handles.push(db.keyspace(name, options).map_err(wrong)?);
        }
        (self.db, self.spaces.handles) = (Some(db), handles);
        Ok(())
    }

    pub(super) fn apply(&mut self, numbered: &NumberedStep) -> Checked<()> {
        let NumberedStep { number, step } = numbered;
        self.done.operations += 1;
        self.had_faults |= self.could_fail();
        self.perform(*number, step)?;
        self.note_flushed();
        self.check_touched(*number, step)?;
        if number.is_multiple_of(FULL_EVERY) && !self.could_fail() {
            self.check_all()?;
        }
        Ok(())
    }

    fn perform(&mut self, number: u32, step: &Step) -> Checked<()> {
        match step {
            Step::Begin { serializable } => self.begin(*serializable),
            Step::TxGet { which, place, for_update: true } => {
                return self.read_for_update(*which, *place);
            }
            Step::TxGet { which, place, for_update: false } => {
                let place = *place;
                self.read_inside(*which, |tx, spaces| tx.get(place, spaces))?;
            }
            Step::TxScan { which, stretch, back, limit } => {
                let (stretch, back, limit) = (*stretch, *back, *limit);
                self.read_inside(*which, |tx, spaces| tx.scan(stretch, back, limit, spaces))?;
            }
            Step::TxWrite { which, writes } => {
                self.read_inside(*which, |tx, spaces| Ok(tx.write(writes, spaces)))?;
            }
            Step::TxDeleteRange { which, stretch } => {
                let stretch = *stretch;
                self.read_inside(*which, |tx, spaces| Ok(tx.delete_range(stretch, spaces)))?;
            }
            Step::Savepoint { which } => {
                self.open.place(*which).into_iter().for_each(|at| self.open[at].set_savepoint());
            }
            Step::RollBack { which } => {
                self.open.place(*which).into_iter().for_each(|at| self.open[at].roll_back());
            }
            Step::Commit { which, synced } => return self.commit(*which, *synced),
            Step::Abandon { which } => self.open.drop_one(*which),
            Step::Write { writes, synced } => return self.write(writes, *synced),
            Step::DeleteRange(stretch) => return self.delete_range(*stretch),
            Step::OnlyIf { places, lies, writes } => return self.only_if(places, *lies, writes),
            Step::PutIfAbsent(write) => return self.put_if_absent(*write),
            Step::Swap { write, lies } => return self.swap(*write, *lies),
            Step::Update(write) => return self.update(*write),
            Step::Ingest { space, writes } => return self.ingest(*space, writes),
            Step::Get(place) => return self.check_get(*place),
            Step::TakeSnapshot => self.take_snapshot(),
            Step::ReadSnapshot { which, space } => return self.read_snapshot(*which, *space),
            Step::DropSnapshot(which) => self.snapshots.drop_one(*which),
            Step::Drop { space, setup } => return self.drop_space(*space, *setup),
            Step::Rename { space } => return self.rename(*space),
            Step::Flush { space } => return self.flush(*space),
            Step::FlushAll => return self.work("flush", true, |db, _| db.flush()),
            Step::Compact { space } => {
                let space = *space;
                return self.work("compact", false, |_, spaces| spaces.handles[space].compact());
            }
            Step::Work(count) => return self.step(number, *count),
            Step::Settle => return self.work("settle", false, |db, _| db.settle()),
            Step::Sync => return self.work("sync", true, |db, _| db.sync()),
            Step::Verify => return self.verify(),
            Step::Checkpoint => return self.checkpoint(number),
            Step::Tick => self.tick(),
            Step::Fail(failure) => {
                self.had_faults = true;
                failure.arm(&self.disk);
            }
            Step::Mend => self.disk.mend(),
            Step::Reopen { end, setup } => return self.reopen(*end, *setup),
        }
        Ok(())
    }

    /// Flushes a key space. An empty memtable is not flushed, so nothing is synced then.
    fn flush(&mut self, space: usize) -> Checked<()> {
        self.work("flush", false, |_, spaces| spaces.handles[space].flush())
    }

    /// Does steps of background work, of drawn key spaces and kinds.
    fn step(&mut self, number: u32, count: u32) -> Checked<()> {
        (0..count).try_for_each(|nth| {
            let choice = scramble(u64::from(number) << 32 | u64::from(nth)) as usize;
            self.work("step", false, |db, _| db.step_any(choice).map(|_| ()))
        })
    }

    fn could_fail(&self) -> bool {
        self.disk.may_fail()
    }

    /// Does maintenance. `saves`: its success makes all acknowledged writes durable.
    fn work(
        &mut self,
        what: &str,
        saves: bool,
        work: impl FnOnce(&Db, &Spaces) -> trommel::Result<()>,
    ) -> Checked<()> {
        let could_fail = self.could_fail();
        let result = work(self.db(), &self.spaces);
        if self.done.allowed(what, could_fail, result)?.is_some() && saves {
            self.all_durable();
        }
        Ok(())
    }

    fn all_durable(&mut self) {
        self.model.all_durable();
        self.inherits = false;
    }

    fn begin(&mut self, serializable: bool) {
        let begun = self.written.len();
        let new = OpenTransaction::begin(self.db(), serializable, self.model.seen(), begun);
        self.open.push(new);
    }

    /// Works in a transaction, which is dropped if the disk fails.
    fn read_inside(
        &mut self,
        which: usize,
        work: impl FnOnce(&mut OpenTransaction, &Spaces) -> Checked<trommel::Result<()>>,
    ) -> Checked<()> {
        let Some(at) = self.open.place(which) else { return Ok(()) };
        let could_fail = self.could_fail();
        let done = work(&mut self.open[at], &self.spaces)
            .map_err(|wrong| format!("transaction {at}: {wrong}"))?;
        if self.done.allowed("in a transaction", could_fail, done)?.is_none() {
            self.open.drop_one(at);
        }
        Ok(())
    }

    /// Reads a key for update. The read must fail if another transaction has locked the key.
    fn read_for_update(&mut self, which: usize, place: usize) -> Checked<()> {
        let Some(at) = self.open.place(which) else { return Ok(()) };
        let could_fail = self.could_fail();
        let mut transaction = self.open.swap_remove(at);
        let is_locked = self.is_locked(&[self.spaces.touched(Stretch::of_place(place))]);
        let read = transaction.get_for_update(place, self.now());
        let read = read.map_err(|wrong| format!("transaction {at}, for update: {wrong}"))?;
        match read {
            Err(Error::LockTimeout { .. }) if is_locked => self.done.lock_timeouts += 1,
            Ok(Locked::Read) if is_locked => {
                return Err("a key was read for update that another has locked".into());
            }
            Ok(Locked::Refused) => self.done.conflicts += 1,
            read => {
                // A disk failure drops the transaction.
                if self.done.allowed("read for update", could_fail, read)?.is_none() {
                    return Ok(());
                }
            }
        }
        self.open.push(transaction);
        Ok(())
    }

    fn now(&self) -> Now<'_> {
        let (seen, tick) = (self.model.seen(), self.model.tick());
        Now { written: &self.written, seen, tick, spaces: &self.spaces }
    }

    /// Whether an open transaction has locked any of these keys.
    fn is_locked(&self, touched: &[Touched]) -> bool {
        self.open.iter().any(|open| touched.iter().any(|touched| open.has_locked(touched)))
    }

    /// Checks that a write of locked keys was refused. `could_fail`: whether the disk could fail
    /// during the write, since values are put into their files first.
    fn refused(
        &mut self,
        what: &str,
        could_fail: bool,
        result: trommel::Result<()>,
    ) -> Checked<()> {
        match result {
            Err(Error::LockTimeout { .. }) => {
                self.done.lock_timeouts += 1;
                Ok(())
            }
            Ok(()) => Err(format!("{what}: something was written that a transaction has locked")),
            Err(error) => self.done.allowed::<()>(what, could_fail, Err(error)).map(|_| ()),
        }
    }

    fn commit(&mut self, which: usize, synced: bool) -> Checked<()> {
        let Some(at) = self.open.place(which) else { return Ok(()) };
        let could_fail = self.could_fail();
        let transaction = self.open.swap_remove(at);
        if could_fail && !self.model.takes_doubt() {
            return Ok(());
        }
        let outcome = transaction.commit(synced, self.now());
        let Outcome { writes, touched, verdict, committed } = outcome;
        if verdict == Verdict::Commits && self.is_locked(&touched) {
            return self.refused("commit", could_fail, committed);
        }
        match (committed, verdict) {
            (Ok(()), Verdict::Conflicts) => {
                Err("a commit succeeded though somebody has written what it has read".into())
            }
            (Ok(()), Verdict::Commits) => {
                self.done.commits += 1;
                self.note(&writes, touched, true, synced);
                Ok(())
            }
            (Err(Error::Conflict { .. } | Error::KeyspaceDropped { .. }), Verdict::Conflicts) => {
                self.done.conflicts += 1;
                Ok(())
            }
            (Err(error), verdict) => {
                self.done.allowed::<()>("commit", could_fail, Err(error))?;
                if verdict == Verdict::Commits {
                    self.note(&writes, touched, false, synced);
                }
                Ok(())
            }
        }
    }

    /// Notes writes that were made, or that failed.
    fn note(&mut self, writes: &[Write], touched: Vec<Touched>, written: bool, synced: bool) {
        if writes.is_empty() {
            return;
        }
        let is_logged = self.model.wrote(writes, written, self.visible());
        if !written {
            return;
        }
        self.written.extend(touched);
        // A write without a log does not rewrite the recovered log.
        self.inherits &= !is_logged;
        match self.options.sync {
            _ if self.inherits => {}
            _ if synced => self.model.all_durable(),
            SyncPolicy::Always => self.model.all_durable(),
            SyncPolicy::Interval(_) if is_logged => self.model.overdue_durable(),
            _ => {}
        }
    }

    /// Returns the newest sequence number that readers see.
    fn visible(&self) -> u64 {
        self.db().snapshot().sequence()
    }

    /// Notes how much of the key spaces without a log is durable.
    fn note_flushed(&mut self) {
        for space in 0..SPACES {
            if self.model.has_log(space) {
                continue;
            }
            let stats = self.spaces.handles[space].stats().expect("the store is open");
            let through = stats.durable_through.expect("it has no log");
            self.model.flushed_through(space, through);
        }
    }

    fn touched(&self, writes: &[Write]) -> Vec<Touched> {
        let stretches = writes.iter().map(|write| Stretch::of_place(usize::from(write.place)));
        stretches.map(|stretch| self.spaces.touched(stretch)).collect()
    }

    /// Makes writes by one call of the store.
    fn write_by(
        &mut self,
        what: &str,
        (writes, synced): (&[Write], bool),
        write: impl FnOnce(&Self) -> trommel::Result<()>,
    ) -> Checked<()> {
        let could_fail = self.could_fail();
        if could_fail && !self.model.takes_doubt() {
            return Ok(());
        }
        let result = write(self);
        let touched = self.touched(writes);
        // A bulk load ignores locks.
        if what != INGEST && self.is_locked(&touched) {
            return self.refused(what, could_fail, result);
        }
        let written = self.done.allowed(what, could_fail, result)?.is_some();
        self.note(writes, touched, written, synced);
        Ok(())
    }

    fn batch(&self, writes: &[Write]) -> Batch {
        let mut batch = Batch::new();
        self.fill(&mut batch, writes);
        batch
    }

    fn fill(&self, batch: &mut Batch, writes: &[Write]) {
        for write in writes {
            let place = usize::from(write.place);
            batch.to(self.spaces.of_place(place));
            let key = key(place % KEYS);
            match (write.number, expiry_of(write.number)) {
                (0, _) => batch.delete(key),
                (number, None) => match operand_of(number) {
                    Some(operand) => batch.merge(key, operand),
                    None => batch.put(key, value_of(number)),
                },
                (number, Some(tick)) => {
                    batch.put_with_expiry(key, value_of(number), expiry_at(tick))
                }
            };
        }
    }

    fn write(&mut self, writes: &[Write], synced: bool) -> Checked<()> {
        self.write_by("write", (writes, synced), |world| {
            if let ([write], false) = (writes, synced) {
                let space = world.spaces.of_place(usize::from(write.place));
                let key = key(usize::from(write.place) % KEYS);
                match (write.number, expiry_of(write.number)) {
                    (0, _) => return space.delete(key),
                    _ if operand_of(write.number).is_some() => {}
                    (number, None) => return put(space, &key, number, value_of(number)),
                    _ => {}
                }
            }
            let batch = world.batch(writes);
            if synced { world.db().write_synced(batch) } else { world.db().write(batch) }
        })
    }

    fn delete_range(&mut self, stretch: Stretch) -> Checked<()> {
        let deletions = stretch.deletions();
        self.write_by("delete_range", (&deletions, false), |world| {
            let space = &world.spaces.handles[stretch.space];
            space.delete_range(key(stretch.from), key(stretch.to))
        })
    }

    fn only_if(&mut self, places: &[usize], lies: bool, writes: &[Write]) -> Checked<()> {
        let mut batch = Batch::new();
        for (nth, &place) in places.iter().enumerate() {
            let has = Some(self.model.seen().0[place]).filter(|number| *number > 0).map(value_of);
            let expected = if lies && nth == 0 { Some(b"a lie".to_vec()) } else { has };
            batch.to(self.spaces.of_place(place)).only_if(key(place % KEYS), expected.as_deref());
        }
        self.fill(&mut batch, writes);
        if !lies {
            return self.write_by("only_if", (writes, false), |world| world.db().write(batch));
        }
        let could_fail = self.could_fail();
        match self.db().write(batch) {
            Err(Error::Conflict { .. }) => Ok(()),
            Ok(()) => Err("a batch was written though a condition does not hold".into()),
            Err(error) => self.done.allowed::<()>("only_if", could_fail, Err(error)).map(|_| ()),
        }
    }

    fn put_if_absent(&mut self, write: Write) -> Checked<()> {
        let place = usize::from(write.place);
        let call = |world: &Self| {
            let space = world.spaces.of_place(place);
            space.put_if_absent(key(place % KEYS), value_of(write.number))
        };
        let has = self.model.seen().0[place];
        if has == 0 {
            return self.write_by("put_if_absent", (&[write], false), |world| {
                let found = call(world)?;
                assert!(found.is_none(), "put_if_absent found something");
                Ok(())
            });
        }
        let (could_fail, found) = (self.could_fail(), call(self));
        match self.done.allowed("put_if_absent", could_fail, found)? {
            Some(found) => compare(place, found.as_ref(), has),
            None => Ok(()),
        }
    }

    fn swap(&mut self, write: Write, lies: bool) -> Checked<()> {
        let place = usize::from(write.place);
        let has = self.model.seen().0[place];
        let expected = Some(has).filter(|number| *number > 0).map(value_of);
        let expected = if lies { Some(b"a lie".to_vec()) } else { expected };
        let new = Some(write.number).filter(|number| *number > 0).map(value_of);
        let call = |world: &Self| {
            let space = world.spaces.of_place(place);
            space.compare_and_swap(key(place % KEYS), expected.as_deref(), new.as_deref())
        };
        if !lies {
            return self.write_by("compare_and_swap", (&[write], false), |world| {
                let swapped = call(world)?;
                assert!(matches!(swapped, Swap::Done), "{swapped:?}, though it is as expected");
                Ok(())
            });
        }
        let (could_fail, found) = (self.could_fail(), call(self));
        match self.done.allowed("compare_and_swap", could_fail, found)? {
            Some(Swap::Found(found)) => compare(place, found.as_ref(), has),
            Some(Swap::Done) => Err("a swap of what is not there".into()),
            None => Ok(()),
        }
    }

    fn update(&mut self, write: Write) -> Checked<()> {
        let place = usize::from(write.place);
        let has = self.model.seen().0[place];
        self.write_by("update", (&[write], false), |world| {
            let space = world.spaces.of_place(place);
            let old = space.update(key(place % KEYS), |_| match write.number {
                0 => Update::Delete,
                number => Update::Put(value_of(number)),
            })?;
            let old = old.map_or(Some(0), |old| number_of(&old));
            assert_eq!(old, Some(has), "an update has read something else");
            Ok(())
        })
    }

    fn ingest(&mut self, space: usize, writes: &[Write]) -> Checked<()> {
        let before = self.written.len();
        self.write_by(INGEST, (writes, false), |world| {
            let entry =
                |write: &Write| (key(usize::from(write.place) % KEYS), value_of(write.number));
            world.spaces.handles[space].ingest(writes.iter().map(entry)).map(|_| ())
        })?;
        if self.written.len() > before {
            // Earlier writes must survive wherever this load does.
            self.all_durable();
        }
        Ok(())
    }

    fn take_snapshot(&mut self) {
        let (snapshot, state) = (self.db().snapshot(), self.model.seen().clone());
        self.snapshots.push(HeldSnapshot { snapshot, state });
    }

    fn read_snapshot(&mut self, which: usize, space: usize) -> Checked<()> {
        let Some(at) = self.snapshots.place(which) else { return Ok(()) };
        let could_fail = self.could_fail();
        let held = &self.snapshots[at];
        let snapshot = held.snapshot.of(&self.spaces.handles[space]);
        let found = contents(snapshot.iter());
        let expected = held.state.0[Stretch::whole(space).places()].to_vec();
        match self.done.allowed("a snapshot", could_fail, found)? {
            Some(found) => same(space, &found?, &expected, "a snapshot"),
            None => Ok(()),
        }
    }

    fn drop_space(&mut self, space: usize, setup: u64) -> Checked<()> {
        if self.could_fail() {
            return Ok(());
        }
        let wrong = |error: Error| format!("drop a key space: {error}");
        self.db().drop_keyspace(&self.names[space]).map_err(wrong)?;
        self.model.wrote(&Stretch::whole(space).deletions(), true, self.visible());
        self.name_anew(space);
        self.spaces.lives[space] = self.given;
        let new =
            self.db().keyspace(&self.names[space], self.options_of(space, setup)).map_err(wrong)?;
        self.spaces.handles[space] = new;
        // The edit is durable, and with it everything written before.
        self.all_durable();
        self.open.iter_mut().for_each(|transaction| transaction.lose(space));
        for held in self.snapshots.iter_mut() {
            Stretch::whole(space).places().for_each(|place| held.state.0[place] = 0);
        }
        self.check_names()
    }

    fn rename(&mut self, space: usize) -> Checked<()> {
        if self.could_fail() {
            return Ok(());
        }
        let before = self.names[space].clone();
        self.name_anew(space);
        let renamed = self.db().rename_keyspace(before, &self.names[space]);
        renamed.map_err(|error| format!("rename a key space: {error}"))?;
        self.all_durable();
        self.check_names()
    }

    fn name_anew(&mut self, space: usize) {
        self.given += 1;
        self.names[space] = format!("space {space}, {}", self.given);
    }

    fn check_names(&self) -> Checked<()> {
        let mut found = self.db().keyspaces().map_err(|error| error.to_string())?;
        let mut expected = self.names.clone();
        expected[0] = "default".into();
        found.sort();
        expected.sort();
        if found == expected { Ok(()) } else { Err(format!("{found:?}, expected {expected:?}")) }
    }

    fn verify(&mut self) -> Checked<()> {
        let could_fail = self.could_fail();
        let verified = self.db().verify();
        match self.done.allowed("verify", could_fail, verified)? {
            Some(report) if !report.damage.is_empty() => {
                Err(format!("verify: {}", report.damage.join("; ")))
            }
            _ => Ok(()),
        }
    }

    fn checkpoint(&mut self, number: u32) -> Checked<()> {
        if self.could_fail() {
            return Ok(());
        }
        let (dir, wrong) =
            (format!("copy-{number}"), |error: Error| format!("checkpoint: {error}"));
        self.db().checkpoint(&dir).map_err(wrong)?;
        self.done.checkpoints += 1;
        let disk = self.disk.crash_hard();
        let copy = self.open_on(&disk, Path::new(&dir)).map_err(wrong)?;
        for (space, name) in self.names.iter().enumerate() {
            let name = if space == 0 { "default" } else { name };
            let options = KeyspaceOptions::new().merge_operator(mixed());
            let found = copy.keyspace(name, options).map_err(wrong)?;
            let found = contents(found.iter()).map_err(wrong)??;
            let expected = &self.model.seen().0[Stretch::whole(space).places()];
            same(space, &found, expected, "a checkpoint")?;
        }
        copy.close().map_err(wrong)
    }

    fn tick(&mut self) {
        self.clock.advance(INTERVAL);
        self.model.interval_passed();
        let tick = self.model.tick();
        self.snapshots.iter_mut().for_each(|held| held.state.expire(tick));
        self.open.iter_mut().for_each(|transaction| transaction.expire(tick));
    }

    fn reopen(&mut self, end: End, setup: Option<u64>) -> Checked<()> {
        self.done.reopened += 1;
        self.count_work();
        self.end(end)?;
        self.disk.mend();
        let power_was_cut = matches!(end, End::PowerCut(_) | End::PowerCutHard);
        let lossless = !power_was_cut && !self.had_faults;
        if power_was_cut {
            self.done.power_cuts += 1;
            self.had_faults = false;
        }
        if let Some(setup) = setup {
            self.options = setup::options(setup);
        }
        self.open(setup.unwrap_or_default())?;
        self.check_names()?;
        let found = State(self.found()?);
        let how = Reopened { lossless, power_was_cut };
        let flushed = lossless && matches!(end, End::Close | End::Drop);
        self.model.reopened(&found, how, (flushed, self.visible()), &self.keys)
    }

    fn end(&mut self, end: End) -> Checked<()> {
        self.open.clear();
        self.snapshots.clear();
        self.spaces.handles.clear();
        let db = self.db.take().expect("open between operations");
        let could_fail = self.could_fail();
        let next_disk = match end {
            End::Close | End::Drop => self.disk.clone(),
            End::Kill => self.disk.kill(),
            End::PowerCut(seed) => self.disk.crash(seed),
            End::PowerCutHard => self.disk.crash_hard(),
        };
        if end == End::Close {
            let closed = db.close();
            if self.done.allowed("close", could_fail, closed)?.is_some() && !self.inherits {
                self.model.all_durable();
            }
        }
        match end {
            End::Close | End::Drop => {}
            End::Kill => self.inherits = true,
            End::PowerCut(_) | End::PowerCutHard => self.inherits = false,
        }
        self.disk = next_disk;
        Ok(())
    }

    /// Returns the contents of all key spaces.
    fn found(&self) -> Checked<Vec<u32>> {
        let spaces = self.spaces.handles.iter().map(|space| {
            contents(space.iter()).map_err(|error| format!("read everything: {error}"))?
        });
        Ok(spaces.collect::<Checked<Vec<_>>>()?.concat())
    }

    fn check_all(&mut self) -> Checked<()> {
        let found = self.found()?;
        for space in 0..SPACES {
            let places = Stretch::whole(space).places();
            same(space, &found[places.clone()], &self.model.seen().0[places], "all")?;
        }
        self.done.answers += 1;
        Ok(())
    }

    fn check_touched(&mut self, number: u32, step: &Step) -> Checked<()> {
        let written: &[Write] = match step {
            Step::Write { writes, .. } | Step::OnlyIf { writes, .. } => writes,
            Step::PutIfAbsent(write) | Step::Update(write) | Step::Swap { write, .. } => {
                std::slice::from_ref(write)
            }
            _ => &[],
        };
        let places = written.iter().map(|write| usize::from(write.place));
        let drawn = scramble(u64::from(number)) as usize % (SPACES * KEYS);
        places.chain([drawn]).try_for_each(|place| self.check_get(place))
    }

    fn check_get(&mut self, place: usize) -> Checked<()> {
        let could_fail = self.could_fail();
        let found = self.spaces.of_place(place).get(key(place % KEYS));
        let number = self.model.seen().0[place];
        match self.done.allowed("get", could_fail, found)? {
            Some(found) => compare(place, found.as_ref(), number)?,
            None => return Ok(()),
        }
        if is_streamed(number) { self.check_reader(place, number) } else { Ok(()) }
    }

    fn check_reader(&mut self, place: usize, number: u32) -> Checked<()> {
        let could_fail = self.could_fail();
        let read = read_through(self.spaces.of_place(place), &key(place % KEYS), number)?;
        self.done.allowed("get_reader", could_fail, read).map(|_| ())
    }

    fn count_work(&mut self) {
        for space in &self.spaces.handles {
            let stats = space.stats().expect("the store is open");
            self.done.flushes += stats.flushes;
            self.done.merges += stats.merges;
        }
        self.done.disk_operations = self.disk.operations();
    }

    /// Ends the history: compares everything once more, before and after a reopening.
    pub(super) fn finish(mut self) -> Checked<Done> {
        self.disk.mend();
        self.work("settle at the end", false, |db, _| db.settle())?;
        self.check_all()?;
        self.verify()?;
        self.reopen(End::Close, None)?;
        self.check_all()?;
        Ok(self.done)
    }
}

/// Returns the numbers of a key space's values, by key; 0: the key has none.
fn contents(scan: trommel::Scan) -> trommel::Result<Checked<Vec<u32>>> {
    let mut numbers = vec![0; KEYS];
    for entry in scan {
        let (key, value) = entry?;
        match number_of_key(&key).zip(number_of(&value)) {
            Some((key, number)) => numbers[key] = number,
            None => return Ok(Err(format!("{key:?} was never written so"))),
        }
    }
    Ok(Ok(numbers))
}

fn same(space: usize, found: &[u32], expected: &[u32], what: &str) -> Checked<()> {
    let mut both = found.iter().zip(expected).enumerate();
    match both.find(|(_, (found, expected))| found != expected) {
        None => Ok(()),
        Some((key, (found, expected))) => {
            Err(format!("{what}: {space}/{key} has #{found}, expected #{expected}"))
        }
    }
}
