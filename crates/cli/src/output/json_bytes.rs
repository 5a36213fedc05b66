//! Keys and values in JSON. Text stays text, so that `jq -r .value` prints what `get` prints.
//! ```text
//! UTF-8         "caf\u00e9\t"            JSON's own escapes, no others
//! other bytes   {"hex":"636166e909"}
//! with --hex    "636166e909"             what was asked for
//! ```
//! Invariant: without `--hex`, different byte strings look different.

use serde_json::Value;
use trommel_lab::to_hex;

/// Returns a key or a value as JSON.
pub(crate) fn json_bytes(bytes: &[u8], hex: bool) -> Value {
    if hex { to_hex(bytes).into() } else { trommel_lab::json_bytes(bytes) }
}

/// Returns at most `len_max` leading bytes of a value; text is cut between characters.
pub(crate) fn beginning(bytes: &[u8], len_max: usize) -> &[u8] {
    let len = len_max.min(bytes.len());
    let Ok(text) = std::str::from_utf8(bytes) else { return &bytes[..len] };
    let end = (0..=len).rev().find(|end| text.is_char_boundary(*end));
    &bytes[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test] // A tab was `\\t`, and a value could look like another one.
    fn text_is_as_it_is_and_other_bytes_are_hexadecimal() {
        assert_eq!(json_bytes("Zürich\t\\\n\0".as_bytes(), false), "Zürich\t\\\n\0");
        assert_eq!(json_bytes(b"\xff\x00a", false), json!({ "hex": "ff0061" }));
        assert_eq!(json_bytes(b"ff", false), "ff");
        assert_eq!(json_bytes(b"a", true), "61");
    }

    #[test]
    fn a_beginning_cuts_no_letter() {
        assert_eq!(beginning("añb".as_bytes(), 2), b"a");
        assert_eq!(beginning("añb".as_bytes(), 3), "añ".as_bytes());
        assert_eq!((beginning(b"a\xff\xfe", 2), beginning(b"ab", 9)), (&b"a\xff"[..], &b"ab"[..]));
    }
}
