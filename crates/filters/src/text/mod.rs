//! A model of text: short codes in place of keys whose bytes are far from random. They keep order.
//! ```text
//! sample of the keys --learn--> shares of each byte after each byte --> [0, 1) is divided
//! "user00042"        --encode-> the beginning of its interval, as bytes; ties beyond 512 bits
//! low, high of a range -------> two codes: all keys between them have codes between these
//! ```
//! The idea is HOPE's (SIGMOD 2020), whose dictionary is an arithmetic code here. Invariant: if
//! a <= b, then code(a) <= code(b). Equal codes are handled as equal keys are.

pub(crate) mod code;
pub(crate) mod decode;
mod encode;
pub(crate) mod judge;
mod learn;
pub(crate) mod model;
pub(crate) mod named;
pub(crate) mod positions;
pub(crate) mod sample;
pub(crate) mod wire;

#[cfg(test)]
mod tests;
