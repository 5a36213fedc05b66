//! Packing, as a user sees it: `bench compression`, and what `load`, `inspect` and `dump` tell.

use crate::common::Workplace;

const SMALL: &str = "bench compression --entries 2000 --gets 50 --scan-entries 100 --rounds 2 \
                     --write-buffer 64KiB --data json,numbers --pack none,lz4";

#[test]
fn a_table_for_each_kind_of_data_and_json_for_each_way_to_pack_it() {
    let place = Workplace::new();
    let table = place.run(SMALL).with_status(0);
    for word in ["json, 2,000 entries", "numbers, 2,000 entries", "lz4", "of raw", "trommel, grf"] {
        assert!(table.contains(word), "{word} is not in {table}");
    }
    assert!(table.contains("blocks of 4096 bytes, no compression | lz4, "), "{table}");
    let json = place.run(&format!("{SMALL} --json")).json(0);
    let reports = json.as_array().expect("an array");
    let cells = reports.iter().map(|it| (it["data"].as_str(), it["packing"].as_str()));
    let (objects, numbers) = (Some("json"), Some("numbers"));
    let (none, lz4) = (Some("none"), Some("lz4"));
    assert_eq!(
        cells.collect::<Vec<_>>(),
        [(objects, none), (objects, lz4), (numbers, none), (numbers, lz4)]
    );
    for report in reports {
        assert_eq!(report["wrong"], 0, "{report}");
        assert!(report["get_ns"].is_number() && report["scan_ns"].is_number(), "{report}");
    }
    let bytes = |place: usize| reports[place]["folder_bytes"].as_u64().expect("a number");
    assert!(bytes(1) < bytes(0), "{json}");
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let place = Workplace::new();
    for (option, words) in [
        ("--data xml", "text, json, numbers, osm"),
        ("--pack zip", "zstd:1 to zstd:22"),
        ("--pack lz4+dictionary", "zstd alone"),
        ("--rounds 0", "rounds"),
    ] {
        place.run(&format!("bench compression {option}")).fails(2, &[words]);
    }
    let refused = place.run("load --db s --compression zip keys");
    refused.fails(2, &["zstd:1 to zstd:22"]);
}

#[test]
fn what_is_packed_is_told() {
    let place = Workplace::new();
    let lines: String =
        (0..9000).map(|number| format!("key{number:05}\tstation Zug, {number}\n")).collect();
    place.file("rows", lines);
    let load = "load --db s --format tsv --value-column 2 --compression lz4";
    place.run(&format!("{load} --last-level-compression none rows")).with_status(0);
    let picture = place.run("inspect --db s").with_status(0);
    assert!(picture.contains("; none ") && picture.contains(" to 1"), "{picture}");
    let json = place.run("inspect --db s --json").json(0);
    let level = &json["levels"][0];
    assert_eq!(
        (&level["compression"], &level["runs"][0]["dictionary_bytes"]),
        (&"none".into(), &0.into())
    );
    assert!(level["runs"][0]["raw_bytes"].as_u64() > Some(9000 * 20), "{level}");
    let output = place.run("dump --db s").with_status(0);
    assert!(output.contains("data block 0: lz4, "), "a load is as a flush: {output:.300}");
}
