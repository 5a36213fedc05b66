//! Anchors, at which segments begin, and the search for a key's segment.
//! ```text
//! keys of the oldest run     ant bee | cat cow | dog elk fox | gnu
//! anchors                    a         c         d             g      least, above the last key
//! segment             0      1         2         3             4    5
//!                     below                                         above all keys
//! ```
//! Remix stores whole keys as anchors. Here an anchor is the prefix that tells a segment's first
//! key from the previous key, which suffices and is shorter.
//!
//! Invariant: keys are bit strings here, followed by zeros without end. Segments cover all of them,
//! in order. Keys with the same bit string are in the same segment.

use trommel_filters::bits::key_bits::{common_bits, word_at};
use trommel_filters::fingerprint::directory::{Among, Directory, DirectoryBuilder, radix_table};
use trommel_filters::{Trace, Untraced};

/// Coarser slots of the search table, as a power of two of finer ones: about four anchors per slot.
const COARSER_BITS: u32 = 3;
/// The size of an anchor of up to eight bytes beyond the common prefix.
pub(super) const ANCHOR_BYTES: usize = size_of::<u64>() + 1;
/// The further size of a longer anchor, besides its further bytes.
const LONG_ANCHOR_BYTES: usize = size_of::<u32>();

/// The anchors of all segments but the lowest.
pub(super) struct Anchors {
    directory: Directory,
}

impl Anchors {
    /// The number of segments: those with anchors, one below and one above.
    pub(super) fn segments(&self) -> usize {
        self.directory.len() + 2
    }

    /// Returns the segment of a key.
    #[inline(always)]
    pub(super) fn find<T: Trace>(&self, key: &[u8], trace: &mut T) -> usize {
        let among = match self.directory.word(key) {
            Ok(word) => self.directory.find(key, word, trace),
            Err(beside) => beside,
        };
        match among {
            Among::Below => 0,
            Among::Group(group) => group + 1,
            Among::Above => self.segments() - 1,
        }
    }

    /// Same as [`Anchors::find`], untraced.
    pub(super) fn segment_of(&self, key: &[u8]) -> usize {
        self.find(key, &mut Untraced)
    }

    /// Returns the smallest byte string that may be in a segment, or a smaller one.
    pub(super) fn start(&self, segment: usize) -> Vec<u8> {
        let mut start = match segment.checked_sub(1) {
            None => Vec::new(),
            Some(group) if group == self.directory.len() => self.directory.last.to_vec(),
            Some(group) => {
                let word = self.directory.separators[group].to_be_bytes();
                let rest = &self.directory.separator_tail(group).to_vec();
                [self.directory.prefix.bytes(), &word, rest].concat()
            }
        };
        // Of byte strings with the same bit string, the shortest is the smallest.
        let len = start.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        start.truncate(len);
        start
    }

    /// Returns a key above all keys in the segments up to `segment`, and at most `before`. It is
    /// `before` itself if that lies in this segment or below. `of_before`: the segment of `before`.
    pub(super) fn end_before(&self, segment: usize, of_before: usize, before: &[u8]) -> Vec<u8> {
        let next = segment + 1;
        // The uppermost segment begins at the last key, which is not above all keys of the segment
        // before.
        if segment >= of_before || next + 1 == self.segments() {
            return before.to_vec();
        }
        self.start(next)
    }

    /// Returns the size of each allocation, in bytes.
    pub(super) fn allocations(&self) -> [usize; 7] {
        self.directory.allocations()
    }
}

/// Splits ascending keys into segments.
#[derive(Default)]
pub(super) struct AnchorsBuilder {
    directory: DirectoryBuilder,
    /// The first key and the last one, if there are any.
    ends: Option<(Vec<u8>, Vec<u8>)>,
    long: bool,
}

impl AnchorsBuilder {
    /// Adds the next key. It begins a segment if it can and `wants` it, given the size of its
    /// anchor; the first key always does. Returns whether it begins one. Requires: the key is at or
    /// above the previous one.
    pub(super) fn push(&mut self, key: &[u8], wants: impl FnOnce(usize) -> bool) -> bool {
        let Some((first, last)) = &mut self.ends else {
            self.ends = Some((key.to_vec(), key.to_vec()));
            // Its anchor is cut once the common prefix of all keys is known.
            self.directory.push(&[], usize::MAX, 0);
            return true;
        };
        assert!(last.as_slice() <= key, "keys come in ascending order");
        let begins = common_bits(last, key).is_some_and(|common| {
            let anchor = &key[..common / 8 + 1];
            let shared = first.iter().zip(key).take_while(|(a, b)| a == b).count();
            let further = anchor.len().saturating_sub(shared + size_of::<u64>());
            self.long |= further > 0;
            let long = if self.long { LONG_ANCHOR_BYTES } else { 0 };
            let wanted = wants(ANCHOR_BYTES + long + further);
            if wanted {
                self.directory.push(anchor, usize::MAX, 0);
            }
            wanted
        });
        last.clear();
        last.extend_from_slice(key);
        begins
    }

    /// Returns the key that was pushed last.
    pub(super) fn last(&self) -> Option<&[u8]> {
        self.ends.as_ref().map(|(_, last)| last.as_slice())
    }

    /// Returns the anchors.
    pub(super) fn finish(self) -> Anchors {
        let (first, last) = self.ends.unwrap_or_default();
        let mut directory = self.directory.finish(&first, &last);
        directory.offsets = Box::default();
        let skip = directory.prefix.bytes().len();
        if let Some(separator) = directory.separators.first_mut() {
            *separator = word_at(&first, skip);
        }
        (directory.radix, directory.radix_shift) = coarse_table(&directory.separators);
        Anchors { directory }
    }
}

/// Returns a search table of one byte per anchor.
fn coarse_table(separators: &[u64]) -> (Box<[u32]>, u32) {
    let (fine, shift) = radix_table(separators);
    let Some((end, slots)) = fine.split_last() else { return (fine, shift) };
    if slots.len() < 1 << COARSER_BITS || shift + COARSER_BITS >= u64::BITS {
        return (fine, shift);
    }
    let coarse = slots.iter().step_by(1 << COARSER_BITS).chain([end]).copied().collect();
    (coarse, shift + COARSER_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchors(keys: &[&[u8]], every: usize) -> Anchors {
        let (mut builder, mut count) = (AnchorsBuilder::default(), 0);
        for key in keys {
            count = if builder.push(key, |_| count >= every) { 1 } else { count + 1 };
        }
        builder.finish()
    }

    #[test]
    fn segments_are_those_of_the_picture() {
        let keys: [&[u8]; 8] = [b"ant", b"bee", b"cat", b"cow", b"dog", b"elk", b"fox", b"gnu"];
        let anchors = anchors(&keys, 2);
        assert_eq!(anchors.segments(), 6);
        let starts: Vec<_> = (0..6).map(|segment| anchors.start(segment)).collect();
        let expected: [&[u8]; 6] = [b"", b"ant", b"c", b"d", b"f", b"gnu"];
        assert_eq!(starts, expected);
        for (key, segment) in [
            (&b""[..], 0),
            (b"ans", 0),
            (b"ant", 1),
            (b"bzz", 1),
            (b"c", 2),
            (b"czz", 2),
            (b"d", 3),
            (b"f", 4),
            (b"gnu", 4),
            (b"gnu\0", 4),
            (b"gnu\x01", 5),
        ] {
            assert_eq!(anchors.segment_of(key), segment, "{}", key.escape_ascii());
        }
    }

    #[test]
    fn one_bit_string_is_in_one_segment() {
        let zeros: Vec<Vec<u8>> = (0..40).map(|len| vec![0; len]).collect();
        let keys: Vec<&[u8]> = zeros.iter().map(Vec::as_slice).collect();
        let anchors = anchors(&keys, 1);
        assert_eq!(anchors.segments(), 3);
        assert!(keys.iter().all(|key| anchors.segment_of(key) == 1));
        assert_eq!(anchors.start(1), b"");
        assert_eq!(anchors.segment_of(b"\0\x01"), 2);
    }

    #[test]
    fn without_keys_all_is_above() {
        let anchors = anchors(&[], 1);
        assert_eq!(
            (anchors.segments(), anchors.segment_of(b""), anchors.segment_of(b"x")),
            (2, 1, 1)
        );
        assert_eq!(anchors.start(1), b"");
    }
}
