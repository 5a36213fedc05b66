//! Backups: generations of a store, kept where objects are kept. A generation has only what was not
//! there yet.
//! ```text
//! back_up   files of one moment --> those that are not there: stored --> the generation's record
//! ship      the change feed since then --> long values, each stored --> changes-FROM-TO
//! restore   a generation's files --> a new folder --> changes up to a moment, applied --> a store
//! prune     records first --> then what no record names
//! ```
//! Invariants: a record is stored last and removed first, so what it names is there. So it is with
//! changes, which name long values. An object never changes. Whatever is interrupted, each
//! generation that had a record is whole.

mod apply;
mod create;
mod folder;
mod generation;
mod names;
mod object_store;
mod prune;
mod restore;
mod ship;
mod shipped;
mod staged;
mod stored;
mod values;
mod verify;

use std::path::Path;

use crate::db::Db;
use crate::error::{Error, Result};
use crate::follow::Follower;
use crate::plan::options::Options;
use crate::shared::environment::Environment;
use crate::sync::{Arc, Mutex, lock};
use crate::tools::progress::{OnProgress, Steps, unheard};

pub use apply::Unlogged;
pub use folder::FolderObjects;
pub use generation::{Generation, StoredFile};
pub use object_store::ObjectStore;
pub use prune::Pruned;
pub use restore::Until;
pub use ship::Shipped;
pub use verify::{BackupDamage, BackupReport};

/// The backups of one store: see the [module](self). Of several calls at once that change it, each
/// waits for the others. Other processes must not change it meanwhile; a folder is locked for that.
///
/// ```
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// use trommel::backup::Backups;
///
/// let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
/// db.put("drum", "turns")?;
/// let backups = Backups::in_folder(dir.path().join("backups"))?;
/// let first = backups.back_up(&db)?;
/// db.put("drum", "rests")?;
/// backups.back_up(&db)?;
/// assert!(backups.verify(first.number)?.damage.is_empty());
///
/// backups.restore(first.number, dir.path().join("restored"))?;
/// let restored = trommel::Db::open(dir.path().join("restored"), trommel::Options::default())?;
/// assert_eq!(restored.get("drum")?.as_deref(), Some(&b"turns"[..]));
/// # Ok(())
/// # }
/// ```
pub struct Backups {
    objects: Arc<dyn ObjectStore>,
    /// What time it is, and where stores are restored to.
    environment: Environment,
    /// Held while something changes.
    turn: Mutex<()>,
}

impl Backups {
    /// Those that an object store has, or none yet.
    pub fn new(objects: impl ObjectStore + 'static) -> Backups {
        Backups::with(objects, Environment::default())
    }

    /// As above; restored stores are written to that environment's storage.
    pub fn with(objects: impl ObjectStore + 'static, environment: Environment) -> Backups {
        Backups { objects: Arc::new(objects), environment, turn: Mutex::default() }
    }

    /// Those in a folder, which is made if there is none. It is locked until this is dropped.
    ///
    /// # Errors
    /// `Locked`: another process has it. `Io`: the disk refuses.
    pub fn in_folder(dir: impl AsRef<Path>) -> Result<Backups> {
        Ok(Backups::new(FolderObjects::open(dir)?))
    }

    /// Stores all writes that are visible now as a new generation. Writes go on meanwhile. Only
    /// files are stored that no generation has. All writes that it has are durable in the store,
    /// too.
    ///
    /// # Errors
    /// `Io`: the store or the backups cannot be read or written. No generation is made then, and
    /// none is worse than before.
    pub fn back_up(&self, db: &Db) -> Result<Generation> {
        self.back_up_with_progress(db, &mut unheard)
    }

    /// As [`back_up`](Backups::back_up), and tells how many tables of how many it has. The listener
    /// is called for each piece of a file, too.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it: no generation is made. The next call does not store
    /// again what an older generation has; the rest goes when generations are pruned.
    pub fn back_up_with_progress(
        &self,
        db: &Db,
        listener: &mut OnProgress<'_>,
    ) -> Result<Generation> {
        let _turn = lock(&self.turn);
        create::back_up(&*self.objects, db, &self.environment, listener)
    }

    /// As [`back_up`](Backups::back_up), of a store that another process writes: as the follower
    /// shows it now. The writer knows nothing of it. What is only in the logs is stored anew by
    /// each generation. The last write may be missing: see [`Follower`]. A generation may have
    /// writes that a power cut takes from the store. After one, make a new generation before
    /// [`ship`](Backups::ship).
    ///
    /// # Errors
    /// As there. `Gone`: a file was removed meanwhile, and not all could be kept open:
    /// [catch up](Follower::catch_up), and try again. `Closed`: the follower was closed.
    pub fn back_up_followed(&self, follower: &Follower) -> Result<Generation> {
        self.back_up_followed_with_progress(follower, &mut unheard)
    }

    /// As [`back_up_followed`](Backups::back_up_followed), and tells how many tables of how many it
    /// has. The listener is called for each piece of a file, too.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it; and as there.
    pub fn back_up_followed_with_progress(
        &self,
        follower: &Follower,
        listener: &mut OnProgress<'_>,
    ) -> Result<Generation> {
        let _turn = lock(&self.turn);
        create::back_up_followed(&*self.objects, follower, &self.environment, listener)
    }

    /// All generations, the oldest first.
    ///
    /// # Errors
    /// `Corrupt`: a record is damaged. `Io`: the backups cannot be read.
    pub fn generations(&self) -> Result<Vec<Generation>> {
        generation::all(&*self.objects)
    }

    fn generation(&self, number: u64) -> Result<Generation> {
        let found = self.generations()?.into_iter().find(|it| it.number == number);
        found.ok_or_else(|| Error::FileMissing {
            path: stored::path_of(&*self.objects, &generation::name(number)),
            what: "there is no generation of this number".into(),
        })
    }

    /// Reads all that a generation has, and the changes that were shipped behind it up to the next
    /// generation, and checks it.
    ///
    /// # Errors
    /// `FileMissing`: there is no such generation. `Io`: the backups cannot be read.
    pub fn verify(&self, number: u64) -> Result<BackupReport> {
        verify::verify(&*self.objects, &self.generation(number)?)
    }

    /// Makes a store of a generation, in a folder that is empty or not there. Cut short, it is
    /// refused as no store.
    ///
    /// # Errors
    /// `FileMissing`: there is no such generation. `NotEmpty`: the folder has files. `Corrupt`: an
    /// object is damaged. `Io`: the backups cannot be read, or the folder not be written.
    pub fn restore(&self, number: u64, dir: impl AsRef<Path>) -> Result<()> {
        self.restore_with_progress(number, dir, &mut unheard)
    }

    /// As [`restore`](Backups::restore), and tells how many bytes of how many it has written.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it: what it has made is removed.
    pub fn restore_with_progress(
        &self,
        number: u64,
        dir: impl AsRef<Path>,
        listener: &mut OnProgress<'_>,
    ) -> Result<()> {
        let (generation, steps) = (self.generation(number)?, &mut Steps::new(listener));
        steps.begin(generation.bytes())?;
        let to = (&*self.environment.storage, dir.as_ref());
        restore::restore(&*self.objects, &generation, to, steps)
    }

    /// Makes a store as it was at a moment, in a folder that is empty or not there: of the newest
    /// generation before, and of the changes since that were [shipped](Backups::ship). Gives the
    /// number of the last write that it has. The store is opened with `options` for it. Cut short,
    /// it is refused as no store. After an error the folder is empty.
    ///
    /// That key spaces were made, renamed or dropped, or got other options, counts from the call on
    /// that shipped it; one that was written to is there before.
    ///
    /// # Errors
    /// As [`restore`](Backups::restore). `FileMissing`: no generation is so old, or changes up to
    /// then were not shipped; or a key space without a [log](crate::options::OptionValues::log) was
    /// written to since the generation.
    pub fn restore_until(
        &self,
        until: Until,
        dir: impl AsRef<Path>,
        options: Options,
    ) -> Result<u64> {
        let unlogged = Unlogged::Refuse;
        self.restore_until_with_progress(until, (dir, options), unlogged, &mut unheard)
    }

    /// As [`restore_until`](Backups::restore_until). Says what is to be done with key spaces whose
    /// changes nothing tells, and tells how many bytes of how many it has read.
    ///
    /// # Errors
    /// `Cancelled` if the listener stops it: what it has made is removed.
    pub fn restore_until_with_progress(
        &self,
        until: Until,
        (dir, options): (impl AsRef<Path>, Options),
        unlogged: Unlogged,
        listener: &mut OnProgress<'_>,
    ) -> Result<u64> {
        let (to, steps) = ((dir.as_ref(), options), &mut Steps::new(listener));
        restore::until(&*self.objects, until, to, unlogged, (&self.environment, steps))
    }

    /// Stores the changes since the newest generation, or since those that were shipped before.
    /// Gives how far they reach now. The store has to keep its logs so long:
    /// [`kept_log_bytes`](crate::options::OptionValues::kept_log_bytes). Of key spaces without a
    /// log no change is told: these are as they were at the generation. Values may have up to
    /// 1 TiB, and take little memory if they are
    /// [apart](crate::options::OptionValues::value_threshold).
    ///
    /// # Errors
    /// `FileMissing`: there is no generation yet. `Gone`: the store has not kept its logs for so
    /// long, a bulk load came since, or a value apart was overwritten and is gone. Make a
    /// generation; changes are shipped from there on. `Io`, `Corrupt`: the store or the backups
    /// cannot be read or written; what was shipped stays, and the next call goes on there.
    pub fn ship(&self, db: &Db) -> Result<Shipped> {
        let _turn = lock(&self.turn);
        ship::ship(&*self.objects, db, &self.environment)
    }

    /// Removes all generations but the newest `keep`, and what only they needed. Also what
    /// interrupted calls have left.
    ///
    /// # Errors
    /// `Io`: something stays; the next call removes it.
    pub fn prune(&self, keep: usize) -> Result<Pruned> {
        let _turn = lock(&self.turn);
        prune::prune(&*self.objects, keep)
    }
}

impl std::fmt::Debug for Backups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Backups").field(&self.objects.place()).finish()
    }
}
