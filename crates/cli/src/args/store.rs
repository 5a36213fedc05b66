//! The store that a command works on, and how it is opened.
//! ```text
//! --db DIR --guard NAME --policy TEXT ...  -->  Options  -->  open, open or make, open to read
//! --keyspace NAME      of these, those of a key space are for this one; the default one needs none
//! ```
//! Invariant: a command that only asks changes no tree.

use std::ops::Deref;
use std::path::PathBuf;

use clap::Args;
use trommel::tools::{TreePeek, peek, peek_keyspaces};
use trommel::{Background, Batch, Db, GuardKind, Keyspace, KeyspaceOptions, Options};

use crate::args::filter::FilterArgs;
use crate::args::store_options::StoreOptions;
use crate::output::progress::patiently;
use crate::process::failure::Failure;

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
    /// The guard that was asked for.
    pub(crate) fn guard(&self) -> Option<GuardKind> {
        let options = &self.options.0;
        options.is_set("guard").then_some(options.guard)
    }

    /// The options that were asked for; `guard_default` if no guard was named.
    fn options(&self, guard_default: GuardKind) -> Options {
        let options = self.filter.set_in(self.options.0.clone());
        match self.guard() {
            Some(_) => options,
            // Most commands need none, or another one than the store.
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
                    // It says which ones there are.
                    false => db.open_keyspace(name)?,
                };
                Ok(OpenStore { db, keyspace })
            }
        })
    }

    /// The key space that was named. None: the default one.
    pub(crate) fn named(&self) -> Option<&str> {
        self.keyspace.as_ref().and_then(|name| name.0.as_deref())
    }

    /// An error if a key space was named, for what is of the default one alone.
    pub(crate) fn only_default(&self, what: &str) -> Result<(), Failure> {
        match self.named() {
            None => Ok(()),
            Some(_) => Err(Failure::Usage(format!("{what}: leave out --keyspace"))),
        }
    }

    /// The tree as the manifest has it.
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

    /// Opens the store, or makes it if there is none.
    pub(crate) fn open_or_create(&self, guard_default: GuardKind) -> trommel::Result<OpenStore> {
        self.open_with(self.options(guard_default), true)
    }

    /// Opens the store; an error if there is none.
    pub(crate) fn open(&self, guard_default: GuardKind) -> trommel::Result<OpenStore> {
        self.open_with(self.options(guard_default), false)
    }

    /// Opens the store for reading alone; an error if there is none. Nothing is merged: a reader
    /// must not change the tree.
    pub(crate) fn open_to_read(&self, guard_default: GuardKind) -> trommel::Result<OpenStore> {
        self.open_to_read_with(self.guard().unwrap_or(guard_default))
    }

    /// As [`open_to_read`](Self::open_to_read), with this guard, whatever was asked for.
    pub(crate) fn open_to_read_with(&self, guard: GuardKind) -> trommel::Result<OpenStore> {
        let options = self.options(guard).guard(guard).for_now("guard");
        self.open_with(options.background(Background::Stepped), false)
    }
}

/// Those of the whole store. Nothing is asked of the default key space.
fn of_whole_store(options: &Options) -> trommel::Result<Options> {
    let mut whole = Options::new().guard(GuardKind::Open).for_now("guard");
    let of_keyspaces = |name: &str| KeyspaceOptions::list().any(|option| option.name == name);
    // What is not named is as the store keeps it.
    let is_given = |name: &str| options.is_set(name) && !of_keyspaces(name);
    for option in Options::list().iter().filter(|option| is_given(option.name)) {
        whole.set(option.name, &options.text_of(option.name)?)?;
    }
    Ok(whole)
}

/// A key space as it is typed. None: the default one.
#[derive(Clone, Debug)]
pub(crate) struct KeyspaceName(Option<String>);

fn key_space(text: &str) -> Result<KeyspaceName, String> {
    match text {
        "" => Err("a name".into()),
        DEFAULT => Ok(KeyspaceName(None)),
        name => Ok(KeyspaceName(Some(name.into()))),
    }
}

/// How the key space is called that is always there.
const DEFAULT: &str = "default";

/// A store that is open, and the key space of it that a command works on.
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

impl OpenStore {
    /// A batch for the key space.
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
