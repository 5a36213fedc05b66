//! Compression of blocks, and of other data that is written whole and records its own form.
//! ```text
//! form   body on disk
//! 0      plain: the bytes
//! 1      LZ4: their length (varint), an LZ4 block
//! 2      Zstandard: their length (varint), a frame
//! 3      as 2, with a dictionary that lies in the same file
//! ```
//! Invariants: the form is stored beside the body, so options may change at any time. Data that
//! does not shrink by an eighth is stored plain. No form expands one byte to more than `RATIO_MAX`
//! bytes. So the memory that a body claims is bounded by the bytes that are there.

mod form;
mod packer;
mod unpack;
// `zstd` needs the crate of that name; `without_zstd` has the same interface and does without it.
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
