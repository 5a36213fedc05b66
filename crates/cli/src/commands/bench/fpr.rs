//! `bench fpr`: measures false positive rates, and prints a table for each distribution.
//! ```text
//! fingerprints  policy         bits  levels  z  since  owed  point          ...  base  total
//! auto          lazy-leveling    12       3  9      1     0  0.55 % ± 0.03  ...  11.2   12.0
//! ```
//! Invariant: without `--json`, each table is printed as soon as its distribution is done, so a
//! later error loses none.

use std::io::Write;

use clap::Args;
use trommel_lab::{
    Ask, Dist, FileFormat, Fingerprints, FprFilter, FprPlan, FprRate, FprReport, bench_fpr,
    fingerprints_named,
};

use crate::output::json::print_json;
use crate::output::progress::StageBar;
use crate::output::table::{TextTable, whole};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;

/// The examples of `--help`.
pub(crate) const EXAMPLES: &str = "Examples: small tables for two distributions; two kinds of fingerprints for the keys of a file; a\n  store after its first flushes, where merges keep up and where they do not; what begins with a prefix\n  \
    trommel bench fpr --keys 100000 --bits-per-key 10,12 --dist uniform,ids\n  \
    trommel bench fpr --dist file:osm.u64le --file-format u64le --fingerprints auto,spline --fill 9\n  \
    trommel bench fpr --dist uniform --keys 200000 --levels 1,2 --fill 1,5,9 --owed 0,1,14\n  \
    trommel bench fpr --dist user-time --keys 500000 --fill 9 --ask absent-prefix,present-prefix";

/// Which filters, and what they are asked.
#[derive(Debug, Args)]
pub(crate) struct BenchFprArgs {
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "uniform,normal,lognormal,clustered,ids",
        help = crate::args::workload::dist_help() + " (several with commas between them)"
    )]
    dist: Vec<Dist>,
    /// How a file of keys is written: lines, u64le.
    #[arg(long, value_name = "NAME", default_value = "lines")]
    file_format: FileFormat,
    /// How many keys. [default: 5000000, or all of a file]
    #[arg(long, value_name = "N")]
    keys: Option<usize>,
    /// How keys become fingerprints, with commas between them: auto, spline, gap, cell, coded.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = fingerprints, default_value = "auto")]
    fingerprints: Vec<Fingerprints>,
    /// Memory of the filter, in bits per key, with commas between the numbers.
    #[arg(
        long,
        value_name = "BITS",
        value_delimiter = ',',
        allow_negative_numbers = true,
        default_value = "8,10,12,14"
    )]
    bits_per_key: Vec<f64>,
    /// How many of them are of a hash for single keys.
    #[arg(long, value_name = "BITS", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=16))]
    point_bits: u8,

    /// The share of points among the questions that the filter expects, 0 to 1; without it, its
    /// own guess.
    #[arg(long, value_name = "SHARE")]
    points_expected: Option<f64>,
    /// The filter is built for a sample of such questions, as a store's is that was asked them.
    #[arg(long)]
    learn: bool,
    /// When runs of the tree merge, with commas between them: lazy-leveling, leveling, tiering,
    /// rocksdb, levelled-from:LEVEL.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = crate::args::policy::policy, default_value = "lazy-leveling")]
    policy: Vec<trommel::Policy>,
    /// L: levels of the tree, 1 to 4, with commas between the numbers. 1 and 2: a store after its
    /// first flushes.
    #[arg(long, value_name = "L", value_delimiter = ',', default_value = "3")]
    levels: Vec<u32>,
    /// Z: how full the last level is, 1 to 9, with commas between the numbers.
    #[arg(long, value_name = "Z", value_delimiter = ',', default_value = "9,1")]
    fill: Vec<u32>,
    /// How much of the round is over, from one merge into the last level (0) to the next (1), with
    /// commas between the numbers.
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_value = "1")]
    since: Vec<f64>,
    /// Flushes that wait in level 0 since merges do not keep up, with commas between the numbers.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0")]
    owed: Vec<u32>,
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "points,ranges", help = ask_help())]
    ask: Vec<Ask>,
    /// Neighbouring keys of a range, with commas between the numbers; 1: points.
    #[arg(long, value_name = "W", value_delimiter = ',', default_value = "1,32,1024,1048576")]
    range_width: Vec<u64>,
    /// Questions of each kind and width.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    queries: usize,
    /// Seed of keys, flushes and questions.
    #[arg(long, value_name = "S", default_value_t = 42)]
    seed: u64,
}

/// The help text of `--ask`.
fn ask_help() -> String {
    format!(
        "What is asked, with commas between them: {}. No stored key answers it: a key; a range; all that begin with the shortest \
         absent prefix of a missing key; a stretch between keys that begin alike; all with an absent first part, such as a user's \
         rows; a key at most 2^20 behind a stored one; what comes next behind it. Points are of width 1, ranges of the others, next of each; prefixes have \
         none",
        Ask::known(),
    )
}

/// Parses the name of a kind of fingerprint.
fn fingerprints(name: &str) -> Result<Fingerprints, String> {
    fingerprints_named(name).map_err(|error| error.to_string())
}

pub(crate) fn run(arguments: &BenchFprArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let mut reports = Vec::new();
    for dist in &arguments.dist {
        let plan = FprPlan {
            dist: dist.clone(),
            file_format: arguments.file_format,
            keys: arguments.keys,
            fingerprints: arguments.fingerprints.clone(),
            bits_per_key: arguments.bits_per_key.clone(),
            point_bits: arguments.point_bits,
            points_expected: arguments.points_expected,
            learn: arguments.learn,
            policies: arguments.policy.clone(),
            levels: arguments.levels.clone(),
            fills: arguments.fill.clone(),
            since: arguments.since.clone(),
            owed: arguments.owed.clone(),
            asks: arguments.ask.clone(),
            range_widths: arguments.range_width.clone(),
            queries: arguments.queries,
            seed: arguments.seed,
        };
        let report = bench_fpr(&plan, &mut StageBar::default())?;
        if !json {
            out.write_all(text(&report).as_bytes())?;
            out.flush()?;
        }
        reports.push(report);
    }
    if json {
        print_json(out, &reports)?;
    }
    Ok(verdict(&reports))
}

/// Returns "No" and warns if a filter lost a key.
fn verdict(reports: &[FprReport]) -> Status {
    let filters = reports.iter().flat_map(|report| &report.filters);
    let lost: u64 = filters.map(|filter| filter.false_negatives).sum();
    if lost == 0 {
        return Status::Fine;
    }
    warning(&format!("{lost} stored keys or ranges were denied"));
    Status::No
}

fn text(report: &FprReport) -> String {
    let sum = |of: fn(&FprFilter) -> u64| report.filters.iter().map(of).sum::<u64>();
    let heading = format!(
        "{}: {} keys, seed {}; false negatives: {} of {} asked\n",
        report.dist,
        whole(report.keys),
        report.seed,
        whole(sum(|filter| filter.false_negatives)),
        whole(sum(|filter| filter.hits)),
    );
    let widths = report.filters.first().map_or(&[][..], |filter| &filter.rates);
    let widths: Vec<String> = widths.iter().map(question_text).collect();
    let mut names = vec!["fingerprints", "policy", "bits", "levels", "z", "since", "owed"];
    names.extend(widths.iter().map(String::as_str));
    names.extend(["base", "overlay", "total"]);
    let mut table = TextTable::new(2, &names);
    report.filters.iter().for_each(|filter| table.row(row(filter)));
    format!("{heading}{}", table.render())
}

fn row(filter: &FprFilter) -> Vec<String> {
    let mut cells = vec![
        filter.fingerprints.to_string(),
        filter.policy.to_string(),
        filter.bits_per_key.to_string(),
        filter.levels.to_string(),
        filter.fill.to_string(),
        filter.since.to_string(),
        filter.owed.to_string(),
    ];
    cells.extend(filter.rates.iter().map(rate_text));
    let [base, whole] = [filter.base_bits_per_key, filter.guard_bits_per_key].map(Some);
    let bits = [base, filter.overlay_bits_per_key, whole];
    cells.extend(bits.map(|bits| bits.map_or("-".into(), |bits| format!("{bits:.2}"))));
    cells
}

/// Formats a question: its kind, unless that is obvious, and its width.
fn question_text(rate: &FprRate) -> String {
    let width = rate.range_width.map(width_text);
    match (rate.question, width) {
        ("points" | "ranges", Some(width)) => width,
        (question, Some(width)) => format!("{question} {width}"),
        (question, None) => question.into(),
    }
}

/// Formats a width for readers.
fn width_text(width: u64) -> String {
    match width {
        1 => "point".into(),
        width if width.is_power_of_two() => format!("2^{}", width.ilog2()),
        width => whole(width),
    }
}

/// Formats a rate and half its interval in percent; narrow intervals get more digits.
fn rate_text(rate: &FprRate) -> String {
    let (Some(share), Some([low, high])) = (rate.false_positive_rate, rate.interval_95) else {
        return "-".into();
    };
    let (share, half) = (100.0 * share, 50.0 * (high - low));
    let digits = if half < 0.005 { 3 } else { 2 };
    format!("{share:.digits$} % ± {half:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(share: f64, half: f64) -> FprRate {
        FprRate {
            question: "ranges",
            range_width: Some(32),
            queries: 1000,
            queries_distinct: 1000,
            false_positives: 1,
            false_positive_rate: Some(share),
            interval_95: Some([share - half, share + half]),
            needless_runs_per_op: None,
            rate_of_paper: 0.01,
            times_paper: None,
            times_paper_interval: None,
            round: None,
            life: None,
        }
    }

    #[test]
    fn rates_have_as_many_digits_as_their_intervals_allow() {
        assert_eq!(rate_text(&rate(0.0055, 0.0003)), "0.55 % ± 0.03");
        assert_eq!(rate_text(&rate(0.0001, 0.00004)), "0.010 % ± 0.004");
        assert_eq!(rate_text(&FprRate { false_positive_rate: None, ..rate(0.5, 0.1) }), "-");
    }

    #[test]
    fn widths_are_powers_of_two_where_they_are() {
        let texts = [1, 2, 1 << 20, 1_000_000].map(width_text);
        assert_eq!(texts, ["point", "2^1", "2^20", "1,000,000"]);
    }

    #[test]
    fn questions_are_named_unless_they_are_plain() {
        for (question, range_width, text) in [
            ("points", Some(1), "point"),
            ("ranges", Some(32), "2^5"),
            ("next", Some(32), "next 2^5"),
            ("absent-prefix", None, "absent-prefix"),
        ] {
            let asked = FprRate { question, range_width, ..rate(0.5, 0.1) };
            assert_eq!(question_text(&asked), text);
        }
    }
}
