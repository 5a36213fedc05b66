//! `dump`: prints the contents of a store's files, as text or as one JSON object.
//! ```text
//! s/000003.table: table, 1.2 KiB
//!          0  data block 0
//!          0  7 put key = value
//!        812  DAMAGED: data block 1: ...
//! ```
//! Invariant: output is written while the file is read. Memory holds at most one block, however
//! large the file is.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use serde_json::{Value, json};
use trommel::storage::Disk;
use trommel::tools::{DumpItem, dump};

use crate::output::json_bytes::{beginning, json_bytes};
use crate::output::keytext::show;
use crate::output::shell::shell_word;
use crate::output::table::{bytes, whole};
use crate::process::failure::{Failure, Outcome, Status};

pub(crate) const EXAMPLES: &str = "Examples: all files of a store; a log, with whole values; the tables' entries of one key\n  \
    trommel dump --db words\n  \
    trommel dump words/000007.wal --value-bytes 1000000\n  \
    trommel dump --db words | grep ' apple = '\n\n\
    A file that no manifest names is no part of the store: that is told, and what it lacks is no damage.";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("dumped").required(true).args(["file", "db"])))]
pub(crate) struct DumpArgs {
    /// One file of a store: a table, a log, a manifest, or the image of a filter.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The store's folder: all its files.
    #[arg(long, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
    /// Keys and values are printed in hexadecimal.
    #[arg(long)]
    hex: bool,
    /// Show at most so many bytes of a value.
    #[arg(long, value_name = "N", default_value_t = 64)]
    value_bytes: usize,
}

impl DumpArgs {
    /// Returns the file, or the store's folder.
    fn path(&self) -> Result<&Path, Failure> {
        let of_file = |file: &Path| match file.is_dir() {
            false => Ok(()),
            true => {
                let folder = shell_word(file);
                let problem = format!(
                    "{} is a folder, and a store is named with --db: `trommel dump --db {folder}`",
                    file.display()
                );
                Err(Failure::Usage(problem))
            }
        };
        match (&self.file, &self.db) {
            (Some(file), _) => of_file(file).map(|()| &**file),
            (None, Some(folder)) => Ok(folder),
            (None, None) => unreachable!("the parser asks for one of both"),
        }
    }
}

pub(crate) fn run(arguments: &DumpArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let path = arguments.path()?;
    let mut printer = DumpPrinter {
        arguments,
        json,
        out,
        file: PathBuf::new(),
        files: 0,
        items: 0,
        damage: Vec::new(),
    };
    let mut written = Ok(());
    let dumped = dump(&Disk, path, &mut |item| {
        written = printer.item(&item);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    written?;
    let error = dumped.err();
    printer.end(error.as_ref())?;
    let is_damaged = !printer.damage.is_empty();
    let mut messages = printer.damage;
    messages.extend(error.as_ref().map(trommel::Error::to_string));
    let message = messages.join("\ntrommel: ");
    match error {
        None if !is_damaged => Ok(Status::Fine),
        Some(error) if !is_damaged => Err(Failure::of_store(&error, message)),
        _ => Err(Failure::Damage(message)),
    }
}

struct DumpPrinter<'a> {
    arguments: &'a DumpArgs,
    json: bool,
    out: &'a mut dyn Write,
    /// The file that is being printed.
    file: PathBuf,
    files: u64,
    /// The items of that file so far.
    items: u64,
    damage: Vec<String>,
}

impl DumpPrinter<'_> {
    fn item(&mut self, item: &DumpItem<'_>) -> io::Result<()> {
        if let DumpItem::File { path, .. } = item {
            self.file = path.to_path_buf();
        }
        if let DumpItem::Damage { offset, what } = item {
            let file = self.file.display();
            self.damage.push(format!("{file} is damaged at byte {offset}: {what}"));
        }
        if self.json { self.json_item(item) } else { self.text_item(item) }
    }

    fn text_item(&mut self, item: &DumpItem<'_>) -> io::Result<()> {
        let hex = self.arguments.hex;
        match item {
            DumpItem::File { path, kind, bytes: size, .. } => {
                writeln!(self.out, "{}: {}, {}", path.display(), kind.name(), bytes(*size))
            }
            DumpItem::Note { offset, text } => writeln!(self.out, "{offset:>10}  {text}"),
            DumpItem::Entry { offset, sequence, kind, expiry, key, value } => {
                let shown = &value[..value.len().min(self.arguments.value_bytes)];
                let mut value_text = show(shown, hex);
                if shown.len() < value.len() {
                    let size = whole(value.len() as u64);
                    value_text.push_str(&format!("... ({size} bytes)"));
                }
                let equals = if value.is_empty() { "" } else { " = " };
                let until = expiry.map(|expiry| format!(" until {} ms", expiry.milliseconds()));
                let until = until.unwrap_or_default();
                let key = show(key, hex);
                writeln!(
                    self.out,
                    "{offset:>10}  {sequence} {kind}{until} {key}{equals}{value_text}"
                )
            }
            DumpItem::Damage { offset, what } => {
                writeln!(self.out, "{offset:>10}  DAMAGED: {what}")
            }
            _ => Ok(()),
        }
    }

    fn json_item(&mut self, item: &DumpItem<'_>) -> io::Result<()> {
        if let DumpItem::File { path, kind, bytes, is_needed } = item {
            return self.json_file(path, kind.name(), *bytes, *is_needed);
        }
        let comma = if self.items == 0 { "" } else { "," };
        self.items += 1;
        write!(self.out, "{comma}{}", self.item_value(item))
    }

    fn json_file(
        &mut self,
        path: &Path,
        kind: &str,
        bytes: u64,
        is_needed: Option<bool>,
    ) -> io::Result<()> {
        let before = if self.files == 0 { "{\"files\":[" } else { "]}," };
        let file = Value::from(path.display().to_string());
        let (kind, is_needed) = (Value::from(kind), json!(is_needed));
        (self.files, self.items) = (self.files + 1, 0);
        write!(
            self.out,
            "{before}{{\"file\":{file},\"kind\":{kind},\"bytes\":{bytes},\"is_needed\":{is_needed},\"items\":["
        )
    }

    fn item_value(&self, item: &DumpItem<'_>) -> Value {
        let hex = self.arguments.hex;
        match item {
            DumpItem::Note { offset, text } => json!({ "offset": offset, "note": text }),
            DumpItem::Entry { offset, sequence, kind, expiry, key, value } => {
                let shown = beginning(value, self.arguments.value_bytes);
                json!({
                    "offset": offset, "sequence": sequence, "kind": kind,
                    "expires_at_ms": expiry.map(|expiry| expiry.milliseconds()),
                    "key": json_bytes(key, hex), "value": json_bytes(shown, hex),
                    "value_bytes": value.len(),
                })
            }
            DumpItem::Damage { offset, what } => json!({ "offset": offset, "damage": what }),
            _ => json!({}),
        }
    }

    /// Closes the JSON object if it was opened.
    fn end(&mut self, error: Option<&trommel::Error>) -> io::Result<()> {
        if !self.json || self.files == 0 {
            return Ok(());
        }
        let damage = Value::from(self.damage.clone());
        let error = error.map_or(Value::Null, |error| error.to_string().into());
        let ok = self.damage.is_empty() && error.is_null();
        writeln!(self.out, "]}}],\"ok\":{ok},\"damage\":{damage},\"error\":{error}}}")
    }
}
