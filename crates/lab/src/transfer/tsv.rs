//! Entries as tab-separated columns.
//! ```text
//! key <tab> value                        escaped, as `scan` prints them
//! key <tab> value <tab> 1767225600000    an entry that expires: milliseconds since 1970
//! \. <tab> entries <tab> bytes <tab> checksum
//! ```
//! Invariant: no escaped key is `\.`, so the end is never mistaken for an entry.

use trommel::Expiry;

use crate::transfer::entry::{StreamEntry, StreamItem};
use crate::transfer::escapes::{escaped, unescaped};
use crate::transfer::tally::StreamEnd;

const END: &str = "\\.";

pub(crate) fn entry_line(key: &[u8], value: &[u8], expiry: Option<Expiry>) -> String {
    let expiry = expiry.map(|expiry| format!("\t{}", expiry.milliseconds())).unwrap_or_default();
    format!("{}\t{}{expiry}\n", escaped(key), escaped(value))
}

pub(crate) fn end_line(end: &StreamEnd) -> String {
    let StreamEnd { entries, bytes, checksum } = end;
    format!("{END}\t{entries}\t{bytes}\t{checksum:016x}\n")
}

pub(crate) fn parse(line: &[u8]) -> Result<StreamItem, String> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    match fields[..] {
        [mark, entries, bytes, checksum] if mark == END.as_bytes() => {
            Ok(StreamItem::End(StreamEnd {
                entries: number(entries, 10)?,
                bytes: number(bytes, 10)?,
                checksum: number(checksum, 16)?,
            }))
        }
        [key, value] => entry(key, value, None),
        [key, value, expiry] => entry(key, value, Some(number(expiry, 10)?)),
        _ => Err(format!(
            "{} columns, with tabs between them: an entry has a key, a value and perhaps an expiry",
            fields.len()
        )),
    }
}

fn entry(key: &[u8], value: &[u8], expiry: Option<u64>) -> Result<StreamItem, String> {
    let (key, value) = (unescaped(key)?, unescaped(value)?);
    let expiry = expiry.map(Expiry::at_milliseconds);
    Ok(StreamItem::Entry(StreamEntry { key, value, expiry }))
}

fn number(text: &[u8], radix: u32) -> Result<u64, String> {
    let text = String::from_utf8_lossy(text);
    u64::from_str_radix(&text, radix).map_err(|_| format!("'{text}' is no number"))
}
