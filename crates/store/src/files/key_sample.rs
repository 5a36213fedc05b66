//! A sample of a run's keys, from which a part of the filter learns their distribution.

use trommel_filters::KeySample;

use crate::entries::cursor::Cursor;
use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::files::run::Run;
use crate::sync::Arc;

/// Maximum number of stretches in a sample, and the entries of each. A filter judges as many keys
/// together.
const STRETCHES: u64 = 64;
const STRETCH_ENTRIES: u64 = 720;
/// At most one entry in this many is read. A model of too few stretches would fit only their keys.
const ENTRIES_PER_READ: u64 = 4;

/// Samples the largest of these runs: stretches that are spread evenly over its entries. Reads few
/// blocks, past the cache. Without runs the sample is empty.
pub(crate) fn sample_of(runs: &[PlacedRun]) -> Result<KeySample> {
    let largest = runs.iter().map(|placed| &placed.run).max_by_key(|run| run.entry_count());
    largest.map_or_else(|| Ok(KeySample::default()), sample_of_run)
}

/// Samples one run; see [`sample_of`].
pub(crate) fn sample_of_run(run: &Arc<Run>) -> Result<KeySample> {
    let stretches = STRETCHES.min(run.entry_count() / (ENTRIES_PER_READ * STRETCH_ENTRIES));
    let (mut sample, mut cursor) = (KeySample::default(), run.cursor().past_cache());
    let mut last = Vec::new();
    for stretch in 0..stretches {
        cursor.seek_rank(run.entry_count() * stretch / stretches)?;
        for _ in 0..STRETCH_ENTRIES {
            let Some(entry) = cursor.entry() else { break };
            // Versions of a key count once, also where stretches meet.
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
