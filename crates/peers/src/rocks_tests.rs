//! The seam's contract, kept by every engine here: each answers like a map.

use trommel_lab::{
    ComparePlan, Contender, Engine, PeerSettings, PeerShape, ShapeName, Silent, bench_compare,
    check_peer,
};

use crate::engines;
use crate::rocks::Rocks;

fn settings() -> PeerSettings {
    PeerSettings { bits_per_key: 10.0, block_cache_bytes: 8 << 20, shape: PeerShape::Default }
}

#[test]
fn every_engine_answers_like_a_map_with_every_filter() {
    for engine in engines() {
        for filter in engine.filters() {
            for seed in 1..4 {
                let folder = tempfile::tempdir().expect("a folder");
                let peer = engine.open(folder.path(), &filter, &settings()).expect("opens");
                let wrong = check_peer(peer.as_ref(), seed, 3000).expect("no error");
                assert_eq!(wrong, None, "{} with {filter}", engine.name());
                peer.close().expect("closes");
            }
        }
    }
}

#[test]
fn given_runs_are_made_and_answered_from_whatever_the_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let contender =
        |engine: &str, filter: &str| Contender { engine: engine.into(), filter: filter.into() };
    let plan = ComparePlan {
        contenders: vec![
            contender("trommel", "grf"),
            contender("rocksdb", "bloom"),
            contender("rocksdb", "prefix-bloom:6"),
            contender("rocksdb", "none"),
        ],
        shape: ShapeName::Runs,
        keys: 20_000,
        dist: "uniform".into(),
        value_bytes: 30,
        bits_per_key: 10.0,
        block_cache_bytes: None,
        size_ratio: 5,
        queries: 500,
        range_width: 64,
        loads: 1,
        seed: 3,
        folder: folder.path().to_path_buf(),
    };
    let reports = bench_compare(&plan, &engines(), &mut Silent).expect("measured");
    for report in &reports {
        let name = (&report.engine, &report.guard);
        assert_eq!((report.false_negatives, report.runs), (0, Some(9)), "{name:?}");
        let bits = report.guard_bits_per_key.expect("both know it");
        let expected = if report.guard == "none" { 0.0..0.1 } else { 5.0..20.0 };
        assert!(expected.contains(&bits), "{name:?}: {bits}");
    }
    assert!(reports[1].settings.contains("bloom at 10 bits"), "{}", reports[1].settings);
}

#[test]
fn a_filter_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["blom", "prefix-bloom", "prefix-bloom:0", "prefix-bloom:9", ""] {
        assert!(Rocks.open(folder.path(), name, &settings()).is_err(), "{name}");
    }
}
