//! `repair`: repairs a store, and reports what was lost and what remains in doubt.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use trommel::Environment;
use trommel::tools::{Doubt, Loss, RepairReport, repair_with_progress};

use crate::commands::verify::logs;
use crate::output::progress::CallBar;
use crate::output::table::{counted, whole};
use crate::process::failure::{Outcome, Status, told};
use crate::process::signals::LastWords;

pub(crate) const EXAMPLES: &str = "Examples: mend what `trommel verify --db words` names; what is lost, for a program\n  \
    trommel repair --db words\n  \
    trommel repair --db words --json\n\n\
    Exit status 0: all was saved, or there was nothing to repair; 1: something is lost, or nobody can\n\
    know whether it is (the manifest was damaged or missing). Both are told.";

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// The store's folder. What is damaged moves to the folder `lost` in it; nothing is deleted.
    #[arg(long, value_name = "DIR")]
    pub(crate) db: PathBuf,
}

pub(crate) fn run(arguments: &RepairArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let words = "what it has moved is in `lost`, nothing is deleted; repair it again";
    let last_words = LastWords::new(|| words.into())?;
    let mut bar = CallBar::new("repairing");
    let report = repair_with_progress(&arguments.db, &Environment::default(), &mut bar.hear())?;
    drop((bar, last_words));
    let written = match json {
        true => writeln!(out, "{}", as_json(&report)),
        false => out.write_all(as_text(&report).as_bytes()),
    };
    told(Ok(if saved_all(&report) { Status::Fine } else { Status::No }), written)
}

/// Whether everything was saved beyond doubt.
fn saved_all(report: &RepairReport) -> bool {
    report.lost.is_empty() && report.doubts.is_empty()
}

fn as_json(report: &RepairReport) -> serde_json::Value {
    let loss = |loss: &Loss| {
        json!({
            "file": loss.file, "offset": loss.offset, "what": loss.what, "entries": loss.entries,
        })
    };
    let doubt =
        |doubt: &Doubt| json!({ "file": doubt.file, "offset": doubt.offset, "what": doubt.what });
    json!({
        "ok": saved_all(report),
        "changed": report.changed,
        "manifest_rebuilt": report.manifest_rebuilt,
        "tables": report.tables,
        "entries": report.entries,
        "logs": report.logs.files,
        "log_bytes": report.logs.bytes,
        "log_groups": report.logs.groups,
        "log_entries": report.logs.entries,
        "rewritten": report.rewritten,
        "saved_from_logs": report.saved_from_logs,
        "lost": report.lost.iter().map(loss).collect::<Vec<_>>(),
        "doubts": report.doubts.iter().map(doubt).collect::<Vec<_>>(),
        "notes": report.notes,
        "set_aside": report.set_aside,
    })
}

fn as_text(report: &RepairReport) -> String {
    let tables = counted(report.tables, "table");
    let holds = format!("{tables}, {} entries; {}", whole(report.entries), logs(&report.logs));
    if !report.changed {
        return format!("nothing to repair: {holds}\n");
    }
    let mut lines = vec![format!("repaired: {holds}")];
    if report.manifest_rebuilt {
        lines.push("the manifest was made anew".into());
    }
    if report.rewritten > 0 {
        let rewritten = counted(report.rewritten, "table");
        lines.push(format!("written anew without what is damaged: {rewritten}"));
    }
    if report.saved_from_logs > 0 {
        lines.push(format!("saved from logs: {}", counted(report.saved_from_logs, "write")));
    }
    lines.extend(report.lost.iter().map(|loss| {
        let entries = loss.entries.map_or("nobody knows how many entries".into(), |entries| {
            format!("at most {} entries", whole(entries))
        });
        format!("lost: {loss}; {entries}")
    }));
    lines.extend(report.doubts.iter().map(|doubt| format!("in doubt: {doubt}")));
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    lines.extend(report.set_aside.iter().map(|name| format!("set aside: lost/{name}")));
    lines.iter().map(|line| format!("{line}\n")).collect()
}
