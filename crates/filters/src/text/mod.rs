//! A model of text: order-preserving short codes for keys with redundant bytes.
//! ```text
//! sample of the keys --learn--> shares of each byte after each byte --> [0, 1) is divided
//! "user00042"        --encode-> the start of its interval, as bytes; at most 512 bits, then ties
//! low, high of a range -------> two codes: all keys between them have codes between these
//! ```
//! The idea is HOPE's (SIGMOD 2020); an arithmetic code replaces its dictionary.
//!
//! Invariant: if a <= b, then code(a) <= code(b). Equal codes are treated as equal keys are.

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
