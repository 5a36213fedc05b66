//! `lab scale`: simulates the trees of loads that no available machine can hold.
//! ```text
//!           keys       data  levels  runs  most  written    filter  needless  opens in
//! 10,000,000,000  372.5 GiB       5  14.3    29     7.5x  14.0 GiB    0.0031      38 s
//! ```
//! Invariant: the store's own code chooses each merge (`trommel::research::simulate_tree`).

use std::io::Write;

use clap::Args;
use serde::Serialize;
use trommel::Options;
use trommel::research::{Load, SimulatedTree, simulate_tree};
use trommel_lab::experiment::duration;

use super::measured_costs::{needless_reads, opening_seconds, opening_without_image_seconds};
use crate::args::policy::PolicyArgs;
use crate::args::values::{byte_count, large_number};
use crate::output::table::{TextTable, bytes, whole};
use crate::process::failure::{Failure, Outcome, Status};

pub(crate) const EXAMPLES: &str = "Examples: a thousand million keys and more; each overwritten ten times, levelled\n  \
    trommel lab scale --keys 1e9,1e10,1e11\n  \
    trommel lab scale --keys 1e9 --turnover 10 --policy leveling";

/// Approximate bytes of a memtable's entry beside its key and value.
const MEMTABLE_ENTRY_BYTES: f64 = 47.0;
/// The most flushes that can be simulated in reasonable time.
const FLUSHES_MAX: u64 = 1_000_000;

#[derive(Debug, Args)]
pub(crate) struct ScaleArgs {
    /// How many keys, like 1e9.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = large_number, default_value = "1e9")]
    keys: Vec<u64>,
    /// Of key and value.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "40")]
    entry_bytes: usize,
    /// How often each key is written.
    #[arg(long, value_name = "N", default_value_t = 1)]
    turnover: u64,
    #[command(flatten)]
    tree: TreeArgs,
}

/// How each simulated tree is kept.
#[derive(Debug, Args)]
pub(super) struct TreeArgs {
    /// Bytes of a flush of a tree.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "64MiB")]
    write_buffer: usize,
    /// Of the filter.
    #[arg(long, value_name = "BITS", default_value_t = 12.0)]
    pub(super) bits_per_key: f64,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// A load, and its tree.
#[derive(Serialize)]
struct Row {
    keys: u64,
    writes: u64,
    data_bytes: u64,
    flushes: u64,
    merges: u64,
    merges_into_last_level: u64,
    levels: usize,
    runs_mean: f64,
    runs_most: usize,
    written_per_flushed_byte: f64,
    filter_bytes: u64,
    needless_reads_per_miss: f64,
    open_seconds: f64,
    open_seconds_without_image: f64,
    runs: Vec<(usize, u64)>,
}

impl TreeArgs {
    /// Simulates the tree of `keys` keys, each written `turnover` times.
    ///
    /// # Errors
    /// There are too many flushes to simulate.
    pub(super) fn simulated(
        &self,
        keys: u64,
        turnover: u64,
        entry_bytes: usize,
    ) -> Result<SimulatedTree, Failure> {
        let in_memory = entry_bytes as f64 + MEMTABLE_ENTRY_BYTES;
        let flush_entries = ((self.write_buffer as f64 / in_memory) as u64).max(1);
        let writes = keys.checked_mul(turnover);
        let Some(entries) = writes.filter(|writes| writes / flush_entries <= FLUSHES_MAX) else {
            return Err(Failure::Usage(format!(
                "{} keys are more than {} flushes: a larger --write-buffer makes fewer",
                whole(keys),
                whole(FLUSHES_MAX)
            )));
        };
        let load = Load {
            entries,
            keys: (turnover > 1).then_some(keys),
            table_bytes: entry_bytes as f64,
            flush_entries,
        };
        let options = Options::new().size_ratio(self.policy.size_ratio());
        Ok(simulate_tree(&options.policy(self.policy.policy()), &load))
    }

    /// Returns the bytes of the filter of this many keys.
    pub(super) fn filter_bytes(&self, keys: u64) -> u64 {
        (keys as f64 * self.bits_per_key / 8.0) as u64
    }
}

pub(super) fn run(arguments: &ScaleArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let rows: Vec<Row> =
        arguments.keys.iter().map(|keys| arguments.row(*keys)).collect::<Result<_, Failure>>()?;
    if json {
        serde_json::to_writer(&mut *out, &rows)?;
        writeln!(out)?;
    } else {
        out.write_all(text(&rows).as_bytes())?;
    }
    Ok(Status::Fine)
}

impl ScaleArgs {
    fn row(&self, keys: u64) -> Result<Row, Failure> {
        let tree = self.tree.simulated(keys, self.turnover, self.entry_bytes)?;
        let runs: Vec<(usize, u64)> =
            tree.runs.iter().map(|run| (run.level, run.entries)).collect();
        Ok(Row {
            keys,
            writes: keys * self.turnover,
            data_bytes: tree.entries().saturating_mul(self.entry_bytes as u64),
            flushes: tree.flushes,
            merges: tree.merges,
            merges_into_last_level: tree.last_merges,
            levels: runs.last().map_or(0, |(level, _)| level + 1),
            runs_mean: tree.mean_runs,
            runs_most: tree.most_runs,
            written_per_flushed_byte: tree.write_amplification(),
            filter_bytes: self.tree.filter_bytes(tree.entries()),
            needless_reads_per_miss: needless_reads(self.tree.bits_per_key),
            open_seconds: opening_seconds(tree.entries()),
            open_seconds_without_image: opening_without_image_seconds(tree.entries()),
            runs,
        })
    }
}

/// Formats seconds in a fitting unit.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => format!("{:.0} ms", 1e3 * seconds),
        seconds if seconds < 10.0 => format!("{seconds:.1} s"),
        seconds => duration(seconds),
    }
}

fn text(rows: &[Row]) -> String {
    let heading = [
        "keys",
        "data",
        "levels",
        "runs",
        "most",
        "written",
        "filter",
        "needless",
        "opens in",
        "without image",
    ];
    let mut table = TextTable::new(0, &heading);
    for row in rows {
        table.row(vec![
            whole(row.keys),
            bytes(row.data_bytes),
            row.levels.to_string(),
            format!("{:.1}", row.runs_mean),
            row.runs_most.to_string(),
            format!("{:.1}x", row.written_per_flushed_byte),
            bytes(row.filter_bytes),
            format!("{:.4}", row.needless_reads_per_miss),
            time(row.open_seconds),
            time(row.open_seconds_without_image),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        scale: ScaleArgs,
    }

    fn output_of(line: &str) -> String {
        let line = Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace()));
        let mut out = Vec::new();
        match run(&line.expect("can be read").scale, false, &mut out) {
            Ok(_) => String::from_utf8(out).expect("text"),
            Err(Failure::Usage(wrong)) => wrong,
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn more_keys_make_more_runs_and_a_larger_filter() {
        let output = output_of("--keys 1000000,1000000000 --write-buffer 16MiB");
        let lines: Vec<&str> = output.lines().collect();
        // A heading, a rule, and a line for each load.
        assert_eq!(lines.len(), 4, "{output}");
        assert!(lines[2].contains("1,000,000") && lines[3].contains("1.4 GiB"), "{output}");
    }

    #[test]
    fn what_takes_too_long_is_refused() {
        let output = output_of("--keys 100000000000 --write-buffer 1KiB");
        assert!(output.contains("--write-buffer"), "{output}");
        let beyond_numbers = self::output_of("--keys 1e19 --turnover 1000");
        assert!(beyond_numbers.contains("--write-buffer"), "{beyond_numbers}");
    }
}
