//! `lab bound`: computes what is possible for a set of keys, as a table.
//! ```text
//!  s  bits per key  points in vain  prefixes in vain
//!  0          2.41        44.06 %           47.35 %
//! ```

use std::io::Write;

use clap::Args;
use trommel_lab::{BoundPlan, BoundReport, BoundRow, bound};

use crate::args::workload::KeySetArgs;
use crate::output::table::{TextTable, whole};
use crate::process::failure::{Outcome, Status};

pub(crate) const EXAMPLES: &str = "Examples: numbers as they are; text behind a model of the two bytes before each\n  \
    trommel lab bound --dist uniform --keys 1000000\n  \
    trommel lab bound --dist packages --order 2";

#[derive(Debug, Args)]
pub(crate) struct BoundArgs {
    #[command(flatten)]
    keys: KeySetArgs,
    /// Code each byte by its share after so many bytes, 0 to 2, in the order of the keys. [default:
    /// keys are numbers, of their first 16 bytes]
    #[arg(long, value_name = "N")]
    order: Option<usize>,
}

pub(super) fn run(arguments: &BoundArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let report = bound(&BoundPlan {
        dist: arguments.keys.dist.clone(),
        file_format: arguments.keys.file_format,
        keys: arguments.keys.keys,
        order: arguments.order,
        seed: arguments.keys.seed,
    })?;
    if json {
        serde_json::to_writer(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        out.write_all(text(&report).as_bytes())?;
    }
    Ok(Status::Fine)
}

fn text(report: &BoundReport) -> String {
    let model = report.order.zip(report.contexts).map_or(String::new(), |(order, contexts)| {
        format!(", model of order {order} with {} contexts", whole(contexts))
    });
    let heading = format!(
        "{}: {} keys, {} held out{model}, {} ties\n  bits per key: {:.2} for exponents of gaps, {:.2} given the one before; {:.2} to \
         know keys exactly\n",
        report.dist,
        whole(report.keys),
        whole(report.asked),
        whole(report.ties),
        report.exponent_bits,
        report.exponent_bits_in_context,
        report.exact_bits,
    );
    let has_prefixes = report.cells.iter().any(|row| row.prefix_rate.is_some());
    let names = ["s", "bits per key", "points in vain", "prefixes in vain"];
    let mut table = TextTable::new(0, &names[..if has_prefixes { 4 } else { 3 }]);
    report.cells.iter().for_each(|row| table.row(cells(row)));
    heading + &table.render()
}

fn cells(row: &BoundRow) -> Vec<String> {
    let percent = |rate: f64| format!("{:.2} %", 100.0 * rate);
    let cells = [row.s.to_string(), format!("{:.2}", row.bits_per_key), percent(row.point_rate)];
    cells.into_iter().chain(row.prefix_rate.map(percent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_have_a_column_where_they_are_asked_for() {
        let row =
            |prefix_rate| BoundRow { s: 3, bits_per_key: 7.25, point_rate: 0.0456, prefix_rate };
        let of = |prefix_rate, order: Option<usize>| {
            text(&BoundReport {
                dist: "words".into(),
                keys: 7000,
                asked: 1000,
                order,
                contexts: order.map(|_| 12),
                ties: 3,
                seed: 1,
                exponent_bits: 2.5,
                exponent_bits_in_context: 2.25,
                exact_bits: 40.0,
                cells: vec![row(prefix_rate)],
            })
        };
        let numbers = of(None, None);
        assert!(numbers.contains("7.25") && numbers.contains("4.56 %"), "{numbers}");
        assert!(!numbers.contains("prefixes") && !numbers.contains("model"), "{numbers}");
        let text = of(Some(0.125), Some(2));
        assert!(text.contains("12.50 %") && text.contains("order 2 with 12 contexts"), "{text}");
    }
}
