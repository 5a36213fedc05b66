//! `get`: the value of a key.

use std::io::Write;

use serde_json::json;
use trommel::GuardKind;

use crate::args::key::KeyArgs;
use crate::output::keytext::{read, show};
use crate::process::failure::{Outcome, Status};

pub(crate) fn run(arguments: &KeyArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let key = read(&arguments.key, arguments.hex)?;
    let db = arguments.store.open_to_read(GuardKind::Open)?;
    let value = db.get(&key)?;
    if json {
        let shown = value.as_ref().map(|value| show(value, arguments.hex));
        let report =
            json!({ "key": show(&key, arguments.hex), "found": value.is_some(), "value": shown });
        writeln!(out, "{report}")?;
    } else {
        match &value {
            Some(value) if arguments.hex => writeln!(out, "{}", show(value, true))?,
            Some(value) => {
                out.write_all(value)?;
                writeln!(out)?;
            }
            None => eprintln!("trommel: not found"),
        }
    }
    Ok(if value.is_some() { Status::Fine } else { Status::No })
}
