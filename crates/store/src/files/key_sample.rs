//! A sample of a run's keys, from which a part of the filter learns what keys are like.

use trommel_filters::KeySample;

use crate::entries::cursor::Cursor;
use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::files::run::Run;
use crate::sync::Arc;

/// Stretches of a sample, at most, and the entries of each: as many keys as a filter judges
/// together.
const STRETCHES: u64 = 64;
const STRETCH_ENTRIES: u64 = 720;
/// At most one entry in so many is read. A model of too few stretches knows their keys alone.
const ENTRIES_PER_READ: u64 = 4;

/// A sample of the largest of these runs: stretches that are spread evenly over its entries. Few
/// blocks are read, past the cache. No run: no key.
pub(crate) fn sample_of(runs: &[PlacedRun]) -> Result<KeySample> {
    let largest = runs.iter().map(|placed| &placed.run).max_by_key(|run| run.entry_count());
    largest.map_or_else(|| Ok(KeySample::default()), sample_of_run)
}

/// As [`sample_of`], of one run.
pub(crate) fn sample_of_run(run: &Arc<Run>) -> Result<KeySample> {
    let stretches = STRETCHES.min(run.entry_count() / (ENTRIES_PER_READ * STRETCH_ENTRIES));
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
