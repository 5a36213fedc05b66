//! `get`, `put`, `delete`: one key.

use std::io::Write;

use clap::Args;
use serde_json::json;
use trommel::GuardKind;

use crate::args::StoreArgs;
use crate::failure::{Outcome, Status};
use crate::keytext::{read, show};

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The key.
    key: String,
    /// Keys and values are read and printed in hexadecimal.
    #[arg(long)]
    hex: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    key: KeyArgs,
    /// The value.
    value: String,
}

pub(crate) fn get(arguments: &KeyArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let key = read(&arguments.key, arguments.hex)?;
    let db = arguments.store.open(GuardKind::Open)?;
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

pub(crate) fn put(arguments: &PutArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let hex = arguments.key.hex;
    let (key, value) = (read(&arguments.key.key, hex)?, read(&arguments.value, hex)?);
    let db = arguments.key.store.open_or_create(GuardKind::Open)?;
    db.put(&key, &value)?;
    db.close()?;
    if json {
        writeln!(out, "{}", json!({ "key": show(&key, hex), "value_bytes": value.len() }))?;
    }
    Ok(Status::Fine)
}

pub(crate) fn delete(arguments: &KeyArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let key = read(&arguments.key, arguments.hex)?;
    let db = arguments.store.open(GuardKind::Open)?;
    db.delete(&key)?;
    db.close()?;
    if json {
        writeln!(out, "{}", json!({ "key": show(&key, arguments.hex) }))?;
    }
    Ok(Status::Fine)
}
