//! `--json`: bytes as they are, errors as objects on standard error.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Ended, Workplace};
use serde_json::{Value, json};

#[test] // A tab in a value came as a backslash and a t, and a byte 0xff as four letters.
fn strings_are_the_bytes_and_other_bytes_are_an_object() {
    let place = Workplace::new();
    let text = "tab\\there\\\\ \\u0022quoted\\u0022 \\u0000 Zürich";
    let exact: String = serde_json::from_str(&format!("\"{text}\"")).expect("a string");
    let hex: String = exact.bytes().map(|byte| format!("{byte:02x}")).collect();
    place.run(&format!("put --db s --hex 6b {hex}")).with_status(0);
    place.run("put --db s --hex ff00 fe").with_status(0);
    let got = place.run("get --db s --json k").json(0);
    assert_eq!((&got["key"], &got["value"]), (&"k".into(), &exact.as_str().into()));
    // `jq -r .value` prints the string and an end of line.
    let printed = place.run("get --db s k").with_status(0);
    assert_eq!(format!("{}\n", got["value"].as_str().expect("a string")), printed);
    let scanned = place.run("scan --db s --json").json(0);
    let other = json!({ "key": { "hex": "ff00" }, "value": { "hex": "fe" } });
    assert_eq!(scanned["entries"][1], other);
    assert_eq!(scanned["entries"][0]["value"], exact.as_str());
    let with_hex = place.run("get --db s --hex --json ff00").json(0);
    assert_eq!((&with_hex["key"], &with_hex["value"]), (&"ff00".into(), &"fe".into()));
    let dump = place.run("dump --db s --json").json(0).to_string();
    assert!(dump.contains(r#""key":{"hex":"ff00"}"#) && dump.contains("tab\\there"), "{dump}");
    let deleted = place.run("delete-range --db s --json a b").json(0);
    assert_eq!(deleted, json!({ "from": "a", "to": "b" }));
}

fn error(ended: Ended, status: i32) -> Value {
    assert_eq!((ended.status, ended.out.as_str()), (status, ""), "{}", ended.err);
    let lines: Vec<&str> = ended.err.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let object: Value = serde_json::from_str(lines[0]).expect("one object");
    assert_eq!(object["error"]["status"], status, "{object}");
    object["error"].clone()
}

#[test]
fn errors_are_objects_with_their_kind() {
    let place = Workplace::new();
    let of = |arguments: &str, status| error(place.run(arguments), status);
    let missing = of("get --db nowhere --json key", 3);
    assert_eq!(missing["kind"], "data");
    assert!(missing["message"].to_string().contains("there is no store here"), "{missing}");
    let usage = of("--json get --db s --frob key", 2);
    assert_eq!(usage["kind"], "usage");
    assert!(usage["hint"].to_string().contains("--hex"), "{usage}");
    assert!(!usage["message"].to_string().contains("error:"), "{usage}");
    let of_value = of("put --db s --json --hex key value", 2);
    assert!(of_value["message"].to_string().contains("hexadecimal"), "{of_value}");
    place.run("put --db s key value").with_status(0);
    std::fs::remove_file(place.path("s/MANIFEST")).expect("removed");
    let damage = of("get --db s --json key", 3);
    assert_eq!(damage["kind"], "damage");
    assert!(damage["hint"].to_string().contains("trommel repair --db s"), "{damage}");
    let output = place.run_with_input("load --db w --json -", b"");
    assert_eq!(output.err, "{\"warning\":\"standard input holds no keys: nothing was loaded\"}\n");
}

#[test] // They said that the store is open, and nothing of what works.
fn beside_a_running_writer_every_command_names_what_works() {
    let place = Workplace::new();
    let mut writer = place.command("load --db s -").spawn().expect("starts");
    let mut input = writer.stdin.take().expect("a pipe");
    let lines: String = (0..600).map(|number| format!("key{number}\n")).collect();
    input.write_all(lines.as_bytes()).expect("written");
    crate::common::wait_until("the store is made", || {
        place.path("s/MANIFEST").exists() && place.run("dump --db s").out.contains("put key500\n")
    });
    for (command, rest) in [("put", "key value"), ("delete", "key"), ("compact", "")] {
        let ways = ["s is open in another process", "`trommel get`", "`dump --db s`", "checkpoint"];
        place.run(&format!("{command} --db s {rest}")).fails(3, &ways);
        let output = error(place.run(&format!("{command} --db s --json {rest}")), 3);
        assert_eq!(output["kind"], "in_use", "{output}");
    }
    place.run("inspect --db s --watch --looks 1 --json").json(0);
    drop(input);
    assert!(writer.wait().expect("ends").success());
}

#[test]
fn a_closed_standard_error_ends_nothing() {
    let place = Workplace::new();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let mut command = place.command("get --db nowhere key");
    let ended = command.stdin(Stdio::null()).stderr(full).status().expect("started");
    assert_eq!(ended.code(), Some(3), "it does not panic");
}
