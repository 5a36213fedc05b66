//! `scan` and `count`: a range of keys.

use std::io::Write;
use std::ops::Bound;

use serde::Serialize;
use serde_json::json;
use trommel::{GuardKind, Value};

use crate::args::{RangeArgs, ScanArgs};
use crate::failure::{Failure, Outcome, Status};
use crate::keytext::{read, show};

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn bounds(arguments: &RangeArgs) -> Result<Bounds, Failure> {
    let bound = |key: &Option<String>| match key {
        None => Ok(Bound::Unbounded),
        Some(key) => read(key, arguments.hex).map(Bound::Included),
    };
    let (from, to) = (bound(&arguments.from)?, bound(&arguments.to)?);
    match (&from, &to) {
        (Bound::Included(from), Bound::Included(to)) if from > to => {
            Err(Failure::Usage("--from is after --to".into()))
        }
        _ => Ok((from, to)),
    }
}

/// One entry of a scan, as JSON.
#[derive(Serialize)]
struct Shown {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

pub(crate) fn scan(arguments: &ScanArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let bounds = bounds(&arguments.range)?;
    let db = arguments.range.store.open_to_read(GuardKind::Open)?;
    let scan = db.range(bounds);
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let mut print = Printer { arguments, json, printed: 0, out };
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
struct Printer<'a> {
    arguments: &'a ScanArgs,
    json: bool,
    printed: u64,
    out: &'a mut dyn Write,
}

impl Printer<'_> {
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
        let shown = Shown { key: show(&key, hex), value };
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

pub(crate) fn count(arguments: &RangeArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let bounds = bounds(arguments)?;
    let db = arguments.store.open_to_read(GuardKind::Open)?;
    let count = db.estimate_count(bounds)?;
    if json {
        writeln!(out, "{}", json!({ "approximate_count": count }))?;
    } else {
        writeln!(out, "{count}")?;
    }
    Ok(Status::Fine)
}
