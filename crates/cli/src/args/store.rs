//! The store that a command works on, and how it is opened.
//! ```text
//! --db DIR --guard NAME --policy TEXT ...  -->  Options  -->  open, open or make, open to read
//! ```
//! Invariant: a command that only asks changes no tree.

use std::path::PathBuf;

use clap::Args;
use trommel::{Background, Db, GuardKind, Options};

use crate::args::filter::FilterArgs;
use crate::args::store_options::StoreOptions;
use crate::output::progress::patiently;

/// Which store, and how it is opened.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store's folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
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
        let options = self.options.0.clone().filter(self.filter.tuning());
        match self.guard() {
            Some(_) => options,
            // Most commands need none, or another one than the store.
            None => options.guard(guard_default).for_now("guard"),
        }
    }

    fn open_with(&self, options: Options) -> trommel::Result<Db> {
        patiently("opening the store", || Db::open(&self.db, options))
    }

    /// Opens the store, or makes it if there is none.
    pub(crate) fn open_or_create(&self, guard_default: GuardKind) -> trommel::Result<Db> {
        self.open_with(self.options(guard_default))
    }

    /// Opens the store; an error if there is none.
    pub(crate) fn open(&self, guard_default: GuardKind) -> trommel::Result<Db> {
        let options = self.options(guard_default).create_if_missing(false);
        self.open_with(options)
    }

    /// Opens the store for reading alone; an error if there is none. Nothing is merged: a store
    /// does not keep its policy, so this one may not be its own. A reader must not change the tree.
    pub(crate) fn open_to_read(&self, guard_default: GuardKind) -> trommel::Result<Db> {
        self.open_to_read_with(self.guard().unwrap_or(guard_default))
    }

    /// As [`open_to_read`](Self::open_to_read), with this guard, whatever was asked for.
    pub(crate) fn open_to_read_with(&self, guard: GuardKind) -> trommel::Result<Db> {
        let options = self.options(guard).guard(guard).for_now("guard");
        let options = options.create_if_missing(false).background(Background::Stepped);
        self.open_with(options)
    }
}
