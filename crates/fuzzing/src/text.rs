//! Texts of keys, as `trommel load` reads them, and names and numbers that people write.
//! ```text
//! input   form u8 (bits: 0-1 format, 2 hexadecimal, 3 header) | key column u8 |
//!         value column u8 (0: none) | text
//! ```
//! Invariant: entries are within their bounds and no longer than the text; a text that is written
//! with what was read, every field in quotes, is read alike.

use trommel_lab::{Dist, TextFormat, TextLayout, TextRecord, TextRecords, from_hex};

const FORMATS: [TextFormat; 4] =
    [TextFormat::Lines, TextFormat::Tsv, TextFormat::Csv, TextFormat::Csv];

pub(crate) fn body(input: &[u8]) {
    let [form, key, value, text @ ..] = input else { return };
    let layout = TextLayout {
        format: FORMATS[usize::from(form & 3)],
        key_column: usize::from(*key),
        value_column: value.checked_sub(1).map(usize::from),
        hex: form & 4 != 0,
    };
    let (records, is_whole) = read(text, layout, form & 8 != 0);
    let bytes: usize = records.iter().map(|record| record.key.len() + record.value.len()).sum();
    // The key's column may be the value's, too.
    assert!(bytes <= 2 * text.len(), "{bytes} bytes out of {}", text.len());
    // A text has no zero bytes, but those that are written in hexadecimal.
    if is_whole && !layout.hex {
        let layout = TextLayout {
            format: TextFormat::Csv,
            key_column: 0,
            value_column: Some(1),
            hex: false,
        };
        let again = read(&csv(&records), layout, false);
        assert_eq!(again, (records, true), "read in two ways");
    }
    names(text);
}

/// The records before the first bad line, and whether there is none.
fn read(text: &[u8], layout: TextLayout, header: bool) -> (Vec<TextRecord>, bool) {
    let mut input = TextRecords::new(text, layout);
    let mut records = Vec::new();
    let lines = text.split(|&byte| byte == b'\n').count() as u64;
    if header && input.skip_line().is_err() {
        return (records, false);
    }
    loop {
        match input.next_record() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => break,
            Err(bad) => {
                assert!((1..=lines).contains(&bad.line) && !bad.problem.is_empty(), "{bad:?}");
                return (records, false);
            }
        }
    }
    assert_eq!(input.bytes_read(), text.len() as u64, "the end comes too early");
    let counted = records.len() as u64 + input.empty_lines();
    assert!(counted <= lines, "{counted} entries and empty lines in {lines} lines");
    (records, true)
}

fn csv(records: &[TextRecord]) -> Vec<u8> {
    let mut text = Vec::new();
    for record in records {
        for (field, end) in [(&record.key, b','), (&record.value, b'\n')] {
            text.push(b'"');
            for &byte in field {
                text.extend(std::iter::repeat_n(byte, if byte == b'"' { 2 } else { 1 }));
            }
            text.extend([b'"', end]);
        }
    }
    text
}

/// Names and numbers: an error, or what is printed is read as the same.
fn names(text: &[u8]) {
    if let Some(bytes) = from_hex(text) {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(digits.as_bytes().eq_ignore_ascii_case(text), "{digits}");
    }
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Ok(guard) = text.parse::<trommel::GuardKind>() {
        assert_eq!(guard.name(), text);
    }
    if let Ok(dist) = text.parse::<Dist>() {
        assert_eq!(dist.to_string().parse::<Dist>().ok(), Some(dist));
    }
}
