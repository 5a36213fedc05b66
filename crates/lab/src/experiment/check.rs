//! The objections of a reviewer: records too weak for the figures and claims made of them.
//! ```text
//! missing      a measurement without a record
//! format       a global filter of another image version was measured
//! small runs   a run of under 1,000 keys: a filter of one is mostly header
//! unlike       guards of one measurement whose trees have other numbers of runs
//! bits         a filter that takes more than 3 % more, or less, than was asked for, and does not
//!              say that it cannot do else (claims leave such out)
//! intervals    a claim judged by times whose rounds were not recorded
//! figures      a figure without rows, or without a guard that was asked for
//! ```
//! Invariant: a study without a complaint has none of these faults.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use trommel_filters::Part;

use crate::experiment::claim::Verdict;
use crate::experiment::interval::RECORD;
use crate::experiment::number::readable;
use crate::experiment::rows::{Row, Scalar};
use crate::experiment::study::Study;

/// The fewest keys of a run with which headers stay below 3 % of the tables' filters.
const RUN_KEYS_MIN: f64 = 1_000.0;
/// The relative tolerance of memory.
const BITS_TOLERANCE: f64 = 0.03;

/// A fault of a record, a claim or a figure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Complaint {
    /// The plan.
    pub plan: String,
    /// What is wrong, and where.
    pub problem: String,
    /// How many rows have the fault.
    pub rows: usize,
}

/// Returns all complaints about a study. Similar rows share one.
pub fn complaints(study: &Study) -> Vec<Complaint> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut add = |problem: String| *found.entry(problem).or_default() += 1;
    let (measured, all) = study.measured();
    if measured < all {
        add(format!("{} of {all} measurements have no record", all - measured));
    }
    of_formats(study).into_iter().for_each(&mut add);
    study.rows.iter().filter_map(of_runs).for_each(&mut add);
    study.rows.iter().filter_map(of_bits).for_each(&mut add);
    unlike_runs(&study.rows).into_iter().for_each(&mut add);
    of_claims(study).into_iter().for_each(&mut add);
    of_figures(study).into_iter().for_each(&mut add);
    let plan = &study.experiment.name;
    let complaint = |(problem, rows)| Complaint { plan: plan.clone(), problem, rows };
    found.into_iter().map(complaint).collect()
}

/// Complains about filters whose image format differs from this program's.
fn of_formats(study: &Study) -> Vec<String> {
    let other = study.records().filter(|record| record.is_of_another_filter());
    let complaints = other.map(|record| {
        let now = Part::IMAGE_VERSION;
        format!(
            "a global filter of format {}, not {now}: measure with lab run --keep",
            record.filter_format
        )
    });
    complaints.collect()
}

fn guard_of(row: &Row) -> String {
    match row.get("guard").or(row.get("engine")) {
        Some(guard) => guard.to_string(),
        None => "the filter".into(),
    }
}

fn is_of_another_engine(row: &Row) -> bool {
    row.get("engine").is_some_and(|engine| *engine != Scalar::Text("trommel".into()))
}

/// Complains about a tree whose smallest run is too small or unknown.
fn of_runs(row: &Row) -> Option<String> {
    let (runs, keys) = (row.number("runs")?, readable(row.number("keys")?));
    // The runs of other engines are their own choice, and unknown.
    if runs < 2.0 || is_of_another_engine(row) {
        return None;
    }
    match row.number("smallest_run_keys") {
        None => {
            Some(format!("trees of {keys} keys: how many the smallest run has is not recorded"))
        }
        Some(least) if least < RUN_KEYS_MIN => {
            let least = readable(least);
            Some(format!("trees of {keys} keys: the smallest run has {least}, not 1,000"))
        }
        Some(_) => None,
    }
}

/// Complains about a filter that does not take the requested memory.
fn of_bits(row: &Row) -> Option<String> {
    // The cost of writing is measured while the tree grows, so its filter has spare room.
    if row.get("pattern").is_some() {
        return None;
    }
    // Updates add entries but no keys, so the memory before them counts.
    let taken = row.number("guard_bits_per_key_filled").or(row.number("guard_bits_per_key"));
    let (requested, taken) = (row.number("bits_per_key")?, taken?);
    let is_declared = row.get("unfit") == Some(&Scalar::Flag(true));
    // A filter that stores keys exactly cannot use more memory.
    let wrong = row.number("false_positive_rate").unwrap_or(0.0);
    let is_exact = row.get("question").is_some() && taken < requested && wrong == 0.0;
    if is_declared
        || is_exact
        || requested <= 0.0
        || taken == 0.0
        || (taken / requested - 1.0).abs() <= BITS_TOLERANCE
    {
        return None;
    }
    let guard = guard_of(row);
    Some(format!(
        "{guard}: {} bits per key taken, {} asked for",
        readable(taken),
        readable(requested)
    ))
}

/// Complains about guards of one measurement whose trees have different shapes, since questions
/// then differ in cost.
fn unlike_runs(rows: &[Row]) -> Vec<String> {
    let mut runs: BTreeMap<Vec<String>, BTreeSet<u64>> = BTreeMap::new();
    for row in rows {
        // Theoretical rows have runs but no keys.
        if row.number("keys").is_none() || is_of_another_engine(row) {
            continue;
        }
        let cell: Vec<String> = ["workload", "threads"].map(|name| text_of(row, name)).into();
        for (when, field) in [("at the begin ", "runs_filled"), ("", "runs")] {
            let of = (row.get(RECORD), row.number(field));
            if let (Some(record), Some(count)) = of {
                let cell = [&[record.to_string(), when.to_string()], &cell[..]].concat();
                runs.entry(cell).or_default().insert(count as u64);
            }
        }
    }
    let unlike = runs.into_iter().filter(|(_, counts)| counts.len() > 1);
    let complaints = unlike.map(|(cell, counts)| {
        let (when, workload) = (&cell[1], &cell[2]);
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        let of =
            if workload.is_empty() { String::new() } else { format!(" of workload {workload}") };
        format!("guards of one measurement{of} {when}have trees of {} runs", counts.join(", "))
    });
    complaints.collect()
}

fn text_of(row: &Row, name: &str) -> String {
    row.get(name).map_or(String::new(), Scalar::to_string)
}

fn of_claims(study: &Study) -> Vec<String> {
    let mut found = Vec::new();
    for (claim, outcome) in study.claims() {
        let says = &claim.says;
        if outcome.pairs.iter().any(|pair| !pair.is_known) {
            found.push(format!("claim \"{says}\": judged by times whose rounds are not recorded"));
        }
        if outcome.verdict == Verdict::NotMeasured {
            found.push(format!("claim \"{says}\": nothing was measured for it"));
        }
    }
    found
}

/// Complains about figures without rows, and about guards without rows.
fn of_figures(study: &Study) -> Vec<String> {
    let named: BTreeSet<&str> = study
        .steps
        .iter()
        .flat_map(|(step, _)| &step.fields)
        .filter(|(name, _)| name == "guard")
        .filter_map(|(_, value)| match value {
            Scalar::Text(names) => Some(names.split(',')),
            _ => None,
        })
        .flatten()
        .collect();
    let measured: BTreeSet<String> = study.rows.iter().map(guard_of).collect();
    let lacking = named.into_iter().filter(|guard| !measured.contains(*guard));
    let lacking = lacking.map(|guard| format!("the guard {guard} has no row"));
    let figures = study.figures().into_iter().filter(|figure| figure.panels.is_empty());
    let empty = figures.map(|figure| format!("figure \"{}\": nothing was measured", figure.title));
    lacking.chain(empty).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[(&str, f64)]) -> Row {
        let fields = fields.iter().map(|(name, value)| (name.to_string(), Scalar::Number(*value)));
        let guard = ("guard".to_string(), Scalar::Text("snarf".into()));
        Row(fields.chain([guard]).collect())
    }

    #[test]
    fn small_runs_and_other_bits_are_told() {
        let runs =
            |least| of_runs(&row(&[("runs", 19.0), ("keys", 6e4), ("smallest_run_keys", least)]));
        assert!(runs(60.0).expect("small").contains("has 60"), "{:?}", runs(60.0));
        assert_eq!(runs(1000.0), None);
        let unknown = of_runs(&row(&[("runs", 19.0), ("keys", 6e4)])).expect("not known");
        assert!(unknown.contains("not recorded"), "{unknown}");
        assert_eq!(of_runs(&row(&[("runs", 1.0), ("keys", 5.0)])), None);
        let bits = |taken| of_bits(&row(&[("bits_per_key", 8.0), ("guard_bits_per_key", taken)]));
        assert_eq!(bits(74.0).expect("far off"), "snarf: 74 bits per key taken, 8 asked for");
        assert_eq!((bits(8.2), bits(7.8), bits(0.0)), (None, None, None));
        let of_question = |rate, taken| {
            let fields = [("bits_per_key", 8.0), ("guard_bits_per_key", taken)];
            let mut row = row(&[&fields[..], &[("false_positive_rate", rate)]].concat());
            row.0.insert("question".into(), Scalar::Text("points".into()));
            of_bits(&row)
        };
        assert_eq!(of_question(0.0, 5.0), None, "exact");
        assert!(of_question(0.01, 5.0).is_some() && of_question(0.0, 9.0).is_some());
    }

    #[test]
    fn trees_of_one_measurement_must_be_alike() {
        let rows = |second| {
            [
                row(&[(RECORD, 3.0), ("runs", 2.0), ("keys", 5.0)]),
                row(&[(RECORD, second), ("runs", 1.0), ("keys", 5.0)]),
            ]
        };
        assert_eq!(unlike_runs(&rows(3.0)), ["guards of one measurement have trees of 1, 2 runs"]);
        assert_eq!(unlike_runs(&rows(4.0)), Vec::<String>::new());
    }
}
