//! Compresses the pieces of a file.
//! ```text
//! piece -> Zstandard, if selected --too large, or far too small--> LZ4 --too large--> plain
//! ```
//! Invariant: the output depends on nothing but the pieces, in every process of the same build.

use trommel_filters::Writer;

use super::form::{Compression, RATIO_MAX, forms};
#[cfg(not(feature = "zstd"))]
use super::without_zstd as zstd;
#[cfg(feature = "zstd")]
use super::zstd;
use crate::sync::Arc;

/// Compresses the pieces of one file, and reuses memory between them.
pub(crate) struct Packer {
    compression: Compression,
    dictionary: Option<Arc<zstd::EncoderDictionary>>,
    /// Created for the first piece that needs it.
    encoder: Option<zstd::Encoder>,
    packed: Vec<u8>,
}

impl Packer {
    /// Creates a packer. Only Zstandard uses the dictionary.
    pub(crate) fn new(
        compression: Compression,
        dictionary: Option<Arc<zstd::EncoderDictionary>>,
    ) -> Packer {
        Packer { compression, dictionary, encoder: None, packed: Vec::new() }
    }

    /// Appends the body of a piece, and returns its form.
    pub(crate) fn pack(&mut self, raw: &[u8], out: &mut Vec<u8>) -> u8 {
        let form = match self.compression {
            Compression::None => None,
            Compression::Lz4 => self.lz4(raw, out),
            Compression::Zstd { level } => {
                self.zstd(level, raw, out).or_else(|| self.lz4(raw, out))
            }
        };
        form.unwrap_or_else(|| {
            out.extend_from_slice(raw);
            forms::PLAIN
        })
    }

    /// Appends nothing if that does not pay, or if the ratio exceeds what a reader accepts.
    fn zstd(&mut self, level: u8, raw: &[u8], out: &mut Vec<u8>) -> Option<u8> {
        let (head, most) = head_of(raw)?;
        let dictionary = self.dictionary.as_deref();
        if self.encoder.is_none() {
            self.encoder = zstd::Encoder::new(level);
        }
        self.packed.resize(self.packed.len().max(most), 0);
        let packed = &mut self.packed[..most];
        let len = self.encoder.as_mut()?.compress(raw, dictionary, packed)?;
        if raw.len() / RATIO_MAX > len {
            return None;
        }
        out.extend_from_slice(head.as_slice());
        out.extend_from_slice(&packed[..len]);
        Some(if dictionary.is_some() { forms::ZSTD_WITH_DICTIONARY } else { forms::ZSTD })
    }

    fn lz4(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<u8> {
        let (head, most) = head_of(raw)?;
        let room = lz4_flex::block::get_maximum_output_size(raw.len());
        self.packed.resize(self.packed.len().max(room), 0);
        let len = lz4_flex::block::compress_into(raw, &mut self.packed).ok()?;
        if len > most {
            return None;
        }
        out.extend_from_slice(head.as_slice());
        out.extend_from_slice(&self.packed[..len]);
        Some(forms::LZ4)
    }
}

/// Returns the header of a compressed piece, and the longest body that still pays. `None`: none
/// does.
fn head_of(raw: &[u8]) -> Option<(Writer, usize)> {
    let mut head = Writer::new();
    head.varint(raw.len() as u64);
    let most = (raw.len() - raw.len().div_ceil(8)).checked_sub(head.len())?;
    Some((head, most))
}
