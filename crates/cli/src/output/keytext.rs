//! Keys and values as text, and back.
//! ```text
//! text   caf\xe9\t      printable UTF-8 as it is, other bytes escaped; a backslash is doubled
//! hex    636166e909
//! ```
//! Invariant: printed text is one line without tabs, so columns stay aligned.

use trommel_lab::{escaped, from_hex, to_hex};

use crate::process::failure::Failure;

/// Parses a key or a value from the command line.
pub(crate) fn read(text: &str, hex: bool) -> Result<Vec<u8>, Failure> {
    if !hex {
        return Ok(text.as_bytes().to_vec());
    }
    from_hex(text.as_bytes())
        .ok_or_else(|| Failure::Usage(format!("'{text}' is not hexadecimal: pairs of 0-9, a-f")))
}

/// Formats a key or a value for printing.
pub(crate) fn show(bytes: &[u8], hex: bool) -> String {
    if hex { to_hex(bytes) } else { escaped(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_printed_as_it_is_and_bytes_are_escaped() {
        assert_eq!(show("Zürich".as_bytes(), false), "Zürich");
        assert_eq!(show(b"a\tb\\c\xff\0\n", false), "a\\tb\\\\c\\xff\\x00\\n");
        assert_eq!(show("\u{85}".as_bytes(), false), "\\xc2\\x85");
        assert_eq!(show(b"\x00\xff", true), "00ff");
    }

    #[test]
    fn keys_are_text_or_hex() {
        assert_eq!(read("00fF", true).ok(), Some(vec![0, 255]));
        assert!(read("xyz", true).is_err());
        assert_eq!(read("xyz", false).ok(), Some(b"xyz".to_vec()));
    }
}
