//! Prints reports as JSON or as text.

use std::io::Write;

use serde::Serialize;

use crate::process::failure::Failure;

/// Prints one object, or an array of several.
pub(crate) fn print_json<T: Serialize>(out: &mut dyn Write, reports: &[T]) -> Result<(), Failure> {
    match reports {
        [report] => serde_json::to_writer(&mut *out, report)?,
        reports => serde_json::to_writer(&mut *out, reports)?,
    }
    writeln!(out)?;
    Ok(())
}

/// Prints an array, even of one object.
pub(crate) fn print_json_array<T: Serialize>(
    out: &mut dyn Write,
    reports: &[T],
) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, reports)?;
    writeln!(out)?;
    Ok(())
}

/// Prints reports as a JSON array, or as text.
pub(crate) fn print_reports<T: Serialize>(
    out: &mut dyn Write,
    json: bool,
    reports: &[T],
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if json { print_json_array(out, reports) } else { Ok(out.write_all(text().as_bytes())?) }
}
