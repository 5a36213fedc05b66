//! `load`: writes the keys of a file, or of standard input, into a store.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Display, Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use serde_json::json;
use trommel::GuardKind;
use trommel::sorting::SortOptions;
use trommel_lab::{BadText, RunRecorder, TextLayout, TextRecords};

use crate::args::record::RecordArgs;
use crate::args::sort::SortArgs;
use crate::args::store::{OpenStore, StoreArgs};
use crate::args::watch::WatchArgs;
use crate::commands::batches::{BATCH_ENTRIES, Batches, Kept, rate};
use crate::output::keytext::show;
use crate::output::progress::{byte_bar, show_sorting};
use crate::output::table::{counted, whole};
use crate::process::failure::{Failure, Outcome, Status};
use crate::process::message::warning;
use crate::watch::watcher::{Watcher, watched};

pub(crate) const EXAMPLES: &str = "Examples: one key per line; a table with names and values; as one run: what is sorted, and what is not\n  \
    trommel load --db words /usr/share/dict/words\n  \
    trommel load --db cities --format csv --header --key-column 2 --value-column 3 cities.csv\n  \
    LC_ALL=C sort -u keys | trommel load --db sorted --ingest -\n  \
    trommel load --db many --sort --sort-memory 1GiB keys\n\n\
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
    #[command(flatten)]
    pub(crate) sort: SortArgs,
    /// Skip the first line (tsv, csv).
    #[arg(long)]
    pub(crate) header: bool,
    /// Keys and values are written in hexadecimal.
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

pub(crate) fn run(arguments: &LoadArgs, json: bool, out: &mut dyn Write) -> Outcome {
    if arguments.record.is_asked_for() {
        arguments.store.only_default("--record follows the default key space")?;
    }
    let layout = layout(arguments)?;
    let (input, size) = open_input(&arguments.file)?;
    let db = arguments.store.open_or_create(GuardKind::Grf)?;
    let recorder =
        arguments.record.begin(arguments.hex, arguments.store.options.0.bits_per_key, &db.db)?;
    let watcher = Watcher::new(arguments.watch, json, out)?;
    let bar = if watcher.is_some() { ProgressBar::hidden() } else { byte_bar(size) };
    let start = Instant::now();
    let kept = Kept::new("loaded");
    let last_words = kept.reported_by_signals()?;
    let mut load = Load {
        db: &db,
        records: TextRecords::new(input, layout),
        kept: &kept,
        file: &arguments.file,
    };
    let result = match watcher {
        None => load.all(arguments, &bar),
        Some(watcher) => watched(watcher, &db, || load.all(arguments, &bar)),
    };
    bar.finish_and_clear();
    let (loaded, empty_lines) = (kept.keys(), load.records.empty_lines());
    let recorded = recorder.map(|recorder| end_recording(recorder, &db.db));
    result?;
    recorded.transpose()?;
    db.close()?;
    drop(last_words);
    if loaded == 0 {
        warning(&format!("{} holds no keys: nothing was loaded", shown(&arguments.file)));
    }
    let report = Loaded { loaded, empty_lines, took: start.elapsed() };
    writeln!(out, "{}", if json { report.as_json() } else { report.as_text() })?;
    Ok(Status::Fine)
}

/// The result of a load, and its time.
struct Loaded {
    loaded: u64,
    empty_lines: u64,
    took: Duration,
}

impl Loaded {
    fn as_json(&self) -> String {
        let report = json!({
            "loaded": self.loaded, "empty_lines": self.empty_lines,
            "seconds": self.took.as_secs_f64(), "keys_per_second": rate(self.loaded, self.took),
        });
        report.to_string()
    }

    fn as_text(&self) -> String {
        let seconds = self.took.as_secs_f64();
        let rate = rate(self.loaded, self.took);
        let rate = rate.map(|rate| format!(", {} per second", whole(rate as u64)));
        let passed = match self.empty_lines {
            0 => String::new(),
            lines => format!("; {} passed over", counted(lines, "empty line")),
        };
        let (keys, rate) = (counted(self.loaded, "key"), rate.unwrap_or_default());
        format!("{keys} loaded in {seconds:.1} s{rate}{passed}")
    }
}

/// Waits for due merges, so that the last step shows a tree in shape, and ends the recording.
fn end_recording(recorder: RunRecorder, db: &trommel::Db) -> Result<u64, Failure> {
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

/// Returns the name of the input in messages.
fn shown(file: &Path) -> Display<'_> {
    let is_input = file == Path::new("-");
    if is_input { Path::new("standard input").display() } else { file.display() }
}

type Input = Box<dyn BufRead + Send>;

/// Returns the input and, if known, its size.
fn open_input(path: &Path) -> Result<(Input, Option<u64>), Failure> {
    if path == Path::new("-") {
        if std::io::stdin().is_terminal() {
            warning("reading keys from the terminal; end with Ctrl-D");
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
    // Some files, such as those of /proc, have text but a length of zero. An unreadable file is an
    // error here, before a store is created.
    input.fill_buf().map_err(unreadable)?;
    let size = (about.is_file() && about.len() > 0).then_some(about.len());
    Ok((Box::new(input), size))
}

struct Load<'a> {
    db: &'a OpenStore,
    records: TextRecords<Input>,
    kept: &'a Kept,
    file: &'a Path,
}

impl Load<'_> {
    /// Loads all entries, and flushes the last of them.
    fn all(&mut self, arguments: &LoadArgs, bar: &ProgressBar) -> Result<(), Failure> {
        if arguments.header {
            self.records.skip_line().map_err(|bad| self.failure(&bad))?;
        }
        match (arguments.sort.options(), arguments.ingest) {
            (Some(options), _) => self.sort(&options, bar)?,
            (None, true) => self.ingest(bar)?,
            (None, false) => self.run(bar)?,
        }
        Ok(self.db.flush()?)
    }

    /// Loads all entries. On a malformed line, the entries before it are kept, and the message says
    /// so.
    fn run(&mut self, bar: &ProgressBar) -> Result<(), Failure> {
        let mut batches = Batches::new(self.db, self.kept);
        loop {
            match self.records.next_record() {
                Ok(Some(record)) => {
                    if batches.put(&record.key, &record.value, None)? {
                        bar.set_position(self.records.bytes_read());
                        bar.set_message(format!("{} keys", whole(self.kept.keys())));
                    }
                }
                Ok(None) => return batches.write(),
                Err(bad) => {
                    batches.write()?;
                    return Err(self.failure(&bad));
                }
            }
        }
    }

    /// Makes one run of all entries. On a malformed line or a key out of order, nothing is loaded.
    /// The order is checked here, where the line is known.
    fn ingest(&mut self, bar: &ProgressBar) -> Result<(), Failure> {
        let (file, kept, records) = (self.file, self.kept, &mut self.records);
        let mut count = 0u64;
        let mut last: Option<Vec<u8>> = None;
        let entries = std::iter::from_fn(|| {
            let read = records.next_record();
            let ascending = read.and_then(|record| match (record, &last) {
                (Some(record), Some(last)) if record.key <= *last => Err(BadText {
                    line: records.entry_line(),
                    problem: out_of_order(last, &record.key),
                }),
                (record, _) => Ok(record),
            });
            let record = match ascending {
                Ok(None) => return None,
                Ok(Some(record)) => {
                    last.get_or_insert_default().clone_from(&record.key);
                    Ok((record.key, record.value))
                }
                Err(bad) => Err(failure(file, &bad, kept)),
            };
            count += 1;
            if count.is_multiple_of(BATCH_ENTRIES as u64) {
                bar.set_position(records.bytes_read());
                bar.set_message(format!("{} keys", whole(count)));
            }
            Some(record)
        });
        let ingested = self.db.try_ingest(entries)?;
        kept.add(ingested);
        Ok(())
    }

    /// Sorts all entries and makes one run of them. On a malformed line, nothing is loaded.
    fn sort(&mut self, options: &SortOptions, bar: &ProgressBar) -> Result<(), Failure> {
        let (file, kept, records) = (self.file, self.kept, &mut self.records);
        let mut count = 0u64;
        let entries = std::iter::from_fn(|| {
            count += 1;
            if count.is_multiple_of(BATCH_ENTRIES as u64) {
                bar.set_position(records.bytes_read());
                bar.set_message(format!("{} keys", whole(count)));
            }
            let record = records.next_record().map_err(|bad| failure(file, &bad, kept));
            Some(record.transpose()?.map(|record| (record.key, record.value)))
        });
        let mut tell = show_sorting(bar);
        let loaded = self.db.try_ingest_unsorted(entries, options, &mut tell)?;
        kept.add(loaded);
        Ok(())
    }

    fn failure(&self, bad: &BadText) -> Failure {
        failure(self.file, bad, self.kept)
    }
}

fn out_of_order(before: &[u8], key: &[u8]) -> String {
    let (before, key) = (show(before, false), show(key, false));
    format!("keys to ingest must ascend, each once: {key} comes after {before}")
}

fn failure(file: &Path, bad: &BadText, kept: &Kept) -> Failure {
    let (file, kept) = (shown(file), kept.summary());
    let (line, problem) = (bad.line, &bad.problem);
    Failure::Data(format!("{file}, line {line}: {problem} ({kept})"))
}
