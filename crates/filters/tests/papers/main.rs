//! Worked examples and rules of the papers, and how ours compare with them.
//! ```text
//! digits.rs       GRF 4.2: shape encodings as the paper writes them, level 0 first;
//!                 its rule for the run
//! figures_7_8.rs  the figures, by our codes          block.rs   GRF 4.2 to 4.4, Figure 9: bits
//! trees.rs        both rules name the same run       fingerprints.rs   GRF 4.3.2: rounding
//! filter.rs       the same through the filter        skew.rs    GRF 6.7: all inserts in one place
//! surf.rs  SuRF, Figure 4 and section 3 (Figures 1 to 3, which need insiders: src/surf/figures.rs)
//! ```
//! Invariant: what is called the paper's is written from the paper's text alone and knows nothing
//! of the filter.

mod bed;
mod block;
mod digits;
mod figures_7_8;
mod filter;
mod fingerprints;
mod skew;
mod surf;
mod trees;
