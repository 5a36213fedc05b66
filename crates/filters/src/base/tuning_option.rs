//! Options of kinds of filters, as text.
//! ```text
//! surf_suffix = hash:4+real:8      prefix = sep:/      rosetta_range_bits = 10
//! ```
//! Invariant: what is written is read as the same.

use alloc::string::String;
use alloc::string::ToString;

use super::tuning::{FilterTuning, Tuning};
use core::fmt::Display;
use core::str::FromStr;

/// An option of a kind of filter beside its memory: for command lines and bindings.
pub struct TuningOption {
    /// Its name; no option of another kind has it.
    pub name: &'static str,
    /// What it may be.
    pub limits: &'static str,
    /// What it does.
    pub help: &'static str,
    /// Sets it from its text. The error says what it may be.
    pub read: fn(&mut FilterTuning, &str) -> Result<(), String>,
    /// Its text.
    pub write: fn(&FilterTuning) -> String,
}

impl TuningOption {
    /// The text of its default.
    pub fn default_text(&self) -> String {
        (self.write)(&FilterTuning::default())
    }

    /// Whether it is meant by a name, in which `-` is as good as `_`.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.bytes().eq(name.bytes().map(|byte| if byte == b'-' { b'_' } else { byte }))
    }
}

/// Sets a field of a tuning from its text.
pub fn read_tuning<T: Tuning, V: FromStr<Err: Display>>(
    tuning: &mut FilterTuning,
    text: &str,
    set: impl FnOnce(&mut T, V),
) -> Result<(), String> {
    let value = text.parse().map_err(|error| format!("'{text}': {error}"))?;
    tuning.change(|own| set(own, value));
    Ok(())
}

/// The text of an option that is not set.
const AUTO: &str = "auto";

/// As [`read_tuning`], of a field that may be left to the filter: `auto`.
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

/// The text of a field that may be left to the filter.
pub fn text_or_auto(value: Option<impl Display>) -> String {
    value.map_or_else(|| AUTO.into(), |value| value.to_string())
}
