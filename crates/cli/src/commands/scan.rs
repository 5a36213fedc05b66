//! `scan`: the keys and values of a range, in order.

use std::io::Write;

use clap::Args;
use serde::Serialize;
use trommel::{GuardKind, Value};

use crate::args::range::RangeArgs;
use crate::output::keytext::show;
use crate::process::failure::{Failure, Outcome, Status};

#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// At most so many entries.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// From the last key to the first.
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Keys alone, without values.
    #[arg(long)]
    pub(crate) keys_only: bool,
}

/// One entry of a scan, as JSON.
#[derive(Serialize)]
struct ShownEntry {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

pub(crate) fn run(arguments: &ScanArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let bounds = arguments.range.bounds()?;
    let db = arguments.range.store.open_to_read(GuardKind::Open)?;
    let scan = db.range(bounds);
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let mut print = ScanPrinter { arguments, json, printed: 0, out };
    print.begin()?;
    if arguments.reverse {
        scan.rev().take(limit).try_for_each(|entry| print.entry(entry))?;
    } else {
        scan.into_iter().take(limit).try_for_each(|entry| print.entry(entry))?;
    }
    print.end()?;
    Ok(Status::Fine)
}

/// Prints entries as they come: a scan can be larger than memory.
struct ScanPrinter<'a> {
    arguments: &'a ScanArgs,
    json: bool,
    printed: u64,
    out: &'a mut dyn Write,
}

impl ScanPrinter<'_> {
    fn begin(&mut self) -> Result<(), Failure> {
        if self.json {
            write!(self.out, "{{\"entries\":[")?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: trommel::Result<(Vec<u8>, Value)>) -> Result<(), Failure> {
        let (key, value) = entry?;
        let hex = self.arguments.range.hex;
        let value = (!self.arguments.keys_only).then(|| show(&value, hex));
        let shown = ShownEntry { key: show(&key, hex), value };
        if self.json {
            let comma = if self.printed > 0 { "," } else { "" };
            write!(self.out, "{comma}{}", serde_json::to_string(&shown)?)?;
        } else {
            match shown.value {
                Some(value) => writeln!(self.out, "{}\t{value}", shown.key)?,
                None => writeln!(self.out, "{}", shown.key)?,
            }
        }
        self.printed += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        if self.json {
            writeln!(self.out, "],\"count\":{}}}", self.printed)?;
        }
        Ok(())
    }
}
