//! `compact`: does the merges that are due, or merges everything into one run.
//! ```text
//! manifest --> runs before     threads that merge --> settled --> runs after
//! ```

use std::io::Write;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use trommel::GuardKind;
use trommel::stats::Stats;
use trommel::tools::TreePeek;

use crate::args::store::{OpenStore, StoreArgs};
use crate::args::watch::WatchArgs;
use crate::output::progress::{CallBar, merge_bar};
use crate::output::table::{bytes, counted, whole};
use crate::process::failure::{Failure, Outcome, Status};
use crate::process::signals::LastWords;
use crate::watch::watcher::{Watcher, beside, watched};

pub(crate) const EXAMPLES: &str = "Examples: what a load has left to be merged; what is due under another policy; one run, without what was deleted or replaced\n  \
    trommel compact --db words\n  \
    trommel compact --db words --policy leveling --size-ratio 4\n  \
    trommel compact --db words --all --merge-threads 2\n\n\
    A policy that is named is kept from then on.";

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Merge everything into one run. Else: what is due under the policy.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    watch: WatchArgs,
}

pub(crate) fn run(arguments: &CompactArgs, json: bool, out: &mut dyn Write) -> Outcome {
    // Peeks first, since merges begin when the store is opened.
    let before = arguments.store.peek();
    let db = arguments.store.open(GuardKind::Grf)?;
    let before = before?;
    let start = Instant::now();
    let words = "merges that have ended are kept; others are done when they are due again";
    let last_words = LastWords::new(|| words.into())?;
    match Watcher::new(arguments.watch, json, out)? {
        Some(watcher) => {
            let merge = || Ok(if arguments.all { db.compact() } else { db.db.settle() }?);
            watched(watcher, &db, merge)?;
        }
        None if arguments.all => {
            let mut bar = CallBar::new("merging");
            db.compact_with_progress(&mut bar.hear())?;
        }
        None => settle_with_bar(&db)?,
    }
    let (after, seconds) = (db.stats()?, start.elapsed().as_secs_f64());
    db.close()?;
    drop(last_words);
    if json {
        writeln!(out, "{}", as_json(&before, &after, seconds))?;
    } else {
        writeln!(out, "{}", as_text(&before, &after, seconds))?;
    }
    Ok(Status::Fine)
}

/// Waits for due merges, with a bar whose total is unknown.
fn settle_with_bar(store: &OpenStore) -> Result<(), Failure> {
    let bar = merge_bar();
    let merged = beside(
        || Ok(store.db.settle()?),
        || {
            let Ok(stats) = store.stats() else { return };
            bar.set_position(stats.bytes_merged);
            bar.set_message(counted(stats.run_count() as u64, "run"));
        },
    );
    bar.finish_and_clear();
    merged
}

fn bytes_of(tree: &TreePeek) -> u64 {
    tree.runs.iter().map(|run| run.bytes).sum()
}

fn as_json(before: &TreePeek, after: &Stats, seconds: f64) -> serde_json::Value {
    json!({
        "runs_before": before.runs.len(),
        "runs_after": after.run_count(),
        "bytes_before": bytes_of(before),
        "bytes_after": after.table_bytes(),
        "merges": after.merges,
        "bytes_merged": after.bytes_merged,
        "seconds": seconds,
    })
}

fn as_text(before: &TreePeek, after: &Stats, seconds: f64) -> String {
    let runs = counted(after.run_count() as u64, "run");
    if after.merges == 0 {
        return format!("nothing to merge: {runs}");
    }
    let (size_before, size) = (bytes(bytes_of(before)), bytes(after.table_bytes()));
    let (merges, written) = (counted(after.merges, "merge"), bytes(after.bytes_merged));
    let runs_before = whole(before.runs.len() as u64);
    format!(
        "from {runs_before} to {runs}, from {size_before} to {size}: {merges}, {written} written, {seconds:.1} s"
    )
}
