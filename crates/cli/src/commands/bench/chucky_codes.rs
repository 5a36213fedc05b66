//! `bench chucky-codes`: the theory of Chucky's codes, as tables.
//! ```text
//! levels  runs  integer  Huffman  bound  entropy
//!      3     9        4     1.52   1.65     1.27
//! ```
//! Invariant: with `--json` it prints one object and nothing else.

use std::io::Write;

use clap::Args;
use trommel_lab::{ChuckyCodesPlan, ChuckyCodesReport, chucky_codes};

use crate::output::json::print_json;
use crate::output::table::{TextTable, bytes, whole};
use crate::process::failure::{Outcome, Status};

pub(crate) const EXAMPLES: &str = "Examples: the paper's trees; buckets of 48 bits in a tree of four levels and size ratio 10\n  \
    trommel --json bench chucky-codes\n  \
    trommel bench chucky-codes --size-ratio 10 --bucket-levels 4 --bits-per-key 12";

#[derive(Debug, Args)]
pub(crate) struct ChuckyCodesArgs {
    /// T, 2 to 16: how many times more a level holds than the one before. (Figure 6 has them all.)
    #[arg(long, value_name = "T", default_value_t = ChuckyCodesPlan::default().size_ratio)]
    size_ratio: u32,
    /// Levels of the tree of Figures 6 and 8, 1 to 8.
    #[arg(long, value_name = "L", default_value_t = ChuckyCodesPlan::default().levels)]
    levels: u32,
    /// Levels of the tree of Figure 9, 1 to 12.
    #[arg(long, value_name = "L", default_value_t = ChuckyCodesPlan::default().bucket_levels)]
    bucket_levels: u32,
    /// Bits of a bucket's entry in Figure 9, 6 to 30.
    #[arg(long, value_name = "BITS", default_value_t = ChuckyCodesPlan::default().bits_per_key)]
    bits_per_key: f64,
}

pub(crate) fn run(arguments: &ChuckyCodesArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let report = chucky_codes(&ChuckyCodesPlan {
        size_ratio: arguments.size_ratio,
        levels: arguments.levels,
        bucket_levels: arguments.bucket_levels,
        bits_per_key: arguments.bits_per_key,
    })?;
    if json {
        print_json(out, std::slice::from_ref(&report))?;
    } else {
        out.write_all(text(arguments, &report).as_bytes())?;
    }
    Ok(Status::Fine)
}

fn bits(bits: f64) -> String {
    format!("{bits:.3}")
}

fn maybe_bits(number: Option<f64>) -> String {
    number.map_or("-".into(), bits)
}

fn text(arguments: &ChuckyCodesArgs, report: &ChuckyCodesReport) -> String {
    let (ratio, levels) = (report.size_ratio, arguments.levels);
    format!(
        "Figure 5: bits of a level id, by levels (T = {ratio})\n{}\n\
         Figure 6: bits of a level id, by size ratio ({levels} levels), in lists of 1, 2 and 3\n{}\n\
         Figure 8: bits of a level id, by ids in a group (T = {ratio}, {levels} levels)\n{}\n\
         Figure 9: bits of a fingerprint and overflowing buckets (T = {ratio}, {} levels, {} bits an entry)\n{}  \
         entropy leaves {} bits\n\n\
         Figure 12: the tables beside the filter, by levels (T = {ratio}, {} bits an entry)\n{}",
        figure_5(report),
        figure_6(report),
        figure_8(report),
        arguments.bucket_levels,
        arguments.bits_per_key,
        figure_9(report),
        bits(report.figure_9_bound),
        arguments.bits_per_key,
        figure_12(report),
    )
}

fn figure_5(report: &ChuckyCodesReport) -> String {
    let heading = ["levels", "runs", "integer", "Huffman", "bound", "entropy"];
    let mut table = TextTable::new(0, &heading);
    for row in &report.figure_5 {
        let counts = [row.levels.to_string(), whole(row.runs), row.integer_bits.to_string()];
        let lengths = [row.huffman_bits, row.bound_bits, row.entropy_bits].map(bits);
        table.row(counts.into_iter().chain(lengths).collect());
    }
    table.render()
}

fn figure_6(report: &ChuckyCodesReport) -> String {
    let mut table = TextTable::new(0, &["T", "one", "two", "three", "entropy"]);
    for row in &report.figure_6 {
        let lengths = row.huffman_bits.iter().map(|length| maybe_bits(*length));
        let cells = std::iter::once(row.size_ratio.to_string()).chain(lengths);
        table.row(cells.chain([bits(row.entropy_bits)]).collect());
    }
    table.render()
}

fn figure_8(report: &ChuckyCodesReport) -> String {
    let heading = ["ids", "lists", "combinations", "entropy", "entropy of combinations"];
    let mut table = TextTable::new(0, &heading);
    for row in &report.figure_8 {
        let rest = [row.combination_bits, row.entropy_bits, row.combination_entropy_bits];
        let cells = [row.group.to_string(), maybe_bits(row.permutation_bits)];
        table.row(cells.into_iter().chain(rest.map(bits)).collect());
    }
    table.render()
}

fn figure_9(report: &ChuckyCodesReport) -> String {
    let mut table = TextTable::new(1, &["way", "to fit", "overflow", "fingerprint", "by level"]);
    for row in &report.figure_9 {
        let fitting = row.fitting.map_or("-".into(), |share| share.to_string());
        let lengths: Vec<String> = row.print_bits.iter().map(u32::to_string).collect();
        table.row(vec![
            row.way.into(),
            fitting,
            format!("{:.6}", row.overflow_share),
            bits(row.mean_print_bits),
            lengths.join(" "),
        ]);
    }
    table.render()
}

fn figure_12(report: &ChuckyCodesReport) -> String {
    let heading = ["levels", "frequent combinations", "Huffman codes", "decoding", "recoding"];
    let mut table = TextTable::new(0, &heading);
    for row in &report.figure_12 {
        let counts = [row.levels.to_string(), whole(row.frequent_combinations)];
        let sizes = [row.huffman_bytes, row.decoding_bytes, row.recoding_bytes].map(bytes);
        table.row(counts.into_iter().chain(sizes).collect());
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_a_table() {
        let arguments =
            ChuckyCodesArgs { size_ratio: 5, levels: 3, bucket_levels: 3, bits_per_key: 10.0 };
        let mut out = Vec::new();
        assert!(matches!(run(&arguments, false, &mut out), Ok(Status::Fine)));
        let text = String::from_utf8(out).expect("text");
        for figure in ["Figure 5", "Figure 6", "Figure 8", "Figure 9", "Figure 12"] {
            assert!(text.contains(figure), "{text}");
        }
        assert!(text.contains("1.524"), "the mean length of Figure 4's codes: {text}");
    }
}
