//! Writes of every pattern, at a rate, and what is counted as wrong.

use std::path::Path;

use super::*;
use crate::progress::Silent;

pub(super) fn plan(folder: &Path, pattern: WritePattern, threads: usize) -> WritePlan {
    WritePlan {
        guard: GuardKind::Grf,
        bits_per_key: 12.0,
        monkey: false,
        point_bits: 0,
        filter: FilterTuning::default(),
        elastic: ElasticOptions::default(),
        threads,
        sync: SyncPolicy::Never,
        synced: true,
        keys: 5000,
        value_bytes: 20,
        bytes_per_second: None,
        pattern,
        write_buffer_bytes: 16 << 10,
        size_ratio: 4,
        policy: Policy::default(),
        granularity: Granularity::Partitioned,
        partition_bytes: 1 << 14,
        merge_threads: threads,
        is_stepped: false,
        table_bytes: 1 << 20,
        eager_tombstones: false,
        seed: 7,
        folder: folder.to_path_buf(),
        record: None,
    }
}

#[test]
fn every_pattern_is_written_and_read_back() {
    for (pattern, threads) in [
        (WritePattern::Random, 1),
        (WritePattern::Random, 3),
        (WritePattern::Sequential, 2),
        (WritePattern::Update, 2),
        (WritePattern::ShortLived, 2),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut plan = plan(&folder.path().join("store"), pattern, threads);
        plan.synced = threads == 1;
        let report = bench_write(&plan, &mut Silent).expect("measures");
        assert_eq!(report.wrong_answers, 0, "{pattern:?}");
        assert_eq!(report.sync == "none", !plan.synced);
        assert!(report.flushes > 2 && report.merges > 0, "{report:?}");
        assert!(report.table_writes > 1.0 && report.table_writes_expected > 1.0, "{report:?}");
        assert!(report.write_amplification > 1.0 && report.space_amplification_peak > 0.5);
        let PutNs { p50, p99, p999, max } = report.put_ns;
        assert!(0 < p50 && p50 <= p99 && p99 <= p999 && p999 <= max, "{report:?}");
        assert!(report.ops_per_s > 0.0 && report.guard_ns_per_key > 0.0, "{report:?}");
        let used = bench_write(&plan, &mut Silent).expect_err("the folder is in use");
        assert!(matches!(used, LabError::Folder { .. }));
    }
}

#[test]
fn short_lived_keys_are_gone_whether_or_not_deletions_go_early() {
    for guard in ["grf", "bloom"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let measured = |eager_tombstones: bool| {
            let folder = folder.path().join(eager_tombstones.to_string());
            let guard = guard.parse().expect("a guard");
            let plan = plan(&folder, WritePattern::ShortLived, 1);
            let plan = WritePlan { guard, eager_tombstones, is_stepped: true, ..plan };
            bench_write(&plan, &mut Silent).expect("measures")
        };
        let [late, early] = [false, true].map(measured);
        assert_eq!((late.wrong_answers, early.wrong_answers), (0, 0), "{guard}");
        // Of 5,000 keys every second one of the first 4,975 is gone.
        assert_eq!((late.keys_left, early.keys_left), (2513, 2513));
        let entries = [late.entries_per_key_left, early.entries_per_key_left];
        assert!(entries[1] <= entries[0] && entries[1] >= 1.0, "{guard}: {entries:?}");
    }
}

#[test]
fn writes_keep_to_their_rate() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let steady = WritePlan {
        bytes_per_second: Some(500_000),
        ..plan(&folder.path().join("store"), WritePattern::Random, 2)
    };
    let report = bench_write(&steady, &mut Silent).expect("measures");
    // 5000 writes of 28 bytes.
    assert!(report.seconds >= 0.27, "{report:?}");
    assert_eq!((report.wrong_answers, report.bytes_per_s_asked), (0, Some(500_000)));
    let never = WritePlan { bytes_per_second: Some(0), ..steady };
    assert!(matches!(bench_write(&never, &mut Silent), Err(LabError::Plan(_))));
}

#[test]
fn a_wrong_value_is_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = plan(&folder.path().join("store"), WritePattern::Random, 1);
    bench_write(&plan, &mut Silent).expect("measures");
    let db = Db::open(&plan.folder, options(&plan)).expect("opens");
    assert_eq!(count_wrong(&db, &plan, &mut Silent).expect("reads"), 0);
    db.put(key_of(&plan, 3), "another value").expect("puts");
    assert_eq!(count_wrong(&db, &plan, &mut Silent).expect("reads"), 1);
    db.put([0xff; 9], "one too many").expect("puts");
    assert_eq!(count_wrong(&db, &plan, &mut Silent).expect("reads"), 2);
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let sound = plan(Path::new("nowhere"), WritePattern::Random, 1);
    for wrong in [
        WritePlan { threads: 0, ..sound.clone() },
        WritePlan { keys: 0, ..sound.clone() },
        WritePlan { value_bytes: VALUE_BYTES_MAX + 1, ..sound },
    ] {
        let refused = bench_write(&wrong, &mut Silent).expect_err("makes no sense");
        assert!(matches!(refused, LabError::Plan(_)), "{refused}");
    }
}
