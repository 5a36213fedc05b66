//! Functions of floating-point numbers that `core` does not have.
//! ```text
//! exp, exp2, ln, log2    from libm, in every build and on every machine
//! powi, power_of_two     from products, and from the bits of the exponent
//! floor, ceil, round,    exact by IEEE 754, so any implementation does: the processor's with
//! sqrt, fract            `std`, libm's without
//! ```
//! Invariant: results have the same bits in every build. Filters depend on them, and a filter must
//! have the same bytes with `std`, without it, and on every system.

#[cfg(not(feature = "std"))]
pub(crate) use libm::{ceil, floor, round, sqrt};

// Not inlined: inlining these would cost more code size than it saves time.
#[inline(never)]
pub(crate) fn exp(x: f64) -> f64 {
    libm::exp(x)
}

#[inline(never)]
pub(crate) fn exp2(x: f64) -> f64 {
    libm::exp2(x)
}

#[inline(never)]
pub(crate) fn ln(x: f64) -> f64 {
    libm::log(x)
}

#[inline(never)]
pub(crate) fn log2(x: f64) -> f64 {
    libm::log2(x)
}

#[cfg(feature = "std")]
mod of_std {
    #[inline(always)]
    pub(crate) fn ceil(x: f64) -> f64 {
        x.ceil()
    }

    #[inline(always)]
    pub(crate) fn floor(x: f64) -> f64 {
        x.floor()
    }

    #[inline(always)]
    pub(crate) fn round(x: f64) -> f64 {
        x.round()
    }

    #[inline(always)]
    pub(crate) fn sqrt(x: f64) -> f64 {
        x.sqrt()
    }
}
#[cfg(feature = "std")]
pub(crate) use of_std::{ceil, floor, round, sqrt};

/// Returns the fractional part, with the sign of `x`.
#[inline(always)]
pub(crate) fn fract(x: f64) -> f64 {
    x - if x < 0.0 { ceil(x) } else { floor(x) }
}

/// Returns `base` to the power of `exponent`, by squaring. Each product is rounded.
pub(crate) fn powi(base: f64, exponent: u32) -> f64 {
    let (mut power, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            power *= square;
        }
        square *= square;
        rest >>= 1;
    }
    power
}

/// Returns 2 to the power of `exponent`. Requires: -1022 to 1023, the exponents of normal numbers.
#[inline(always)]
pub(crate) fn power_of_two(exponent: i32) -> f64 {
    assert!((-1022..=1023).contains(&exponent), "2^{exponent} is no normal number");
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all sizes, of both signs.
    fn numbers() -> impl Iterator<Item = f64> {
        let sizes = (-40..40).map(power_of_two);
        sizes.flat_map(|size| [1.0, 1.25, 1.5, 1.999].map(|part| part * size)).flat_map(|x| [x, -x])
    }

    #[test]
    fn they_are_near_to_those_of_std() {
        let is_near = |ours: f64, std: f64| (ours - std).abs() <= std.abs() * 1e-15 || ours == std;
        for x in numbers() {
            assert!(is_near(exp(x), x.exp()) && is_near(exp2(x), x.exp2()), "{x}");
            assert!(x < 0.0 || is_near(ln(x), x.ln()) && is_near(log2(x), x.log2()), "{x}");
        }
    }

    #[test]
    fn they_equal_those_of_std_where_these_are_exact() {
        for x in numbers() {
            assert_eq!([ceil(x), floor(x), round(x)], [x.ceil(), x.floor(), x.round()], "{x}");
            assert_eq!(fract(x), x.fract(), "{x}");
            assert_eq!(sqrt(x.abs()), x.abs().sqrt(), "{x}");
        }
        for exponent in -1022..=1023 {
            assert_eq!(power_of_two(exponent), f64::from(exponent).exp2());
            assert_eq!(exp2(f64::from(exponent)), power_of_two(exponent));
        }
        for exponent in 0..100 {
            assert_eq!(powi(0.875, exponent), 0.875f64.powi(exponent as i32), "{exponent}");
        }
    }

    // Golden bytes: the same on every machine and in every build.
    #[test]
    fn their_bits_are_the_same_everywhere() {
        let mut sum = 0u64;
        for x in numbers().filter(|x| x.abs() < 700.0) {
            for y in [exp(x), exp2(x), ln(x.abs()), log2(x.abs()), powi(x, 3)] {
                sum = sum.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ y.to_bits();
            }
        }
        assert_eq!(sum, 0x5d32_a889_90fb_97cc);
    }
}
