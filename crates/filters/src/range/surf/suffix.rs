//! Suffixes: what is stored of a key after its shortest distinguishing prefix.
//! ```text
//! key            s i g m o d ...          prefix "sig m"
//! suffix         [ real: the bits after the prefix | hash: low bits of the key's hash ]
//! ```
//! Invariant: the suffix computed for a stored key equals the stored one. Its real bits continue
//! with zeros past the key's end, and never contradict the order of keys.

use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

/// What a SuRF stores of a key after its shortest distinguishing prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SurfKind {
    /// Nothing (SuRF-Base).
    Base,
    /// Bits of the key's hash (SuRF-Hash).
    Hash,
    /// The next bits of the key (SuRF-Real).
    Real,
    /// Both (SuRF-Mixed).
    Mixed,
}

impl SurfKind {
    /// All kinds.
    pub const ALL: [SurfKind; 4] =
        [SurfKind::Base, SurfKind::Hash, SurfKind::Real, SurfKind::Mixed];

    /// The number that identifies the kind in files.
    pub(super) const fn tag(self) -> u16 {
        match self {
            SurfKind::Base => 6,
            SurfKind::Hash => 7,
            SurfKind::Real => 8,
            SurfKind::Mixed => 9,
        }
    }

    /// Returns the kind with a tag. None: no kind of SuRF has it.
    pub(super) fn from_tag(tag: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tag() == tag)
    }
}

/// The length of suffixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SurfSuffix {
    /// The most bits with which the filter keeps to its bits per key.
    #[default]
    Fitted,
    /// These lengths, at most 64 bits together, whatever the size becomes. A kind ignores what it
    /// does not store: `surf-hash` real bits, `surf-real` hash bits.
    Bits {
        /// Hash bits. Each halves the false positives of point queries.
        hash: u32,
        /// Bits of the key itself. They reduce false positives of points, and of ranges that begin
        /// or end next to a key.
        real: u32,
    },
}

/// Writes `fit`, or the numbers of hash bits and of real bits.
impl fmt::Display for SurfSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SurfSuffix::Fitted => f.write_str("fit"),
            SurfSuffix::Bits { hash, real } => write!(f, "hash:{hash}+real:{real}"),
        }
    }
}

impl FromStr for SurfSuffix {
    /// The error lists the allowed values.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || "there are: fit, hash:BITS, real:BITS, hash:BITS+real:BITS".to_string();
        if text == "fit" {
            return Ok(SurfSuffix::Fitted);
        }
        let (mut hash, mut real) = (None, None);
        for part in text.split('+') {
            let (name, bits) = part.split_once(':').ok_or_else(known)?;
            let place = match name {
                "hash" => &mut hash,
                "real" => &mut real,
                _ => return Err(known()),
            };
            let bits = bits.parse::<u32>().map_err(|_| known())?;
            if place.replace(bits).is_some() {
                return Err(known());
            }
        }
        Ok(SurfSuffix::Bits { hash: hash.unwrap_or(0), real: real.unwrap_or(0) })
    }
}

/// The maximum length of a suffix, in bits.
pub(super) const SUFFIX_BITS_MAX: u32 = u64::BITS;

/// The lengths of a filter's suffixes; at most [`SUFFIX_BITS_MAX`] together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SuffixBits {
    pub(super) hash: u32,
    pub(super) real: u32,
}

impl SuffixBits {
    /// Returns how `kind` divides a suffix of `total` bits. Monotone: a larger total never reduces
    /// either part.
    pub(super) fn of_kind(kind: SurfKind, total: u32) -> Self {
        match kind {
            SurfKind::Hash => SuffixBits { hash: total, real: 0 },
            SurfKind::Real => SuffixBits { hash: 0, real: total },
            SurfKind::Mixed => SuffixBits { hash: total / 2, real: total - total / 2 },
            _ => SuffixBits::default(),
        }
    }

    /// Returns the given lengths without what `kind` does not store, limited to the maximum.
    pub(super) fn explicit(kind: SurfKind, hash: u32, real: u32) -> Self {
        let (hash, real) = match kind {
            SurfKind::Base => (0, 0),
            SurfKind::Hash => (hash, 0),
            SurfKind::Real => (0, real),
            SurfKind::Mixed => (hash, real),
        };
        let real = real.min(SUFFIX_BITS_MAX);
        SuffixBits { hash: hash.min(SUFFIX_BITS_MAX - real), real }
    }

    /// Whether `kind` can have these lengths.
    pub(super) fn fit(self, kind: SurfKind) -> bool {
        self.total() <= SUFFIX_BITS_MAX && self == Self::explicit(kind, self.hash, self.real)
    }

    #[inline(always)]
    pub(super) fn total(self) -> u32 {
        self.hash + self.real
    }

    /// Returns the suffix of a key with this hash; `rest` follows its prefix.
    #[inline(always)]
    pub(super) fn of(self, rest: &[u8], hash: u64) -> u64 {
        let hash_bits = hash & low_ones(self.hash);
        match self.real {
            0 => hash_bits,
            real => leading_bits(rest, real) << self.hash | hash_bits,
        }
    }

    /// Compares the key of a stored suffix with a key that has the same prefix and then `rest`, by
    /// real bits. `Equal`: the order is unknown.
    #[inline(always)]
    pub(super) fn order(self, stored: u64, rest: &[u8]) -> Ordering {
        match self.real {
            0 => Ordering::Equal,
            real => (stored >> self.hash).cmp(&leading_bits(rest, real)),
        }
    }

    /// Returns the smallest bytes that the key of a stored suffix can have after its prefix.
    pub(super) fn least_rest(self, stored: u64) -> Vec<u8> {
        if self.real == 0 {
            return Vec::new();
        }
        let bytes = (stored >> self.hash << (u64::BITS - self.real)).to_be_bytes();
        let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        bytes[..len].to_vec()
    }

    /// Shortens a stored suffix to the lengths `to`. Requires: neither is longer than now.
    #[inline(always)]
    pub(super) fn cut(self, stored: u64, to: SuffixBits) -> u64 {
        let hash = stored & low_ones(to.hash);
        if to.real == 0 {
            return hash;
        }
        stored >> self.hash >> (self.real - to.real) << to.hash | hash
    }
}

#[inline(always)]
fn low_ones(len: u32) -> u64 {
    if len == u64::BITS { u64::MAX } else { (1 << len) - 1 }
}

/// Returns the first `len` bits of a byte string, which is padded with zeros. Requires: 0 < `len`
/// <= 64.
#[inline(always)]
fn leading_bits(bytes: &[u8], len: u32) -> u64 {
    let word = match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => bytes.iter().rev().fold(0, |word, &byte| word >> 8 | u64::from(byte) << 56),
    };
    word >> (u64::BITS - len)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [(u32, u32); 9] =
        [(0, 0), (1, 0), (0, 1), (7, 9), (64, 0), (0, 64), (32, 32), (1, 63), (63, 1)];

    #[test]
    fn suffixes_never_contradict_the_order_of_keys() {
        let mut tails: Vec<&[u8]> = vec![b"", b"\0", b"\0\0", b"\0a", b"a", b"ab", b"ab\0", b"b"];
        tails.extend([&b"abcdefgh"[..], b"abcdefghi", b"abcdefgi", &[0xff; 12]]);
        tails.sort();
        for (hash, real) in LENGTHS {
            let bits = SuffixBits { hash, real };
            for (place, low) in tails.iter().enumerate() {
                let stored = bits.of(low, 0x9e37_79b9_7f4a_7c15);
                assert!(bits.least_rest(stored)[..] <= **low, "{low:?}, {bits:?}");
                assert_eq!(bits.order(stored, low), Ordering::Equal);
                for high in &tails[place..] {
                    assert_ne!(bits.order(stored, high), Ordering::Greater, "{low:?}, {high:?}");
                }
            }
        }
    }

    #[test]
    fn a_cut_suffix_is_the_one_of_the_shorter_lengths() {
        let (rest, hash) = (b"trommel", 0xdead_beef_0bad_cafe);
        for kind in [SurfKind::Hash, SurfKind::Real, SurfKind::Mixed] {
            for (from, to) in (0..=64).flat_map(|from| (0..=from).map(move |to| (from, to))) {
                let (from, to) = (SuffixBits::of_kind(kind, from), SuffixBits::of_kind(kind, to));
                assert_eq!(from.cut(from.of(rest, hash), to), to.of(rest, hash), "{from:?} {to:?}");
                assert!(from.fit(kind) && to.fit(kind));
            }
        }
    }

    #[test]
    fn a_kind_keeps_what_it_can_use() {
        let explicit = |kind, hash, real| {
            let bits = SuffixBits::explicit(kind, hash, real);
            assert!(bits.fit(kind));
            (bits.hash, bits.real)
        };
        assert_eq!(explicit(SurfKind::Base, 3, 4), (0, 0));
        assert_eq!(explicit(SurfKind::Hash, 99, 4), (64, 0));
        assert_eq!(explicit(SurfKind::Real, 3, 99), (0, 64));
        assert_eq!(explicit(SurfKind::Mixed, 30, 40), (24, 40));
        assert!(!SuffixBits { hash: 1, real: 0 }.fit(SurfKind::Real));
        assert!(!SuffixBits { hash: 33, real: 32 }.fit(SurfKind::Mixed));
    }
}
