//! `import`: writes the entries of a stream, or of another store's folder, into a store.
//! ```text
//! file, standard input    native, JSON lines, TSV           (trommel export)
//! a Trommel store         its entries, as they are now
//! RocksDB, LevelDB        trommel-peers --> native stream
//! ```
//! Invariants: entries are written as they arrive, so a stream may be larger than memory. Entries
//! imported before an error are kept and reported. What was read must match the stream's counts and
//! checksum.

mod source;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use trommel::GuardKind;
use trommel_lab::{BadStream, StreamEnd};

use crate::args::store::StoreArgs;
use crate::args::stream_form::FormName;
use crate::commands::batches::{Batches, Kept, rate};
use crate::commands::import::source::Source;
use crate::output::table::{bytes, counted, whole};
use crate::process::failure::{Failure, Outcome, Status};
use crate::process::message::warning;

pub(crate) const EXAMPLES: &str = "Examples: what `trommel export` has written; another store's folder\n  \
    trommel import --db words words.export\n  \
    trommel import --db words leveldb-folder\n\n\
    A folder is a store of Trommel, RocksDB or LevelDB. For the last two `trommel-peers` must be built\n\
    (crates/peers). Their folders are only read, byte by byte; RocksDB's merge operators are not known.";

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The file, or the other store's folder; `-` is standard input.
    #[arg(value_name = "FILE|DIR")]
    pub(crate) source: PathBuf,
    /// How the file is written. [default: as its first bytes tell]
    #[arg(long, value_enum)]
    pub(crate) format: Option<FormName>,
    /// RocksDB: the column family to read. A Trommel store: the key space.
    #[arg(long, visible_alias = "from-keyspace", value_name = "NAME", default_value = "default")]
    pub(crate) column_family: String,
    /// The program that reads RocksDB and LevelDB. [default: trommel-peers beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
}

pub(crate) fn run(arguments: &ImportArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let name = source::shown(&arguments.source);
    let mut source = Source::open(arguments)?;
    let db = arguments.store.open_or_create(GuardKind::Grf)?;
    let start = Instant::now();
    let kept = Kept::new("imported");
    let last_words = kept.reported_by_signals()?;
    let mut batches = Batches::new(&db, &kept);
    let result = source.for_each(&mut |entry| batches.put(&entry.key, &entry.value, entry.expiry));
    if !matches!(result, Err(Stop::Store(_))) {
        // Entries before the error are valid.
        batches.write()?;
    }
    let (end, is_checked) = result.map_err(|stop| failure_of(&name, stop, &kept))?;
    db.flush()?;
    db.close()?;
    drop(last_words);
    if end.entries == 0 {
        warning(&format!("{name} holds no keys: nothing was imported"));
    }
    let imported = Imported { end, is_checked, took: start.elapsed() };
    writeln!(out, "{}", if json { imported.as_json() } else { imported.as_text() })?;
    Ok(Status::Fine)
}

/// Why an import stopped.
enum Stop {
    /// The stream is malformed.
    Bad(BadStream),
    /// The source cannot be read.
    Source(String),
    /// The store refuses an entry.
    Store(Failure),
}

impl From<BadStream> for Stop {
    fn from(bad: BadStream) -> Self {
        Stop::Bad(bad)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Store(failure)
    }
}

fn failure_of(name: &str, stop: Stop, kept: &Kept) -> Failure {
    match stop {
        Stop::Bad(BadStream { place, problem }) => {
            Failure::Data(format!("{name}, {place}: {problem} ({})", kept.summary()))
        }
        Stop::Source(problem) => Failure::Data(format!("{problem} ({})", kept.summary())),
        Stop::Store(failure) => failure,
    }
}

/// The result of an import.
struct Imported {
    end: StreamEnd,
    is_checked: bool,
    took: Duration,
}

impl Imported {
    fn as_json(&self) -> String {
        let StreamEnd { entries, bytes, checksum } = self.end;
        let report = json!({
            "imported": entries, "bytes": bytes, "checksum": format!("{checksum:016x}"),
            "checked": self.is_checked, "seconds": self.took.as_secs_f64(),
            "keys_per_second": rate(entries, self.took),
        });
        report.to_string()
    }

    fn as_text(&self) -> String {
        let StreamEnd { entries, bytes: size, checksum } = self.end;
        let rate = rate(entries, self.took);
        let rate = rate.map(|rate| format!(", {} per second", whole(rate as u64)));
        let checked = match self.is_checked {
            true => "as it was written",
            false => "a text without counts, so nothing was compared",
        };
        format!(
            "{} imported, {}, in {:.1} s{}; checksum {checksum:016x}: {checked}",
            counted(entries, "key"),
            bytes(size),
            self.took.as_secs_f64(),
            rate.unwrap_or_default(),
        )
    }
}
