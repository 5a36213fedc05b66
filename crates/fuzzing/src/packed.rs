//! A data block that is packed with Zstandard: any frame, any dictionary.
//! ```text
//! input   guard u8 | form u8 | dictionary length u16 | dictionary | bytes of the block
//! form    bits 0 and 1: 0 the bytes are a frame, 1 their length and a frame, 2 they are packed
//!         first; bit 2: with the dictionary, which lies in the table
//! ```
//! Invariant: what the twin reads as sorted entries, the store answers exactly; all else is an
//! error or ends.

use zstd_safe::{CCtx, DCtx};

use crate::frame::{self, About, TAG_DICTIONARY};
use crate::{ask, guard_of, twin};

/// A block that is packed is at most this much longer than its bytes.
const RATIO_MAX: usize = 255;
const FORM_ZSTD: u8 = 2;
const FORM_WITH_DICTIONARY: u8 = 3;
/// More than any dictionary or frame of an input.
const ROOM: usize = 1 << 20;

pub(crate) fn body(input: &[u8]) {
    let [guard, form, low, high, rest @ ..] = input else { return };
    let len = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (dictionary, bytes) = rest.split_at(len);
    let dictionary = (form & 4 != 0).then_some(dictionary);
    let body = match form & 3 {
        0 => bytes.to_vec(),
        1 => claiming(frame_len(bytes).unwrap_or(0), bytes),
        _ => match packed(bytes, dictionary) {
            Some(frame) => claiming(bytes.len(), &frame),
            None => return,
        },
    };
    let entries = unpacked(&body, dictionary).and_then(|raw| twin::block(&raw));
    let unknown = || About { entries: 1, ..About::default() };
    let about = entries.as_deref().map_or_else(unknown, twin::about);
    let on_disk = if dictionary.is_some() { FORM_WITH_DICTIONARY } else { FORM_ZSTD };
    let disk = disk_of(&frame::sealed(&body, on_disk), dictionary, &about);
    let guard = guard_of(*guard);
    let read_back = ask::ask(&disk, guard);
    if let Some(entries) = &entries {
        let read_back = read_back.expect("a block as it should be is refused");
        assert_eq!(read_back.contents, twin::visible(entries.iter()), "not what the twin reads");
        assert!(read_back.is_sound, "damage in a block as it should be");
    }
    ask::dump_all(&disk, &ask::path("000001.table"));
}

/// Bytes of a block, the form and the dictionary of an input made of them.
pub(crate) fn seed(guard: u8, form: u8, dictionary: &[u8], bytes: &[u8]) -> Vec<u8> {
    let len = (dictionary.len() as u16).to_le_bytes();
    [&[guard, form, len[0], len[1]][..], dictionary, bytes].concat()
}

/// A frame of these bytes.
pub(crate) fn packed(bytes: &[u8], dictionary: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut frame = vec![0; zstd_safe::compress_bound(bytes.len())];
    let mut context = CCtx::create();
    let len = match dictionary {
        Some(dictionary) => context.compress_using_dict(&mut frame[..], bytes, dictionary, 3),
        None => context.compress(&mut frame[..], bytes, 3),
    };
    frame.truncate(len.ok()?);
    Some(frame)
}

fn claiming(len: usize, frame: &[u8]) -> Vec<u8> {
    let mut body = trommel_filters::Writer::new();
    body.varint(len as u64);
    body.bytes(frame);
    body.finish()
}

fn frame_len(frame: &[u8]) -> Option<usize> {
    let len = zstd_safe::get_frame_content_size(frame).ok()??;
    usize::try_from(len).ok()
}

/// The block in memory. None: it is none, or is not to be believed.
fn unpacked(body: &[u8], dictionary: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut input = trommel_filters::Reader::new(body);
    let len = input.len().ok()?;
    let frame = input.bytes(input.left()).ok()?;
    let is_likely = len / RATIO_MAX <= frame.len() && len <= ROOM;
    if !is_likely || frame_len(frame) != Some(len) {
        return None;
    }
    let mut raw = vec![0; len];
    let mut context = DCtx::create();
    let filled = match dictionary {
        Some(dictionary) => context.decompress_using_dict(&mut raw[..], frame, dictionary),
        None => context.decompress(&mut raw[..], frame),
    };
    (filled.ok()? == len).then_some(raw)
}

fn disk_of(block: &[u8], dictionary: Option<&[u8]>, about: &About) -> trommel::storage::Memory {
    let mut sections = frame::sections_of_block(block, about);
    sections.extend(dictionary.map(|bytes| (TAG_DICTIONARY, bytes.to_vec())));
    let table = frame::table(block, &sections);
    let edit = frame::tree(2, 3, 1, about.sequences.1);
    let edit = edit.table([1, 1, 1, 0, 1], about, table.len());
    let manifest = frame::manifest(&[edit.finish()]);
    ask::disk_of(&[("MANIFEST".into(), manifest), ("000001.table".into(), table)])
}
