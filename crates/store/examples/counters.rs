//! Counters: one thread adds up what others send, and writes sums in atomic batches.
//! ```text
//! threads -- (page, clicks) --> channel --> one writer: read the sum, add, write the batch
//! ```
//! A sum is read, changed and written by one thread alone, so no increment is lost.
//! ```text
//! cargo run --release -p trommel --example counters
//! ```

use std::collections::BTreeMap;
use std::sync::mpsc;

use trommel::{Batch, Db, Options};

const THREADS: u64 = 4;
const CLICKS: u64 = 25_000;
const PAGES: u64 = 500;

fn sum_of(db: &Db, page: &str) -> trommel::Result<u64> {
    let stored = db.get(page)?;
    Ok(stored.map_or(0, |value| u64::from_le_bytes(value[..].try_into().expect("eight bytes"))))
}

/// Adds clicks to the sums of their pages, as one batch.
fn add(db: &Db, clicks: &mut BTreeMap<String, u64>) -> trommel::Result<()> {
    let mut batch = Batch::new();
    for (page, more) in std::mem::take(clicks) {
        let sum = sum_of(db, &page)? + more;
        batch.put(page, sum.to_le_bytes());
    }
    db.write(batch)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let (sender, receiver) = mpsc::channel::<String>();
    let writer = || -> trommel::Result<u64> {
        let (mut waiting, mut batches) = (BTreeMap::new(), 0);
        for (number, page) in receiver.into_iter().enumerate() {
            *waiting.entry(page).or_insert(0) += 1;
            if number % 1000 == 999 {
                add(&db, &mut waiting)?;
                batches += 1;
            }
        }
        add(&db, &mut waiting)?;
        Ok(batches)
    };
    let batches = std::thread::scope(|scope| {
        let writer = scope.spawn(writer);
        for thread in 0..THREADS {
            let sender = sender.clone();
            scope.spawn(move || {
                for click in 0..CLICKS {
                    let page = format!("/page/{:03}", (thread * 31 + click * click) % PAGES);
                    sender.send(page).expect("the writer waits for all of us");
                }
            });
        }
        drop(sender);
        writer.join().expect("no panic")
    })?;
    let mut all = 0;
    for entry in db.range("/page/".."/page0") {
        let (_, sum) = entry?;
        all += u64::from_le_bytes(sum[..].try_into()?);
    }
    println!("{all} clicks in {batches} batches, {} for page 0", sum_of(&db, "/page/000")?);
    assert_eq!(all, THREADS * CLICKS);
    Ok(())
}
