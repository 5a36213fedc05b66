//! Compares the database behind doors with the same database without doors.

mod broken;
mod files;
mod kills;
mod orders;
mod random;
mod rules;
mod stress;
mod threads;
mod transactions;

use std::time::Duration;

use crate::{Base, Db, DoorDb, ReadOptions};
use rocksdb::{ColumnFamilyDescriptor, Direction, IteratorMode, Options};

/// Longer than any correct step takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// The column families of databases that have two.
const FAMILIES: [&str; 2] = ["default", "other"];

fn families() -> [ColumnFamilyDescriptor; 2] {
    FAMILIES.map(|name| ColumnFamilyDescriptor::new(name, options()))
}

/// Pseudorandom numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Options with small memtables. The database is created if it does not exist.
fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_write_buffer_size(1 << 20);
    options.set_merge_operator_associative("concat", |_, old, operands| {
        let mut value = old.unwrap_or_default().to_vec();
        operands.iter().for_each(|operand| value.extend_from_slice(operand));
        Some(value)
    });
    options
}

/// Waits until all doors answer.
fn wait<B: Base>(db: &DoorDb<B>) {
    assert!(db.wait_for_doors(LONG), "a scan ends");
}

/// Waits until a scan has ended that began after this call.
fn scan_anew(db: &Db) {
    let scans = db.door_state().scans;
    db.shared().doors().iter().for_each(|door| door.want_scan());
    let start = std::time::Instant::now();
    while db.door_state().scans == scans || !db.door_state().is_open {
        assert!(start.elapsed() < LONG, "a scan ends");
        std::thread::sleep(Duration::from_millis(1));
    }
    wait(db);
}

/// Counts the keys from `lower` on and below `upper`, with both as bounds.
fn count<B: Base>(db: &DoorDb<B>, lower: &[u8], upper: &[u8]) -> usize {
    let mut options = ReadOptions::default();
    options.set_iterate_range(lower..upper);
    let rows = db.iterator_opt(IteratorMode::Start, options);
    rows.inspect(|row| assert!(row.is_ok())).count()
}

/// Like `count`, from a place without a lower bound.
fn count_from(db: &Db, from: &[u8], upper: &[u8], mut options: ReadOptions) -> usize {
    options.set_iterate_upper_bound(upper);
    db.iterator_opt(IteratorMode::From(from, Direction::Forward), options).count()
}
