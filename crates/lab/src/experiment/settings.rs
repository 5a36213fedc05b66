//! The settings of a run: options of a command. Some have several values, some depend on the scale.
//! ```text
//! keys = { small = 400000, full = 10000000 }     one value, by scale
//! bits-per-key = [8, 10, 12]                      an axis: a step for each
//! no-sync = true                                  an option without a value; false: it is left out
//! ```
//! Invariant: the last axis moves fastest, as in nested loops written in the file's order.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::experiment::plan::Scale;
use crate::experiment::rows::Scalar;

/// Options and their values, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings(Vec<(String, Choice)>);

/// The values of an option at each scale.
#[derive(Clone, Debug, PartialEq)]
struct Choice {
    small: Vec<Scalar>,
    full: Vec<Scalar>,
}

impl Settings {
    /// Returns all combinations of values at a scale.
    pub(crate) fn choices(&self, scale: Scale) -> Vec<Vec<(String, Scalar)>> {
        let mut all = vec![Vec::new()];
        for (name, choice) in &self.0 {
            let values = match scale {
                Scale::Small => &choice.small,
                Scale::Full => &choice.full,
            };
            let longer = |so_far: Vec<(String, Scalar)>| {
                values.iter().map(move |value| {
                    let mut so_far = so_far.clone();
                    so_far.push((name.clone(), value.clone()));
                    so_far
                })
            };
            all = all.into_iter().flat_map(longer).collect();
        }
        all
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let table = toml::Table::deserialize(source)?;
        let read = |(name, value): (String, toml::Value)| {
            let choice = Choice::read(&value)
                .map_err(|problem| D::Error::custom(format!("{name}: {problem}")))?;
            Ok((name, choice))
        };
        table.into_iter().map(read).collect::<Result<Vec<_>, _>>().map(Settings)
    }
}

impl Choice {
    fn read(value: &toml::Value) -> Result<Self, String> {
        let toml::Value::Table(scales) = value else {
            let values = axis(value)?;
            return Ok(Choice { small: values.clone(), full: values });
        };
        let of_scale = |name: &str| {
            let value = scales.get(name);
            value.ok_or_else(|| {
                format!("by scale it is {{ small = ..., full = ... }}; {name} is missing")
            })
        };
        let choice = Choice { small: axis(of_scale("small")?)?, full: axis(of_scale("full")?)? };
        match scales.keys().find(|name| !["small", "full"].contains(&name.as_str())) {
            Some(other) => Err(format!("there is no scale '{other}'; there are: small, full")),
            None => Ok(choice),
        }
    }
}

/// Reads one value, or several.
fn axis(value: &toml::Value) -> Result<Vec<Scalar>, String> {
    match value {
        toml::Value::Array(values) if values.is_empty() => Err("an axis needs a value".into()),
        toml::Value::Array(values) => values.iter().map(scalar).collect(),
        value => scalar(value).map(|value| vec![value]),
    }
}

/// Reads one value of an option.
pub(crate) fn scalar(value: &toml::Value) -> Result<Scalar, String> {
    match value {
        toml::Value::String(text) => Ok(Scalar::Text(text.clone())),
        toml::Value::Integer(number) => Ok(Scalar::Number(*number as f64)),
        toml::Value::Float(number) => Ok(Scalar::Number(*number)),
        toml::Value::Boolean(flag) => Ok(Scalar::Flag(*flag)),
        other => Err(format!("a number, a text, true or false, not a {}", other.type_str())),
    }
}
