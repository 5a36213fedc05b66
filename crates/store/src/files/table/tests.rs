//! Tests of tables: against a list, and with every truncation and bit flip.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use trommel_filters::{FilterOptions, Writer, kinds};

use super::*;
use crate::entries::checksum;
use crate::entries::compression::{Compression, RATIO_MAX};
use crate::entries::cursor::Cursor;
use crate::entries::cursor::checks::{Owned, any_entries, any_moves, entry, follows, sorted};
use crate::entries::entry::{KEY_BYTES_MAX, Kind, Sequence};
use crate::entries::keyspace_id::KeyspaceId;
use crate::files::cache::BlockCache;
use crate::files::table::file::CheckedFile;
use crate::files::table::format::{TAG_INDEX, TAIL_SIZE, filter_tag};
use crate::files::table::writer::{TableOptions, TableSummary, TableWriter};
use crate::storage::io_mode::Access;
use crate::storage::memory::{Fault, Memory};
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::Storage as _;

/// A disk with tables.
pub(crate) struct TableFiles {
    pub(crate) disk: Memory,
    pub(crate) cache: Arc<CacheShare>,
    next_file: AtomicU64,
}

fn bloom(bits_per_key: f64) -> FilterOptions {
    FilterOptions::new(kinds::BLOCKED_BLOOM, bits_per_key)
}

pub(super) const COMPRESSIONS: [Compression; 3] =
    [Compression::None, Compression::Lz4, Compression::Zstd { level: 3 }];

/// Small blocks, and everything that a table can contain.
pub(crate) fn options() -> TableOptions {
    TableOptions {
        block_bytes: 256,
        compression: Compression::Lz4,
        dictionary: None,
        filter: Some(bloom(10.0)),
        hashes: false,
        keyspace: KeyspaceId::DEFAULT,
    }
}

impl TableFiles {
    pub(crate) fn new(cache_bytes: u64) -> Self {
        let disk = Memory::new();
        disk.create_dir(Path::new("db")).unwrap();
        let cache = Arc::new(BlockCache::new(cache_bytes)).share();
        TableFiles { disk, cache, next_file: AtomicU64::new(1) }
    }

    pub(crate) fn put(key: &[u8], sequence: u64, value: &[u8]) -> Owned {
        (key.to_vec(), sequence, Kind::Put, value.to_vec())
    }

    fn write(&self, list: &[Owned], options: &TableOptions) -> (u64, TableSummary) {
        let file = self.next_file.fetch_add(1, Ordering::Relaxed);
        let mut writer =
            TableWriter::create(&self.folder(), file, Access::default(), options).unwrap();
        for owned in list {
            writer.add(&entry(owned)).unwrap();
        }
        assert_eq!(writer.entry_count(), list.len() as u64);
        let size = writer.size_bytes();
        let summary = writer.finish(&RangeTombstones::default()).unwrap();
        assert!(size < summary.bytes + 1_000, "{size} before, {} after", summary.bytes);
        (file, summary)
    }

    pub(crate) fn folder(&self) -> OpenFolder {
        OpenFolder::on(&self.disk, "db")
    }

    pub(crate) fn files(&self) -> Arc<OpenFiles> {
        OpenFiles::new(self.folder(), Access::default(), usize::MAX)
    }

    fn path(file: u64) -> PathBuf {
        PathBuf::from(format!("db/{file:06}.table"))
    }

    fn open(&self, file: u64) -> Result<Arc<Table>> {
        let kind = Some(kinds::BLOCKED_BLOOM);
        Table::open(&self.files(), file, Arc::clone(&self.cache), kind)
    }

    pub(crate) fn table(&self, list: &[Owned], options: &TableOptions) -> Arc<Table> {
        let (file, _) = self.write(list, options);
        self.open(file).unwrap()
    }
}

fn get(table: &Table, key: &[u8], at: u64) -> Option<(u64, Kind, Vec<u8>)> {
    let found = table.get(key, Sequence(at), &mut Reads::default()).unwrap()?;
    Some((found.sequence.0, found.kind, found.value.to_vec()))
}

fn numbers(count: u64) -> Vec<Owned> {
    (0..count)
        .map(|number| TableFiles::put(&(number * 3).to_be_bytes(), number + 1, &[number as u8; 30]))
        .collect()
}

proptest! {
    #[test]
    fn a_table_is_a_sorted_list(
        list in any_entries(200),
        moves in any_moves(),
        block_bytes in prop::sample::select(vec![0usize, 64, 256, 4096]),
        compression in prop::sample::select(COMPRESSIONS.to_vec()),
        cache_bytes in prop::sample::select(vec![0u64, 1 << 20]),
    ) {
        let list = sorted(list);
        let table_files = TableFiles::new(cache_bytes);
        let table_options = TableOptions { block_bytes, compression, filter: Some(bloom(8.0)), ..options() };
        let table = table_files.table(&list, &table_options);
        table.verify().unwrap();
        follows(&mut table.cursor(), &list, &moves);
        prop_assert_eq!(table.entry_count(), list.len() as u64);
        prop_assert_eq!((table.first_key(), table.last_key()), (&list[0].0[..], &list[list.len() - 1].0[..]));
        let mut keys: Vec<Vec<u8>> = list.iter().map(|owned| owned.0.clone()).collect();
        keys.extend(list.iter().map(|owned| [&owned.0[..], &[0]].concat()));
        keys.extend([vec![], vec![0xff; 20], vec![2], vec![b'a', 2]]);
        for key in &keys {
            for at in [0, 1, 20, u64::MAX] {
                let expected = list.iter().find(|owned| owned.0 == *key && owned.1 <= at);
                let expected = expected.map(|owned| (owned.1, owned.2, owned.3.clone()));
                prop_assert_eq!(get(&table, key, at), expected, "{:?} at {}", key, at);
            }
        }
        for key in &keys {
            let bounds = table.rank_bounds(key);
            let rank = list.partition_point(|owned| owned.0 < *key) as u64;
            prop_assert!(bounds.least <= rank && rank <= bounds.most, "{:?}, but {}", bounds, rank);
            if list.iter().any(|owned| owned.0 == *key) {
                prop_assert!(table.filter().expect("it was asked for").may_contain(key));
            }
        }
    }
}

#[test]
fn a_key_of_many_versions_fills_many_blocks() {
    let table_files = TableFiles::new(0);
    let mut list = vec![TableFiles::put(b"a", 5, b"before"), TableFiles::put(b"z", 5, b"after")];
    list.extend((1..=500).map(|sequence| TableFiles::put(b"key", sequence, &[7; 20])));
    let list = sorted(list);
    let table = table_files.table(&list, &options());
    table.verify().unwrap();
    assert!(table.block_count() > 20);
    for sequence in 1..=500 {
        assert_eq!(get(&table, b"key", sequence).unwrap().0, sequence);
    }
    assert_eq!(get(&table, b"key", u64::MAX).unwrap().0, 500);
    assert_eq!((get(&table, b"key", 0), get(&table, b"kez", 9)), (None, None));
    let mut reads = Reads::default();
    table.get(b"key", Sequence(250), &mut reads).unwrap();
    assert!(reads.blocks > 5, "it walks from the newest version on");
    let mut cursor = table.cursor();
    cursor.seek(b"key").unwrap();
    assert_eq!(cursor.entry().unwrap().sequence, Sequence(500));
    cursor.seek_before(b"key").unwrap();
    assert_eq!(cursor.entry().unwrap().key, b"a");
    cursor.seek_before(b"z").unwrap();
    assert_eq!(cursor.entry().unwrap().sequence, Sequence(1));
}

#[test]
fn the_summary_tells_what_was_written() {
    let table_files = TableFiles::new(0);
    let mut list = numbers(1_000);
    list[17].2 = Kind::Delete;
    list[17].3.clear();
    let (file, summary) = table_files.write(&list, &options());
    let table = table_files.open(file).unwrap();
    assert_eq!((summary.entries, table.properties().deletes), (1_000, 1));
    assert_eq!(summary.sequences, (Sequence(1), Sequence(1_000)));
    assert_eq!(
        (&summary.from[..], &summary.to[..]),
        (table.first_key(), &[table.last_key(), &[0]].concat()[..])
    );
    assert_eq!(summary.bytes, table_files.disk.file(table.path()).unwrap().len() as u64);
    assert_eq!((table.bytes(), table.file()), (summary.bytes, file));
    assert_eq!(table.properties().raw_bytes, 1_000 * 38 - 30);
    assert!(summary.filter_seconds > 0.0);
    assert!(table.fence_bytes() > 8 * table.block_count());
    assert!((1_250..1_500).contains(&table.filter_bytes()), "{}", table.filter_bytes());
    let plain = TableOptions { filter: None, ..options() };
    let (file, summary) = table_files.write(&list, &plain);
    let table = table_files.open(file).unwrap();
    assert!(table.filter().is_none() && table.filter_bytes() == 0);
    assert!(summary.filter_seconds == 0.0);
}

#[test]
fn ranks_are_right_but_for_a_block() {
    let table = TableFiles::new(0).table(&numbers(5_000), &options());
    let per_block = 5_000 / table.block_count() as u64 + 2;
    for rank in 0..5_000u64 {
        let found = table.rank_bounds(&(rank * 3).to_be_bytes());
        assert!(found.least <= rank && rank <= found.most, "{found:?} for {rank}");
        assert!(found.most - found.least <= per_block, "{found:?} for {rank}");
    }
    assert_eq!(table.rank_bounds(&0u64.to_be_bytes()), RankBounds::exact(0));
    assert_eq!(table.rank_bounds(&[0xff]), RankBounds::exact(5_000));
}

#[test]
fn reads_are_counted_and_cached_blocks_are_not_read_again() {
    let table_files = TableFiles::new(1 << 20);
    let table = table_files.table(&numbers(1_000), &options());
    let (key, mut reads) = (300u64.to_be_bytes(), Reads::default());
    table.get(&key, Sequence::MAX, &mut reads).unwrap().expect("it is there");
    assert_eq!((reads.blocks, reads.disk_reads), (1, 1));
    assert!(reads.bytes > 50);
    table.get(&key, Sequence::MAX, &mut reads).unwrap().expect("it is there");
    assert_eq!((reads.blocks, reads.disk_reads), (2, 1));
    let mut cursor = table.cursor().fill_cache(false);
    cursor.seek_first().unwrap();
    while cursor.entry().is_some() {
        cursor.next().unwrap();
    }
    let walked = cursor.reads();
    let blocks = table.block_count() as u64;
    assert_eq!((walked.blocks, walked.disk_reads), (blocks, blocks - 1));
    assert_eq!(cursor.reads(), Reads::default());
    let mut again = Reads::default();
    table.get(&0u64.to_be_bytes(), Sequence::MAX, &mut again).unwrap();
    assert_eq!(again.disk_reads, 1, "the cursor left nothing in the cache");
}

#[test]
fn a_table_that_is_closed_leaves_nothing_in_the_cache_but_values_live_on() {
    let table_files = TableFiles::new(1 << 20);
    let (file, _) = table_files.write(&numbers(1_000), &options());
    let (one, other) = (table_files.open(file).unwrap(), table_files.open(file).unwrap());
    let key = 300u64.to_be_bytes();
    let found = one.get(&key, Sequence::MAX, &mut Reads::default()).unwrap().expect("it is there");
    let one_block = table_files.cache.size_bytes();
    assert!(one_block > 256);
    let slots = (size_of::<usize>() + size_of::<u8>()) * one.block_count();
    assert_eq!(one.fence_bytes(), one.index.heap_bytes() + slots);
    get(&other, &key, u64::MAX).expect("it is there");
    assert_eq!(table_files.cache.size_bytes(), 2 * one_block, "each open table has its own slots");
    drop(one);
    assert_eq!(table_files.cache.size_bytes(), one_block);
    drop(other);
    assert_eq!((table_files.cache.size_bytes(), &*found.value), (0, &[100; 30][..]));
}

#[test]
fn every_flipped_bit_is_an_error_that_names_file_and_place() {
    let table_files = TableFiles::new(0);
    let (file, _) = table_files.write(&numbers(60), &options());
    let path = TableFiles::path(file);
    let whole = table_files.disk.file(&path).unwrap();
    for at in 0..whole.len() as u64 {
        let bit = (at % 8) as u32;
        table_files.disk.put_file(&path, whole.as_slice());
        table_files.disk.flip_bit(&path, at, bit);
        match table_files.open(file).and_then(|table| table.verify()) {
            Err(Error::Corrupt { path: named, offset, .. }) => {
                assert_eq!(named, path);
                assert!(offset <= whole.len() as u64);
            }
            other => panic!("bit {bit} of byte {at}: {other:?}"),
        }
    }
}

#[test]
fn every_cut_is_an_error() {
    let table_files = TableFiles::new(0);
    let (file, _) = table_files.write(&numbers(60), &options());
    let whole = table_files.disk.file(TableFiles::path(file)).unwrap();
    for len in 0..whole.len() {
        table_files.disk.put_file(TableFiles::path(file), &whole[..len]);
        let result = table_files.open(file).map(|_| ());
        assert!(matches!(result, Err(Error::Corrupt { .. })), "cut at {len}: {result:?}");
    }
}

#[test]
fn a_damaged_block_is_an_error_when_it_is_read_and_not_before() {
    let table_files = TableFiles::new(0);
    let list = numbers(1_000);
    let (file, _) = table_files.write(&list, &options());
    table_files.disk.flip_bit(TableFiles::path(file), 10, 1);
    let table = table_files.open(file).unwrap();
    let last = &list[list.len() - 1];
    assert!(get(&table, &last.0, u64::MAX).is_some());
    let damaged = table.get(&list[0].0, Sequence::MAX, &mut Reads::default());
    assert!(matches!(damaged, Err(Error::Corrupt { offset: 0, .. })));
    let mut cursor = table.cursor();
    assert!(cursor.seek_first().is_err() && cursor.entry().is_none());
    cursor.seek_last().unwrap();
    assert_eq!(cursor.entry().unwrap().key, last.0);
}

#[test]
fn a_damaged_filter_can_be_left_alone() {
    let table_files = TableFiles::new(0);
    let (file, _) = table_files.write(&numbers(1_000), &options());
    let table = table_files.open(file).unwrap();
    let tag = filter_tag(kinds::BLOCKED_BLOOM);
    let at = find(&table.sections, tag).expect("a filter").offset;
    table_files.disk.flip_bit(table.path(), at + 5, 0);
    match table_files.open(file).map(|_| ()) {
        Err(Error::Corrupt { path, offset, .. }) => {
            assert_eq!((path.as_path(), offset), (table.path(), at));
        }
        other => panic!("{other:?}"),
    }
    let cache = Arc::clone(&table_files.cache);
    let open = Table::open(&table_files.files(), file, cache, None);
    let table = open.unwrap();
    assert!(table.filter().is_none());
    assert!(get(&table, &3u64.to_be_bytes(), u64::MAX).is_some());
    assert!(table.verify().is_err(), "verify reads what open left alone");
}

/// Writes the file of a table with one entry, whose sections `change` modifies.
fn with_sections(table_files: &TableFiles, change: impl FnOnce(&mut Vec<Section>)) -> u64 {
    let (file, _) = table_files.write(&numbers(1), &options());
    let mut sections = table_files.open(file).unwrap().sections.clone();
    let bytes = table_files.disk.file(TableFiles::path(file)).unwrap();
    let end = sections.iter().map(|section| section.offset + section.len).max().unwrap();
    change(&mut sections);
    let footer = crate::files::table::format::encode_footer(&sections, 2);
    table_files.disk.put_file(TableFiles::path(file), [&bytes[..end as usize], &footer].concat());
    file
}

#[test]
fn unknown_sections_are_skipped_if_they_may_be() {
    let table_files = TableFiles::new(0);
    let unknown = |optional| Section { tag: 77, optional, offset: 0, len: 0, checksum: 0 };
    let file = with_sections(&table_files, |sections| {
        // Its offset is where the sections begin, so that it does not lie within the data.
        let offset = sections[0].offset;
        sections.push(Section { offset, ..unknown(true) });
    });
    let table = table_files.open(file).unwrap();
    table.verify().unwrap();
    let file = with_sections(&table_files, |sections| {
        let offset = sections[0].offset;
        sections.push(Section { offset, ..unknown(false) });
    });
    let result = table_files.open(file).map(|_| ());
    assert!(
        matches!(&result, Err(Error::Corrupt { what, .. }) if what.contains("77")),
        "{result:?}"
    );
    let file = with_sections(&table_files, |sections| sections.retain(|at| at.tag != TAG_INDEX));
    assert!(matches!(table_files.open(file).map(|_| ()), Err(Error::Corrupt { .. })));
}

#[test]
fn another_version_is_told_from_damage() {
    let table_files = TableFiles::new(0);
    let (file, _) = table_files.write(&numbers(9), &options());
    let mut bytes = table_files.disk.file(TableFiles::path(file)).unwrap();
    let tail_at = bytes.len() - TAIL_SIZE;
    bytes[tail_at + 8] = 9;
    let checksum = checksum::crc32c(&bytes[tail_at..tail_at + 12]).to_le_bytes();
    bytes[tail_at + 12..tail_at + 16].copy_from_slice(&checksum);
    table_files.disk.put_file(TableFiles::path(file), bytes);
    let result = table_files.open(file).map(|_| ());
    assert!(matches!(result, Err(Error::Version { found: 9, known: 3, .. })), "{result:?}");
}

#[test]
fn a_table_that_was_not_finished_is_none() {
    let table_files = TableFiles::new(0);
    let mut writer =
        TableWriter::create(&table_files.folder(), 50, Access::default(), &options()).unwrap();
    numbers(100).iter().for_each(|owned| writer.add(&entry(owned)).unwrap());
    drop(writer);
    assert!(matches!(table_files.open(50).map(|_| ()), Err(Error::Corrupt { .. })));
    let mut writer =
        TableWriter::create(&table_files.folder(), 51, Access::default(), &options()).unwrap();
    numbers(100).iter().for_each(|owned| writer.add(&entry(owned)).unwrap());
    table_files.disk.fail_at(0, Fault::NoSpace);
    let finished = writer.finish(&RangeTombstones::default());
    assert!(matches!(finished, Err(Error::Io { .. })));
    assert!(table_files.open(51).is_err());
}

#[test]
fn entries_out_of_order_are_refused() {
    let table_files = TableFiles::new(0);
    let first = TableFiles::put(b"b", 5, b"");
    let seconds = [
        TableFiles::put(b"a", 6, b""),
        TableFiles::put(b"b", 5, b""),
        TableFiles::put(b"b", 6, b""),
    ];
    for (file, second) in (7..).zip(seconds) {
        let mut writer =
            TableWriter::create(&table_files.folder(), file, Access::default(), &options())
                .unwrap();
        writer.add(&entry(&first)).unwrap();
        let error = writer.add(&entry(&second)).expect_err("it is not after the one before");
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let table_files = TableFiles::new(0);
    let plain = TableOptions {
        block_bytes: 4096,
        compression: Compression::None,
        dictionary: None,
        filter: None,
        hashes: false,
        keyspace: KeyspaceId::DEFAULT,
    };
    let list =
        [TableFiles::put(b"drum", 3, b"sieve"), (b"drums".to_vec(), 4, Kind::Delete, vec![])];
    let (file, _) = table_files.write(&list, &plain);
    let bytes = table_files.disk.file(TableFiles::path(file)).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN.concat());
}

/// The bytes of a table with two entries, part by part.
const GOLDEN: [&str; 9] = [
    "010000000d0000000000000000000000", // the block's lengths and its restart
    "000405186472756d0401002173",       // its heads
    "7369657665006f2c321f",             // its value, its trailer
    "012702000000",                     // index
    "0102010e0304046472756d056472756d73", // properties
    "0200",                             // section list: how many
    "01000027000000000000000600000000000000018fa3b4", // index: at 39, 6 bytes
    "0200002d00000000000000110000000000000035e292ff", // properties: at 45, 17 bytes
    "30000000e26b12e60200000014cb7c7654524d4c54424c00", // tail
];

/// A file of blocks, which are a hole if they were not written, and of sections.
struct Blocks {
    are_written: bool,
    len: u64,
    sections: Vec<u8>,
}

impl ReadAt for Blocks {
    fn size(&self) -> std::io::Result<u64> {
        Ok(self.len + self.sections.len() as u64)
    }

    fn data_after(&self, from: u64) -> std::io::Result<Option<std::ops::Range<u64>>> {
        let (first, end) = (if self.are_written { 0 } else { self.len }, self.size()?);
        Ok((from < end).then_some(from.max(first)..end))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        buffer.copy_from_slice(&self.sections[(offset - self.len) as usize..][..buffer.len()]);
        Ok(())
    }
}

/// Decodes an index whose blocks have the longest separators, which share all but a few bytes.
/// Returns the memory that this takes.
fn decode_long_separators(are_written: bool) -> (u64, Result<Index>) {
    const BLOCKS: u32 = 500;
    let len = KEY_BYTES_MAX / RATIO_MAX + 2;
    let mut index = Writer::new();
    index.varint(BLOCKS.into());
    for block in 0..BLOCKS {
        let bytes = block.to_be_bytes();
        let (shared, rest) = match block {
            0 => (0, Vec::new()),
            1 => (0, [&[b'k'; KEY_BYTES_MAX - 4][..], &bytes].concat()),
            _ => (KEY_BYTES_MAX - bytes.len(), bytes.to_vec()),
        };
        index.varint(len as u64);
        index.varint(1);
        index.u8(0);
        index.varint(shared as u64);
        index.string(&rest);
    }
    let sections = index.finish();
    let (len, checksum) = (len as u64 * u64::from(BLOCKS), checksum::crc32c(&sections));
    let section = Section {
        tag: TAG_INDEX,
        optional: false,
        offset: len,
        len: sections.len() as u64,
        checksum,
    };
    let bytes = Arc::new(Blocks { are_written, len, sections });
    let file = CheckedFile::new(1, PathBuf::from("db/000001.table"), bytes);
    let mut decoded = None;
    let memory = allocation_counter::measure(|| decoded = Some(file.index(&[section])));
    (memory.bytes_max, decoded.expect("it was called"))
}

#[test]
fn separators_of_blocks_that_were_never_written_claim_no_memory() {
    let (bytes, decoded) = decode_long_separators(false);
    assert!(matches!(decoded, Err(Error::Corrupt { .. })));
    assert!(bytes < 32 << 20, "{bytes} bytes");
    assert!(decode_long_separators(true).1.is_ok());
}
