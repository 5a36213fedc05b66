//! `verify`: reads everything and checks it.

use std::io::Write;

use serde_json::json;
use trommel::GuardKind;

use crate::args::StoreArgs;
use crate::failure::{Failure, Outcome, Status};
use crate::table::whole;

pub(crate) fn run(arguments: &StoreArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let checked = arguments.open(GuardKind::Grf).and_then(|db| db.verify());
    match checked {
        Ok(report) if json => {
            let (tables, blocks, entries) = (report.tables, report.blocks, report.entries);
            let report =
                json!({ "ok": true, "tables": tables, "blocks": blocks, "entries": entries });
            writeln!(out, "{report}")?;
        }
        Ok(report) => {
            let counts = [report.tables, report.blocks, report.entries].map(whole);
            writeln!(
                out,
                "fine: {} tables, {} blocks, {} entries",
                counts[0], counts[1], counts[2]
            )?;
        }
        Err(error) => {
            if json {
                writeln!(out, "{}", json!({ "ok": false, "error": error.to_string() }))?;
            }
            return Err(Failure::from(error));
        }
    }
    Ok(Status::Fine)
}
