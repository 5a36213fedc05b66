//! Keys as numbers: their bytes after the common prefix of a table.
//! ```text
//! keys     "user/0017"  "user/0042"  "user/1000"
//! prefix   "user/"                                shared by all, left out
//! numbers   "0017"       "0042"       "1000"      big-endian: up to eight bytes, as many as the
//!                                                 longest key has left, padded with zeros
//! ```
//! Invariant: of two keys in the table, the smaller one has no larger number. Different keys may
//! have the same number, except in an *exact* space, where all keys have the same length and none
//! is truncated.

use trommel_filters::bits::key_bits::word_at;
use trommel_filters::hash::{HashUse, hash_key};
use trommel_filters::{Corrupt, KeyRange, OutOfOrder, Reader, Writer};

/// The maximum length of the prefix, in bytes.
const PREFIX_BYTES_MAX: usize = u8::MAX as usize;
const NUMBER_BYTES_MAX: usize = size_of::<u64>();
/// A flag in the byte that has the length of numbers.
const EXACT: u8 = 0x80;

/// How the keys of a table map to numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NumberSpace {
    prefix: Box<[u8]>,
    /// Bytes per number, 1 to 8.
    number_bytes: usize,
    exact: bool,
}

impl NumberSpace {
    /// Bits per number: a multiple of eight, 8 to 64.
    pub(crate) fn bits(&self) -> u32 {
        self.number_bytes as u32 * u8::BITS
    }

    /// Whether different keys have different numbers.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns the largest number.
    pub(crate) fn last(&self) -> u64 {
        u64::MAX >> (u64::BITS - self.bits())
    }

    /// Returns the number of a key. None: the table has no such key.
    #[inline]
    pub(crate) fn of_key(&self, key: &[u8]) -> Option<u64> {
        let wrong_length = self.exact && key.len() != self.prefix.len() + self.number_bytes;
        (!wrong_length && key.starts_with(&self.prefix)).then(|| self.number_in(key))
    }

    /// Returns the number of a key that begins with the prefix.
    #[inline]
    fn number_in(&self, key: &[u8]) -> u64 {
        word_at(key, self.prefix.len()) >> (u64::BITS - self.bits())
    }

    /// Returns the smallest and the largest number that a key in the range may have. None: the
    /// table has no key there.
    pub(crate) fn of_range(&self, range: &KeyRange<'_>) -> Option<(u64, u64)> {
        let lowest = self.lowest(range.lower())?;
        let highest = range.upper().map_or(Some(self.last()), |upper| self.highest(upper))?;
        (lowest <= highest).then_some((lowest, highest))
    }

    fn lowest(&self, lower: &[u8]) -> Option<u64> {
        if lower.starts_with(&self.prefix) {
            let number = self.number_in(lower);
            // Keys that are prefixes of the bound come before it.
            let extended = self.exact && lower.len() > self.prefix.len() + self.number_bytes;
            let lowest = if extended { number.checked_add(1)? } else { number };
            return (lowest <= self.last()).then_some(lowest);
        }
        (*lower < *self.prefix).then_some(0)
    }

    fn highest(&self, upper: &[u8]) -> Option<u64> {
        if upper.starts_with(&self.prefix) {
            let number = self.number_in(upper);
            // Keys that continue the bound come after it.
            let cut = self.exact && upper.len() < self.prefix.len() + self.number_bytes;
            return if cut { number.checked_sub(1) } else { Some(number) };
        }
        (*upper > *self.prefix).then(|| self.last())
    }

    /// Writes the length of the prefix, the bytes per number, and the prefix.
    pub(crate) fn write(&self, out: &mut Writer) {
        out.u8(self.prefix.len() as u8);
        out.u8(self.number_bytes as u8 | if self.exact { EXACT } else { 0 });
        out.bytes(&self.prefix);
    }

    /// The number of bytes that `write` appends.
    pub(crate) fn written_bytes(&self) -> usize {
        2 + self.prefix.len()
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, Corrupt> {
        let prefix_len = usize::from(input.u8()?);
        let lengths = input.u8()?;
        let number_bytes = usize::from(lengths & !EXACT);
        if !(1..=NUMBER_BYTES_MAX).contains(&number_bytes) {
            return Err(input.corrupt("a number of one to eight bytes"));
        }
        let prefix = input.bytes(prefix_len)?.into();
        Ok(NumberSpace { prefix, number_bytes, exact: lengths & EXACT != 0 })
    }
}

/// The keys of a table as numbers.
pub(crate) struct Numbers {
    pub(crate) space: NumberSpace,
    /// Ascending and distinct.
    pub(crate) numbers: Vec<u64>,
    /// The hash of every key for [`HashUse::Table`], in key order.
    pub(crate) hashes: Vec<u64>,
}

/// Collects keys as numbers after the common prefix of the keys so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberCollector {
    /// The first key, truncated to the maximum prefix.
    head: Vec<u8>,
    last: Vec<u8>,
    /// For each length of the common prefix, which only shrinks, the first key with that length.
    eras: Vec<(usize, usize)>,
    numbers: Vec<u64>,
    hashes: Vec<u64>,
    shortest: usize,
    longest: usize,
}

impl NumberCollector {
    /// The number of distinct keys.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Adds the next key. Skips a key that equals the previous one.
    pub(crate) fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        let Some(&(_, prefix_len)) = self.eras.last() else {
            self.head = key[..key.len().min(PREFIX_BYTES_MAX)].to_vec();
            self.eras.push((0, self.head.len()));
            (self.shortest, self.longest) = (key.len(), key.len());
            self.push(key, self.head.len());
            return Ok(());
        };
        if key <= &self.last[..] {
            return match key == self.last {
                true => Ok(()),
                false => Err(OutOfOrder { last: self.last.clone(), key: key.to_vec() }),
            };
        }
        let common = common_bytes(key, &self.head[..prefix_len]);
        if common < prefix_len {
            self.eras.push((self.len(), common));
        }
        self.shortest = self.shortest.min(key.len());
        self.longest = self.longest.max(key.len());
        self.push(key, common);
        Ok(())
    }

    fn push(&mut self, key: &[u8], prefix_len: usize) {
        self.numbers.push(word_at(key, prefix_len));
        self.hashes.push(hash_key(key, HashUse::Table));
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    /// Returns the numbers of all keys. None: no key was added.
    pub(crate) fn finish(mut self) -> Option<Numbers> {
        let &(_, prefix_len) = self.eras.last()?;
        self.extend_to(prefix_len);
        let behind = self.longest - prefix_len;
        let number_bytes = behind.clamp(1, NUMBER_BYTES_MAX);
        let exact = self.shortest == self.longest && behind == number_bytes;
        let unused = u64::BITS - number_bytes as u32 * u8::BITS;
        self.numbers.iter_mut().for_each(|number| *number >>= unused);
        self.numbers.dedup();
        let prefix = self.head[..prefix_len].into();
        let space = NumberSpace { prefix, number_bytes, exact };
        Some(Numbers { space, numbers: self.numbers, hashes: self.hashes })
    }

    /// Prepends to each number the bytes that were left out beyond `prefix_len` bytes.
    fn extend_to(&mut self, prefix_len: usize) {
        let ends = self.eras.iter().skip(1).map(|&(from, _)| from).chain([self.numbers.len()]);
        for (&(from, cut), to) in self.eras.iter().zip(ends) {
            let lost = cut - prefix_len;
            let front = word_at(&self.head[..cut], prefix_len);
            for number in &mut self.numbers[from..to] {
                let rest = number.checked_shr(lost as u32 * u8::BITS).unwrap_or(0);
                *number = front | rest;
            }
        }
    }
}

pub(crate) fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns the number of distinct prefixes of ascending numbers, without their last 0, 1, 2, …
/// bits.
pub(crate) fn distinct_prefixes(numbers: &[u64], bits: u32) -> Vec<u64> {
    let mut highest_differing = [0u64; u64::BITS as usize];
    for pair in numbers.windows(2) {
        highest_differing[(pair[0] ^ pair[1]).ilog2() as usize] += 1;
    }
    let above: u64 = highest_differing[bits as usize..].iter().sum();
    let mut count = u64::from(!numbers.is_empty()) + above;
    let mut counts: Vec<u64> = (0..bits as usize)
        .rev()
        .map(|level| {
            count += highest_differing[level];
            count
        })
        .collect();
    counts.reverse();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(keys: &[&[u8]]) -> Numbers {
        let mut collector = NumberCollector::default();
        keys.iter().for_each(|key| collector.add(key).expect("ascending"));
        collector.finish().expect("some key")
    }

    #[test]
    fn what_keys_share_is_cut_off() {
        let found = collected(&[b"user/0017", b"user/0042", b"user/1000"]);
        assert_eq!((&*found.space.prefix, found.space.bits()), (&b"user/"[..], 32));
        assert!(found.space.is_exact());
        let expected = [b"0017", b"0042", b"1000"].map(|rest| u64::from(u32::from_be_bytes(*rest)));
        assert_eq!(found.numbers, expected);
        assert_eq!(found.space.of_key(b"user/0042"), Some(expected[1]));
        for stranger in [&b"user/00420"[..], b"user/004", b"usr/0042", b""] {
            assert_eq!(found.space.of_key(stranger), None);
        }
    }

    #[test]
    fn numbers_are_those_of_the_keys_whatever_was_cut_off_when_they_came() {
        let long = [b'x'; 300];
        let mut keys: Vec<Vec<u8>> = vec![vec![]];
        for len in [1, 5, 7, 8, 9, 30, 254, 255, 256, 290] {
            keys.extend([0u8, 1, 0xff].map(|last| [&long[..len], &[last, 7, 200]].concat()));
        }
        keys.sort();
        for from in 0..keys.len() {
            let some: Vec<&[u8]> = keys[from..].iter().map(|key| &key[..]).collect();
            let found = collected(&some);
            let numbers = some.iter().map(|key| found.space.of_key(key).expect("stored"));
            let mut numbers: Vec<u64> = numbers.collect();
            assert!(numbers.is_sorted(), "from {from}");
            numbers.dedup();
            assert_eq!(numbers, found.numbers, "from {from}");
            assert_eq!(found.hashes.len(), some.len());
        }
    }

    #[test]
    fn ranges_reach_as_far_as_keys_may_lie() {
        let exact = collected(&[b"a10", b"a20", b"a30"]).space;
        let of = |lower: &'static [u8], upper: Option<&'static [u8]>| {
            exact.of_range(&KeyRange::new(lower, upper).expect("in order"))
        };
        let number = |text: &[u8; 2]| u64::from(u16::from_be_bytes(*text));
        assert_eq!(of(b"", None), Some((0, 0xffff)));
        assert_eq!(of(b"a10", Some(b"a20")), Some((number(b"10"), number(b"20"))));
        assert_eq!(of(b"a10\0", Some(b"a2")), Some((number(b"10") + 1, number(b"2\0") - 1)));
        assert_eq!(of(b"a10\0", Some(b"a10\xff")), None, "no key has four bytes");
        assert_eq!(of(b"a\xff\xff\0", None), None);
        assert_eq!(of(b"", Some(b"a")), None);
        assert_eq!(of(b"", Some(b"A")), None);
        assert_eq!(of(b"b", None), None);
        assert_eq!(of(b"A", Some(b"b")), Some((0, 0xffff)));
    }

    #[test]
    fn keys_of_many_lengths_are_not_exact() {
        let found = collected(&[b"a", b"a\0", b"ab", b"abcdefghijkl"]);
        assert!(!found.space.is_exact());
        assert_eq!((&*found.space.prefix, found.space.bits()), (&b"a"[..], 64));
        assert_eq!(found.numbers, [0, 0x6200 << 48, 0x6263_6465_6667_6869]);
        let one = collected(&[b"drum"]);
        assert_eq!((one.space.bits(), one.numbers), (8, vec![0]));
        assert!(!one.space.is_exact());
    }

    #[test]
    fn disorder_is_refused_and_changes_nothing() {
        let mut collector = NumberCollector::default();
        collector.add(b"b").expect("first");
        collector.add(b"b").expect("again");
        assert!(collector.add(b"a").is_err());
        collector.add(b"c").expect("ascending");
        assert_eq!(collector.len(), 2);
        assert!(NumberCollector::default().finish().is_none());
    }

    #[test]
    fn prefixes_are_counted_per_level() {
        assert_eq!(distinct_prefixes(&[0b000, 0b001, 0b100, 0b111], 8)[..4], [4, 3, 2, 1]);
        assert_eq!(distinct_prefixes(&[7], 16), vec![1; 16]);
        assert_eq!(distinct_prefixes(&[0, 1, 1 << 60], 2), [3, 2], "levels above differ");
    }

    #[test]
    fn a_space_is_read_as_it_was_written() {
        for keys in [&[&b"drum"[..]][..], &[b"a10", b"a20"], &[b"", b"\0", b"sieve and drum"]] {
            let space = collected(keys).space;
            let mut out = Writer::new();
            space.write(&mut out);
            let bytes = out.finish();
            assert_eq!(bytes.len(), space.written_bytes());
            assert_eq!(NumberSpace::read(&mut Reader::new(&bytes)), Ok(space));
            assert!(NumberSpace::read(&mut Reader::new(&bytes[..1])).is_err());
        }
        assert!(NumberSpace::read(&mut Reader::new(&[0, 9])).is_err());
        assert!(NumberSpace::read(&mut Reader::new(&[0, 0])).is_err());
    }
}
