//! The sources of imported entries.
//! ```text
//! a folder with MANIFEST    a Trommel store: opened to be read
//! a folder with CURRENT     RocksDB or LevelDB: trommel-peers reads it, and writes a native stream
//! anything else             a stream
//! ```
//! Invariant: the source is not changed, except for the lock of a Trommel store.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use indicatif::ProgressBar;
use trommel::Keyspace;
use trommel_lab::{PeerTask, StreamEnd, StreamEntry, StreamForm, StreamReader, StreamWriter};

use crate::args::store::open_whole;
use crate::commands::import::{ImportArgs, Stop};
use crate::output::progress::{byte_bar, count_bar};
use crate::process::failure::Failure;
use crate::process::peer_program::{PeerProgram, PeerStream};

pub(crate) enum Source {
    Stream(StreamReader<Box<dyn BufRead>>, ProgressBar),
    /// Only the end of the program shows whether it has read everything.
    Peer(StreamReader<BufReader<Box<dyn Read>>>, PeerStream, ProgressBar),
    Store(Keyspace),
}

impl Source {
    pub(crate) fn open(arguments: &ImportArgs) -> Result<Source, Failure> {
        let path = &arguments.source;
        match () {
            () if !path.is_dir() => stream(arguments),
            () if path.join("MANIFEST").is_file() => store(path, &arguments.column_family),
            () if path.join("CURRENT").is_file() => peer(arguments),
            () => Err(Failure::Data(format!(
                "{} is a folder, but no store that can be imported: there are Trommel, RocksDB and LevelDB",
                path.display()
            ))),
        }
    }

    /// Passes every entry to `take`. Returns what was read, and whether counts and a checksum of
    /// the source confirmed it.
    pub(crate) fn for_each(
        &mut self,
        take: &mut dyn FnMut(&StreamEntry) -> Result<bool, Failure>,
    ) -> Result<(StreamEnd, bool), Stop> {
        match self {
            Source::Stream(reader, bar) => read_all(reader, bar, take),
            Source::Peer(reader, program, bar) => {
                let read = read_all(reader, bar, take);
                // If the program failed, that is the error to report, not the truncated stream.
                let ended = match &read {
                    Ok(_) => program.end(),
                    Err(Stop::Store(_)) => Ok(()),
                    Err(_) => program.end_soon(),
                };
                ended.map_err(of_program).and(read)
            }
            Source::Store(db) => scan_all(db, take),
        }
    }
}

fn read_all<R: BufRead>(
    reader: &mut StreamReader<R>,
    bar: &ProgressBar,
    take: &mut dyn FnMut(&StreamEntry) -> Result<bool, Failure>,
) -> Result<(StreamEnd, bool), Stop> {
    while let Some(entry) = reader.next_entry()? {
        if take(&entry)? {
            bar.set_position(reader.bytes());
        }
    }
    bar.finish_and_clear();
    Ok(reader.end())
}

fn scan_all(
    db: &Keyspace,
    take: &mut dyn FnMut(&StreamEntry) -> Result<bool, Failure>,
) -> Result<(StreamEnd, bool), Stop> {
    let bar = count_bar("importing", db.estimate_count(..).map_err(of_source)?);
    // Counts the entries as they are read.
    let mut tally =
        StreamWriter::new(std::io::sink(), StreamForm::Native).map_err(Failure::from)?;
    for entry in db.iter() {
        let (key, value) = entry.map_err(of_source)?;
        let entry = StreamEntry { key, value: value.to_vec(), expiry: value.expiry() };
        tally.put(&entry.key, &entry.value, entry.expiry).map_err(Failure::from)?;
        bar.inc(1);
        take(&entry)?;
    }
    bar.finish_and_clear();
    Ok((tally.finish().map_err(Failure::from)?.0, true))
}

/// Converts an error of the source store, since hints are about the store that is written.
fn of_source(error: trommel::Error) -> Stop {
    Stop::Source(error.to_string())
}

/// Converts a failure of the program, which has printed its reason on standard error.
fn of_program(failure: Failure) -> Stop {
    match failure {
        Failure::Data(message) | Failure::Usage(message) => Stop::Source(message),
        other => Stop::Store(other),
    }
}

/// Returns the name of the source in messages.
pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}

fn stream(arguments: &ImportArgs) -> Result<Source, Failure> {
    let (path, form) = (&arguments.source, arguments.format.map(StreamForm::from));
    let failed = |error: std::io::Error| Failure::Data(format!("{}: {error}", path.display()));
    let (input, size): (Box<dyn BufRead>, Option<u64>) = match path == Path::new("-") {
        true => (Box::new(BufReader::with_capacity(1 << 16, std::io::stdin())), None),
        false => {
            let file = File::open(path).map_err(failed)?;
            let size = file.metadata().map_err(failed)?.len();
            (Box::new(BufReader::with_capacity(1 << 18, file)), Some(size))
        }
    };
    let reader = StreamReader::new(input, form)
        .map_err(|bad| Failure::Data(format!("{}, {}: {}", shown(path), bad.place, bad.problem)))?;
    Ok(Source::Stream(reader, byte_bar(size)))
}

fn store(path: &Path, keyspace: &str) -> Result<Source, Failure> {
    let failed = |error: trommel::Error| Failure::Data(error.to_string());
    let db = open_whole(path).map_err(failed)?;
    let keyspace = db.open_keyspace(keyspace).map_err(failed)?;
    Ok(Source::Store(keyspace))
}

fn peer(arguments: &ImportArgs) -> Result<Source, Failure> {
    let program = PeerProgram::find(arguments.program.as_deref())?;
    let task = PeerTask::Export {
        folder: arguments.source.clone(),
        column_family: arguments.column_family.clone(),
    };
    let (mut stream, output) = program.stream(&task)?;
    let input: Box<dyn Read> = Box::new(output);
    let reader =
        StreamReader::new(BufReader::with_capacity(1 << 18, input), Some(StreamForm::Native));
    match reader {
        Ok(reader) => Ok(Source::Peer(reader, stream, byte_bar(None))),
        Err(bad) => {
            stream.end_soon()?;
            Err(Failure::Data(format!("{}: {}", shown(&arguments.source), bad.problem)))
        }
    }
}
