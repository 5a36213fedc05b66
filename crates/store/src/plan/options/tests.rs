//! Tests of options by name, text and preset.

use super::*;

#[test]
fn defaults_make_sense_and_nonsense_is_named() {
    Options::default().check().expect("defaults");
    let message = Options::new().bits_per_key(f64::NAN).check().expect_err("no number").to_string();
    assert!(message.contains("bits_per_key"), "{message}");
}

#[test]
fn presets_make_sense_and_set_nothing() {
    for name in Options::PRESETS {
        let preset = Options::preset(name).expect("it is there");
        preset.check().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(Options::list().iter().all(|option| !preset.is_set(option.name)), "{name}");
        assert_ne!(preset, Options::default(), "{name}");
    }
    let message = Options::preset("sever").expect_err("unknown").to_string();
    assert!(message.contains("server, small-device, many-stores"), "{message}");
}

#[test]
fn monkey_needs_filters_whose_rate_follows_from_bits() {
    for guard in GuardKind::all() {
        let checked = Options::new().guard(guard).monkey(true).check();
        assert_eq!(checked.is_ok(), guard.rate_law().is_some(), "{guard}");
    }
    let message = Options::new().monkey(true).check().expect_err("grf is one filter").to_string();
    assert!(message.contains("monkey"), "{message}");
}

#[test]
fn every_option_has_a_text_that_sets_it() {
    for option in Options::list() {
        let mut options = Options::new();
        let text = option.default_text();
        options.set(option.name, &text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(options, Options::default(), "{} = {text}", option.name);
        assert_eq!(options.text_of(option.name).expect("known"), text);
        assert!(options.is_set(option.name), "{}", option.name);
        // Any text may be the name of an operator that another program has.
        let takes_any = option.name == "merge_operator";
        let set = options.set(option.name, "no such thing");
        assert_eq!(set.is_ok(), takes_any, "{}", option.name);
        let words = [option.kind, option.limits, option.help.trim()];
        assert!(words.iter().all(|words| !words.is_empty()), "{}", option.name);
    }
    let unknown = Options::new().set("bits", "12").expect_err("unknown").to_string();
    assert!(unknown.contains("bits_per_key, "), "{unknown}");
    let near = Options::new().set("bits-per-kye", "12").expect_err("unknown").to_string();
    assert!(near.ends_with("did you mean bits_per_key?"), "{near}");
}

#[test]
fn optional_values_need_no_some() {
    let options = Options::new().stop_runs(40).max_open_files(None);
    assert_eq!((options.stop_runs, options.max_open_files), (Some(40), None));
}

#[test]
fn texts_are_read_as_they_are_meant() {
    let mut options = Options::new();
    for (name, text, written) in [
        ("write_buffer_bytes", "65536", "64KiB"),
        ("write_buffer_bytes", "1g", "1GiB"),
        ("bits_per_key", "12.5", "12.5"),
        ("guard", "blocked-bloom", "blocked-bloom"),
        ("policy", "rocksdb", "rocksdb"),
        ("policy", "leveling ratios=4,6 last_runs=2", "leveling ratios=4,6 last_runs=2"),
        ("policy", "tiering delay_merges", "tiering delay_merges"),
        ("policy", "tiering inner_runs=3,1", "tiering inner_runs=3,1"),
        ("direct", "merges,reads", "reads,merges"),
        ("direct", "reads,flushes,merges", "all"),
        ("direct", "none", "none"),
        ("overlap", "one-by-one", "one-by-one"),
        ("sync", "0.25", "0.25"),
        ("sync", "always", "always"),
        ("background", "4", "4"),
        ("background", "stepped", "stepped"),
        ("stop_runs", "40", "40"),
        ("stop_runs", "auto", "auto"),
        ("surf_suffix", "real:8", "hash:0+real:8"),
        ("surf-size-ratio", "7", "7"),
        ("write-buffer-bytes", "64KiB", "64KiB"),
        ("monkey", "yes", "true"),
    ] {
        options.set(name, text).unwrap_or_else(|error| panic!("{name} = {text}: {error}"));
        assert_eq!(options.text_of(name).expect("known"), written, "{name} = {text}");
    }
    for (name, text) in [
        ("size_ratio", "-1"),
        ("size_ratio", "4294967296"),
        ("point_bits", "256"),
        ("table_bytes", "1TB"),
        ("table_bytes", "99999999999999999999"),
        ("table_bytes", "99999999999GiB"),
        ("policy", "leveling ratios=a"),
        ("policy", "leveling ratios"),
        ("policy", ""),
        ("direct", "reads,writes"),
        ("surf_suffix", "soft:3"),
        ("sync", "-1"),
        ("sync", "NaN"),
        ("background", "-1"),
    ] {
        let before = options.clone();
        let message = options.set(name, text).expect_err(text).to_string();
        assert!(message.starts_with(&format!("option {name}: ")), "{message}");
        assert_eq!(options, before, "{name} = {text}");
    }
}

// Here, since `.ci/run` compiles only these tests without the feature.
#[cfg(not(feature = "zstd"))]
#[test]
fn an_option_that_needs_the_feature_is_refused_when_the_store_is_opened() {
    use crate::db::Db;
    use crate::shared::environment::Environment;
    use crate::storage::memory::Memory;
    use crate::sync::Arc;
    let zstd = Compression::Zstd { level: 3 };
    let options = || Options::new().background(Background::Stepped);
    for options in [options().compression(zstd), options().last_level_compression(zstd)] {
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let error = Db::open_with("db", options, environment).expect_err("it needs the feature");
        assert!(matches!(error, Error::Option { .. }), "{error:?}");
        assert!(error.to_string().contains("feature `zstd`"), "{error}");
    }
}
