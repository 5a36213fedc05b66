//! How bytes are made smaller, and how they are had again: blocks of tables, and whatever else is
//! written whole and tells its own form.
//! ```text
//! form   body on disk
//! 0      plain: the bytes
//! 1      LZ4: their number (varint), an LZ4 block
//! 2      Zstandard: their number (varint), a frame
//! 3      Zstandard with a dictionary, which lies in the same file: the same
//! ```
//! Invariants: the form lies beside the body, so that options may change at any time. What does not
//! shrink by an eighth is plain. No form makes more than `RATIO_MAX` bytes out of one, so memory
//! that a body claims follows from bytes that are there.

mod form;
mod packer;
mod unpack;
// What needs the crate is in a file; its twin answers what can be said without it.
#[cfg(not(feature = "zstd"))]
mod without_zstd;
#[cfg(feature = "zstd")]
mod zstd;

pub use form::Compression;
pub(crate) use form::{
    DICTIONARY_BYTES_MAX, FEATURE, Packing, RATIO_MAX, Unreadable, form_name, forms,
};
pub(crate) use packer::Packer;
pub(crate) use unpack::unpack;
#[cfg(not(feature = "zstd"))]
pub(crate) use without_zstd::{Dictionary, EncoderDictionary, train};
#[cfg(feature = "zstd")]
pub(crate) use zstd::{Dictionary, EncoderDictionary, train};

#[cfg(test)]
mod tests;
