//! Tests of read-ahead: the number of reads, their timing, and failed or unneeded reads.

use std::io;
use std::sync::{Condvar, Mutex};
use std::thread::ThreadId;

use super::*;
use crate::entries::compression::Compression;
use crate::entries::cursor::Cursor;
use crate::entries::cursor::checks::Owned;
use crate::entries::key_bounds::KeyBounds;
use crate::files::table::tests::{TableFiles, options};
use crate::files::table::writer::TableOptions;
use crate::storage::read_pool::PoolQueue;
use crate::storage::traits::ReadAt;

fn numbers(count: u64) -> Vec<Owned> {
    let put = |number: u64| TableFiles::put(&number.to_be_bytes(), number + 1, &[7; 50]);
    (0..count).map(put).collect()
}

fn options_of(block_bytes: usize) -> TableOptions {
    TableOptions { block_bytes, compression: Compression::None, ..options() }
}

/// Moves a cursor over a whole table. Returns the disk's reads and the cursor's own counts.
fn walk(table_files: &TableFiles, cursor: &mut dyn Cursor, back: bool) -> (u64, u64, Reads) {
    let before = table_files.disk.operations();
    if back { cursor.seek_last() } else { cursor.seek_first() }.unwrap();
    let mut count = 0;
    while cursor.entry().is_some() {
        if back { cursor.prev() } else { cursor.next() }.unwrap();
        count += 1;
    }
    (count, table_files.disk.operations() - before, cursor.reads())
}

#[test]
fn a_walk_either_way_reads_few_large_chunks_and_counts_every_block() {
    for cache_bytes in [0, 20_000, 8 << 20] {
        let table_files = TableFiles::new(cache_bytes);
        let table = table_files.table(&numbers(20_000), &options_of(1000));
        let blocks = table.block_count() as u64;
        assert!(blocks > 1000, "{blocks}");
        for back in [false, true] {
            let mut cursor = table.cursor().fill_cache(false);
            let (count, operations, reads) = walk(&table_files, &mut cursor, back);
            assert_eq!((count, reads.blocks, reads.disk_reads), (20_000, blocks, blocks));
            let data_bytes = reads.bytes;
            assert!(operations < 12 + data_bytes / CHUNK_BYTES, "{operations} reads");
        }
    }
}

#[test]
fn what_is_read_ahead_is_kept_when_it_is_come_to() {
    let table_files = TableFiles::new(8 << 20);
    let table = table_files.table(&numbers(5000), &options_of(1000));
    let blocks = table.block_count() as u64;
    let (_, operations, reads) = walk(&table_files, &mut table.cursor(), false);
    assert!(operations < 20 && reads.disk_reads == blocks, "{operations}, {reads:?}");
    let (count, operations, reads) = walk(&table_files, &mut table.cursor(), false);
    assert_eq!((count, operations, reads.disk_reads, reads.blocks), (5000, 0, 0, blocks));
}

#[test]
fn a_seek_reads_one_block_and_so_do_jumps() {
    let table_files = TableFiles::new(0);
    let table = table_files.table(&numbers(5000), &options_of(1000));
    let mut cursor = table.cursor();
    for number in [0u64, 3000, 100, 4900, 2000] {
        let before = table_files.disk.operations();
        cursor.seek(&number.to_be_bytes()).unwrap();
        assert_eq!(cursor.entry().unwrap().key, number.to_be_bytes());
        assert_eq!((table_files.disk.operations() - before, cursor.reads().blocks), (1, 1));
    }
}

#[test]
fn of_a_file_that_was_cut_off_all_that_is_there_is_read() {
    let table_files = TableFiles::new(0);
    let table = table_files.table(&numbers(5000), &options_of(1000));
    let (first_lost, _) = table.index.block(40);
    table_files.disk.truncate(table.path(), first_lost + 10);
    let mut cursor = table.cursor();
    cursor.seek_first().unwrap();
    let (before, _) = table.index.entries(40);
    for _ in 1..before {
        cursor.next().unwrap();
    }
    let wrong = cursor.next().unwrap_err().to_string();
    assert!(wrong.contains("ends too early"), "{wrong}");
}

#[test]
fn a_damaged_block_is_named_when_it_is_come_to_and_not_before() {
    let table_files = TableFiles::new(0);
    let table = table_files.table(&numbers(5000), &options_of(1000));
    table_files.disk.flip_bit(table.path(), table.index.block(40).0 + 20, 3);
    let mut cursor = table.cursor();
    cursor.seek_first().unwrap();
    for _ in 1..table.index.entries(40).0 {
        cursor.next().unwrap();
    }
    let wrong = cursor.next().unwrap_err().to_string();
    assert!(wrong.contains("data block 40"), "{wrong}");
}

/// A record of a table's reads, in order.
#[derive(Default)]
struct Log {
    /// Whether it was read ahead, offset and length.
    reads: Vec<(bool, u64, usize)>,
    /// Reads beyond this offset fail.
    broken_from: Option<u64>,
    /// Reads ahead wait while this is set.
    is_closed: bool,
}

/// A file whose read-ahead runs on other threads, and that logs its reads.
struct Noting {
    file: Arc<dyn ReadAt>,
    log: Logged,
    /// The thread of the test. Reads of other threads are read-ahead.
    thread: ThreadId,
}

impl ReadAt for Noting {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let is_ahead = std::thread::current().id() != self.thread;
        let mut log = self.log.0.lock().unwrap();
        log.reads.push((is_ahead, offset, buffer.len()));
        while is_ahead && log.is_closed {
            log = self.log.1.wait(log).unwrap();
        }
        if log.broken_from.is_some_and(|broken| offset + buffer.len() as u64 > broken) {
            return Err(io::Error::other("a read that fails, as it should in this test"));
        }
        self.file.read_at(offset, buffer)
    }

    fn reads_ahead(&self) -> Box<dyn ReadQueue> {
        Box::new(PoolQueue::new(1))
    }
}

type Logged = Arc<(Mutex<Log>, Condvar)>;

/// Opens a table whose reads are logged from now on.
fn noting(table_files: &TableFiles, list: &[Owned]) -> (Arc<Table>, Logged) {
    let table = table_files.table(list, &options_of(1000));
    let mut table = Arc::into_inner(table).expect("nobody else has it");
    let log = Logged::default();
    let file = Arc::clone(&table.opened.bytes);
    let thread = std::thread::current().id();
    table.opened.bytes = Arc::new(Noting { file, log: Arc::clone(&log), thread });
    (Arc::new(table), log)
}

/// Waits until `count` reads have begun.
fn reads_begun(log: &Logged, count: usize) -> Vec<(bool, u64, usize)> {
    loop {
        let reads = log.0.lock().unwrap().reads.clone();
        if reads.len() >= count {
            return reads;
        }
        std::thread::yield_now();
    }
}

#[test]
fn while_a_cursor_is_in_a_chunk_the_next_one_is_read_and_no_other() {
    let table_files = TableFiles::new(0);
    let list = numbers(60_000);
    let (table, log) = noting(&table_files, &list);
    let data_bytes = table.span_of(&(0..table.block_count())).1;
    let mut cursor = table.cursor().end_to_end();
    let mut read_bytes = 0;
    cursor.seek_first().unwrap();
    for (nth, owned) in list.iter().enumerate() {
        assert_eq!(cursor.entry().unwrap().key, owned.0, "entry {nth}");
        read_bytes += cursor.reads().bytes;
        let begun: u64 = log.0.lock().unwrap().reads.iter().map(|(.., len)| *len as u64).sum();
        assert!(begun <= read_bytes + 2 * CHUNK_BYTES, "{begun} bytes at entry {nth}");
        cursor.next().unwrap();
    }
    assert!(cursor.entry().is_none());
    let reads = reads_begun(&log, 1);
    let count = data_bytes.div_ceil(CHUNK_BYTES - 2000) as usize;
    assert!(count > 5 && reads.len() <= count, "{reads:?}");
    assert!(!reads[0].0 && reads[1..].iter().all(|read| read.0), "{reads:?}");
    assert_eq!(reads.iter().map(|(.., len)| *len as u64).sum::<u64>(), data_bytes, "each once");
}

#[test]
fn a_long_scan_either_way_reads_ahead_from_when_its_chunks_are_large() {
    let table_files = TableFiles::new(0);
    let list = numbers(60_000);
    let (table, log) = noting(&table_files, &list);
    for back in [false, true] {
        log.0.lock().unwrap().reads.clear();
        let (count, _, reads) = walk(&table_files, &mut table.cursor(), back);
        let data_bytes = table.span_of(&(0..table.block_count())).1;
        assert_eq!((count, reads.bytes), (60_000, data_bytes));
        let begun = reads_begun(&log, 1);
        let (ahead, others): (Vec<_>, Vec<_>) = begun.iter().copied().partition(|read| read.0);
        assert!(others.len() <= 12 && ahead.len() > 3, "{begun:?}");
        let whole = &ahead[..ahead.len() - 1];
        assert!(whole.iter().all(|read| read.2 as u64 > CHUNK_BYTES - 2000), "{ahead:?}");
        assert_eq!(begun.iter().map(|(.., len)| *len as u64).sum::<u64>(), data_bytes);
    }
    // A short scan reads as before: one block, then 2, and 4, of which it needs one.
    log.0.lock().unwrap().reads.clear();
    let mut cursor = table.cursor();
    cursor.seek_first().unwrap();
    (0..table.index.entries(3).0).for_each(|_| cursor.next().unwrap());
    let begun = reads_begun(&log, 3);
    let ends: Vec<u64> = begun.iter().map(|(_, offset, len)| offset + *len as u64).collect();
    let ends_of = |block: usize| table.index.block(block).0;
    assert_eq!(ends, [ends_of(1), ends_of(3), ends_of(7)]);
}

#[test]
fn what_fails_ahead_is_the_error_of_the_block_that_was_needed() {
    let table_files = TableFiles::new(0);
    let list = numbers(60_000);
    let (table, log) = noting(&table_files, &list);
    let mut cursor = table.cursor().end_to_end();
    cursor.seek_first().unwrap();
    let chunk = reads_begun(&log, 2)[1];
    // The second chunk is readable. The third one is not; it is read while the cursor is in the
    // second.
    log.0.lock().unwrap().broken_from = Some(chunk.1 + chunk.2 as u64);
    let mut count = 0u64;
    let wrong = loop {
        match cursor.next() {
            Ok(()) => count += 1,
            Err(wrong) => break wrong,
        }
    };
    assert!(wrong.to_string().contains("as it should"), "{wrong}");
    let reads = reads_begun(&log, 3);
    assert_eq!((reads.len(), reads[2].0), (3, true));
    let first_lost =
        (0..).find(|block| table.index.block(*block).0 == reads[2].1).expect("a block");
    assert_eq!(count + 1, table.index.entries(first_lost).0, "all that was there was given");
    assert!(cursor.entry().is_none());
    log.0.lock().unwrap().broken_from = None;
    cursor.seek(&list[39_000].0).unwrap();
    assert_eq!(cursor.entry().unwrap().key, list[39_000].0, "it goes on");
}

#[test]
fn a_cursor_that_is_dropped_or_jumps_waits_for_nothing_and_leaves_nothing() {
    let table_files = TableFiles::new(0);
    let list = numbers(60_000);
    let (table, log) = noting(&table_files, &list);
    let file = Arc::downgrade(&table.opened.bytes);
    log.0.lock().unwrap().is_closed = true;
    let mut jumps = table.cursor().end_to_end();
    jumps.seek_first().unwrap();
    let mut dropped = table.cursor().end_to_end();
    dropped.seek_first().unwrap();
    reads_begun(&log, 4);
    drop(dropped);
    jumps.seek(&list[39_000].0).unwrap();
    assert_eq!(jumps.entry().unwrap().key, list[39_000].0);
    log.0.lock().unwrap().is_closed = false;
    log.1.notify_all();
    drop((jumps, table));
    // Threads release the file once their reads are abandoned.
    while file.strong_count() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_walk_over_what_is_left_of_a_trimmed_table_reads_no_more_than_that() {
    let table_files = TableFiles::new(0);
    let list = numbers(60_000);
    let (table, log) = noting(&table_files, &list);
    let bounds = KeyBounds { from: list[10_000].0.clone(), to: Some(list[10_050].0.clone()) };
    let mut cursor = table.cursor().within(Some(&Arc::new(bounds))).end_to_end();
    cursor.seek_first().unwrap();
    for owned in &list[10_000..10_050] {
        assert_eq!(cursor.entry().unwrap().key, owned.0);
        cursor.next().unwrap();
    }
    assert!(cursor.entry().is_none());
    let reads = reads_begun(&log, 1);
    let blocks = table.first_block_of(&list[10_000].0)..table.first_block_of(&list[10_050].0) + 1;
    let (offset, len) = table.span_of(&blocks);
    assert_eq!(reads, [(false, offset, len as usize)]);
}
