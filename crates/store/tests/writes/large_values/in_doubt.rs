//! Edits in doubt: writing one has failed, and the manifest may have it all the same.
//! ```text
//! merge, bulk load   values -> tables -> edit: it fails     in the file, or not
//! killed then        the next process finds the tables      so their values have to be there
//! ```
//! Invariant: a value stays as long as the manifest may name a table that refers to it.

use trommel::Db;
use trommel::storage::Memory;
use trommel::testing::Fault;

use super::{open, open_with, options, value};

/// A store whose next call may fail at any operation, and is killed then.
fn killed_after_each_fault(call: impl Fn(&Db) -> trommel::Result<()>, check: impl Fn(&Db)) {
    let mut failed = 0;
    for after in 0.. {
        let disk = Memory::new();
        let with = options().value_file_bytes(16 << 10).value_garbage_share(0.05);
        let db = open_with(&disk, with);
        (0..20u64).for_each(|n| db.put(n.to_be_bytes(), value(n, 5000)).expect("puts"));
        db.flush().expect("flushes");
        (0..20u64).step_by(2).for_each(|n| db.delete(n.to_be_bytes()).expect("deletes"));
        db.flush().expect("flushes");
        disk.fail_at(after, Fault::Io);
        let called = call(&db);
        let has_struck = !disk.may_fail();
        disk.mend();
        failed += u32::from(called.is_err());
        let killed = open(&disk.kill());
        (0..20u64).for_each(|n| {
            let expected = (n % 2 == 1).then(|| value(n, 5000));
            let found = killed.get(n.to_be_bytes()).expect("its value is there");
            assert_eq!(found.as_deref(), expected.as_deref(), "{n}, after {after}");
        });
        check(&killed);
        if !has_struck {
            break;
        }
    }
    assert!(failed > 5, "{failed}");
}

#[test]
fn a_merge_that_the_manifest_may_name_keeps_the_values_that_it_moved() {
    killed_after_each_fault(Db::compact, |_| {});
}

#[test]
fn a_bulk_load_that_the_manifest_may_name_keeps_its_values() {
    let keys = || (100..110u64).map(u64::to_be_bytes);
    let load = |db: &Db| {
        let entries = keys().map(|key| (key, value(u64::from_be_bytes(key), 5000)));
        db.ingest(entries).map(drop)
    };
    killed_after_each_fault(load, |db| {
        let found = keys().filter(|key| db.get(key).expect("its value is there").is_some());
        assert!([0, 10].contains(&found.count()));
    });
}
