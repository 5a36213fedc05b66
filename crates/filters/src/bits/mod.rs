//! Bits and bytes as the filters lay them out.
//! ```text
//! aligned    bytes that begin on a cache line
//! cells      numbers of one length or one bit more, found by their place
//! key_bits   a key as a bit string that goes on with zeros for ever
//! packed     bits behind each other in a byte string
//! row        numbers one after the other, wherever they are
//! select     where the n-th zero is
//! simd       instructions that not every processor has
//! ```
//! Invariant: nothing here knows of filters.

mod aligned;
pub(crate) mod cells;
pub(crate) mod key_bits;
pub(crate) mod packed;
pub(crate) mod row;
pub(crate) mod select;
pub(crate) mod simd;

pub use aligned::AlignedBytes;
