//! `verify`: reads everything and checks it.

use std::io::Write;

use serde_json::json;
use trommel::{Error, GuardKind, VerifyReport};

use crate::args::StoreArgs;
use crate::failure::{Failure, Outcome, Status};
use crate::table::{bytes, counted, whole};

pub(crate) fn run(arguments: &StoreArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let report = match check(arguments) {
        Ok(report) => report,
        Err(error) => {
            if json {
                writeln!(out, "{}", json!({ "ok": false, "damage": [error.to_string()] }))?;
            }
            return Err(error.into());
        }
    };
    let (tables, size, logs) = (report.tables, report.bytes, report.logs);
    let sound = report.damage.is_empty();
    if json {
        let damage = &report.damage;
        let report = json!({
            "ok": sound, "tables": tables, "entries": report.entries, "bytes": size, "logs": logs,
            "damage": damage,
        });
        writeln!(out, "{report}")?;
    } else if sound {
        writeln!(
            out,
            "fine: {}, {}, {}; {}",
            counted(tables, "table"),
            format_args!("{} entries", whole(report.entries)),
            bytes(size),
            counted(logs, "log")
        )?;
    }
    if sound { Ok(Status::Fine) } else { Err(Failure::Damage(report.damage.join("\ntrommel: "))) }
}

/// Checks with a guard, so that its answers are checked as well. Damage can keep the guard from being
/// built: then all tables are checked without it, so that the report does not end at the first one.
fn check(arguments: &StoreArgs) -> trommel::Result<VerifyReport> {
    let checked = arguments.open_to_read(GuardKind::Grf).and_then(|db| db.verify());
    match checked {
        Err(damage @ Error::Corrupt { .. }) if arguments.guard.is_none() => {
            let mut report = arguments.open_to_read(GuardKind::Open)?.verify()?;
            let first = damage.to_string();
            if !report.damage.contains(&first) {
                report.damage.insert(0, first);
            }
            Ok(report)
        }
        checked => checked,
    }
}
