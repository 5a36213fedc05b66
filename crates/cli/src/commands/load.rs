//! `load`: a file of keys, or standard input, into a store.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Display, Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde_json::json;
use trommel::{Batch, Db, GuardKind};
use trommel_lab::{BadText, RunRecorder, TextLayout, TextRecords};

use crate::args::record::RecordArgs;
use crate::args::store::StoreArgs;
use crate::args::watch::WatchArgs;
use crate::output::progress::byte_bar;
use crate::output::table::{counted, whole};
use crate::process::failure::{Failure, Outcome, Status};
use crate::watch::watcher::{Watcher, watched};

pub(crate) const EXAMPLES: &str = "Examples: one key per line; a table with names and values; what is sorted already, as one run\n  \
    trommel load --db words /usr/share/dict/words\n  \
    trommel load --db cities --format csv --header --key-column 2 --value-column 3 cities.csv\n  \
    LC_ALL=C sort -u keys | trommel load --db sorted --ingest -\n\n\
    Recorded, and played back:\n  \
    trommel load --db words /usr/share/dict/words --write-buffer 64KiB --size-ratio 4 --record run.jsonl --record-key sieve\n  \
    trommel replay words.html --run run.jsonl";

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The file; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How the file is written.
    #[arg(long, value_enum, default_value_t = TextFormat::Lines)]
    pub(crate) format: TextFormat,
    /// The column of the keys, counted from 1 (tsv, csv).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) key_column: u32,
    /// The column of the values; without it values are empty.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) value_column: Option<u32>,
    /// The keys of the file ascend, each once: make one sorted run of them, all at once, past log
    /// and memory. If they do not, nothing is loaded.
    #[arg(long)]
    pub(crate) ingest: bool,
    /// Skip the first line (tsv, csv).
    #[arg(long)]
    pub(crate) header: bool,
    /// Keys are written in hexadecimal.
    #[arg(long)]
    pub(crate) hex: bool,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

/// How a file of entries is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// One key per line.
    Lines,
    /// Columns with tabs between them.
    Tsv,
    /// Columns with commas between them; fields may be quoted (RFC 4180).
    Csv,
}

impl From<TextFormat> for trommel_lab::TextFormat {
    fn from(format: TextFormat) -> Self {
        match format {
            TextFormat::Lines => Self::Lines,
            TextFormat::Tsv => Self::Tsv,
            TextFormat::Csv => Self::Csv,
        }
    }
}

/// Entries that are written together: fewer locks, and still little memory.
const BATCH_ENTRIES: usize = 512;

const BATCH_BYTES: usize = 1 << 20;

pub(crate) fn run(arguments: &LoadArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let layout = layout(arguments)?;
    let (input, size) = open_input(&arguments.file)?;
    let db = arguments.store.open_or_create(GuardKind::Grf)?;
    let recorder = arguments.record.begin(arguments.hex, arguments.store.bits_per_key, &db)?;
    let watcher = Watcher::new(arguments.watch, json, out)?;
    let bar = if watcher.is_some() { ProgressBar::hidden() } else { byte_bar(size) };
    let start = Instant::now();
    let mut load = Load {
        db: &db,
        records: TextRecords::new(input, layout),
        batch: Batch::new(),
        loaded: 0,
        file: &arguments.file,
    };
    let result = match watcher {
        None => load.all(arguments, &bar),
        Some(watcher) => watched(watcher, &db, || load.all(arguments, &bar)),
    };
    bar.finish_and_clear();
    let (loaded, empty_lines) = (load.loaded, load.records.empty_lines());
    let recorded = recorder.map(|recorder| end_recording(recorder, &db));
    result?;
    recorded.transpose()?;
    if loaded == 0 {
        db.close()?;
        return Err(Failure::Data(format!("{} holds no keys", shown(&arguments.file))));
    }
    db.close()?;
    let seconds = start.elapsed().as_secs_f64();
    let rate = loaded as f64 / seconds;
    if json {
        let report = json!({
            "loaded": loaded, "empty_lines": empty_lines, "seconds": seconds, "keys_per_second": rate,
        });
        writeln!(out, "{report}")?;
    } else {
        write!(
            out,
            "{} loaded in {seconds:.1} s, {} per second",
            counted(loaded, "key"),
            whole(rate as u64)
        )?;
        match empty_lines {
            0 => writeln!(out)?,
            lines => writeln!(out, "; {} passed over", counted(lines, "empty line"))?,
        }
    }
    Ok(Status::Fine)
}

/// Lets merges that are due end, so that the last step is a tree in shape, and ends the recording.
fn end_recording(recorder: RunRecorder, db: &Db) -> Result<u64, Failure> {
    let settled = db.settle();
    let steps = recorder.end(db)?;
    settled?;
    Ok(steps)
}

fn layout(arguments: &LoadArgs) -> Result<TextLayout, Failure> {
    let columns = arguments.key_column > 1 || arguments.value_column.is_some() || arguments.header;
    if arguments.format == TextFormat::Lines && columns {
        let problem = "--key-column, --value-column and --header need --format tsv or csv";
        return Err(Failure::Usage(problem.into()));
    }
    Ok(TextLayout {
        format: arguments.format.into(),
        key_column: arguments.key_column as usize - 1,
        value_column: arguments.value_column.map(|column| column as usize - 1),
        hex: arguments.hex,
    })
}

/// The message about the keys before a failure.
fn kept(loaded: u64) -> String {
    match loaded {
        0 => "no key was loaded before it".into(),
        loaded => format!("{} loaded before it, and kept", counted(loaded, "key")),
    }
}

/// How messages call the input.
fn shown(file: &Path) -> Display<'_> {
    let is_input = file == Path::new("-");
    if is_input { Path::new("standard input").display() } else { file.display() }
}

type Input = Box<dyn BufRead + Send>;

/// The input and, if known, its size.
fn open_input(path: &Path) -> Result<(Input, Option<u64>), Failure> {
    if path == Path::new("-") {
        if std::io::stdin().is_terminal() {
            eprintln!("trommel: reading keys from the terminal; end with Ctrl-D");
        }
        return Ok((Box::new(BufReader::with_capacity(1 << 16, std::io::stdin())), None));
    }
    let unreadable = |error: std::io::Error| Failure::Data(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if about.is_dir() {
        return Err(Failure::Data(format!("{} is a folder, not a file of keys", path.display())));
    }
    let mut input = BufReader::with_capacity(1 << 18, file);
    // Some files with text, such as those of /proc, have the same length.
    if input.fill_buf().map_err(unreadable)?.is_empty() {
        return Err(Failure::Data(format!("{} is empty", path.display())));
    }
    let size = (about.is_file() && about.len() > 0).then_some(about.len());
    Ok((Box::new(input), size))
}

struct Load<'a> {
    db: &'a Db,
    records: TextRecords<Input>,
    batch: Batch,
    loaded: u64,
    file: &'a Path,
}

impl Load<'_> {
    /// Loads all entries, and makes a run of the last of them.
    fn all(&mut self, arguments: &LoadArgs, bar: &ProgressBar) -> Result<(), Failure> {
        match arguments.ingest {
            true => self.ingest(arguments.header, bar)?,
            false => self.run(arguments.header, bar)?,
        }
        Ok(self.db.flush()?)
    }

    /// Loads all entries. On a bad line, those before it are loaded and the message says so.
    fn run(&mut self, header: bool, bar: &ProgressBar) -> Result<(), Failure> {
        if header {
            self.records.skip_line().map_err(|bad| self.failure(&bad))?;
        }
        loop {
            match self.records.next_record() {
                Ok(Some(record)) => {
                    self.batch.put(&record.key, &record.value);
                    if self.batch.len() >= BATCH_ENTRIES || self.batch.size_bytes() >= BATCH_BYTES {
                        self.write()?;
                        bar.set_position(self.records.bytes_read());
                        bar.set_message(format!("{} keys", whole(self.loaded)));
                    }
                }
                Ok(None) => return self.write(),
                Err(bad) => {
                    self.write()?;
                    return Err(self.failure(&bad));
                }
            }
        }
    }

    /// Makes one run of all entries. On a bad line or a key out of order nothing is loaded.
    fn ingest(&mut self, header: bool, bar: &ProgressBar) -> Result<(), Failure> {
        if header {
            self.records.skip_line().map_err(|bad| self.failure(&bad))?;
        }
        let (file, records) = (self.file, &mut self.records);
        let mut count = 0u64;
        let entries = std::iter::from_fn(|| {
            let record = match records.next_record() {
                Ok(None) => return None,
                Ok(Some(record)) => Ok((record.key, record.value)),
                Err(bad) => Err(failure(file, &bad, 0)),
            };
            count += 1;
            if count.is_multiple_of(BATCH_ENTRIES as u64) {
                bar.set_position(records.bytes_read());
                bar.set_message(format!("{} keys", whole(count)));
            }
            Some(record)
        });
        self.loaded = self.db.try_ingest(entries)?;
        Ok(())
    }

    fn write(&mut self) -> Result<(), Failure> {
        let batch = std::mem::take(&mut self.batch);
        let count = batch.len() as u64;
        self.db.write(batch).map_err(|error| {
            Failure::of_store(&error, format!("{error} ({})", kept(self.loaded)))
        })?;
        self.loaded += count;
        Ok(())
    }

    fn failure(&self, bad: &BadText) -> Failure {
        failure(self.file, bad, self.loaded)
    }
}

fn failure(file: &Path, bad: &BadText, loaded: u64) -> Failure {
    let (file, kept) = (shown(file), kept(loaded));
    let (line, problem) = (bad.line, &bad.problem);
    Failure::Data(format!("{file}, line {line}: {problem} ({kept})"))
}
