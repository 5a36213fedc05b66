//! `delete-range`: deletes all keys of a range at once.

use std::io::Write;

use clap::Args;
use serde_json::json;
use trommel::GuardKind;

use crate::args::store::StoreArgs;
use crate::output::json_bytes::json_bytes;
use crate::output::keytext::read;
use crate::process::failure::{Outcome, Status};

pub(crate) const EXAMPLES: &str = "Examples: all keys that begin with 2025-; all from one number on and before another\n  \
    trommel delete-range --db DIR 2025- 2025.\n  \
    trommel delete-range --db DIR --hex 0000000000000100 0000000000000200";

#[derive(Debug, Args)]
pub(crate) struct DeleteRangeArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The first key, included.
    from: String,
    /// The key behind the last one, excluded.
    to: String,
    /// Keys are read and printed in hexadecimal.
    #[arg(long)]
    hex: bool,
}

pub(crate) fn run(arguments: &DeleteRangeArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let hex = arguments.hex;
    let (from, to) = (read(&arguments.from, hex)?, read(&arguments.to, hex)?);
    let db = arguments.store.open(GuardKind::Open)?;
    db.delete_range(&from, &to)?;
    db.close()?;
    if json {
        let [from, to] = [&from, &to].map(|key| json_bytes(key, hex));
        writeln!(out, "{}", json!({ "from": from, "to": to }))?;
    }
    Ok(Status::Fine)
}
