//! Bulk load and backup: sorted entries become tables at once, and a checkpoint is a whole store.
//! ```text
//! sorted entries -- ingest --> one run, no log, no memtable
//! checkpoint     -- links ---> a folder of its own, which opens as a store
//! ```
//! ```text
//! cargo run --release -p trommel --example bulk_load_and_backup
//! ```

use trommel::{Db, Options};

const ENTRIES: u32 = 200_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path().join("store"), Options::default())?;
    let entries = (0..ENTRIES).map(|id| (format!("user/{id:08}"), format!("name {id}")));
    let loaded = db.ingest(entries)?;
    let stats = db.stats()?;
    println!("{loaded} entries in {} run, {} bytes", stats.run_count(), stats.table_bytes());
    assert_eq!((loaded, stats.bytes_merged), (u64::from(ENTRIES), 0));

    // Tables never change: a checkpoint links them, so it takes little time and no space at first.
    let backup = folder.path().join("backup");
    db.checkpoint(&backup)?;
    db.delete_range("user/", "user0")?;
    db.compact()?;
    assert!(db.range("user/"..).next().is_none());

    // What a backup is good for is shown by opening it: every block is read and checked.
    let restored = Db::open(&backup, Options::default())?;
    let report = restored.verify()?;
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    assert_eq!(restored.get("user/00012345")?.as_deref(), Some(&b"name 12345"[..]));
    println!("the backup has {} entries, and is sound", restored.estimate_count("user/"..)?);
    Ok(())
}
