//! `bench readers`: measures gets of one reader and of several, and prints the results.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use trommel::GuardKind;
use trommel_lab::{ReadersPlan, bench_readers};

use crate::args::guards::guard;
use crate::args::values::byte_count;
use crate::output::json::print_json;
use crate::output::progress::StageBar;
use crate::output::table::{TextTable, nanoseconds, whole};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;
use crate::process::temporary::TemporaryFolder;

#[derive(Debug, Args)]
pub(crate) struct BenchReadersArgs {
    /// How many threads read at once, to be compared with one.
    #[arg(long, value_name = "N", default_value_t = 4)]
    threads: usize,
    /// Keys in the store.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    keys: u64,
    /// Bytes of a value.
    #[arg(long, value_name = "N", default_value_t = 100)]
    value_bytes: usize,
    /// Gets of each reader in a round; half of them of keys that are there.
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    queries: u64,
    /// Rounds, of which the median counts.
    #[arg(long, value_name = "N", default_value_t = 9)]
    rounds: usize,
    /// The writer's share of a core; 0: nobody writes.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    writer_share: f64,
    /// The guard.
    #[arg(long, value_name = "NAME", value_parser = guard, default_value = "grf")]
    guard: GuardKind,
    /// Memory for blocks that were read.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "256MiB")]
    block_cache: usize,
    /// Memory for new entries.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "4MiB")]
    write_buffer: usize,
    /// Seed of keys and questions.
    #[arg(long, value_name = "S", default_value_t = 42)]
    seed: u64,
    /// Where to make the store, a new folder; it stays there. [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
}

pub(crate) fn run(arguments: &BenchReadersArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let temporary = TemporaryFolder::new()?;
    let plan = ReadersPlan {
        guard: arguments.guard,
        keys: arguments.keys,
        value_bytes: arguments.value_bytes,
        threads: arguments.threads,
        queries: arguments.queries,
        rounds: arguments.rounds,
        writer_share: arguments.writer_share,
        block_cache_bytes: arguments.block_cache,
        write_buffer_bytes: arguments.write_buffer,
        seed: arguments.seed,
        folder: arguments.db.clone().unwrap_or_else(|| temporary.path().join("store")),
    };
    let report = bench_readers(&plan, &mut StageBar::default())?;
    if json {
        print_json(out, std::slice::from_ref(&report))?;
    } else {
        let mut table =
            TextTable::new(1, &["", "one reader", &format!("{} readers", report.threads)]);
        let (one, many) = (report.cpu_ns_one, report.cpu_ns_many);
        table.row(vec!["CPU time of a get".into(), nanoseconds(one), nanoseconds(many)]);
        let (one, many) = (report.gets_per_s_one as u64, report.gets_per_s_many as u64);
        table.row(vec!["gets per second".into(), whole(one), whole(many)]);
        out.write_all(table.render().as_bytes())?;
        let writer = (whole(report.writes), 100.0 * report.writer_share);
        writeln!(
            out,
            " ratio of CPU times {:.3}; a writer took {:.1} % of a core for {} writes, {} flushes, {} merges",
            report.ratio, writer.1, writer.0, report.flushes, report.merges
        )?;
    }
    if report.wrong_answers > 0 {
        warning(&format!("{} wrong answers", report.wrong_answers));
        return Ok(Status::No);
    }
    Ok(Status::Fine)
}
