//! `get`: prints the value of a key.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use trommel::GuardKind;

use crate::args::key::KeyArgs;
use crate::output::json_bytes::json_bytes;
use crate::output::keytext::{read, show};
use crate::process::failure::{Failure, Outcome, Status};
use crate::process::message::warning;

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    /// The file to write the value to: it is never in memory as a whole.
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &GetArgs, json: bool, out: &mut dyn Write) -> Outcome {
    if let Some(path) = &arguments.out {
        return get_to_file(&arguments.key, path, json, out);
    }
    let arguments = &arguments.key;
    let key = read(&arguments.key, arguments.hex)?;
    let db = arguments.store.read(GuardKind::Open)?;
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

/// Writes the value of a key to a file.
fn get_to_file(arguments: &KeyArgs, path: &Path, json: bool, out: &mut dyn Write) -> Outcome {
    let key = read(&arguments.key, arguments.hex)?;
    let db = arguments.store.read(GuardKind::Open)?;
    let mut reader = db.get_reader(&key)?;
    let mut bytes = None;
    if let Some(reader) = &mut reader {
        let of_file = |error: std::io::Error| Failure::Data(format!("{}: {error}", path.display()));
        let mut file = File::create(path).map_err(of_file)?;
        bytes = Some(std::io::copy(reader, &mut file).map_err(of_file)?);
    }
    if json {
        let key = json_bytes(&key, arguments.hex);
        writeln!(out, "{}", json!({ "key": key, "found": bytes.is_some(), "value_bytes": bytes }))?;
    } else if bytes.is_none() {
        warning("not found");
    }
    Ok(if bytes.is_some() { Status::Fine } else { Status::No })
}
