//! Reads a stream and checks it on the way.
//! ```text
//! TRMLEXP\0 ...   native          { ...   JSON lines          anything else   TSV
//! ```
//! Invariants: memory holds a line or a block. Anything behind the end is an error. Only text that
//! was not exported may lack an end.

use std::io::{BufRead, Read};

use trommel::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use crate::transfer::entry::{BadStream, StreamEntry, StreamForm, StreamItem};
use crate::transfer::native::{BlockReader, MAGIC};
use crate::transfer::tally::{StreamEnd, Tally};
use crate::transfer::{json_lines, tsv};

/// The longest line: every byte of a key and a value in JSON's longest escape.
const LINE_BYTES_MAX: u64 = 6 * (KEY_BYTES_MAX + VALUE_BYTES_MAX) as u64 + 1024;

/// Reads the entries of a stream one by one.
pub struct StreamReader<R> {
    input: R,
    form: Form,
    tally: Tally,
    end: Option<StreamEnd>,
}

enum Form {
    Native(BlockReader),
    /// The parser of a line, the line, and its number.
    Text(fn(&[u8]) -> Result<StreamItem, String>, Vec<u8>, u64),
}

impl<R: BufRead> StreamReader<R> {
    /// Begins to read. Without a form, the first bytes determine it.
    pub fn new(mut input: R, form: Option<StreamForm>) -> Result<Self, BadStream> {
        let form = match form {
            Some(form) => form,
            None => form_of(&mut input)?,
        };
        let form = match form {
            StreamForm::Native => Form::Native(BlockReader::begin(&mut input)?),
            StreamForm::JsonLines => Form::Text(json_lines::parse, Vec::new(), 0),
            StreamForm::Tsv => Form::Text(tsv::parse, Vec::new(), 0),
        };
        Ok(StreamReader { input, form, tally: Tally::default(), end: None })
    }

    /// Returns the next entry. None: the stream has ended, and its counts and checksum are right.
    pub fn next_entry(&mut self) -> Result<Option<StreamEntry>, BadStream> {
        if self.end.is_some() {
            return Ok(None);
        }
        let next = match &mut self.form {
            Form::Native(blocks) => Some(blocks.next(&mut self.input)?),
            Form::Text(parse, line, number) => next_line(&mut self.input, *parse, line, number)?,
        };
        match next {
            None => Ok(None),
            Some(StreamItem::Entry(entry)) => {
                self.tally.add(&entry.key, &entry.value, entry.expiry);
                Ok(Some(entry))
            }
            Some(StreamItem::End(end)) => self.check(end).map(|()| None),
        }
    }

    /// Returns what was read, and whether the stream's own counts and checksum confirmed it. False:
    /// it is a text without them.
    pub fn end(&self) -> (StreamEnd, bool) {
        (self.tally.end(), self.end.is_some())
    }

    /// Returns the bytes of the keys and values read so far.
    pub fn bytes(&self) -> u64 {
        self.tally.bytes()
    }

    fn check(&mut self, end: StreamEnd) -> Result<(), BadStream> {
        if let Some(problem) = end.differs_from(&self.tally.end()) {
            return Err(self.bad(problem));
        }
        match self.input.fill_buf().map(<[u8]>::is_empty) {
            Ok(true) => {}
            Ok(false) => {
                return Err(self.bad("something stands behind the end of the stream".into()));
            }
            Err(error) => return Err(self.bad(error.to_string())),
        }
        self.end = Some(end);
        Ok(())
    }

    fn bad(&self, problem: String) -> BadStream {
        match &self.form {
            Form::Native(blocks) => blocks.bad(&problem),
            Form::Text(_, _, number) => BadStream { place: format!("line {number}"), problem },
        }
    }
}

fn form_of(input: &mut impl BufRead) -> Result<StreamForm, BadStream> {
    let begin = input.fill_buf().map_err(|error| bad_line(1, error.to_string()))?;
    Ok(match begin {
        [b'{', ..] => StreamForm::JsonLines,
        begin if !begin.is_empty() && begin.starts_with(&MAGIC[..begin.len().min(8)]) => {
            StreamForm::Native
        }
        _ => StreamForm::Tsv,
    })
}

fn bad_line(number: u64, problem: String) -> BadStream {
    BadStream { place: format!("line {number}"), problem }
}

/// Parses the next line that is not empty. None: there is none.
fn next_line(
    input: &mut impl BufRead,
    parse: fn(&[u8]) -> Result<StreamItem, String>,
    line: &mut Vec<u8>,
    number: &mut u64,
) -> Result<Option<StreamItem>, BadStream> {
    loop {
        line.clear();
        *number += 1;
        let read = input.by_ref().take(LINE_BYTES_MAX + 2).read_until(b'\n', line);
        match read.map_err(|error| bad_line(*number, error.to_string()))? {
            0 => return Ok(None),
            read if read as u64 > LINE_BYTES_MAX => {
                return Err(bad_line(*number, "a line that is longer than any entry".into()));
            }
            _ => {}
        }
        let ends: [&[u8]; 3] = [b"\r\n", b"\n", b""];
        let text = ends.iter().find_map(|end| line.strip_suffix(*end)).unwrap_or_default();
        if text.is_empty() {
            continue;
        }
        return match parse(text).map_err(|problem| bad_line(*number, problem))? {
            StreamItem::Entry(entry) => {
                check_lengths(&entry).map_err(|problem| bad_line(*number, problem))?;
                Ok(Some(StreamItem::Entry(entry)))
            }
            StreamItem::End(end) => Ok(Some(StreamItem::End(end))),
        };
    }
}

fn check_lengths(entry: &StreamEntry) -> Result<(), String> {
    let (key, value) = (entry.key.len(), entry.value.len());
    match (key > KEY_BYTES_MAX, value > VALUE_BYTES_MAX) {
        (true, _) => Err(format!("a key of {key} bytes: at most {KEY_BYTES_MAX}")),
        (_, true) => Err(format!("a value of {value} bytes: at most {VALUE_BYTES_MAX}")),
        _ => Ok(()),
    }
}
