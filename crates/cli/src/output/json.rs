//! Reports as JSON.

use std::io::Write;

use serde::Serialize;

use crate::process::failure::Failure;

/// One object, or an array of several.
pub(crate) fn print_json<T: Serialize>(out: &mut dyn Write, reports: &[T]) -> Result<(), Failure> {
    match reports {
        [report] => serde_json::to_writer(&mut *out, report)?,
        reports => serde_json::to_writer(&mut *out, reports)?,
    }
    writeln!(out)?;
    Ok(())
}

/// An array, of one object too.
pub(crate) fn print_json_array<T: Serialize>(
    out: &mut dyn Write,
    reports: &[T],
) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, reports)?;
    writeln!(out)?;
    Ok(())
}
