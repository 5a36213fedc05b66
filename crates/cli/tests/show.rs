//! What is shown and measured: statistics, the picture, the demo, the benchmarks.

mod common;

use common::Workplace;

fn loaded() -> Workplace {
    let place = Workplace::new();
    let lines: String = (0..5000).map(|number| format!("key{number:05}\n")).collect();
    place.file("keys", lines);
    place.run("load --db s keys").with_status(0);
    place
}

#[test]
fn statistics_have_three_forms() {
    let place = loaded();
    let json = place.run("stats --db s --json").json(0);
    assert_eq!(json["guard"]["kind"], "grf");
    assert!(json["point"]["queries"].is_u64() && json["levels"][0]["runs"].is_array());
    assert_eq!(json["guard"]["built_at_open"], true);
    let text = place.run("stats --db s").with_status(0);
    assert!(text.contains("guard memory") && text.contains("needless runs"), "{text}");
    let prometheus = place.run("stats --db s --prometheus").with_status(0);
    assert!(prometheus.lines().any(|line| line.starts_with("trommel_")), "{prometheus}");
    place.run("stats --db s --prometheus --json").fails(2, &["--json"]);
}

#[test]
fn the_tree_is_a_picture() {
    let place = loaded();
    let picture = place.run("inspect --db s").with_status(0);
    assert!(picture.contains("level 0") && picture.contains('█'), "{picture}");
    assert!(picture.contains("5,000 keys") && picture.contains("guard grf"), "{picture}");
    let json = place.run("inspect --db s --json").json(0);
    assert_eq!(json["levels"][0]["runs"][0]["entries"], 5000);
    place.run("inspect --db s --guard none").with_status(0);
}

#[test]
fn the_demo_compares_the_guards() {
    let place = Workplace::new();
    let text = place.run("demo --keys 3000 --queries 200").with_status(0);
    for word in
        ["none", "blocked-bloom", "grf", "blocks", "needless", "level 2", "Wrong answers: 0"]
    {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|columns| columns <= 80), "{widest:?} columns:\n{text}");
    let json = place.run("demo --keys 3000 --queries 200 --json").json(0);
    let guards = json["guards"].as_array().expect("guards");
    assert_eq!(guards.len(), 3);
    for guard in guards {
        assert_eq!((&guard["runs"], &guard["false_negatives"]), (&19.into(), &0.into()), "{guard}");
    }
    assert_eq!(guards[2]["point_miss"]["guard_probes_per_op"], 1.0);
    assert_eq!(json["tree"]["guard"]["kind"], "grf");
}

#[test]
fn bench_read_gives_an_object_or_an_array() {
    let place = Workplace::new();
    let shape = "--levels 2 --size-ratio 4 --keys 2000 --queries 100 --no-sync";
    let one = place.run(&format!("bench read {shape} --json --db b")).json(0);
    assert_eq!(
        (&one["guard"], &one["runs"], &one["keys"]),
        (&"grf".into(), &4.into(), &2000.into())
    );
    assert!(place.path("b/grf").is_dir(), "--db keeps the store");
    place.run(&format!("bench read {shape} --db b")).fails(3, &["not empty"]);
    let several =
        place.run(&format!("bench read {shape} --guard none,grf --dist clustered --json")).json(0);
    assert_eq!(several.as_array().map(Vec::len), Some(2));
    let single = place.run("bench read --levels 1 --keys 2000 --queries 100 --json").json(0);
    assert_eq!(single["runs"], 1);
    let text = place.run(&format!("bench read {shape}")).with_status(0);
    assert!(text.contains("empty_range") && text.contains("wrong answers: 0"), "{text}");
}

#[test]
fn bench_read_takes_keys_of_a_file() {
    let place = Workplace::new();
    let words: String =
        (0..3000).map(|number| format!("word-{}\n", number * 7919 % 100_003)).collect();
    place.file("words", words);
    let shape = "--levels 2 --size-ratio 4 --queries 100 --range-width 1";
    let json = place.run(&format!("bench read {shape} --dist file:words --json")).json(0);
    assert_eq!((&json["keys"], &json["false_negatives"]), (&2625.into(), &0.into()));
}

#[test]
fn bench_probe_measures_filters_alone() {
    let place = Workplace::new();
    let probe = "bench probe --guard blocked-bloom,grf --keys 20000 --queries 200";
    let json = place.run(&format!("{probe} --json")).json(0);
    for filter in json.as_array().expect("two filters") {
        assert_eq!(filter["false_negatives"], 0);
        for field in ["build_ns_per_key", "insert_ns_per_key", "line_ns"] {
            assert!(filter[field].is_number(), "{field}");
        }
        assert!(filter["probe_ns"]["point_miss"].is_number());
    }
    assert!(json[0]["probe_all_ns"]["point_miss"].is_number());
    assert!(json[1]["probe_ns"]["empty_range"].is_number());
    assert!(place.run(probe).with_status(0).contains("false negatives"));
}
