//! Options of filter kinds as text.
//! ```text
//! surf_suffix = hash:4+real:8      prefix = sep:/      rosetta_range_bits = 10
//! ```
//! Invariant: written text reads back as the same value.

use alloc::string::String;
use alloc::string::ToString;

use super::tuning::{FilterTuning, Tuning};
use core::fmt::Display;
use core::str::FromStr;

/// An option of a filter kind beyond bits per key, for command lines and bindings.
pub struct TuningOption {
    /// Its name, unique among all kinds.
    pub name: &'static str,
    /// Its allowed values.
    pub limits: &'static str,
    /// Its effect.
    pub help: &'static str,
    /// Sets the option from text. The error states the allowed values.
    pub read: fn(&mut FilterTuning, &str) -> Result<(), String>,
    /// Returns the option's value as text.
    pub write: fn(&FilterTuning) -> String,
}

impl TuningOption {
    /// Returns its default value as text.
    pub fn default_text(&self) -> String {
        (self.write)(&FilterTuning::default())
    }

    /// Whether `name` names this option. `-` and `_` are equivalent.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.bytes().eq(name.bytes().map(|byte| if byte == b'-' { b'_' } else { byte }))
    }
}

/// Parses `text` and sets a field of a tuning to the value.
pub fn read_tuning<T: Tuning, V: FromStr<Err: Display>>(
    tuning: &mut FilterTuning,
    text: &str,
    set: impl FnOnce(&mut T, V),
) -> Result<(), String> {
    let value = text.parse().map_err(|error| format!("'{text}': {error}"))?;
    tuning.change(|own| set(own, value));
    Ok(())
}

/// The text of a value that the filter chooses.
const AUTO: &str = "auto";

/// Same as [`read_tuning`], for an optional field: `auto` leaves the choice to the filter.
pub fn read_tuning_or_auto<T: Tuning, V: FromStr<Err: Display>>(
    tuning: &mut FilterTuning,
    text: &str,
    set: impl FnOnce(&mut T, Option<V>),
) -> Result<(), String> {
    if text == AUTO {
        tuning.change(|own| set(own, None));
        return Ok(());
    }
    read_tuning(tuning, text, |own, value| set(own, Some(value)))
}

/// Returns the text of an optional field, `auto` for None.
pub fn text_or_auto(value: Option<impl Display>) -> String {
    value.map_or_else(|| AUTO.into(), |value| value.to_string())
}
