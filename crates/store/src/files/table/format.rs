//! The encoding of a table's file beside its data blocks.
//! ```text
//! file       data blocks | filter | deleted ranges | dictionary | index | properties |
//!     section list | tail
//! list       count u16 | (tag u16, flags u8, offset u64, length u64, checksum u32) ...
//! tail       list length u32 | list checksum u32 | version u32 | tail checksum u32 | magic u64
//! index      block count | (length, entry count, flags, shared, rest of the separator) ...
//! properties file | entries | deletes | raw bytes | least, greatest sequence | first key |
//!     last key
//! ```
//! Invariant: the tail has the same size, checksum and magic in every version. So another version
//! is distinguished from damage. A section with an unknown tag is skipped if it is marked optional.

use trommel_filters::{Corrupt, FilterKind, Reader, Writer};

use crate::entries::block::BLOCK_BYTES_MAX;
use crate::entries::checksum;
use crate::entries::compression::RATIO_MAX;
use crate::entries::entry::{Entry, KEY_BYTES_MAX, Kind, NUMBER_MAX, Sequence};
use crate::entries::keys::common_prefix;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::tombstones::RangeTombstones;
use crate::files::fences::Fences;
use crate::plan::registry::FILTER_TAGS;

type Result<T> = std::result::Result<T, Corrupt>;

/// The newest version of the format. A table has the lowest version that suffices.
pub(crate) const VERSION: u32 = 3;
/// The version without blocks that are compressed with Zstandard.
pub(crate) const VERSION_WITHOUT_ZSTD: u32 = 2;
/// The readable versions.
pub(crate) const VERSIONS: std::ops::RangeInclusive<u32> = VERSION_WITHOUT_ZSTD..=VERSION;
const MAGIC: u64 = u64::from_le_bytes(*b"TRMLTBL\0");

pub(crate) const TAG_INDEX: u16 = 1;
pub(crate) const TAG_PROPERTIES: u16 = 2;
/// A hash of each user key, from which a filter of the whole tree can be rebuilt.
pub(crate) const TAG_HASHES: u16 = 3;
/// Range tombstones.
pub(crate) const TAG_TOMBSTONES: u16 = 4;
/// The dictionary that blocks are compressed with.
pub(crate) const TAG_DICTIONARY: u16 = 5;
/// Value files, and how many of their bytes the table's entries refer to.
pub(crate) const TAG_VALUES: u16 = 6;
/// The tags of the sections that opening a table reads, where they exist.
pub(crate) const TAGS_READ: [u16; 5] =
    [TAG_INDEX, TAG_PROPERTIES, TAG_TOMBSTONES, TAG_DICTIONARY, TAG_VALUES];
/// The tables that a merge made this one of, if it may have operands. Optional; repairs read it.
pub(crate) const TAG_MADE_OF: u16 = 7;
/// The tag of a filter's section is this plus the tag of its kind. A kind without a tag has just
/// this one, and its name before the filter's bytes.
pub(crate) const TAG_FILTERS: u16 = 0x100;
const _: () = assert!(*FILTER_TAGS.start() > 0 && *FILTER_TAGS.end() == u16::MAX - TAG_FILTERS);

/// Returns the tag of the section for this kind of filter.
pub(crate) fn filter_tag(kind: &dyn FilterKind) -> u16 {
    TAG_FILTERS + kind.tag().unwrap_or(0)
}

/// Returns what precedes a filter's bytes in its section: nothing, or the name of a kind without a
/// tag.
pub(crate) fn filter_head(kind: &dyn FilterKind) -> Vec<u8> {
    match kind.tag() {
        Some(_) => Vec::new(),
        None => {
            let name = kind.name().as_bytes();
            let len = u8::try_from(name.len()).expect("names are short");
            [&[len], name].concat()
        }
    }
}

/// The maximum length of what precedes a filter's bytes.
pub(crate) const FILTER_HEAD_BYTES_MAX: usize = 1 + u8::MAX as usize;

/// Decodes the name that precedes a filter's bytes.
pub(crate) fn decode_filter_name(head: &[u8]) -> Result<&str> {
    let wrong = Corrupt { at: 0, what: "the name of a filter" };
    let (&len, rest) = head.split_first().ok_or(wrong.clone())?;
    let name = rest.get(..usize::from(len)).filter(|name| !name.is_empty());
    name.and_then(|name| std::str::from_utf8(name).ok()).ok_or(wrong)
}

/// Whether a section with this tag is a filter.
pub(crate) fn is_filter_tag(tag: u16) -> bool {
    tag >= TAG_FILTERS
}

/// Returns the name of a section.
pub(crate) fn section_name(tag: u16) -> &'static str {
    match tag {
        TAG_INDEX => "index",
        TAG_PROPERTIES => "properties",
        TAG_HASHES => "hashes of keys",
        TAG_TOMBSTONES => "deleted ranges",
        TAG_DICTIONARY => "dictionary",
        TAG_VALUES => "value files",
        TAG_MADE_OF => "tables that it was made of",
        _ if is_filter_tag(tag) => "filter",
        _ => "section of an unknown kind",
    }
}

const LIST_LEN_AT: usize = 0;
const LIST_CHECKSUM_AT: usize = LIST_LEN_AT + size_of::<u32>();
const VERSION_AT: usize = LIST_CHECKSUM_AT + size_of::<u32>();
const TAIL_CHECKSUM_AT: usize = VERSION_AT + size_of::<u32>();
const MAGIC_AT: usize = TAIL_CHECKSUM_AT + size_of::<u32>();
pub(crate) const TAIL_SIZE: usize = MAGIC_AT + size_of::<u64>();
const _: () = assert!(TAIL_SIZE == 24);

const FLAG_OPTIONAL: u8 = 1;

/// Bytes of a section's entry in the list.
const SECTION_SIZE: usize = 2 * size_of::<u64>() + size_of::<u32>() + size_of::<u16>() + 1;
/// The maximum length of the list, whose count has 16 bits.
pub(crate) const LIST_LEN_MAX: u64 = (size_of::<u16>() + u16::MAX as usize * SECTION_SIZE) as u64;

/// A part of the file, with its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) tag: u16,
    /// Whether a reader that does not know the tag may skip it.
    pub(crate) optional: bool,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) checksum: u32,
}

/// Encodes the list of sections and the tail.
pub(crate) fn encode_footer(sections: &[Section], version: u32) -> Vec<u8> {
    let mut out = Writer::new();
    out.u16(sections.len() as u16);
    for section in sections {
        out.u16(section.tag);
        out.u8(if section.optional { FLAG_OPTIONAL } else { 0 });
        out.u64(section.offset);
        out.u64(section.len);
        out.u32(section.checksum);
    }
    let (list_len, list_checksum) = (out.len() as u32, checksum::crc32c(out.as_slice()));
    let tail_start = out.len();
    out.u32(list_len);
    out.u32(list_checksum);
    out.u32(version);
    out.u32(checksum::crc32c(&out.as_slice()[tail_start..]));
    out.u64(MAGIC);
    out.finish()
}

/// The end of the file, of fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) list_len: u32,
    pub(crate) list_checksum: u32,
    pub(crate) version: u32,
}

pub(crate) fn decode_tail(bytes: &[u8]) -> Result<Tail> {
    let mut input = Reader::new(bytes);
    let (list_len, list_checksum) = (input.u32()?, input.u32()?);
    let (version, checksum) = (input.u32()?, input.u32()?);
    if input.u64()? != MAGIC {
        return Err(Corrupt { at: MAGIC_AT, what: "the magic number of a table" });
    }
    input.end()?;
    if checksum != checksum::crc32c(&bytes[..TAIL_CHECKSUM_AT]) {
        return Err(Corrupt { at: TAIL_CHECKSUM_AT, what: "the tail's checksum does not match" });
    }
    Ok(Tail { list_len, list_checksum, version })
}

/// Decodes the sections, which all lie before `end`.
pub(crate) fn decode_sections(bytes: &[u8], tail: Tail, end: u64) -> Result<Vec<Section>> {
    if checksum::crc32c(bytes) != tail.list_checksum {
        return Err(Corrupt { at: 0, what: "the section list's checksum does not match" });
    }
    let mut input = Reader::new(bytes);
    let count = input.u16()?;
    let sections = (0..count).map(|_| {
        let at = input.at();
        let (tag, flags) = (input.u16()?, input.u8()?);
        let (offset, len, checksum) = (input.u64()?, input.u64()?, input.u32()?);
        if offset.checked_add(len).is_none_or(|section_end| section_end > end) {
            return Err(Corrupt { at, what: "a section beyond the sections' end" });
        }
        Ok(Section { tag, optional: flags & FLAG_OPTIONAL != 0, offset, len, checksum })
    });
    let sections = sections.collect::<Result<_>>()?;
    input.end()?;
    Ok(sections)
}

/// A summary of a table's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Properties {
    /// The number of its file. A table under another name is refused.
    pub(crate) file: u64,
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    /// Total bytes of keys and values.
    pub(crate) raw_bytes: u64,
    /// The least and the greatest sequence number, range tombstones included.
    pub(crate) sequences: (Sequence, Sequence),
    /// The first and last key of the entries. Without entries, both are the first key that a range
    /// deletes.
    pub(crate) first_key: Vec<u8>,
    pub(crate) last_key: Vec<u8>,
    /// The key space of the table, which a repair without a manifest needs.
    pub(crate) keyspace: KeyspaceId,
}

impl Properties {
    /// The properties of a table that is still empty.
    pub(crate) fn of_file(file: u64, keyspace: KeyspaceId) -> Properties {
        Properties {
            file,
            keyspace,
            entries: 0,
            deletes: 0,
            raw_bytes: 0,
            sequences: (Sequence::MAX, Sequence(0)),
            first_key: Vec::new(),
            last_key: Vec::new(),
        }
    }

    /// Counts an entry. The caller notes its key.
    #[inline]
    pub(crate) fn count(&mut self, entry: &Entry<'_>) {
        self.entries += 1;
        self.deletes += u64::from(entry.kind == Kind::Delete);
        self.raw_bytes += (entry.key.len() + entry.value.len()) as u64;
        let (least, greatest) = self.sequences;
        self.sequences = (least.min(entry.sequence), greatest.max(entry.sequence));
    }

    /// Includes range tombstones. Requires: all entries were counted.
    pub(crate) fn count_tombstones(&mut self, tombstones: &RangeTombstones) {
        let (Some(sequences), Some(begin)) = (tombstones.sequences(), tombstones.begin()) else {
            return;
        };
        if self.entries == 0 {
            (self.first_key, self.last_key) = (begin.to_vec(), begin.to_vec());
        }
        let (least, greatest) = self.sequences;
        self.sequences = (least.min(sequences.0), greatest.max(sequences.1));
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        let (least, greatest) = self.sequences;
        let counts = [self.entries, self.deletes, self.raw_bytes];
        for number in [self.file].into_iter().chain(counts).chain([least.0, greatest.0]) {
            out.varint(number);
        }
        out.string(&self.first_key);
        out.string(&self.last_key);
        if self.keyspace != KeyspaceId::DEFAULT {
            out.varint(u64::from(self.keyspace.0));
        }
        out.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Properties> {
        let mut input = Reader::new(bytes);
        let file = input.varint()?;
        let (entries, deletes, raw_bytes) = (input.varint()?, input.varint()?, input.varint()?);
        let sequences = (Sequence(input.varint()?), Sequence(input.varint()?));
        let (first_key, last_key) = (input.string()?.to_vec(), input.string()?.to_vec());
        let keyspace = if input.left() > 0 { input.varint()? } else { 0 };
        let keyspace = u32::try_from(keyspace).map_err(|_| input.corrupt("a key space"))?;
        let keyspace = KeyspaceId(keyspace);
        input.end()?;
        let in_order = sequences.0 <= sequences.1 && first_key <= last_key;
        let is_believed = sequences.1.0 <= NUMBER_MAX;
        if deletes > entries || !in_order || !is_believed {
            return Err(Corrupt { at: 0, what: "properties that no table has" });
        }
        Ok(Properties {
            file,
            entries,
            deletes,
            raw_bytes,
            sequences,
            first_key,
            last_key,
            keyspace,
        })
    }
}

const FLAG_CONTINUED: u8 = 1;

/// Builds the index of a table's blocks.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    out: Writer,
    block_count: u64,
    last_separator: Vec<u8>,
}

impl IndexBuilder {
    /// Adds the next block. `separator` is empty for the first block. `continued`: its first key is
    /// the separator and the last key of the previous block.
    pub(crate) fn add(&mut self, len: u64, entries: u64, separator: &[u8], continued: bool) {
        self.out.varint(len);
        self.out.varint(entries);
        self.out.u8(if continued { FLAG_CONTINUED } else { 0 });
        let shared = common_prefix(&self.last_separator, separator);
        self.out.varint(shared as u64);
        self.out.string(&separator[shared..]);
        self.last_separator.clear();
        self.last_separator.extend_from_slice(separator);
        self.block_count += 1;
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        let mut out = Writer::new();
        out.varint(self.block_count);
        out.bytes(self.out.as_slice());
        out.finish()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.out.len()
    }
}

/// Encodes the section of hashes, eight bytes for each user key.
pub(crate) fn encode_hashes(hashes: &[u8]) -> Vec<u8> {
    let mut out = Writer::new();
    out.u64((hashes.len() / size_of::<u64>()) as u64);
    out.bytes(hashes);
    out.finish()
}

/// Decodes the hashes of a table with `entries` entries.
pub(crate) fn decode_hashes(bytes: &[u8], entries: u64) -> Result<Vec<u64>> {
    let mut input = Reader::new(bytes);
    let keys = input.u64()?;
    let (words, rest) = bytes[input.at()..].as_chunks::<{ size_of::<u64>() }>();
    let is_whole = rest.is_empty() && words.len() as u64 == keys;
    if !is_whole || keys > entries || (keys == 0) != (entries == 0) {
        return Err(Corrupt { at: 0, what: "as many hashes as the table has keys" });
    }
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Separators of this length are believed, whatever is stored of their blocks.
const SEPARATOR_BYTES_UNASKED: u64 = 8 << 20;

/// The index: which keys each block has, and where it lies.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) fences: Fences,
    /// The offset of each block, and the end of the last one.
    offsets: Vec<u64>,
    /// The number of entries before each block, and of all.
    ranks: Vec<u64>,
}

impl Index {
    /// Decodes the index. Fails unless separators ascend, blocks end by `data_end_max`, and each
    /// block is long enough for its entries and its separator. If separators are long, asks for the
    /// bytes of blocks that are stored: a file may claim any length with holes.
    pub(crate) fn decode(
        bytes: &[u8],
        data_end_max: u64,
        stored_bytes: impl FnOnce() -> u64,
    ) -> Result<Index> {
        let mut input = Reader::new(bytes);
        let block_count = input.len()?;
        // A block takes at least five bytes, so a greater count is false and allocates nothing.
        if block_count > input.left() / 5 || block_count > u32::MAX as usize {
            return Err(input.corrupt("a block count that cannot be"));
        }
        let (mut offsets, mut ranks) = (vec![0], vec![0]);
        offsets.reserve_exact(block_count);
        ranks.reserve_exact(block_count);
        let (mut separators, mut ends) = (Vec::new(), Vec::with_capacity(block_count));
        let (mut continued, mut stored_bytes) = (Vec::new(), Some(stored_bytes));
        let mut separator_bytes_max = SEPARATOR_BYTES_UNASKED;
        for block in 0..block_count {
            let len = add_to(&mut offsets, &mut input)?;
            if offsets[offsets.len() - 1] > data_end_max {
                return Err(input.corrupt("blocks that reach into the sections"));
            }
            if len > BLOCK_BYTES_MAX {
                return Err(input.corrupt("a block longer than any"));
            }
            let room = len.saturating_mul(RATIO_MAX as u64);
            if add_to(&mut ranks, &mut input)? > room {
                return Err(input.corrupt("more entries than a block of this length can have"));
            }
            if input.u8()? & FLAG_CONTINUED != 0 {
                continued.push(block as u32);
            }
            let shared = input.len()?;
            let start = ends.last().copied().unwrap_or(0);
            let before = ends.len().checked_sub(2).map_or(0, |at| ends[at]);
            if shared > start - before {
                return Err(input.corrupt("a separator that shares more than there is"));
            }
            separators.extend_from_within(before..before + shared);
            let rest = input.string()?;
            // It is at most slightly longer than the block's first key. Without this check, shared
            // bytes would claim memory for nothing.
            if shared + rest.len() > KEY_BYTES_MAX || (shared + rest.len()) as u64 > room {
                return Err(input.corrupt("a separator that the block has no room for"));
            }
            separators.extend_from_slice(rest);
            if separators.len() as u64 > separator_bytes_max {
                let stored = stored_bytes.take().map_or(0, |stored| stored());
                separator_bytes_max =
                    separator_bytes_max.max(stored.saturating_mul(RATIO_MAX as u64));
                if separators.len() as u64 > separator_bytes_max {
                    return Err(input.corrupt("separators of blocks that were never written"));
                }
            }
            ends.push(separators.len());
        }
        input.end()?;
        let views: Vec<_> = ends.windows(2).map(|pair| &separators[pair[0]..pair[1]]).collect();
        let wrong = Corrupt { at: 0, what: "separators in order" };
        if ends.first().is_some_and(|&end| end != 0) || continued.first() == Some(&0) {
            return Err(wrong);
        }
        continued.shrink_to_fit();
        let fences = Fences::new(&views, continued).ok_or(wrong)?;
        Ok(Index { fences, offsets, ranks })
    }

    pub(crate) fn block_count(&self) -> usize {
        self.ranks.len() - 1
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.ranks[self.block_count()]
    }

    /// Returns offset and length of a block. Requires: the block exists.
    #[inline]
    pub(crate) fn block(&self, block: usize) -> (u64, u64) {
        (self.offsets[block], self.offsets[block + 1] - self.offsets[block])
    }

    /// Returns the number of entries before a block, and in it. Requires: the block exists.
    pub(crate) fn entries(&self, block: usize) -> (u64, u64) {
        (self.ranks[block], self.ranks[block + 1] - self.ranks[block])
    }

    /// Returns the block of the entry with this rank, and the entry's rank within the block.
    pub(crate) fn block_of_rank(&self, rank: u64) -> (usize, u64) {
        // Every block has an entry, and the first block has rank 0.
        let block = self.ranks[..self.block_count()].partition_point(|&before| before <= rank) - 1;
        (block, rank - self.ranks[block])
    }

    /// The heap memory, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let numbers = self.offsets.capacity() + self.ranks.capacity();
        self.fences.heap_bytes() + numbers * size_of::<u64>()
    }
}

/// Appends the last sum plus the next number, which must not be 0. Returns the number.
fn add_to(sums: &mut Vec<u64>, input: &mut Reader<'_>) -> Result<u64> {
    let wrong = input.corrupt("a block's length or entry count that cannot be");
    let number = input.varint()?;
    let last = sums.last().copied().unwrap_or(0);
    let sum = last.checked_add(number).filter(|_| number > 0).ok_or(wrong)?;
    sums.push(sum);
    Ok(number)
}

/// Checks properties against range tombstones, as far as that is possible without the entries.
pub(super) fn check_tombstones(
    properties: &Properties,
    tombstones: &RangeTombstones,
) -> std::result::Result<(), &'static str> {
    let (least, greatest) = properties.sequences;
    let within = |(from, to)| least <= from && to <= greatest;
    let is_known = tombstones.sequences().is_none_or(within);
    let begin = tombstones.begin().filter(|_| properties.entries == 0);
    let is_first = begin.is_none_or(|begin| *begin == properties.first_key);
    match tombstones.begin() {
        None if properties.entries == 0 => Err("a table with nothing in it"),
        _ if is_known && is_first => Ok(()),
        _ => Err("properties that do not tell of the deleted ranges"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], data_end: u64) -> Result<Index> {
        Index::decode(bytes, data_end, || data_end)
    }

    #[test]
    fn the_footer_is_as_the_format_says() {
        let sections = [Section { tag: 0x101, optional: true, offset: 3, len: 4, checksum: 5 }];
        let bytes = encode_footer(&sections, VERSION);
        let list = [1, 0, 1, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0];
        assert_eq!(bytes[..25], list);
        assert_eq!(bytes[25..29], [25, 0, 0, 0]);
        assert_eq!(bytes[33..37], [3, 0, 0, 0]);
        assert_eq!(bytes[41..], *b"TRMLTBL\0");
        let tail = decode_tail(&bytes[25..]).unwrap();
        assert_eq!(tail.version, VERSION);
        assert_eq!(decode_sections(&bytes[..25], tail, 7).unwrap(), sections);
        assert!(decode_sections(&bytes[..25], tail, 6).is_err(), "beyond the end");
        for bit in 0..TAIL_SIZE * 8 {
            let mut bytes = bytes[25..].to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_tail(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn the_index_is_as_the_format_says() {
        let mut builder = IndexBuilder::default();
        builder.add(100, 3, b"", false);
        builder.add(200, 4, b"drum", false);
        builder.add(300, 5, b"drums", true);
        assert_eq!(builder.size_bytes(), 5 + 10 + 7);
        let bytes = builder.finish();
        let expected = [
            3, 100, 3, 0, 0, 0, // block 0
            0xc8, 1, 4, 0, 0, 4, b'd', b'r', b'u', b'm', // block 1
            0xac, 2, 5, 1, 4, 1, b's', // block 2
        ];
        assert_eq!(bytes, expected);
        let index = decode(&bytes, 600).unwrap();
        assert_eq!((index.block_count(), index.entry_count()), (3, 12));
        assert_eq!((index.block(2), index.entries(2)), ((300, 300), (7, 5)));
        assert_eq!((index.fences.find(b"drum"), index.fences.find(b"drumz")), (1, 2));
        assert!(index.fences.continues(2, b"drums"));
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len], 600).is_err(), "cut at {len}");
        }
        // A table with range tombstones and no entries.
        assert_eq!(decode(&[0], 600).unwrap().block_count(), 0);
        assert!(decode(&[1, 0, 1, 0, 0, 0], 600).is_err(), "a block of no bytes");
        assert!(decode(&[1, 9, 0, 0, 0, 0], 600).is_err(), "a block of no entries");
        assert!(decode(&[1, 9, 1, 1, 0, 0], 600).is_err(), "the first block continues none");
        assert!(decode(&[1, 9, 1, 0, 0, 1, b'x'], 600).is_err(), "a separator before all");
        let huge =
            [2, 9, 1, 0, 0, 0, 9, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0];
        assert!(decode(&huge, 600).is_err(), "a shared length of nearly 2^63");
    }

    #[test]
    fn an_index_whose_blocks_are_too_short_for_what_it_says_is_refused() {
        let one = |len: u8, entries: &[u8]| [&[1, len], entries, &[0, 0, 0]].concat();
        assert!(decode(&one(2, &[0xfe, 3]), 2).is_ok());
        assert!(decode(&one(2, &[0xff, 3]), 2).is_err(), "511 entries in 2 bytes");
        assert!(decode(&one(2, &[1]), 1).is_err(), "it reaches into the sections");
        // One long separator, then blocks of one byte that share all of it would claim memory for
        // nothing.
        let long = vec![b'k'; 600];
        let mut builder = IndexBuilder::default();
        builder.add(100, 3, b"", false);
        (0..4).for_each(|_| builder.add(100, 3, &long, true));
        assert!(decode(&builder.finish(), 500).is_ok());
        let mut builder = IndexBuilder::default();
        builder.add(100, 3, b"", false);
        builder.add(100, 3, &long, false);
        builder.add(1, 1, &long, true);
        assert!(decode(&builder.finish(), 500).is_err(), "a key of 600 bytes in one byte");
    }

    #[test]
    fn hashes_are_as_many_as_keys_or_none_is_believed() {
        let words = [7u64, 9, 11].map(u64::to_le_bytes).concat();
        let bytes = encode_hashes(&words);
        assert_eq!(decode_hashes(&bytes, 5), Ok(vec![7, 9, 11]));
        assert!(decode_hashes(&bytes, 2).is_err(), "more keys than entries");
        assert!((0..bytes.len()).all(|len| decode_hashes(&bytes[..len], 5).is_err()));
        let said = |keys: u64| [&keys.to_le_bytes()[..], &words].concat();
        assert!(decode_hashes(&said(2), 5).is_err(), "a hash too many");
        assert!(decode_hashes(&said(4), 5).is_err(), "a hash too few");
        assert!(decode_hashes(&encode_hashes(&[]), 5).is_err(), "entries of no key");
        assert_eq!(decode_hashes(&encode_hashes(&[]), 0), Ok(vec![]), "deleted ranges alone");
    }

    #[test]
    fn properties_are_as_the_format_says() {
        let properties = Properties {
            file: 6,
            entries: 300,
            deletes: 2,
            raw_bytes: 5,
            sequences: (Sequence(7), Sequence(9)),
            first_key: b"a".to_vec(),
            last_key: b"bc".to_vec(),
            keyspace: KeyspaceId::DEFAULT,
        };
        let bytes = properties.encode();
        assert_eq!(bytes, [6, 0xac, 2, 2, 5, 7, 9, 1, b'a', 2, b'b', b'c']);
        assert_eq!(Properties::decode(&bytes).unwrap(), properties);
        assert!((0..bytes.len()).all(|len| Properties::decode(&bytes[..len]).is_err()));
        assert!(
            Properties::decode(&[6, 1, 2, 0, 0, 0, 0, 0]).is_err(),
            "more deletes than entries"
        );
        let other = Properties { keyspace: KeyspaceId(300), ..properties.clone() };
        assert_eq!(other.encode(), [&bytes[..], &[0xac, 2]].concat());
        assert_eq!(Properties::decode(&other.encode()).unwrap(), other);
        let greatest = Sequence(NUMBER_MAX + 1);
        let beyond = Properties { sequences: (Sequence(7), greatest), ..properties };
        assert!(Properties::decode(&beyond.encode()).is_err(), "a write that never was");
    }
}
