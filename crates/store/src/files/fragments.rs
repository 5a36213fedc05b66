//! Logs and manifests that are read piece by piece, whatever lies between: for those who look at
//! damage or mend it.
//! ```text
//! header | record | record | #### | record | ##      Whole, Whole, Damage, Whole, Tail
//! ```
//! Invariant: a whole piece has passed its checksums at its own place. What is not whole is named
//! with its place, and nothing here fails: opening a store is stricter.

use trommel_filters::Corrupt;

use crate::files::manifest;
use crate::files::record::{Stretch, scan_records};
use crate::files::wal::{self, Predecessor, WalBatch};
use crate::plan::layout::Edit;

/// A piece of a file of records.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<T> {
    /// A record that was read.
    Whole { offset: u64, item: T },
    /// Bytes that are not as they were written. A gap: no record is valid there.
    Damage { offset: u64, end: u64, what: String, is_gap: bool },
    /// The file's end, without a record in it: a crash may have left it so, and so may damage.
    Tail { offset: u64, end: u64 },
}

/// A record of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LogRecord<'a> {
    /// The first one.
    Predecessor(Predecessor),
    /// Writes that landed together.
    Group(WalBatch<'a>),
}

/// The pieces of the log with this number.
pub(crate) fn scan_log<'a>(bytes: &'a [u8], number: u64) -> Vec<Piece<LogRecord<'a>>> {
    if let Some(version) = wal::older_version(bytes) {
        let what = format!("a log of format version {version}, which is not read here");
        return vec![Piece::Damage { offset: 0, end: bytes.len() as u64, what, is_gap: false }];
    }
    scan(bytes, &wal::header(), number, |offset, payload| {
        if offset == wal::HEADER_SIZE as u64 {
            wal::decode_predecessor(payload).map(LogRecord::Predecessor)
        } else {
            WalBatch::decode(payload).map(LogRecord::Group)
        }
    })
}

/// The pieces of a log as opening counts them: from a gap on that no later group shows to have been
/// durable, all is the torn end that a crash has left, groups in it too. `counts`: what the next
/// log says is durable of this one.
pub(crate) fn without_torn_end<'a>(
    mut pieces: Vec<Piece<LogRecord<'a>>>,
    counts: Option<u64>,
    file_end: u64,
) -> Vec<Piece<LogRecord<'a>>> {
    let durable = |piece: &Piece<LogRecord<'_>>| match piece {
        Piece::Whole { item: LogRecord::Group(group), .. } => group.durable_bytes,
        _ => 0,
    };
    // A group says more than those before it: the greatest of all is said by one behind any gap
    // below it.
    let proven = pieces.iter().map(durable).max().max(counts).unwrap_or(0);
    let is_torn = |piece: &Piece<_>| matches!(piece, Piece::Damage { offset, is_gap: true, .. } if *offset >= proven);
    if let Some(at) = pieces.iter().position(is_torn) {
        let offset = match pieces[at] {
            Piece::Damage { offset, .. }
            | Piece::Tail { offset, .. }
            | Piece::Whole { offset, .. } => offset,
        };
        pieces.truncate(at);
        pieces.push(Piece::Tail { offset, end: file_end });
    }
    pieces
}

/// The pieces of a manifest.
pub(crate) fn scan_manifest(bytes: &[u8]) -> Vec<Piece<Edit>> {
    scan(bytes, &manifest::header(), manifest::SALT, |_, payload| manifest::decode(payload))
}

fn scan<'a, T>(
    bytes: &'a [u8],
    header: &[u8],
    salt: u64,
    decode: impl Fn(u64, &'a [u8]) -> Result<T, Corrupt>,
) -> Vec<Piece<T>> {
    let end = bytes.len() as u64;
    let right = bytes.iter().zip(header).take_while(|(found, wanted)| found == wanted).count();
    let mut pieces = Vec::new();
    if right < header.len() {
        if bytes[right..].iter().all(|&byte| byte == 0) {
            return vec![Piece::Tail { offset: 0, end }];
        }
        let what = "the header of another kind of file, or of another version".to_string();
        let end = end.min(header.len() as u64);
        pieces.push(Piece::Damage { offset: right as u64, end, what, is_gap: false });
    }
    scan_records(bytes, header.len(), salt, &mut |stretch| {
        pieces.push(match stretch {
            Stretch::Record { offset, payload } => match decode(offset, payload) {
                Ok(item) => Piece::Whole { offset, item },
                Err(wrong) => {
                    let record_end = offset + crate::files::record::record_size(payload.len());
                    let what = format!("a record that does not decode: {wrong}");
                    Piece::Damage { offset, end: record_end, what, is_gap: false }
                }
            },
            Stretch::Gap { offset, end: gap_end } if gap_end == end => Piece::Tail { offset, end },
            Stretch::Gap { offset, end } => {
                let what = format!("no valid record up to byte {end}");
                Piece::Damage { offset, end, what, is_gap: true }
            }
        });
    });
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::entry::{Kind, Sequence};
    use crate::files::names::wal_name;
    use crate::files::wal::Wal;
    use crate::storage::Storage;
    use crate::storage::memory::Memory;
    use crate::storage::open_folder::OpenFolder;
    use std::path::Path;

    /// A log of groups with the sequence numbers 1 to 4, and where its records begin.
    fn log() -> (Vec<u8>, Vec<u64>) {
        let (disk, dir) = (Memory::new(), Path::new("db"));
        disk.create_dir(dir).expect("makes the folder");
        let none = Predecessor { wal: 0, valid_bytes: 0 };
        let folder = OpenFolder::on(&disk, dir);
        let mut log = Wal::create(&folder, 7, none).expect("creates");
        for first in 1..5 {
            let entry = (Kind::Put, &b"key"[..], &b"value"[..]);
            log.append(Sequence(first), 1, std::iter::once(entry)).expect("appends");
        }
        let bytes = disk.file(dir.join(wal_name(7))).expect("is there");
        let offset = |piece: &Piece<_>| match piece {
            Piece::Whole { offset, .. } => *offset,
            other => panic!("{other:?}"),
        };
        let offsets = scan_log(&bytes, 7).iter().map(offset).collect();
        (bytes, offsets)
    }

    fn firsts(pieces: &[Piece<LogRecord<'_>>]) -> Vec<u64> {
        let first = |piece: &Piece<LogRecord<'_>>| match piece {
            Piece::Whole { item: LogRecord::Group(group), .. } => Some(group.first.0),
            _ => None,
        };
        pieces.iter().filter_map(first).collect()
    }

    #[test]
    fn a_damaged_byte_costs_one_record_and_is_named() {
        let (sound, offsets) = log();
        assert_eq!(firsts(&scan_log(&sound, 7)), [1, 2, 3, 4]);
        for byte in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[byte] ^= 1;
            let pieces = scan_log(&bytes, 7);
            let hit = offsets.iter().rposition(|&offset| offset <= byte as u64);
            let kept: Vec<u64> = (1..5).filter(|&group| hit != Some(group as usize)).collect();
            assert_eq!(firsts(&pieces), kept, "byte {byte}");
            let named = pieces.iter().any(|piece| match piece {
                Piece::Whole { .. } => false,
                Piece::Damage { offset, end, .. } | Piece::Tail { offset, end } => {
                    (*offset..*end).contains(&(byte as u64))
                }
            });
            assert!(named, "byte {byte}: {pieces:?}");
        }
    }

    #[test]
    fn groups_behind_a_gap_that_was_never_durable_do_not_count() {
        let (mut bytes, offsets) = log();
        bytes[offsets[2] as usize + 3] ^= 1;
        let end = bytes.len() as u64;
        let counted = |counts| firsts(&without_torn_end(scan_log(&bytes, 7), counts, end));
        assert_eq!(firsts(&scan_log(&bytes, 7)), [1, 3, 4]);
        assert_eq!(counted(None), [1]);
        assert_eq!(counted(Some(offsets[2])), [1]);
        assert_eq!(counted(Some(offsets[2] + 1)), [1, 3, 4]);
    }

    #[test]
    fn a_log_that_is_cut_short_ends_in_a_tail() {
        let (sound, offsets) = log();
        for len in 0..sound.len() {
            let pieces = scan_log(&sound[..len], 7);
            let whole = offsets[1..].iter().filter(|&&next| next <= len as u64).count();
            assert_eq!(firsts(&pieces).len(), whole.saturating_sub(1), "{len} bytes");
            let at_an_end = offsets.contains(&(len as u64));
            let has_tail = matches!(pieces.last(), Some(Piece::Tail { .. }));
            assert_eq!(has_tail, !at_an_end, "{len} bytes: {pieces:?}");
        }
    }

    #[test]
    fn records_of_another_log_are_none() {
        let (sound, _) = log();
        assert_eq!(firsts(&scan_log(&sound, 8)), [0u64; 0]);
        assert_eq!(firsts(&scan_log(&[], 7)), [0u64; 0]);
    }
}
