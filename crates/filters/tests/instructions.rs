//! The instruction counts' own arithmetic: a count that cannot be trusted, or that crept up, must
//! not pass.
//! ```text
//! profile of callgrind --> own + elsewhere = total, or an error
//! counts and limits    --> table, problems
//! ```
//! Invariant: every way in which a run should fail is shown to fail here.

#[path = "../benches/instructions/limits.rs"]
mod limits;
#[path = "../benches/instructions/profile.rs"]
mod profile;

use limits::{Limits, Section, Verdict};
use profile::{Profile, parse_names, parse_profile};

const PROFILE: &str = "\
# callgrind format
version: 1
desc: Trigger: --dump-after=*operations*counted_work*

positions: line
events: Ir
summary: 1130

ob=/target/program
fl=work.rs
fn=counted_work
12 30
cob=/lib/libc.so.6
cfi=malloc.c
cfn=malloc
calls=4 0
12 1000
fi=inlined.rs
7 70

ob=/lib/libc.so.6
fl=malloc.c
fn=malloc
0 1000

ob=/target/program
fl=work.rs
fn=probe
9 30

totals: 1130
";

#[test]
fn what_libc_spends_is_kept_apart() {
    let profile = parse_profile(PROFILE, "/target/program");
    assert_eq!(profile, Ok(Profile { own: 130, elsewhere: 1000 }));
}

#[test]
fn profiles_that_do_not_add_up_are_errors() {
    let cut = &PROFILE[..PROFILE.find("totals").expect("there")];
    let changed = PROFILE.replace("9 30", "9 31");
    let unreadable = PROFILE.replace("9 30", "9 +30x");
    for text in [cut, &changed, &unreadable, ""] {
        assert!(parse_profile(text, "/target/program").is_err(), "{text}");
    }
    assert!(parse_profile(PROFILE, "/another/program").is_err(), "nothing of it is ours");
}

#[test]
fn operations_are_named_with_how_often_they_were_done() {
    let (processor, names) = parse_names("x86_64-v3\nbuild 10\nprobe 7\n").expect("fine");
    assert_eq!(processor, "x86_64-v3");
    assert_eq!(names, [("build".to_owned(), 10), ("probe".to_owned(), 7)]);
    for text in ["", "x86_64-v3\n", "x86_64-v3\nbuild\n", "x86_64-v3\nbuild 0\n"] {
        assert!(parse_names(text).is_err(), "{text}");
    }
}

const LIMITS: &str = "# comment\n\n[x86_64-v3, rustc 1.95.0]\nbuild 300.0\nprobe   100.0\n";

fn section(rows: &[(&str, f64)]) -> Section {
    Section {
        processor: "x86_64-v3".to_owned(),
        compiler: "rustc 1.95.0".to_owned(),
        rows: rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
    }
}

fn compare(measured: &Section) -> Verdict {
    Limits::parse(LIMITS).expect("limits").compare(measured)
}

#[test]
fn counts_up_to_three_percent_above_pass() {
    let verdict = compare(&section(&[("build", 309.0), ("probe", 90.0)]));
    assert_eq!(verdict.problems, [""; 0]);
    assert!(verdict.table.contains("+3.0 %"), "{}", verdict.table);
    assert!(verdict.table.contains("-10.0 %   fewer"), "{}", verdict.table);
}

#[test]
fn counts_further_above_do_not() {
    let verdict = compare(&section(&[("build", 309.1), ("probe", 100.0)]));
    assert_eq!(verdict.problems.len(), 1);
    assert!(verdict.problems[0].starts_with("build needs 309.1"), "{:?}", verdict.problems);
    let elsewhere = Section { compiler: "rustc 1.99.0".to_owned(), ..section(&[("build", 400.0)]) };
    let problems = compare(&elsewhere).problems;
    assert!(problems.iter().any(|line| line.contains("rustc 1.99.0")), "{problems:?}");
}

#[test]
fn an_operation_without_limit_or_a_limit_without_operation_fails() {
    for rows in [&[("build", 300.0)][..], &[("build", 1.0), ("probe", 1.0), ("new", 1.0)]] {
        assert_eq!(compare(&section(rows)).problems.len(), 1, "{rows:?}");
    }
    let other = Section { processor: "riscv64".to_owned(), ..section(&[("build", 1.0)]) };
    assert!(compare(&other).problems[0].contains("riscv64"));
}

#[test]
fn new_limits_take_the_place_of_those_for_the_same_processor() {
    let mut limits = Limits::parse(LIMITS).expect("limits");
    let other = Section { processor: "aarch64".to_owned(), ..section(&[("probe", 7.5)]) };
    limits.replace(other.clone());
    limits.replace(section(&[("probe", 80.0)]));
    let read_again = Limits::parse(&limits.to_string()).expect("what was written");
    assert_eq!(read_again, limits);
    assert!(read_again.compare(&other).problems.is_empty());
    assert!(read_again.compare(&section(&[("probe", 80.0)])).problems.is_empty());
    assert_eq!(read_again.compare(&section(&[("probe", 100.0)])).problems.len(), 1);
}

#[test]
fn lines_that_are_no_limits_are_errors() {
    for line in
        ["build 1.0", "[x86_64-v3]", "[a, b]\nbuild", "[a, b]\nbuild x", "[a, b]\nbuild NaN"]
    {
        let problem = Limits::parse(line).expect_err(line);
        assert!(problem.starts_with("line "), "{problem}");
    }
}
