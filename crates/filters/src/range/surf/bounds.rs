//! Upper bounds: where the keys at or before a query key end.
//! ```text
//! keys  far  fast  s  top       query: fat
//! seek  first leaf that may be at or after it: "s"
//!       surely after it, so take the previous leaf: "fas"
//! end   the smallest string above all with that leaf's prefix: "fat"
//! ```
//! Invariant: every key at or before the query key is below the end. If a leaf's key may be on
//! either side of the query key, the end is the successor of the query key.

use alloc::vec::Vec;

use super::cursor::SurfCursor;
use crate::base::filter::UpperBound;
use crate::bits::key_bits::after_all_with;

impl SurfCursor<'_> {
    /// Returns the bound of the keys at or before `key`.
    pub(super) fn upper_bound(&mut self, key: &[u8]) -> UpperBound {
        let after = [key, &[0]].concat();
        let may_be_before = self.seek(key);
        if may_be_before || self.prefix() == Some(key) {
            let unsure = may_be_before || !self.is_whole();
            return UpperBound::Before { end: after, unsure };
        }
        self.prev();
        match self.prefix() {
            None => UpperBound::Start,
            Some(_) => {
                let end = self.end().map_or(after.clone(), |end| end.min(after));
                UpperBound::Before { end, unsure: false }
            }
        }
    }

    /// Returns the smallest string that is surely above the key here, whatever follows its known
    /// bits. None: the cursor is at no key, or no string is above it.
    fn end(&self) -> Option<Vec<u8>> {
        let prefix = self.prefix()?;
        if self.is_whole() {
            return Some([prefix, &[0]].concat());
        }
        let (bits, count) = self.real_suffix();
        after_all_with([prefix, &filled_with_ones(bits, count)].concat())
    }
}

/// Returns the lowest `count` bits as bytes, padded with ones.
fn filled_with_ones(bits: u64, count: u32) -> Vec<u8> {
    let known = bits.checked_shl(u64::BITS - count).unwrap_or(0);
    let unknown = u64::MAX.checked_shr(count).unwrap_or(0);
    (known | unknown).to_be_bytes()[..count.div_ceil(8) as usize].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::filter::{TableFilter, TableFilterBuilder};
    use crate::range::surf::suffix::SurfKind;
    use crate::range::surf::{Surf, SurfBuilder, SurfOptions, SurfSuffix};

    fn surf(keys: &[&[u8]], real: u32) -> Surf<Vec<u8>> {
        let suffix = SurfSuffix::Bits { hash: 0, real };
        let options = SurfOptions { suffix, ..SurfOptions::default() };
        let mut builder = SurfBuilder::new(SurfKind::Real, 0.0, &options);
        keys.iter().for_each(|key| builder.add(key).expect("sorted"));
        Surf::read(builder.finish()).expect("whole")
    }

    fn before(end: &[u8], unsure: bool) -> Option<UpperBound> {
        Some(UpperBound::Before { end: end.to_vec(), unsure })
    }

    #[test]
    fn bits_become_bytes_that_go_on_with_ones() {
        assert_eq!(filled_with_ones(0, 0), [0; 0]);
        assert_eq!(filled_with_ones(0b101, 3), [0b1011_1111]);
        assert_eq!(filled_with_ones(0xab, 8), [0xab]);
        assert_eq!(filled_with_ones(0xab1, 12), [0xab, 0x1f]);
        assert_eq!(filled_with_ones(0x0102_0304_0506_0708, 64), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    /// The keys of the paper's Figure 1.
    #[test]
    fn the_keys_before_a_key_end_behind_the_leaf_before_it() {
        let keys: [&[u8]; 8] = [b"f", b"far", b"fas", b"fast", b"fat", b"s", b"top", b"toy"];
        let surf = surf(&keys, 0);
        assert_eq!(surf.upper_bound(b"fat"), before(b"fat\0", true), "or one that begins like it");
        assert_eq!(surf.upper_bound(b"fast"), before(b"fast\0", true));
        assert_eq!(surf.upper_bound(b"fas"), before(b"fas\0", false), "another goes on from it");
        assert_eq!(surf.upper_bound(b"fasa"), before(b"fas\0", false), "which is a whole key");
        assert_eq!(surf.upper_bound(b"faz"), before(b"fau", false));
        assert_eq!(surf.upper_bound(b"fz"), before(b"fau", false));
        assert_eq!(surf.upper_bound(b"star"), before(b"star\0", true), "s and what?");
        assert_eq!(surf.upper_bound(b"t"), before(b"t", false));
        assert_eq!(surf.upper_bound(b"zoo"), before(b"toz", false));
        assert_eq!(surf.upper_bound(b"e"), Some(UpperBound::Start));
        assert_eq!(surf.upper_bound(b""), Some(UpperBound::Start));
    }

    /// Pseudorandom numbers, with all kinds, suffixes and numbers of dense levels.
    #[test]
    fn the_end_lies_behind_the_last_key_and_most_often_close_to_it() {
        let mixed = |n: u64| {
            let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ mixed >> 27
        };
        let mut numbers: Vec<u64> = (1..3000).map(mixed).collect();
        numbers.sort_unstable();
        let keys: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_be_bytes()).collect();
        for (kind, bits, size_ratio) in [
            (SurfKind::Real, 32.0, 64),
            (SurfKind::Mixed, 40.0, 0),
            (SurfKind::Real, 14.0, u32::MAX),
            (SurfKind::Hash, 20.0, 64),
            (SurfKind::Base, 10.0, 64),
        ] {
            let options = SurfOptions { size_ratio, ..SurfOptions::default() };
            let mut builder = SurfBuilder::new(kind, bits, &options);
            keys.iter().for_each(|key| builder.add(key).expect("sorted"));
            let surf = Surf::read(builder.finish()).expect("whole");
            for asked in (5000..8000).map(mixed) {
                let last = numbers.partition_point(|&number| number <= asked).checked_sub(1);
                match surf.upper_bound(&asked.to_be_bytes()) {
                    Some(UpperBound::Before { end, .. }) => {
                        let last = last.map(|last| &keys[last][..]);
                        assert!(last.is_none_or(|last| last < &end[..]), "{kind:?}: {asked:x}");
                    }
                    Some(UpperBound::Start) => assert_eq!(last, None, "{kind:?}: {asked:x}"),
                    None => panic!("{kind:?} knows"),
                }
            }
        }
    }

    #[test]
    fn real_bits_bring_the_end_nearer() {
        let keys: [&[u8]; 3] = [b"drum", b"sieve\xff", b"\xff\xff\xff"];
        let surf = |real| surf(&keys, real);
        for (real, end) in
            [(0, &b"t"[..]), (4, b"sp"), (8, b"sj"), (12, b"sip"), (48, b"sieve\xff\x01")]
        {
            assert_eq!(surf(real).upper_bound(b"tin"), before(end, false), "{real} bits");
        }
        assert_eq!(surf(8).upper_bound(b"sj"), before(b"sj", false));
        assert_eq!(surf(8).upper_bound(b"sieve"), before(b"sieve\0", true));
        assert_eq!(surf(8).upper_bound(b"sa"), before(b"ds", false), "the leaf sought lies behind");
        let top = [0xff; 5];
        assert_eq!(surf(16).upper_bound(&top), before(&[&top[..], &[0]].concat(), true));
        assert_eq!(surf(24).upper_bound(&[0xff; 4]), before(b"\xff\xff\xff\x01", false));
    }
}
