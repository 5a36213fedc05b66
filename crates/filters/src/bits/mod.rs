//! Bit-level structures that filters are laid out in.
//! ```text
//! aligned      bytes that begin on a cache line
//! huffman      Huffman codes
//! key_bits     a key as a bit string, followed by zeros without end
//! packed       bit-packed numbers
//! row          arrays of numbers, in memory of their own or inside bytes
//! rank_select  rank and select of ones in long bit vectors
//! search       branchless binary search
//! select       the n-th zero
//! simd         instructions that only some processors have
//! ```
//! Invariant: nothing here depends on any one filter.

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
