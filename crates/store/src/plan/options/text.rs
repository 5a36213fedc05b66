//! The text form of option values.
//! ```text
//! numbers  12, 0.5, 64MiB     switches  true, false     optional ones  auto, or the value
//! names    grf, leveling, io_uring, ...                 direct  none, all, reads,merges
//! ```
//! Invariant: a written text is read as the same value.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use crate::entries::compression::Compression;
use crate::entries::merge_operator::OperatorOption;
use crate::plan::background::Background;
use crate::plan::guard_kind::GuardKind;
use crate::plan::partitions::Granularity;
use crate::plan::policy::Policy;
use crate::plan::sync_policy::SyncPolicy;
use crate::storage::io_mode::{DirectIo, Overlap};

/// A value that has a text.
pub(super) trait OptionText: Sized {
    /// The kind of the text.
    const KIND: &'static str;

    /// Reads a value from its text. The error says what is allowed.
    fn read(text: &str) -> Result<Self, String>;

    /// Returns the text of the value.
    fn text(&self) -> String;
}

/// Units of numbers, largest first.
const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
/// From here on, numbers are written with a unit.
const WITH_UNIT: u64 = 1 << 16;

/// Parses a number like 4096, 64KiB, 32MiB or 1GiB. The error gives these examples.
pub fn whole_number(text: &str) -> Result<u64, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    let is_unit =
        |name: &str| unit.eq_ignore_ascii_case(name) || unit.eq_ignore_ascii_case(&name[..1]);
    let shift = match UNITS.iter().find(|(name, _)| is_unit(name)) {
        Some((_, shift)) => *shift,
        None if unit.is_empty() || unit.eq_ignore_ascii_case("b") => 0,
        None => return Err(format!("'{text}' is no number like 4096, 64KiB, 32MiB or 1GiB")),
    };
    let number = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| format!("'{text}' is no number like 4096 or 64MiB"))
}

fn whole_text(number: u64) -> String {
    let fits = |(_, shift): &&(&str, u32)| number.is_multiple_of(1 << shift);
    match UNITS.iter().find(fits).filter(|_| number >= WITH_UNIT) {
        Some((unit, shift)) => format!("{}{unit}", number >> shift),
        None => number.to_string(),
    }
}

macro_rules! whole_numbers {
    ($($type:ty),+) => {
        $(impl OptionText for $type {
            const KIND: &'static str = "number";

            fn read(text: &str) -> Result<Self, String> {
                let number = whole_number(text)?;
                Self::try_from(number).map_err(|_| format!("{text} is more than {}", Self::MAX))
            }

            fn text(&self) -> String {
                whole_text(*self as u64)
            }
        })+
    };
}

whole_numbers!(u8, u32, u64, usize);

impl OptionText for f64 {
    const KIND: &'static str = "number";

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("'{text}' is no number like 12 or 0.5"))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl OptionText for Duration {
    const KIND: &'static str = "number";

    fn read(text: &str) -> Result<Self, String> {
        let seconds = text.parse().ok().map(Duration::try_from_secs_f64);
        let time = seconds.and_then(Result::ok);
        time.ok_or_else(|| format!("'{text}' is no number of seconds like 12 or 0.5"))
    }

    fn text(&self) -> String {
        self.as_secs_f64().to_string()
    }
}

impl OptionText for bool {
    const KIND: &'static str = "switch";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err(format!("'{text}' is neither true nor false")),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// The text of an option without a value.
const AUTO: &str = "auto";

impl<T: OptionText> OptionText for Option<T> {
    const KIND: &'static str = T::KIND;

    fn read(text: &str) -> Result<Self, String> {
        if text == AUTO { Ok(None) } else { T::read(text).map(Some) }
    }

    fn text(&self) -> String {
        self.as_ref().map_or_else(|| AUTO.to_string(), T::text)
    }
}

/// Reads a value whose type parses its own text.
fn named<T: FromStr<Err = String> + Display>(text: &str) -> Result<T, String> {
    text.parse()
}

macro_rules! named {
    ($($type:ty),+) => {
        $(impl OptionText for $type {
            const KIND: &'static str = "name";

            fn read(text: &str) -> Result<Self, String> {
                named(text)
            }

            fn text(&self) -> String {
                self.to_string()
            }
        })+
    };
}

named!(
    Background,
    Compression,
    DirectIo,
    Granularity,
    GuardKind,
    OperatorOption,
    Overlap,
    Policy,
    SyncPolicy
);
