//! A short run; and that the replay finds what is broken is a test of its own.

use super::*;
use crate::progress::Silent;

#[test]
fn commits_of_threads_are_as_if_one_had_come_after_the_other() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = CommitsPlan {
        seed: 1,
        threads: 3,
        time: Duration::from_millis(1),
        folder: folder.path().to_path_buf(),
    };
    let report = run(&plan, &mut Silent);
    assert!(report.failure.is_none(), "{:#?}", report.failure);
    assert_eq!(report.histories, 1);
    assert!(report.commits > 500 && report.reads > 500 && report.conflicts > 10, "{report:?}");
}
