//! A data block: any bytes as the one block of a table, with a manifest that fits.
//! ```text
//! input   guard u8 | form u8: 0 as it is, 1 the bytes are LZ4, 2 they are compressed first |
//!         bytes of the block
//! ```
//! Invariant: what the twin reads as sorted entries, the store answers exactly; all else is an
//! error or ends.

use trommel::GuardKind;

use crate::frame::{self, About};
use crate::{ask, guard_of, twin};

/// A block that is compressed is at most this much longer than its bytes.
const LZ4_RATIO_MAX: usize = 255;

pub(crate) fn body(input: &[u8]) {
    let [guard, form, bytes @ ..] = input else { return };
    let Some((on_disk, raw)) = form_of(*form, bytes) else { return };
    let entries = raw.and_then(|raw| twin::block(&raw));
    let about = entries.as_deref().map_or_else(unknown, twin::about);
    let disk = disk_of(&on_disk, &about);
    let guard = guard_of(*guard);
    let read_back = ask::ask(&disk, guard);
    if let Some(entries) = &entries {
        let read_back = read_back.expect("a block as it should be is refused");
        assert_eq!(read_back.contents, twin::visible(entries.iter()), "not what the twin reads");
        assert!(read_back.is_sound, "damage in a block as it should be");
        ask::go_on(&disk, (guard, GuardKind::Grf), Some(&read_back.contents));
    }
    ask::dump_all(&disk, &ask::path("000001.table"));
}

/// The block on disk, and as it is in memory if that can be known.
fn form_of(form: u8, bytes: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    match form % 3 {
        0 => Some((frame::sealed(bytes, 0), Some(bytes.to_vec()))),
        1 => {
            let raw = decompress(bytes);
            Some((frame::sealed(bytes, 1), raw))
        }
        _ => {
            let mut packed = trommel_filters::Writer::new();
            packed.varint(bytes.len() as u64);
            packed.bytes(&lz4_flex::block::compress(bytes));
            Some((frame::sealed(packed.as_slice(), 1), Some(bytes.to_vec())))
        }
    }
}

/// A block's bytes in memory, by its compression on disk.
pub(crate) fn raw(compression: u8, bytes: &[u8]) -> Option<Vec<u8>> {
    form_of(compression, bytes)?.1
}

fn decompress(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut input = trommel_filters::Reader::new(bytes);
    let len = input.len().ok()?;
    let packed = input.bytes(input.left()).ok()?;
    let is_likely = len / LZ4_RATIO_MAX <= packed.len();
    let raw = is_likely.then(|| lz4_flex::block::decompress(packed, len).ok())??;
    (raw.len() == len).then_some(raw)
}

fn unknown() -> About {
    About { entries: 1, ..About::default() }
}

fn disk_of(block: &[u8], about: &About) -> trommel::storage::Memory {
    let table = frame::table_of_block(block, about);
    let edit = frame::tree(2, 3, 1, about.sequences.1);
    let edit = edit.table([1, 1, 1, 0, 1], about, table.len());
    let manifest = frame::manifest(&[edit.finish()]);
    ask::disk_of(&[("MANIFEST".into(), manifest), ("000001.table".into(), table)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of "key a" and "key b"; the second shares so many bytes with the first.
    fn block_sharing(shared: u8) -> Vec<u8> {
        let end = &b"key b"[usize::from(shared)..];
        let tags = [16, 24]; // sequence numbers 2 and 3, puts
        let first = [&[0, 5, 1, tags[0]][..], b"key a"].concat();
        let heads = [&first[..], &[shared, end.len() as u8, 1, tags[1]], end].concat();
        let counts = [1u32.to_le_bytes(), (heads.len() as u32).to_le_bytes()];
        [counts.as_flattened(), &[0; 8], &heads, b"xy"].concat()
    }

    #[test]
    fn a_key_that_shares_less_than_it_has_in_common_is_noticed() {
        let about = |last: &[u8]| About {
            entries: 2,
            deletes: 0,
            raw_bytes: 12,
            sequences: (2, 3),
            first_key: b"key a".to_vec(),
            last_key: last.to_vec(),
            deleted: None,
        };
        for (shared, is_sound) in [(4, true), (3, false), (1, false)] {
            let disk = disk_of(&frame::sealed(&block_sharing(shared), 0), &about(b"key b"));
            let read_back = ask::ask(&disk, GuardKind::Open).expect("its checksums are right");
            assert_eq!(read_back.is_sound, is_sound, "{shared} bytes");
            assert_eq!(twin::block(&block_sharing(shared)).is_some(), is_sound, "{shared} bytes");
            assert_eq!(read_back.contents.len(), 2, "a scan finds both");
        }
    }
}
