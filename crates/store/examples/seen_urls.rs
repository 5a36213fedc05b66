//! Seen URLs: many threads ask whether a crawler has met a URL, and most have not been met.
//! ```text
//! thread  put_if_absent(hash of the URL)   mostly a miss, answered from memory, and then a write
//! ```
//! Of all threads that meet a URL, one alone is told that it is new.
//! Nobody asks for URLs in their order, so 16 bytes of a hash are the key: keys are short, and any
//! two of them lie far apart.
//! ```text
//! cargo run --release -p trommel --example seen_urls
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use trommel::{Db, Options, SyncPolicy};

const THREADS: u64 = 4;
const URLS: u64 = 20_000;

/// Every third URL is one that all threads meet.
fn url(thread: u64, number: u64) -> String {
    let owner = if number.is_multiple_of(3) { 0 } else { thread };
    format!("https://site-{}.example/{owner}/{number}", number % 97)
}

/// FNV-1a with 128 bits: it is the same in every program and version.
fn key(url: &str) -> [u8; 16] {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let step = |hash: u128, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    url.bytes().fold(BASIS, step).to_be_bytes()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let options = Options::new()
        // A URL that is lost in a crash is met again: nothing need be synced at once.
        .sync(SyncPolicy::Never)
        .write_buffer_bytes(256 << 10);
    let db = Db::open(folder.path(), options)?;
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let crawl = |thread| {
            let (db, seen) = (&db, &seen);
            move || -> trommel::Result<()> {
                for number in 0..URLS {
                    let url = key(&url(thread, number));
                    if db.put_if_absent(url, b"")?.is_some() {
                        seen.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(crawl(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let (gets, seen) = (db.stats()?.point, seen.into_inner());
    println!("{} questions, {seen} of URLs seen before", THREADS * URLS);
    println!("{} reached the runs on disk and read {} blocks", gets.reached_runs, gets.blocks_read);
    let shared = URLS.div_ceil(3);
    assert_eq!(seen, (THREADS - 1) * shared);
    assert_eq!(db.iter().count() as u64, THREADS * (URLS - shared) + shared);
    assert!(db.get(key(&url(0, 1)))?.is_some());
    Ok(())
}
