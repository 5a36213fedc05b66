//! `changes`: prints what was written after a number, in order, in all key spaces.

use std::io::Write;

use clap::Args;
use serde_json::{Value, json};
use trommel::{Change, ChangeBatch, ChangeKind, GuardKind};

use crate::args::store::StoreArgs;
use crate::output::json_bytes::json_bytes;
use crate::output::keytext::show;
use crate::process::failure::{Outcome, Status};

pub(crate) const EXAMPLES: &str = "Example: keep logs from now on, write, and see what came after number 0\n  \
    trommel put --db words --kept-log-bytes 67108864 apple red\n  \
    trommel changes --db words --since 0";

#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The number of the last write that is known. `stats` tells the newest one, and this command
    /// where it ends.
    #[arg(long, value_name = "NUMBER")]
    since: u64,
    /// End with the batch that has the Nth write, or a later one.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print keys and values in hexadecimal.
    #[arg(long)]
    hex: bool,
}

pub(crate) fn run(arguments: &ChangesArgs, json: bool, out: &mut dyn Write) -> Outcome {
    arguments.store.only_default("changes of all key spaces are told")?;
    let db = arguments.store.open_to_read(GuardKind::Open)?;
    let mut feed = db.db.changes_since(arguments.since)?;
    let limit = arguments.limit.unwrap_or(u64::MAX);
    let (mut count, mut is_first) = (0, true);
    if json {
        write!(out, "{{\"batches\":[")?;
    }
    while count < limit
        && let Some(batch) = feed.next_batch()?
    {
        count += batch.changes.len() as u64;
        if json {
            let comma = if std::mem::take(&mut is_first) { "" } else { "," };
            write!(out, "{comma}{}", as_json(&batch, arguments.hex))?;
        } else {
            batch.changes.iter().try_for_each(|it| writeln!(out, "{}", text(it, arguments.hex)))?;
        }
    }
    if json {
        writeln!(out, "],\"count\":{count},\"sequence\":{}}}", feed.sequence())?;
    }
    Ok(Status::Fine)
}

/// Returns the name of a change, and its value or the end of its range.
fn parts(kind: &ChangeKind) -> (&'static str, Option<&[u8]>) {
    match kind {
        ChangeKind::Put(value) | ChangeKind::PutWithExpiry { value, .. } => ("put", Some(value)),
        ChangeKind::Merge(operand) => ("merge", Some(operand)),
        ChangeKind::DeleteRange { to } => ("delete-range", Some(to)),
        _ => ("delete", None),
    }
}

fn keyspace(change: &Change) -> String {
    let number = || format!("number {}, dropped", change.keyspace);
    change.keyspace_name.as_deref().map_or_else(number, String::from)
}

fn text(change: &Change, hex: bool) -> String {
    let (what, value) = parts(&change.kind);
    let key = show(&change.key, hex);
    let line = format!("{}\t{}\t{what}\t{key}", change.sequence, keyspace(change));
    value.map_or(line.clone(), |value| format!("{line}\t{}", show(value, hex)))
}

fn as_json(batch: &ChangeBatch, hex: bool) -> Value {
    let change = |change: &Change| {
        let (what, value) = parts(&change.kind);
        let mut shown = json!({
            "sequence": change.sequence,
            "keyspace": change.keyspace_name.as_deref(),
            "keyspace_number": change.keyspace,
            "what": what,
            "key": json_bytes(&change.key, hex),
        });
        if let Some(value) = value {
            let name = if what == "delete-range" { "to" } else { "value" };
            shown[name] = json_bytes(value, hex);
        }
        if let ChangeKind::PutWithExpiry { expiry, .. } = &change.kind {
            shown["expires_at_milliseconds"] = expiry.milliseconds().into();
        }
        shown
    };
    batch.changes.iter().map(change).collect()
}
