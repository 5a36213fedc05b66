//! Large values: put from files, read into files, measured by `bench values`.

use crate::common::{Workplace, flip_bit};

/// Bytes that no packing shrinks.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn a_file_is_put_and_comes_back_and_keys_alone_need_no_value() {
    let place = Workplace::new();
    let long = noise(3 << 20);
    place.file("long", &long);
    place.run("put --db s drum --file long").with_status(0);
    place.run("put --db s grain falls").with_status(0);
    place.run("get --db s drum --out back").with_status(0);
    assert!(std::fs::read(place.path("back")).expect("written") == long);
    assert_eq!(place.run("scan --db s --keys-only").with_status(0), "drum\ngrain\n");
    place.run("compact --db s").with_status(0);
    flip_bit(&place.largest_file("s", ".value"), 1 << 20);
    assert_eq!(place.run("scan --db s --keys-only").with_status(0), "drum\ngrain\n");
    place.run("scan --db s").fails(3, &["damaged", ".value"]);
    place.run("get --db s drum --out again").fails(3, &["damaged", ".value"]);
    place.run("put --db s drum --file nowhere").fails(3, &["nowhere"]);
}

#[test] // It put the empty value, since such files have a length of zero.
#[cfg(target_os = "linux")]
fn files_without_a_length_are_put_as_a_whole() {
    let place = Workplace::new();
    place.run("put --db s status --file /proc/self/status").with_status(0);
    let status = place.run("get --db s status").with_status(0);
    assert!(status.starts_with("Name:\ttrommel\n"), "{status}");
    let long = noise(3 << 20);
    let put = place.run_with_input("put --db s long --file /dev/stdin --json", &long).json(0);
    assert_eq!(put["value_bytes"], 3 << 20);
    place.run("get --db s long --out back").with_status(0);
    assert!(std::fs::read(place.path("back")).expect("written") == long);
    place.run("put --db none key --file .").fails(3, &["directory"]);
    assert!(!place.path("none").exists(), "what cannot be read made a store");
}

const SMALL: &str = "bench values --value-bytes 4KiB,40KiB --data-bytes 1MiB --get-bytes 200KiB \
                     --rounds 2 --write-buffer 64KiB";

#[test]
fn a_table_for_each_length_and_json_for_each_store() {
    let place = Workplace::new();
    let table = place.run(&format!("{SMALL} --compressible --pack none,lz4")).with_status(0);
    for word in [
        "256 values of 4.0 KiB, which compress to half, packed: lz4, 2 rounds",
        "25 values of 40.0 KiB",
        "overwrite, settled",
        "scan of keys",
        "space per byte",
        "trommel, grf",
        "apart from 1024 bytes",
    ] {
        assert!(table.contains(word), "{word} is not in {table}");
    }
    let json = place.run(&format!("{SMALL} --guard grf,none --json")).json(0);
    let reports = json.as_array().expect("an array");
    let cells: Vec<_> =
        reports.iter().map(|it| (it["value_bytes"].as_u64(), it["guard"].as_str())).collect();
    let (short, long) = (Some(4096), Some(40_960));
    let (grf, none) = (Some("grf"), Some("none"));
    assert_eq!(cells, [(short, grf), (short, none), (long, grf), (long, none)]);
    for report in reports {
        assert_eq!((&report["wrong"], report["rounds"].as_u64()), (&0.into(), Some(2)));
        let steps = report["steps"].as_array().expect("an array");
        assert!(steps.len() == 9 && steps.iter().all(|step| step["per_s"].is_number()), "{report}");
    }
}

#[test]
fn values_stay_in_tables_where_the_store_keeps_them_there() {
    let place = Workplace::new();
    let json = place.run(&format!("{SMALL} --apart-from default --overwrites 0 --json")).json(0);
    let settings = json[0]["settings"].as_str().expect("a text");
    assert!(settings.contains("apart from 16384 bytes"), "{settings}");
    assert_eq!(json[0]["steps"].as_array().map(Vec::len), Some(7));
}

#[test]
fn what_cannot_be_measured_is_a_usage_error() {
    let place = Workplace::new();
    for (option, words) in [
        ("--value-bytes 8", "values of 16 bytes at least"),
        ("--value-bytes 1GiB", "as much data as one value"),
        ("--rounds 0", "rounds"),
        ("--overwrites -1", "overwrites"),
        ("--apart-from never", "--apart-from"),
    ] {
        place.run(&format!("bench values {option}")).fails(2, &[words]);
    }
}
