//! Escapes bytes as text for one column of one line.
//! ```text
//! caf\xe9\t    printable UTF-8 as it is, other bytes escaped; a backslash is doubled
//! ```
//! Invariants: `unescaped(escaped(bytes)) == bytes`. Escaped text has no line ends and no tabs.

/// Returns bytes as escaped text.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '\t' => text.push_str("\\t"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                letter if letter.is_control() => {
                    let mut buffer = [0; 4];
                    let bytes = letter.encode_utf8(&mut buffer).bytes();
                    bytes.for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
                }
                letter => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// Returns the bytes of escaped text.
///
/// # Errors
/// A message if a backslash is followed by no known escape.
pub fn unescaped(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        let (byte, len) = escape(&rest[at + 1..]).ok_or_else(|| {
            let shown = rest[at..].iter().take(4).copied().collect::<Vec<u8>>();
            let shown = String::from_utf8_lossy(&shown).into_owned();
            format!("{shown} is no escape: there are \\\\, \\t, \\n, \\r and \\xHH")
        })?;
        bytes.push(byte);
        rest = &rest[at + 1 + len..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

/// Returns the byte that follows a backslash in escaped form, and the length of that form.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    match text {
        [b'\\', ..] => Some((b'\\', 1)),
        [b't', ..] => Some((b'\t', 1)),
        [b'n', ..] => Some((b'\n', 1)),
        [b'r', ..] => Some((b'\r', 1)),
        [b'x', high, low, ..] => Some((digit(*high)? << 4 | digit(*low)?, 3)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_as_it_is_and_other_bytes_are_escaped() {
        assert_eq!(escaped("Zürich".as_bytes()), "Zürich");
        assert_eq!(escaped(b"a\tb\\c\xff\0\n"), "a\\tb\\\\c\\xff\\x00\\n");
        assert_eq!(escaped("\u{85}".as_bytes()), "\\xc2\\x85");
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).chain("\\x41 Zürich \u{85}\u{2028}".bytes()).collect();
        assert_eq!(unescaped(escaped(&all).as_bytes()), Ok(all));
        for wrong in ["\\", "a\\q", "\\x4", "\\xg0", "\\x+1"] {
            let problem = unescaped(wrong.as_bytes()).expect_err(wrong);
            assert!(problem.contains("is no escape"), "{problem}");
        }
    }
}
