//! `verify`: reads everything and checks it.

use std::io::Write;

use serde_json::json;
use trommel::GuardKind;

use crate::args::StoreArgs;
use crate::failure::{Failure, Outcome, Status};
use crate::table::{bytes, whole};

pub(crate) fn run(arguments: &StoreArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let checked = arguments.open(GuardKind::Grf).and_then(|db| db.verify());
    let report = match checked {
        Ok(report) => report,
        Err(error) => {
            if json {
                writeln!(out, "{}", json!({ "ok": false, "damage": [error.to_string()] }))?;
            }
            return Err(error.into());
        }
    };
    let (tables, entries, size) = (report.tables, report.entries, report.bytes);
    let sound = report.damage.is_empty();
    if json {
        let damage = &report.damage;
        let report = json!({
            "ok": sound, "tables": tables, "entries": entries, "bytes": size, "damage": damage,
        });
        writeln!(out, "{report}")?;
    } else if sound {
        writeln!(
            out,
            "fine: {} tables, {} entries, {}",
            whole(tables),
            whole(entries),
            bytes(size)
        )?;
    }
    if sound { Ok(Status::Fine) } else { Err(Failure::Data(report.damage.join("\ntrommel: "))) }
}
