//! Rounds of `bench write`: all guards load the same keys again and again, in turns.
//! ```text
//! round 1   grf  bloom  none      round 2   bloom  none  grf   ...      the medians count
//! ```
//! The store of a turn is removed after it, unless the last round's stores are kept. Invariant: a
//! guard's report is that of its round of median speed, except for fields that cover all rounds.

use std::path::Path;

use crate::bench::rounds::turns;
use crate::bench::write::{WritePlan, WriteReport, bench_write};
use crate::error::{LabError, Result};
use crate::median::median;
use crate::progress::Progress;

/// Runs each plan once per round. `keeps`: the stores of the last round stay in their folders.
/// Requires: each plan has its own folder.
pub fn bench_writes(
    plans: &[WritePlan],
    rounds: usize,
    keeps: bool,
    progress: &mut dyn Progress,
) -> Result<Vec<WriteReport>> {
    if rounds == 0 {
        return Err(LabError::Plan("a round is the least to measure".to_string()));
    }
    if rounds > 1 && plans.iter().any(|plan| plan.record.is_some()) {
        return Err(LabError::Plan("a recording is of one round".to_string()));
    }
    let mut reports = vec![Vec::with_capacity(rounds); plans.len()];
    for (round, side) in turns(plans.len(), rounds) {
        let plan = &plans[side];
        reports[side].push(bench_write(plan, progress)?);
        if !keeps || round + 1 < rounds {
            remove(&plan.folder)?;
        }
    }
    Ok(reports.into_iter().map(of_rounds).collect())
}

fn remove(folder: &Path) -> Result<()> {
    let refused = |error: std::io::Error| LabError::Folder {
        path: folder.to_path_buf(),
        problem: error.to_string(),
    };
    std::fs::remove_dir_all(folder).map_err(refused)
}

/// Combines the reports of all rounds. Requires: at least one.
fn of_rounds(reports: Vec<WriteReport>) -> WriteReport {
    let of = |what: fn(&WriteReport) -> f64| reports.iter().map(what).collect::<Vec<f64>>();
    let guard_ns_per_key_rounds = of(|report| report.guard_ns_per_key);
    let ops_per_s_rounds = of(|report| report.ops_per_s);
    let usual = median(&mut ops_per_s_rounds.clone());
    let wrong_answers = reports.iter().map(|report| report.wrong_answers).sum();
    let nth = ops_per_s_rounds.iter().position(|&speed| speed == usual);
    let middle = reports[nth.expect("the median is a round's")].clone();
    WriteReport {
        rounds: reports.len() as u64,
        guard_ns_per_key: median(&mut guard_ns_per_key_rounds.clone()),
        guard_ns_per_key_rounds,
        ops_per_s_rounds,
        ns_per_key_rounds: of(|report| report.ns_per_key),
        wrong_answers,
        ..middle
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;
    use crate::bench::write::WritePattern;
    use crate::progress::Silent;

    #[test]
    fn each_guard_is_measured_in_each_round() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let of = |name: &str| WritePlan {
            is_stepped: true,
            keys: 1500,
            ..plan(&folder.path().join(name), WritePattern::Random, 1)
        };
        let plans = [of("one"), of("other")];
        for (keeps, stores) in [(false, 0), (true, 2)] {
            let reports = bench_writes(&plans, 3, keeps, &mut Silent).expect("measures");
            assert_eq!(reports.len(), 2);
            for report in &reports {
                assert_eq!((report.rounds, report.wrong_answers), (3, 0));
                assert_eq!((report.background, report.ops_per_s_rounds.len()), ("stepped", 3));
                let times = &report.guard_ns_per_key_rounds;
                assert!(times.len() == 3 && times.contains(&report.guard_ns_per_key));
            }
            let left = std::fs::read_dir(folder.path()).expect("lists").count();
            assert_eq!(left, stores);
        }
        assert!(bench_writes(&plans, 0, false, &mut Silent).is_err());
    }
}
