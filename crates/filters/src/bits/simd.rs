//! The instructions that a processor may have beside those that all have.
//! ```text
//! fastest(work)   the same code twice: once for every processor, once with BMI, POPCNT, LZCNT and AVX2
//! ```
//! The one file with `unsafe`. The safe twin is the work itself, run as it is. Invariant: both give the same answer.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// What is worth being compiled twice. A trait, as closures cannot be told to be inlined.
pub(crate) trait Work {
    /// What comes out.
    type Output;

    /// Does it. To be marked `#[inline(always)]`, and so all that it calls: only then is it compiled twice.
    fn run(self) -> Self::Output;
}

/// Does `work` with the instructions that this processor has.
#[inline(always)]
pub(crate) fn fastest<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if has_v3() {
        #[expect(unsafe_code, reason = "the one call of code for newer processors")]
        // SAFETY: the features were just detected.
        return unsafe { with_v3(work) };
    }
    work.run()
}

/// What is known of the processor, so that a probe asks with one load.
#[cfg(target_arch = "x86_64")]
static HAS_V3: AtomicU8 = AtomicU8::new(UNKNOWN);
#[cfg(target_arch = "x86_64")]
const UNKNOWN: u8 = 2;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn has_v3() -> bool {
    match HAS_V3.load(Ordering::Relaxed) {
        UNKNOWN => detect_v3(),
        known => known == 1,
    }
}

#[cfg(target_arch = "x86_64")]
#[cold]
fn detect_v3() -> bool {
    use std::arch::is_x86_feature_detected as has;
    let v3 = has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt") && has!("movbe");
    let v3 = v3 && has!("avx2");
    HAS_V3.store(u8::from(v3), Ordering::Relaxed);
    v3
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt,movbe,avx2")]
#[inline(never)]
fn with_v3<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Count(u64);

    impl Work for Count {
        type Output = (u32, u32, u64);

        #[inline(always)]
        fn run(self) -> Self::Output {
            (self.0.count_ones(), self.0.leading_zeros(), self.0.swap_bytes() << 3)
        }
    }

    #[test]
    fn both_give_the_same_answer() {
        for word in (0..64).map(|bit| Count(0x9e37_79b9_7f4a_7c15 >> bit)) {
            assert_eq!(fastest(word), word.run());
        }
    }
}
