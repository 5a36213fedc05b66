//! A sample of a run's keys, from which a part of the filter learns what keys are like.

use trommel_filters::KeySample;

use crate::entries::cursor::Cursor;
use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::files::run::Run;
use crate::sync::Arc;

/// Stretches of a sample, at most, and the entries of each.
const STRETCHES: u64 = 256;
const STRETCH_ENTRIES: u64 = 64;
/// At most one block in so many is read.
const BLOCKS_PER_STRETCH: u64 = 16;

/// A sample of the largest of these runs: stretches that are spread evenly over its entries. Few
/// blocks are read, past the cache. No run: no key.
pub(crate) fn sample_of(runs: &[PlacedRun]) -> Result<KeySample> {
    let largest = runs.iter().map(|placed| &placed.run).max_by_key(|run| run.entry_count());
    largest.map_or_else(|| Ok(KeySample::default()), sample_of_run)
}

/// As [`sample_of`], of one run.
pub(crate) fn sample_of_run(run: &Arc<Run>) -> Result<KeySample> {
    let blocks: usize = run.tables().iter().map(|table| table.table.block_count()).sum();
    let stretches = STRETCHES.min(blocks as u64 / BLOCKS_PER_STRETCH);
    let (mut sample, mut cursor) = (KeySample::default(), run.cursor().past_cache());
    let mut last = Vec::new();
    for stretch in 0..stretches {
        cursor.seek_rank(run.entry_count() * stretch / stretches)?;
        for _ in 0..STRETCH_ENTRIES {
            let Some(entry) = cursor.entry() else { break };
            // Of a key with several versions, one; and none twice where stretches meet.
            if sample.is_empty() || *last < *entry.key {
                entry.key.clone_into(&mut last);
                sample.push(entry.key);
            }
            cursor.next()?;
        }
        sample.end_stretch();
    }
    Ok(sample)
}
