//! Large values, as a user measures them: `bench values`.

use crate::common::Workplace;

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
