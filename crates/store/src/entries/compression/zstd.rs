//! Zstandard, through the crate `zstd_safe`.
//! ```text
//! encoder      one for each file that is written; its files may share a dictionary
//! decoder      one for each thread; dictionaries: one for each open file, digested once
//! ```
//! Invariant: a frame records its length, but neither a checksum nor a dictionary number. The
//! surrounding block has a checksum, and its form says whether a dictionary is needed.

use std::cell::Cell;

use zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict};

use super::form::Unreadable;

/// Encodes frames.
pub(super) struct Encoder {
    context: CCtx<'static>,
}

impl Encoder {
    /// `None`: out of memory.
    pub(super) fn new(level: u8) -> Option<Encoder> {
        let mut context = CCtx::try_create()?;
        context.set_parameter(CParameter::CompressionLevel(level.into())).ok()?;
        Some(Encoder { context })
    }

    /// Writes the frame of a piece, and returns its length. `None`: `into` is too short.
    pub(super) fn compress(
        &mut self,
        raw: &[u8],
        dictionary: Option<&EncoderDictionary>,
        into: &mut [u8],
    ) -> Option<usize> {
        match dictionary {
            Some(EncoderDictionary { digested, .. }) => {
                self.context.compress_using_cdict(into, raw, digested).ok()
            }
            None => self.context.compress2(into, raw).ok(),
        }
    }
}

/// A dictionary for encoding.
pub(crate) struct EncoderDictionary {
    bytes: Vec<u8>,
    digested: CDict<'static>,
}

impl EncoderDictionary {
    /// `None`: the bytes are not a dictionary, or memory is short.
    pub(crate) fn new(bytes: Vec<u8>, level: u8) -> Option<EncoderDictionary> {
        let digested = CDict::try_create(&bytes, level.into())?;
        Some(EncoderDictionary { bytes, digested })
    }

    /// The dictionary's bytes, as on disk.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for EncoderDictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a dictionary of {} bytes", self.bytes.len())
    }
}

/// A dictionary for decoding.
pub(crate) struct Dictionary {
    digested: DDict<'static>,
}

impl Dictionary {
    /// `None`: the bytes are not a dictionary, or memory is short.
    pub(crate) fn new(bytes: &[u8]) -> Option<Dictionary> {
        Some(Dictionary { digested: DDict::try_create(bytes)? })
    }

    /// The memory that the dictionary takes, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.digested.sizeof()
    }
}

thread_local! {
    /// The decoder of this thread. It keeps no state between frames.
    static DECODER: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// Returns the length that a frame claims. `None`: it is not a frame, or does not record a length.
pub(super) fn claimed_len(packed: &[u8]) -> Result<Option<u64>, Unreadable> {
    Ok(zstd_safe::get_frame_content_size(packed).ok().flatten())
}

/// Decodes a frame into `into`. Returns the decoded length; `None`: the frame is damaged.
pub(super) fn decompress(
    packed: &[u8],
    dictionary: Option<&Dictionary>,
    into: &mut [u8],
) -> Result<Option<usize>, Unreadable> {
    // During thread exit the thread-local decoder is gone, but reads may still happen.
    let decoder = DECODER.try_with(Cell::take).ok().flatten().or_else(DCtx::try_create);
    let Some(mut decoder) = decoder else {
        return Err(Unreadable::Damaged("a block beyond memory"));
    };
    let filled = match dictionary {
        Some(Dictionary { digested }) => decoder.decompress_using_ddict(into, packed, digested),
        None => decoder.decompress(into, packed),
    };
    let _ = DECODER.try_with(|kept| kept.set(Some(decoder)));
    Ok(filled.ok())
}

/// Where a dictionary has its number. Ours have number 0, so frames do not repeat it.
const NUMBER_AT: std::ops::Range<usize> = 4..8;

/// Trains a dictionary of at most `bytes_max` bytes on pieces that lie back to back. `None`: there
/// are too few pieces, or they have too little in common.
pub(crate) fn train(pieces: &[u8], lens: &[usize], bytes_max: usize) -> Option<Vec<u8>> {
    let mut dictionary = vec![0; bytes_max];
    let len = zstd_safe::train_from_buffer(&mut dictionary[..], pieces, lens).ok()?;
    dictionary.truncate(len);
    dictionary.get_mut(NUMBER_AT)?.fill(0);
    Some(dictionary)
}
