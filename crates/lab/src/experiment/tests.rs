//! Tests of plans, records and reports, with a fake program.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

const PLAN: &str = r#"
title = "Misses <by> bits"
source = "GRF, Figure 10"
about = "What `it` is."

[[run]]
command = "bench read"
label = { disk = "none" }
[run.set]
guard = "grf,bloom"
keys = { small = 1000, full = [2000, 4000] }
bits-per-key = [8, 10.5]
no-sync = true
direct = false

[[figure]]
title = "Misses"
x = "bits_per_key"
x_label = "bits per key"
y = { miss = "point_miss.ns", hit = "point_hit.ns" }
y_label = "µs"
y_times = 0.001
series = ["guard"]
panel = "measure"

[[figure]]
title = "Nothing was measured for it"
x = "bits_per_key"
x_label = "bits per key"
y = "no.such"
y_label = "-"

[[claim]]
says = "GRF is twice as fast"
source = "the paper"
value = "point_miss.ns"
of = { guard = "grf" }
than = { guard = "bloom" }
each = ["bits_per_key"]
at_most = 0.5
otherwise = "It is small."

[[claim]]
says = "nothing is known"
source = "nobody"
value = "no.such"
at_least = 1
"#;

fn plan_in(folder: &Path) -> Experiment {
    let path = folder.join("misses.toml");
    std::fs::write(&path, PLAN).expect("a plan");
    load_experiment(&path).expect("it is well formed")
}

/// A fake program. In its output, bloom takes 100 ns per bit. Grf takes a third of that, or with
/// ten bits all of it.
struct Printer<'a> {
    asked: &'a RefCell<Vec<String>>,
    fails: &'a str,
}

impl Command for Printer<'_> {
    fn run(&mut self, arguments: &[String]) -> std::result::Result<Value, String> {
        let line = arguments.join(" ");
        self.asked.borrow_mut().push(line.clone());
        if !self.fails.is_empty() && line.contains(self.fails) {
            return Err("the disk is full".into());
        }
        let place = arguments.iter().position(|word| word == "--bits-per-key").expect("bits");
        let bits: f64 = arguments[place + 1].parse().expect("a number");
        let share = if bits > 10.0 { 1.0 } else { 1.0 / 3.0 };
        let of = |guard: &str, share: f64| {
            json!({ "guard": guard, "bits_per_key": bits, "point_miss": { "ns": 100.0 * bits * share },
                    "point_hit": { "ns": 1000.0 }, "levels": [{ "runs": 3 }, { "runs": 1 }], "nothing": null })
        };
        Ok(json!([of("grf", share), of("bloom", 1.0)]))
    }
}

struct Nobody(Vec<Outcome>);

impl Heard for Nobody {
    fn begins(&mut self, _nth: usize, _of: usize, _step: &Step, _seconds_left: Option<f64>) {}
    fn ended(&mut self, _step: &Step, outcome: &Outcome) {
        self.0.push(outcome.clone());
    }
}

fn measure(folder: &Path, fails: &str, keep: Keep) -> (RunSummary, Vec<String>) {
    let plan = plan_in(folder);
    let asked = RefCell::new(Vec::new());
    let mut printer = Printer { asked: &asked, fails };
    let machine = Machine::this(Some("test"));
    let mut heard = Nobody(Vec::new());
    let plans = std::slice::from_ref(&plan);
    let summary =
        run_experiments(plans, Scale::Small, folder, &machine, keep, &mut printer, &mut heard)
            .expect("records can be written");
    assert_eq!(heard.0.len(), plan.steps(Scale::Small).len(), "every step is told");
    (summary, asked.into_inner())
}

fn study_in(folder: &Path) -> Study {
    Study::load(plan_in(folder), Scale::Small, folder, "test").expect("records")
}

#[test]
fn axes_give_a_step_for_each_choice_and_the_last_moves_fastest() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan_in(folder.path());
    let lines = |scale| plan.steps(scale).iter().map(Step::command).collect::<Vec<_>>();
    assert_eq!(
        lines(Scale::Small),
        [
            "trommel bench read --guard grf,bloom --keys 1000 --bits-per-key 8 --no-sync --json",
            "trommel bench read --guard grf,bloom --keys 1000 --bits-per-key 10.5 --no-sync --json",
        ]
    );
    let full = lines(Scale::Full);
    assert_eq!(full.len(), 4);
    assert!(full[1].contains("--keys 2000 --bits-per-key 10.5"), "{}", full[1]);
    assert!(full[2].contains("--keys 4000 --bits-per-key 8"), "{}", full[2]);
}

#[test]
fn a_run_goes_on_where_it_was_interrupted_and_failed_steps_are_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (summary, asked) = measure(folder.path(), "10.5", Keep::ThisCommit);
    assert_eq!((summary.measured, summary.kept, asked.len()), (1, 0, 2));
    assert_eq!(summary.failed.len(), 1);
    assert!(summary.failed[0].1.contains("disk is full"));
    let (summary, asked) = measure(folder.path(), "", Keep::ThisCommit);
    assert_eq!((summary.measured, summary.kept, asked.len()), (1, 1, 1), "only what failed");
    let (summary, _) = measure(folder.path(), "", Keep::None);
    assert_eq!((summary.measured, summary.kept), (2, 0));
    let file = RecordFile::load(folder.path(), "test", "misses").expect("records");
    assert_eq!(file.records().len(), 2, "old records of the same command line are left out");
}

#[test]
fn a_torn_last_line_is_left_out_and_a_damaged_one_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    measure(folder.path(), "", Keep::ThisCommit);
    let path = folder.path().join("test/misses.jsonl");
    let whole = std::fs::read_to_string(&path).expect("records");
    std::fs::write(&path, &whole[..whole.len() - 10]).expect("a torn file");
    assert_eq!(study_in(folder.path()).measured(), (1, 2));
    let (summary, _) = measure(folder.path(), "", Keep::ThisCommit);
    assert_eq!((summary.measured, summary.kept), (1, 1));
    assert_eq!(study_in(folder.path()).measured(), (2, 2), "the torn line is gone");
    std::fs::write(&path, format!("{{\"arguments\"\n{whole}")).expect("a damaged file");
    let error = RecordFile::load(folder.path(), "test", "misses").expect_err("line 1 is damaged");
    assert!(error.to_string().contains("line 1"), "{error}");
}

#[test]
fn rows_have_the_fields_around_them() {
    let printed = json!({ "dist": "ids", "filters": [
        { "bits": 8, "rates": [{ "width": 1, "rate": 0.5 }, { "width": 32, "rate": null }] },
        { "bits": 9, "rates": [] },
    ]});
    let given = [
        ("dist".to_string(), Scalar::Text("other".into())),
        ("seed".to_string(), Scalar::Number(7.0)),
    ];
    let rows = rows::rows_of(&printed, Some("filters.rates"), &given);
    let row = |fields: &[(&str, Scalar)]| {
        Row(BTreeMap::from_iter(
            fields.iter().map(|(name, value)| (name.to_string(), value.clone())),
        ))
    };
    let around = [
        ("dist", Scalar::Text("ids".into())),
        ("seed", Scalar::Number(7.0)),
        ("bits", Scalar::Number(8.0)),
    ];
    let first = [("width", Scalar::Number(1.0)), ("rate", Scalar::Number(0.5))];
    let second = [("width", Scalar::Number(32.0))];
    assert_eq!(rows, [row(&[&around[..], &first].concat()), row(&[&around[..], &second].concat())]);
    assert_eq!(rows::rows_of(&printed, Some("no.such"), &given), []);
}

#[test]
fn figures_and_claims_are_made_of_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    measure(folder.path(), "", Keep::ThisCommit);
    let study = study_in(folder.path());
    let figures = study.figures();
    let [misses, nothing] = figures.as_slice() else { panic!("two figures") };
    assert_eq!(misses.curve_names, ["grf", "bloom"]);
    assert_eq!(
        misses.panels.iter().map(|panel| panel.title.as_str()).collect::<Vec<_>>(),
        ["miss", "hit"]
    );
    assert_eq!(misses.panels[0].curves[1].points, [(8.0, 0.8), (10.5, 1.05)]);
    let table = misses.table(&misses.panels[1]);
    assert_eq!(table, [["bits per key", "grf", "bloom"], ["8", "1", "1"], ["10.5", "1", "1"]]);
    assert!(nothing.panels.is_empty());
    let claims = study.claims();
    assert_eq!(claims[0].1.verdict, Verdict::DoesNotHold);
    assert_eq!(claims[0].1.outside(), ["bits_per_key 10.5"]);
    assert_eq!(
        claims[0].1.describe(),
        "ratio 0.333 to 1; claimed at most 0.5, in 1 of 2 within it"
    );
    assert_eq!(claims[1].1.verdict, Verdict::NotMeasured);
}

#[test]
fn pages_need_nothing_else_and_say_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    measure(folder.path(), "10.5", Keep::ThisCommit);
    let studies = [study_in(folder.path())];
    let page = html("The <laboratory>", "of 'records'", &studies);
    assert!(page.contains("Misses &lt;by&gt; bits") && !page.contains("<by>"));
    assert!(page.contains("There are no measurements for this figure"));
    let sum = "<p class=\"sum\">1 of 2 claims hold; 1 was not measured.</p>";
    let top = page.split("<section>").next().expect("the top of the page");
    assert!(top.contains(sum), "{top}");
    assert!(page.contains("1 of 2 measurements") && page.contains("# not measured"));
    assert_eq!(page.matches("<svg").count(), 1, "a figure without rows has no picture");
    assert!(page.contains("<p>What <code>it</code> is.</p>"), "{page}");
    let tables = page.matches("<table>").count();
    assert_eq!(page.matches("<div class=\"scroll\"><table>").count(), tables, "they scroll alone");
    let outside = ["<script", "<link", "<img", "src=", "url("];
    assert!(outside.iter().all(|word| !page.contains(word)), "the page needs something else");
    assert!(
        csv(&studies[0]).starts_with("bits_per_key,direct,disk,guard,keys,"),
        "{}",
        csv(&studies[0])
    );
}

#[test]
fn results_have_each_claim_once_and_link_the_figures_that_they_come_with() {
    let folder = tempfile::tempdir().expect("a folder");
    measure(folder.path(), "", Keep::ThisCommit);
    let studies = [study_in(folder.path())];
    let text = markdown("Results", "about", &studies);
    assert!(
        text.starts_with("# Results\n\n**0 of 2 claims hold; 1 does not, 1 was not measured.**\n"),
        "{text}"
    );
    let row = "| GRF is twice as fast | the paper | misses | 0.333 to 1× | ≤ 0.5×, 1 of 2 | Untested: It is small. |";
    assert!(text.contains(row), "{text}");
    assert_eq!(text.matches("GRF is twice as fast").count(), 1);
    let unknown = "| nothing is known | nobody | misses | - | ≥ 1 |  |";
    assert!(text.contains("## Not measured") && text.contains(unknown), "{text}");
    let figures = figure_files(&studies);
    let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["misses.svg"], "one figure, that has rows");
    assert!(text.contains("![Misses](figures/misses.svg)"), "{text}");
    assert!(figures[0].svg.starts_with("<svg"), "{}", figures[0].svg);
}

#[test]
fn results_show_what_holds_below_its_figure() {
    let folder = tempfile::tempdir().expect("a folder");
    measure(folder.path(), "10.5", Keep::ThisCommit);
    let text = markdown("Results", "about", &[study_in(folder.path())]);
    assert!(text.contains("\n**1 of 2 claims hold; 1 was not measured.**\n"), "{text}");
    assert!(!text.contains("## Claims that do not hold"), "{text}");
    assert!(text.ends_with("| GRF is twice as fast | the paper | 0.333× | ≤ 0.5× |\n"), "{text}");
    assert!(
        text.contains("\n## misses\n\nMisses <by> bits (GRF, Figure 10), 1 of 2 measurements.\n"),
        "{text}"
    );
}

#[test]
fn wrong_plans_are_told_with_their_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wrong.toml");
    let error_of = |text: &str| {
        std::fs::write(&path, text).expect("a plan");
        load_experiment(&path).expect_err("it is wrong").to_string()
    };
    let with = |from: &str, to: &str| error_of(&PLAN.replace(from, to));
    for (problem, word) in [
        (error_of("title = 3"), "wrong.toml"),
        (with("bench read", "load"), "bench"),
        (with("at_most = 0.5", ""), "at_most"),
        (with("full = [2000, 4000]", "huge = 1"), "full is missing"),
        (with("[8, 10.5]", "[]"), "an axis needs a value"),
        (with("[8, 10.5]", "[[8]]"), "a number, a text"),
        (with("y_label = \"µs\"", "y_lable = \"µs\""), "y_lable"),
        (with("title = \"Misses\"", "title = \"Misses\"\nmark = \"pies\""), "pies"),
        (
            with("y_times = 0.001", "y_scale = \"log\"\nmark = \"bars\""),
            "a bar begins at zero, which a log axis has not: mark = \"points\"",
        ),
    ] {
        assert!(problem.contains(word) && problem.contains("wrong.toml"), "{word}: {problem}");
    }
    let error = load_experiments(folder.path(), &["no-such".into()]).expect_err("there is none");
    assert!(error.to_string().contains("there are: wrong"), "{error}");
}

/// Evaluates a claim over rows. The claim stands alone in a plan.
fn outcome_of(claim: &str, rows: &[Row]) -> ClaimOutcome {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("claims.toml");
    let head = "title = \"t\"\nsource = \"s\"\nabout = \"a\"\n[[run]]\ncommand = \"bench read\"\n";
    let text = format!("{head}[[claim]]\nsays = \"it is faster\"\nsource = \"s\"\n{claim}");
    std::fs::write(&path, text).expect("a plan");
    load_experiment(&path).expect("it is well formed").claims[0].outcome(rows)
}

fn rate_row(guard: &str, law: &str, rate: f64) -> Row {
    let text = |text: &str| Scalar::Text(text.into());
    let fields = [
        ("guard", text(guard)),
        ("law", text(law)),
        ("miss.ops", Scalar::Number(1000.0)),
        ("miss.false_positive_rate", Scalar::Number(rate)),
    ];
    Row(fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

#[test]
fn a_bound_within_the_interval_is_a_tie() {
    let claim = "value = \"miss.false_positive_rate\"\nof = { guard = \"grf\" }\n\
                 than = { guard = \"bloom\" }\nat_most = 1.0\n";
    for (rate, verdict) in [
        (0.005, Verdict::Holds),
        (0.09, Verdict::Tie),
        (0.11, Verdict::Tie),
        (0.2, Verdict::DoesNotHold),
    ] {
        let outcome =
            outcome_of(claim, &[rate_row("grf", "all", rate), rate_row("bloom", "all", 0.1)]);
        assert_eq!(outcome.verdict, verdict, "{outcome:?}");
        let [low, high] = outcome.pairs[0].interval;
        assert!(low < outcome.pairs[0].found && outcome.pairs[0].found < high && low > 0.0);
    }
}

#[test]
fn a_cause_counts_if_the_claim_holds_without_it() {
    let claim = "value = \"miss.false_positive_rate\"\nof = { guard = \"grf\" }\n\
                 than = { guard = \"bloom\" }\nwhere = { law = \"clustered\" }\nat_most = 1.0\n\
                 otherwise = \"Perhaps.\"\n\
                 cause = { says = \"Keys crowd.\", where = { law = \"uniform\" } }\n";
    let rows = |uniform: f64| {
        let clustered = [rate_row("grf", "clustered", 0.5), rate_row("bloom", "clustered", 0.1)];
        let uniform = [rate_row("grf", "uniform", uniform), rate_row("bloom", "uniform", 0.1)];
        [clustered, uniform].concat()
    };
    let why = |rows: &[Row]| {
        let outcome = outcome_of(claim, rows);
        assert_eq!(outcome.verdict, Verdict::DoesNotHold);
        outcome.why
    };
    assert_eq!(why(&rows(0.01)), "Keys crowd. Without that it holds.");
    assert!(why(&rows(0.3)).starts_with("Unexplained; "), "{}", why(&rows(0.3)));
    assert!(why(&rows(0.11)).starts_with("Unexplained; without this it is a tie: "));
    assert_eq!(why(&rows(0.3)[..2]), "Untested: Perhaps.", "no run without the cause");
    let tie = [rate_row("grf", "clustered", 0.11), rate_row("bloom", "clustered", 0.1)];
    let outcome = outcome_of(claim, &tie);
    assert_eq!((outcome.verdict, outcome.why.as_str()), (Verdict::Tie, "Perhaps."));
}

#[test]
fn filters_that_cannot_take_what_was_asked_for_are_judged_where_the_claim_says_so() {
    let claim = "value = \"miss.false_positive_rate\"\nof = { guard = \"grf\" }\n\
                 than = { guard = \"bloom\" }\nat_most = 1.0\n";
    let mut rows = [rate_row("grf", "all", 0.001), rate_row("bloom", "all", 0.1)];
    rows[1].0.insert("unfit".into(), Scalar::Flag(true));
    assert_eq!(outcome_of(claim, &rows).verdict, Verdict::NotMeasured);
    let all = format!("{claim}unfit = true\n");
    assert_eq!(outcome_of(&all, &rows).verdict, Verdict::Holds);
}

#[test]
fn reviewers_are_told_what_was_not_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    measure(folder.path(), "10.5", Keep::ThisCommit);
    let found = complaints(&study_in(folder.path()));
    let problems: Vec<&str> = found.iter().map(|one| one.problem.as_str()).collect();
    assert_eq!(
        problems,
        [
            "1 of 2 measurements have no record",
            "claim \"nothing is known\": nothing was measured for it",
            "figure \"Nothing was measured for it\": nothing was measured",
        ]
    );
}

#[test]
fn numbers_have_commas_wherever_readers_see_them() {
    let mut rows = [rate_row("grf", "all", 0.5)];
    rows[0].0.insert("bytes".into(), Scalar::Number(255_944.0));
    rows[0].0.insert("keys".into(), Scalar::Number(1_000_000.0));
    let claim = "value = \"bytes\"\neach = [\"keys\"]\nat_most = 1048576\n";
    let outcome = outcome_of(claim, &rows);
    assert_eq!(outcome.describe(), "value 255,944; claimed at most 1,048,576");
    assert_eq!(outcome.cells(), ["255,944", "≤ 1,048,576"]);
    assert_eq!(outcome.pairs[0].label, "keys 1,000,000");
    assert_eq!([1500.0, 20_000.0, 2e6, 1e-6].map(number::tick), ["1,500", "20,000", "2M", "1e-6"]);
}

#[test]
fn the_colours_of_a_page_are_those_of_the_palette() {
    let page = html("t", "a", &[]);
    let style = page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next());
    let known: Vec<&str> =
        crate::experiment::palette::all().flat_map(|colour| [colour.light, colour.dark]).collect();
    let used: Vec<String> = style
        .expect("a style sheet")
        .split('#')
        .skip(1)
        .map(|rest| format!("#{}", &rest[..6]))
        .collect();
    assert!(used.len() > 40 && page.contains("@media(prefers-color-scheme:dark)"));
    used.iter().for_each(|colour| assert!(known.contains(&colour.as_str()), "{colour}"));
}
