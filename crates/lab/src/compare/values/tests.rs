//! Tests of `bench values`, at small scale.

use super::*;
use crate::compare::Trommel;
use crate::compare::tests::{Fault, FaultyEngine};
use crate::progress::Silent;

fn plan(folder: &Path) -> ValuesPlan {
    ValuesPlan {
        stores: StoresPlan {
            contenders: vec!["trommel".parse().expect("any name is one")],
            bits_per_key: 12.0,
            block_cache_bytes: 1 << 18,
            write_buffer_bytes: 1 << 16,
            merge_threads: 1,
            seed: 5,
            folder: folder.join("stores"),
        },
        value_bytes: vec![2000, 40_000],
        compressible: true,
        packings: vec![PeerPacking::NONE],
        apart_from: Some(1024),
        garbage_share: None,
        data_bytes: 2 << 20,
        overwrites: 2.5,
        get_bytes: 1 << 19,
        rounds: 2,
    }
}

#[test]
fn every_step_is_measured_and_every_answer_right() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = plan(folder.path());
    let engines: Vec<Box<dyn Engine>> = vec![Box::new(Trommel)];
    let reports = bench_values(&plan, &engines, &mut Silent).expect("measured");
    assert_eq!(reports.len(), 2);
    for (report, value_bytes) in reports.iter().zip([2000, 40_000]) {
        let keys = (2 << 20) / value_bytes;
        assert_eq!((report.value_bytes, report.keys, report.wrong), (value_bytes, keys, 0));
        assert!(report.settings.contains("apart from 1024 bytes"), "{}", report.settings);
        let names: Vec<&str> = report.steps.iter().map(|step| &step.name[..]).collect();
        let writes = ["load", "load, settled", "overwrite", "overwrite, settled"];
        assert_eq!(names[..4], writes);
        let reads = ["get", "get, cached", "get, from the disk", "scan", "scan of keys"];
        assert_eq!(names[4..], reads);
        let rates = report.steps.iter().map(|step| (step.per_s, step.bytes_per_s));
        assert!(rates.clone().all(|(each, bytes)| each > 0.0 && bytes > each));
        assert!(report.steps.iter().all(|step| step.seconds.len() == 2));
        assert_eq!(report.steps[2].operations, keys * 5 / 2);
        // The space is that of all live values, and little more than the allowed garbage.
        let space = report.space_per_byte;
        assert!((1.0..4.0).contains(&space), "{value_bytes} bytes: {space}");
        if cfg!(target_os = "linux") {
            let written = report.written_per_byte.expect("the system tells");
            assert!(written > 0.0, "{written}");
        }
    }
    assert!(!plan.stores.folder.join("trommel-grf").exists());
}

#[test]
fn values_in_tables_are_measured_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = ValuesPlan { apart_from: None, overwrites: 0.0, ..plan(folder.path()) };
    let plan = ValuesPlan { packings: vec![PeerPacking::NONE, lz4()], ..plan };
    let engines: Vec<Box<dyn Engine>> = vec![Box::new(Trommel)];
    let reports = bench_values(&plan, &engines, &mut Silent).expect("measured");
    let of = |value_bytes, packing: &PeerPacking| {
        let is_it = |it: &&ValuesReport| it.value_bytes == value_bytes && it.packing == *packing;
        reports.iter().find(is_it).expect("it was measured")
    };
    let [plain, packed] = [PeerPacking::NONE, lz4()].map(|it| of(2000, &it).space_per_byte);
    assert!(packed < 0.7 * plain, "{packed} of {plain}: values compress to half");
    assert!(reports.iter().all(|report| report.wrong == 0 && report.steps.len() == 7));
}

fn lz4() -> PeerPacking {
    "lz4".parse().expect("a name")
}

#[test]
fn wrong_answers_are_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (fault, least) in [(Fault::StopsScansEarly, 100), (Fault::FindsNothingAtZero, 1)] {
        let engines: Vec<Box<dyn Engine>> = vec![Box::new(FaultyEngine(fault))];
        let contenders = vec!["faulty".parse().expect("any name is one")];
        let mut plan = ValuesPlan { value_bytes: vec![2000], ..plan(folder.path()) };
        plan.stores.contenders = contenders;
        let reports = bench_values(&plan, &engines, &mut Silent).expect("measured");
        assert!(reports[0].wrong >= least, "{} wrong", reports[0].wrong);
    }
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = plan(folder.path());
    let refused = |plan: &ValuesPlan| {
        let engines: Vec<Box<dyn Engine>> = vec![Box::new(Trommel)];
        bench_values(plan, &engines, &mut Silent).expect_err("it makes no sense").to_string()
    };
    let of = |value_bytes| ValuesPlan { value_bytes, ..plan.clone() };
    assert!(refused(&of(vec![])).contains("one length"));
    assert!(refused(&of(vec![15])).contains("16 bytes"));
    assert!(refused(&of(vec![3 << 20])).contains("as much data"));
    assert!(refused(&ValuesPlan { garbage_share: Some(1.5), ..plan.clone() }).contains("garbage"));
    assert!(refused(&ValuesPlan { rounds: 0, ..plan.clone() }).contains("rounds"));
    assert!(refused(&ValuesPlan { overwrites: f64::NAN, ..plan.clone() }).contains("overwrites"));
}
