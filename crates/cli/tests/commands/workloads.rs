//! Key sets and workloads of `bench read` and `bench probe`, as a user asks for them.

use crate::common::{Ended, Workplace};

const SHAPE: &str = "--levels 2 --size-ratio 4 --keys 3000 --queries 100 --no-sync --guard grf";

fn read(place: &Workplace, options: &str) -> Ended {
    place.run(&format!("bench read {SHAPE} {options}"))
}

#[test]
fn deleted_keys_are_told_and_are_no_keys_of_the_store() {
    let place = Workplace::new();
    for by in ["key", "range"] {
        let report = read(&place, &format!("--deleted 0.2 --deleted-by {by} --json")).json(0);
        assert_eq!((&report["keys"], &report["false_negatives"]), (&2400.into(), &0.into()));
        assert_eq!(
            (&report["deleted"]["keys"], &report["deleted"]["by"]),
            (&600.into(), &by.into())
        );
        assert_eq!(report["runs"], report["runs_planned"]);
    }
    let text = read(&place, "--deleted 0.2").with_status(0);
    assert!(text.contains("600 more keys were deleted, in 100 stretches, by key"), "{text}");
    read(&place, "--deleted 1").fails(2, &["--deleted 1"]);
    read(&place, "--deleted-by key").fails(2, &["--deleted <SHARE>"]);
    read(&place, "--deleted 0.1 --deleted-by hand").fails(2, &["key, range"]);
    read(&place, "--deleted 0.1 --correlated 3").fails(2, &["--correlated"]);
}

#[test]
fn a_shift_is_told_with_its_rates_and_costs() {
    let place = Workplace::new();
    let report = read(&place, "--inserts emails --json").json(0);
    let shift = &report["shift"];
    assert_eq!((&shift["inserts"], &report["dist"]), (&"emails".into(), &"uniform".into()));
    for field in ["guard_ns_per_insert", "guard_ns_per_base_key", "base_keys", "new_keys"] {
        assert!(shift[field].as_f64().is_some_and(|number| number > 0.0), "{field}: {shift}");
    }
    assert!(shift["before"]["point_miss"].is_number() && shift["after"]["empty_range"].is_number());
    let text = read(&place, "--inserts ids").with_status(0);
    assert!(text.contains("keys of newer runs are ids") && text.contains("per insert"), "{text}");
    read(&place, "--inserts zipf").fails(2, &["uniform", "sosd:PATH"]);
}

#[test]
fn closed_seeks_are_told_by_their_share() {
    let place = Workplace::new();
    let report = read(&place, "--dist sensors --empty 0.5,0.99 --json").json(0);
    for (place, percent) in [50.0, 99.0].into_iter().enumerate() {
        let seek = &report["closed_seek"][place];
        assert_eq!(seek["empty_percent"], percent);
        let names = ["empty_share", "range_width", "ns_per_op", "ops_per_s", "blocks_read_per_op"];
        assert!(names.iter().all(|name| seek[name].is_number()), "{seek}");
    }
    let text = read(&place, "--empty 0.25").with_status(0);
    assert!(text.contains("closed_seek, 25 % empty"), "{text}");
    read(&place, "--empty 0").fails(2, &["--empty 0"]);
}

#[test]
fn close_misses_are_asked_of_stores_and_of_filters() {
    let place = Workplace::new();
    assert_eq!(read(&place, "--correlated 8 --json").json(0)["correlated"], 8);
    let report = place.run("bench probe --keys 3000 --queries 100 --correlated 8 --json").json(0);
    assert_eq!((&report["correlated"], &report["false_negatives"]), (&8.into(), &0.into()));
    read(&place, "--correlated 0").fails(2, &["--correlated"]);
}

#[test]
fn text_keys_are_measured_by_every_command() {
    let place = Workplace::new();
    let options = "--dist emails,urls --keys 3000 --queries 100 --range-width 1,2 --fill 1 --json";
    let reports = place.run(&format!("bench fpr {options}")).json(0);
    for (place, (dist, bytes)) in [("emails", 18.0), ("urls", 40.0)].into_iter().enumerate() {
        let report = &reports[place];
        assert_eq!(report["dist"], dist);
        assert!(report["key_shape"]["bytes_mean"].as_f64() > Some(bytes), "{report}");
        assert_eq!(report["filters"][0]["false_negatives"], 0);
    }
    let probe = "bench probe --dist urls --keys 3000 --queries 100 --range-width 2 --json";
    let report = place.run(&format!("{probe} --guard surf-real")).json(0);
    assert_eq!((&report["dist"], &report["false_negatives"]), (&"urls".into(), &0.into()));
}

#[test]
fn real_sets_are_taken_from_their_folder_or_stood_in_for() {
    let place = Workplace::new();
    let words: String =
        (0..4000).map(|number| format!("word{}\n", number * 7919 % 100_003)).collect();
    std::fs::create_dir(place.path("fetched")).expect("made");
    place.file("fetched/words.txt", words);
    let probe = "bench probe --dist words --queries 100 --range-width 1 --json";
    let mut fetched = place.command(probe);
    let real = fetched.env("TROMMEL_KEYS", "fetched").output().expect("ended");
    let real = Ended::from(real).json(0);
    assert_eq!((&real["dist"], &real["keys"]), (&"words".into(), &3500.into()));
    for options in ["--dist osm", "--dist osm-stand-in"] {
        let stand_in =
            place.run(&format!("bench probe {options} --keys 3000 --queries 100 --json"));
        assert_eq!(stand_in.json(0)["dist"], "osm-stand-in");
    }
}

#[test]
fn files_of_sosd_are_read_and_bad_ones_refused() {
    let place = Workplace::new();
    let keys = (0..4000u32).map(|key| key / 2 * 7919);
    let body: Vec<u8> = keys.flat_map(u32::to_le_bytes).collect();
    place.file("books_uint32", [&4000u64.to_le_bytes()[..], &body].concat());
    let probe = "bench probe --queries 100 --json --dist";
    let report = place.run(&format!("{probe} sosd:books_uint32")).json(0);
    assert_eq!((&report["keys"], &report["dist"]), (&1750.into(), &"sosd:books_uint32".into()));
    assert_eq!(report["key_shape"]["duplicates"], 2000);
    place.file("books", [&4000u64.to_le_bytes()[..], &body].concat());
    place.run(&format!("{probe} sosd:books")).fails(3, &["books", "4000 keys of 8 bytes"]);
    place.run(&format!("{probe} sosd:nowhere")).fails(3, &["nowhere"]);
}

// An order-preserving fingerprint cannot tell a missing key from its neighbour; bits of a hash can.
#[test]
fn point_bits_help_where_misses_lie_behind_stored_keys() {
    let place = Workplace::new();
    let run = "bench read --guard grf --keys 20000 --queries 3000 --levels 2 --size-ratio 4 --bits-per-key 16 --correlated 8 \
               --kinds point_miss --no-sync --json --point-bits";
    let needless = |bits: u32| {
        let report = place.run(&format!("{run} {bits}")).json(0);
        assert_eq!(report["false_negatives"], 0);
        report["point_miss"]["false_positive_rate"].as_f64().expect("a number")
    };
    let (without, with) = (needless(0), needless(6));
    assert!(without > 0.9 && with < without / 3.0, "{without}, {with}");
}
