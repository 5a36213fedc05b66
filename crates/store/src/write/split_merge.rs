//! Splits a large merge into submerges, which several threads can run.
//! ```text
//! inputs      [a ........ k ........ t] [u ... ]   samples: keys, each with the bytes that
//!             [c .. h .. p ........ x]             follow it
//! submerges   [   .. h)[h ..   .. p)[p ..    ]     about as many bytes each
//! ```
//! Submerges are key ranges: no two have entries of the same user key, and range tombstones are cut
//! at their borders. Invariant: they follow each other without gaps, from the merge's first key to
//! its last.

use crate::entries::cursor::Cursor;
use crate::entries::key_bounds::KeyBounds;
use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::files::run_table::RunTable;
use crate::plan::partitions::Division;

/// Samples per submerge, approximately.
const SAMPLES_PER_SUBMERGE: u64 = 8;

/// A key range that one thread merges at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubmergeRange {
    pub(crate) range: KeyBounds,
    /// Bytes of the inputs in it, approximately.
    pub(crate) bytes: u64,
    /// Whether a partition begins with it.
    pub(crate) begins_partition: bool,
}

/// A key of the inputs, and the bytes of its table from there to the next sample.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sample {
    key: Vec<u8>,
    bytes: u64,
}

/// Returns the merge as a single submerge.
pub(crate) fn undivided(range: &KeyBounds, inputs: &[PlacedRun]) -> Vec<SubmergeRange> {
    let bytes = inputs.iter().map(|placed| placed.run.bytes()).sum();
    vec![SubmergeRange { range: range.clone(), bytes, begins_partition: false }]
}

/// Returns the submerges of a merge, each of about `submerge_bytes` or more. Reads a few blocks.
/// `division`: how the output is cut into partitions. None: it is not.
pub(crate) fn divided(
    range: &KeyBounds,
    inputs: &[PlacedRun],
    submerge_bytes: u64,
    division: Option<Division>,
) -> Result<Vec<SubmergeRange>> {
    let bytes: u64 = inputs.iter().map(|placed| placed.run.bytes()).sum();
    if bytes < submerge_bytes.saturating_mul(2) {
        return Ok(undivided(range, inputs));
    }
    let tables = inputs.iter().flat_map(|placed| placed.run.tables());
    let mut samples = Vec::new();
    tables.into_iter().try_for_each(|table| sample(table, submerge_bytes, &mut samples))?;
    samples.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    let partitions = division.map_or(1, |division| division.partitions_of(bytes));
    Ok(cut(range, &samples, bytes / submerge_bytes, partitions))
}

/// Adds samples of a table.
fn sample(table: &RunTable, submerge_bytes: u64, samples: &mut Vec<Sample>) -> Result<()> {
    let (entries, bytes) = (table.entry_count(), table.bytes_within());
    let count = (bytes.saturating_mul(SAMPLES_PER_SUBMERGE) / submerge_bytes).min(entries).max(1);
    let bytes = bytes / count;
    samples.push(Sample { key: table.key_bounds().from, bytes });
    let mut cursor = table.cursor().fill_cache(false);
    for nth in 1..count {
        cursor.seek_rank(table.skipped() + entries * nth / count)?;
        samples.extend(cursor.entry().map(|entry| Sample { key: entry.key.to_vec(), bytes }));
    }
    Ok(())
}

/// Cuts a range into about `count` submerges. At some of their borders also begin partitions, about
/// `partitions` in all. Requires: samples ascend.
fn cut(range: &KeyBounds, samples: &[Sample], count: u64, partitions: u64) -> Vec<SubmergeRange> {
    let total: u64 = samples.iter().map(|sample| sample.bytes).sum();
    let (even, partition) = (total / count.max(1), total / partitions.max(1));
    let first = SubmergeRange { range: range.clone(), bytes: total, begins_partition: false };
    let mut cut = vec![first];
    let (mut before, mut cut_at, mut partition_at) = (0, 0, 0);
    for sample in samples {
        let last = cut.last_mut().expect("there is a first one");
        let is_due = before - cut_at >= even.max(1) && before + even / 2 <= total;
        if is_due && sample.key > last.range.from && range.ends_after(&sample.key) {
            let to = last.range.to.replace(sample.key.clone());
            last.bytes = before - cut_at;
            // The border closest to the place where a partition of even size would end.
            let begins_partition =
                before + even / 2 - partition_at >= partition && before + partition / 2 <= total;
            if begins_partition {
                partition_at = before;
            }
            let range = KeyBounds { from: sample.key.clone(), to };
            cut.push(SubmergeRange { range, bytes: total - before, begins_partition });
            cut_at = before;
        }
        before += sample.bytes;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: u64) -> Vec<Sample> {
        let sample = |n: u64| Sample { key: n.to_be_bytes().to_vec(), bytes: 10 };
        (0..count).map(sample).collect()
    }

    #[test]
    fn submerges_are_even_and_cover_the_range() {
        let range = KeyBounds { from: Vec::new(), to: Some(b"~".to_vec()) };
        for (count, submerges, partitions) in [(1000, 7, 1), (1000, 8, 4), (64, 8, 3), (5, 9, 2)] {
            let cut = cut(&range, &samples(count), submerges, partitions);
            assert!((submerges.min(count) - 1..=submerges).contains(&(cut.len() as u64)));
            let ends = (&cut[0].range.from, &cut[cut.len() - 1].range.to);
            assert_eq!(ends, (&range.from, &range.to));
            let follows = |pair: &[SubmergeRange]| {
                pair[0].range.to.as_ref() == Some(&pair[1].range.from)
                    && pair[0].range.from < pair[1].range.from
            };
            assert!(cut.windows(2).all(follows), "{cut:?}");
            let bytes: u64 = cut.iter().map(|submerge| submerge.bytes).sum();
            assert_eq!(bytes, count * 10);
            let even = bytes / cut.len() as u64;
            assert!(cut.iter().all(|submerge| submerge.bytes <= 2 * even), "{cut:?}");
            let begun = cut.iter().filter(|submerge| submerge.begins_partition).count() as u64;
            assert!(!cut[0].begins_partition && begun < partitions.max(1), "{cut:?}");
        }
        let cut = cut(&range, &samples(1000), 8, 4);
        let begins: Vec<bool> = cut.iter().map(|submerge| submerge.begins_partition).collect();
        assert_eq!(begins, [false, false, true, false, true, false, true, false]);
    }

    #[test]
    fn one_key_is_in_one_submerge() {
        let same = vec![Sample { key: b"key".to_vec(), bytes: 10 }; 100];
        assert_eq!(cut(&KeyBounds::all(), &same, 10, 1).len(), 2, "before it, and from it on");
        let from_it_on = KeyBounds { from: b"key".to_vec(), to: None };
        assert_eq!(cut(&from_it_on, &same, 10, 1).len(), 1);
    }
}
