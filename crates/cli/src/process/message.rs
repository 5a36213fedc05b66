//! Messages on standard error: text, or with `--json` one JSON object per line.
//! ```text
//! trommel: words: there is no store here
//! {"error":{"kind":"data","message":"words: there is no store here","status":3}}
//! ```
//! Invariant: with `--json`, standard error has only such lines, except for the progress of long
//! measurements and the output of other programs.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

static AS_JSON: AtomicBool = AtomicBool::new(false);

/// Switches all further messages to JSON.
pub(crate) fn speak_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

/// Prints what went wrong and what to do about it, before the process ends with this status.
pub(crate) fn error(kind: &str, status: u8, message: &str, hint: Option<&str>) {
    let mut error = json!({ "kind": kind, "status": status, "message": message });
    if let Some(hint) = hint {
        error["hint"] = hint.into();
    }
    let lines = [Some(message), hint].into_iter().flatten();
    tell(&json!({ "error": error }), lines);
}

/// Prints a warning.
pub(crate) fn warning(message: &str) {
    tell(&json!({ "warning": message }), [message]);
}

/// Prints the result of a command whose standard output is used for data.
pub(crate) fn result(text: &str, object: &Value) {
    tell(object, [text]);
}

/// Prints a line as it is.
pub(crate) fn line(text: &str) {
    // If standard error cannot be written, no output is left for a message.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn tell<'a>(object: &Value, lines: impl IntoIterator<Item = &'a str>) {
    let mut out = std::io::stderr().lock();
    let written = match AS_JSON.load(Ordering::Relaxed) {
        true => writeln!(out, "{object}"),
        false => lines.into_iter().try_for_each(|line| writeln!(out, "trommel: {line}")),
    };
    // If standard error cannot be written, no output is left for a message.
    let _ = written;
}
