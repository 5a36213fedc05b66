//! For each rule that keeps answers right, a test fails if the rule is broken.

use std::process::{Command, Stdio};

use crate::pause::{BROKEN, Rule};

/// Whether a test passes in a process that breaks this rule, or no rule.
fn passes(test: &str, broken: Option<Rule>) -> bool {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", test]).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(rule) = broken {
        command.env(BROKEN, format!("{rule:?}"));
    }
    command.status().expect("it runs").success()
}

#[test]
fn broken_rules_are_noticed() {
    let rules = [
        (Rule::Landing, "tests::rules::a_write_in_flight_is_found_right_after_the_scan"),
        (Rule::Keeping, "tests::rules::keys_that_come_during_a_scan_are_found"),
        (Rule::Since, "tests::rules::snapshots_and_iterators_keep_what_a_later_scan_has_forgotten"),
        (Rule::Lapses, "tests::rules::what_is_written_behind_the_doors_is_found"),
        (Rule::Folder, "tests::files::what_others_wrote_meanwhile_is_found"),
        (Rule::Failing, "tests::files::a_write_that_failed_and_is_in_the_log_is_found"),
        (Rule::Noting, "tests::orders::a_key_is_not_denied_from_before_it_is_written"),
        (Rule::Committing, "tests::transactions::what_is_committed_is_not_denied_from_before"),
        (Rule::Recents, "tests::orders::a_key_is_not_denied_from_before_it_is_written"),
        (Rule::Current, "tests::orders::an_iterator_has_one_moment"),
        (Rule::OneMoment, "tests::orders::many_keys_have_one_moment"),
    ];
    for (rule, test) in rules {
        assert!(passes(test, None), "{test}, without a broken rule");
        assert!(!passes(test, Some(rule)), "{test}, with a broken {rule:?}");
    }
}
