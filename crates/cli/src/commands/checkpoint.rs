//! `checkpoint`: a second store that holds what this one holds.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use trommel::{Db, FollowOptions, Follower};

use crate::args::store::{is_anothers, open_whole, options_for_whole, tell_of};
use crate::output::progress::CallBar;
use crate::output::table::{bytes, counted};
use crate::process::failure::{Outcome, Status};
use crate::process::signals::LastWords;

#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    /// The store's folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
    /// The folder for the second store: new, or empty.
    #[arg(value_name = "NEW-DIR")]
    dir: PathBuf,
}

/// What the files are of.
enum Store {
    Opened(Db),
    /// Beside the process that has it open.
    Followed(Follower),
}

pub(crate) fn run(arguments: &CheckpointArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let store = match open_whole(&arguments.db) {
        Err(error) if is_anothers(&error) => {
            let options = FollowOptions::new().options(options_for_whole());
            let store = Db::follow(&arguments.db, options)?;
            tell_of(&store);
            Store::Followed(store)
        }
        opened => Store::Opened(opened?),
    };
    let words = format!("{} is no store: remove it", arguments.dir.display());
    let last_words = LastWords::new(move || words.clone())?;
    let mut bar = CallBar::new("copying");
    match &store {
        Store::Opened(db) => db.checkpoint_with_progress(&arguments.dir, &mut bar.hear()),
        Store::Followed(store) => store.checkpoint_with_progress(&arguments.dir, &mut bar.hear()),
    }?;
    drop(bar);
    drop(last_words);
    let stats = match &store {
        Store::Opened(db) => db.stats()?,
        Store::Followed(store) => store.stats()?,
    };
    let tables: u64 = stats.levels.iter().flat_map(|level| &level.runs).map(|run| run.tables).sum();
    let size = stats.table_bytes();
    if json {
        let dir = arguments.dir.display().to_string();
        writeln!(out, "{}", json!({ "ok": true, "dir": dir, "tables": tables, "bytes": size }))?;
    } else {
        let dir = arguments.dir.display();
        writeln!(out, "checkpoint in {dir}: {}, {}", counted(tables, "table"), bytes(size))?;
    }
    Ok(Status::Fine)
}
