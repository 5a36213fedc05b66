//! What is shown and measured: statistics, the picture, the demo, the benchmarks.

use crate::common::Workplace;
use serde_json::{Value, json};

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
    assert_eq!(
        (&json["guard"]["built_at_open"], &json["filter_recovery"]),
        (&false.into(), &"image".into())
    );
    let nobody =
        json!({"tables": 0, "bytes": 0, "scans": 0, "pinned_trees": 0, "followed_trees": 0});
    assert_eq!((&json["obsolete"], &json["unsynced_seconds"]), (&nobody, &Value::Null));
    let json = place.run("stats --db s --guard none --json").json(0);
    assert_eq!(json["filter_recovery"], "none");
    let text = place.run("stats --db s").with_status(0);
    assert!(text.contains("filter at open") && text.contains("image ("), "{text}");
    let lines =
        |name: &str| text.lines().filter(|line| line.trim_start().starts_with(name)).count();
    assert_eq!((lines("tables out of the tree"), lines("oldest write not synced")), (1, 1));
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
    assert_eq!(json["policy"]["name"], "lazy-leveling");
}

#[test]
fn trees_of_every_policy_are_drawn() {
    let place = loaded();
    for (policy, expected) in [
        ("leveling", "level 0    1 run (at most 1)"),
        ("tiering --size-ratio 4", "level 0    1 run (at most 3)"),
        ("rocksdb", "policy     rocksdb"),
        ("leveling;ratios=4,10;last_runs=2", "level 0    1 run (at most 2)"),
    ] {
        let command = format!("inspect --db s --svg tree.svg --policy {policy}");
        let text = place.run(&command).with_status(0);
        assert!(text.contains(expected), "{text}");
        let svg = std::fs::read_to_string(place.path("tree.svg")).expect("was written");
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
        assert!(svg.contains("[0, 1): 5,000 keys") && svg.contains("guard grf"), "{svg}");
        assert!(svg.contains("prefers-color-scheme:dark"), "{svg}");
        assert!(
            crate::common::smallest_text(&svg) >= 9.0,
            "{}: {svg}",
            crate::common::smallest_text(&svg)
        );
        let boxes = svg.matches("<rect").count();
        assert_eq!(boxes, 4, "a run, base and overlay, and what is behind them");
    }
    place.run("inspect --db s --policy levelling").fails(2, &["levelling", "tiering"]);
    place.run("inspect --db s --policy leveling;last_runs=0").fails(2, &["policy.last_runs"]);
    place.run("inspect --db s --policy leveling;ratios=1,4").fails(2, &["policy.ratios"]);
    place.run("inspect --db s --svg no/such/folder.svg").fails(3, &["no/such/folder.svg"]);
}

#[test]
fn parts_of_the_filter_are_drawn_each_with_its_base() {
    let place = Workplace::new();
    place
        .run("bench write --db s --keys 20000 --value-bytes 20 --write-buffer 16KiB --partition-bytes 32KiB --policy leveling;ratios=4 --sync never")
        .with_status(0);
    let text = place.run("inspect --db s/grf --svg tree.svg").with_status(0);
    let parts = text.lines().find(|line| line.starts_with("parts ")).expect("a line for them");
    assert!(parts.contains("bases") && parts.contains("overlays"), "{text}");
    let json = place.run("inspect --db s/grf --json").json(0);
    let partitions = json["ranges"]["partitions"].as_array().expect("a list");
    assert!(partitions.len() > 4, "{json}");
    assert!(partitions.iter().all(|part| part["base_bytes"].as_u64() > Some(0)), "{json}");
    let svg = std::fs::read_to_string(place.path("tree.svg")).expect("was written");
    for place in 0..partitions.len() {
        assert!(svg.contains(&format!("<title>part {place}, from key ")), "part {place}: {svg}");
    }
}

#[test]
fn what_filters_are_told_is_shown_as_it_is_typed() {
    let place = loaded();
    let surf = "--db s --guard surf-mixed --surf-suffix hash:2+real:6 --surf-size-ratio 9";
    let expected = "surf-suffix hash:2+real:6, surf-size-ratio 9";
    assert_eq!(place.run(&format!("stats {surf} --json")).json(0)["guard"]["tuning"], expected);
    for command in ["stats", "inspect"] {
        let text = place.run(&format!("{command} {surf}")).with_status(0);
        assert!(text.contains("new filters") && text.contains(expected), "{text}");
    }
    let prefix = place.run("stats --db s --guard prefix-bloom --prefix-rule sep:/").with_status(0);
    assert!(prefix.contains("prefix-rule sep:/"), "{prefix}");
    let elastic = place.run("inspect --db s --guard elastic --elastic-units 3").with_status(0);
    assert!(elastic.contains("elastic-units 3"), "{elastic}");
    let none = place.run("stats --db s --guard bloom").with_status(0);
    assert!(!none.contains("new filters"), "{none}");
    let help = place.run("bench probe --help").with_status(0);
    for option in ["--surf-suffix", "--prefix-rule", "--rosetta-range-bits", "--elastic-units"] {
        assert!(help.contains(option), "{help}");
    }
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
    let threads = format!("bench read {shape} --threads 2 --skew zipf:0.99 --json");
    let threads = place.run(&threads).json(0);
    assert_eq!((&threads["threads"], &threads["false_negatives"]), (&2.into(), &0.into()));
    assert_eq!(threads["point_hit"]["ops"], 200);
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
    assert!(json[0]["batch_ns"].is_null() && json[1]["batch_ns"]["point_hit"].is_number());
    let text = place.run(probe).with_status(0);
    assert!(text.contains("false negatives") && text.contains("batches of 16: point, miss"));
    assert!(!text.contains("threads"), "{text}");
}

#[test]
fn bench_probe_asks_hot_keys_with_several_threads() {
    let place = Workplace::new();
    let probe = "bench probe --guard surf-real --keys 5000 --queries 200 --skew scattered-zipf:0.99 --threads 2";
    let report = place.run(&format!("{probe} --json")).json(0);
    assert_eq!(
        (&report["skew"], &report["false_negatives"]),
        (&"scattered-zipf:0.99".into(), &0.into())
    );
    let together = &report["together"];
    assert_eq!(together["threads"], 2);
    for way in ["times_as_fast", "apart_times_as_fast", "of_cores_times_as_fast"] {
        let rounds = together[format!("{way}_rounds")].as_array().map(Vec::len);
        assert!(together[way].is_number() && rounds == Some(7), "{way}: {together}");
    }
    let text = place.run(probe).with_status(0);
    assert!(text.contains("2 threads, one filter") && text.contains("2 threads, each its own"));
}

#[test]
fn bench_surf_steps_asks_a_filter_or_an_index() {
    let place = Workplace::new();
    for (options, index) in [("", false), (" --as-index", true)] {
        let steps = "bench surf-steps --keys 3000 --queries 200";
        let steps = place.run(&format!("{steps}{options} --json")).json(0);
        let steps = steps.as_array().expect("steps");
        assert_eq!(steps.len(), 6);
        for step in steps {
            assert_eq!((&step["index"], &step["wrong_answers"]), (&index.into(), &0.into()));
        }
    }
}

#[test]
fn bench_fpr_prints_a_table_for_each_distribution() {
    let place = Workplace::new();
    let fpr = "bench fpr --keys 3000 --queries 500 --dist uniform,ids --bits-per-key 12 --range-width 1,32";
    let text = place.run(fpr).with_status(0);
    let headings: Vec<&str> = text.lines().filter(|line| line.contains("3,000 keys")).collect();
    assert!(
        matches!(headings[..], [first, second] if first.starts_with("uniform: ")
        && second.starts_with("ids: ") && second.contains("false negatives: 0 of")),
        "{text}"
    );
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("auto")).collect();
    assert_eq!(rows.len(), 4, "{text}");
    assert!(rows[0].matches(" ± ").count() == 2 && rows[3].matches(" ± ").count() == 1, "{text}");
    let json = place.run(&format!("{fpr} --json")).json(0);
    assert_eq!(json.as_array().map(Vec::len), Some(2));
    for (filter, fill) in [(&json[0]["filters"][0], 9), (&json[0]["filters"][1], 1)] {
        assert_eq!((&filter["fill"], &filter["false_negatives"]), (&fill.into(), &0.into()));
        let rate = &filter["rates"][1];
        assert_eq!((&rate["range_width"], &rate["queries"]), (&32.into(), &500.into()));
        let ends = rate["interval_95"].as_array().expect("an interval");
        let share = rate["false_positive_rate"].as_f64();
        assert!(ends[0].as_f64() <= share && share < ends[1].as_f64(), "{rate}");
    }
    assert!(json[1]["filters"][0]["rates"][1]["false_positive_rate"].is_null());
    assert_eq!(place.run(&format!("{fpr} --json")).json(0), json, "one seed, one history");
}

#[test]
fn bench_fpr_names_the_questions_that_it_asks() {
    let place = Workplace::new();
    let fpr = "bench fpr --dist user-time --keys 3000 --queries 500 --bits-per-key 12 --fill 9 \
               --range-width 32 --ask points,ranges,absent-prefix,present-prefix,second-part,next";
    let text = place.run(fpr).with_status(0);
    for name in ["2^5", "absent-prefix", "present-prefix", "second-part", "next 2^5"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(text.contains("false negatives: 0 of") && !text.contains("point "), "{text}");
    let json = place.run(&format!("{fpr} --json")).json(0);
    let rates = json["filters"][0]["rates"].as_array().expect("rates");
    let names: Vec<&str> = rates.iter().filter_map(|rate| rate["question"].as_str()).collect();
    assert_eq!(names, ["ranges", "absent-prefix", "present-prefix", "second-part", "next"]);
    assert!(rates.iter().all(|rate| rate["queries"] == 500), "{json}");
    assert!(rates[1]["range_width"].is_null() && rates[4]["range_width"] == 32, "{json}");
}

#[test]
fn bench_fpr_takes_keys_of_a_file() {
    let place = Workplace::new();
    let numbers: Vec<u8> = (0..4000u64).flat_map(|key| (key * key).to_le_bytes()).collect();
    place.file("squares", numbers);
    let fpr = "bench fpr --dist file:squares --file-format u64le --fill 1 --fingerprints gap,cell";
    let json = place.run(&format!("{fpr} --queries 300 --bits-per-key 14 --json")).json(0);
    assert_eq!((&json["dist"], &json["keys"]), (&"file:squares".into(), &3500.into()));
    let kinds = json["filters"].as_array().expect("filters").iter();
    let kinds: Vec<_> = kinds.map(|filter| &filter["fingerprints"]).collect();
    assert_eq!(kinds, ["gap", "cell"]);
}
