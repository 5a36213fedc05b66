//! `export`: writes all entries of a store as a stream that ends with counts and a checksum.
//! ```text
//! store --> words.part --> words       a file that exists is replaced when the new one is whole
//!       --> standard output            then the result is told on standard error
//! ```
//! Invariant: an interrupted export leaves the file as it was.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use trommel::{GuardKind, Keyspace};
use trommel_lab::{StreamEnd, StreamForm, StreamWriter};

use crate::args::store::StoreArgs;
use crate::args::stream_form::FormName;
use crate::output::progress::count_bar;
use crate::output::table::{bytes, counted};
use crate::process::failure::{Failure, Outcome, Status};
use crate::process::message;
use crate::process::signals::LastWords;

pub(crate) const EXAMPLES: &str = "Examples: all of a store, for another one; its values, for a program; both at once\n  \
    trommel export --db words words.export\n  \
    trommel export --db words --format jsonl - | jq -r 'select(.key) | .value'\n  \
    trommel export --db words - | trommel import --db copy -\n\n\
    Expiries are kept; deletions and older values are left out.";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The file to write; `-` is standard output.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How the file is written.
    #[arg(long, value_enum, default_value_t = FormName::Native)]
    format: FormName,
}

/// The entries between two updates of the bar.
const STEP: u64 = 1024;

pub(crate) fn run(arguments: &ExportArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let (file, form) = (&arguments.file, arguments.format.into());
    let db = arguments.store.open_to_read(GuardKind::Open)?;
    let is_piped = file == Path::new("-");
    let end = match is_piped {
        true => written(&db, form, &mut *out, Failure::from)?.0,
        false => write_file(&db, form, file)?,
    };
    let StreamEnd { entries, bytes: size, checksum } = end;
    let object = json!({
        "exported": entries, "bytes": size, "checksum": format!("{checksum:016x}"),
    });
    let (keys, size) = (counted(entries, "key"), bytes(size));
    let text = format!("{keys} exported, {size}, checksum {checksum:016x}");
    match (is_piped, json) {
        (true, _) => message::result(&text, &object),
        (false, true) => writeln!(out, "{object}")?,
        (false, false) => writeln!(out, "{text}")?,
    }
    Ok(Status::Fine)
}

/// Writes all entries.
fn written<W: Write>(
    db: &Keyspace,
    form: StreamForm,
    out: W,
    failed: impl Fn(io::Error) -> Failure,
) -> Result<(StreamEnd, W), Failure> {
    let bar = count_bar("exporting", db.estimate_count(..)?);
    let mut writer = StreamWriter::new(out, form).map_err(&failed)?;
    let (mut scan, mut count) = (db.iter(), 0u64);
    while let Some(entry) = scan.next_lent() {
        let (key, value) = entry?;
        writer.put(key, &value, value.expiry()).map_err(&failed)?;
        count += 1;
        if count.is_multiple_of(STEP) {
            bar.set_position(count);
        }
    }
    bar.finish_and_clear();
    writer.finish().map_err(&failed)
}

/// Writes a temporary file, and renames it once it is complete and durable.
fn write_file(db: &Keyspace, form: StreamForm, file: &Path) -> Result<StreamEnd, Failure> {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let failed = |error: io::Error| Failure::Data(format!("{}: {error}", part.display()));
    let words = format!("nothing is exported; {} can be removed", part.display());
    let _last_words = LastWords::new(move || words.clone())?;
    let new = File::create(&part).map_err(failed)?;
    let exported =
        written(db, form, BufWriter::with_capacity(1 << 18, new), failed).and_then(|(end, out)| {
            let new = out.into_inner().map_err(|error| failed(error.into_error()))?;
            new.sync_all().and_then(|()| std::fs::rename(&part, file)).map_err(failed)?;
            Ok(end)
        });
    if exported.is_err() {
        // A left-over temporary file does no harm, and the error says more.
        let _ = std::fs::remove_file(&part);
    }
    exported
}
