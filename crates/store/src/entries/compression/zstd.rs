//! Zstandard: what needs the crate of that name.
//! ```text
//! encoder      one for each file that is written, and a dictionary that its files may share
//! decoder      one for each thread; a dictionary for each open file, digested once
//! ```
//! Invariant: a frame says how many bytes it has, no checksum and no dictionary's number: what
//! surrounds it has the one, and its form the other.

use std::cell::Cell;

use zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict};

use super::form::Unreadable;

/// Makes frames.
pub(super) struct Encoder {
    context: CCtx<'static>,
}

impl Encoder {
    /// None: there is no memory for it.
    pub(super) fn new(level: u8) -> Option<Encoder> {
        let mut context = CCtx::try_create()?;
        context.set_parameter(CParameter::CompressionLevel(level.into())).ok()?;
        Some(Encoder { context })
    }

    /// Writes the frame of a piece, and returns its length. None: there is no room for it.
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

/// A dictionary, for those who write.
pub(crate) struct EncoderDictionary {
    bytes: Vec<u8>,
    digested: CDict<'static>,
}

impl EncoderDictionary {
    /// None: it is none, or there is no memory for it.
    pub(crate) fn new(bytes: Vec<u8>, level: u8) -> Option<EncoderDictionary> {
        let digested = CDict::try_create(&bytes, level.into())?;
        Some(EncoderDictionary { bytes, digested })
    }

    /// As it is on disk.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for EncoderDictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a dictionary of {} bytes", self.bytes.len())
    }
}

/// A dictionary, for those who read.
pub(crate) struct Dictionary {
    digested: DDict<'static>,
}

impl Dictionary {
    /// None: these bytes are none, or there is no memory for it.
    pub(crate) fn new(bytes: &[u8]) -> Option<Dictionary> {
        Some(Dictionary { digested: DDict::try_create(bytes)? })
    }

    /// The memory it takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.digested.sizeof()
    }
}

thread_local! {
    /// What frames are decoded with. It keeps nothing from one to the next.
    static DECODER: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// How many bytes a frame claims to have. None: it is no frame, or does not tell.
pub(super) fn claimed_len(packed: &[u8]) -> Result<Option<u64>, Unreadable> {
    Ok(zstd_safe::get_frame_content_size(packed).ok().flatten())
}

/// Fills `into` with the bytes of a frame. Returns how many there were; None: it is damaged.
pub(super) fn decompress(
    packed: &[u8],
    dictionary: Option<&Dictionary>,
    into: &mut [u8],
) -> Result<Option<usize>, Unreadable> {
    // A thread that ends has none any more, and may still read.
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

/// Where a dictionary has its number. It is 0 for ours, so that frames do not repeat it.
const NUMBER_AT: std::ops::Range<usize> = 4..8;

/// A dictionary of at most so many bytes, from pieces that lie one behind the other. None: they are
/// too few, or have nothing in common.
pub(crate) fn train(pieces: &[u8], lens: &[usize], bytes_max: usize) -> Option<Vec<u8>> {
    let mut dictionary = vec![0; bytes_max];
    let len = zstd_safe::train_from_buffer(&mut dictionary[..], pieces, lens).ok()?;
    dictionary.truncate(len);
    dictionary.get_mut(NUMBER_AT)?.fill(0);
    Some(dictionary)
}
