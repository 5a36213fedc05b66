//! Routines that use instructions of some processors only.
//! ```text
//! fastest(work)    compiles work twice: for any processor; with BMI, POPCNT, LZCNT and AVX2
//! equal, at_least  compare sixteen bytes at once (SSE2, which every x86-64 has)
//! select_one       the n-th one of a word (BMI2: deposits its index among the ones)
//! nibble_planes    transposes sixty-four nibbles into four bit planes (AVX2)
//! prefetch         requests cache lines before they are read
//! ```
//! This is the one file with `unsafe`. Each routine has a safe equivalent: the same work, compiled
//! for any processor; a loop over bytes; sums of bytes; nothing.
//!
//! Invariant: both give the same answer.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use core::sync::atomic::{AtomicU8, Ordering};

/// Bytes of a cache line.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
const LINE_BYTES: usize = 64;

/// Runs `work` with the instructions that this processor has.
///
/// Write `fastest(#[inline(always)] move || ..)`, and mark all that it calls so, too: only inlined
/// code is compiled twice.
#[inline(always)]
pub fn fastest<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if has_v3() {
        #[expect(unsafe_code, reason = "the one call of code for newer processors")]
        // SAFETY: the features were just detected.
        return unsafe { with_v3(work) };
    }
    work()
}

/// Cached detection, so that a probe costs one load.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
static HAS_V3: AtomicU8 = AtomicU8::new(UNKNOWN);
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
const UNKNOWN: u8 = 2;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn has_v3() -> bool {
    match HAS_V3.load(Ordering::Relaxed) {
        UNKNOWN => detect_v3(),
        known => known == 1,
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[cold]
fn detect_v3() -> bool {
    // Without `std` there is no detection: the compilation target decides.
    macro_rules! has {
        ($feature:tt) => {{
            #[cfg(feature = "std")]
            let has = std::arch::is_x86_feature_detected!($feature);
            #[cfg(not(feature = "std"))]
            let has = cfg!(target_feature = $feature);
            has
        }};
    }
    let v3 = has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt") && has!("movbe");
    let v3 = v3 && has!("avx2");
    HAS_V3.store(u8::from(v3), Ordering::Relaxed);
    v3
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt,movbe,avx2")]
#[inline(never)]
fn with_v3<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Compares sixteen bytes with `byte`: bit i is set if byte i equals it.
#[inline(always)]
pub fn equal(bytes: &[u8; 16], byte: u8) -> u32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return sse2::equal(bytes, byte);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    portable::equal(bytes, byte)
}

/// Compares sixteen bytes with `byte`: bit i is set if byte i is at least `byte`.
#[inline(always)]
pub fn at_least(bytes: &[u8; 16], byte: u8) -> u32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return sse2::at_least(bytes, byte);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    portable::at_least(bytes, byte)
}

/// Returns the position of the one that has `rank` ones below it. Requires: it exists.
#[inline(always)]
pub fn select_one(word: u64, rank: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if has_v3() {
        #[expect(unsafe_code, reason = "an instruction of newer processors")]
        // SAFETY: BMI1 and BMI2 were just detected.
        return unsafe { bmi2::select_one(word, rank) };
    }
    super::select::select_one(word, rank)
}

/// Transposes sixty-four nibbles, low nibble of each byte first: plane b has bit b of each.
#[inline(always)]
pub fn nibble_planes(nibbles: &[u8; 32]) -> [u64; 4] {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if has_v3() {
        #[expect(unsafe_code, reason = "instructions of newer processors")]
        // SAFETY: AVX2 was just detected.
        return unsafe { avx2::nibble_planes(nibbles) };
    }
    portable::nibble_planes(nibbles)
}

/// Prefetches `lines` cache lines, beginning with that of `items[at]`. Places past the end are
/// harmless.
#[inline(always)]
pub fn prefetch_lines<T>(items: &[T], at: usize, lines: usize) {
    prefetch_at(items.as_ptr().wrapping_add(at).cast(), lines);
}

/// Prefetches `lines` cache lines, beginning with that of `address`, which may be any address.
#[inline(always)]
pub fn prefetch_at(address: *const u8, lines: usize) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    for line in 0..lines {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = address.wrapping_add(line * LINE_BYTES).cast();
        #[expect(unsafe_code, reason = "there is no safe function for it")]
        // SAFETY: every x86-64 has SSE, and a prefetch has no visible effect whatever the address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address);
        }
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    let _ = (address, lines);
}

/// Prefetches the cache line of `items[at]`, if there is such an item.
#[inline(always)]
pub fn prefetch<T>(items: &[T], at: usize) {
    if let Some(item) = items.get(at) {
        prefetch_at(core::ptr::from_ref(item).cast(), 1);
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod bmi2 {
    use core::arch::x86_64::_pdep_u64;

    #[target_feature(enable = "bmi1,bmi2")]
    #[inline]
    pub(super) fn select_one(word: u64, rank: u32) -> u32 {
        _pdep_u64(1 << rank, word).trailing_zeros()
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx2 {
    use core::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_loadu_si256, _mm256_movemask_epi8,
        _mm256_permute4x64_epi64, _mm256_set1_epi8, _mm256_slli_epi16, _mm256_srli_epi16,
        _mm256_unpackhi_epi8, _mm256_unpacklo_epi8,
    };

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn nibble_planes(nibbles: &[u8; 32]) -> [u64; 4] {
        #[expect(unsafe_code, reason = "a load that asks for no alignment")]
        // SAFETY: the reference guarantees thirty-two readable bytes.
        let bytes = unsafe { _mm256_loadu_si256(nibbles.as_ptr().cast()) };
        // The unpack instructions take the first or the last eight bytes of each 128-bit half. So
        // exchange the middle quarters first.
        let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes);
        let low = _mm256_set1_epi8(15);
        let even = _mm256_and_si256(bytes, low);
        let odd = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), low);
        let first = _mm256_unpacklo_epi8(even, odd);
        let last = _mm256_unpackhi_epi8(even, odd);
        let plane = |first: __m256i, last: __m256i| {
            let first = _mm256_movemask_epi8(first).cast_unsigned();
            let last = _mm256_movemask_epi8(last).cast_unsigned();
            u64::from(first) | u64::from(last) << 32
        };
        // Shift each bit in turn to the top of its byte. Bits that spill over from the other byte
        // land below the top.
        [
            plane(_mm256_slli_epi16::<7>(first), _mm256_slli_epi16::<7>(last)),
            plane(_mm256_slli_epi16::<6>(first), _mm256_slli_epi16::<6>(last)),
            plane(_mm256_slli_epi16::<5>(first), _mm256_slli_epi16::<5>(last)),
            plane(_mm256_slli_epi16::<4>(first), _mm256_slli_epi16::<4>(last)),
        ]
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2 {
    use core::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_max_epu8, _mm_movemask_epi8, _mm_set1_epi8,
    };

    #[inline(always)]
    pub(super) fn equal(bytes: &[u8; 16], byte: u8) -> u32 {
        #[expect(unsafe_code, reason = "instructions that every x86-64 has")]
        // SAFETY: every x86-64 has SSE2; the reference guarantees sixteen readable bytes; the load
        // may be unaligned.
        unsafe {
            let lanes = _mm_loadu_si128(bytes.as_ptr().cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(lanes, _mm_set1_epi8(byte.cast_signed()))) as u32
        }
    }

    #[inline(always)]
    pub(super) fn at_least(bytes: &[u8; 16], byte: u8) -> u32 {
        #[expect(unsafe_code, reason = "instructions that every x86-64 has")]
        // SAFETY: every x86-64 has SSE2; the reference guarantees sixteen readable bytes; the load
        // may be unaligned.
        unsafe {
            let lanes = _mm_loadu_si128(bytes.as_ptr().cast());
            let larger = _mm_max_epu8(lanes, _mm_set1_epi8(byte.cast_signed()));
            _mm_movemask_epi8(_mm_cmpeq_epi8(larger, lanes)) as u32
        }
    }
}

mod portable {
    pub(super) fn nibble_planes(nibbles: &[u8; 32]) -> [u64; 4] {
        let mut planes = [0; 4];
        for (place, eight) in nibbles.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*eight);
            for (bit, plane) in planes.iter_mut().enumerate() {
                *plane |= every_fourth(word >> bit) << (16 * place);
            }
        }
        planes
    }

    /// Gathers bits 0, 4, 8 and so on into adjacent bits.
    fn every_fourth(word: u64) -> u64 {
        let ones = word & 0x1111_1111_1111_1111;
        let pairs = (ones | ones >> 3) & 0x0303_0303_0303_0303;
        let fours = (pairs | pairs >> 6) & 0x000f_000f_000f_000f;
        let eights = (fours | fours >> 12) & 0x0000_00ff_0000_00ff;
        (eights | eights >> 24) & 0xffff
    }

    #[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
    fn mask(bytes: &[u8; 16], is_wanted: impl Fn(u8) -> bool) -> u32 {
        let bit = |(place, &byte): (usize, &u8)| u32::from(is_wanted(byte)) << place;
        bytes.iter().enumerate().map(bit).sum()
    }

    #[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
    pub(super) fn equal(bytes: &[u8; 16], byte: u8) -> u32 {
        mask(bytes, |other| other == byte)
    }

    #[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
    pub(super) fn at_least(bytes: &[u8; 16], byte: u8) -> u32 {
        mask(bytes, |other| other >= byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bytes_are_compared_as_one_by_one() {
        for round in (0..=255u8).step_by(if cfg!(miri) { 32 } else { 1 }) {
            let bytes = core::array::from_fn(|place| {
                round.wrapping_mul(37).wrapping_add((place * place * 29) as u8)
            });
            for byte in (0..=255).step_by(3).chain(bytes) {
                assert_eq!(equal(&bytes, byte), portable::equal(&bytes, byte));
                assert_eq!(at_least(&bytes, byte), portable::at_least(&bytes, byte));
            }
        }
        prefetch(&[1, 2], 1);
        prefetch::<u8>(&[], 0);
        prefetch_lines(&[1, 2], 1, 2);
        prefetch_lines::<u8>(&[], usize::MAX - 5, 3);
    }

    #[test]
    fn planes_have_the_bits_of_each_nibble() {
        for round in 0..64u64 {
            let byte = |place: usize| {
                (round.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(place as u32 * 7) >> 3) as u8
            };
            let nibbles: [u8; 32] = core::array::from_fn(byte);
            let planes = nibble_planes(&nibbles);
            assert_eq!(planes, portable::nibble_planes(&nibbles));
            for place in 0..64 {
                let nibble = u64::from(nibbles[place / 2] >> (4 * (place % 2)) & 15);
                let bit = |bit: usize| (planes[bit] >> place & 1) << bit;
                assert_eq!(bit(0) | bit(1) | bit(2) | bit(3), nibble, "{round} {place}");
            }
        }
    }

    #[test]
    fn ones_are_found_as_one_by_one() {
        let mut word = 0x9e37_79b9_7f4a_7c15u64;
        for round in 0..500 {
            word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(23) ^ round;
            let word = if round % 3 == 0 { word & word << 7 & word >> 3 } else { word };
            for rank in 0..word.count_ones() {
                let expected = crate::bits::select::select_one(word, rank);
                assert_eq!(select_one(word, rank), expected, "{word:x} {rank}");
            }
        }
    }

    #[test]
    fn both_give_the_same_answer() {
        for word in (0..64).map(|bit| 0x9e37_79b9_7f4a_7c15u64 >> bit) {
            let counted = (word.count_ones(), word.leading_zeros(), word.swap_bytes() << 3);
            let fastest = fastest(
                #[inline(always)]
                move || (word.count_ones(), word.leading_zeros(), word.swap_bytes() << 3),
            );
            assert_eq!(fastest, counted);
        }
    }
}
