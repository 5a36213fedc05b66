//! The filter as bytes: written once, used in place.
//! ```text
//! groups       fingerprints; each group begins at a multiple of 8 bytes
//! checksum     u64, of all that follows
//! separators   u64 per group
//! offsets      u32 per group: its first byte / 8
//! starts       u32 per group: the keys before it (low half)
//! radix        u32 per slot
//! tail ends    u32 per group, if any separator needs more than its word
//! tails, prefix, last bound, model of text
//! trailer      u64 keys, u32 groups' bytes / 8, u32 groups, u32 slots, u32 bytes of tails, of
//!              prefix, of last bound,
//!              u16 kind, u8 version, u8: shift to a slot (6 bits), whether there are tails,
//!              whether there is a model
//! ```
//! Invariant: after [`Frame::read`], every index that a search takes from the directory or from a
//! group's header is in bounds. Blocks may have any bytes.

use std::ops::Range;

use trommel_filters::fingerprint::builder::Groups;
use trommel_filters::fingerprint::cell::HEAD_BYTES;
use trommel_filters::fingerprint::directory::Directory;
use trommel_filters::fingerprint::group::{GROUP_ALIGN, Kind};
use trommel_filters::hash::checksum;
use trommel_filters::{Corrupt, PlacedModel, Reader, TextModel, Writer};

use super::encoding::Encoding;
use super::place::View;

const VERSION: u8 = 5;
const CHECKSUM_BYTES: usize = size_of::<u64>();
const TRAILER_BYTES: usize = 8 + 6 * 4 + 2 + 1 + 1;
const WORD_BYTES: usize = size_of::<u64>();
const NUMBER_BYTES: usize = size_of::<u32>();
const SHIFT_BITS: u32 = 6;
/// Flags above the shift.
const HAS_TAILS: u8 = 1 << SHIFT_BITS;
const HAS_TEXT: u8 = 2 << SHIFT_BITS;
/// If the last key is longer, this many of its bytes are kept after the common prefix.
const LAST_BYTES: usize = 16;
/// A read of the last block may reach past the groups, where there are at least a checksum, one
/// group's numbers, and a trailer.
const _: () = assert!(HEAD_BYTES <= CHECKSUM_BYTES + WORD_BYTES + 2 * NUMBER_BYTES + TRAILER_BYTES);

/// Returns the image of a table's groups.
pub(super) fn write(encoding: Encoding, groups: Groups, text: Option<&TextModel>) -> Vec<u8> {
    let Groups { mut arena, directory, starts, entries, .. } = groups;
    let number = |count: usize| u32::try_from(count).expect("tables of a filter below 4 GiB each");
    let body = directory_bytes(&directory, &starts.low);
    let (tails, prefix) = (directory.tails.as_ref(), directory.prefix.bytes());
    let last = upper_bound(&directory.last, prefix.len() + LAST_BYTES);
    let mut after = Writer::new();
    after.bytes(&body);
    after.bytes(prefix);
    after.bytes(&last);
    text.iter().for_each(|text| text.write(&mut after));
    after.u64(entries);
    after.u32(number(arena.len() / GROUP_ALIGN));
    after.u32(number(directory.len()));
    after.u32(number(directory.radix.len()));
    after.u32(number(tails.map_or(0, |tails| tails.bytes.len())));
    after.u32(number(prefix.len()));
    after.u32(number(last.len()));
    after.u16(encoding.tag());
    after.u8(VERSION);
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    let flags = flag(tails.is_some(), HAS_TAILS) | flag(text.is_some(), HAS_TEXT);
    after.u8(directory.radix_shift as u8 | flags);
    arena.reserve_exact(CHECKSUM_BYTES + after.len());
    arena.extend_from_slice(&checksum(after.as_slice()).to_le_bytes());
    arena.extend_from_slice(after.as_slice());
    arena
}

/// Returns the arrays of the directory, and the tails of separators.
fn directory_bytes(directory: &Directory, starts: &[u32]) -> Vec<u8> {
    let mut out = Writer::new();
    directory.separators.iter().for_each(|&separator| out.u64(separator));
    let rows = [&directory.offsets[..], starts, &directory.radix[..]];
    rows.iter().for_each(|row| row.iter().for_each(|&number| out.u32(number)));
    if let Some(tails) = &directory.tails {
        tails.ends.iter().for_each(|&end| out.u32(end));
        out.bytes(&tails.bytes);
    }
    out.finish()
}

/// Returns a string at or above `key`, of at most `len` bytes if there is one.
fn upper_bound(key: &[u8], len: usize) -> Vec<u8> {
    if key.len() <= len {
        return key.to_vec();
    }
    let Some(grown) = key[..len].iter().rposition(|&byte| byte < u8::MAX) else {
        return key.to_vec();
    };
    let mut bound = key[..=grown].to_vec();
    bound[grown] += 1;
    bound
}

/// The layout of an image.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) encoding: Encoding,
    pub(super) entries: u64,
    pub(super) separators: Range<usize>,
    pub(super) offsets: Range<usize>,
    pub(super) starts: Range<usize>,
    pub(super) radix: Range<usize>,
    pub(super) rest_ends: Option<Range<usize>>,
    pub(super) tails: Range<usize>,
    pub(super) prefix: Range<usize>,
    /// The first eight bytes of the prefix.
    pub(super) head: u64,
    pub(super) last: Range<usize>,
    pub(super) radix_shift: u32,
    /// The range of the model's bytes; empty: names are keys.
    text_at: Range<usize>,
    pub(super) text: Option<PlacedModel>,
}

/// Splits off consecutive ranges.
struct Cutter {
    at: usize,
}

impl Cutter {
    fn next(&mut self, count: u32, bytes: usize) -> Range<usize> {
        let from = self.at;
        // Up to 2^32 times 8 bytes, several times: the sum fits into 64 bits. On 32-bit machines it
        // saturates, which is never a valid length.
        self.at = self.at.saturating_add((count as usize).saturating_mul(bytes));
        from..self.at
    }
}

impl Frame {
    /// Reads the layout of `image`, and checks all bytes except those of blocks.
    pub(super) fn read(image: &[u8]) -> Result<Frame, Corrupt> {
        let (mut frame, groups_end) = Frame::of_trailer(image)?;
        let wrong = |at, what| Err(Corrupt { at, what });
        let summed = &image[groups_end + CHECKSUM_BYTES..];
        if image[groups_end..][..CHECKSUM_BYTES] != checksum(summed).to_le_bytes() {
            return wrong(groups_end, "the checksum of a filter's directory");
        }
        if !frame.text_at.is_empty() {
            frame.text = Some(read_text(image, &frame.text_at)?);
        }
        let view = View::new(image, &frame);
        if !frame.directory_is_sound(&view) {
            return wrong(groups_end, "a directory of groups in order");
        }
        for index in 0..view.directory.len() {
            // On 32 bits a forged offset does not fit.
            let at = view.directory.offset(index).saturating_mul(GROUP_ALIGN);
            if at >= groups_end || !frame.group_is_sound(&view, index, image.len() - at) {
                return wrong(at.min(groups_end), "a group of the filter's fingerprints");
            }
        }
        Ok(frame)
    }

    /// Returns the trailer's layout if it is consistent, and the end of the groups.
    fn of_trailer(image: &[u8]) -> Result<(Frame, usize), Corrupt> {
        let at = image.len().checked_sub(TRAILER_BYTES);
        let at = at.ok_or(Corrupt { at: 0, what: "the trailer of a filter of fingerprints" })?;
        let mut input = Reader::new(&image[at..]);
        let entries = input.u64()?;
        let [units, groups, slots, rest_bytes, prefix_bytes, last_bytes] =
            [input.u32()?, input.u32()?, input.u32()?, input.u32()?, input.u32()?, input.u32()?];
        let wrong = |what| Corrupt { at, what };
        let encoding = Encoding::of_tag(input.u16()?);
        let encoding = encoding.ok_or_else(|| wrong("the tag of a filter of fingerprints"))?;
        if input.u8()? != VERSION {
            return Err(wrong("a version of filters of fingerprints that is known"));
        }
        let flags = input.u8()?;
        let has_rests = flags & HAS_TAILS != 0;
        let mut cutter = Cutter { at: 0 };
        let groups_end = cutter.next(units, GROUP_ALIGN).end;
        cutter.next(1, CHECKSUM_BYTES);
        let frame = Frame {
            encoding,
            entries,
            separators: cutter.next(groups, WORD_BYTES),
            offsets: cutter.next(groups, NUMBER_BYTES),
            starts: cutter.next(groups, NUMBER_BYTES),
            radix: cutter.next(slots, NUMBER_BYTES),
            rest_ends: has_rests.then(|| cutter.next(groups, NUMBER_BYTES)),
            tails: cutter.next(rest_bytes, 1),
            prefix: cutter.next(prefix_bytes, 1),
            head: 0,
            last: cutter.next(last_bytes, 1),
            radix_shift: u32::from(flags) & ((1 << SHIFT_BITS) - 1),
            text_at: cutter.at..at,
            text: None,
        };
        if cutter.at > at || frame.text_at.is_empty() != (flags & HAS_TEXT == 0) {
            return Err(wrong("a filter of the length that its trailer tells"));
        }
        let head = trommel_filters::bits::key_bits::word_at(&image[frame.prefix.clone()], 0);
        Ok((Frame { head, ..frame }, groups_end))
    }

    fn directory_is_sound(&self, view: &View<'_>) -> bool {
        let (directory, groups) = (&view.directory, view.directory.len());
        let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
        let mut radix = directory.radix.iter().map(number);
        let rests_end = directory.tails.as_ref().map_or(0, |tails| tails.bytes.len());
        let mut ends = directory.tails.iter().flat_map(|tails| tails.ends).map(number);
        (groups == 0 || directory.radix.len() > 1)
            && radix.clone().is_sorted()
            && radix.next_back().unwrap_or(0) <= groups
            && ends.clone().is_sorted()
            && ends.next_back().unwrap_or(0) == rests_end
            && directory.separators.iter().map(|bytes| u64::from_le_bytes(*bytes)).is_sorted()
            && directory.offsets.iter().map(number).is_sorted()
    }

    /// Whether a group's header is valid. `left`: the number of bytes from the group on, which is
    /// not 0.
    fn group_is_sound(&self, view: &View<'_>, index: usize, left: usize) -> bool {
        let group = view.group(index);
        let sound = group.kind == self.encoding.group_kind()
            && group.prefix_bits >= 8 * self.prefix.len()
            && (0..group.blocks).all(|block| group.block_at(block) + HEAD_BYTES <= left);
        sound && (group.kind != Kind::Spline || group.model().is_sound(group.blocks))
    }
}

/// Reads the model of text in this range.
fn read_text(image: &[u8], at: &Range<usize>) -> Result<PlacedModel, Corrupt> {
    let mut input = Reader::new(&image[..at.end]);
    input.bytes(at.start)?;
    let text = PlacedModel::read(&mut input)?;
    input.end()?;
    Ok(text)
}

/// Returns the position of an image's checksum, if its trailer is consistent.
#[cfg(test)]
pub(super) fn checksum_at(image: &[u8]) -> Option<usize> {
    Frame::of_trailer(image).ok().map(|(_, groups_end)| groups_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_short_and_not_below() {
        for (key, len, bound) in [
            (&b"drum"[..], 4, &b"drum"[..]),
            (b"drum", 2, b"ds"),
            (b"d\xff\xff\0", 3, b"e"),
            (b"\xff\xff\0", 2, b"\xff\xff\0"),
            (b"", 0, b""),
        ] {
            assert_eq!(upper_bound(key, len), bound);
            assert!(upper_bound(key, len)[..] >= *key);
        }
    }
}
