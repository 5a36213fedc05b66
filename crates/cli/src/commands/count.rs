//! `count`: estimates how many keys a range has.

use std::io::Write;

use serde_json::json;
use trommel::GuardKind;

use crate::args::range::RangeArgs;
use crate::process::failure::{Outcome, Status};

pub(crate) fn run(arguments: &RangeArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let bounds = arguments.bounds()?;
    let db = arguments.store.open_to_read(GuardKind::Open)?;
    let count = db.approximate_count(bounds)?;
    if json {
        let bounds = json!({ "least": count.least, "most": count.most });
        writeln!(out, "{}", json!({ "approximate_count": count.estimate, "entries": bounds }))?;
    } else {
        writeln!(out, "{}", count.estimate)?;
    }
    Ok(Status::Fine)
}
