//! The tree and its guard as JSON, for `inspect`, `stats` and `demo`.
//! ```text
//! Stats --> policy, levels, guard
//! ```
//! Invariant: field names are an interface, and never change.

use serde_json::{Value, json};
use trommel::Policy;
use trommel::stats::{Metric, MetricValue, Stats};

/// Returns the merge policy as JSON.
pub(crate) fn policy_json(stats: &Stats) -> Value {
    let Policy { ratios, inner_runs, last_runs, delay_merges, .. } = &stats.policy;
    // An absent limit is null.
    let limit = |runs: u32| (runs < u32::MAX).then_some(runs);
    json!({
        "name": stats.policy.name(),
        "ratios": ratios,
        "inner_runs": inner_runs.iter().map(|&runs| limit(runs)).collect::<Vec<_>>(),
        "last_runs": limit(*last_runs),
        "delay_merges": delay_merges,
    })
}

/// Returns the levels as JSON, newest first.
pub(crate) fn levels_json(stats: &Stats) -> Value {
    let levels = stats.levels.iter().map(|level| {
        let runs = level.runs.iter().map(|run| {
            json!({
                "tables": run.tables, "entries": run.entries, "range_deletes": run.range_deletes,
                "bytes": run.bytes,
                "raw_bytes": run.raw_bytes, "dictionary_bytes": run.dictionary_bytes,
                "span": [run.span.0, run.span.1], "units": run.units,
            })
        });
        json!({
            "level": level.level, "size_ratio": level.size_ratio, "runs_max": level.runs_max,
            "compression": level.compression.to_string(),
            "runs": runs.collect::<Vec<_>>(),
        })
    });
    levels.collect()
}

/// Returns every number of a store by its path: `guard.seconds` is `{"guard": {"seconds": ...}}`.
/// Numbers of queries are below the kind of query; other labelled numbers form a list.
pub(crate) fn metrics_json(stats: &Stats) -> Value {
    let mut all = json!({});
    for Metric { name, label, value, .. } in stats.metrics() {
        let value = match value {
            MetricValue::Whole(value) => json!(value),
            MetricValue::Real(value) => json!(value),
        };
        match (label, name.strip_prefix("query.")) {
            (Some((_, kind)), Some(field)) => all[kind][field] = value,
            (label, _) => {
                let place = name.split('.').fold(&mut all, |place, step| &mut place[step]);
                match (label, place) {
                    (None, place) => *place = value,
                    (Some(_), Value::Array(values)) => values.push(value),
                    (Some(_), place) => *place = json!([value]),
                }
            }
        }
    }
    all
}

/// Adds the fields of one object to another.
pub(crate) fn extend(object: &mut Value, fields: Value) {
    if let (Value::Object(object), Value::Object(fields)) = (object, fields) {
        object.extend(fields);
    }
}

/// Returns the guard as JSON.
pub(crate) fn guard_json(stats: &Stats) -> Value {
    let guard = &stats.guard;
    let mut all = metrics_json(stats)["guard"].take();
    if guard.elastic.is_none() {
        all["elastic"] = Value::Null;
    }
    let locator = guard.locator.map(|locator| {
        json!({
            "bytes": locator.bytes,
            "overflow_bytes": locator.overflow_bytes,
            "entries": locator.entries,
            "room": locator.room,
        })
    });
    let others = json!({
        "kind": guard.kind.name(),
        "built_at_open": guard.built_at_open,
        "damaged": guard.damaged,
        "unregistered": guard.unregistered,
        "tuning": guard.tuning,
        "locator": locator,
        "part_bits": guard.part_bits,
    });
    extend(&mut all, others);
    all
}
