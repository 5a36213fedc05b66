//! The store of a command, and how it is opened.
//! ```text
//! --db DIR --guard NAME --policy TEXT ...  -->  Options  -->  open, open or make, open to read
//! --keyspace NAME      of these, those of a key space are for this one; the default one needs none
//! opened elsewhere     read along, by commands that need no more
//! ```
//! Invariant: a command that only reads does not change the tree.

use std::io::ErrorKind;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::Args;
use trommel::stats::Stats;
use trommel::tools::{OnProgress, TreePeek, VerifyReport, peek, peek_keyspaces};
use trommel::{
    Background, Batch, Db, FollowOptions, FollowedKeyspace, Follower, GuardKind, KeyBounds,
    Keyspace, KeyspaceOptions, Options, Scan, Value, ValueReader,
};

use crate::args::filter::FilterArgs;
use crate::args::store_options::StoreOptions;
use crate::output::progress::patiently;
use crate::process::failure::Failure;
use crate::process::message::warning;

/// Which store, and how it is opened.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store's folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
    /// The key space. [default: default]
    #[arg(long, value_name = "NAME", value_parser = key_space)]
    pub(crate) keyspace: Option<KeyspaceName>,
    #[command(flatten)]
    pub(crate) options: StoreOptions,
    #[command(flatten)]
    filter: FilterArgs,
}

impl StoreArgs {
    /// Returns the guard if one was named.
    pub(crate) fn guard(&self) -> Option<GuardKind> {
        let options = &self.options.0;
        options.is_set("guard").then_some(options.guard)
    }

    /// Returns the typed options, with `guard_default` if no guard was named.
    fn options(&self, guard_default: GuardKind) -> Options {
        let options = self.filter.set_in(self.options.0.clone());
        match self.guard() {
            Some(_) => options,
            // Most commands need no guard, or another one than the store has.
            None => options.guard(guard_default).for_now("guard"),
        }
    }

    fn open_with(&self, options: Options, makes: bool) -> trommel::Result<OpenStore> {
        let options = options.create_if_missing(makes);
        patiently("opening the store", || match self.named() {
            None => Db::open(&self.db, options).map(OpenStore::from),
            Some(name) => {
                let db = Db::open(&self.db, of_whole_store(&options)?)?;
                let is_there = db.keyspaces()?.iter().any(|known| known == name);
                let keyspace = match makes || is_there {
                    true => db.keyspace(name, options.into())?,
                    // The error lists the known key spaces.
                    false => db.open_keyspace(name)?,
                };
                Ok(OpenStore { db, keyspace })
            }
        })
    }

    /// Returns the named key space. None: the default one.
    pub(crate) fn named(&self) -> Option<&str> {
        self.keyspace.as_ref().and_then(|name| name.0.as_deref())
    }

    /// Returns an error if a key space was named; for operations on the default key space only.
    pub(crate) fn only_default(&self, what: &str) -> Result<(), Failure> {
        match self.named() {
            None => Ok(()),
            Some(_) => Err(Failure::Usage(format!("{what}: leave out --keyspace"))),
        }
    }

    /// Returns the tree from the manifest.
    pub(crate) fn peek(&self) -> trommel::Result<TreePeek> {
        let Some(name) = self.named() else { return peek(&self.db) };
        let mut all = peek_keyspaces(&self.db)?;
        match all.iter().position(|(known, _)| known == name) {
            Some(place) => Ok(all.swap_remove(place).1),
            None => {
                let there = all.into_iter().map(|(name, _)| name).collect();
                Err(trommel::Error::NoKeyspace { name: name.into(), there })
            }
        }
    }

    /// Opens the store, or creates it.
    pub(crate) fn open_or_create(&self, guard_default: GuardKind) -> trommel::Result<OpenStore> {
        self.open_with(self.options(guard_default), true)
    }

    /// Opens the store; an error if it does not exist.
    pub(crate) fn open(&self, guard_default: GuardKind) -> trommel::Result<OpenStore> {
        self.open_with(self.options(guard_default), false)
    }

    /// Opens an existing store for reading only. Nothing is merged, since a reader must not change
    /// the tree.
    pub(crate) fn open_to_read(&self, guard_default: GuardKind) -> trommel::Result<OpenStore> {
        self.open_to_read_with(self.guard().unwrap_or(guard_default))
    }

    /// Like [`open_to_read`](Self::open_to_read). If another process has the store open, or its
    /// folder is not writable, the store is followed instead.
    pub(crate) fn read(&self, guard_default: GuardKind) -> trommel::Result<ReadStore> {
        self.read_with(self.guard().unwrap_or(guard_default))
    }

    /// Like [`read`](Self::read), but with this guard, whichever was named.
    pub(crate) fn read_with(&self, guard: GuardKind) -> trommel::Result<ReadStore> {
        match self.open_to_read_with(guard) {
            Err(error) if is_anothers(&error) => {
                let options = self.options(guard).guard(guard).for_now("guard");
                self.follow(options).map(ReadStore::Followed)
            }
            opened => opened.map(ReadStore::Opened),
        }
    }

    fn follow(&self, options: Options) -> trommel::Result<FollowedStore> {
        let given = match self.named() {
            None => FollowOptions::new().options(options),
            Some(name) => FollowOptions::new()
                .options(of_whole_store(&options)?)
                .keyspace(name, options.into()),
        };
        let store = patiently("reading the store", || Db::follow(&self.db, given))?;
        tell_of(&store);
        let keyspace = match self.named() {
            None => FollowedKeyspace::clone(&store),
            Some(name) => store.keyspace(name)?,
        };
        Ok(FollowedStore { store, keyspace })
    }

    /// Like [`open_to_read`](Self::open_to_read), but with this guard, whichever was named.
    pub(crate) fn open_to_read_with(&self, guard: GuardKind) -> trommel::Result<OpenStore> {
        let options = self.options(guard).guard(guard).for_now("guard");
        self.open_with(options.background(Background::Stepped), false)
    }
}

/// Opens an existing store to copy or change it as a whole. It has no guard, and merges nothing.
pub(crate) fn open_whole(folder: &Path) -> trommel::Result<Db> {
    Db::open(folder, options_for_whole())
}

/// Returns the options for copying or changing a store as a whole.
pub(crate) fn options_for_whole() -> Options {
    let options = Options::new().guard(GuardKind::Open).for_now("guard");
    options.background(Background::Stepped).create_if_missing(false)
}

/// A store whose files are copied.
pub(crate) enum WholeStore {
    Opened(Db),
    /// Another process has the store open.
    Followed(Follower),
}

/// Opens or follows a store to copy it as a whole.
pub(crate) fn open_or_follow_whole(folder: &Path) -> trommel::Result<WholeStore> {
    match open_whole(folder) {
        Err(error) if is_anothers(&error) => {
            let store = Db::follow(folder, FollowOptions::new().options(options_for_whole()))?;
            tell_of(&store);
            Ok(WholeStore::Followed(store))
        }
        opened => opened.map(WholeStore::Opened),
    }
}

/// Whether a store that fails to open with this error can be followed.
pub(crate) fn is_anothers(error: &trommel::Error) -> bool {
    match error {
        trommel::Error::Locked { .. } => true,
        trommel::Error::Io { source, .. } => {
            matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
        }
        _ => false,
    }
}

/// Warns that a store is followed, and up to which write.
pub(crate) fn tell_of(store: &Follower) {
    let (path, sequence) = (store.path(), store.sequence());
    let path = path.display();
    warning(&format!("{path} is read as another process has written it, up to write {sequence}"));
}

/// Returns the options of the whole store. Its default key space is not read, and has no guard.
fn of_whole_store(options: &Options) -> trommel::Result<Options> {
    let mut whole = Options::new().guard(GuardKind::Open).for_now("guard");
    let of_keyspaces = |name: &str| KeyspaceOptions::list().any(|option| option.name == name);
    for option in Options::list().iter().filter(|option| !of_keyspaces(option.name)) {
        let text = options.text_of(option.name)?;
        // Others keep the store's values. A preset sets nothing, but has other defaults.
        if options.is_set(option.name) || text != whole.text_of(option.name)? {
            whole.set(option.name, &text)?;
        }
    }
    Ok(whole)
}

/// The name of a key space, as typed. None: the default one.
#[derive(Clone, Debug)]
pub(crate) struct KeyspaceName(Option<String>);

fn key_space(text: &str) -> Result<KeyspaceName, String> {
    match text {
        "" => Err("a name".into()),
        DEFAULT => Ok(KeyspaceName(None)),
        name => Ok(KeyspaceName(Some(name.into()))),
    }
}

/// The name of the key space that always exists.
const DEFAULT: &str = "default";

/// An open store, and the key space that a command works on.
pub(crate) struct OpenStore {
    pub(crate) db: Db,
    keyspace: Keyspace,
}

impl From<Db> for OpenStore {
    fn from(db: Db) -> Self {
        let keyspace = Keyspace::clone(&db);
        OpenStore { db, keyspace }
    }
}

impl Deref for OpenStore {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.keyspace
    }
}

/// A store that is only read.
pub(crate) enum ReadStore {
    Opened(OpenStore),
    /// Another process has the store open.
    Followed(FollowedStore),
}

/// A followed store, and the key space that a command works on.
pub(crate) struct FollowedStore {
    store: Follower,
    keyspace: FollowedKeyspace,
}

impl ReadStore {
    pub(crate) fn get(&self, key: &[u8]) -> trommel::Result<Option<Value>> {
        match self {
            ReadStore::Opened(store) => store.get(key),
            ReadStore::Followed(store) => store.keyspace.get(key),
        }
    }

    pub(crate) fn get_reader(&self, key: &[u8]) -> trommel::Result<Option<ValueReader>> {
        match self {
            ReadStore::Opened(store) => store.get_reader(key),
            ReadStore::Followed(store) => store.keyspace.get_reader(key),
        }
    }

    pub(crate) fn range(&self, bounds: KeyBounds) -> trommel::Result<Scan> {
        match self {
            ReadStore::Opened(store) => Ok(store.range(bounds)),
            ReadStore::Followed(store) => store.keyspace.range(bounds),
        }
    }

    pub(crate) fn stats(&self) -> trommel::Result<Stats> {
        match self {
            ReadStore::Opened(store) => store.stats(),
            ReadStore::Followed(store) => store.keyspace.stats(),
        }
    }

    /// Verifies the whole store.
    pub(crate) fn verify(&self, listener: &mut OnProgress<'_>) -> trommel::Result<VerifyReport> {
        match self {
            ReadStore::Opened(store) => store.db.verify_with_progress(listener),
            ReadStore::Followed(store) => store.store.verify_with_progress(listener),
        }
    }
}

impl OpenStore {
    /// Returns an empty batch for the key space.
    pub(crate) fn batch(&self) -> Batch {
        let mut batch = Batch::new();
        batch.to(&self.keyspace);
        batch
    }

    pub(crate) fn close(self) -> trommel::Result<()> {
        drop(self.keyspace);
        self.db.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // With --keyspace, a preset's cache, threads and open files were the defaults.
    fn a_preset_reaches_the_whole_store_of_a_key_space() {
        let whole = of_whole_store(&Options::small_device()).expect("sound");
        let expected = Options::small_device();
        assert_eq!(whole.block_cache_bytes, expected.block_cache_bytes);
        assert_eq!(whole.max_open_files, expected.max_open_files);
        let default = Options::new();
        assert_eq!(whole.write_buffer_bytes, default.write_buffer_bytes, "of each key space");
        assert!(!whole.is_set("kept_log_bytes") && !whole.is_set("sync"));
        let typed = Options::small_device().block_cache_bytes(default.block_cache_bytes);
        let whole = of_whole_store(&typed).expect("sound");
        assert_eq!(whole.block_cache_bytes, default.block_cache_bytes);
    }
}
