//! Estimates the width of texts, since the reader's font is unknown.
//!
//! Invariant: the estimate is at least the width in wide fonts such as DejaVu Sans, so texts do not
//! overlap.

/// Returns the width of a text, in the units of `size`.
pub fn width_of(text: &str, size: f64) -> f64 {
    text.chars().map(letter).sum::<f64>() * size
}

/// Returns the width of a letter of size 1.
fn letter(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '!' => 0.33,
        'f' | 'r' | 't' | '(' | ')' | '-' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' => 0.96,
        letter if letter.is_uppercase() => 0.72,
        _ => 0.63,
    }
}
