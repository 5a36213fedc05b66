//! All rows of a study as one comma-separated table, for other programs (RFC 4180).

use std::collections::BTreeSet;

use crate::experiment::study::Study;

/// Returns a line for each row and a column for each field of any row. The first line has the
/// names.
pub fn csv(study: &Study) -> String {
    let columns: BTreeSet<&String> = study.rows.iter().flat_map(|row| row.0.keys()).collect();
    let heading = columns.iter().map(|name| quoted(name));
    let mut text = heading.collect::<Vec<_>>().join(",") + "\r\n";
    for row in &study.rows {
        let cells = columns
            .iter()
            .map(|name| row.get(name).map_or(String::new(), |value| quoted(&value.to_string())));
        text.push_str(&cells.collect::<Vec<_>>().join(","));
        text.push_str("\r\n");
    }
    text
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}
