//! Tests of the text of reports.

use trommel_lab::{EmptyQueryAnswer, FillReport};

use super::*;

fn report(engine: &str, guard: &str, ns_per_op: f64, shape: ShapeName) -> CompareReport {
    let answer = || AnswerReport {
        ops: 10,
        ns_per_op,
        cpu_ns_per_op: 0.8 * ns_per_op,
        ns_p99: 2.0 * ns_per_op,
    };
    CompareReport {
        engine: engine.into(),
        guard: guard.into(),
        settings: "as it is".into(),
        shape,
        keys: 1000,
        runs: Some(21),
        runs_planned: Some(21),
        guard_bits_per_key: Some(9.5),
        dist: "uniform".into(),
        seed: 1,
        range_width: 64,
        value_bytes: 256,
        load: FillReport {
            seconds: 1.0,
            ops_per_s: 1e9 / ns_per_op,
            ns_per_op,
            seconds_of_all: vec![1.0],
            ns_per_op_of_all: vec![ns_per_op],
        },
        false_negatives: 0,
        point_miss: answer(),
        point_hit: answer(),
        empty_range: answer(),
        seek: answer(),
        seek_next_50: answer(),
        asked: Vec::new(),
    }
}

#[test]
fn the_table_has_times_and_how_many_times_as_long() {
    let of = |shape, cpu| {
        let peer = report("rocksdb", "bloom", 5000.0, shape);
        text(&[report("trommel", "grf", 500.0, shape), peer], cpu)
    };
    let runs = of(ShapeName::Runs, false);
    assert!(runs.contains("rocksdb, bloom: 1,000 keys (uniform)") && runs.contains("as it is"));
    assert_eq!(runs.matches("500 ns  5.00 µs (10.00x)").count(), 5, "{runs}");
    assert!(!runs.contains("fill_random"));
    let by_default = of(ShapeName::Default, false);
    assert_eq!(by_default.matches("500 ns  5.00 µs (10.00x)").count(), 6, "{by_default}");
    assert!(by_default.contains("fill_random"));
    let cpu = of(ShapeName::Default, true);
    assert_eq!(cpu.matches("400 ns  4.00 µs (10.00x)").count(), 5, "{cpu}");
    assert_eq!(
        cpu.matches("500 ns  5.00 µs (10.00x)").count(),
        1,
        "filling is told in time: {cpu}"
    );
}

#[test]
fn what_else_was_asked_is_a_row_each() {
    let of = |engine, guard, ns_per_op| {
        let report = report(engine, guard, ns_per_op, ShapeName::Runs);
        let answer = report.seek.clone();
        CompareReport {
            asked: vec![EmptyQueryAnswer { question: "next".into(), answer }],
            ..report
        }
    };
    let text = text(&[of("trommel", "grf", 500.0), of("rocksdb", "bloom", 5000.0)], false);
    assert_eq!(text.matches("500 ns  5.00 µs (10.00x)").count(), 6, "{text}");
    assert!(text.contains("next  "), "{text}");
}

#[test]
fn an_engine_has_the_filter_it_is_named_with_or_each_of_the_others() {
    let of = |name: &str| -> Vec<String> {
        let Ok(peer) = name.parse();
        let filters = ["bloom", "none"].map(String::from);
        with_filters(&peer, &filters).iter().map(Contender::to_string).collect()
    };
    assert_eq!(of("rocksdb"), ["rocksdb:bloom", "rocksdb:none"]);
    assert_eq!(of("rocksdb:prefix-bloom:4"), ["rocksdb:prefix-bloom:4"]);
}

#[test]
fn wrong_answers_are_told_by_the_exit_status() {
    let right = report("trommel", "grf", 1.0, ShapeName::Runs);
    assert_eq!(verdict(std::slice::from_ref(&right)), Status::Fine);
    let wrong = CompareReport { false_negatives: 1, ..right.clone() };
    assert_eq!(verdict(&[right, wrong]), Status::No);
}
