//! Tests of threads: short runs find nothing, and sabotage is found.

use super::*;
use crate::progress::Silent;

/// Runs histories from a seed on until one fails or the time is over.
fn run_from(seed: u64, seconds: u64, lie: Option<Sabotage>) -> ThreadsReport {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let time = Duration::from_secs(seconds);
    let plan = ThreadsPlan::new(seed, 2, time, folder.path().to_path_buf());
    run(&plan, lie, &mut Silent)
}

/// Returns the failure that sabotage leads to.
fn found(seed: u64, lie: Sabotage) -> String {
    let failure = run_from(seed, 60, Some(lie)).failure.expect("it is found");
    assert!(failure.again.starts_with("trommel stress --threads 2 --disk"), "{failure:?}");
    assert!(!failure.setup.is_empty() && !failure.threads.is_empty(), "{failure:?}");
    failure.wrong
}

#[test]
fn threads_find_nothing_wrong() {
    let report = run_from(6, 3, None);
    assert!(report.failure.is_none(), "{:#?}", report.failure);
    assert!(report.openings > 0 && report.operations > 100 && report.answers > 100, "{report:?}");
}

#[test]
fn a_lost_write_is_found() {
    let wrong = found(0, Sabotage::LostWrite);
    assert!(wrong.contains("expected #") || wrong.contains("has #"), "{wrong}");
}

#[test]
fn half_a_batch_is_found() {
    let wrong = found(1, Sabotage::SplitBatch);
    assert!(wrong.contains("not as after any whole groups"), "{wrong}");
}

#[test]
fn a_reader_that_goes_back_in_time_is_found() {
    let wrong = found(0, Sabotage::OldAnswer);
    assert!(wrong.contains("back in time") || wrong.contains("never had"), "{wrong}");
}

#[test]
fn a_table_that_nobody_needs_is_found() {
    let wrong = found(0, Sabotage::LeftTable);
    assert!(wrong.contains("at rest") && wrong.contains("999999.table"), "{wrong}");
}

#[test]
fn tables_beyond_those_of_the_tree_are_found_while_all_work() {
    let wrong = found(0, Sabotage::Hoard);
    assert!(wrong.contains("at most may be") && wrong.contains("999999.table"), "{wrong}");
}

#[test]
fn a_log_that_is_not_synced_is_found() {
    let wrong = found(5, Sabotage::NeverSynced);
    assert!(wrong.contains("writes are synced every 0.05 s"), "{wrong}");
}

#[test]
fn a_scan_that_takes_too_much_is_found() {
    let wrong = found(0, Sabotage::SlowScan);
    assert!(wrong.contains("the first steps of a scan"), "{wrong}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_stays_open_is_found() {
    let wrong = found(0, Sabotage::OpenFile);
    assert!(wrong.contains("files open") && wrong.contains("MANIFEST"), "{wrong}");
}

#[test]
fn a_thread_that_hangs_is_found_and_left_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut plan = ThreadsPlan::new(0, 2, Duration::from_secs(15), folder.path().to_path_buf());
    // Other threads may be slow on a busy machine; they are reported beside the one that hangs.
    plan.patience = Duration::from_secs(10);
    let failure = run(&plan, Some(Sabotage::Stuck), &mut Silent).failure.expect("it is found");
    assert!(failure.wrong.contains("nobody may wait so long: "), "{failure:?}");
    assert!(failure.wrong.contains("lane 0"), "{failure:?}");
}

#[test]
fn a_plan_has_as_many_threads_as_there_may_be() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for threads in [0, THREADS_MAX + 1] {
        let plan = ThreadsPlan::new(1, threads, Duration::ZERO, folder.path().to_path_buf());
        assert!(stress_threads(&plan, &mut Silent).is_err());
    }
    std::fs::write(folder.path().join("a file"), "").expect("written");
    let plan = ThreadsPlan::new(1, 1, Duration::ZERO, folder.path().to_path_buf());
    assert!(stress_threads(&plan, &mut Silent).is_err(), "the folder is not empty");
}
