//! `keyspaces`: lists the key spaces of a store, drops one, or renames one.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use trommel::Db;
use trommel::tools::{TreePeek, peek_keyspaces};

use crate::args::store::open_whole;
use crate::output::table::{TextTable, bytes, whole};
use crate::process::failure::{Outcome, Status};

pub(crate) const EXAMPLES: &str = "Examples: make one by writing into it; all there are; another name; one that goes, with all its keys\n  \
    trommel put --db words --keyspace colours apple red\n  \
    trommel keyspaces --db words\n  \
    trommel keyspaces --db words --rename colours hues\n  \
    trommel keyspaces --db words --drop hues";

#[derive(Debug, Args)]
pub(crate) struct KeyspacesArgs {
    /// The store's folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
    /// Drop this one with all its keys. They do not come back.
    #[arg(long, value_name = "NAME", conflicts_with = "rename")]
    drop: Option<String>,
    /// Give one another name.
    #[arg(long, num_args = 2, value_names = ["NAME", "NEW-NAME"])]
    rename: Option<Vec<String>>,
}

pub(crate) fn run(arguments: &KeyspacesArgs, json: bool, out: &mut dyn Write) -> Outcome {
    change(arguments)?;
    let all = peek_keyspaces(&arguments.db)?;
    if json {
        let keyspaces: Vec<_> = all.iter().map(as_json).collect();
        writeln!(out, "{}", json!({ "keyspaces": keyspaces }))?;
    } else {
        out.write_all(as_text(&all).as_bytes())?;
    }
    Ok(Status::Fine)
}

fn change(arguments: &KeyspacesArgs) -> trommel::Result<()> {
    match (&arguments.drop, arguments.rename.as_deref()) {
        (Some(name), _) => changed(&arguments.db, |db| db.drop_keyspace(name)),
        (None, Some([from, to])) => changed(&arguments.db, |db| db.rename_keyspace(from, to)),
        (None, _) => Ok(()),
    }
}

/// Opens a store, changes it and closes it.
fn changed(folder: &Path, change: impl FnOnce(&Db) -> trommel::Result<()>) -> trommel::Result<()> {
    let db = open_whole(folder)?;
    change(&db)?;
    db.close()
}

type Named = (String, TreePeek);

fn size(tree: &TreePeek) -> (u64, u64) {
    let runs = tree.runs.iter();
    runs.fold((0, 0), |(entries, bytes), run| (entries + run.entries, bytes + run.bytes))
}

fn as_json((name, tree): &Named) -> serde_json::Value {
    let (entries, bytes) = size(tree);
    json!({ "name": name, "runs": tree.runs.len(), "entries": entries, "bytes": bytes })
}

/// Formats the key spaces. Entries that are only in logs are left out, since no one has read them.
fn as_text(all: &[Named]) -> String {
    let mut table = TextTable::new(1, &["key space", "runs", "entries", "bytes"]);
    for (name, tree) in all {
        let ((entries, size), runs) = (size(tree), tree.runs.len() as u64);
        table.row(vec![name.clone(), whole(runs), whole(entries), bytes(size)]);
    }
    table.render()
}
