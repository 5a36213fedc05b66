//! `load --sort`: keys in any order become one run, or nothing is loaded.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use crate::common::{Workplace, wait_until};

/// So many lines with a key and a value, in no order; the last tenth has the keys of the first.
fn lines(count: u64) -> String {
    let line = |n: u64| {
        let key = (n % (count - count / 10)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{key:016x}\t{n}\n")
    };
    (0..count).map(line).collect()
}

fn sorts(place: &Workplace, folder: &str) -> usize {
    let names = std::fs::read_dir(place.path(folder)).expect("a folder");
    names
        .filter(|name| name.as_ref().is_ok_and(|it| it.path().extension() == Some("sort".as_ref())))
        .count()
}

#[test]
fn keys_in_any_order_are_loaded_as_if_one_by_one() {
    let place = Workplace::new();
    place.file("rows", lines(20_000));
    std::fs::create_dir(place.path("elsewhere")).expect("made");
    let of_rows = "--format tsv --value-column 2 rows --json";
    place.run(&format!("load --db plain {of_rows}")).with_status(0);
    let sort = "--sort --sort-memory 64KiB";
    let output = place.run(&format!("load --db s {sort} {of_rows}")).json(0);
    assert_eq!(output["loaded"], 18_000);
    let elsewhere = format!("load --db t {sort} --sort-folder elsewhere {of_rows}");
    assert_eq!(place.run(&elsewhere).json(0)["loaded"], 18_000);
    let contents = |store: &str| place.run(&format!("scan --db {store}")).with_status(0);
    let plain = contents("plain");
    assert!(plain.lines().count() == 18_000 && plain == contents("s") && plain == contents("t"));
    assert_eq!((sorts(&place, "s"), sorts(&place, "elsewhere")), (0, 0));
    place.run("verify --db s").with_status(0);
}

#[test]
fn what_cannot_be_sorted_loads_nothing_and_says_why() {
    let place = Workplace::new();
    place.file("bad.tsv", "k\ta\nonly a key\n");
    let bad = place.run("load --db s --sort --format tsv --value-column 2 bad.tsv");
    bad.fails(3, &["bad.tsv, line 2: ", "no key was loaded before it"]);
    assert_eq!(place.run("scan --db s").with_status(0), "");
    place.file("keys", "b\na\n");
    place.run("load --db s --sort --sort-folder nowhere keys").fails(3, &["nowhere"]);
    place.run("load --db s --sort --sort-memory 1KiB keys").fails(2, &["sort memory", "16384"]);
    place.run("load --db s --sort --ingest keys").fails(2, &["--ingest"]);
    place.run("load --db s --sort-memory 1MiB keys").fails(2, &["--sort"]);
    place.run("load --db s --sort keys").with_status(0);
    assert_eq!(place.run("scan --db s --keys-only").with_status(0), "a\nb\n");
}

/// The disk has the space again that its files took: they have no names.
#[test]
fn a_sort_that_is_killed_leaves_no_file() {
    let place = Workplace::new();
    let mut child =
        place.command("load --db s --sort --sort-memory 64KiB -").spawn().expect("starts");
    let mut input = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        // Until nobody reads any more.
        while input.write_all(lines(1000).as_bytes()).is_ok() {}
    });
    let files = format!("/proc/{}/fd", child.id());
    let has_spilled = || {
        let open = std::fs::read_dir(&files).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|file| std::fs::read_link(file.path()).ok());
        targets.any(|target| target.to_string_lossy().contains(".sort"))
    };
    wait_until("a file of the sort", has_spilled);
    std::thread::sleep(Duration::from_millis(20));
    let killed = Command::new("kill").args(["-KILL", &child.id().to_string()]).status();
    assert!(killed.expect("kill is there").success());
    assert_eq!(child.wait().expect("it ends").signal(), Some(9));
    writer.join().expect("the writer ends");
    assert_eq!(place.run("scan --db s").with_status(0), "");
    assert_eq!(sorts(&place, "s"), 0);
}
