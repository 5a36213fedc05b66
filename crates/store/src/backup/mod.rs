//! Backups: generations of a store in an object store. A generation stores only files that no
//! earlier one has.
//! ```text
//! back_up   files of one moment --> the new ones are stored --> the generation's record
//! ship      the change feed since then --> long values, each stored --> changes-FROM-TO
//! restore   a generation's files --> a new folder --> changes up to a moment, applied --> a store
//! prune     records first --> then everything that no record names
//! ```
//! Invariants: a record is stored last and removed first, so everything that it names exists. The
//! same holds for changes, which name long values. An object never changes. Whatever is
//! interrupted, each generation with a record is complete.

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

/// The backups of one store: see the [module](self). Of several concurrent calls that change
/// backups, one runs at a time. Other processes must not change them meanwhile; a folder is locked
/// against that.
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
    /// The clock, and the storage for restored stores.
    environment: Environment,
    /// Held while backups change.
    turn: Mutex<()>,
}

impl Backups {
    /// Uses the backups in an object store, which may have none yet.
    pub fn new(objects: impl ObjectStore + 'static) -> Backups {
        Backups::with(objects, Environment::default())
    }

    /// Like [`new`](Backups::new). Stores are restored to the storage of this environment.
    pub fn with(objects: impl ObjectStore + 'static, environment: Environment) -> Backups {
        Backups { objects: Arc::new(objects), environment, turn: Mutex::default() }
    }

    /// Uses the backups in a folder. Makes the folder if it does not exist, and locks it until this
    /// value is dropped.
    ///
    /// # Errors
    /// `Locked`: another process has it open. `Io`: the disk refuses.
    pub fn in_folder(dir: impl AsRef<Path>) -> Result<Backups> {
        Ok(Backups::new(FolderObjects::open(dir)?))
    }

    /// Stores all writes that are visible now as a new generation. Only files that no generation
    /// has are stored. Writes can go on meanwhile. When the call returns, all writes in the
    /// generation are durable in the store, too.
    ///
    /// # Errors
    /// `Io`: the store or the backups cannot be read or written. Then no generation is made, and
    /// the existing ones are unharmed.
    pub fn back_up(&self, db: &Db) -> Result<Generation> {
        self.back_up_with_progress(db, &mut unheard)
    }

    /// Like [`back_up`](Backups::back_up), and reports how many tables are done, of how many. The
    /// listener is also called for each piece of a file.
    ///
    /// # Errors
    /// `Cancelled`: the listener stopped it, and no generation is made. The next call does not
    /// store again what an older generation has; pruning removes the rest.
    pub fn back_up_with_progress(
        &self,
        db: &Db,
        listener: &mut OnProgress<'_>,
    ) -> Result<Generation> {
        let _turn = lock(&self.turn);
        create::back_up(&*self.objects, db, &self.environment, listener)
    }

    /// Like [`back_up`](Backups::back_up), for a store that another process writes, as the follower
    /// shows it now. The writer does not notice. Each generation stores anew what is only in logs.
    /// The last write may be missing: see [`Follower`].
    ///
    /// A generation may have writes that a power cut takes from the store. After a power cut, make
    /// a new generation before [`ship`](Backups::ship). It replaces those that have more writes:
    /// changes are shipped behind it, and lead on from it.
    ///
    /// # Errors
    /// As for [`back_up`](Backups::back_up). `Gone`: a file was removed meanwhile, and not all
    /// files could be kept open; [catch up](Follower::catch_up) and try again. `Closed`: the
    /// follower was closed.
    pub fn back_up_followed(&self, follower: &Follower) -> Result<Generation> {
        self.back_up_followed_with_progress(follower, &mut unheard)
    }

    /// Like [`back_up_followed`](Backups::back_up_followed), and reports how many tables are done,
    /// of how many. The listener is also called for each piece of a file.
    ///
    /// # Errors
    /// `Cancelled`: the listener stopped it. Others as for
    /// [`back_up_followed`](Backups::back_up_followed).
    pub fn back_up_followed_with_progress(
        &self,
        follower: &Follower,
        listener: &mut OnProgress<'_>,
    ) -> Result<Generation> {
        let _turn = lock(&self.turn);
        create::back_up_followed(&*self.objects, follower, &self.environment, listener)
    }

    /// Returns all generations, oldest first.
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

    /// Reads and checks everything in a generation, and the changes shipped after it up to the next
    /// generation.
    ///
    /// # Errors
    /// `FileMissing`: there is no such generation. `Io`: the backups cannot be read.
    pub fn verify(&self, number: u64) -> Result<BackupReport> {
        verify::verify(&*self.objects, &self.generation(number)?)
    }

    /// Restores a generation to a folder that is empty or does not exist. If the process is killed
    /// meanwhile, the folder is refused as no store.
    ///
    /// # Errors
    /// `FileMissing`: there is no such generation, or an object of it is missing. `NotEmpty`: the
    /// folder has files. `Corrupt`: an object is damaged. `Io`: the backups cannot be read, or the
    /// folder cannot be written.
    pub fn restore(&self, number: u64, dir: impl AsRef<Path>) -> Result<()> {
        self.restore_with_progress(number, dir, &mut unheard)
    }

    /// Like [`restore`](Backups::restore), and reports how many bytes are written, of how many.
    ///
    /// # Errors
    /// `Cancelled`: the listener stopped it. Everything that was written is removed.
    pub fn restore_with_progress(
        &self,
        number: u64,
        dir: impl AsRef<Path>,
        listener: &mut OnProgress<'_>,
    ) -> Result<()> {
        let (generation, steps) = (self.generation(number)?, &mut Steps::new(listener));
        steps.begin(generation.bytes())?;
        let to = (&self.environment, dir.as_ref());
        restore::restore(&*self.objects, &generation, to, steps)
    }

    /// Restores the store as of a moment to a folder that is empty or does not exist. It takes the
    /// newest generation before that moment, and applies changes that were [shipped](Backups::ship)
    /// since. Returns the number of the last write that the store has. The store is opened with
    /// `options` for this. If the process is killed meanwhile, the folder is refused as no store.
    /// After an error the folder is empty.
    ///
    /// Making, renaming or dropping a key space, and setting its options, take effect as of the
    /// call that shipped it. A key space that is written to exists before that; one that still has
    /// its name is called `renamed-…` meanwhile.
    ///
    /// # Errors
    /// As for [`restore`](Backups::restore). `FileMissing`, too: no generation is that old, or the
    /// changes up to the moment were not shipped. Or a key space without a
    /// [log](crate::options::OptionValues::log) was written to after the generation.
    pub fn restore_until(
        &self,
        until: Until,
        dir: impl AsRef<Path>,
        options: Options,
    ) -> Result<u64> {
        let unlogged = Unlogged::Refuse;
        self.restore_until_with_progress(until, (dir, options), unlogged, &mut unheard)
    }

    /// Like [`restore_until`](Backups::restore_until), and reports how many bytes are read, of how
    /// many. `unlogged` says what to do with key spaces without a log, whose changes are not
    /// shipped.
    ///
    /// # Errors
    /// `Cancelled`: the listener stopped it. Everything that was written is removed.
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

    /// Stores the changes since the last call, or since the newest generation if none were shipped.
    /// Returns the range of writes that it shipped. The store must have kept its logs since then:
    /// see [`kept_log_bytes`](crate::options::OptionValues::kept_log_bytes). Changes to key spaces
    /// without a log are not shipped: such key spaces stay as of the generation. Once one gets a
    /// log, that is as a bulk load. Values may have up to 1 TiB, and need little memory if they are
    /// [apart](crate::options::OptionValues::value_threshold).
    ///
    /// # Errors
    /// `FileMissing`: there is no generation yet. `Gone`: the store no longer has all logs, or a
    /// bulk load came since, or the logs no longer have the file of a value that was overwritten or
    /// moved. Make a generation then; later changes are shipped from there on. `Io`, `Corrupt`: the
    /// store or the backups cannot be read or written. What was shipped stays, and the next call
    /// continues there.
    pub fn ship(&self, db: &Db) -> Result<Shipped> {
        let _turn = lock(&self.turn);
        ship::ship(&*self.objects, db, &self.environment)
    }

    /// Removes all generations except the newest `keep`, and all objects that only they needed.
    /// Also removes what interrupted calls have left.
    ///
    /// # Errors
    /// `Io`: some objects stay. The next call removes them.
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
