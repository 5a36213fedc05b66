//! Reads entries from a stream of text: lines, tab-separated or comma-separated columns.
//! ```text
//! lines   key                       one line, one entry
//! tsv     a <tab> key <tab> value   one line, one entry
//! csv     a,"key ""b""",value       a quoted field may go on in the next line
//! ```
//! Invariant: memory holds one entry. Every error names the line at which its entry begins.

use std::io::BufRead;

use trommel::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// The format of a text with entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// One key per line.
    Lines,
    /// Tab-separated columns.
    Tsv,
    /// Comma-separated columns; fields may be quoted (RFC 4180).
    Csv,
}

/// Decodes pairs of hexadecimal digits. None: the text is something else.
pub fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Returns two hexadecimal digits for each byte.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where keys and values are in a text. Columns count from 0.
#[derive(Clone, Copy, Debug)]
pub struct TextLayout {
    /// The format.
    pub format: TextFormat,
    /// The column of the keys.
    pub key_column: usize,
    /// The column of the values; without one, values are empty.
    pub value_column: Option<usize>,
    /// Whether keys and values are hexadecimal.
    pub hex: bool,
}

/// A key and its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextRecord {
    /// The key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// An error in a text.
#[derive(Debug, PartialEq, Eq)]
pub struct BadText {
    /// The line at which the entry begins, counted from 1.
    pub line: u64,
    /// What is wrong.
    pub problem: String,
}

/// Reads the entries of a text one by one.
pub struct TextRecords<R> {
    input: R,
    layout: TextLayout,
    line: u64,
    /// The line at which the last entry begins.
    entry_line: u64,
    text: Vec<u8>,
    /// The end of the last line: a line feed, with or without a carriage return, or nothing.
    line_end: &'static [u8],
    bytes_read: u64,
    empty_lines: u64,
}

/// The longest line that can hold a key and a value, whatever else is in it.
const LINE_BYTES_MAX: usize = 2 * VALUE_BYTES_MAX + 4 * KEY_BYTES_MAX;

impl<R: BufRead> TextRecords<R> {
    /// Starts at the first line.
    pub fn new(input: R, layout: TextLayout) -> Self {
        TextRecords {
            input,
            layout,
            line: 0,
            entry_line: 0,
            text: Vec::new(),
            line_end: b"",
            bytes_read: 0,
            empty_lines: 0,
        }
    }

    /// Returns the bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns how many empty lines were skipped so far.
    pub fn empty_lines(&self) -> u64 {
        self.empty_lines
    }

    /// Returns the line at which the last entry begins, counted from 1.
    pub fn entry_line(&self) -> u64 {
        self.entry_line
    }

    /// Skips a line, if there is one.
    pub fn skip_line(&mut self) -> Result<(), BadText> {
        self.text.clear();
        self.add_line(self.line + 1).map(|_| ())
    }

    /// Returns the next entry. None: the text has ended.
    pub fn next_record(&mut self) -> Result<Option<TextRecord>, BadText> {
        loop {
            self.text.clear();
            let first_line = self.line + 1;
            if !self.add_line(first_line)? {
                return Ok(None);
            }
            if self.text.is_empty() {
                self.empty_lines += 1;
                continue;
            }
            self.entry_line = first_line;
            self.add_quoted_lines(first_line)?;
            let record = self.parse().map_err(|problem| BadText { line: first_line, problem })?;
            return Ok(Some(record));
        }
    }

    /// Appends the next line to the text, without its end. False: the text has ended.
    fn add_line(&mut self, first_line: u64) -> Result<bool, BadText> {
        let bad = |problem: String| BadText { line: first_line, problem };
        let most = self.line_bytes_max();
        let begin = self.text.len();
        let allowed = (most + 2).saturating_sub(begin) as u64;
        let mut limited = std::io::Read::take(&mut self.input, allowed);
        let read =
            limited.read_until(b'\n', &mut self.text).map_err(|error| bad(error.to_string()))?;
        self.bytes_read += read as u64;
        self.line += u64::from(read > 0);
        let ends: [&[u8]; 3] = [b"\r\n", b"\n", b""];
        let text_end = ends.into_iter().find(|end| read > 0 && self.text.ends_with(end));
        self.line_end = text_end.unwrap_or(b"");
        self.text.truncate(self.text.len() - self.line_end.len());
        if self.text.len() > most {
            return Err(bad(format!(
                "more than {most} bytes: a key has at most {KEY_BYTES_MAX}, a value {VALUE_BYTES_MAX}"
            )));
        }
        if self.text[begin..].contains(&0) {
            return Err(bad("a zero byte: this is a binary file, no text".into()));
        }
        Ok(read > 0)
    }

    fn line_bytes_max(&self) -> usize {
        match self.layout.format {
            TextFormat::Lines if self.layout.hex => 2 * KEY_BYTES_MAX,
            TextFormat::Lines => KEY_BYTES_MAX,
            TextFormat::Tsv | TextFormat::Csv => LINE_BYTES_MAX,
        }
    }

    /// Appends further lines while a quote is open, since they belong to the same entry.
    fn add_quoted_lines(&mut self, first_line: u64) -> Result<(), BadText> {
        if self.layout.format != TextFormat::Csv {
            return Ok(());
        }
        let mut quotes = count_quotes(&self.text);
        while quotes % 2 == 1 {
            self.text.extend_from_slice(self.line_end);
            let before = self.text.len();
            if !self.add_line(first_line)? {
                return Err(BadText {
                    line: first_line,
                    problem: "a quote that is never closed".into(),
                });
            }
            quotes += count_quotes(&self.text[before..]);
        }
        Ok(())
    }

    fn parse(&self) -> Result<TextRecord, String> {
        let fields = match self.layout.format {
            TextFormat::Lines => vec![self.text.clone()],
            TextFormat::Tsv => self.text.split(|byte| *byte == b'\t').map(<[u8]>::to_vec).collect(),
            TextFormat::Csv => csv_fields(&self.text)?,
        };
        let count = fields.len();
        let field = |what: &str, column: usize| {
            let problem =
                || format!("no column {} for the {what}: the line has {count}", column + 1);
            fields.get(column).ok_or_else(problem)
        };
        let bytes = |what: &str, column: usize| {
            let field = field(what, column)?;
            let problem = || format!("the {what} is not hexadecimal: pairs of 0-9, a-f");
            if self.layout.hex { from_hex(field).ok_or_else(problem) } else { Ok(field.clone()) }
        };
        let key = bytes("key", self.layout.key_column)?;
        let value = self.layout.value_column.map(|column| bytes("value", column)).transpose()?;
        let record = TextRecord { key, value: value.unwrap_or_default() };
        check_length("key", record.key.len(), KEY_BYTES_MAX)?;
        check_length("value", record.value.len(), VALUE_BYTES_MAX)?;
        Ok(record)
    }
}

fn check_length(what: &str, len: usize, max: usize) -> Result<(), String> {
    if len > max { Err(format!("a {what} of {len} bytes: at most {max}")) } else { Ok(()) }
}

fn count_quotes(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'"').count()
}

/// Splits an entry into fields. Requires: its quotes are closed.
fn csv_fields(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = if rest.first() == Some(&b'"') {
            quoted_field(&rest[1..])?
        } else {
            let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
            (rest[..end].to_vec(), &rest[end..])
        };
        fields.push(field);
        match after.split_first() {
            None => return Ok(fields),
            Some((b',', next)) => rest = next,
            Some(_) => {
                return Err(format!("column {}: text after the closing quote", fields.len()));
            }
        }
    }
}

/// Returns a field whose opening quote was read, and the text behind its closing quote.
fn quoted_field(text: &[u8]) -> Result<(Vec<u8>, &[u8]), String> {
    let mut field = Vec::new();
    let mut rest = text;
    while let Some(quote) = rest.iter().position(|byte| *byte == b'"') {
        field.extend_from_slice(&rest[..quote]);
        rest = &rest[quote + 1..];
        if rest.first() != Some(&b'"') {
            return Ok((field, rest));
        }
        field.push(b'"');
        rest = &rest[1..];
    }
    Err("a quote that is never closed".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pair = (Vec<u8>, Vec<u8>);

    fn layout(format: TextFormat, key_column: usize, value_column: Option<usize>) -> TextLayout {
        TextLayout { format, key_column, value_column, hex: false }
    }

    fn all(text: &[u8], layout: TextLayout) -> Result<Vec<Pair>, BadText> {
        let mut records = TextRecords::new(text, layout);
        let mut all = Vec::new();
        while let Some(record) = records.next_record()? {
            all.push((record.key, record.value));
        }
        assert_eq!(records.bytes_read(), text.len() as u64);
        Ok(all)
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<Pair> {
        list.iter()
            .map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn hex_is_read_back() {
        assert_eq!(from_hex(b"00fFa1"), Some(vec![0, 255, 161]));
        assert_eq!(from_hex(b""), Some(vec![]));
        assert_eq!((from_hex(b"0"), from_hex(b"0g"), from_hex(b"+1")), (None, None, None));
    }

    #[test]
    fn lines_are_keys() {
        let read = all(b"b\r\n\na b\tc\n\xff", layout(TextFormat::Lines, 0, None)).expect("lines");
        let mut expected = pairs(&[("b", ""), ("a b\tc", "")]);
        expected.push((vec![0xff], vec![]));
        assert_eq!(read, expected);
    }

    #[test]
    fn columns_are_chosen() {
        let tsv = all(b"1\tx\ty\n2\t\tz", layout(TextFormat::Tsv, 2, Some(1))).expect("tsv");
        assert_eq!(tsv, pairs(&[("y", "x"), ("z", "")]));
        let csv = b"1,\"a,b\"\n\"q \"\"r\"\"\",\"two\r\n\nlines\"\n,\n";
        let csv = all(csv, layout(TextFormat::Csv, 0, Some(1))).expect("csv");
        assert_eq!(csv, pairs(&[("1", "a,b"), ("q \"r\"", "two\r\n\nlines"), ("", "")]));
    }

    #[test] // Each line was searched together with all before it: this took minutes.
    fn an_open_quote_goes_over_many_lines_in_linear_time() {
        let begin = std::time::Instant::now();
        let text = [&b"\""[..], &b"line\n".repeat(1 << 20)].concat();
        let bad = all(&text, layout(TextFormat::Csv, 0, None)).expect_err("it stays open");
        assert!(bad.line == 1 && bad.problem.contains("never closed"), "{bad:?}");
        assert!(begin.elapsed().as_secs() < 30, "{:?}", begin.elapsed());
    }

    #[test]
    fn bad_lines_are_named() {
        let cases: [(&[u8], TextLayout, u64, &str); 7] = [
            (b"a\nb\0\n", layout(TextFormat::Lines, 0, None), 2, "zero byte"),
            (b"a\tb\n\nc\n", layout(TextFormat::Tsv, 1, None), 3, "no column 2"),
            (b"a\tb\nc\n", layout(TextFormat::Tsv, 0, Some(1)), 2, "for the value"),
            (b"a\n\"b\nc\n", layout(TextFormat::Csv, 0, None), 2, "never closed"),
            (b"\"a\"b,\"\"\n", layout(TextFormat::Csv, 0, None), 1, "after the closing"),
            (
                b"00\tff\n01\tf\n",
                TextLayout { hex: true, ..layout(TextFormat::Tsv, 0, Some(1)) },
                2,
                "the value is not hexadecimal",
            ),
            (
                b"zz\n",
                TextLayout { hex: true, ..layout(TextFormat::Lines, 0, None) },
                1,
                "hexadecimal",
            ),
        ];
        for (text, layout, line, word) in cases {
            let bad = all(text, layout).expect_err(word);
            assert!(bad.line == line && bad.problem.contains(word), "{bad:?}");
        }
    }

    #[test]
    fn values_have_a_longest_length() {
        assert_eq!(check_length("value", VALUE_BYTES_MAX, VALUE_BYTES_MAX), Ok(()));
        let problem = check_length("value", VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX);
        assert!(problem.expect_err("too long").contains("value of 1073741825 bytes"));
    }

    #[test]
    fn keys_have_at_most_64_kib() {
        let longest = vec![b'k'; KEY_BYTES_MAX];
        for end in [&b""[..], b"\n", b"\r\n"] {
            let text = [&longest, end].concat();
            assert_eq!(all(&text, layout(TextFormat::Lines, 0, None)).expect("fits").len(), 1);
        }
        let longer = [&b"a\n"[..], &longest, b"k\nb\n"].concat();
        let bad = all(&longer, layout(TextFormat::Lines, 0, None)).expect_err("too long");
        assert!(bad.line == 2 && bad.problem.contains("at most 65536"), "{bad:?}");
        let bad = all(&longer, layout(TextFormat::Tsv, 0, None)).expect_err("too long");
        assert!(bad.line == 2 && bad.problem.contains("key of 65537 bytes"), "{bad:?}");
    }
}
