//! The contract of the `Engine` trait and its stores, kept by every engine here: each behaves like
//! a map.

use std::path::Path;

use trommel_lab::{
    Ask, Attempt, ComparePlan, CompressionPlan, Contender, OwnTree, PackedData, PeerPacking,
    PeerSettings, PeerShape, RunLength, ShapeName, Silent, Space, StoresPlan, StreamForm,
    StreamReader, TransactionWorkload, TransactionalStore, TransactionsPlan, ValuesPlan, Workload,
    YcsbPlan, bench_compare, bench_compression, bench_transactions, bench_values, bench_ycsb,
    check_peer,
};

use crate::export::export;
use crate::{engines, packing_engines, separating_engines, transactional_engines};

/// A small store of each name, all with the same settings.
fn stores(names: &[&str], folder: &Path) -> StoresPlan {
    StoresPlan {
        contenders: names.iter().map(|name| name.parse().expect("a name")).collect(),
        bits_per_key: 10.0,
        block_cache_bytes: 1 << 20,
        write_buffer_bytes: 1 << 20,
        merge_threads: 1,
        seed: 3,
        folder: folder.to_path_buf(),
    }
}

fn settings() -> PeerSettings {
    PeerSettings {
        bits_per_key: 10.0,
        block_cache_bytes: 8 << 20,
        write_buffer_bytes: 64 << 20,
        merge_threads: 1,
        direct: false,
        synced: true,
        packing: PeerPacking::NONE,
        values_apart_from: None,
        value_garbage_share: None,
        shape: PeerShape::Default(OwnTree::default()),
    }
}

#[test]
fn every_engine_answers_like_a_map_with_every_filter() {
    for engine in engines() {
        for filter in engine.filters() {
            for seed in 1..4 {
                let folder = tempfile::tempdir().expect("a folder");
                let peer = engine.open(folder.path(), &filter, &settings()).expect("opens");
                let wrong = check_peer(peer.as_ref(), seed, 3000).expect("no error");
                assert_eq!(wrong, None, "{} with {filter}", engine.name());
                peer.close().expect("closes");
            }
        }
    }
}

#[test]
fn given_runs_are_made_and_answered_from_whatever_the_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let contender =
        |engine: &str, filter: &str| Contender { engine: engine.into(), filter: filter.into() };
    let plan = ComparePlan {
        contenders: vec![
            contender("trommel", "grf"),
            contender("rocksdb", "bloom"),
            contender("rocksdb", "prefix-bloom:6"),
            contender("rocksdb", "none"),
        ],
        shape: ShapeName::Runs,
        keys: Some(20_000),
        dist: "uniform".into(),
        value_bytes: 30,
        bits_per_key: 10.0,
        block_cache_bytes: None,
        size_ratio: 5,
        asks: vec![Ask::AbsentPrefix, Ask::Next],
        queries: 500,
        range_width: 64,
        loads: 1,
        seed: 3,
        folder: folder.path().to_path_buf(),
    };
    let reports = bench_compare(&plan, &engines(), &mut Silent).expect("measured");
    for report in &reports {
        let name = (&report.engine, &report.guard);
        assert_eq!((report.false_negatives, report.runs), (0, Some(9)), "{name:?}");
        let bits = report.guard_bits_per_key.expect("both know it");
        let expected = if report.guard == "none" { 0.0..0.1 } else { 5.0..20.0 };
        assert!(expected.contains(&bits), "{name:?}: {bits}");
    }
    assert!(reports[1].settings.contains("bloom at 10 bits"), "{}", reports[1].settings);
}

#[test]
fn a_filter_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for engine in engines() {
        for name in
            ["blom", "prefix-bloom:0", "prefix-bloom:17", "blom+universal", "+universal", ""]
        {
            let opened = engine.open(folder.path(), name, &settings());
            assert!(opened.is_err(), "{}: {name}", engine.name());
        }
    }
}

#[test]
fn settings_say_what_was_asked_for_and_which_version_it_is() {
    for engine in engines() {
        for filter in engine.filters() {
            let folder = tempfile::tempdir().expect("a folder");
            let asked = PeerSettings { block_cache_bytes: 77 << 20, ..settings() };
            let peer = engine.open(folder.path(), &filter, &asked).expect("opens");
            let text = peer.settings();
            let is_universal = filter.ends_with("+universal");
            assert_eq!(text.contains("universal"), is_universal, "{text}");
            assert!(text.contains("77 MiB") && text.contains("no compression"), "{text}");
            assert!(text.contains(|letter: char| letter.is_ascii_digit()), "{text}");
            peer.close().expect("closes");
        }
    }
}

#[test]
fn every_way_to_pack_gives_the_same_answers_in_less_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = CompressionPlan {
        stores: stores(&["trommel", "rocksdb"], folder.path()),
        data: vec![PackedData::Json],
        packings: PeerPacking::usual(),
        entries: 10_000,
        gets: 100,
        scan_entries: 1000,
        rounds: 2,
    };
    let reports = bench_compression(&plan, &packing_engines(), &mut Silent).expect("measured");
    assert!(reports.iter().all(|report| report.wrong == 0));
    for of_store in [0, 1] {
        let bytes = |packing: usize| reports[2 * packing + of_store].folder_bytes;
        assert!(bytes(1) < bytes(0) && bytes(3) < bytes(1), "{}", reports[of_store].engine);
        assert!(bytes(4) < bytes(3), "{}: a dictionary", reports[of_store].engine);
    }
}

#[test]
fn large_values_are_apart_and_right_in_every_engine_that_can() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = ValuesPlan {
        stores: stores(&["trommel", "rocksdb", "fjall"], folder.path()),
        value_bytes: vec![4096, 100_000],
        compressible: true,
        packings: vec![PeerPacking::NONE],
        apart_from: Some(1024),
        garbage_share: Some(0.3),
        data_bytes: 4 << 20,
        overwrites: 2.0,
        get_bytes: 1 << 20,
        rounds: 2,
    };
    let reports = bench_values(&plan, &separating_engines(), &mut Silent).expect("measured");
    assert_eq!(reports.len(), 6);
    for report in &reports {
        assert_eq!((report.wrong, report.steps.len()), (0, 9), "{}", report.engine);
        assert!(report.space_per_byte > 0.9, "{}: {}", report.engine, report.space_per_byte);
        assert!(report.settings.contains("1024 bytes on"), "{}", report.settings);
    }
    // Values that compress to half their size are compressed, in separate files as well.
    let packings = vec!["lz4".parse().expect("a name")];
    let contenders = vec!["rocksdb".parse().expect("a name")];
    let mut packed = ValuesPlan { packings, ..plan.clone() };
    packed.stores.contenders = contenders;
    let packed = bench_values(&packed, &separating_engines(), &mut Silent).expect("measured");
    assert!(packed[0].wrong == 0 && packed[0].space_per_byte < 0.8 * reports[1].space_per_byte);
    let contenders = vec!["fjall".parse().expect("a name")];
    let mut packed = ValuesPlan { packings: vec!["lz4".parse().expect("a name")], ..plan };
    packed.stores.contenders = contenders;
    assert!(bench_values(&packed, &separating_engines(), &mut Silent).is_err());
}

#[test]
fn every_engine_runs_every_workload_of_ycsb_rightly() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = "trommel rocksdb rocksdb:min-max+universal fjall surrealkv redb lmdb";
    let contenders: Vec<Contender> =
        names.split(' ').map(|name| name.parse().expect("any name is one")).collect();
    let count = contenders.len();
    let plan = YcsbPlan {
        stores: StoresPlan {
            contenders,
            bits_per_key: 10.0,
            block_cache_bytes: 8 << 20,
            write_buffer_bytes: 1 << 20,
            merge_threads: 1,
            seed: 1,
            folder: folder.path().to_path_buf(),
        },
        workloads: Workload::ALL.to_vec(),
        distribution: None,
        keys: 5000,
        value_bytes: 100,
        threads: vec![3],
        length: RunLength::Operations(3000),
        rate: None,
        rounds: 2,
        warm_up: 0,
        begin: None,
        fit_bits: false,
        direct: false,
        tree: OwnTree::default(),
    };
    let reports = bench_ycsb(&plan, &engines(), &mut Silent).expect("measured");
    assert_eq!(reports.len(), 6 * count);
    for report in &reports {
        let name = (&report.engine, &report.guard, report.workload);
        assert_eq!((report.wrong_answers, report.ops), (0, 3000), "{name:?}");
        assert!(report.disk_bytes > 0, "{name:?}");
    }
}

#[test]
fn every_workload_of_transactions_leaves_what_its_commits_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = "trommel rocksdb rocksdb-checked rocksdb:none";
    let contenders: Vec<Contender> =
        names.split(' ').map(|name| name.parse().expect("any name is one")).collect();
    let count = contenders.len();
    let plan = TransactionsPlan {
        stores: StoresPlan {
            contenders,
            bits_per_key: 10.0,
            block_cache_bytes: 8 << 20,
            write_buffer_bytes: 256 << 10,
            merge_threads: 1,
            seed: 1,
            folder: folder.path().to_path_buf(),
        },
        workloads: TransactionWorkload::ALL.to_vec(),
        keys: 2000,
        value_bytes: 100,
        threads: vec![1, 4],
        length: RunLength::Operations(4000),
        rounds: 2,
        hot: 8,
        scan_entries: 50,
        warehouses: 2,
    };
    let engines = transactional_engines();
    let reports = bench_transactions(&plan, &engines, &mut Silent).expect("measured");
    assert_eq!(reports.len(), TransactionWorkload::ALL.len() * 2 * count);
    for report in &reports {
        let name = (&report.engine, &report.guard, report.workload, report.threads);
        assert_eq!(report.broken, Vec::<String>::new(), "{name:?}");
        assert!(report.threads == 4 || report.conflicts == 0, "{name:?}");
    }
    let hot = |engine: &str| {
        let hot = |workload| workload == TransactionWorkload::CounterHot;
        reports
            .iter()
            .find(|report| report.engine == engine && hot(report.workload) && report.threads == 4)
    };
    // Each of 4000 increments counts once, despite all conflicts.
    assert!(
        ["trommel", "rocksdb"].iter().all(|name| hot(name).is_some_and(|it| it.commits == 4000))
    );
}

/// Returns how an attempt ends that reads, if another writer then changes part of what it read.
fn ends_after(
    store: &dyn TransactionalStore,
    read: impl Fn(&dyn trommel_lab::OpenTransaction),
    written: &[u8],
) -> Attempt {
    let done = store.attempt(&mut |open| {
        read(open);
        store.put(Space(1), written, b"of another")?;
        open.put(Space(0), b"result", b"1").map(|()| true)
    });
    done.expect("no error")
}

#[test]
fn commits_check_what_the_settings_say() {
    let folder = tempfile::tempdir().expect("a folder");
    for engine in transactional_engines() {
        let (name, folder) = (engine.name(), folder.path().join(engine.name()));
        let opened =
            engine.open_transactional(&folder, &engine.filters()[0], &settings(), &["a", "b"]);
        let store = opened.expect("opens").expect("it has transactions");
        for key in [b"1", b"2", b"3"] {
            store.put(Space(1), key, b"first").expect("writes");
        }
        let get = |open: &dyn trommel_lab::OpenTransaction| {
            open.get(Space(1), b"1", &mut |_| {}).expect("reads");
        };
        assert_eq!(ends_after(store.as_ref(), get, b"1"), Attempt::Conflict, "{name}");
        assert_eq!(ends_after(store.as_ref(), get, b"2"), Attempt::Committed, "{name}");
        let scan = |open: &dyn trommel_lab::OpenTransaction| {
            let bounds = (&b"1"[..], Some(&b"3"[..]));
            let count = open.scan(Space(1), bounds, 10, &mut |_, _| {}).expect("reads");
            assert!(count >= 2, "{name}");
        };
        let (shown, new, behind) = (&b"2"[..], &b"15"[..], &b"3"[..]);
        let ends = [shown, new, behind].map(|key| ends_after(store.as_ref(), scan, key));
        let expected = match name {
            "trommel" => [Attempt::Conflict, Attempt::Conflict, Attempt::Committed],
            "rocksdb-checked" => [Attempt::Conflict, Attempt::Committed, Attempt::Committed],
            _ => [Attempt::Committed; 3],
        };
        assert_eq!(ends, expected, "{name}: {}", store.settings());
        assert!(store.put_if_absent(Space(1), b"4", b"new").expect("writes"), "{name}");
        assert!(!store.put_if_absent(Space(1), b"4", b"newer").expect("no error"), "{name}");
        store.close().expect("closes");
    }
}

#[test]
fn min_max_has_an_index_of_first_keys() {
    let rocks =
        engines().into_iter().find(|engine| engine.name() == "rocksdb").expect("it is there");
    for (filter, expected) in [("min-max", true), ("none", false)] {
        let folder = tempfile::tempdir().expect("a folder");
        rocks.open(folder.path(), filter, &settings()).expect("opens").close().expect("closes");
        let files = std::fs::read_dir(folder.path()).expect("a folder").flatten();
        let is_options = |name: &str| name.starts_with("OPTIONS");
        let mut options = files.filter(|file| file.file_name().to_str().is_some_and(is_options));
        let path = options.next().expect("RocksDB writes down its options").path();
        let text = std::fs::read_to_string(path).expect("text");
        assert_eq!(text.contains("index_type=kBinarySearchWithFirstKey"), expected, "{filter}");
        assert!(text.contains("block_cache="), "{text}");
    }
}

/// Reads the entries of a stream.
fn entries_of(stream: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut reader = StreamReader::new(stream, Some(StreamForm::Native)).expect("a stream");
    let next = std::iter::from_fn(|| reader.next_entry().expect("sound"));
    next.map(|entry| (entry.key, entry.value)).collect()
}

/// Keys that are not text, and values from no bytes to many.
fn odd_entries() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = (0..=255u8)
        .map(|byte| (vec![byte, 0, 0xff], vec![byte; usize::from(byte) * 100]))
        .collect();
    entries.push((vec![0xff; 1000], (0..=255).collect()));
    entries
}

#[test]
fn a_folder_of_rocksdb_is_exported_byte_by_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = rocksdb::Options::default();
    options.create_if_missing(true);
    let mut db = rocksdb::DB::open(&options, folder.path()).expect("opens");
    db.create_cf("other", &rocksdb::Options::default()).expect("made");
    for (place, (key, value)) in odd_entries().iter().enumerate() {
        db.put(key, value).expect("puts");
        // Half of them go to tables, the rest to the log.
        if place == 128 {
            db.flush().expect("flushes");
        }
    }
    db.put("gone", "value").and_then(|()| db.delete("gone")).expect("deletes");
    db.put_cf(db.cf_handle("other").expect("made"), "there", "1").expect("puts");
    drop(db);
    let before = names(folder.path());
    let mut stream = Vec::new();
    let end = export(folder.path(), "default", &mut stream).expect("reads");
    assert_eq!((end.entries, entries_of(&stream)), (257, odd_entries()));
    assert_eq!(names(folder.path()), before, "nothing was written");
    let mut stream = Vec::new();
    export(folder.path(), "other", &mut stream).expect("reads");
    assert_eq!(entries_of(&stream), [(b"there".to_vec(), b"1".to_vec())]);
    let told = export(folder.path(), "third", Vec::new()).expect_err("there is none").to_string();
    assert!(told.contains("there are: default, other"), "{told}");
}

#[test]
fn a_folder_of_leveldb_is_exported_byte_by_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = rusty_leveldb::Options { write_buffer_size: 64 << 10, ..Default::default() };
    let mut db = rusty_leveldb::DB::open(folder.path(), options).expect("opens");
    for (key, value) in odd_entries() {
        db.put(&key, &value).expect("puts");
    }
    db.close().expect("closes");
    assert!(names(folder.path()).iter().any(|name| name.ends_with(".ldb")), "tables, too");
    let mut stream = Vec::new();
    export(folder.path(), "default", &mut stream).expect("reads");
    assert_eq!(entries_of(&stream), odd_entries());
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = files
        .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
