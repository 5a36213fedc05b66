//! Tables whose blocks are compressed with Zstandard, with and without a dictionary, and how a
//! reader without Zstandard treats them.

use super::tests::{TableFiles, options};
use super::*;
use crate::entries::compression::Compression;
use crate::entries::cursor::Cursor;
use crate::entries::cursor::checks::Owned;
use crate::files::table::format::{TAIL_SIZE, VERSION, VERSION_WITHOUT_ZSTD, decode_tail};
use crate::files::table::writer::TableOptions;

/// Entries that have much in common with each other, but compress little within a block.
fn rows(count: u64) -> Vec<Owned> {
    let value = |number: u64| {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{{\"id\":{mixed},\"station\":\"Zug {}\",\"platform\":{}}}", mixed % 97, mixed % 7)
    };
    (0..count)
        .map(|number| TableFiles::put(&number.to_be_bytes(), number + 1, value(number).as_bytes()))
        .collect()
}

fn zstd() -> TableOptions {
    TableOptions { compression: Compression::Zstd { level: 3 }, ..options() }
}

fn version_of(table: &Table) -> u32 {
    let tail = table.opened.read(table.size - TAIL_SIZE as u64, TAIL_SIZE as u64).unwrap();
    decode_tail(&tail).unwrap().version
}

fn all(table: &Arc<Table>) -> Vec<Owned> {
    let (mut cursor, mut found) = (table.cursor(), Vec::new());
    cursor.seek_first().unwrap();
    while let Some(entry) = cursor.entry() {
        found.push((entry.key.to_vec(), entry.sequence.0, entry.kind, entry.value.to_vec()));
        cursor.next().unwrap();
    }
    found
}

#[test]
fn a_table_has_the_least_version_that_has_what_it_needs() {
    let table_files = TableFiles::new(0);
    let list = rows(100);
    let lz4 = table_files.table(&list, &options());
    assert_eq!(version_of(&lz4), VERSION_WITHOUT_ZSTD);
    let table = table_files.table(&list, &zstd());
    let needs = if cfg!(feature = "zstd") { VERSION } else { VERSION_WITHOUT_ZSTD };
    assert_eq!((version_of(&table), table.dictionary_bytes()), (needs, 0));
    assert_eq!(all(&table), list);
}

#[test]
fn reading_a_packed_block_allocates_no_more_than_reading_a_plain_one() {
    let table_files = TableFiles::new(0);
    let list = rows(100);
    let allocations = |compression| {
        let table = table_files.table(&list, &TableOptions { compression, ..options() });
        // The first call allocates the thread's buffer.
        table.verify().unwrap();
        let read = || drop(table.block_past_cache(1, &mut Reads::default()).unwrap());
        allocation_counter::measure(read).count_total
    };
    let plain = allocations(Compression::None);
    assert!(plain > 0);
    for compression in [Compression::Lz4, Compression::Zstd { level: 3 }] {
        assert_eq!(allocations(compression), plain, "{compression}");
    }
}

/// A table of one block, as a program with the feature writes it.
#[cfg(not(feature = "zstd"))]
#[test]
fn a_block_that_needs_the_feature_is_no_damage() {
    use crate::entries::compression::forms;
    let table_files = TableFiles::new(0);
    let list = rows(1);
    let whole = TableOptions { compression: Compression::None, filter: None, ..options() };
    let table = table_files.table(&list, &whole);
    let path = table.path().to_path_buf();
    let mut bytes = table_files.disk.file(&path).unwrap();
    // Gives the block another form, and the matching checksum.
    let (offset, len) = table.index.block(0);
    let form_at = (offset + len) as usize - 5;
    bytes[form_at] = forms::ZSTD;
    let place = crate::entries::block::BlockPlace { file: table.file(), offset };
    let sum = place.checksum(&bytes[offset as usize..=form_at]);
    bytes[form_at + 1..form_at + 5].copy_from_slice(&sum.to_le_bytes());
    table_files.disk.put_file(&path, bytes);
    let cache = Arc::clone(&table_files.cache);
    let table = Table::open(&table_files.files(), table.file(), cache, None).unwrap();
    let error = table.block_past_cache(0, &mut Reads::default()).expect_err("it cannot be read");
    assert!(matches!(error, Error::FeatureMissing { feature: "zstd", .. }), "{error}");
    assert!(error.to_string().contains("data block 0"), "{error}");
    assert!(table.verify().is_err_and(|error| !error.tells_of_damage()));
}

#[cfg(feature = "zstd")]
mod with_zstd {
    use super::*;
    use crate::entries::block::Block;
    use crate::entries::compression::{DICTIONARY_BYTES_MAX, EncoderDictionary, train};
    use crate::files::table::format::{Section, encode_footer};

    fn trained(list: &[Owned]) -> Arc<EncoderDictionary> {
        let table_files = TableFiles::new(0);
        let table = table_files.table(list, &options());
        let block = |number| table.block_past_cache(number, &mut Reads::default()).unwrap();
        let blocks: Vec<Block> = (0..table.block_count()).map(block).collect();
        let lens: Vec<usize> = blocks.iter().map(|block| block.raw().len()).collect();
        let pieces: Vec<&[u8]> = blocks.iter().map(Block::raw).collect();
        let bytes = train(&pieces.concat(), &lens, 2048).expect("they have much in common");
        Arc::new(EncoderDictionary::new(bytes, 3).expect("it is one"))
    }

    #[test]
    fn a_dictionary_lies_in_the_table_that_needs_it() {
        let list = rows(1000);
        let dictionary = trained(&list);
        let table_files = TableFiles::new(0);
        let without = table_files.table(&list, &zstd());
        let with = TableOptions { dictionary: Some(Arc::clone(&dictionary)), ..zstd() };
        let table = table_files.table(&list, &with);
        assert_eq!(table.dictionary_bytes(), dictionary.bytes().len() as u64);
        assert!(table.bytes() < without.bytes(), "{} and {}", table.bytes(), without.bytes());
        assert!(table.fence_bytes() > without.fence_bytes() + dictionary.bytes().len());
        assert_eq!((all(&table), all(&without)), (list.clone(), list.clone()));
        table.verify().unwrap();
        // A table whose blocks need no dictionary does not store one.
        let lz4 = TableOptions { dictionary: Some(dictionary), ..options() };
        assert_eq!(table_files.table(&list, &lz4).dictionary_bytes(), 0);
    }

    #[test]
    fn every_flipped_byte_of_a_dictionary_is_noticed_when_the_table_is_opened() {
        let list = rows(100);
        let table_files = TableFiles::new(0);
        let with = TableOptions { dictionary: Some(trained(&rows(1000))), ..zstd() };
        let table = table_files.table(&list, &with);
        let at = *find(&table.sections, TAG_DICTIONARY).expect("it has one");
        assert!(!at.optional, "who does not know it cannot read the blocks");
        let opens = || {
            let cache = Arc::clone(&table_files.cache);
            Table::open(&table_files.files(), table.file(), cache, None).map(drop)
        };
        for byte in (at.offset..at.offset + at.len).step_by(7) {
            table_files.disk.flip_bit(table.path(), byte, 3);
            let error = opens().expect_err("its checksum does not match");
            assert!(error.to_string().contains("dictionary"), "{error}");
            let damaged = table.verify().expect_err("it is damaged");
            assert!(damaged.tells_of_damage(), "{damaged}");
            table_files.disk.flip_bit(table.path(), byte, 3);
        }
        opens().expect("it is as it was");
    }

    #[test]
    fn a_dictionary_that_claims_too_much_or_is_none_is_refused() {
        let list = rows(100);
        let table_files = TableFiles::new(0);
        let with = TableOptions { dictionary: Some(trained(&rows(1000))), ..zstd() };
        let table = table_files.table(&list, &with);
        let bytes = table_files.disk.file(table.path()).unwrap();
        let opens = |change: &dyn Fn(&mut Vec<u8>, &mut Section)| {
            let mut wrong = bytes.clone();
            let list_len = encode_footer(&table.sections, VERSION).len();
            wrong.truncate(wrong.len() - list_len);
            let mut sections = table.sections.clone();
            let at = sections.iter_mut().find(|section| section.tag == TAG_DICTIONARY);
            let at = at.expect("it has one");
            change(&mut wrong, at);
            let range = at.offset as usize..(at.offset + at.len) as usize;
            at.checksum = wrong.get(range).map_or(0, crc32c::crc32c);
            wrong.extend_from_slice(&encode_footer(&sections, VERSION));
            table_files.disk.put_file(table.path(), wrong);
            let cache = Arc::clone(&table_files.cache);
            Table::open(&table_files.files(), table.file(), cache, None)
        };
        let reads = |opened: Result<Arc<Table>>| {
            opened.and_then(|table| table.block_past_cache(0, &mut Reads::default()))
        };
        assert!(reads(opens(&|_, _| ())).is_ok());
        // Another valid dictionary lacks what the blocks refer to.
        let other = opens(&|wrong, at| {
            let end = (at.offset + at.len) as usize;
            wrong[end - 1500..end].fill(b'~');
        });
        assert!(reads(other).is_err_and(|error| error.tells_of_damage()));
        let malformed = opens(&|wrong, at| wrong[at.offset as usize + 8..][..40].fill(0xff));
        let error = malformed.map(drop).expect_err("its tables are none");
        assert!(error.to_string().contains("that is none"), "{error}");
        let long = opens(&|wrong, at| {
            wrong.resize(wrong.len() + DICTIONARY_BYTES_MAX, 0);
            at.len = DICTIONARY_BYTES_MAX as u64 + 1;
        });
        let error = long.map(drop).expect_err("it is too long");
        assert!(error.to_string().contains("longer than any"), "{error}");
        let missing = opens(&|_, at| at.tag = 0x2000);
        let error = missing.map(drop).expect_err("it must not be skipped");
        assert!(error.tells_of_damage(), "{error}");
    }
}
