//! The Zstandard dictionary of a merge: what blocks of its inputs have in common.
//! ```text
//! inputs   [b b b b b b b b b] [b b b b]     blocks at equal distances are read, past the cache
//!           ^       ^       ^     ^
//! sample   most of it -> a dictionary       the rest -> is it worth its bytes? -> yes: kept
//! ```
//! Invariant: it depends only on the inputs and the options, so one seed gives one history.

use crate::entries::compression::{Compression, EncoderDictionary, Packer, Packing, train};
use crate::entries::cursor::Reads;
use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::sync::Arc;

/// Minimum and maximum number of blocks in a sample.
const SAMPLE_BLOCKS: std::ops::RangeInclusive<usize> = 16..=96;
/// At most one block in this many is read twice.
const BLOCKS_PER_READ: usize = 4;
/// Maximum bytes of a sample: a merge of long values must not hold all of them.
const SAMPLE_BYTES_MAX: usize = 4 << 20;
/// Longer blocks are not sampled: for their length, they have little in common with others.
const BLOCK_BYTES_MAX: u64 = 64 << 10;
/// A piece is the start of its block, up to this length.
const PIECE_BYTES_MAX: usize = 128 << 10;
/// One piece in this many judges the dictionary, and is not used for training.
const PIECES_PER_JUDGE: usize = 8;
/// A dictionary is kept if it saves this many times its own bytes in a table, ...
const SAVED_PER_BYTE: u64 = 2;
/// ... and one part in this many of the blocks' size without it. Reads with a dictionary are
/// slightly slower.
const SAVED_PART: u64 = 32;

/// Trains the dictionary for the output of a merge of these runs. `None`: it would not pay.
pub(crate) fn dictionary_of(
    runs: &[PlacedRun],
    packing: Packing,
) -> Result<Option<Arc<EncoderDictionary>>> {
    let Compression::Zstd { level } = packing.compression else { return Ok(None) };
    if packing.dictionary_bytes == 0 || !packing.compression.is_built_in() {
        return Ok(None);
    }
    let pieces = sample_of(runs)?;
    if pieces.len() < *SAMPLE_BLOCKS.start() {
        return Ok(None);
    }
    let is_judge = |place: &usize| place % PIECES_PER_JUDGE == PIECES_PER_JUDGE - 1;
    let (mut learned, mut lens) = (Vec::new(), Vec::new());
    for (_, piece) in pieces.iter().enumerate().filter(|(place, _)| !is_judge(place)) {
        learned.extend_from_slice(piece);
        lens.push(piece.len());
    }
    let dictionary = train(&learned, &lens, packing.dictionary_bytes)
        .and_then(|bytes| EncoderDictionary::new(bytes, level))
        .map(Arc::new);
    let judges: Vec<&[u8]> =
        (0..pieces.len()).filter(is_judge).map(|place| &pieces[place][..]).collect();
    let input = runs.iter().flat_map(|placed| placed.run.tables());
    let input: u64 = input.map(|table| table.table.properties().raw_bytes).sum();
    let bytes = input.min(packing.table_bytes);
    Ok(dictionary.filter(|dictionary| pays(dictionary, packing.compression, &judges, bytes)))
}

/// Whether a dictionary saves enough on the judging pieces, projected to a table of `bytes` bytes.
fn pays(
    dictionary: &Arc<EncoderDictionary>,
    compression: Compression,
    judges: &[&[u8]],
    bytes: u64,
) -> bool {
    let packed = |dictionary| {
        let mut packer = Packer::new(compression, dictionary);
        let (mut out, mut len) = (Vec::new(), 0);
        for judge in judges {
            out.clear();
            packer.pack(judge, &mut out);
            len += out.len() as u64;
        }
        len
    };
    let raw: u64 = judges.iter().map(|judge| judge.len() as u64).sum();
    let (without, with) = (packed(None), packed(Some(Arc::clone(dictionary))));
    let saved = without.saturating_sub(with);
    let in_table = u128::from(saved) * u128::from(bytes) / u128::from(raw.max(1));
    let cost = SAVED_PER_BYTE * dictionary.bytes().len() as u64;
    saved * SAVED_PART >= without && in_table >= u128::from(cost)
}

/// Reads blocks that are spread evenly over the inputs, in their order.
fn sample_of(runs: &[PlacedRun]) -> Result<Vec<Vec<u8>>> {
    let tables = || runs.iter().flat_map(|placed| placed.run.tables()).map(|table| &table.table);
    let block_count: usize = tables().map(|table| table.block_count()).sum();
    let count = (block_count / BLOCKS_PER_READ).min(*SAMPLE_BLOCKS.end());
    let (mut pieces, mut bytes) = (Vec::new(), 0);
    let mut wanted = (0..count).map(|piece| piece * block_count / count).peekable();
    let mut before = 0;
    for table in tables() {
        let end = before + table.block_count();
        while let Some(place) = wanted.next_if(|place| *place < end) {
            if bytes >= SAMPLE_BYTES_MAX {
                return Ok(pieces);
            }
            let number = place - before;
            if table.block_len(number) > BLOCK_BYTES_MAX {
                continue;
            }
            let block = table.block_past_cache(number, &mut Reads::default())?;
            let piece = &block.raw()[..block.raw().len().min(PIECE_BYTES_MAX)];
            bytes += piece.len();
            pieces.push(piece.to_vec());
        }
        before = end;
    }
    Ok(pieces)
}
