//! Follows a store that another process writes.
//! ```text
//! the writer        MANIFEST, logs, tables, images, values          knows nothing of it
//! the follower      reads them --> views --> gets, scans, snapshots
//! catch_up()        new edits and groups --> the same view, further on, or another one
//! ```
//! Invariants: nothing in the folder is written, made, removed or locked, whatever rights the
//! process has. A view is the store as its writer showed it at some moment, and moments only go
//! forward.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::db::{Db, Snapshot};
use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::files::manifest_tail::ManifestTail;
use crate::files::store_folder::store_folder;
use crate::follow::catch_up::{CatchUpOutcome, Progress};
use crate::follow::view::{FollowedStore, View};
use crate::plan::store_layout::DEFAULT_NAME;
use crate::read::scan::Scan;
use crate::read::value_reader::ValueReader;
use crate::shared::environment::Environment;
use crate::storage::read_only::ReadOnly;
use crate::storage::traits::Storage;
use crate::sync::{
    Arc, Builder, Condvar, JoinHandle, Mutex, Switch, Weak, current, lock, try_lock, wait_for,
};
use crate::tools::progress::{OnProgress, Steps, unheard};
use crate::tools::verify::{VerifyReport, verify_followed};
use crate::tools::{checkpoint, collect_stats};
use crate::tree::open_tree::OpenTree;
use crate::tree::snapshots::Registered;
use crate::tree::stats::Stats;

mod catch_up;
mod memtables;
mod options;
mod view;

pub use options::{FollowOptions, Staleness};

/// When a follower last looked, by its clock.
struct Looks {
    last: Duration,
    with_news: Duration,
    failure: Option<String>,
}

/// The state that all handles of a follower share.
struct Following {
    store: FollowedStore,
    current: Switch<View>,
    progress: Mutex<Progress>,
    looks: Mutex<Looks>,
    end: Arc<End>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The storage as it was given, with all rights.
    storage: Arc<dyn Storage>,
}

/// Tells the thread to end.
#[derive(Default)]
struct End {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl End {
    /// Waits for this long. True: the thread must end.
    fn comes_within(&self, time: Duration) -> bool {
        let is_set = lock(&self.is_set);
        *is_set || *wait_for(&self.changed, &self.is_set, is_set, time).0
    }

    fn set(&self) {
        *lock(&self.is_set) = true;
        self.changed.notify_all();
    }
}

impl Following {
    fn catch_up(&self) -> Result<bool> {
        let _call = self.store.folder.life().enter()?;
        self.look(&mut lock(&self.progress)).map(|found| found.has_moved)
    }

    fn look(&self, progress: &mut Progress) -> Result<CatchUpOutcome> {
        let outcome = progress.catch_up(&self.store, &self.current);
        self.store.shared.snapshots.publish(self.current.pin().visible());
        let now = self.store.shared.env.clock.now();
        let mut looks = lock(&self.looks);
        looks.failure = outcome.as_ref().err().map(Error::to_string);
        if let Ok(outcome) = &outcome {
            looks.last = now;
            if outcome.has_news {
                looks.with_news = now;
            }
        }
        outcome
    }

    /// Returns a snapshot of a key space as of now.
    fn snapshot(&self, id: KeyspaceId) -> Result<Snapshot> {
        self.store.folder.life().check()?;
        let view = self.current.pin();
        match view.snapshot(id, view.visible()) {
            Some(snapshot) => Ok(snapshot),
            None => self.snapshot_of_empty(id),
        }
    }

    /// Like `snapshot`, for a key space that has nothing yet, or does not exist.
    #[cold]
    fn snapshot_of_empty(&self, id: KeyspaceId) -> Result<Snapshot> {
        let _progress = lock(&self.progress);
        let view = self.current.hold();
        let at = view.visible();
        if let Some(snapshot) = view.snapshot(id, at) {
            return Ok(snapshot);
        }
        let dropped = || Error::KeyspaceDropped { name: format!("number {}", id.0) };
        let keyspace = view.layout.keyspaces.get(&id).ok_or_else(dropped)?;
        let next = Sequence(at.0 + 1);
        let tree = self.store.tree_without_memtables((id, keyspace), next)?;
        let mut trees = view.trees.clone();
        trees.insert(id, tree);
        let with = View::new(Arc::clone(&view.layout), trees, at);
        let snapshot = with.snapshot(id, at).expect("it was added");
        self.current.store(Arc::new(with));
        Ok(snapshot)
    }

    /// The loop of the thread. It keeps the follower alive only while it works.
    fn run(me: &Weak<Following>, end: &End, interval: Duration) {
        while !end.comes_within(interval) {
            let Some(following) = me.upgrade() else { return };
            // A failure shows in `staleness`, and the next round tries again.
            let _ = following.catch_up();
        }
    }

    fn close(&self) -> Result<()> {
        let life = self.store.folder.life();
        let Some(closing) = life.begin_close()? else { return Ok(()) };
        self.end.set();
        closing.wait_for_calls();
        closing.shut();
        self.current.store(Arc::new(View::nothing()));
        self.store.files.files.close_all();
        if let Some(thread) = lock(&self.thread).take()
            && thread.thread().id() != current().id()
        {
            let _ = thread.join();
        }
        Ok(())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if self.store.folder.life().is_forked() {
            return;
        }
        let _ = self.close();
    }
}

/// A handle of a store that another process writes, for reading: RocksDB calls this a secondary
/// instance. It takes no lock, and changes nothing in the folder, so it needs no right to write
/// there. The writer does not notice it. A clone is another handle of the same follower. Any thread
/// may use it.
///
/// A follower shows the store as of some moment. [`catch_up`](Follower::catch_up) moves it on, or a
/// thread does: see [`FollowOptions::interval`]. Gets and scans see the newest moment that it has
/// reached; a [`snapshot`](FollowedKeyspace::snapshot) stays at one moment. The files that these
/// need are kept open. If [`max_open_files`](crate::options::OptionValues::max_open_files) does not
/// allow that, a read may fail with [`Error::Gone`].
///
/// A write is visible once something later shows that it succeeded: another write, or what an idle
/// writer adds a moment later. The write need not be durable yet: a crash of the system also ends
/// the follower. Of a key space without a [log](crate::options::OptionValues::log), a follower
/// shows what was flushed.
///
/// ```
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let path = dir.path().join("store");
/// use trommel::{Db, FollowOptions, Options};
///
/// let db = Db::open(&path, Options::default())?;
/// db.put("drum", "turns")?;
/// let follower = Db::follow(&path, FollowOptions::default())?; // in any process
/// db.put("drum", "stops")?;
/// db.flush()?;
/// follower.catch_up()?;
/// assert_eq!(follower.get("drum")?.as_deref(), Some(&b"stops"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Follower {
    /// The default key space.
    main: FollowedKeyspace,
}

/// A key space of a followed store, for reading.
#[derive(Clone)]
pub struct FollowedKeyspace {
    following: Arc<Following>,
    id: KeyspaceId,
}

/// Reads of a follower itself are reads of its default key space.
impl Deref for Follower {
    type Target = FollowedKeyspace;

    fn deref(&self) -> &FollowedKeyspace {
        &self.main
    }
}

impl Db {
    /// Follows a store that another process writes, or that nobody has open: see [`Follower`].
    ///
    /// # Errors
    /// `Missing`, `NotAStore`, `Version`: as for [`open`](crate::Db::open). `Corrupt`: a file is
    /// damaged. `FileMissing`: a file that the manifest needs is gone.
    pub fn follow(path: impl AsRef<Path>, options: FollowOptions) -> Result<Follower> {
        Follower::open_with(path.as_ref(), &options, Environment::default())
    }

    /// Like [`follow`](crate::Db::follow), with this storage and clock.
    pub fn follow_with(
        path: impl AsRef<Path>,
        options: FollowOptions,
        environment: Environment,
    ) -> Result<Follower> {
        Follower::open_with(path.as_ref(), &options, environment)
    }
}

impl Follower {
    fn open_with(path: &Path, options: &FollowOptions, env: Environment) -> Result<Follower> {
        let storage = Arc::clone(&env.storage);
        let env = env.storage(Arc::new(ReadOnly(Arc::clone(&storage))));
        let folder = store_folder(&*env.storage, path)?;
        let missing = || Error::Missing { path: path.to_path_buf() };
        let manifest = ManifestTail::read(&folder)?.ok_or_else(missing)?;
        let store = FollowedStore::new(folder, manifest.layout(), options, env)?;
        let now = store.shared.env.clock.now();
        let looks = Looks { last: now, with_news: now, failure: None };
        let following = Arc::new(Following {
            store,
            current: Switch::new(Arc::new(View::nothing())),
            progress: Mutex::new(Progress::new(manifest)),
            looks: Mutex::new(looks),
            end: Arc::default(),
            thread: Mutex::default(),
            storage,
        });
        following.catch_up()?;
        if let Some(interval) = options.interval {
            let (me, end) = (Arc::downgrade(&following), Arc::clone(&following.end));
            let builder = Builder::new().name("trommel-follow".into());
            let thread = builder.spawn(move || Following::run(&me, &end, interval));
            *lock(&following.thread) = Some(thread.map_err(Error::io(path))?);
        }
        Ok(Follower { main: FollowedKeyspace { following, id: KeyspaceId::DEFAULT } })
    }

    /// Moves on to what the writer has shown since. The cost depends on what is new, plus a few
    /// reads. False: nothing is new, or it does not count yet. Other threads can read meanwhile.
    ///
    /// # Errors
    /// `Corrupt`, `FileMissing`, `Io`: the view stays as it was, and the next call tries again.
    pub fn catch_up(&self) -> Result<bool> {
        self.following.catch_up()
    }

    /// Returns how far the follower is behind.
    pub fn staleness(&self) -> Staleness {
        let now = self.following.store.shared.env.clock.now();
        let sequence = self.following.current.pin().visible().0;
        let looks = lock(&self.following.looks);
        Staleness {
            sequence,
            since_look: now.saturating_sub(looks.last),
            since_news: now.saturating_sub(looks.with_news),
            failure: looks.failure.clone(),
        }
    }

    /// Returns the number of the newest write that reads see. It only grows.
    pub fn sequence(&self) -> u64 {
        self.following.current.pin().visible().0
    }

    /// Returns all key spaces as of the present moment.
    pub fn moment(&self) -> Result<Moment> {
        let following = Arc::clone(&self.following);
        following.store.folder.life().check()?;
        let view = following.current.hold();
        let at = view.visible();
        Ok(Moment { following, view, at })
    }

    /// Returns the key space of this name.
    ///
    /// # Errors
    /// `NoKeyspace`: no key space has this name, as far as the follower has read.
    pub fn keyspace(&self, name: impl AsRef<str>) -> Result<FollowedKeyspace> {
        let following = Arc::clone(&self.following);
        let id = following.current.pin().named(name.as_ref())?;
        Ok(FollowedKeyspace { following, id })
    }

    /// Returns the names of all key spaces, the default one first.
    pub fn keyspaces(&self) -> Vec<String> {
        names(&self.following.current.pin())
    }

    /// Reads and checks every byte of every table and log, and asks the guard for every key, like
    /// [`Db::verify`](crate::Db::verify), for the present moment.
    ///
    /// # Errors
    /// `Gone`: a file was removed meanwhile, and not all files could be kept open.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with_progress(&mut unheard)
    }

    /// Like [`verify`](Follower::verify), and reports progress.
    ///
    /// # Errors
    /// `Cancelled`: the listener stopped it. Others as for [`verify`](Follower::verify).
    pub fn verify_with_progress(&self, listener: &mut OnProgress<'_>) -> Result<VerifyReport> {
        let _call = self.following.store.folder.life().enter()?;
        let view = self.following.current.hold();
        let trees: Vec<_> = view.trees.values().map(Arc::clone).collect();
        let of_store = (&self.following.store.folder, &*view.layout);
        verify_followed(&trees, of_store, &mut Steps::new(listener))
    }

    /// Makes an independent store in `dir`, which must be new or empty, as of the present moment.
    /// Files are copied, never linked.
    ///
    /// # Errors
    /// `NotEmpty`: the folder has files. `Gone`: a file was removed meanwhile, and not all files
    /// could be kept open. Catch up, and try again in an empty folder.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.checkpoint_with_progress(dir, &mut unheard)
    }

    /// Like [`checkpoint`](Follower::checkpoint), and reports how many tables are done, of how
    /// many.
    ///
    /// # Errors
    /// `Cancelled`: the listener stopped it, and everything that was made is removed. Others as for
    /// [`checkpoint`](Follower::checkpoint).
    pub fn checkpoint_with_progress(
        &self,
        dir: impl AsRef<Path>,
        listener: &mut OnProgress<'_>,
    ) -> Result<()> {
        let _call = self.following.store.folder.life().enter()?;
        let (moment, trees) = self.pinned()?;
        let (storage, steps) = (&self.following.storage, &mut Steps::new(listener));
        checkpoint::of_followed(&**storage, moment.followed(&trees), dir.as_ref(), steps)
    }

    /// Returns the present moment and its trees.
    fn pinned(&self) -> Result<(Moment, Vec<Arc<OpenTree>>)> {
        let moment = self.moment()?;
        let trees = moment.view.trees.values().map(Arc::clone).collect();
        Ok((moment, trees))
    }

    /// Gives a target the files of the store as it is shown now. Returns the number of its last
    /// write.
    pub(crate) fn give_files(
        &self,
        target: &mut dyn checkpoint::Target,
        listener: &mut OnProgress<'_>,
    ) -> Result<u64> {
        let _call = self.following.store.folder.life().enter()?;
        let (moment, trees) = self.pinned()?;
        let (followed, steps) = (moment.followed(&trees), &mut Steps::new(listener));
        checkpoint::fill_of_followed(followed, target, steps)?;
        Ok(moment.at.0)
    }

    /// Returns the path of the store's folder, as it was opened.
    pub fn path(&self) -> PathBuf {
        self.following.store.folder.path().to_path_buf()
    }

    /// Closes the follower for all its handles: ends its thread and closes all files. Snapshots and
    /// scans may live on, but return [`Error::Closed`] from then on. Closing again does nothing.
    /// Dropping the last handle closes the follower, too.
    pub fn close(&self) -> Result<()> {
        self.following.close()
    }
}

fn names(view: &View) -> Vec<String> {
    view.layout.keyspaces.values().map(|keyspace| keyspace.record.name.clone()).collect()
}

/// A followed store at one moment: all its key spaces as of one number.
pub struct Moment {
    following: Arc<Following>,
    view: Arc<View>,
    at: Sequence,
}

impl Moment {
    /// Returns the source of a copy. Requires: `trees` are those of this moment.
    fn followed<'t>(&self, trees: &'t [Arc<OpenTree>]) -> checkpoint::Followed<'t> {
        (trees, self.view.layout.as_ref().clone(), self.at)
    }

    /// Returns the number of the last write that is visible.
    pub fn sequence(&self) -> u64 {
        self.at.0
    }

    /// Returns a snapshot of a key space as of this moment.
    ///
    /// # Errors
    /// `NoKeyspace`: no key space had this name.
    pub fn keyspace(&self, name: impl AsRef<str>) -> Result<Snapshot> {
        let name = name.as_ref();
        let id = if name == DEFAULT_NAME { KeyspaceId::DEFAULT } else { self.view.named(name)? };
        if let Some(snapshot) = self.view.snapshot(id, self.at) {
            return Ok(snapshot);
        }
        // Nothing had been written to the key space by then.
        let keyspace = &self.view.layout.keyspaces[&id];
        let next = Sequence(self.at.0 + 1);
        let tree = self.following.store.tree_without_memtables((id, keyspace), next)?;
        let registered = Registered::alone(self.at);
        Ok(Snapshot { tree, registered })
    }

    /// Returns the names of its key spaces, the default one first.
    pub fn keyspaces(&self) -> Vec<String> {
        names(&self.view)
    }
}

impl FollowedKeyspace {
    /// Returns a snapshot of the key space as it is shown now. It stays the same while the follower
    /// catches up. It keeps the tables that it needs open, within the limit of open files.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.following.snapshot(self.id)
    }

    /// Returns the value of a key; None if it has none.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.snapshot()?.get(key)
    }

    /// Whether a key has a value. A value apart is not read, so damage in it is not noticed.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.snapshot()?.contains_key(key)
    }

    /// Returns the values of many keys at one moment: see
    /// [`Db::multi_get`](crate::Keyspace::multi_get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        match self.snapshot() {
            Ok(snapshot) => snapshot.multi_get(keys),
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// Returns a reader of a key's value, to read it in parts: see
    /// [`Db::get_reader`](crate::Keyspace::get_reader).
    pub fn get_reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        self.snapshot()?.get_reader(key)
    }

    /// Scans the keys of a range with their values, as of now. Forward as an iterator, backward
    /// with `rev()`.
    pub fn range(&self, bounds: impl Into<KeyBounds>) -> Result<Scan> {
        Ok(self.snapshot()?.range(bounds))
    }

    /// Scans the keys with this prefix and their values, as of now.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Scan> {
        Ok(self.snapshot()?.prefix(prefix))
    }

    /// False: no key lies in the range (a proof). True: a key may lie in it. See
    /// [`Db::may_contain_range`](crate::Keyspace::may_contain_range).
    pub fn may_contain_range(&self, bounds: impl Into<KeyBounds>) -> Result<bool> {
        self.snapshot()?.may_contain_range(bounds)
    }

    /// Returns what the follower holds of the key space, and what reads have cost since the last
    /// edit of the tree. It does not include the writer's work.
    pub fn stats(&self) -> Result<Stats> {
        let snapshot = self.snapshot()?;
        let _call = self.following.store.folder.life().enter()?;
        let logs = try_lock(&self.following.progress).map(|progress| progress.logs.sizes());
        Ok(collect_stats::stats_of_followed(
            &snapshot.tree,
            snapshot.sequence(),
            logs.unwrap_or_default(),
        ))
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower")
            .field("path", &self.path())
            .field("sequence", &self.sequence())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for FollowedKeyspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FollowedKeyspace").field("number", &self.id.0).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Moment").field(&self.at.0).finish()
    }
}

const _: () = {
    const fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Follower>();
    is_shared::<FollowedKeyspace>();
    is_shared::<Moment>();
};
