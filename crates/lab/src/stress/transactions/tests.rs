//! Tests that some seeds pass, and that deliberate faults are found.

use std::sync::atomic::AtomicU64;

use super::super::{HistoryKind, StressPlan, open_door, run};
use super::*;
use crate::progress::Silent;
use crate::stress::simulation::run_seed;

#[test]
fn commits_are_right_over_crashes_merges_and_dropped_key_spaces() {
    let plan = StressPlan {
        seed: 1,
        seeds: Some(24),
        steps: 1500,
        time: None,
        kind: HistoryKind::Transactions,
    };
    let report = run(&plan, open_door, &mut Silent);
    assert!(report.failure.is_none(), "{:#?}", report.failure);
    assert!(report.commits > 600 && report.conflicts > 150, "{report:?}");
    assert!(report.lock_timeouts > 120, "{report:?}");
    assert!(report.power_cuts > 50 && report.checkpoints > 20, "{report:?}");
}

#[test]
fn a_seed_has_one_outcome() {
    let nobody = AtomicU64::new(0);
    let once = run_seed::<History>(7, 600, open_door, &nobody).expect("nothing is wrong");
    let again = run_seed::<History>(7, 600, open_door, &nobody).expect("nothing is wrong");
    assert_eq!(once, again);
}
