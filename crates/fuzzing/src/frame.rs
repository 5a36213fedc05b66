//! Files of a store made by hand, after `docs/format.md` alone; and files whose checksums are put
//! right again.
//! ```text
//! parts  --make-->  file              damaged file  --mend-->  the same with right checksums,
//!     wherever there is a place
//! ```
//! Invariant: nothing here asks the store's own code. A checksum would stop a fuzzer at the door;
//! behind it are the decoders. Mending changes checksums alone, and so leaves damage to all else
//! for the decoders to find.

use trommel_filters::{Reader, Writer};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The header of a log.
pub(crate) const LOG_HEADER: &[u8] = b"TRMLWAL\0\x05\0\0\0";
/// The header of a manifest.
pub(crate) const MANIFEST_HEADER: &[u8] = b"TROMMELM\x08\0\0\0";
/// The length of both.
pub(crate) const HEADER_BYTES: usize = 12;

const RECORD_MAGIC: &[u8] = b"tRec";
const RECORD_HEAD_BYTES: usize = 16;
const TABLE_MAGIC: &[u8] = b"TRMLTBL\0";
const TAIL_BYTES: usize = 24;
const IMAGE_SEED: u64 = 0x7472_6f6d_6d65_6c03;
const CHECKSUM_BYTES: usize = 4;

/// The section of a table with its blocks.
pub(crate) const TAG_INDEX: u16 = 1;
/// The section of a table with what it knows of its entries.
pub(crate) const TAG_PROPERTIES: u16 = 2;
/// The section of a table with the ranges that it deletes.
const TAG_TOMBSTONES: u16 = 4;
/// The section of a table with what its blocks are packed with.
pub(crate) const TAG_DICTIONARY: u16 = 5;
/// The section of a table with a blocked Bloom filter.
pub(crate) const TAG_BLOOM: u16 = 0x101;

/// A file of records.
pub(crate) fn records_file(header: &[u8], salt: u64, payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut file = header.to_vec();
    for payload in payloads {
        let at = file.len();
        file.extend_from_slice(RECORD_MAGIC);
        file.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        file.extend_from_slice(&[0; 8]);
        file.extend_from_slice(payload);
        mend_record(&mut file, at, salt);
    }
    file
}

/// Puts right the checksums of the record at `at`. None: its head or its payload does not lie in
/// the file. Else its end.
fn mend_record(file: &mut [u8], at: usize, salt: u64) -> Option<usize> {
    let head = file.get(at..at + RECORD_HEAD_BYTES)?;
    let len = u32::from_le_bytes(head[4..8].try_into().expect("four bytes"));
    let payload_at = at + RECORD_HEAD_BYTES;
    let end = payload_at.checked_add(len as usize)?;
    let sum = crc32c::crc32c(file.get(payload_at..end)?);
    file[at + 8..at + 12].copy_from_slice(&sum.to_le_bytes());
    let head_sum = crc32c::crc32c(&salt.to_le_bytes());
    let head_sum = crc32c::crc32c_append(head_sum, &(at as u64).to_le_bytes());
    let head_sum = crc32c::crc32c_append(head_sum, &file[at..at + 12]);
    file[at + 12..at + 16].copy_from_slice(&head_sum.to_le_bytes());
    Some(end)
}

/// Mends every record that has its magic number and lies in the file: one behind the other, and
/// behind what is none.
pub(crate) fn mend_records(file: &mut [u8], salt: u64) {
    let mut at = HEADER_BYTES;
    while at < file.len() {
        let is_record = file[at..].starts_with(RECORD_MAGIC);
        at = is_record.then(|| mend_record(file, at, salt)).flatten().unwrap_or(at + 1);
    }
}

/// The payload of every record behind the header, if the file is made of whole records alone.
pub(crate) fn payloads(file: &[u8], salt: u64) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    let mut at = HEADER_BYTES;
    while at < file.len() {
        let mut right = file.to_vec();
        let end = file[at..].starts_with(RECORD_MAGIC).then(|| mend_record(&mut right, at, salt));
        let end = end.flatten().filter(|_| right == file)?;
        found.push(&file[at + RECORD_HEAD_BYTES..end]);
        at = end;
    }
    Some(found)
}

const VALUES_HEADER_BYTES: usize = 28;
const VALUE_HEAD_BYTES: usize = 16;
const VALUE_CHUNK_BYTES: u64 = 64 << 10;
/// What a packed chunk has before its body: its form, and how long the body is.
const PACKED_LEAD_BYTES: usize = 1 + 4;

/// Puts right the checksums of the value file with this number: of the header, and of each record
/// that has its magic number, one behind the other, as far as they lie in the file.
pub(crate) fn mend_values(file: &mut [u8], number: u64) {
    let Some(header) = file.get(..VALUES_HEADER_BYTES - CHECKSUM_BYTES) else { return };
    let sum = crc32c::crc32c(header).to_le_bytes();
    let Some(room) = file.get_mut(VALUES_HEADER_BYTES - CHECKSUM_BYTES..VALUES_HEADER_BYTES) else {
        return;
    };
    room.copy_from_slice(&sum);
    let mut at = VALUES_HEADER_BYTES;
    while let Some(end) = mend_value(file, number, at) {
        at = end;
    }
}

/// The record that begins at `at`. None: there is none, or it does not lie in the file. Else its
/// end.
fn mend_value(file: &mut [u8], number: u64, at: usize) -> Option<usize> {
    let is_packed = match file.get(at..at + 4)? {
        b"tVal" => false,
        b"tPak" => true,
        _ => return None,
    };
    let len = u64::from_le_bytes(*file.get(at + 4..)?.first_chunk()?);
    let mut end = mend_sum(file, number, at, VALUE_HEAD_BYTES - CHECKSUM_BYTES)?;
    let chunks = len.div_ceil(VALUE_CHUNK_BYTES);
    for chunk in 0..chunks {
        let bytes = match is_packed {
            true => {
                let len = *file.get(end + 1..)?.first_chunk()?;
                PACKED_LEAD_BYTES.checked_add(u32::from_le_bytes(len) as usize)?
            }
            false => (len - chunk * VALUE_CHUNK_BYTES).min(VALUE_CHUNK_BYTES) as usize,
        };
        end = mend_sum(file, number, end, bytes)?;
    }
    if is_packed && chunks > 1 {
        end = mend_sum(file, number, end, usize::try_from(chunks).ok()?.checked_mul(4)?)?;
    }
    Some(end)
}

/// Puts right the checksum behind so many bytes at a place; gives the end of both.
fn mend_sum(file: &mut [u8], number: u64, at: usize, bytes: usize) -> Option<usize> {
    let sum_at = at.checked_add(bytes)?;
    let sum = block_sum(number, at, file.get(at..sum_at)?).to_le_bytes();
    file.get_mut(sum_at..sum_at + CHECKSUM_BYTES)?.copy_from_slice(&sum);
    Some(sum_at + CHECKSUM_BYTES)
}

/// The number of a table's file where there is one alone.
pub(crate) const TABLE: u64 = 1;

/// The checksum of a block that begins at `offset` of this file.
fn block_sum(file: u64, offset: usize, bytes: &[u8]) -> u32 {
    let place = (offset as u64).wrapping_add(file.wrapping_mul(0xd6e8_feb8_6659_fd93));
    crc32c::crc32c(bytes) ^ (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// A block as it is on disk, the first one of the table. `compression`: 0 none, 1 LZ4, 2 Zstandard,
/// 3 with the dictionary; `body` is so.
pub(crate) fn sealed(body: &[u8], compression: u8) -> Vec<u8> {
    let mut block = body.to_vec();
    block.push(compression);
    let sum = block_sum(TABLE, 0, &block);
    block.extend_from_slice(&sum.to_le_bytes());
    block
}

/// What the manifest and the properties say of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) sequences: (u64, u64),
    pub(crate) first_key: Vec<u8>,
    pub(crate) last_key: Vec<u8>,
    /// The first key that the table deletes, and the one behind the last, if it deletes ranges.
    pub(crate) deleted: Option<(Vec<u8>, Vec<u8>)>,
}

/// A table of one block and no filter.
pub(crate) fn table_of_block(block: &[u8], about: &About) -> Vec<u8> {
    table(block, &sections_of_block(block, about))
}

/// What such a table has beside its block.
pub(crate) fn sections_of_block(block: &[u8], about: &About) -> Vec<(u16, Vec<u8>)> {
    let mut index = Writer::new();
    for number in [1, block.len() as u64, about.entries, 0, 0, 0] {
        index.varint(number);
    }
    let mut properties = Writer::new();
    let (least, greatest) = about.sequences;
    for number in [TABLE, about.entries, about.deletes, about.raw_bytes, least, greatest] {
        properties.varint(number);
    }
    properties.string(&about.first_key);
    properties.string(&about.last_key);
    vec![(TAG_INDEX, index.finish()), (TAG_PROPERTIES, properties.finish())]
}

/// A table of data blocks, which are given as one piece, and sections.
pub(crate) fn table(blocks: &[u8], sections: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut file = Writer::new();
    file.bytes(blocks);
    let mut list = Writer::new();
    list.u16(sections.len() as u16);
    for (tag, bytes) in sections {
        list.u16(*tag);
        list.u8(u8::from(*tag >= TAG_BLOOM));
        list.u64(file.len() as u64);
        list.u64(bytes.len() as u64);
        list.u32(0);
        file.bytes(bytes);
    }
    file.bytes(list.as_slice());
    file.u32(list.len() as u32);
    file.u32(0);
    let has_dictionary = sections.iter().any(|(tag, _)| *tag == TAG_DICTIONARY);
    file.u32(if has_dictionary { 3 } else { 2 });
    file.u32(0);
    file.bytes(TABLE_MAGIC);
    let mut file = file.finish();
    mend_table(&mut file, TABLE);
    file
}

/// A section, and where its checksum is.
struct Section {
    tag: u16,
    bytes: std::ops::Range<usize>,
    checksum_at: usize,
}

/// The sections that lie in the file.
fn sections(file: &[u8]) -> Vec<Section> {
    let Some(tail_at) = file.len().checked_sub(TAIL_BYTES) else { return Vec::new() };
    let len = u32::from_le_bytes(file[tail_at..tail_at + 4].try_into().expect("four bytes"));
    let Some(list_at) = tail_at.checked_sub(len as usize) else { return Vec::new() };
    let mut input = Reader::new(&file[list_at..tail_at]);
    let mut found = Vec::new();
    let count = input.u16().unwrap_or(0);
    for _ in 0..count {
        let (Ok(tag), Ok(_), Ok(offset), Ok(len)) =
            (input.u16(), input.u8(), input.u64(), input.u64())
        else {
            break;
        };
        let checksum_at = list_at + input.at();
        if input.u32().is_err() {
            break;
        }
        let end = offset.checked_add(len).filter(|&end| end <= list_at as u64);
        if let Some(end) = end {
            found.push(Section { tag, bytes: offset as usize..end as usize, checksum_at });
        }
    }
    found
}

/// Puts right the checksums of the table with this number: blocks, sections, list, tail; as far as
/// each can be found.
pub(crate) fn mend_table(file: &mut [u8], number: u64) {
    let found = sections(file);
    if let Some(index) = found.iter().find(|section| section.tag == TAG_INDEX) {
        mend_blocks(file, number, index.bytes.clone());
    }
    for Section { bytes, checksum_at, .. } in found {
        let sum = crc32c::crc32c(&file[bytes]).to_le_bytes();
        file[checksum_at..checksum_at + CHECKSUM_BYTES].copy_from_slice(&sum);
    }
    let Some(tail_at) = file.len().checked_sub(TAIL_BYTES) else { return };
    let len = u32::from_le_bytes(file[tail_at..tail_at + 4].try_into().expect("four bytes"));
    if let Some(list_at) = tail_at.checked_sub(len as usize) {
        let sum = crc32c::crc32c(&file[list_at..tail_at]).to_le_bytes();
        file[tail_at + 4..tail_at + 8].copy_from_slice(&sum);
    }
    let sum = crc32c::crc32c(&file[tail_at..tail_at + 12]).to_le_bytes();
    file[tail_at + 12..tail_at + 16].copy_from_slice(&sum);
}

fn mend_blocks(file: &mut [u8], number: u64, index: std::ops::Range<usize>) {
    let bytes = file[index].to_vec();
    let mut input = Reader::new(&bytes);
    let count = input.varint().unwrap_or(0);
    let mut at = 0usize;
    for _ in 0..count {
        let (Ok(len), Ok(_), Ok(_), Ok(_), Ok(_)) =
            (input.len(), input.varint(), input.u8(), input.varint(), input.string())
        else {
            return;
        };
        let Some(end) = at.checked_add(len).filter(|&end| end <= file.len()) else { return };
        if let Some(sum_at) = len.checked_sub(CHECKSUM_BYTES).map(|body| at + body) {
            let sum = block_sum(number, at, &file[at..sum_at]).to_le_bytes();
            file[sum_at..end].copy_from_slice(&sum);
        }
        at = end;
    }
}

/// What a table's properties say, for a manifest that fits. None: they do not decode.
pub(crate) fn about(file: &[u8]) -> Option<About> {
    let found = sections(file);
    let section = found.iter().find(|section| section.tag == TAG_PROPERTIES)?;
    let mut input = Reader::new(&file[section.bytes.clone()]);
    let mut number = || input.varint().ok();
    let (_, entries, deletes, raw_bytes) = (number()?, number()?, number()?, number()?);
    let sequences = (number()?, number()?);
    let first_key = input.string().ok()?.to_vec();
    let last_key = input.string().ok()?.to_vec();
    let deleted = found.iter().find(|section| section.tag == TAG_TOMBSTONES);
    let deleted = deleted.and_then(|section| deleted_bounds(&file[section.bytes.clone()]));
    Some(About { entries, deletes, raw_bytes, sequences, first_key, last_key, deleted })
}

/// The first and the last bound of deleted ranges. None: there are none, or they do not decode.
fn deleted_bounds(bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut input = Reader::new(bytes);
    let mut bounds: Option<(Vec<u8>, Vec<u8>)> = None;
    for _ in 0..input.varint().ok()? {
        let bound = input.string().ok()?.to_vec();
        for _ in 0..input.varint().ok()? {
            input.varint().ok()?;
        }
        let first = bounds.map_or_else(|| bound.clone(), |(first, _)| first);
        bounds = Some((first, bound));
    }
    bounds
}

/// The first block of a table: its compression and its bytes. None: it is not where the index says.
pub(crate) fn first_block(file: &[u8]) -> Option<(u8, Vec<u8>)> {
    let found = sections(file);
    let index = found.iter().find(|section| section.tag == TAG_INDEX)?;
    let mut input = Reader::new(&file[index.bytes.clone()]);
    let len = input.len().and_then(|_| input.len()).ok()?;
    let (body, [form]) = file.get(..len.checked_sub(CHECKSUM_BYTES)?)?.split_last_chunk::<1>()?;
    Some((*form, body.to_vec()))
}

/// Puts right the checksum at the end of a filter's image.
pub(crate) fn mend_image(file: &mut [u8]) {
    if let Some(body) = file.len().checked_sub(size_of::<u64>()) {
        let sum = xxh3_64_with_seed(&file[..body], IMAGE_SEED).to_le_bytes();
        file[body..].copy_from_slice(&sum);
    }
}

/// A change of the tree, as fields of the manifest.
#[derive(Default)]
pub(crate) struct EditBytes(Writer);

impl EditBytes {
    /// A field whose value is numbers.
    pub(crate) fn numbers(mut self, tag: u8, numbers: &[u64]) -> Self {
        self.0.u8(tag);
        numbers.iter().for_each(|&number| self.0.varint(number));
        self
    }

    /// A table that joins the tree: file, run, level, span.
    pub(crate) fn table(self, numbers: [u64; 5], about: &About, bytes: usize) -> Self {
        let mut edit = self.numbers(2, &numbers);
        // Not trimmed: none is left out before the first, and all of the file belong to the tree.
        for number in [0, 0, about.entries, about.entries, bytes as u64] {
            edit.0.varint(number);
        }
        let (mut from, mut to) = (about.first_key.clone(), [&about.last_key[..], &[0]].concat());
        if let Some((begin, end)) = &about.deleted {
            from = from.min(begin.clone());
            to = if about.entries == 0 { end.clone() } else { to.max(end.clone()) };
        }
        edit.0.string(&from);
        edit.0.string(&to);
        edit
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

/// The fields of a tree whose flushes 0 to `flushes` are on record, one write each.
pub(crate) fn tree(live_wal: u64, next_file: u64, flushes: u64, last_sequence: u64) -> EditBytes {
    let edit = EditBytes::default()
        .numbers(5, &[live_wal])
        .numbers(6, &[next_file])
        .numbers(7, &[flushes])
        .numbers(8, &[last_sequence]);
    (0..flushes).fold(edit, |edit, flush| edit.numbers(3, &[flush, flush]))
}

/// A manifest of these edits.
pub(crate) fn manifest(edits: &[Vec<u8>]) -> Vec<u8> {
    records_file(MANIFEST_HEADER, 0, edits)
}
