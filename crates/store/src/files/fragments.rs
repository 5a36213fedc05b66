//! The readable and unreadable parts of a damaged file, each with its place. `dump` prints the
//! readable ones, and `repair` saves them.
//! ```text
//! log, manifest   header | record | #### | record | ##       Whole, Damaged, Whole, Torn
//! table           block | block | #### (table/parts.rs)      Whole, Whole, Damaged
//! ```
//! Invariant: a whole fragment has passed its checksums at its own place. A fragment that is not
//! whole is not an error here; opening a store is stricter.

use std::ops::Range;

use trommel_filters::Corrupt;

use crate::files::manifest;
use crate::files::record::{next_record, record_at, record_size};
use crate::files::wal::{self, Predecessor, WalBatch};
use crate::plan::store_layout::StoreEdit;

/// A part of a file: an item that could be read, or bytes that could not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fragment<T> {
    /// A record or a block that was read.
    Whole { offset: u64, item: T },
    /// Bytes that are damaged.
    Damaged {
        bytes: Range<u64>,
        what: String,
        /// The number of entries in them. `None`: unknown.
        entries: Option<u64>,
        /// Whether no valid record starts in these bytes.
        is_gap: bool,
    },
    /// The end of the file, without a record. A crash or damage may have left it. Zeros may also be
    /// space that a log had preallocated.
    Torn { bytes: Range<u64>, are_zeros: bool },
}

impl<T> Fragment<T> {
    /// Damage of an unknown number of entries.
    fn damaged(bytes: Range<usize>, what: String) -> Self {
        let bytes = bytes.start as u64..bytes.end as u64;
        Fragment::Damaged { bytes, what, entries: None, is_gap: false }
    }

    /// Bytes in which no valid record starts.
    fn gap(bytes: Range<usize>) -> Self {
        let what = format!("no valid record up to byte {}", bytes.end);
        let bytes = bytes.start as u64..bytes.end as u64;
        Fragment::Damaged { bytes, what, entries: None, is_gap: true }
    }

    /// The end of a file, from `start` on.
    fn torn(file: &[u8], start: usize) -> Self {
        let are_zeros = file[start..].iter().all(|&byte| byte == 0);
        Fragment::Torn { bytes: start as u64..file.len() as u64, are_zeros }
    }

    /// The offset of its first byte.
    pub(crate) fn offset(&self) -> u64 {
        match self {
            Fragment::Whole { offset, .. } => *offset,
            Fragment::Damaged { bytes, .. } | Fragment::Torn { bytes, .. } => bytes.start,
        }
    }
}

/// A record of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LogRecord<'a> {
    /// The predecessor record, which is the first one.
    Predecessor(Predecessor),
    /// Writes that were logged together.
    Group(WalBatch<'a>),
}

/// Returns the fragments of the log with this number.
pub(crate) fn log_fragments(
    bytes: &[u8],
    number: u64,
) -> impl Iterator<Item = Fragment<LogRecord<'_>>> {
    let older = wal::older_version(bytes).map(|version| {
        let what = format!("a log of format version {version}, which is not read here");
        (Some(Fragment::damaged(0..bytes.len(), what)), bytes.len())
    });
    let start = older.unwrap_or_else(|| start_of(bytes, &wal::header_like(bytes)));
    fragments(bytes, start, number, |offset, payload| match offset == wal::HEADER_SIZE as u64 {
        true => wal::decode_predecessor(payload).map(LogRecord::Predecessor),
        false => WalBatch::decode(payload).map(LogRecord::Group),
    })
}

/// Returns the fragments of a log that an opening would count. A gap that no later group proves to
/// have been durable begins the torn end that a crash left. Groups behind that gap do not count.
/// `counts` is the number of durable bytes of this log, as the next log tells.
pub(crate) fn log_fragments_that_count(
    bytes: &[u8],
    number: u64,
    counts: Option<u64>,
) -> Vec<Fragment<LogRecord<'_>>> {
    let mut fragments: Vec<_> = log_fragments(bytes, number).collect();
    let durable = |fragment: &Fragment<LogRecord<'_>>| match fragment {
        Fragment::Whole { item: LogRecord::Group(group), .. } => group.durable_bytes,
        _ => 0,
    };
    // Later groups record more durable bytes. So if any group proves that a gap was durable, one
    // behind the gap does, or the next log.
    let proven = fragments.iter().map(durable).max().max(counts).unwrap_or(0);
    let torn = fragments.iter().enumerate().find_map(|(place, fragment)| match fragment {
        Fragment::Damaged { bytes, is_gap: true, .. } => {
            (bytes.start >= proven).then_some((place, bytes.start))
        }
        _ => None,
    });
    if let Some((place, start)) = torn {
        fragments.truncate(place);
        fragments.push(Fragment::torn(bytes, start as usize));
    }
    fragments
}

/// Returns the fragments of a manifest.
pub(crate) fn manifest_fragments(bytes: &[u8]) -> impl Iterator<Item = Fragment<StoreEdit>> {
    let start = start_of(bytes, &manifest::header());
    fragments(bytes, start, manifest::SALT, |_, payload| manifest::decode(payload))
}

/// Returns what is wrong with the header, if anything, and the offset of the first record.
fn start_of<T>(bytes: &[u8], header: &[u8]) -> (Option<Fragment<T>>, usize) {
    let right = bytes.iter().zip(header).take_while(|(found, wanted)| found == wanted).count();
    if right == header.len() {
        return (None, right);
    }
    if bytes[right..].iter().all(|&byte| byte == 0) {
        return (Some(Fragment::torn(bytes, 0)), bytes.len());
    }
    let (bytes, entries) = (right as u64..bytes.len().min(header.len()) as u64, Some(0));
    let what = "the header of another kind of file, or of another version".into();
    (Some(Fragment::Damaged { bytes, what, entries, is_gap: false }), header.len())
}

/// Returns the fragments of a file of records, in order.
fn fragments<'a, T>(
    bytes: &'a [u8],
    (start, mut at): (Option<Fragment<T>>, usize),
    salt: u64,
    decode: impl Fn(u64, &'a [u8]) -> Result<T, Corrupt>,
) -> impl Iterator<Item = Fragment<T>> {
    let mut room = bytes.len();
    let records = std::iter::from_fn(move || {
        let offset = at;
        if offset >= bytes.len() {
            return None;
        }
        let Some(payload) = record_at(bytes, offset, salt) else {
            // From `offset` on, since a head there was checked too.
            let next = next_record(bytes, offset, salt, &mut room);
            at = next.clone().ok().flatten().unwrap_or(bytes.len());
            return Some(match next {
                Ok(Some(next)) => Fragment::gap(offset..next),
                Ok(None) => Fragment::torn(bytes, offset),
                Err(wrong) => Fragment::damaged(offset..at, wrong.to_string()),
            });
        };
        at += record_size(payload.len()) as usize;
        Some(match decode(offset as u64, payload) {
            Ok(item) => Fragment::Whole { offset: offset as u64, item },
            Err(wrong) => {
                Fragment::damaged(offset..at, format!("a record that does not decode: {wrong}"))
            }
        })
    });
    start.into_iter().chain(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::entry::{Kind, Sequence};
    use crate::entries::keyspace_id::KeyspaceId;
    use crate::files::names::wal_name;
    use crate::files::wal::Wal;
    use crate::storage::io_mode::Access;
    use crate::storage::memory::Memory;
    use crate::storage::open_folder::OpenFolder;
    use crate::storage::traits::Storage;
    use std::path::Path;

    /// A log of groups with the sequence numbers 1 to 4, and the offsets of its records.
    fn log() -> (Vec<u8>, Vec<u64>) {
        let (disk, dir) = (Memory::new(), Path::new("db"));
        disk.create_dir(dir).expect("makes the folder");
        let none = Predecessor { wal: 0, valid_bytes: 0, last: None };
        let folder = OpenFolder::on(&disk, dir);
        let mut log = Wal::create((&folder, Access::default()), 7, none).expect("creates");
        for first in 1..5 {
            let entry = (KeyspaceId::DEFAULT, Kind::Put, &b"key"[..], &b"value"[..]);
            log.append(Sequence(first), 1, std::iter::once((entry, first))).expect("appends");
        }
        let bytes = disk.file(dir.join(wal_name(7))).expect("is there");
        let offset = |fragment: Fragment<_>| match fragment {
            Fragment::Whole { offset, .. } => offset,
            other => panic!("{other:?}"),
        };
        let offsets = log_fragments(&bytes, 7).map(offset).collect();
        (bytes, offsets)
    }

    fn all(bytes: &[u8]) -> Vec<Fragment<LogRecord<'_>>> {
        log_fragments(bytes, 7).collect()
    }

    fn firsts(fragments: &[Fragment<LogRecord<'_>>]) -> Vec<u64> {
        let first = |fragment: &Fragment<LogRecord<'_>>| match fragment {
            Fragment::Whole { item: LogRecord::Group(group), .. } => Some(group.first.0),
            _ => None,
        };
        fragments.iter().filter_map(first).collect()
    }

    #[test]
    fn a_damaged_byte_costs_one_record_and_is_named() {
        let (sound, offsets) = log();
        assert_eq!(firsts(&all(&sound)), [1, 2, 3, 4]);
        for byte in 0..sound.len() {
            let mut bytes = sound.clone();
            // This flip never yields another readable version.
            bytes[byte] ^= 0x10;
            let fragments = all(&bytes);
            let hit = offsets.iter().rposition(|&offset| offset <= byte as u64);
            let kept: Vec<u64> = (1..5).filter(|&group| hit != Some(group as usize)).collect();
            assert_eq!(firsts(&fragments), kept, "byte {byte}");
            let named = fragments.iter().any(|fragment| match fragment {
                Fragment::Whole { .. } => false,
                Fragment::Damaged { bytes, .. } | Fragment::Torn { bytes, .. } => {
                    bytes.contains(&(byte as u64))
                }
            });
            assert!(named, "byte {byte}: {fragments:?}");
        }
    }

    #[test]
    fn groups_behind_a_gap_that_was_never_durable_do_not_count() {
        let (mut bytes, offsets) = log();
        bytes[offsets[2] as usize + 3] ^= 1;
        let counted = |counts| firsts(&log_fragments_that_count(&bytes, 7, counts));
        assert_eq!(firsts(&all(&bytes)), [1, 3, 4]);
        assert_eq!(counted(None), [1]);
        assert_eq!(counted(Some(offsets[2])), [1]);
        assert_eq!(counted(Some(offsets[2] + 1)), [1, 3, 4]);
    }

    #[test]
    fn a_log_that_is_cut_short_ends_in_a_tail() {
        let (sound, offsets) = log();
        for len in 0..sound.len() {
            let fragments = all(&sound[..len]);
            let whole = offsets[1..].iter().filter(|&&next| next <= len as u64).count();
            assert_eq!(firsts(&fragments).len(), whole.saturating_sub(1), "{len} bytes");
            let at_an_end = offsets.contains(&(len as u64));
            let has_tail = matches!(fragments.last(), Some(Fragment::Torn { .. }));
            assert_eq!(has_tail, !at_an_end, "{len} bytes: {fragments:?}");
        }
    }

    #[test]
    fn records_of_another_log_are_none() {
        let (sound, _) = log();
        assert_eq!(firsts(&log_fragments(&sound, 8).collect::<Vec<_>>()), [0u64; 0]);
        assert_eq!(firsts(&all(&[])), [0u64; 0]);
    }
}
