//! `--keyspace` and `keyspaces`: trees of their own in one store.

use crate::common::Workplace;

fn names(place: &Workplace) -> Vec<String> {
    let output = place.run("keyspaces --db s --json").json(0);
    let all = output["keyspaces"].as_array().expect("a list");
    all.iter().map(|one| one["name"].as_str().expect("a name").to_string()).collect()
}

#[test]
fn commands_work_on_the_key_space_that_is_named() {
    let place = Workplace::new();
    place.file("keys", "pear\nplum\n");
    place.run("put --db s apple 1").with_status(0);
    place.run("put --db s --keyspace hues apple red").with_status(0);
    place.run("load --db s --keyspace hues keys").with_status(0);
    assert_eq!(place.run("get --db s apple").with_status(0), "1\n");
    assert_eq!(place.run("get --db s --keyspace default apple").with_status(0), "1\n");
    assert_eq!(place.run("get --db s --keyspace hues apple").with_status(0), "red\n");
    place.run("get --db s plum").with_status(1);
    let hues = "--db s --keyspace hues";
    assert_eq!(
        place.run(&format!("scan {hues} --keys-only")).with_status(0),
        "apple\npear\nplum\n"
    );
    place.run(&format!("delete {hues} pear")).with_status(0);
    place.run(&format!("delete-range {hues} pl pm")).with_status(0);
    place.run(&format!("compact {hues} --all")).with_status(0);
    assert_eq!(place.run(&format!("count {hues}")).with_status(0), "1\n");
    assert_eq!(place.run("scan --db s").with_status(0), "apple\t1\n");
    let look = place.run(&format!("inspect {hues} --watch --looks 1 --json")).json(0);
    assert_eq!(look["tree"]["runs"].as_array().expect("a list").len(), 1, "{look}");
    place.run("verify --db s").with_status(0);
    place.run(&format!("verify {hues}")).fails(2, &["leave out --keyspace"]);
    assert_eq!(names(&place), ["default", "hues"]);
}

#[test]
fn what_is_read_must_be_there_and_what_is_written_is_made() {
    let place = Workplace::new();
    place.run("put --db s a 1").with_status(0);
    for command in ["get a", "scan", "count", "stats", "inspect", "delete a", "compact"] {
        let (command, rest) = command.split_once(' ').unwrap_or((command, ""));
        let ended = place.run(&format!("{command} --db s --keyspace hue {rest}"));
        ended.fails(3, &["hue", "default"]);
    }
    assert_eq!(names(&place), ["default"]);
    place.run("put --db s --keyspace hue a red").with_status(0);
    assert_eq!(names(&place), ["default", "hue"]);
}

#[test]
fn key_spaces_are_renamed_and_dropped() {
    let place = Workplace::new();
    place.run("put --db s --keyspace hues apple red").with_status(0);
    let renamed = place.run("keyspaces --db s --rename hues colours").with_status(0);
    assert!(renamed.contains("colours") && !renamed.contains("hues"), "{renamed}");
    assert_eq!(place.run("get --db s --keyspace colours apple").with_status(0), "red\n");
    place.run("keyspaces --db s --rename hues other").fails(3, &["hues"]);
    place.run("keyspaces --db s --drop default").fails(2, &["default"]);
    place.run("keyspaces --db s --drop colours").with_status(0);
    place.run("get --db s --keyspace colours apple").fails(3, &["colours"]);
    assert_eq!(names(&place), ["default"]);
    place.run("keyspaces --db nowhere").fails(3, &["nowhere"]);
}

#[test] // A policy that was named for a load was forgotten: the next command merged by another one.
fn options_of_a_key_space_are_kept() {
    let place = Workplace::new();
    let lines: String = (0..5000).map(|number| format!("key{number:05}\n")).collect();
    place.file("keys", lines);
    let tiering = "--policy tiering --size-ratio 30 --write-buffer 8KiB";
    place.run(&format!("load --db s --keyspace k {tiering} --guard surf-real keys")).with_status(0);
    let stats = |rest: &str| place.run(&format!("stats --db s --json {rest}")).json(0);
    let kept = stats("--keyspace k");
    assert!(kept["policy"].to_string().contains("tiering"), "{kept}");
    assert!(!stats("")["policy"].to_string().contains("tiering"));
    let runs = |stats: &serde_json::Value| stats["levels"].to_string();
    place.run("put --db s --keyspace k key 1").with_status(0);
    place.run("compact --db s --keyspace k").with_status(0);
    assert!(runs(&stats("--keyspace k")).len() >= runs(&kept).len(), "nothing was due");
}

#[test]
fn an_export_is_of_one_key_space_and_arrives_in_another() {
    let place = Workplace::new();
    place.run("put --db s --keyspace hues apple red").with_status(0);
    place.run("put --db s apple 1").with_status(0);
    place.run("export --db s --keyspace hues hues.export").with_status(0);
    place.run("import --db t --keyspace colours hues.export").with_status(0);
    assert_eq!(place.run("get --db t --keyspace colours apple").with_status(0), "red\n");
    place.run("get --db t apple").with_status(1);
    place.run("import --db u --from-keyspace hues s").with_status(0);
    assert_eq!(place.run("get --db u apple").with_status(0), "red\n");
    place.run("import --db u --from-keyspace none s").fails(3, &["none", "hues"]);
}
