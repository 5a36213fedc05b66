//! `inspect`: draws the tree, once or repeatedly.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use trommel::GuardKind;
use trommel::stats::Stats;

use crate::args::store::StoreArgs;
use crate::args::watch::WatchArgs;
use crate::output::partitions::partitions_json;
use crate::output::svg;
use crate::output::tree_json::{guard_json, levels_json, policy_json};
use crate::output::tree_picture::picture;
use crate::process::failure::{Failure, Outcome, Status};
use crate::watch::tree_snapshot::TreeSnapshot;
use crate::watch::watcher::Watcher;

/// A store, and where to draw it.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Draw the tree into this file, too, as a picture (SVG).
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    watch: WatchArgs,
    /// End after so many looks. [default: when the picture is closed]
    #[arg(long, value_name = "N", requires = "watch")]
    looks: Option<u64>,
}

pub(crate) fn run(arguments: &InspectArgs, json: bool, out: &mut dyn Write) -> Outcome {
    if let Some(watcher) = Watcher::new(arguments.watch, json, out)? {
        return watch(arguments, watcher);
    }
    let db = arguments.store.read(GuardKind::Grf)?;
    let stats = db.stats()?;
    if let Some(file) = &arguments.svg {
        let failed = |error| Failure::Data(format!("{}: {error}", file.display()));
        std::fs::write(file, svg::picture(&stats)).map_err(failed)?;
    }
    if json {
        let (policy, levels) = (policy_json(&stats), levels_json(&stats));
        let guard = guard_json(&stats);
        writeln!(
            out,
            "{}",
            json!({
                "policy": policy, "memory": memory_json(&stats), "levels": levels,
                "ranges": partitions_json(&stats), "guard": guard,
            })
        )?;
    } else {
        out.write_all(picture(&stats).as_bytes())?;
    }
    Ok(Status::Fine)
}

/// Returns figures of memory and logs as JSON.
fn memory_json(stats: &Stats) -> serde_json::Value {
    json!({
        "memtables": stats.memtables, "memtable_bytes": stats.memtable_bytes,
        "memtable_entries": stats.memtable_entries,
        "logs": stats.logs, "log_bytes": stats.log_bytes,
    })
}

/// The pause between two checks for the time and for pressed keys.
const NAP: Duration = Duration::from_millis(20);

/// Reads the manifest repeatedly until the picture is closed.
fn watch(arguments: &InspectArgs, mut watcher: Watcher<'_>) -> Outcome {
    let folder = &arguments.store.db;
    let name = folder.display().to_string();
    while !watcher.is_closed() && arguments.looks.is_none_or(|most| watcher.looks() < most) {
        if watcher.is_due() {
            watcher.show(TreeSnapshot::of_peek(&name, &arguments.store.peek()?));
        } else {
            std::thread::sleep(NAP);
        }
    }
    watcher.end()?;
    Ok(Status::Fine)
}
