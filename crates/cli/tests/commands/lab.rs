//! `trommel lab`, as a user runs it: plans, records, reports.

use crate::common::Workplace;

const PLAN: &str = r#"
title = "Filters alone"
source = "a test"
about = "Small."

[[run]]
command = "bench probe"
[run.set]
guard = "bloom,binary-fuse,surf-base"
keys = { small = 2000, full = 4000 }
queries = 200
bits-per-key = [8, 12]

[[figure]]
title = "False positives"
x = "bits_per_key"
x_label = "bits per key"
y = "false_positive_rate.point_miss"
y_label = "share"
series = ["guard"]

[[claim]]
says = "No key is denied"
source = "the law"
value = "false_negatives"
each = ["guard", "bits_per_key"]
at_most = 0
"#;

fn workplace() -> Workplace {
    let place = Workplace::new();
    std::fs::create_dir(place.path("plans")).expect("a folder");
    place.file("plans/alone.toml", PLAN);
    place
}

#[test]
fn a_plan_is_run_once_and_reported() {
    let place = workplace();
    let listed = place.run("lab list --machine test").with_status(0);
    assert!(listed.contains("alone") && listed.contains("0 of 2"), "{listed}");
    let dry = place.run("lab run --dry-run --scale full").with_status(0);
    assert!(
        dry.starts_with("trommel bench probe --guard bloom,binary-fuse,surf-base --keys 4000"),
        "{dry}"
    );
    let steps = place.run("lab run --dry-run --scale full --json").json(0);
    assert_eq!(
        (&steps[0]["plan"], &steps[0]["command"]),
        (&"alone".into(), &dry.lines().next().into())
    );
    assert!(!place.path("records").exists(), "a dry run measures nothing");
    let output = place.run("lab run --machine test --report page.html --json").json(0);
    assert_eq!((&output["measured"], &output["kept"]), (&2.into(), &0.into()));
    let output = place.run("lab run --machine test --json").json(0);
    assert_eq!(
        (&output["measured"], &output["kept"]),
        (&0.into(), &2.into()),
        "it is not run again"
    );
    let page = std::fs::read_to_string(place.path("page.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("binary-fuse") && page.contains("holds"));
    let report = "lab report --machine test --markdown results.md --csv tables";
    let claims = place.run(&format!("{report} --json")).json(0);
    assert_eq!((&claims[0]["verdict"], &claims[0]["plan"]), (&"holds".into(), &"alone".into()));
    let text = place.run(report).with_status(0);
    assert!(text.starts_with("1 of 1 claims hold.\n"), "{text}");
    assert!(text.contains("No key is denied") && text.contains("holds"), "{text}");
    let checked = place.run("lab check --machine test --json");
    assert_eq!(checked.status, 1, "{}", checked.out);
    assert!(checked.out.contains("bits per key taken"), "{}", checked.out);
    let results = std::fs::read_to_string(place.path("results.md")).expect("results");
    assert!(
        results.contains("**1 of 1 claims hold.**") && results.contains("](figures/alone.svg)"),
        "{results}"
    );
    let figure = std::fs::read_to_string(place.path("figures/alone.svg")).expect("a figure");
    assert!(figure.starts_with("<svg") && figure.contains("binary-fuse"), "{figure}");
    let table = std::fs::read_to_string(place.path("tables/alone.csv")).expect("a table");
    assert_eq!(table.lines().count(), 7, "a heading, and a row for each filter and budget");
}

#[test]
fn what_fails_is_told_and_the_rest_is_measured() {
    let place = workplace();
    let wrong = PLAN.replace("bits-per-key = [8, 12]", "bits-per-key = [8, -3]");
    place.file("plans/alone.toml", wrong);
    let ended = place.run("lab run --machine test");
    assert_eq!((ended.status, ended.out.as_str()), (1, "1 measurement, 1 failed\n"));
    assert!(ended.err.contains("--bits-per-key -3 --json failed"), "{}", ended.err);
    let listed = place.run("lab list --machine test --json").json(0);
    assert_eq!(listed[0]["measured"], 1);
    place.run("lab report nothing --machine test").fails(2, &["no plan 'nothing'", "alone"]);
    place.run("lab list --plans nowhere").fails(3, &["nowhere", "--plans"]);
    place.run("lab run --scale huge").fails(2, &["there are: small, full"]);
}

#[test]
fn a_machine_without_records_is_an_error_that_says_what_to_type() {
    let place = workplace();
    let report = "lab report --markdown results.md --html page.html";
    place.run(report).fails(2, &["records", "no records of this machine", "trommel lab run"]);
    place.run("lab run --machine test").with_status(0);
    let typed = "records has no records for --machine other: type --machine test";
    place.run(&format!("{report} --machine other")).fails(2, &[typed]);
    place.run(report).fails(2, &["of this machine", "type --machine test"]);
    place.run("lab check").fails(2, &["type --machine test"]);
    for file in ["results.md", "page.html"] {
        assert!(!place.path(file).exists(), "{file} would show nothing");
    }
    std::fs::create_dir(place.path("records/notes")).expect("a folder that is no machine's");
    let copy = place.path("records/second");
    std::fs::create_dir(&copy).expect("a folder");
    std::fs::write(copy.join("alone.jsonl"), "").expect("a file");
    place.run(report).fails(2, &["type --machine NAME; there are machines: second, test"]);
    let none = place.run("lab report --machine second");
    assert_eq!((none.status, none.err.contains("second has no records of these plans")), (1, true));
}
