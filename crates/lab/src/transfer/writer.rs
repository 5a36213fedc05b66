//! Writes a stream.

use std::io::{self, Write};

use trommel::Expiry;

use crate::transfer::entry::StreamForm;
use crate::transfer::native::BlockWriter;
use crate::transfer::tally::{StreamEnd, Tally};
use crate::transfer::{json_lines, tsv};

/// A stream being written. It is complete only after [`finish`](Self::finish).
pub struct StreamWriter<W> {
    out: W,
    form: StreamForm,
    tally: Tally,
    blocks: BlockWriter,
}

impl<W: Write> StreamWriter<W> {
    /// Begins a stream.
    pub fn new(mut out: W, form: StreamForm) -> io::Result<Self> {
        if form == StreamForm::Native {
            BlockWriter::begin(&mut out)?;
        }
        Ok(StreamWriter { out, form, tally: Tally::default(), blocks: BlockWriter::default() })
    }

    /// Writes an entry.
    pub fn put(&mut self, key: &[u8], value: &[u8], expiry: Option<Expiry>) -> io::Result<()> {
        self.tally.add(key, value, expiry);
        match self.form {
            StreamForm::Native => self.blocks.add((key, value, expiry), &mut self.out),
            StreamForm::JsonLines => {
                self.out.write_all(json_lines::entry_line(key, value, expiry).as_bytes())
            }
            StreamForm::Tsv => self.out.write_all(tsv::entry_line(key, value, expiry).as_bytes()),
        }
    }

    /// Returns the bytes of the keys and values written so far.
    pub fn bytes(&self) -> u64 {
        self.tally.bytes()
    }

    /// Writes counts and checksum. Returns them and the output.
    pub fn finish(mut self) -> io::Result<(StreamEnd, W)> {
        let end = self.tally.end();
        match self.form {
            StreamForm::Native => self.blocks.end(&end, &mut self.out)?,
            StreamForm::JsonLines => self.out.write_all(json_lines::end_line(&end).as_bytes())?,
            StreamForm::Tsv => self.out.write_all(tsv::end_line(&end).as_bytes())?,
        }
        self.out.flush()?;
        Ok((end, self.out))
    }
}
