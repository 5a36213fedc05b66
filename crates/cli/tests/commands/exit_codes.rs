//! What users type, and the exit status they get: 0 fine, 1 not found, 2 usage, 3 corrupt or I/O
//! error.

use crate::common::Workplace;
use serde_json::Value;

#[test]
fn wrong_arguments_are_usage_errors_that_list_what_is_known() {
    let place = Workplace::new();
    place.run("--help").with_status(0);
    place.run("--version").with_status(0);
    place.run("").fails(2, &["Usage"]);
    place
        .run("frobnicate")
        .fails(2, &["frobnicate", "load, get, put, delete, delete-range, scan, count"]);
    place.run("bench frobnicate").fails(2, &["frobnicate", "read, probe"]);
    place.run("get --db x").fails(2, &["KEY"]);
    place.run("get --db x --frob key").fails(2, &["--frob", "--db, ", "--guard, ", "--hex"]);
    place.run("bench read --frob").fails(2, &["--frob", "--json, ", "--levels, ", "--fill, "]);
    let guards = ["none", "blocked-bloom", "grf"];
    place.run("get --db x --guard blom key").fails(2, &guards);
    place.run("bench read --guard grf,blom").fails(2, &guards);
    place.run("bench read --bits-per-key -1").fails(2, &["bits_per_key", "1 to 64"]);
    place.run("bench read --dist zipf").fails(2, &["uniform", "clustered", "file:PATH"]);
    place.run("bench read --file-format csv").fails(2, &["lines", "u64le"]);
    place.run("load --db x --format xml keys").fails(2, &["lines", "tsv", "csv"]);
    place.run("load --db x --key-column 0 --format tsv keys").fails(2, &["key-column"]);
    place.run("load --db x --key-column 2 keys").fails(2, &["--format tsv"]);
    place.run("put --db x --sync sometimes key value").fails(2, &["always", "never"]);
    place.run("put --db x --write-buffer 1TB key value").fails(2, &["64KiB, 32MiB or 1GiB"]);
    place.run("put --db x --guard grf --monkey key value").fails(2, &["monkey", "bloom"]);
    place.run("put --db x --surf-suffix soft:3 key value").fails(2, &["fit, hash:BITS, real:BITS"]);
    let long = "put --db x --guard surf-real --surf-suffix real:65 key value";
    place.run(long).fails(2, &["filter.surf.suffix", "64 bits"]);
    place.run("put --db x --prefix-rule 0 key value").fails(2, &["1 to 255", "sep:/"]);
    place.run("put --db x --rosetta-range-bits 32 key value").fails(2, &["0 to 31"]);
    place.run("put --db x --rosetta-split most key value").fails(2, &["variable", "first-cut"]);
    place.run("bench probe --keys 2000 --rencoder-probes 9").fails(2, &["rencoder", "1 to 8"]);
    place.run("bench probe --keys 2000 --elastic-units 33").fails(2, &["elastic", "1 to 32"]);
    place.run("bench probe --keys 2000 --threads 0").fails(2, &["--threads 0", "1 to 256"]);
    place.run("bench probe --keys 2000 --skew zipf").fails(2, &["zipf", "scattered-zipf:S"]);
    place.run("put --db x --size-ratio 1 key value").fails(2, &["size_ratio"]);
    place.run("put --db x --hex key value").fails(2, &["hexadecimal"]);
    place.run("scan --db x --from b --to a").fails(2, &["--from is after --to"]);
    place.run("bench read --fill 10 --keys 2000").fails(2, &["--fill"]);
    place.run("bench read --threads 0 --keys 2000").fails(2, &["--threads 0"]);
    place.run("bench read --keys 100").fails(2, &["too few"]);
    place.run("bench read --keys 100000000000000").fails(2, &["more than memory holds"]);
    place.run("bench fpr --dist zipf").fails(2, &["ids", "file:PATH"]);
    place.run("bench fpr --fingerprints snarf").fails(2, &["auto, spline, gap, cell"]);
    place.run("bench fpr --keys 2000 --fill 10").fails(2, &["--fill 10", "1 to 9"]);
    place.run("bench fpr --keys 2000 --bits-per-key -1").fails(2, &["--bits-per-key -1"]);
    place.run("bench fpr --keys 2000 --range-width 0").fails(2, &["--range-width 0"]);
    place.run("bench fpr --ask prefix").fails(2, &["absent-prefix, present-prefix"]);
    place.run("bench fpr --keys 2000 --ask second-part").fails(2, &["uniform", "user-time, "]);
    place.run("bench fpr --keys 100").fails(2, &["too few"]);
    place.run("bench fpr --dist file:nowhere").fails(3, &["nowhere"]);
    let others: Vec<&str> =
        trommel_guards::all_guards()[1..].iter().map(|guard| guard.name()).collect();
    let no_filter = "--guard none: there is no filter to probe; guards that have one: ";
    for guards in ["none", "none,grf", "cell,none"] {
        let expected = format!("{no_filter}{}\n", others.join(", "));
        place.run(&format!("bench probe --guard {guards}")).fails(2, &[&expected]);
    }
    assert!(!place.path("x").exists(), "a wrong argument made a store");
}

#[test] // It panicked.
#[cfg(target_os = "linux")]
fn wrong_arguments_are_usage_errors_where_no_message_can_be_written() {
    let place = Workplace::new();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let mut child = place.command("get --db x --frob key").stderr(full).spawn().expect("started");
    assert_eq!(child.wait().expect("ended").code(), Some(2));
}

#[test]
fn keys_are_written_found_and_removed() {
    let place = Workplace::new();
    place.run("put --db s apple red").with_status(0);
    place.run("put --db s pear green").with_status(0);
    assert_eq!(place.run("get --db s apple").with_status(0), "red\n");
    place.run("get --db s plum").fails(1, &["not found"]);
    assert_eq!(place.run("get --db s --json plum").json(1)["found"], false);
    assert_eq!(place.run("get --db s --json pear").json(0)["value"], "green");
    assert_eq!(place.run("get --db s --hex 70656172").with_status(0), "677265656e\n");
    place.run("delete --db s apple").with_status(0);
    place.run("delete --db s apple").with_status(0);
    place.run("get --db s apple").fails(1, &["not found"]);
    assert_eq!(place.run("scan --db s").with_status(0), "pear\tgreen\n");
}

#[test] // It was status 3: "corrupt data, or an I/O error".
fn a_range_that_ends_before_it_begins_is_a_wrong_argument() {
    let place = Workplace::new();
    place.run("put --db s pear green").with_status(0);
    let expected = "a range to delete from pear to apple: it ends before it begins";
    place.run("delete-range --db s pear apple").fails(2, &[expected]);
    assert_eq!(place.run("scan --db s").with_status(0), "pear\tgreen\n");
}

#[test]
fn keys_that_are_no_text_are_escaped() {
    let place = Workplace::new();
    place.run("put --db s --hex ff0061 09").with_status(0);
    assert_eq!(place.run("scan --db s").with_status(0), "\\xff\\x00a\t\\t\n");
    assert_eq!(place.run("scan --db s --hex --keys-only").with_status(0), "ff0061\n");
}

#[test]
fn files_are_loaded_and_scanned() {
    let place = Workplace::new();
    let lines: String = (0..3000).map(|number| format!("key{number:04}\n")).collect();
    place.file("keys", &lines);
    assert!(place.run("load --db s keys").with_status(0).starts_with("3,000 keys loaded"));
    let loaded = place.run_with_input("load --db s --json -", b"one more\n\nkey0000\n").json(0);
    assert_eq!((&loaded["loaded"], &loaded["empty_lines"]), (&2.into(), &1.into()));
    let scan =
        |arguments: &str| place.run(&format!("scan --db s --keys-only {arguments}")).with_status(0);
    assert_eq!(scan("").lines().count(), 3001);
    assert_eq!(scan("--from key0010 --to key0012"), "key0010\nkey0011\nkey0012\n");
    assert_eq!(scan("--reverse --limit 2"), "one more\nkey2999\n");
    assert_eq!(scan("--from key0005 --to key0009 --reverse --limit 1"), "key0009\n");
    assert_eq!(scan("--from z"), "");
    assert_eq!(scan("--prefix key000 --limit 2 --reverse"), "key0009\nkey0008\n");
    assert_eq!(scan("--prefix key00").lines().count(), 100);
    place.run("scan --db s --prefix key0 --from key0").fails(2, &["--prefix", "--from"]);
    let count = place.run("count --db s --prefix key00 --json").json(0);
    assert!(count["entries"]["most"].as_u64() >= Some(100), "{count}");
    let whole = place.run("scan --db s --json").json(0);
    assert_eq!(
        (whole["entries"].as_array().map(Vec::len), &whole["count"]),
        (Some(3001), &3001.into())
    );
    let count = place.run("count --db s --json").json(0)["approximate_count"].as_u64();
    assert!(count.is_some_and(|count| (2500..=3500).contains(&count)), "{count:?}");
    place.run("count --db s --from key1000 --to key1999").with_status(0);
}

#[test]
fn columns_of_tables_are_loaded() {
    let place = Workplace::new();
    place.file("t.tsv", "id\tname\n1\tapple\n2\tpear\n");
    place
        .run("load --db t --format tsv --header --key-column 2 --value-column 1 t.tsv")
        .with_status(0);
    assert_eq!(place.run("scan --db t").with_status(0), "apple\t1\npear\t2\n");
    place.file("c.csv", "\"a,b\",1\nc,\"2\n3\"\n");
    place.run("load --db c --format csv --value-column 2 c.csv").with_status(0);
    assert_eq!(place.run("scan --db c").with_status(0), "a,b\t1\nc\t2\\n3\n");
    // With --hex values were taken as they are.
    place.file("hex.tsv", "ff00\t0a5c\n01\tfe\n");
    place.run("load --db v --hex --format tsv --value-column 2 hex.tsv").with_status(0);
    assert_eq!(place.run("scan --db v --hex").with_status(0), "01\tfe\nff00\t0a5c\n");
    place.file("bad.tsv", "01\tfe\n02\tvalue\n");
    let bad = place.run("load --db v --hex --format tsv --value-column 2 bad.tsv");
    bad.fails(3, &["bad.tsv, line 2", "the value is not hexadecimal"]);
    place.file("hex", "ff00\nFE\n");
    place.run("load --db h --hex hex").with_status(0);
    assert_eq!(place.run("scan --db h --hex --keys-only").with_status(0), "fe\nff00\n");
}

#[test]
fn bad_input_names_file_and_line_and_keeps_what_was_loaded() {
    let place = Workplace::new();
    place.run("load --db s nowhere").fails(3, &["nowhere"]);
    place.run("load --db s .").fails(3, &["folder"]);
    place.file("empty", "");
    place.file("binary", b"a\nb\n\x00\x01\n");
    place.run("load --db s binary").fails(3, &["binary, line 3", "zero byte", "2 keys loaded"]);
    assert_eq!(place.run("scan --db s --keys-only").with_status(0), "a\nb\n");
    place.file("short.tsv", "k1\tv\nk2\n");
    place
        .run("load --db s --format tsv --value-column 2 short.tsv")
        .fails(3, &["short.tsv, line 2", "no column 2", "1 key loaded"]);
    place.run("get --db s k1").with_status(0);
    place.file("long", [&b"c\n"[..], &[b'x'; 65_537]].concat());
    place.run("load --db s long").fails(3, &["long, line 2", "65536", "1 key loaded"]);
    place.file("first", b"\x00");
    place.run("load --db s first").fails(3, &["line 1", "no key was loaded before it"]);
    place.run("bench read --dist file:nowhere").fails(3, &["nowhere"]);
    place.run("bench read --dist file:empty").fails(3, &["empty"]);
}

#[test] // It was an error, with status 3.
fn empty_input_is_a_warning() {
    let place = Workplace::new();
    place.file("empty", "");
    place.file("head", "key\tvalue\n");
    place.file("lines", "\n\n");
    let head = "load --db s --format tsv --header head";
    for (command, name) in
        [("load --db s empty", "empty"), (head, "head"), ("load --db s lines", "lines")]
    {
        let loaded = place.run(command);
        let warning = format!("trommel: {name} holds no keys: nothing was loaded\n");
        assert_eq!((loaded.status, loaded.err.as_str()), (0, warning.as_str()));
        assert!(loaded.out.starts_with("0 keys loaded in "), "{}", loaded.out);
    }
    let loaded = place.run_with_input("load --db s --json -", b"").json(0);
    assert_eq!((&loaded["loaded"], &loaded["keys_per_second"]), (&0.into(), &Value::Null));
    assert_eq!(place.run("scan --db s").with_status(0), "");
}

#[test] // Two keys were loaded with "7 per second".
fn few_keys_have_no_rate() {
    let place = Workplace::new();
    let output = place.run_with_input("load --db s -", b"a\nb\n").with_status(0);
    let (keys, seconds) = output.split_once(" loaded in ").expect("what and how long");
    assert_eq!((keys, seconds.ends_with(" s\n")), ("2 keys", true), "{output}");
}

#[test] // It told the keys, and neither file nor line.
fn keys_to_ingest_that_do_not_ascend_are_told_with_file_and_line() {
    let place = Workplace::new();
    place.file("keys", "a\n\nc\nb\n");
    let expected =
        ["keys, line 4: ", "must ascend", "b comes after c", "no key was loaded before it"];
    place.run("load --db s --ingest keys").fails(3, &expected);
    place.file("twice.tsv", "k\ta\nk\tb\n");
    let twice = place.run("load --db s --ingest --format tsv --value-column 2 twice.tsv");
    twice.fails(3, &["twice.tsv, line 2: ", "each once", "k comes after k"]);
    assert_eq!(place.run("scan --db s").with_status(0), "");
    place.file("sorted", "a\nb\n");
    place.run("load --db s --ingest sorted").with_status(0);
    assert_eq!(place.run("scan --db s --keys-only").with_status(0), "a\nb\n");
}

#[test]
fn folders_that_hold_no_store_are_told_apart() {
    let place = Workplace::new();
    std::fs::create_dir(place.path("other")).expect("made");
    place.file("other/file", "something");
    for command in
        ["get --db D key", "scan --db D", "count --db D", "stats --db D", "inspect --db D"]
    {
        place.run(&command.replace('D', "missing")).fails(3, &["missing", "no store"]);
        place.run(&command.replace('D', "other")).fails(3, &["other", "not a Trommel store"]);
    }
    place.run("verify --db missing").fails(3, &["no store"]);
    place.run("delete --db missing key").fails(3, &["no store"]);
    place.run("put --db other key value").fails(3, &["not a Trommel store"]);
    place.run("load --db other/file keys").fails(3, &["keys"]);
    assert!(!place.path("missing").exists(), "a question made a store");
}

#[test]
fn too_long_keys_are_usage_errors() {
    let place = Workplace::new();
    let key = "k".repeat(65_537);
    place.run(&format!("put --db s {key} value")).fails(2, &["65537"]);
    place.run("put --db s key value").with_status(0);
    place.run(&format!("get --db s {}", "k".repeat(65_536))).fails(1, &["not found"]);
}
