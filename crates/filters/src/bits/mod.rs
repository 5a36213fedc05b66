//! Bits: of keys, and packed into byte strings. A leaf that knows no filter.

pub(crate) mod key_bits;
pub(crate) mod packed;
