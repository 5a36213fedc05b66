//! Fence pointers: one separator per block in memory, which leads from a key to its block.
//! ```text
//! blocks       0        1        2        3
//! separators       f1       f2       f3           keys of block i-1  <  f_i  <=  keys of block i
//! find(key)    the last block whose separator is at or before the key
//! ```
//! Invariant: separators ascend. They are searched by their heads: the eight bytes behind the
//! prefix that all share, as a number. Longer separators keep their tails to break ties. If the
//! versions of a key fill several blocks, the key is the separator of each but the first. These
//! blocks are listed in `continued`.

use std::cmp::Ordering;
use std::ops::Range;

use trommel_filters::prefetch_lines;

use crate::entries::keys::{common_prefix, first_not, key_head};

const HEAD_BYTES: usize = size_of::<u64>();
/// The length that stands for every separator with a tail.
const LONG: u8 = HEAD_BYTES as u8 + 1;
/// One head in this many is sampled. The samples of a large table stay in the fast processor
/// caches.
const SAMPLE_EVERY: usize = 64;

/// Bytes of a separator beyond those that distinguish the two keys. They keep it close to the
/// lesser key.
const NEARER_BYTES: usize = 2;

/// Returns a short key after `before` and at or before `key`, close to `before`. So a seek of a key
/// between the two finds the next block at once. Requires: before < key.
pub(crate) fn separator(before: &[u8], key: &[u8]) -> Vec<u8> {
    assert!(before < key, "{before:?} is not before {key:?}");
    let common = common_prefix(before, key);
    match before.get(..common + 1 + NEARER_BYTES) {
        Some(start) => {
            // The start of `before` as a number, plus one. It ends with the byte that grows.
            let grows = start.iter().rposition(|byte| *byte < u8::MAX).unwrap_or(common);
            let mut separator = start[..=grows].to_vec();
            separator[grows] += 1;
            separator
        }
        None if before.len() < key.len() => [before, &[0]].concat(),
        None => key[..=common].to_vec(),
    }
}

/// The separators of blocks 1, 2, …. Block 0 has none.
#[derive(Clone, Debug)]
pub(crate) struct Fences {
    prefix: Box<[u8]>,
    heads: Vec<u64>,
    samples: Vec<u64>,
    /// Lengths behind the prefix, capped at `LONG`.
    lens: Vec<u8>,
    /// The end of each tail in `tails`. Empty if no separator has a tail.
    tail_ends: Vec<usize>,
    tails: Vec<u8>,
    /// Blocks that begin with the last key of the previous block.
    continued: Vec<u32>,
}

#[inline]
fn short_len(rest: &[u8]) -> u8 {
    rest.len().min(LONG as usize) as u8
}

impl Fences {
    /// Builds the fences. Separator i belongs to block i + 1; `continued` ascends. `None`:
    /// separators descend, or a repeated one does not belong to a continued block.
    pub(crate) fn new(separators: &[&[u8]], continued: Vec<u32>) -> Option<Fences> {
        let ascending =
            separators.windows(2).enumerate().all(|(at, pair)| match pair[0].cmp(pair[1]) {
                Ordering::Less => true,
                Ordering::Equal => continued.binary_search(&(at as u32 + 2)).is_ok(),
                Ordering::Greater => false,
            });
        if !ascending {
            return None;
        }
        let first = separators.first().copied().unwrap_or_default();
        let last = separators.last().copied().unwrap_or_default();
        let prefix = &first[..common_prefix(first, last)];
        let rests = || separators.iter().map(|separator| &separator[prefix.len()..]);
        let heads: Vec<u64> = rests().map(key_head).collect();
        let (mut tails, mut tail_ends) = (Vec::new(), Vec::new());
        if rests().any(|rest| rest.len() > HEAD_BYTES) {
            tail_ends.reserve_exact(heads.len());
            for rest in rests() {
                tails.extend_from_slice(rest.get(HEAD_BYTES..).unwrap_or(&[]));
                tail_ends.push(tails.len());
            }
            tails.shrink_to_fit();
        }
        Some(Fences {
            samples: heads.iter().copied().step_by(SAMPLE_EVERY).collect(),
            lens: rests().map(short_len).collect(),
            prefix: prefix.into(),
            heads,
            tail_ends,
            tails,
            continued,
        })
    }

    /// Returns the first block that may contain `key`. All entries of earlier blocks are before the
    /// key.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        let block = self.last_of(key);
        if self.continues(block, key) { self.first_of(block, key) } else { block }
    }

    /// Returns the first block that contains `key`. Requires: `block` begins with it, and the block
    /// before ends with it.
    #[cold]
    fn first_of(&self, block: usize, key: &[u8]) -> usize {
        let rest = key.strip_prefix(&*self.prefix).unwrap_or_default();
        let head = key_head(rest);
        // Separators equal to the key belong to blocks that continue it, and perhaps to the one
        // that begins with it.
        let low = first_not(0..block - 1, |place| self.compare(place, head, rest).is_lt());
        if self.continues(low + 1, key) { low } else { low + 1 }
    }

    /// Prefetches the heads where the search for `key` will end.
    #[inline]
    pub(crate) fn prefetch(&self, key: &[u8]) {
        const LINES: usize = SAMPLE_EVERY * HEAD_BYTES / 64;
        if let Some(rest) = key.strip_prefix(&*self.prefix) {
            prefetch_lines(&self.heads, self.sampled(key_head(rest)).start, LINES);
        }
    }

    /// Whether `block` begins with `key`, and the block before ends with it. False: one of them
    /// lacks it.
    #[inline]
    pub(crate) fn continues(&self, block: usize, key: &[u8]) -> bool {
        !self.continued.is_empty()
            && self.continued.binary_search(&(block as u32)).is_ok()
            && key.strip_prefix(&*self.prefix).is_some_and(|rest| {
                self.compare(block - 1, key_head(rest), rest) == Ordering::Equal
            })
    }

    /// Returns the last block that may contain `key`: the number of separators at or before it.
    #[inline]
    pub(crate) fn last_of(&self, key: &[u8]) -> usize {
        let Some(rest) = key.strip_prefix(&*self.prefix) else {
            return if key < &*self.prefix { 0 } else { self.heads.len() };
        };
        let head = key_head(rest);
        let Range { start, end } = self.sampled(head);
        let low = start + self.heads[start..end].partition_point(|&other| other < head);
        if self.heads.get(low) != Some(&head) {
            return low;
        }
        let ties = self.heads[low..].partition_point(|&other| other == head);
        first_not(low..low + ties, |place| self.compare(place, head, rest).is_le())
    }

    /// Returns the range between two samples. All heads before it are below `head`, and none
    /// behind.
    #[inline]
    fn sampled(&self, head: u64) -> Range<usize> {
        let sample = self.samples.partition_point(|&other| other < head);
        let start = sample.saturating_sub(1) * SAMPLE_EVERY;
        start..(sample * SAMPLE_EVERY).min(self.heads.len())
    }

    /// Compares a separator with the key that has this head, and `rest` behind the prefix.
    fn compare(&self, place: usize, head: u64, rest: &[u8]) -> Ordering {
        let heads = self.heads[place].cmp(&head);
        let lens = || self.lens[place].cmp(&short_len(rest));
        heads.then_with(lens).then_with(|| match rest.get(HEAD_BYTES..) {
            Some(tail) if self.lens[place] == LONG => self.tail(place).cmp(tail),
            _ => Ordering::Equal,
        })
    }

    /// Requires: there are tails.
    fn tail(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.tail_ends[before]);
        &self.tails[start..self.tail_ends[place]]
    }

    /// The heap memory, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        (self.heads.capacity() + self.samples.capacity()) * HEAD_BYTES
            + self.lens.capacity()
            + self.tail_ends.capacity() * size_of::<usize>()
            + self.tails.capacity()
            + self.continued.capacity() * size_of::<u32>()
            + self.prefix.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fences(separators: &[Vec<u8>]) -> Fences {
        let views: Vec<&[u8]> = separators.iter().map(Vec::as_slice).collect();
        let doubled = views.windows(2).enumerate().filter(|(_, pair)| pair[0] == pair[1]);
        let continued = doubled.map(|(at, _)| at as u32 + 2).collect();
        Fences::new(&views, continued).expect("sorted")
    }

    #[test]
    fn a_separator_is_short_and_near_the_key_before() {
        assert_eq!(separator(b"abc", b"abde"), b"abc\0");
        assert_eq!(separator(b"abc", b"abd"), b"abd");
        assert_eq!(separator(b"abcdefg", b"abx"), b"abcdf");
        assert_eq!(separator(b"abc\xff\xffg", b"abd"), b"abd");
        assert_eq!(separator(b"ab", b"ab\0\0"), b"ab\0");
        assert_eq!(separator(b"", b"xyz"), b"\0");
    }

    proptest! {
        #[test]
        fn a_separator_is_between_the_keys(
            one in prop::collection::vec(prop::sample::select(vec![0u8, 1, 0xfe, 0xff]), 0..9),
            other in prop::collection::vec(prop::sample::select(vec![0u8, 1, 0xfe, 0xff]), 0..9),
        ) {
            let (before, key) = (one.clone().min(other.clone()), one.max(other));
            prop_assume!(before < key);
            let separator = separator(&before, &key);
            prop_assert!(before < separator && separator <= key, "{:?}", separator);
            prop_assert!(separator.len() <= before.len().max(key.len()));
        }
    }

    #[test]
    fn one_block_needs_no_separator() {
        let none = fences(&[]);
        assert_eq!((none.find(b""), none.find(b"x"), none.continues(1, b"x")), (0, 0, false));
    }

    #[test]
    fn separators_that_descend_are_refused() {
        assert!(Fences::new(&[b"b", b"a"], vec![]).is_none());
        assert!(Fences::new(&[b"a", b"a"], vec![]).is_none());
        assert!(Fences::new(&[b"a", b"a"], vec![2]).is_some());
    }

    #[test]
    fn a_key_over_several_blocks_begins_in_the_first() {
        // Block 1 ends with "key", which fills block 2 and begins block 3.
        let separators: [&[u8]; 4] = [b"ka", b"key", b"key", b"kez"];
        let fences = Fences::new(&separators, vec![2, 3]).unwrap();
        assert_eq!(fences.find(b"key"), 1);
        assert!(fences.continues(2, b"key") && fences.continues(3, b"key"));
        assert!(!fences.continues(4, b"key") && !fences.continues(2, b"kex"));
        assert_eq!((fences.find(b"kex"), fences.find(b"key\0"), fences.find(b"kez")), (1, 3, 4));
        assert_eq!((fences.last_of(b"key"), fences.last_of(b"kex")), (3, 1));
        // Block 2 begins with "key", which no earlier block has.
        let fences = Fences::new(&separators, vec![3]).unwrap();
        assert_eq!((fences.find(b"key"), fences.last_of(b"key")), (2, 3));
    }

    proptest! {
        #[test]
        fn the_last_separator_not_after_the_key_is_found(
            prefix in prop::collection::vec(any::<u8>(), 0..12),
            ends in prop::collection::vec(
                prop::collection::vec(prop::sample::select(vec![0u8, 1, 0xff]), 0..14), 1..300),
            probes in prop::collection::vec(
                prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 0xff]), 0..14), 1..50),
        ) {
            let mut separators: Vec<Vec<u8>> =
                ends.iter().map(|end| [&prefix[..], end].concat()).collect();
            separators.sort();
            separators.dedup();
            let fences = fences(&separators);
            let with_prefix = probes.iter().chain(&ends).map(|end| [&prefix[..], end].concat());
            let mut keys: Vec<Vec<u8>> = with_prefix.collect();
            keys.extend(probes);
            keys.extend((0..prefix.len()).map(|len| prefix[..len].to_vec()));
            for key in keys {
                let expected = separators.iter().filter(|separator| **separator <= key).count();
                prop_assert_eq!(fences.find(&key), expected, "{:?}", key);
            }
        }

        #[test]
        fn many_numbers_are_found(numbers in prop::collection::btree_set(any::<u64>(), 0..2000)) {
            let separators: Vec<_> = numbers.iter().map(|n| n.to_be_bytes().to_vec()).collect();
            let fences = fences(&separators);
            for (place, number) in numbers.iter().enumerate() {
                prop_assert_eq!(fences.find(&number.to_be_bytes()), place + 1);
                if let Some(before) = number.checked_sub(1) {
                    let there = usize::from(numbers.contains(&before));
                    prop_assert_eq!(fences.find(&before.to_be_bytes()), place.max(there));
                }
            }
            prop_assert!(fences.heap_bytes() <= numbers.len() * 10 + 40);
        }
    }
}
