//! A store on a simulated disk, and its model: applies steps and compares.
//! ```text
//! step -> store (answer or error) -> model -> checks of the touched keys and of some others
//! ```
//! Invariant: an error is right only while the disk may fail; any other answer is always right.

use std::path::Path;
use std::sync::Arc;
use trommel::research::Research as _;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::testing::{Fault, ManualClock};
use trommel::{Db, Error, Options, Resources, SyncPolicy};

use super::backup_book::BackupBook;
use super::check::full_state;
use super::copies::{KeptCopy, check_repair, checkpoint};
use super::held::{HeldFollower, HeldScan, HeldSnapshot};
use super::held_list::HeldList;
use super::journal::Journal;
use super::keys::{KeyIndex, Keys};
use super::model::{Model, Reopened};
use super::operation::{End, Failure, Reopening, StressOperation, StressStep, Write};
use super::ranges::RangeDeletion;
use super::rot::{check_left_overs, check_rotten_copy};
use super::setup;
use super::values::{HeldReader, cut_stream};
use super::writer::Writer;
use crate::keys::rng::Rng;

/// The store's folder.
pub(crate) const DIR: &str = "db";

/// How a store accesses its disk. A test may put a lying disk between.
pub(crate) type Door = fn(Memory) -> Arc<dyn Storage>;

/// What a history has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) operations: u64,
    pub(crate) answers: u64,
    pub(crate) reopened: u64,
    pub(crate) power_cuts: u64,
    pub(crate) rotten: u64,
    pub(crate) checkpoints: u64,
    pub(crate) repairs: u64,
    pub(crate) followers: u64,
    /// Reads of followers that were compared.
    pub(crate) followed: u64,
    /// Reads of followers, and shipments, whose files were gone.
    pub(crate) gone: u64,
    pub(crate) backups: u64,
    pub(crate) shipped: u64,
    pub(crate) restored: u64,
    pub(crate) errors: u64,
    pub(crate) flushes: u64,
    pub(crate) merges: u64,
    pub(crate) disk_operations: u64,
    /// Transactions that committed, and those that had to fail.
    pub(crate) commits: u64,
    pub(crate) conflicts: u64,
    /// Reads for update and writes that were refused because a key was locked.
    pub(crate) lock_timeouts: u64,
}

impl Done {
    /// Returns the answer of the store. None: it was an error while the disk could fail.
    pub(crate) fn allowed<T>(
        &mut self,
        what: &str,
        could_fail: bool,
        result: Result<T, Error>,
    ) -> Checked<Option<T>> {
        match result {
            Ok(answer) => {
                self.answers += 1;
                Ok(Some(answer))
            }
            Err(Error::Io { .. } | Error::Stopped { .. }) if could_fail => {
                self.errors += 1;
                Ok(None)
            }
            Err(error) => Err(format!("{what}: {error}")),
        }
    }
}

/// An error says which check failed, and how.
pub(crate) type Checked<T> = Result<T, String>;

pub(crate) struct World<'k> {
    pub(crate) keys: &'k Keys,
    door: Door,
    pub(crate) disk: Memory,
    pub(crate) clock: Arc<ManualClock>,
    options: Options,
    /// A small budget of write memory that the store shares, in some histories.
    resources: Option<Resources>,
    /// None only while it is reopened.
    db: Option<Db>,
    pub(crate) model: Model,
    /// The states at the store's last sequence numbers.
    pub(crate) journal: Journal,
    pub(crate) followers: HeldList<HeldFollower, 3>,
    pub(crate) backups: BackupBook,
    /// Whether the last load was refused, and nothing was written since.
    pub(crate) load_in_doubt: bool,
    pub(crate) snapshots: HeldList<HeldSnapshot>,
    scans: HeldList<HeldScan>,
    readers: HeldList<HeldReader>,
    /// The last checkpoint, until the next one or the end of the store.
    pub(crate) copy: Option<KeptCopy>,
    /// Whether the disk could fail at some time since the last power cut.
    had_faults: bool,
    /// Whether a killed process left unsynced bytes, and nothing was written since. Closing does
    /// not sync them, because a session that only reads writes nothing.
    inherits: bool,
    /// Whether the last opening found the newest log as a crash left it. Such a log does not say
    /// which part was durable.
    has_open_end: bool,
    pub(crate) done: Done,
}

impl<'k> World<'k> {
    pub(crate) fn new(keys: &'k Keys, setup: u64, door: Door) -> Checked<Self> {
        let mut world = World {
            keys,
            door,
            disk: Memory::new(),
            clock: Arc::default(),
            options: setup::of_tree(setup),
            resources: setup::resources(setup),
            db: None,
            model: Model::new(keys.len()),
            journal: Journal::default(),
            followers: HeldList::default(),
            backups: BackupBook::default(),
            load_in_doubt: false,
            snapshots: HeldList::default(),
            scans: HeldList::default(),
            readers: HeldList::default(),
            copy: None,
            had_faults: false,
            inherits: false,
            has_open_end: false,
            done: Done::default(),
        };
        world.create(setup)?;
        Ok(world)
    }

    /// Creates the store. In some setups the disk fails meanwhile, and the power may be cut then.
    fn create(&mut self, setup: u64) -> Checked<()> {
        let mut rng = Rng::new(setup);
        self.disk.map_files(true);
        if rng.below(4) == 0 {
            let (after, lasts) = (rng.below(24), rng.below(2) == 0);
            self.arm(&Failure { after, kind: Fault::Io, lasts });
            let created = self.open();
            self.done.allowed("the first open", true, created)?;
            if rng.below(2) == 0 {
                self.disk = self.disk.crash(setup);
            }
            self.disk.mend();
        }
        self.db = Some(self.open().map_err(|error| format!("the first open: {error}"))?);
        Ok(())
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    fn open(&self) -> trommel::Result<Db> {
        self.open_on(&self.disk)
    }

    pub(crate) fn open_on(&self, disk: &Memory) -> trommel::Result<Db> {
        let mut environment = self.environment_on(disk);
        if let Some(resources) = &self.resources {
            environment = environment.resources(resources);
        }
        Db::open_with(Path::new(DIR), self.options.clone(), environment)
    }

    /// Returns an environment with a disk behind the door and the clock, and without shared
    /// resources.
    pub(crate) fn environment_on(&self, disk: &Memory) -> Environment {
        let (storage, clock) = ((self.door)(disk.clone()), Arc::clone(&self.clock) as _);
        Environment::new().storage(storage).clock(clock)
    }

    fn writer(&self) -> Writer<'_> {
        Writer { db: self.db(), keys: self.keys, tick: self.model.tick() }
    }

    /// Applies a step. The caller checks the store afterwards.
    pub(crate) fn apply(&mut self, step: &StressStep) -> Checked<()> {
        self.done.operations += 1;
        self.had_faults |= self.disk.may_fail();
        match &step.operation {
            StressOperation::Write { writes, synced } => self.write(writes, *synced),
            StressOperation::DeleteRange(deletion) => self.delete_range(deletion),
            StressOperation::Ingest(writes) => self.ingest(writes),
            StressOperation::Get(place) => self.check_get(*place),
            StressOperation::Scan { edges, back } => self.check_scan(edges, *back),
            StressOperation::Count(edges) => self.check_count(edges),
            StressOperation::TakeSnapshot => self.take_snapshot(),
            StressOperation::ReadSnapshot { which, place, edges, back } => {
                self.check_snapshot(*which, *place, edges, *back)
            }
            StressOperation::DropSnapshot(which) => {
                self.snapshots.drop_one(*which);
                Ok(())
            }
            StressOperation::OpenScan { edges, of_snapshot } => self.open_scan(edges, *of_snapshot),
            StressOperation::MoveScan { which, back, times } => {
                self.move_scan(*which, *back, *times)
            }
            StressOperation::DropScan(which) => {
                self.scans.drop_one(*which);
                Ok(())
            }
            StressOperation::CutStream(write) => self.cut_stream(write),
            StressOperation::OpenReader(place) => self.open_reader(*place),
            StressOperation::ReadOn { which, seed } => self.read_on(*which, *seed),
            StressOperation::Flush => self.work("flush", true, Db::flush),
            StressOperation::Step(count) => (0..*count).try_for_each(|nth| {
                let choice = step.choice(nth);
                self.work("step", false, |db| db.step_any(choice).map(|_| ()))
            }),
            StressOperation::Settle => self.work("settle", false, Db::settle),
            StressOperation::Compact => self.compact(),
            StressOperation::Sync => self.work("sync", true, Db::sync),
            StressOperation::Verify => self.verify(),
            StressOperation::Checkpoint { failure, seed } => {
                checkpoint(self, failure.as_ref(), *seed, step.number)
            }
            StressOperation::Follower(operation) => self.follower(operation),
            StressOperation::Backup(operation) => self.backup(operation),
            StressOperation::Tick => {
                self.tick();
                Ok(())
            }
            StressOperation::Fail(failure) => {
                self.arm(failure);
                Ok(())
            }
            StressOperation::Mend => {
                self.disk.mend();
                Ok(())
            }
            StressOperation::Reopen(reopening) => self.reopen(reopening, step.number),
        }
    }

    fn tick(&mut self) {
        self.clock.advance(setup::INTERVAL);
        self.model.interval_passed();
        let tick = self.model.tick();
        self.snapshots.iter_mut().for_each(|held| held.state.expire(tick));
        self.scans.iter_mut().for_each(|held| held.expire(tick));
    }

    pub(crate) fn arm(&mut self, failure: &Failure) {
        self.had_faults = true;
        failure.arm(&self.disk);
    }

    pub(crate) fn could_fail(&self) -> bool {
        self.disk.may_fail()
    }

    /// Merges everything, and checks that at most one run is left.
    fn compact(&mut self) -> Checked<()> {
        let mut runs = 0;
        self.work("compact", true, |db| {
            db.compact()?;
            runs = db.stats()?.run_count();
            Ok(())
        })?;
        match runs {
            0 | 1 => Ok(()),
            runs => Err(format!("compact: {runs} runs are left")),
        }
    }

    /// Does maintenance. `saves`: its success makes all acknowledged writes durable.
    fn work(
        &mut self,
        what: &str,
        saves: bool,
        work: impl FnOnce(&Db) -> trommel::Result<()>,
    ) -> Checked<()> {
        let could_fail = self.could_fail();
        let result = work(self.db());
        if self.done.allowed(what, could_fail, result)?.is_some() && saves {
            self.saved();
        }
        Ok(())
    }

    /// Notes that all acknowledged writes are durable.
    pub(crate) fn saved(&mut self) {
        self.model.all_durable();
        self.backups.store_is_durable();
        (self.inherits, self.has_open_end) = (false, false);
    }

    /// Notes writes that landed together, or failed together.
    fn wrote(&mut self, writes: &[Write], written: bool) {
        if written && !writes.is_empty() {
            let number = self.db().snapshot().sequence();
            self.journal.note(number, writes, self.model.seen());
            self.load_in_doubt = false;
        }
        self.model.wrote(writes, written);
    }

    fn write(&mut self, writes: &[Write], synced: bool) -> Checked<()> {
        let could_fail = self.could_fail();
        if could_fail && !self.model.takes_doubt() {
            return Ok(());
        }
        let result = self.writer().write(writes, synced);
        let written = self.done.allowed("write", could_fail, result)?.is_some();
        self.wrote(writes, written);
        self.note_written(written, synced);
        Ok(())
    }

    fn delete_range(&mut self, deletion: &RangeDeletion) -> Checked<()> {
        let could_fail = self.could_fail();
        if could_fail && !self.model.takes_doubt() {
            return Ok(());
        }
        let RangeDeletion { before, from, to, after, synced } = deletion;
        let ranges = [(from.clone(), to.clone())];
        let result = self.writer().delete_ranges(before, &ranges, after, *synced);
        let written = self.done.allowed("delete_range", could_fail, result)?.is_some();
        self.wrote(&deletion.writes(self.keys), written);
        // An empty range is no write.
        let is_write = from != to || !before.is_empty() || !after.is_empty();
        self.note_written(written && (is_write || *synced), *synced);
        Ok(())
    }

    /// Loads past the log. Everything written before is then in tables, and so durable.
    fn ingest(&mut self, writes: &[Write]) -> Checked<()> {
        let could_fail = self.could_fail();
        if could_fail && !self.model.takes_doubt() {
            return Ok(());
        }
        let result = self.writer().ingest(writes);
        let written = self.done.allowed("ingest", could_fail, result)?.is_some();
        self.load_in_doubt |= !written;
        self.wrote(writes, written);
        if written && !writes.is_empty() {
            self.saved();
        }
        Ok(())
    }

    /// Notes what a successful write makes durable.
    fn note_written(&mut self, written: bool, synced: bool) {
        self.inherits &= !written;
        self.has_open_end &= !written;
        match self.options.sync {
            _ if !written => {}
            _ if synced => self.model.all_durable(),
            SyncPolicy::Always => self.model.all_durable(),
            SyncPolicy::Interval(_) => self.model.overdue_durable(),
            _ => {}
        }
    }

    fn take_snapshot(&mut self) -> Checked<()> {
        let (snapshot, state) = (self.db().snapshot(), self.model.seen().clone());
        self.backups.note(snapshot.sequence(), &state);
        self.snapshots.push(HeldSnapshot { snapshot, state });
        Ok(())
    }

    fn open_scan(&mut self, edges: &super::keys::Edges, of_snapshot: bool) -> Checked<()> {
        let places = self.keys.places(edges);
        let held = match self.snapshots.last().filter(|_| of_snapshot) {
            Some(held) => HeldScan::new(held.snapshot.range(edges.clone()), &held.state, places),
            None => HeldScan::new(self.db().range(edges.clone()), self.model.seen(), places),
        };
        self.scans.push(held);
        Ok(())
    }

    fn move_scan(&mut self, which: usize, back: bool, times: usize) -> Checked<()> {
        let Some(place) = self.scans.place(which) else { return Ok(()) };
        for _ in 0..times {
            let could_fail = self.could_fail();
            let moved = self.scans[place].step(back, self.keys)?;
            if self.done.allowed("a scan that was held open", could_fail, moved)?.is_none() {
                // A scan ends after an error.
                self.scans.drop_one(place);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Puts a stream that ends too early; its bytes are garbage, as if nothing had been put.
    fn cut_stream(&mut self, write: &Write) -> Checked<()> {
        cut_stream(self.db(), self.keys.get(write.place), write.number)
    }

    fn open_reader(&mut self, place: KeyIndex) -> Checked<()> {
        let (could_fail, number) = (self.could_fail(), self.model.seen().0[usize::from(place)]);
        let opened = HeldReader::open(self.db(), self.keys.get(place), number)?;
        if let Some(Some(reader)) = self.done.allowed("get_reader", could_fail, opened)? {
            self.readers.push(reader);
        }
        Ok(())
    }

    fn read_on(&mut self, which: usize, seed: u64) -> Checked<()> {
        let Some(place) = self.readers.place(which) else { return Ok(()) };
        let could_fail = self.could_fail();
        let read = self.readers[place].read_parts(&mut Rng::new(seed))?;
        self.done.allowed("a reader that was held open", could_fail, read)?;
        Ok(())
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

    /// Ends the store and reopens it.
    fn reopen(&mut self, reopening: &Reopening, number: u32) -> Checked<()> {
        self.done.reopened += 1;
        self.count_work();
        let goes_on = matches!(reopening.end, End::Close | End::Drop)
            && !self.had_faults
            && reopening.failure.is_none();
        if !goes_on {
            self.followers.clear();
        }
        // A repair without a manifest is not checked if logs are kept.
        let to_repair = reopening.repair.filter(|_| self.options.kept_log_bytes == 0);
        self.end(reopening.end)?;
        // A flipped bit in a log is detected if the log says that the place was durable.
        let logs_too = matches!(reopening.end, End::Close | End::Drop) && !self.has_open_end;
        // A manifest whose last edit has rotted looks torn. The next log reveals the damage, unless
        // an earlier log had failed.
        let is_sound = !self.had_faults && reopening.failure.is_none();
        let copy = reopening.rot.filter(|_| is_sound);
        let copy = copy.map(|seed| (seed, self.disk.kill()));
        let to_repair = to_repair.map(|seed| (seed, self.disk.kill()));
        if let Some(seed) = reopening.setup {
            self.options = setup::of_tree(seed);
        }
        let mut power_was_cut = matches!(reopening.end, End::PowerCut(_) | End::PowerCutHard);
        let mut lossless = !power_was_cut && !self.had_faults;
        if power_was_cut {
            self.done.power_cuts += 1;
            self.had_faults = false;
        }
        if let Some(failure) = &reopening.failure {
            self.arm(failure);
        }
        let could_fail = self.could_fail();
        let opened = self.open();
        self.db = self.done.allowed("open", could_fail, opened)?;
        if self.db.is_none() {
            // Sometimes the power is cut again while the store is opened.
            if number.is_multiple_of(2) {
                self.disk = self.disk.crash(u64::from(number));
                (power_was_cut, lossless) = (true, false);
            }
            self.disk.mend();
            let opened = self.open().map_err(|error| format!("open after a fault: {error}"));
            self.db = Some(opened?);
        }
        self.disk.mend();
        let found = full_state(self.db(), self.keys)?;
        self.model.reopened(found, Reopened { lossless, power_was_cut }, self.keys)?;
        self.note_opened(goes_on);
        if let Some((seed, copy)) = copy {
            self.done.rotten += u64::from(check_rotten_copy(self, &copy, logs_too, seed)?);
        }
        if let Some((seed, copy)) = to_repair {
            self.done.repairs += 1;
            // After a fault, the power may have been cut once more: then the copy differs from the
            // store.
            let opened = Some(self.model.seen()).filter(|_| !could_fail);
            check_repair(self, &copy, opened, seed)?;
        }
        Ok(())
    }

    /// Resets what is known of the store's past, unless the store continues exactly where it ended.
    fn note_opened(&mut self, goes_on: bool) {
        self.load_in_doubt = false;
        if !goes_on {
            let number = self.db().snapshot().sequence();
            self.journal.begin(number);
            self.backups.store_may_be_older(&self.disk);
        }
    }

    fn end(&mut self, end: End) -> Checked<()> {
        self.copy.take().map_or(Ok(()), |copy| copy.check_and_remove(&self.disk))?;
        let db = self.db.take().expect("open between operations");
        let could_fail = self.could_fail();
        let next_disk = match end {
            End::Close | End::Drop => self.disk.clone(),
            End::Kill => self.disk.kill(),
            End::PowerCut(seed) => self.disk.crash(seed),
            End::PowerCutHard => self.disk.crash_hard(),
        };
        self.snapshots.clear();
        self.scans.clear();
        self.readers.clear();
        if end == End::Close {
            let closed = db.close();
            if self.done.allowed("close", could_fail, closed)?.is_some() && !self.inherits {
                self.model.all_durable();
                // Without writes, a session adds nothing to a log that a crash has left.
                if !self.had_faults && !self.has_open_end {
                    self.check_followers_of_closed()?;
                }
            }
        }
        match end {
            End::Close | End::Drop => {}
            End::Kill => (self.inherits, self.has_open_end) = (true, true),
            End::PowerCut(_) | End::PowerCutHard => {
                (self.inherits, self.has_open_end) = (false, true);
            }
        }
        self.done.disk_operations += match end {
            End::Close | End::Drop => 0,
            End::Kill | End::PowerCut(_) | End::PowerCutHard => self.disk.operations(),
        };
        self.disk = next_disk;
        Ok(())
    }

    fn count_work(&mut self) {
        let stats = self.db().stats().expect("the store is open");
        self.done.flushes += stats.flushes;
        self.done.merges += stats.merges;
    }

    /// Ends the history with the last comparison.
    pub(crate) fn finish(mut self) -> Checked<Done> {
        self.disk.mend();
        self.work("settle at the end", false, Db::settle)?;
        self.check_all(0)?;
        self.verify()?;
        self.work("flush at the end", true, Db::flush)?;
        self.work("settle after a flush", false, Db::settle)?;
        self.check_garbage()?;
        self.count_work();
        // A last opening without faults removes files that faults had kept.
        self.end(End::Close)?;
        self.followers.clear();
        self.db = Some(self.open().map_err(|error| format!("the last open: {error}"))?);
        self.write(&[Write { place: 0, number: 1 }], false)?;
        self.work("the last flush", true, Db::flush)?;
        self.close_and_look()?;
        // After a deletion of everything, no value files remain.
        self.db = Some(self.open().map_err(|error| format!("opened to delete: {error}"))?);
        // One merge may end at the boundary of the oldest run.
        let merge = || (0..3).try_for_each(|_| self.db().compact());
        let deleted = self.db().delete_range("", [0xff; 64]).and_then(|()| merge());
        deleted.map_err(|error| format!("all is deleted: {error}"))?;
        let stats = self.db().stats().map_err(|error| error.to_string())?;
        if self.close_and_look()? > 0 {
            let (levels, trimmed) = (stats.levels, stats.trimmed_tables);
            return Err(format!(
                "all is deleted, and values apart stay: {trimmed} tables are trimmed of {levels:?}"
            ));
        }
        self.done.disk_operations += self.disk.operations();
        Ok(self.done)
    }

    /// Checks that a store at rest has no more garbage in value files than its options allow, or
    /// than would be worth the rewriting.
    fn check_garbage(&self) -> Checked<()> {
        let stats = self.db().stats().map_err(|error| error.to_string())?;
        let share = self.options.value_garbage_share * stats.value_bytes as f64;
        if stats.value_garbage_bytes as f64 <= share + stats.table_file_bytes as f64 {
            return Ok(());
        }
        let (bytes, garbage) = (stats.value_bytes, stats.value_garbage_bytes);
        Err(format!("at rest {garbage} of {bytes} bytes in value files are garbage"))
    }

    /// Closes the store, and checks which files remain. Returns the number of value files.
    fn close_and_look(&mut self) -> Checked<u64> {
        let stats = self.db().stats().map_err(|error| error.to_string())?;
        let runs = stats.levels.iter().flat_map(|level| &level.runs);
        let (tables, values) = (runs.map(|run| run.tables).sum(), stats.value_files);
        self.end(End::Close)?;
        let disk = (self.door)(self.disk.clone());
        let (partitions, kept) =
            (stats.partitions.len() as u64, (stats.kept_logs, stats.kept_value_files));
        check_left_overs(&*disk, (tables, values), partitions, kept)?;
        Ok(values)
    }
}
