//! `lab cluster`: computes the needs of instances that share a state.
//! ```text
//! state    instances   of each: keys  disk  filter  runs   restart   takeover   changelog
//! ```
//! Invariant: the tree of a task comes from `lab scale`; everything else is arithmetic with the
//! formulas of docs/scale.md.

use std::io::Write;

use clap::Args;
use serde::Serialize;

use super::measured_costs::{needless_reads, opening_seconds};
use super::scale::{TreeArgs, time};
use crate::args::values::{byte_count, large_number};
use crate::output::table::{TextTable, bytes, whole};
use crate::process::failure::{Failure, Outcome, Status};

pub(crate) const EXAMPLES: &str = "Examples: from three to a thousand instances; a copy of each task on another instance\n  \
    trommel lab cluster --state 1TB,100TB --instances 3,30,1000\n  \
    trommel lab cluster --state 10TB --instances 30 --standbys 1 --writes 2e6";

/// Bytes of a changelog record beside its key and value, in batches of many records.
const RECORD_BYTES: f64 = 12.0;

/// How often each key is written until the cost of merges is steady.
const STEADY_TURNOVER: u64 = 3;
const TERABYTE: f64 = 1e12;

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Bytes of keys and values in all, like 10TB. Their copies do not count.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = large_number, default_value = "1TB,10TB,100TB,1PB")]
    state: Vec<u64>,
    /// How many instances hold it.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1_000_000), default_value = "3,30,300,1000")]
    instances: Vec<u64>,
    /// Tasks of an instance, each with a tree of its own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), default_value_t = 32)]
    tasks: u64,
    /// Of key and value.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "100")]
    entry_bytes: usize,
    /// How many other instances have a copy of a task's state.
    #[arg(long, value_name = "N", default_value_t = 0)]
    standbys: u64,
    /// Writes in a second, of all instances together.
    #[arg(long, value_name = "N", value_parser = large_number, default_value = "1e6")]
    writes: u64,
    /// Of how many brokers each has the changelog.
    #[arg(long, value_name = "N", default_value_t = 3)]
    replication: u64,
    /// Records of a changelog that an instance restores in a second.
    #[arg(long, value_name = "N", value_parser = large_number, default_value = "200000")]
    restored: u64,
    #[command(flatten)]
    tree: TreeArgs,
}

/// The needs of the instances that share one state.
#[derive(Serialize)]
struct Row {
    state_bytes: u64,
    instances: u64,
    keys_each: u64,
    data_bytes_each: u64,
    filter_bytes_each: u64,
    runs_of_a_task: f64,
    needless_reads_per_miss: f64,
    /// Seconds from a kill to the first answers, for an instance whose folder still exists.
    restart_seconds: f64,
    /// Seconds until the other instances have restored the state of one whose folder is lost; 0
    /// with a standby.
    takeover_seconds: f64,
    disk_written_each_per_second: f64,
    changelog_bytes_per_second: f64,
    changelog_bytes: u64,
}

pub(super) fn run(arguments: &ClusterArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let mut rows = Vec::new();
    for state in &arguments.state {
        for instances in &arguments.instances {
            rows.push(arguments.row(*state, *instances)?);
        }
    }
    if json {
        serde_json::to_writer(&mut *out, &rows)?;
        writeln!(out)?;
    } else {
        out.write_all(text(&rows).as_bytes())?;
    }
    Ok(Status::Fine)
}

impl ClusterArgs {
    fn row(&self, state: u64, instances: u64) -> Result<Row, Failure> {
        self.check(instances)?;
        let copies = 1 + self.standbys;
        let keys = state / self.entry_bytes as u64;
        let keys_each = keys.saturating_mul(copies).div_ceil(instances);
        let keys_of_task = keys_each.div_ceil(self.tasks);
        let tree = self.tree.simulated(keys_of_task, STEADY_TURNOVER, self.entry_bytes)?;
        let writes_each = self.writes as f64 * copies as f64 / instances as f64;
        let record_bytes = self.entry_bytes as f64 + RECORD_BYTES;
        // The other instances restore equal parts of the lost state at the same time.
        let lost_each = keys_each as f64 / (instances - 1).max(1) as f64;
        let takeover_seconds =
            if self.standbys > 0 { 0.0 } else { lost_each / self.restored as f64 };
        Ok(Row {
            state_bytes: state,
            instances,
            keys_each,
            data_bytes_each: keys_each.saturating_mul(self.entry_bytes as u64),
            filter_bytes_each: self.tree.filter_bytes(keys_each),
            runs_of_a_task: tree.mean_runs,
            needless_reads_per_miss: needless_reads(self.tree.bits_per_key),
            restart_seconds: opening_seconds(keys_each),
            takeover_seconds,
            // Each write goes to the log once more.
            disk_written_each_per_second: writes_each
                * self.entry_bytes as f64
                * (1.0 + tree.write_amplification()),
            changelog_bytes_per_second: self.writes as f64 * record_bytes * self.replication as f64,
            changelog_bytes: (keys as f64 * record_bytes * self.replication as f64) as u64,
        })
    }

    fn check(&self, instances: u64) -> Result<(), Failure> {
        if self.entry_bytes == 0 || self.restored == 0 {
            let wrong = "--entry-bytes and --restored are at least 1";
            return Err(Failure::Usage(wrong.into()));
        }
        if self.standbys >= instances {
            return Err(Failure::Usage(format!(
                "{} instances cannot have {} copies beside the first: fewer --standbys",
                instances, self.standbys
            )));
        }
        Ok(())
    }
}

fn text(rows: &[Row]) -> String {
    let heading = [
        "state",
        "instances",
        "keys each",
        "data",
        "filter",
        "runs",
        "restart",
        "takeover",
        "disk/s",
        "changelog/s",
        "changelog",
    ];
    let mut table = TextTable::new(0, &heading);
    for row in rows {
        table.row(vec![
            format!("{} TB", row.state_bytes as f64 / TERABYTE),
            whole(row.instances),
            whole(row.keys_each),
            bytes(row.data_bytes_each),
            bytes(row.filter_bytes_each),
            format!("{:.1}", row.runs_of_a_task),
            time(row.restart_seconds),
            time(row.takeover_seconds),
            bytes(row.disk_written_each_per_second as u64),
            bytes(row.changelog_bytes_per_second as u64),
            bytes(row.changelog_bytes),
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
        cluster: ClusterArgs,
    }

    fn row(line: &str) -> Result<Row, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(line.split_whitespace()));
        let cluster = line.expect("can be read").cluster;
        match cluster.row(cluster.state[0], cluster.instances[0]) {
            Ok(row) => Ok(row),
            Err(Failure::Usage(wrong)) => Err(wrong),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn ten_times_the_instances_hold_a_tenth_each_and_restart_sooner() {
        let few = row("--state 1TB --instances 10").expect("can be");
        let many = row("--state 1TB --instances 100").expect("can be");
        assert_eq!((few.keys_each, many.keys_each), (1_000_000_000, 100_000_000));
        assert!((9.9..10.1).contains(&(few.restart_seconds / many.restart_seconds)));
        // 1e9 keys of 12 bits; nine other instances restore them at 200,000 keys a second each.
        assert_eq!(few.filter_bytes_each, 1_500_000_000);
        assert!((550.0..560.0).contains(&few.takeover_seconds), "{}", few.takeover_seconds);
        assert_eq!(few.changelog_bytes, many.changelog_bytes);
    }

    #[test]
    fn standbys_hold_more_and_take_over_at_once() {
        let row = row("--state 1TB --instances 10 --standbys 1").expect("can be");
        assert_eq!((row.keys_each, row.takeover_seconds), (2_000_000_000, 0.0));
        assert!(self::row("--state 1TB --instances 1 --standbys 1").is_err());
        assert!(self::row("--state 1TB --instances 3 --entry-bytes 0").is_err());
        // Numbers that overflow are an error and never a panic.
        let huge = "--state 18000PB --instances 1000000 --standbys 999999 --writes 18000PB";
        assert!(self::row(huge).is_err());
        assert!(self::row(&format!("{huge} --tasks 1000000 --entry-bytes 64MiB")).is_ok());
    }
}
