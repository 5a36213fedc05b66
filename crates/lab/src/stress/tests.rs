//! Tests of the simulation: short runs find nothing, and deliberate faults are found.

use std::io;
use std::path::Path;

use trommel::storage::{Access, Append, Folder, FolderWrapper, Memory, Storage, StorageWrapper};

use super::below::Below;
use super::operation::{End, Reopening, StressOperation};
use super::*;
use crate::progress::Silent;

fn plan(seed: u64, seeds: u64, steps: u32) -> StressPlan {
    StressPlan { seed, seeds: Some(seeds), steps, time: None, kind: HistoryKind::Tree }
}

#[test]
fn no_history_has_a_wrong_answer() {
    let report = stress(&plan(1, 50, 2000), &mut Silent).expect("a plan with an end");
    if let Some(failure) = &report.failure {
        panic!("{failure:#?}");
    }
    assert_eq!((report.seeds, report.operations), (50, 100_000));
    assert!(report.power_cuts > 150 && report.errors > 150, "{report:?}");
    assert!(report.rotten > 15, "{report:?}");
    assert!(report.checkpoints > 50 && report.repairs > 30, "{report:?}");
    assert!(report.followers > 50 && report.followed > 100, "{report:?}");
    assert!(report.backups > 30 && report.shipped > 5 && report.restored > 15, "{report:?}");
    assert!(report.flushes > 500 && report.merges > 500, "{report:?}");
}

#[test]
fn a_seed_has_one_outcome() {
    let nobody = AtomicU64::new(0);
    for seed in 0..8 {
        let once = run_seed::<History>(seed, 1200, open_door, &nobody).expect("nothing is wrong");
        let again = run_seed::<History>(seed, 1200, open_door, &nobody).expect("nothing is wrong");
        assert_eq!(once, again, "seed {seed}");
    }
}

// The power was cut while the store was opened. The store lost unsynced bytes, but its copy did
// not.
#[test]
fn a_copy_from_before_a_power_cut_may_hold_more_than_the_store() {
    run_seed::<History>(601_499, 600, open_door, &AtomicU64::new(0)).expect("nothing is wrong");
}

// A rewritten log repeats entries of older logs. The opening had flushed these to tables, and
// nothing was written since.
#[test]
fn a_log_that_repeats_what_tables_have_is_no_damage() {
    run_seed::<History>(53, 600, open_door, &AtomicU64::new(0)).expect("nothing is wrong");
}

#[test]
fn a_plan_has_an_end() {
    let endless = StressPlan { seeds: None, ..plan(1, 1, 10) };
    assert!(stress(&endless, &mut Silent).is_err());
    let brief = StressPlan { time: Some(Duration::ZERO), ..endless };
    assert_eq!(stress(&brief, &mut Silent).expect("an end").seeds, 0);
}

thread_local! {
    /// The folder of the store of the history that this thread runs.
    static FOLDER: std::cell::RefCell<Option<tempfile::TempDir>> = const { std::cell::RefCell::new(None) };
}

/// Returns the real disk, below a folder of its own.
fn real_disk() -> Arc<dyn Storage> {
    let root =
        FOLDER.with_borrow(|folder| folder.as_ref().map(|folder| folder.path().to_path_buf()));
    Arc::new(Below { root: root.expect("a folder of this thread") })
}

/// Returns a step without failures and power cuts. None: the step is left out.
fn in_peace(step: &StressStep) -> Option<StressStep> {
    let operation = match &step.operation {
        StressOperation::Fail(_) | StressOperation::Mend => return None,
        // Checkpoints and backups are made on the simulated disk.
        StressOperation::Checkpoint { .. } | StressOperation::Backup(_) => return None,
        StressOperation::Reopen(reopening) => {
            let end = if reopening.end == End::Drop { End::Drop } else { End::Close };
            let (failure, rot, repair) = (None, None, None);
            StressOperation::Reopen(Reopening { end, setup: reopening.setup, failure, rot, repair })
        }
        other => other.clone(),
    };
    Some(StressStep { number: step.number, operation })
}

#[test]
fn histories_in_peace_are_right_on_the_real_disk_too() {
    let (nobody, mut flushes) = (AtomicU64::new(0), 0);
    for seed in 0..8 {
        FOLDER.replace(Some(tempfile::tempdir().expect("a folder")));
        let history = draw::history(seed, 700);
        let steps: Vec<StressStep> = history.steps.iter().filter_map(in_peace).collect();
        let done = run_steps(&history, &steps, |_| real_disk(), &nobody);
        flushes += done.unwrap_or_else(|failed| panic!("seed {seed}: {failed:?}")).flushes;
    }
    assert!(flushes > 100, "{flushes}");
}

/// A disk that lies in one way.
struct Liar {
    disk: Memory,
    lie: DiskLie,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DiskLie {
    /// Syncs of files do nothing.
    FileSync,
    /// Syncs of folders do nothing.
    FolderSync,
    /// Some appends write other bytes than given.
    Append,
}

struct LyingFile {
    file: Box<dyn Append>,
    lie: DiskLie,
    appended: u32,
}

impl Append for LyingFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.appended += 1;
        if self.lie == DiskLie::Append && self.appended == 20 {
            return self.file.append(&vec![0; bytes.len()]);
        }
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.lie == DiskLie::FileSync { Ok(()) } else { self.file.sync() }
    }
}

struct LyingFolder {
    folder: Arc<dyn Folder>,
    lie: DiskLie,
}

impl StorageWrapper for Liar {
    fn inner(&self) -> &dyn Storage {
        &self.disk
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(LyingFolder { folder: self.disk.open_folder(dir)?, lie: self.lie }))
    }
}

impl FolderWrapper for LyingFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.folder
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        let file = self.folder.create_with(name, access)?;
        Ok(Box::new(LyingFile { file, lie: self.lie, appended: 0 }))
    }

    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(LyingFolder { folder: self.folder.make_folder(name)?, lie: self.lie }))
    }

    fn sync(&self) -> io::Result<()> {
        if self.lie == DiskLie::FolderSync { Ok(()) } else { self.folder.sync() }
    }
}

/// Returns the failure that a run on a lying disk finds.
fn found_behind(door: Door) -> StressFailure {
    let report = run(&plan(1, 20, 1500), door, &mut Silent);
    let failure = report.failure.expect("the lie is found");
    let again = format!("trommel stress --seed {} --steps 1500", failure.seed);
    assert_eq!(failure.again, again);
    // The seed alone repeats the failure.
    let nobody = AtomicU64::new(0);
    let failing =
        run_seed::<History>(failure.seed, 1500, door, &nobody).expect_err("a seed has one outcome");
    assert_eq!((failing.at, failing.wrong), (failure.step, failure.wrong.clone()));
    failure
}

#[test]
fn a_sync_that_is_a_lie_is_found_and_told_in_few_steps() {
    let door: Door = |disk| Arc::new(Liar { disk, lie: DiskLie::FileSync });
    let failure = found_behind(door);
    assert!(failure.history.len() <= 4, "{failure:#?}");
    assert!(failure.history.iter().any(|step| step.contains("power cut")), "{failure:#?}");
}

#[test]
fn a_folder_that_was_not_synced_is_found() {
    let door: Door = |disk| Arc::new(Liar { disk, lie: DiskLie::FolderSync });
    let failure = found_behind(door);
    assert!(failure.history.len() <= 8, "{failure:#?}");
}

#[test]
fn bytes_that_change_on_their_way_are_found() {
    let door: Door = |disk| Arc::new(Liar { disk, lie: DiskLie::Append });
    let failure = found_behind(door);
    assert!(failure.history.len() <= 60, "{failure:#?}");
}
