//! How wide a text is, before it is known which font a reader has.
//!
//! Invariant: no less than in wide fonts such as DejaVu Sans, so that texts do not meet.

/// Of a text, in the units of its size.
pub fn width_of(text: &str, size: f64) -> f64 {
    text.chars().map(letter).sum::<f64>() * size
}

/// Of a letter, for the size 1.
fn letter(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '!' => 0.33,
        'f' | 'r' | 't' | '(' | ')' | '-' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' => 0.96,
        letter if letter.is_uppercase() => 0.72,
        _ => 0.63,
    }
}
