//! Bits and bytes as the filters lay them out.
//! ```text
//! aligned      bytes that begin on a cache line
//! huffman      codes that are the shorter, the commoner what they stand for
//! key_bits     a key as a bit string that goes on with zeros for ever
//! packed       bits behind each other in a byte string
//! row          numbers one after the other, wherever they are
//! rank_select  how many ones lie before a place, and where the n-th one is, in long bit strings
//! search       where among ordered things one belongs
//! select       where the n-th zero is
//! simd         instructions that not every processor has
//! ```
//! Invariant: nothing here knows of any one filter.

mod aligned;
pub mod huffman;
pub mod key_bits;
pub mod packed;
pub mod rank_select;
pub mod row;
pub mod search;
pub mod select;
pub mod simd;

pub use aligned::AlignedBytes;
