//! Entries as JSON, one object per line.
//! ```text
//! {"key":"drum","value":{"hex":"ff00"},"expires_at_ms":1767225600000}
//! {"end":{"entries":1,"bytes":6,"checksum":"0123456789abcdef"}}
//! ```
//! Invariant: a string stands for its own bytes; bytes that are not UTF-8 are an object.

use serde::Deserialize;
use serde_json::{Value, json};
use trommel::Expiry;

use crate::keys::text::{from_hex, to_hex};
use crate::transfer::entry::{StreamEntry, StreamItem};
use crate::transfer::tally::StreamEnd;

/// Returns bytes as JSON: a string if they are UTF-8, otherwise `{"hex":"ff00"}`.
pub fn json_bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({ "hex": to_hex(bytes) }),
    }
}

pub(crate) fn entry_line(key: &[u8], value: &[u8], expiry: Option<Expiry>) -> String {
    let mut object = json!({ "key": json_bytes(key), "value": json_bytes(value) });
    if let Some(expiry) = expiry {
        object["expires_at_ms"] = expiry.milliseconds().into();
    }
    format!("{object}\n")
}

pub(crate) fn end_line(end: &StreamEnd) -> String {
    let StreamEnd { entries, bytes, checksum } = end;
    let checksum = format!("{checksum:016x}");
    let end = json!({ "entries": entries, "bytes": bytes, "checksum": checksum });
    format!("{}\n", json!({ "end": end }))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonBytes {
    Text(String),
    Other(HexBytes),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HexBytes {
    hex: String,
}

impl JsonBytes {
    fn read(self, what: &str) -> Result<Vec<u8>, String> {
        let not_hex = || format!("the {what} is not hexadecimal: pairs of 0-9, a-f");
        match self {
            JsonBytes::Text(text) => Ok(text.into_bytes()),
            JsonBytes::Other(HexBytes { hex }) => from_hex(hex.as_bytes()).ok_or_else(not_hex),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonEntry {
    key: JsonBytes,
    value: JsonBytes,
    expires_at_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonEnd {
    end: JsonTally,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonTally {
    entries: u64,
    bytes: u64,
    checksum: String,
}

pub(crate) fn parse(line: &[u8]) -> Result<StreamItem, String> {
    // No entry begins like this: the writer fixes the order of names.
    if line.starts_with(b"{\"end\"")
        && let Ok(JsonEnd { end }) = serde_json::from_slice(line)
    {
        let JsonTally { entries, bytes, checksum } = end;
        let checksum = u64::from_str_radix(&checksum, 16)
            .map_err(|_| format!("'{checksum}' is no checksum"))?;
        return Ok(StreamItem::End(StreamEnd { entries, bytes, checksum }));
    }
    let JsonEntry { key, value, expires_at_ms } =
        serde_json::from_slice(line).map_err(|error| {
            format!("{error}; an entry is {{\"key\":\"...\",\"value\":\"...\"}}, other bytes than UTF-8 {{\"hex\":\"...\"}}")
        })?;
    let (key, value) = (key.read("key")?, value.read("value")?);
    let expiry = expires_at_ms.map(Expiry::at_milliseconds);
    Ok(StreamItem::Entry(StreamEntry { key, value, expiry }))
}
