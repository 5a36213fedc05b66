//! Databases that two processes have: one writes, another takes over, or compacts.
//! ```text
//! this process    writes ──> SSTs with filters          reads ──> as few GETs as before
//! another one                      └── compacts ──> an SST with a filter ──┘
//! ```

use std::path::Path;
use std::process::Command;

use slatedb::object_store::local::LocalFileSystem;

use super::*;

/// Where the other process finds the database. None: this is not the other process.
const FOLDER: &str = "TROMMEL_SLATEDB_TEST_FOLDER";
/// The names of its policies.
const POLICIES: &str = "TROMMEL_SLATEDB_TEST_POLICIES";

fn store(folder: &Path) -> Arc<dyn ObjectStore> {
    Arc::new(LocalFileSystem::new_with_prefix(folder).expect("is there"))
}

/// In the other process: the database's folder, and its policies.
fn given() -> Option<(Arc<dyn ObjectStore>, Policies)> {
    let folder = std::env::var_os(FOLDER)?;
    let names = std::env::var(POLICIES).expect("both are set");
    let policies = if names.is_empty() { Policies::new() } else { policies(&names) };
    Some((store(folder.as_ref()), policies))
}

/// Runs a test of this program in another process, and waits for it.
fn in_another_process(test: &str, folder: &Path, policies: &str) {
    let this = std::env::current_exe().expect("a test program");
    let mut other = Command::new(this);
    other.args(["--exact", test, "--nocapture"]).env(FOLDER, folder).env(POLICIES, policies);
    let output = other.output().expect("starts");
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

/// The other process of the test below: it takes the database over, and writes.
#[test]
fn takes_over() {
    let Some((store, policies)) = given() else { return };
    run(async {
        let db = builder(store, policies).build().await.expect("opens");
        assert!(db.get(b"of the first").await.expect("gets").is_some());
        assert!(db.get(b"of the second").await.expect("gets").is_none());
        db.put(b"of the second", b"written").await.expect("puts");
        flush(&db).await;
        db.close().await.expect("closes");
    });
}

#[test]
fn another_process_takes_over_and_each_reads_the_filters_of_the_other() {
    run(async {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || builder(store(folder.path()), policies("coded")).build();
        let first = open().await.expect("opens");
        first.put(b"of the first", b"written").await.expect("puts");
        flush(&first).await;
        in_another_process("processes::takes_over", folder.path(), "coded");
        // It is fenced: its write goes nowhere.
        let late = async {
            first.put(b"late", b"written").await?;
            first.flush().await
        };
        assert!(late.await.is_err());
        let third = open().await.expect("opens");
        let all = all_rows(&third).await;
        let keys: Vec<&[u8]> = all.keys().map(Vec::as_slice).collect();
        assert_eq!(keys, [&b"of the first"[..], b"of the second"]);
        third.close().await.expect("closes");
    });
}

/// The other process of the tests below.
#[test]
fn compacts() {
    let Some((store, policies)) = given() else { return };
    run(async { compact(store.clone(), compactor(store, policies)).await });
}

/// Reads for each empty range of a database of these policies, behind a compaction in a process
/// that had those. Whatever there is, the rows are those that were written.
async fn gets_behind_compaction(of_writer: &str, of_compactor: &str) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let counting = Arc::new(CountingStore::over(store(folder.path())));
    let db = builder(counting.clone(), policies(of_writer)).with_db_cache(all_but_data(), 1);
    let db = db.build().await.expect("opens");
    let map = fill(&db).await;
    assert_eq!((db.manifest().l0().len() as u64, db.manifest().compacted().len()), (SSTS, 0));
    in_another_process("processes::compacts", folder.path(), of_compactor);
    db.refresh_manifest().await.expect("reads");
    assert_eq!((db.manifest().l0().len(), db.manifest().compacted().len()), (0, 1));
    let gets = gets_of_empty_ranges(&db, &counting).await;
    assert_eq!(all_rows(&db).await, map);
    for (key, value) in map.iter().step_by(97) {
        assert_eq!(db.get(key).await.expect("gets").as_deref(), Some(value.as_slice()));
        let scan = db.scan(key..=key).await.expect("scans");
        assert_eq!(rows(scan).await.len(), 1);
    }
    db.close().await.expect("closes");
    gets
}

#[test]
fn filters_are_there_behind_a_compaction_in_another_process() {
    for name in NAMES {
        let gets = run(gets_behind_compaction(name, name));
        assert!(gets < 0.05, "{name}: {gets}");
    }
}

#[test]
fn a_compactor_without_the_policy_takes_filters_away_and_no_row() {
    for of_compactor in ["", "bloom", "gap"] {
        let gets = run(gets_behind_compaction("cell", of_compactor));
        assert!((0.99..1.01).contains(&gets), "{of_compactor}: {gets}");
    }
}
