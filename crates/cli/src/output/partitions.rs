//! Partitions of the last level, and a merge that proceeds from one to the next, for `inspect` and
//! `stats`.
//! ```text
//! partitions 12, 21.3 MiB on average; trimmed tables 3
//! parts      12, 33.5 KiB on average: bases 24.1 KiB, 20,480 keys; overlays 9.4 KiB, 3,012 entries
//!            a merge of runs of higher levels (5) is done up to drum
//! ```
//! Invariant: text leaves out a single partition and an absent merge; JSON has both.

use serde_json::{Value, json};
use trommel::stats::{PartitionStats, Stats};

use crate::output::keytext::show;
use crate::output::table::{bytes, whole};

/// Returns the partitions in key order. Keys are hexadecimal, since they need not be text.
pub(crate) fn partitions_json(stats: &Stats) -> Value {
    let partition = |partition: &PartitionStats| {
        json!({
            "from": show(&partition.from, true),
            "tables": partition.tables,
            "entries": partition.entries,
            "bytes": partition.bytes,
            "base_entries": partition.base_entries,
            "overlay_entries": partition.overlay_entries,
            "filter_bytes": partition.filter_bytes,
            "base_bytes": partition.base_bytes,
        })
    };
    let under_way = |merge: &trommel::stats::UnderWay| json!({ "runs": merge.runs, "done_to": show(&merge.done_to, true) });
    json!({
        "partitions": stats.partitions.iter().map(partition).collect::<Vec<_>>(),
        "under_way": stats.under_way.as_ref().map(under_way),
        "trimmed_tables": stats.trimmed_tables,
    })
}

/// Formats the means over the parts of a global filter. None: there is no such filter.
fn part_line(stats: &Stats) -> Option<String> {
    let parts = &stats.partitions;
    let mean = |of: &dyn Fn(&PartitionStats) -> u64| {
        parts.iter().map(of).sum::<u64>() / parts.len().max(1) as u64
    };
    let (all, base) = (mean(&|part| part.filter_bytes), mean(&|part| part.base_bytes));
    let (keys, entries) = (mean(&|part| part.base_entries), mean(&|part| part.overlay_entries));
    (all > 0).then(|| {
        format!(
            "parts      {}, {} on average: bases {}, {} keys; overlays {}, {} entries",
            whole(parts.len() as u64),
            bytes(all),
            bytes(base),
            whole(keys),
            bytes(all - base),
            whole(entries),
        )
    })
}

/// Returns the lines of text.
pub(crate) fn partition_lines(stats: &Stats) -> Vec<String> {
    let mut lines = Vec::new();
    let count = stats.partitions.len() as u64;
    if count > 1 {
        let all: u64 = stats.partitions.iter().map(|partition| partition.bytes).sum();
        let (each, trimmed) = (bytes(all / count), whole(stats.trimmed_tables));
        lines.push(format!(
            "partitions {}, {each} on average; trimmed tables {trimmed}",
            whole(count)
        ));
        lines.extend(part_line(stats));
    }
    if let Some(merge) = &stats.under_way {
        let (runs, key) = (whole(merge.runs), show(&merge.done_to, false));
        lines.push(format!(
            "           a merge of runs of higher levels ({runs}) is done up to {key}"
        ));
    }
    lines
}
