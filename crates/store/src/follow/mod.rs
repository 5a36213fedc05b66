//! A store that another process writes, read along.
//! ```text
//! the writer        MANIFEST, logs, tables, images, values          knows nothing of it
//! the follower      reads them --> views --> gets, scans, snapshots
//! catch_up()        what is new --> the same view, further on, or another one
//! ```
//! Invariants: nothing is written, made, removed or locked in the folder, whatever rights the
//! process has. What is shown is the store as its writer showed it at some moment, and moments only
//! go forward.

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
use crate::follow::catch_up::{Found, Progress};
use crate::follow::view::{Ground, View};
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

/// When a follower has looked, by its clock.
struct Looks {
    last: Duration,
    with_news: Duration,
    failure: Option<String>,
}

/// What all handles of a follower share.
struct Following {
    ground: Ground,
    current: Switch<View>,
    progress: Mutex<Progress>,
    looks: Mutex<Looks>,
    end: Arc<End>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// As it was given, with all rights.
    storage: Arc<dyn Storage>,
}

/// Tells the thread to end.
#[derive(Default)]
struct End {
    is_told: Mutex<bool>,
    told: Condvar,
}

impl End {
    /// Waits for so long. True: the thread is to end.
    fn comes_within(&self, time: Duration) -> bool {
        let is_told = lock(&self.is_told);
        *is_told || *wait_for(&self.told, &self.is_told, is_told, time).0
    }

    fn tell(&self) {
        *lock(&self.is_told) = true;
        self.told.notify_all();
    }
}

impl Following {
    fn catch_up(&self) -> Result<bool> {
        let _call = self.ground.folder.life().enter()?;
        self.look(&mut lock(&self.progress)).map(|found| found.has_moved)
    }

    fn look(&self, progress: &mut Progress) -> Result<Found> {
        let found = progress.catch_up(&self.ground, &self.current);
        self.ground.shared.snapshots.publish(self.current.pin().visible());
        let now = self.ground.shared.env.clock.now();
        let mut looks = lock(&self.looks);
        looks.failure = found.as_ref().err().map(Error::to_string);
        if let Ok(found) = &found {
            looks.last = now;
            if found.has_news {
                looks.with_news = now;
            }
        }
        found
    }

    /// A key space as of now.
    fn snapshot(&self, id: KeyspaceId) -> Result<Snapshot> {
        self.ground.folder.life().check()?;
        let view = self.current.pin();
        match view.snapshot(id, view.visible()) {
            Some(snapshot) => Ok(snapshot),
            None => self.snapshot_of_empty(id),
        }
    }

    /// As above, of one of which nothing was read, or that is not there.
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
        let tree = self.ground.tree_without_memtables((id, keyspace), next)?;
        let mut trees = view.trees.clone();
        trees.insert(id, tree);
        let with = View::new(Arc::clone(&view.layout), trees, at);
        let snapshot = with.snapshot(id, at).expect("it was added");
        self.current.store(Arc::new(with));
        Ok(snapshot)
    }

    /// What the thread does. It keeps the follower only while it works.
    fn run(me: &Weak<Following>, end: &End, interval: Duration) {
        while !end.comes_within(interval) {
            let Some(following) = me.upgrade() else { return };
            // What has failed is told, and tried again.
            let _ = following.catch_up();
        }
    }

    fn close(&self) -> Result<()> {
        let life = self.ground.folder.life();
        let Some(closing) = life.begin_close()? else { return Ok(()) };
        self.end.tell();
        closing.wait_for_calls();
        closing.shut();
        self.current.store(Arc::new(View::nothing()));
        self.ground.files.files.close_all();
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
        if self.ground.folder.life().is_forked() {
            return;
        }
        let _ = self.close();
    }
}

/// A handle of a store that another process writes, to read along: what RocksDB calls a secondary
/// instance. It takes no lock, and changes nothing in the folder: it needs no right to write there.
/// The writer knows nothing of it. A clone is another handle of the same. Any thread may use it.
///
/// It shows the store as it was at some moment. [`catch_up`](Follower::catch_up) moves on, or a
/// thread does: see [`FollowOptions::interval`]. Gets and scans are of the newest moment that it
/// has come to; a [`snapshot`](FollowedKeyspace::snapshot) stays at one. What these need is kept
/// open. Where [`max_open_files`](crate::options::OptionValues::max_open_files) does not allow
/// that, a read may end with [`Error::Gone`].
///
/// A write is seen once another one, or what an idle writer adds a moment later, shows that it went
/// well. It need not be durable yet: if the system crashes, the follower goes with it. Of a key
/// space without a [log](crate::options::OptionValues::log) it shows what was flushed.
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

/// A key space of a store that is followed: all that can be read of it.
#[derive(Clone)]
pub struct FollowedKeyspace {
    following: Arc<Following>,
    id: KeyspaceId,
}

/// All that is read of a key space is read of the one that every store has.
impl Deref for Follower {
    type Target = FollowedKeyspace;

    fn deref(&self) -> &FollowedKeyspace {
        &self.main
    }
}

impl Db {
    /// Reads a store along that another process writes, or that nobody has open: see [`Follower`].
    ///
    /// # Errors
    /// `Missing`, `NotAStore`, `Version`: as for [`open`](crate::Db::open). `Corrupt`,
    /// `FileMissing`: a file is damaged, or gone, and the manifest needs it.
    pub fn follow(path: impl AsRef<Path>, options: FollowOptions) -> Result<Follower> {
        Follower::open_with(path.as_ref(), &options, Environment::default())
    }

    /// As [`follow`](crate::Db::follow), with storage and clock from outside.
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
        let ground = Ground::new(folder, manifest.layout(), options, env)?;
        let now = ground.shared.env.clock.now();
        let looks = Looks { last: now, with_news: now, failure: None };
        let following = Arc::new(Following {
            ground,
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

    /// Moves on to what the writer has shown since. Costs what is new, and a few reads. False:
    /// nothing is, or it does not count yet. Reads of other threads go on meanwhile.
    ///
    /// # Errors
    /// `Corrupt`, `FileMissing`, `Io`: what was read stays as it was; the next call tries again.
    pub fn catch_up(&self) -> Result<bool> {
        self.following.catch_up()
    }

    /// How far it is behind.
    pub fn staleness(&self) -> Staleness {
        let now = self.following.ground.shared.env.clock.now();
        let sequence = self.following.current.pin().visible().0;
        let looks = lock(&self.following.looks);
        Staleness {
            sequence,
            since_look: now.saturating_sub(looks.last),
            since_news: now.saturating_sub(looks.with_news),
            failure: looks.failure.clone(),
        }
    }

    /// The number of the newest write that reads see. It only grows.
    pub fn sequence(&self) -> u64 {
        self.following.current.pin().visible().0
    }

    /// All key spaces at one moment, the present one.
    pub fn moment(&self) -> Result<Moment> {
        let following = Arc::clone(&self.following);
        following.ground.folder.life().check()?;
        let view = following.current.hold();
        let at = view.visible();
        Ok(Moment { following, view, at })
    }

    /// The key space of a name.
    ///
    /// # Errors
    /// `NoKeyspace`: there is none, or none yet.
    pub fn keyspace(&self, name: impl AsRef<str>) -> Result<FollowedKeyspace> {
        let following = Arc::clone(&self.following);
        let id = following.current.pin().named(name.as_ref())?;
        Ok(FollowedKeyspace { following, id })
    }

    /// The names of all key spaces, the default one first.
    pub fn keyspaces(&self) -> Vec<String> {
        names(&self.following.current.pin())
    }

    /// Reads every byte of every table and log and checks it, and every key against the guard, as
    /// [`Db::verify`](crate::Db::verify) does, of the present moment.
    ///
    /// # Errors
    /// `Gone`: a file was removed meanwhile, and not all could be kept open.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with_progress(&mut unheard)
    }

    /// As [`verify`](Follower::verify), and tells how far it has come.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it; and as there.
    pub fn verify_with_progress(&self, listener: &mut OnProgress<'_>) -> Result<VerifyReport> {
        let _call = self.following.ground.folder.life().enter()?;
        let view = self.following.current.hold();
        let trees: Vec<_> = view.trees.values().map(Arc::clone).collect();
        let of_store = (&self.following.ground.folder, &*view.layout);
        verify_followed(&trees, of_store, &mut Steps::new(listener))
    }

    /// Makes a store of its own in `dir`, which must be new or empty, that holds the present
    /// moment. Files are copied: the writer's get no second names.
    ///
    /// # Errors
    /// `NotEmpty`: the folder has files. `Gone`: a file was removed meanwhile, and not all could be
    /// kept open; catch up, and try again in an empty folder.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.checkpoint_with_progress(dir, &mut unheard)
    }

    /// As [`checkpoint`](Follower::checkpoint), and tells how many tables of how many it has.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it: what it has made is removed; and as there.
    pub fn checkpoint_with_progress(
        &self,
        dir: impl AsRef<Path>,
        listener: &mut OnProgress<'_>,
    ) -> Result<()> {
        let _call = self.following.ground.folder.life().enter()?;
        let (moment, trees) = self.pinned()?;
        let (storage, steps) = (&self.following.storage, &mut Steps::new(listener));
        checkpoint::of_followed(&**storage, moment.followed(&trees), dir.as_ref(), steps)
    }

    /// The present moment, and its trees.
    fn pinned(&self) -> Result<(Moment, Vec<Arc<OpenTree>>)> {
        let moment = self.moment()?;
        let trees = moment.view.trees.values().map(Arc::clone).collect();
        Ok((moment, trees))
    }

    /// Gives a target the files of the store as it is shown now, which goes on after so many
    /// numbers. Gives the number of the last write that it has.
    pub(crate) fn give_files(
        &self,
        target: &mut dyn checkpoint::Target,
        numbers_later: u64,
        listener: &mut OnProgress<'_>,
    ) -> Result<u64> {
        let _call = self.following.ground.folder.life().enter()?;
        let (moment, trees) = self.pinned()?;
        let (followed, steps) = (moment.followed(&trees), &mut Steps::new(listener));
        checkpoint::fill_of_followed(followed, target, numbers_later, steps)?;
        Ok(moment.at.0)
    }

    /// The store's folder, by the path that it was opened with.
    pub fn path(&self) -> PathBuf {
        self.following.ground.folder.path().to_path_buf()
    }

    /// Closes the follower, for all its handles: ends its thread and closes all files. Snapshots
    /// and scans may live on; they give [`Error::Closed`] from then on. Closing it again does
    /// nothing. Dropping the last handle closes it, too.
    pub fn close(&self) -> Result<()> {
        self.following.close()
    }
}

fn names(view: &View) -> Vec<String> {
    view.layout.keyspaces.values().map(|keyspace| keyspace.record.name.clone()).collect()
}

/// A store that is followed, at one moment: all its key spaces at one number.
pub struct Moment {
    following: Arc<Following>,
    view: Arc<View>,
    at: Sequence,
}

impl Moment {
    /// What a copy is made of. Requires: these are its trees.
    fn followed<'t>(&self, trees: &'t [Arc<OpenTree>]) -> checkpoint::Followed<'t> {
        (trees, self.view.layout.as_ref().clone(), self.at)
    }

    /// The number of the last write that it sees.
    pub fn sequence(&self) -> u64 {
        self.at.0
    }

    /// A key space at this moment.
    ///
    /// # Errors
    /// `NoKeyspace`: there was none of that name.
    pub fn keyspace(&self, name: impl AsRef<str>) -> Result<Snapshot> {
        let name = name.as_ref();
        let id = if name == DEFAULT_NAME { KeyspaceId::DEFAULT } else { self.view.named(name)? };
        if let Some(snapshot) = self.view.snapshot(id, self.at) {
            return Ok(snapshot);
        }
        // Nothing was written to it by then.
        let keyspace = &self.view.layout.keyspaces[&id];
        let next = Sequence(self.at.0 + 1);
        let tree = self.following.ground.tree_without_memtables((id, keyspace), next)?;
        let registered = Registered::alone(self.at);
        Ok(Snapshot { tree, registered })
    }

    /// The names of its key spaces, the default one first.
    pub fn keyspaces(&self) -> Vec<String> {
        names(&self.view)
    }
}

impl FollowedKeyspace {
    /// The key space as it is shown now. It stays so while others catch up, and keeps the tables
    /// that it needs open, as far as as many files may be.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.following.snapshot(self.id)
    }

    /// The value of a key; None if it has none.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.snapshot()?.get(key)
    }

    /// Whether a key has a value. A value apart is not read, so damage in it is not found.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.snapshot()?.contains_key(key)
    }

    /// The values of many keys at one moment: see [`Db::multi_get`](crate::Keyspace::multi_get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        match self.snapshot() {
            Ok(snapshot) => snapshot.multi_get(keys),
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// The value of a key, to be read in parts: see
    /// [`Db::get_reader`](crate::Keyspace::get_reader).
    pub fn get_reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        self.snapshot()?.get_reader(key)
    }

    /// The keys of a range and their values, as of now. Forward as an iterator, backward with
    /// `rev()`.
    pub fn range(&self, bounds: impl Into<KeyBounds>) -> Result<Scan> {
        Ok(self.snapshot()?.range(bounds))
    }

    /// The keys that begin with some bytes, and their values, as of now.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Scan> {
        Ok(self.snapshot()?.prefix(prefix))
    }

    /// False: no key lies in the range (a proof). True: there may be one. See
    /// [`Db::may_contain_range`](crate::Keyspace::may_contain_range).
    pub fn may_contain_range(&self, bounds: impl Into<KeyBounds>) -> Result<bool> {
        self.snapshot()?.may_contain_range(bounds)
    }

    /// What the follower holds of the key space, and what reads have cost since the last edit of
    /// the tree. What its writer does is not in it.
    pub fn stats(&self) -> Result<Stats> {
        let snapshot = self.snapshot()?;
        let _call = self.following.ground.folder.life().enter()?;
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
