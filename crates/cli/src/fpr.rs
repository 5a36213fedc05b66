//! `bench fpr`: measure, then print a table for each distribution.
//! ```text
//! fingerprints  bits  z        point            2^5  ...   base  overlay  total
//! auto            12  9  0.55 % ± 0.03  0.55 % ± 0.03      11.2     19.3   12.0
//! ```
//! Invariant: without `--json` each table is printed when its distribution is done, so that a later error costs none.

use std::io::Write;

use trommel_lab::{FprFilter, FprPlan, FprRate, FprReport, bench_fpr};

use crate::args::BenchFprArgs;
use crate::bench::print_json;
use crate::failure::{Outcome, Status};
use crate::progress::StageBar;
use crate::table::{TextTable, whole};

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
            fills: arguments.fill.clone(),
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

/// "No" if a filter lost a key. Says so.
fn verdict(reports: &[FprReport]) -> Status {
    let filters = reports.iter().flat_map(|report| &report.filters);
    let lost: u64 = filters.map(|filter| filter.false_negatives).sum();
    if lost == 0 {
        return Status::Fine;
    }
    eprintln!("trommel: {lost} stored keys or ranges were denied");
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
    let widths: Vec<String> = widths.iter().map(|rate| width_text(rate.range_width)).collect();
    let mut names = vec!["fingerprints", "bits", "z"];
    names.extend(widths.iter().map(String::as_str));
    names.extend(["base", "overlay", "total"]);
    let mut table = TextTable::new(1, &names);
    report.filters.iter().for_each(|filter| table.row(row(filter)));
    format!("{heading}{}", table.render())
}

fn row(filter: &FprFilter) -> Vec<String> {
    let mut cells = vec![
        filter.fingerprints.to_string(),
        filter.bits_per_key.to_string(),
        filter.fill.to_string(),
    ];
    cells.extend(filter.rates.iter().map(rate_text));
    let bits = [filter.base_bits_per_key, filter.overlay_bits_per_key, filter.guard_bits_per_key];
    cells.extend(bits.map(|bits| format!("{bits:.2}")));
    cells
}

/// A width as people say it.
fn width_text(width: u64) -> String {
    match width {
        1 => "point".into(),
        width if width.is_power_of_two() => format!("2^{}", width.ilog2()),
        width => whole(width),
    }
}

/// A rate and half its interval, in percent; more digits where the interval is narrow.
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

    #[test]
    fn rates_have_as_many_digits_as_their_intervals_allow() {
        let rate = |share, half| FprRate {
            range_width: 32,
            queries: 1000,
            queries_distinct: 1000,
            false_positives: 1,
            false_positive_rate: Some(share),
            interval_95: Some([share - half, share + half]),
            needless_runs_per_op: None,
        };
        assert_eq!(rate_text(&rate(0.0055, 0.0003)), "0.55 % ± 0.03");
        assert_eq!(rate_text(&rate(0.0001, 0.00004)), "0.010 % ± 0.004");
        assert_eq!(rate_text(&FprRate { false_positive_rate: None, ..rate(0.5, 0.1) }), "-");
    }

    #[test]
    fn widths_are_powers_of_two_where_they_are() {
        let texts = [1, 2, 1 << 20, 1_000_000].map(width_text);
        assert_eq!(texts, ["point", "2^1", "2^20", "1,000,000"]);
    }
}
