//! `scan`: prints the keys and values of a range, in order.

use std::io::{IsTerminal, Write};

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use trommel::{GuardKind, Value};

use crate::args::range::RangeArgs;
use crate::output::json_bytes::json_bytes;
use crate::output::keytext::show;
use crate::output::progress::scan_bar;
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

/// The entries between two updates of the bar.
const STEP: u64 = 1024;

pub(crate) fn run(arguments: &ScanArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let bounds = arguments.range.bounds()?;
    let db = arguments.range.store.read(GuardKind::Open)?;
    let scan = db.range(bounds)?;
    let scan = if arguments.keys_only { scan.keys_only() } else { scan };
    let limit = arguments.limit.unwrap_or(usize::MAX);
    // Entries on a terminal show the progress themselves.
    let is_seen = std::io::stdout().is_terminal();
    let bar = if is_seen { ProgressBar::hidden() } else { scan_bar() };
    let mut print = ScanPrinter { arguments, json, printed: 0, out, bar };
    print.begin()?;
    if arguments.reverse {
        scan.rev().take(limit).try_for_each(|entry| print.entry(entry))?;
    } else {
        scan.into_iter().take(limit).try_for_each(|entry| print.entry(entry))?;
    }
    print.end()?;
    Ok(Status::Fine)
}

/// Prints entries as they come, since a scan can be larger than memory.
struct ScanPrinter<'a> {
    arguments: &'a ScanArgs,
    json: bool,
    printed: u64,
    out: &'a mut dyn Write,
    bar: ProgressBar,
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
        let value = (!self.arguments.keys_only).then_some(value);
        if self.json {
            let comma = if self.printed > 0 { "," } else { "" };
            let mut shown = json!({ "key": json_bytes(&key, hex) });
            if let Some(value) = value {
                shown["value"] = json_bytes(&value, hex);
            }
            write!(self.out, "{comma}{shown}")?;
        } else {
            match value {
                Some(value) => writeln!(self.out, "{}\t{}", show(&key, hex), show(&value, hex))?,
                None => writeln!(self.out, "{}", show(&key, hex))?,
            }
        }
        self.printed += 1;
        if self.printed.is_multiple_of(STEP) {
            self.bar.set_position(self.printed);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        if self.json {
            writeln!(self.out, "],\"count\":{}}}", self.printed)?;
        }
        Ok(())
    }
}
