//! `get`: the value of a key.

use std::io::Write;

use serde_json::json;
use trommel::GuardKind;

use crate::args::key::KeyArgs;
use crate::output::json_bytes::json_bytes;
use crate::output::keytext::{read, show};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;

pub(crate) fn run(arguments: &KeyArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let key = read(&arguments.key, arguments.hex)?;
    let db = arguments.store.open_to_read(GuardKind::Open)?;
    let value = db.get(&key)?;
    if json {
        let hex = arguments.hex;
        let (found, shown) = (value.is_some(), value.as_ref().map(|value| json_bytes(value, hex)));
        writeln!(
            out,
            "{}",
            json!({ "key": json_bytes(&key, hex), "found": found, "value": shown })
        )?;
    } else {
        match &value {
            Some(value) if arguments.hex => writeln!(out, "{}", show(value, true))?,
            Some(value) => {
                out.write_all(value)?;
                writeln!(out)?;
            }
            None => warning("not found"),
        }
    }
    Ok(if value.is_some() { Status::Fine } else { Status::No })
}
