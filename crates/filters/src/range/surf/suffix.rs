//! What is kept of a key behind the prefix that tells it from the others.
//! ```text
//! key            s i g m o d ...          prefix "sig m"
//! suffix         [ real: the bits after the prefix | hash: the least bits of the key's hash ]
//! ```
//! Invariant: a key's suffix equals the one asked for. Its real bits go on with zeros beyond the
//! key's end, and never contradict the order of keys.

use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

/// What a SuRF keeps of a key behind its shortest distinguishing prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SurfKind {
    /// Nothing.
    Base,
    /// Some bits of the key's hash.
    Hash,
    /// Some more bits of the key.
    Real,
    /// Some of both.
    Mixed,
}

impl SurfKind {
    /// Every kind there is.
    pub const ALL: [SurfKind; 4] =
        [SurfKind::Base, SurfKind::Hash, SurfKind::Real, SurfKind::Mixed];

    /// The number that names the kind in files.
    pub(super) const fn tag(self) -> u16 {
        match self {
            SurfKind::Base => 6,
            SurfKind::Hash => 7,
            SurfKind::Real => 8,
            SurfKind::Mixed => 9,
        }
    }

    /// None: no kind of SuRF has this tag.
    pub(super) fn from_tag(tag: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tag() == tag)
    }
}

/// How many bits of a key are kept behind its prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SurfSuffix {
    /// As many as bring the filter's size nearest to the bits per key that were asked for.
    #[default]
    Fitted,
    /// So many, whatever the size becomes; at most 64 together. What a kind does not keep is not
    /// kept: `surf-hash` no real bits, `surf-real` no hash.
    Bits {
        /// Bits of the key's hash: fewer false positives for single keys. Each halves them.
        hash: u32,
        /// Bits of the key itself: fewer false positives for keys and ranges that begin or end
        /// beside a key.
        real: u32,
    },
}

/// `fit`, or bits of a key's hash and of the key itself.
impl fmt::Display for SurfSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SurfSuffix::Fitted => f.write_str("fit"),
            SurfSuffix::Bits { hash, real } => write!(f, "hash:{hash}+real:{real}"),
        }
    }
}

impl FromStr for SurfSuffix {
    /// What there is.
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

/// The most bits of a suffix.
pub(super) const SUFFIX_BITS_MAX: u32 = u64::BITS;

/// The lengths of a filter's suffixes. Together at most [`SUFFIX_BITS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SuffixBits {
    pub(super) hash: u32,
    pub(super) real: u32,
}

impl SuffixBits {
    /// A suffix of `total` bits, as `kind` divides it. Monotone: more bits in all, no fewer of
    /// either.
    pub(super) fn of_kind(kind: SurfKind, total: u32) -> Self {
        match kind {
            SurfKind::Hash => SuffixBits { hash: total, real: 0 },
            SurfKind::Real => SuffixBits { hash: 0, real: total },
            SurfKind::Mixed => SuffixBits { hash: total / 2, real: total - total / 2 },
            _ => SuffixBits::default(),
        }
    }

    /// As asked for, without what `kind` does not keep, and cut to the most that there may be.
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

    /// Whether `kind` has such suffixes.
    pub(super) fn fit(self, kind: SurfKind) -> bool {
        self.total() <= SUFFIX_BITS_MAX && self == Self::explicit(kind, self.hash, self.real)
    }

    #[inline(always)]
    pub(super) fn total(self) -> u32 {
        self.hash + self.real
    }

    /// The suffix of a key with this hash, of which `rest` comes after the prefix.
    #[inline(always)]
    pub(super) fn of(self, rest: &[u8], hash: u64) -> u64 {
        let hash_bits = hash & low_ones(self.hash);
        match self.real {
            0 => hash_bits,
            real => leading_bits(rest, real) << self.hash | hash_bits,
        }
    }

    /// How a stored suffix's key compares with one of which `rest` comes after the same prefix, as
    /// far as real bits tell: `Equal` says nothing.
    #[inline(always)]
    pub(super) fn order(self, stored: u64, rest: &[u8]) -> Ordering {
        match self.real {
            0 => Ordering::Equal,
            real => (stored >> self.hash).cmp(&leading_bits(rest, real)),
        }
    }

    /// The least bytes that a stored suffix's key can have after its prefix.
    pub(super) fn least_rest(self, stored: u64) -> Vec<u8> {
        if self.real == 0 {
            return Vec::new();
        }
        let bytes = (stored >> self.hash << (u64::BITS - self.real)).to_be_bytes();
        let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        bytes[..len].to_vec()
    }

    /// What a suffix of these lengths becomes with shorter ones. Requires: neither is longer.
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

/// The first `len` bits of a byte string that goes on with zeros. Requires: 0 < `len` <= 64.
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
