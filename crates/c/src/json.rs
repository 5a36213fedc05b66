//! Reports as JSON.
//!
//! Invariant: field names are those of the command line's JSON, and never change.

use std::ffi::CString;

use serde_json::{Value, json};
use store::backup::{BackupReport, Generation};
use store::stats::{Metric, MetricValue, Stats};
use store::tools::{LogCounts, RepairReport, VerifyReport};

use crate::text::c_string;

pub(crate) fn text_of(json: &Value) -> CString {
    c_string(&json.to_string())
}

/// Returns every number by its path: `guard.seconds` is `{"guard": {"seconds": ...}}`. Numbers of
/// queries are below the kind of query; other labelled numbers form an object with a field per
/// label.
pub(crate) fn stats_json(stats: &Stats) -> Value {
    let mut all = json!({ "guard": { "kind": stats.guard.kind.name() } });
    for Metric { name, label, value, .. } in stats.metrics() {
        let value = match value {
            MetricValue::Whole(value) => json!(value),
            MetricValue::Real(value) => json!(value),
        };
        match (label, name.strip_prefix("query.")) {
            (Some((_, kind)), Some(field)) => all[kind][field] = value,
            (label, _) => {
                let place = name.split('.').fold(&mut all, |place, step| &mut place[step]);
                match label {
                    None => *place = value,
                    Some((_, of)) => place[of] = value,
                }
            }
        }
    }
    all["failure"] = json!(stats.failure.as_ref().map(ToString::to_string));
    all
}

fn logs_json(logs: &LogCounts) -> Value {
    json!({
        "files": logs.files, "bytes": logs.bytes, "groups": logs.groups, "entries": logs.entries,
    })
}

pub(crate) fn verify_json(report: &VerifyReport) -> Value {
    json!({
        "ok": report.damage.is_empty(), "tables": report.tables, "entries": report.entries,
        "bytes": report.bytes, "logs": logs_json(&report.logs),
        "memtable_entries": report.memtable_entries, "damage": report.damage,
    })
}

pub(crate) fn repair_json(report: &RepairReport) -> Value {
    let lost = report.lost.iter().map(|loss| {
        json!({
            "file": loss.file, "offset": loss.offset, "what": loss.what, "entries": loss.entries,
        })
    });
    let doubts = report
        .doubts
        .iter()
        .map(|doubt| json!({ "file": doubt.file, "offset": doubt.offset, "what": doubt.what }));
    json!({
        "changed": report.changed, "manifest_rebuilt": report.manifest_rebuilt,
        "tables": report.tables, "entries": report.entries, "logs": logs_json(&report.logs),
        "rewritten": report.rewritten, "saved_from_logs": report.saved_from_logs,
        "lost": lost.collect::<Vec<_>>(), "doubts": doubts.collect::<Vec<_>>(),
        "notes": report.notes, "set_aside": report.set_aside,
    })
}

pub(crate) fn generations_json(generations: &[Generation]) -> Value {
    let all = generations.iter().map(|generation| {
        json!({
            "number": generation.number, "sequence": generation.sequence,
            "milliseconds": generation.milliseconds, "files": generation.files.len(),
            "bytes": generation.bytes(),
        })
    });
    all.collect()
}

pub(crate) fn backup_json(report: &BackupReport) -> Value {
    let damage = report.damage.iter();
    let damage = damage.map(|it| json!({ "path": it.path.to_string_lossy(), "what": it.what }));
    json!({
        "ok": report.damage.is_empty(), "files": report.files, "bytes": report.bytes,
        "damage": damage.collect::<Vec<_>>(),
    })
}
