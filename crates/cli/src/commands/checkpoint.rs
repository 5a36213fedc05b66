//! `checkpoint`: makes a second store with the same contents.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::args::store::{WholeStore, open_or_follow_whole};
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

pub(crate) fn run(arguments: &CheckpointArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let store = open_or_follow_whole(&arguments.db)?;
    let words = format!("{} is no store: remove it", arguments.dir.display());
    let last_words = LastWords::new(move || words.clone())?;
    let mut bar = CallBar::new("copying");
    match &store {
        WholeStore::Opened(db) => db.checkpoint_with_progress(&arguments.dir, &mut bar.hear()),
        WholeStore::Followed(store) => {
            store.checkpoint_with_progress(&arguments.dir, &mut bar.hear())
        }
    }?;
    drop(bar);
    drop(last_words);
    let stats = match &store {
        WholeStore::Opened(db) => db.stats()?,
        WholeStore::Followed(store) => store.stats()?,
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
