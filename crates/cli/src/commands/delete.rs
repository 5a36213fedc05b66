//! `delete`: removes a key.

use std::io::Write;

use serde_json::json;
use trommel::GuardKind;

use crate::args::key::KeyArgs;
use crate::output::json_bytes::json_bytes;
use crate::output::keytext::read;
use crate::process::failure::{Outcome, Status};

pub(crate) fn run(arguments: &KeyArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let key = read(&arguments.key, arguments.hex)?;
    let db = arguments.store.open(GuardKind::Open)?;
    db.delete(&key)?;
    db.close()?;
    if json {
        writeln!(out, "{}", json!({ "key": json_bytes(&key, arguments.hex) }))?;
    }
    Ok(Status::Fine)
}
