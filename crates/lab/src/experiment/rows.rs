//! The output of a command as rows of named numbers and words.
//! ```text
//! { "guard": "grf", "point_miss": { "ns_per_op": 302.1 } }
//!                                         -->  guard = grf, point_miss.ns_per_op = 302.1
//!
//! rows = "filters.rates": every element of `rates` of every element of `filters` is a row,
//!                         and has the fields around it, too
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::experiment::number::exact;

/// A word, a number or a flag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A flag.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Flag(flag) => write!(f, "{flag}"),
            Scalar::Number(number) => write!(f, "{number}"),
            Scalar::Text(text) => f.write_str(text),
        }
    }
}

impl Scalar {
    /// Formats it for readers: numbers have commas.
    pub(crate) fn shown(&self) -> String {
        match self {
            Scalar::Number(number) => exact(*number),
            other => other.to_string(),
        }
    }

    /// Returns the number; None for other kinds.
    pub fn number(&self) -> Option<f64> {
        match self {
            Scalar::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// A row: fields by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(pub BTreeMap<String, Scalar>);

impl Row {
    /// Returns a field.
    pub fn get(&self, name: &str) -> Option<&Scalar> {
        self.0.get(name)
    }

    /// Returns a field if it is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(Scalar::number)
    }
}

/// Returns the rows of an output. Fields that the output lacks come from `given`.
pub(crate) fn rows_of(printed: &Value, path: Option<&str>, given: &[(String, Scalar)]) -> Vec<Row> {
    let path: Vec<&str> = path.map_or(Vec::new(), |path| path.split('.').collect());
    let around = Row(given.iter().cloned().collect());
    let mut rows = Vec::new();
    collect(printed, &path, &around, &mut rows);
    rows
}

/// Adds the rows of a value: an array of rows, or an object that is a row or contains rows.
fn collect(value: &Value, path: &[&str], around: &Row, rows: &mut Vec<Row>) {
    if let Value::Array(elements) = value {
        elements.iter().for_each(|element| collect(element, path, around, rows));
        return;
    }
    let mut row = around.clone();
    let Value::Object(fields) = value else { return };
    let below = path.first().and_then(|name| fields.get(*name));
    // Arrays other than those of the path do not belong to its rows.
    let is_around = |field: &Value| path.is_empty() || !field.is_array();
    fields
        .iter()
        .filter(|(_, field)| is_around(field))
        .for_each(|(name, field)| flatten(name, field, &mut row));
    match below {
        Some(below) => collect(below, &path[1..], &row, rows),
        None if path.is_empty() => rows.push(row),
        None => {}
    }
}

/// Adds a field, or the fields in it with names joined by dots.
fn flatten(name: &str, value: &Value, row: &mut Row) {
    let scalar = match value {
        Value::Null => return,
        Value::Bool(flag) => Scalar::Flag(*flag),
        Value::Number(number) => match number.as_f64() {
            Some(number) => Scalar::Number(number),
            None => return,
        },
        Value::String(text) => Scalar::Text(text.clone()),
        Value::Array(elements) => {
            let places = elements.iter().enumerate();
            places.for_each(|(place, element)| flatten(&format!("{name}.{place}"), element, row));
            return;
        }
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(inner, field)| flatten(&format!("{name}.{inner}"), field, row));
            return;
        }
    };
    row.0.insert(name.to_string(), scalar);
}
