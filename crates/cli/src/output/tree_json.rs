//! The tree and its guard as JSON, as `inspect`, `stats` and `demo` print them.
//! ```text
//! Stats --> policy, levels, guard
//! ```
//! Invariant: the field names are an interface, and stay.

use serde_json::{Value, json};
use trommel::{ElasticStats, Policy, Stats};

/// When runs merge, as JSON.
pub(crate) fn policy_json(stats: &Stats) -> Value {
    let Policy { ratios, inner_runs, last_runs, delay_merges } = &stats.policy;
    // No limit is no number.
    let limit = |runs: u32| (runs < u32::MAX).then_some(runs);
    json!({
        "name": stats.policy.name(),
        "ratios": ratios,
        "inner_runs": inner_runs.iter().map(|&runs| limit(runs)).collect::<Vec<_>>(),
        "last_runs": limit(*last_runs),
        "delay_merges": delay_merges,
    })
}

/// The levels as JSON, newest first.
pub(crate) fn levels_json(stats: &Stats) -> Value {
    let levels = stats.levels.iter().map(|level| {
        let runs = level.runs.iter().map(|run| {
            json!({
                "tables": run.tables, "entries": run.entries, "range_deletes": run.range_deletes,
                "bytes": run.bytes,
                "span": [run.span.0, run.span.1], "units": run.units,
            })
        });
        json!({
            "level": level.level, "size_ratio": level.size_ratio, "runs_max": level.runs_max,
            "runs": runs.collect::<Vec<_>>(),
        })
    });
    levels.collect()
}

fn elastic_json(elastic: &ElasticStats) -> Value {
    json!({
        "budget_bytes": elastic.budget_bytes,
        "unit_bytes": elastic.unit_bytes,
        "tables_by_units": elastic.tables_by_units,
        "loads": elastic.loads,
        "drops": elastic.drops,
        "counted_gets": elastic.counted_gets,
        "expected_rate": elastic.expected_rate,
    })
}

/// The guard as JSON.
pub(crate) fn guard_json(stats: &Stats) -> Value {
    let guard = &stats.guard;
    json!({
        "kind": guard.kind.name(),
        "bits_per_key": guard.bits_per_key,
        "memory_bytes": guard.memory_bytes,
        "base_bytes": guard.base_bytes,
        "overlay_bytes": guard.overlay_bytes,
        "base_entries": guard.base_entries,
        "overlay_entries": guard.overlay_entries,
        "built_at_open": guard.built_at_open,
        "open_seconds": guard.open_seconds,
        "seconds": guard.seconds,
        "rebuild_peak_bytes": guard.rebuild_peak_bytes,
        "damaged": guard.damaged,
        "told": guard.told,
        "elastic": guard.elastic.as_ref().map(elastic_json),
        "located": guard.located.map(|located| json!({
            "bytes": located.bytes,
            "overflow_bytes": located.overflow_bytes,
            "entries": located.entries,
            "room": located.room,
        })),
    })
}
