//! Quick start: write, read, scan, delete, and read an older state.
//! ```text
//! cargo run --release -p trommel --example quick_start
//! ```

use trommel::{Batch, Db, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    db.put("apple", "red")?;
    db.put("banana", "yellow")?;

    // A batch is applied as a whole or not at all, after a crash too.
    let mut batch = Batch::new();
    batch.put("cherry", "dark red").put("date", "brown").delete("banana");
    db.write(batch)?;
    assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    assert!(db.get("banana")?.is_none());

    // A snapshot sees the store as it was.
    let before = db.snapshot();
    db.delete_range("c", "e")?;
    assert_eq!(before.range("a".."z").count(), 3);
    assert_eq!(db.range("a".."z").count(), 1);

    // Scans go both ways, and end where the bounds say.
    for entry in before.range("b"..).rev() {
        let (key, value) = entry?;
        println!("{} is {}", key.escape_ascii(), value.escape_ascii());
    }

    // Closing tells of an error that a drop would have to hide.
    db.close()?;
    let db = Db::open(folder.path(), Options::default())?;
    assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    Ok(())
}
