//! A database behind its doors: opening, closing, column families.
//! ```text
//! open    filter files read ── RocksDB opened ── a door for each family ── worker started
//! close   worker stopped ── RocksDB closed ── filter files written
//! ```
//! Invariant: all writes go to RocksDB through `write.rs` or [`Db::unguarded`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rocksdb::{ColumnFamilyDescriptor, DB, Error, ErrorKind, Options};

use crate::base::{Base, RocksDb};
use crate::bell::Bell;
use crate::door::{Door, Phase, Ticket};
use crate::family::{ColumnFamily, id_of};
use crate::filter::Filter;
use crate::image;
use crate::keys::SortedKeys;
use crate::options::{DoorOptions, DoorState};
use crate::options_file::{Rules, have_snapshots, options_files, rules_of};
use crate::pause::{self, Point, Rule, is_broken};
use crate::read_options::ReadOptions;
use crate::worker::{self, Worker};

const DEFAULT: &str = rocksdb::DEFAULT_COLUMN_FAMILY_NAME;

/// A RocksDB database behind doors: one filter of all keys of each column family.
///
/// It has the methods of [`rocksdb::DB`] by the same names. All writes must go through it.
/// [`DoorDb::unguarded`] gives access to everything else.
pub type Db = DoorDb<RocksDb>;

/// One of RocksDB's three kinds of databases, with one filter of all keys of each column family.
/// See [`Db`], [`OptimisticTransactionDb`](crate::OptimisticTransactionDb) and
/// [`TransactionDb`](crate::TransactionDb).
pub struct DoorDb<B: Base> {
    /// None once it is closed.
    shared: Option<Arc<Shared<B>>>,
    worker: Option<JoinHandle<()>>,
    default_door: Arc<Door>,
    pub(crate) default_options: ReadOptions,
    options: DoorOptions,
}

/// The parts of a database that the worker uses.
pub(crate) struct Shared<B> {
    pub(crate) db: B,
    /// Doors by RocksDB's id of their families.
    doors: RwLock<HashMap<u32, Arc<Door>>>,
    pub(crate) bell: Arc<Bell>,
    /// Whether the worker must end.
    pub(crate) is_stopped: AtomicBool,
    /// Whether the log may have writes that no scan has seen: failed ones, or unguarded ones.
    has_unseen_writes: AtomicBool,
    has_snapshots: AtomicBool,
}

impl<B> Shared<B> {
    pub(crate) fn doors(&self) -> Vec<Arc<Door>> {
        let doors = self.doors.read().unwrap_or_else(PoisonError::into_inner);
        doors.values().map(Arc::clone).collect()
    }

    pub(crate) fn door(&self, id: u32) -> Option<Arc<Door>> {
        self.doors.read().unwrap_or_else(PoisonError::into_inner).get(&id).map(Arc::clone)
    }

    /// Adds a door, unless its family has one already. Returns the one that it has.
    fn add_door(&self, door: Door) -> Arc<Door> {
        let mut doors = self.doors.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(doors.entry(door.id).or_insert_with(|| Arc::new(door)))
    }
}

/// Opening and closing.
impl Db {
    /// See [`rocksdb::DB::open_default`].
    pub fn open_default<P: AsRef<Path>>(path: P) -> Result<Db, Error> {
        let mut options = Options::default();
        options.create_if_missing(true);
        Self::open(&options, path)
    }

    /// See [`rocksdb::DB::open`].
    pub fn open<P: AsRef<Path>>(options: &Options, path: P) -> Result<Db, Error> {
        let families = [ColumnFamilyDescriptor::new(DEFAULT, options.clone())];
        Self::open_with(options, path, families, None, DoorOptions::default())
    }

    /// See [`rocksdb::DB::open_cf`].
    pub fn open_cf<P, I, N>(options: &Options, path: P, names: I) -> Result<Db, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        let families = names.into_iter().map(|name| (name, Options::default()));
        Self::open_cf_with_opts(options, path, families)
    }

    /// See [`rocksdb::DB::open_cf_with_opts`].
    pub fn open_cf_with_opts<P, I, N>(options: &Options, path: P, families: I) -> Result<Db, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = (N, Options)>,
        N: AsRef<str>,
    {
        let families = families
            .into_iter()
            .map(|(name, options)| ColumnFamilyDescriptor::new(name.as_ref(), options));
        Self::open_cf_descriptors(options, path, families)
    }

    /// See [`rocksdb::DB::open_cf_descriptors`].
    pub fn open_cf_descriptors<P, I>(options: &Options, path: P, families: I) -> Result<Db, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        Self::open_with(options, path, families, None, DoorOptions::default())
    }

    /// See [`rocksdb::DB::open_with_ttl`].
    pub fn open_with_ttl<P: AsRef<Path>>(
        options: &Options,
        path: P,
        ttl: Duration,
    ) -> Result<Db, Error> {
        let families = [ColumnFamilyDescriptor::new(DEFAULT, options.clone())];
        Self::open_with(options, path, families, Some(ttl), DoorOptions::default())
    }

    /// See [`rocksdb::DB::open_cf_with_ttl`].
    pub fn open_cf_with_ttl<P, I, N>(
        options: &Options,
        path: P,
        names: I,
        ttl: Duration,
    ) -> Result<Db, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        let family = |name: N| ColumnFamilyDescriptor::new(name.as_ref(), Options::default());
        Self::open_cf_descriptors_with_ttl(options, path, names.into_iter().map(family), ttl)
    }

    /// See [`rocksdb::DB::open_cf_descriptors_with_ttl`].
    pub fn open_cf_descriptors_with_ttl<P, I>(
        options: &Options,
        path: P,
        families: I,
        ttl: Duration,
    ) -> Result<Db, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        Self::open_with(options, path, families, Some(ttl), DoorOptions::default())
    }

    /// Opens a database with these families, a time to live for entries (None: unlimited), and
    /// options for the doors.
    pub fn open_with<P, I>(
        options: &Options,
        path: P,
        families: I,
        ttl: Option<Duration>,
        door_options: DoorOptions,
    ) -> Result<Db, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        let families = with_default(families);
        Self::open_behind(path.as_ref(), families, door_options, |families| match ttl {
            Some(ttl) => RocksDb::open_cf_descriptors_with_ttl(options, &path, families, ttl),
            None => RocksDb::open_cf_descriptors(options, &path, families),
        })
    }
}

/// Adds the default family, if it is missing.
pub(crate) fn with_default(
    families: impl IntoIterator<Item = ColumnFamilyDescriptor>,
) -> Vec<ColumnFamilyDescriptor> {
    let mut families: Vec<ColumnFamilyDescriptor> = families.into_iter().collect();
    if !families.iter().any(|family| family.name() == DEFAULT) {
        families.push(ColumnFamilyDescriptor::new(DEFAULT, Options::default()));
    }
    families
}

impl<B: Base> DoorDb<B> {
    /// Opens a database with `open`, and puts a door in front of each of its families.
    pub(crate) fn open_behind(
        path: &Path,
        families: Vec<ColumnFamilyDescriptor>,
        door_options: DoorOptions,
        open: impl FnOnce(Vec<ColumnFamilyDescriptor>) -> Result<B, Error>,
    ) -> Result<Self, Error> {
        let names: Vec<String> = families.iter().map(|family| family.name().into()).collect();
        let options_before = options_files(path);
        let mut kept = if door_options.is_kept { image::read_all(path) } else { HashMap::new() };
        pause::at(Point::Read);
        let db = open(families)?;
        image::remove_all(path);
        let is_new = |number: &u64| !options_before.contains_key(number);
        if options_files(path).into_keys().filter(is_new).count() != 1 {
            kept.clear(); // Somebody else has opened it after the filters were read.
        }
        let (bell, mut rules) = (Arc::new(Bell::default()), rules_of(path));
        let has_snapshots = have_snapshots(&rules);
        let since = if has_snapshots { db.last_sequence_number() } else { 0 };
        let mut doors = HashMap::new();
        for name in names {
            let id = db.cf_handle(&name).map_or(0, |family| id_of(&family));
            let rules = rules.remove(&name).filter(|_| has_snapshots).unwrap_or_default();
            let kept = kept.remove(&(id, name.clone())).filter(|_| rules.is_bytewise);
            let filter = kept.and_then(|kept| kept.into_filter(since, door_options.bits_per_key));
            let door = Door::new((name, id), rules, (door_options, Arc::clone(&bell)), filter);
            doors.insert(id, Arc::new(door));
        }
        let default_door = Arc::clone(&doors[&0]);
        let shared = Arc::new(Shared {
            db,
            doors: RwLock::new(doors),
            bell,
            is_stopped: AtomicBool::new(false),
            has_unseen_writes: AtomicBool::new(false),
            has_snapshots: AtomicBool::new(has_snapshots),
        });
        let worker = Worker::start(&shared);
        Ok(DoorDb {
            shared: Some(shared),
            worker: Some(worker),
            default_door,
            default_options: ReadOptions::default(),
            options: door_options,
        })
    }

    /// Removes a database and its filter files: see [`rocksdb::DB::destroy`].
    pub fn destroy<P: AsRef<Path>>(options: &Options, path: P) -> Result<(), Error> {
        image::remove_all(path.as_ref());
        DB::destroy(options, path)
    }

    /// Repairs a database, whose filters are then rebuilt: see [`rocksdb::DB::repair`].
    pub fn repair<P: AsRef<Path>>(options: &Options, path: P) -> Result<(), Error> {
        image::remove_all(path.as_ref());
        DB::repair(options, path)
    }

    /// Lists the names of a database's families: see [`rocksdb::DB::list_cf`].
    pub fn list_cf<P: AsRef<Path>>(options: &Options, path: P) -> Result<Vec<String>, Error> {
        DB::list_cf(options, path)
    }

    fn close(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        worker::stop(&shared);
        if let Some(worker) = self.worker.take() {
            // A panic of the worker leaves the views whole.
            drop(worker.join());
        }
        let doors = shared.doors();
        let filters = doors.iter().filter_map(|door| Some((Arc::clone(door), door.whole()?)));
        let filters: Vec<(Arc<Door>, Arc<Filter>)> = filters.collect();
        let path = shared.db.path().to_path_buf();
        let current = image::current_of(&path);
        let Ok(shared) = Arc::try_unwrap(shared) else { return };
        let may_lack_keys = shared.has_unseen_writes.load(Ordering::SeqCst);
        drop(shared); // RocksDB closes, and does not change its files after this.
        pause::at(Point::Closed);
        if self.options.is_kept && (!may_lack_keys || is_broken(Rule::Failing)) {
            let filters = filters.iter().map(|(door, filter)| (door.id, &door.name[..], &**filter));
            image::write_all(&path, current, filters);
        }
    }
}

impl<B: Base> Drop for DoorDb<B> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Doors.
impl<B: Base> DoorDb<B> {
    pub(crate) fn shared(&self) -> &Shared<B> {
        self.shared.as_ref().expect("it is open until it is dropped")
    }

    pub(crate) fn inner(&self) -> &B {
        &self.shared().db
    }

    /// Passes on the result of a write. A failed write, unless it was a conflict, may still be in
    /// the log. Recovery then brings it back, so the next opening scans.
    pub(crate) fn told<T>(&self, written: Result<T, Error>) -> Result<T, Error> {
        let is_conflict =
            |error: &Error| matches!(error.kind(), ErrorKind::Busy | ErrorKind::TryAgain);
        if written.as_ref().is_err_and(|error| !is_conflict(error)) {
            self.shared().has_unseen_writes.store(true, Ordering::SeqCst);
        }
        written
    }

    /// Whether RocksDB supports snapshots. It does not if memtable values are updated in place.
    pub(crate) fn has_snapshots(&self) -> bool {
        self.shared().has_snapshots.load(Ordering::SeqCst)
    }

    pub(crate) fn default_door(&self) -> &Door {
        &self.default_door
    }

    pub(crate) fn door_of<'d>(&'d self, family: Option<&'d ColumnFamily<'_>>) -> &'d Door {
        family.map_or(&*self.default_door, |family| family.door())
    }

    /// The state and the counters of the default family's door.
    pub fn door_state(&self) -> DoorState {
        self.default_door.report()
    }

    /// The state and the counters of a family's door.
    pub fn door_state_cf(&self, family: &ColumnFamily<'_>) -> DoorState {
        family.door().report()
    }

    /// Wakes sleeping doors, and waits until each door that can answer does, but no longer than
    /// this. Returns whether all of them do.
    pub fn wait_for_doors(&self, at_most: Duration) -> bool {
        const STEP: Duration = Duration::from_millis(1);
        let end = Instant::now().checked_add(at_most);
        loop {
            let doors = self.shared().doors();
            let waiting = doors.iter().filter(|door| !door.is_settled());
            if waiting.inspect(|door| door.wake()).count() == 0 {
                return true;
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return false;
            }
            std::thread::sleep(STEP);
        }
    }

    /// Calls `act` with the database itself. All doors deny nothing until a scan that begins
    /// afterwards has ended, so `act` may write anything. The next opening scans, too.
    pub fn unguarded<T>(&self, act: impl FnOnce(&B) -> T) -> T {
        let tickets: Vec<Ticket<Arc<Door>>> =
            self.shared().doors().into_iter().map(Ticket::lapse).collect();
        let result = act(self.inner());
        // Nobody reports failed writes of `act`.
        self.shared().has_unseen_writes.store(true, Ordering::SeqCst);
        drop(tickets);
        self.shared().bell.ring();
        result
    }
}

/// Families.
impl<B: Base> DoorDb<B> {
    /// See [`rocksdb::DB::cf_handle`].
    pub fn cf_handle(&self, name: &str) -> Option<ColumnFamily<'_>> {
        let bound = self.inner().cf_handle(name)?;
        // By id, as `unguarded` may have put another family in the place of one with this name.
        let id = id_of(&bound);
        let door = self.shared().door(id).unwrap_or_else(|| self.make_door(name, id, false));
        Some(ColumnFamily::new(bound, door))
    }

    /// See [`rocksdb::DB::create_cf`].
    pub fn create_cf<N: AsRef<str>>(&self, name: N, options: &Options) -> Result<(), Error> {
        let name = name.as_ref();
        self.inner().create_cf(name, options)?;
        let Some(family) = self.inner().cf_handle(name) else { return Ok(()) };
        self.make_door(name, id_of(&family), true);
        Ok(())
    }

    /// Makes the door of a family that was created after the opening. `is_new`: nobody has written
    /// to it yet. Otherwise a scan comes first.
    fn make_door(&self, name: &str, id: u32, is_new: bool) -> Arc<Door> {
        let mut rules = rules_of(self.path());
        if !have_snapshots(&rules) {
            self.shared().has_snapshots.store(false, Ordering::SeqCst);
            self.shared().doors().iter().for_each(|door| door.shut());
            rules.clear();
        }
        let rules = rules.remove(name).unwrap_or_default();
        let empty = || {
            let since = self.inner().last_sequence_number();
            Filter::of(&SortedKeys::default(), self.options.bits_per_key, since)
        };
        let filter = (is_new && rules.is_bytewise).then(empty);
        let bell = Arc::clone(&self.shared().bell);
        let door = Door::new((name.into(), id), rules, (self.options, bell), filter);
        let door = self.shared().add_door(door);
        self.shared().bell.ring();
        door
    }

    /// See [`rocksdb::DB::drop_cf`].
    pub fn drop_cf(&self, name: &str) -> Result<(), Error> {
        let id = self.inner().cf_handle(name).map(|family| id_of(&family));
        self.inner().drop_cf(name)?;
        let mut doors = self.shared().doors.write().unwrap_or_else(PoisonError::into_inner);
        // By id, as another family may have the same name meanwhile.
        if let Some(door) = id.and_then(|id| doors.remove(&id)) {
            door.shut();
        }
        Ok(())
    }

    /// Reads the rules again: a family may have another prefix extractor.
    pub(crate) fn read_rules_again(&self) {
        let rules = rules_of(self.path());
        for door in self.shared().doors() {
            door.rules.set_prefix(rules.get(&door.name).unwrap_or(&Rules::default()));
        }
    }
}

impl Door {
    fn is_settled(&self) -> bool {
        matches!(self.phase(), Phase::Live | Phase::Shut) || !self.rules.is_bytewise
    }

    fn report(&self) -> DoorState {
        let view = self.look();
        DoorState {
            is_open: view.filter.is_some(),
            is_able: self.rules.is_bytewise,
            keys: view.filter.as_ref().map_or(0, |filter| filter.keys()),
            bytes: view.size_bytes(),
            denied: self.counts.denied(),
            passed: self.counts.passed(),
            wasted: self.counts.wasted(),
            scans: self.counts.scans(),
            scanned_keys: self.counts.scanned_keys(),
        }
    }
}
