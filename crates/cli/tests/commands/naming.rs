//! How a store is named, and what help shows: the same for all commands.

use crate::common::Workplace;

/// Every command that takes a store, and what it takes besides.
const COMMANDS: [(&str, &str); 20] = [
    ("load", "keys"),
    ("export", "--format tsv -"),
    ("import", "-"),
    ("get", "key"),
    ("put", "key value"),
    ("delete", "key"),
    ("delete-range", "a b"),
    ("scan", ""),
    ("count", ""),
    ("changes", "--since 0"),
    ("compact", ""),
    ("stats", ""),
    ("inspect", ""),
    ("verify", ""),
    ("dump", ""),
    ("checkpoint", "copy"),
    ("backup", "backups"),
    ("keyspaces", ""),
    ("repair", ""),
    ("upgrade", ""),
];

#[test] // `dump`, `checkpoint` and `repair` took it without an option, the others with one.
fn a_store_is_named_the_same_way_everywhere() {
    for (command, rest) in COMMANDS {
        let place = Workplace::new();
        place.file("keys", "key\n");
        place.run("put --db s key value").with_status(0);
        place.run(&format!("{command} --db s {rest}")).with_status(0);
    }
}

#[test] // `trommel verify words` said that `words` was not expected, and no more.
fn a_store_without_its_option_is_told_the_right_form() {
    let place = Workplace::new();
    place.run("put --db s key value").with_status(0);
    for (command, rest) in COMMANDS {
        let (typed, right) = (format!("{command} s {rest}"), format!("{command} --db s {rest}"));
        place.run(&typed).fails(2, &[&format!("trommel {}", right.trim_end())]);
    }
    let output = place.run("verify s --json");
    let error: serde_json::Value = serde_json::from_str(&output.err).expect("one object");
    let hint = error["error"]["hint"].as_str().expect("a hint");
    assert_eq!(hint, "A store is named with --db: trommel verify --db s --json");
    place.run("verify --db s more").fails(2, &["Options there are"]);
}

/// The options that a help shows.
fn options(help: &str) -> Vec<&str> {
    let options = help.lines().filter_map(|line| line.trim_start().strip_prefix('-'));
    options.filter(|option| option.starts_with('-') || option.starts_with("h, ")).collect()
}

#[test] // `get --help` showed 35 options.
fn help_is_short_and_the_rest_is_told_when_it_is_asked_for() {
    let place = Workplace::new();
    for command in ["put", "get", "delete", "scan"] {
        for form in
            [format!("{command} --help"), format!("help {command}"), format!("{command} -h")]
        {
            let help = place.run(&form).with_status(0);
            let shown = options(&help);
            assert!((5..=10).contains(&shown.len()), "{form}: {shown:?}");
            assert!(help.contains("--db <DIR>") && help.contains("--help-all"), "{help}");
        }
        let all = place.run(&format!("{command} --help-all")).with_status(0);
        assert!(options(&all).len() > 30, "{all}");
        for option in ["--surf-suffix", "--size-ratio", "--block-cache", "--db"] {
            assert!(all.contains(option), "{command}: {option}");
        }
    }
    // Options behind those of filters stood under their heading.
    let scan = place.run("scan --help-all").with_status(0);
    let (before, under) = scan.split_once("Options of single guards:").expect("a heading");
    assert!(before.contains("--from <KEY>") && under.contains("--surf-suffix"), "{scan}");
    assert!(!under.contains("--reverse"), "{under}");
    // What help does not show is understood.
    place.run("put --db s --guard none --block-cache 1MiB key value").with_status(0);
    assert_eq!(place.run("get --db s --guard grf key").with_status(0), "value\n");
}
