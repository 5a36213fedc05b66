//! Special workloads of read benchmarks, beyond uniform questions over keys of one distribution.
//! ```text
//! correlated   misses and empty ranges begin close behind stored keys
//! deleted      stripes of the keys:  [  ####    ] [ ####     ] [     ####]
//!              #: written, then deleted; misses are there
//! inserts      last run: keys of one law      newer runs: keys of another one
//! empty        closed seeks as wide as it takes for a share of them to find nothing
//! ```
//! Invariant: the keys that are stored in the end are one sorted set, against which answers are
//! checked.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::{KeySet, split_at_random};
use crate::keys::rng::{Rng, scramble};
use crate::questions::question_draw::Misses;
use crate::report::DeletedReport;
use crate::tree_plan::TreePlan;

/// The special properties of keys and questions; by default none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadWorkload {
    /// The largest distance of misses and empty ranges behind a stored key; at least 1.
    pub correlated: Option<u64>,
    /// The keys that are deleted while newer runs are loaded. Misses and empty ranges lie where
    /// they were.
    pub deleted: Option<Deletion>,
    /// The source of keys of newer runs, if it is not that of the last run's keys.
    pub inserts: Option<Dist>,
    /// Shares of closed seeks that find nothing. Each share has its own list of questions.
    pub empty_shares: Vec<f64>,
}

/// Which keys are deleted, and in which way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deletion {
    /// The share of the keys.
    pub share: f64,
    /// The way.
    pub by: DeletedBy,
}

/// How keys are deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletedBy {
    /// One deletion for each key.
    #[default]
    Key,
    /// One range deletion for each stretch of keys.
    Range,
}

impl fmt::Display for DeletedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeletedBy::Key => "key",
            DeletedBy::Range => "range",
        })
    }
}

impl FromStr for DeletedBy {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self> {
        let all = [DeletedBy::Key, DeletedBy::Range];
        all.into_iter().find(|by| by.to_string() == name).ok_or_else(|| {
            LabError::Plan(format!("nothing is deleted by '{name}'; there are: key, range"))
        })
    }
}

/// The number of stretches of deleted keys.
const STRETCHES: usize = 100;

impl ReadWorkload {
    /// Checks the workload. An error names the option that makes no sense.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |problem: String| Err(LabError::Plan(problem));
        let is_share = |share: f64| 0.0 < share && share < 1.0;
        if self.correlated == Some(0) {
            return wrong("--correlated 0: must be 1 or more".into());
        }
        if let Some(deletion) = self.deleted.filter(|deletion| !is_share(deletion.share)) {
            return wrong(format!("--deleted {}: must be between 0 and 1", deletion.share));
        }
        if let Some(share) = self.empty_shares.iter().find(|share| !is_share(**share)) {
            return wrong(format!("--empty {share}: must be between 0 and 1"));
        }
        let misses = [self.correlated.is_some(), self.deleted.is_some()];
        if misses == [true, true] {
            return wrong(
                "--correlated, --deleted: misses are behind keys or where keys were deleted".into(),
            );
        }
        if self.inserts.is_some() && self.deleted.is_some() {
            return wrong("--inserts, --deleted: one of them at a time".into());
        }
        Ok(())
    }
}

/// The keys of a store, and how they are written.
pub(crate) struct Stored {
    /// The keys that are stored in the end.
    pub(crate) keys: KeySet,
    writes: Writes,
}

enum Writes {
    /// The stored keys are written once.
    Once,
    /// The keys of the last run and those of newer runs have different sources.
    Shifted { base: SortedKeys, newer: SortedKeys, from: Dist },
    /// More keys are written than are stored in the end.
    Deleted { all: SortedKeys, deleted: Deleted },
}

/// What to write into a store: each list in random order, one list after the other.
#[derive(Clone, Copy)]
pub(crate) struct Content<'k> {
    /// All keys, or those of the last level.
    pub(crate) keys: &'k SortedKeys,
    /// The keys of newer runs, if they have a source of their own.
    pub(crate) newer: Option<&'k SortedKeys>,
    /// The keys that are deleted while newer runs are written.
    pub(crate) deleted: Option<&'k Deleted>,
}

/// Keys that are written and deleted.
pub(crate) struct Deleted {
    pub(crate) by: DeletedBy,
    pub(crate) keys: SortedKeys,
    /// The end of each stretch in `keys`.
    pub(crate) ends: Vec<usize>,
}

impl Stored {
    /// Draws the keys of a plan. Requires: the workload was checked.
    pub(crate) fn draw(
        workload: &ReadWorkload,
        (dist, format): (&Dist, FileFormat),
        count: Option<usize>,
        tree: &TreePlan,
    ) -> Result<Stored> {
        let keys = KeySet::new(dist, format, count, tree.seed)?;
        tree.check(keys.stored().len())?;
        if let Some(deletion) = workload.deleted {
            return deleted(keys, deletion, tree.seed);
        }
        match &workload.inserts {
            Some(other) => shifted(keys, other, tree),
            None => Ok(Stored { keys, writes: Writes::Once }),
        }
    }

    /// Returns what to write.
    pub(crate) fn content(&self) -> Content<'_> {
        let keys = self.keys.stored();
        match &self.writes {
            Writes::Once => Content { keys, newer: None, deleted: None },
            Writes::Shifted { base, newer, .. } => {
                Content { keys: base, newer: Some(newer), deleted: None }
            }
            Writes::Deleted { all, deleted } => {
                Content { keys: all, newer: None, deleted: Some(deleted) }
            }
        }
    }

    /// Returns the location of misses and empty ranges.
    pub(crate) fn misses(&self, workload: &ReadWorkload) -> Misses<'_> {
        match (&self.writes, workload.correlated) {
            (Writes::Deleted { deleted, .. }, _) => Misses::Deleted(&deleted.keys),
            (_, Some(most)) => Misses::Behind(most),
            _ => Misses::LikeKeys,
        }
    }

    /// Returns a report of the deletions. None: nothing was deleted.
    pub(crate) fn deleted(&self) -> Option<DeletedReport> {
        let deleted = self.content().deleted?;
        Some(DeletedReport {
            keys: deleted.keys.len() as u64,
            stretches: deleted.ends.len() as u64,
            by: deleted.by.to_string(),
        })
    }

    /// Returns the source of keys of newer runs, if it is a source of its own.
    pub(crate) fn inserts(&self) -> Option<&Dist> {
        match &self.writes {
            Writes::Shifted { from, .. } => Some(from),
            Writes::Once | Writes::Deleted { .. } => None,
        }
    }
}

/// Divides the keys into a hundred equal stripes, and deletes a stretch at a random place of each.
fn deleted(keys: KeySet, deletion: Deletion, seed: u64) -> Result<Stored> {
    let all = keys.stored().clone();
    let mut rng = Rng::new(scramble(seed ^ 5));
    let mut gone = vec![false; all.len()];
    let mut ends = Vec::new();
    for stripe in 0..STRETCHES {
        let from = stripe * all.len() / STRETCHES;
        let to = (stripe + 1) * all.len() / STRETCHES;
        let count = ((to - from) as f64 * deletion.share).round() as usize;
        if count == 0 {
            continue;
        }
        let start = from + rng.place(to - from - count + 1);
        gone[start..start + count].fill(true);
        ends.push(ends.last().unwrap_or(&0) + count);
    }
    let (kept, deleted) = all.split(|place| gone[place]);
    if kept.is_empty() || deleted.is_empty() {
        let problem =
            format!("--deleted {}: of {} keys that leaves none", deletion.share, all.len());
        return Err(LabError::Plan(problem + ", or takes none"));
    }
    let writes = Writes::Deleted { all, deleted: Deleted { by: deletion.by, keys: deleted, ends } };
    Ok(Stored { keys: keys.with_stored(kept), writes })
}

/// Takes as many keys as the last run has. The other source gives newer runs as many keys as
/// remain.
fn shifted(keys: KeySet, other: &Dist, tree: &TreePlan) -> Result<Stored> {
    let count = keys.stored().len();
    let in_base = tree.base_count(count);
    if in_base == count {
        return Err(LabError::Plan("--inserts: a tree of one level has no newer runs".into()));
    }
    let seed = scramble(tree.seed ^ 6);
    let (_, base) = split_at_random(keys.stored(), in_base, &mut Rng::new(seed));
    let newer = KeySet::new(other, FileFormat::Lines, Some(count - in_base), seed)?;
    let from = newer.dist().clone();
    let (fresh, _) = newer.stored().split(|place| base.holds(newer.stored().get(place)));
    if fresh.is_empty() {
        let problem = format!("--inserts {from}: all of its keys are in the last run");
        return Err(LabError::Plan(problem));
    }
    let keys = keys.with_stored(base.clone()).joined(newer, &fresh);
    Ok(Stored { keys, writes: Writes::Shifted { base, newer: fresh, from } })
}

impl Deleted {
    /// Returns the places of a stretch's keys.
    pub(crate) fn stretch(&self, nth: usize) -> Range<usize> {
        let start = nth.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[nth]
    }

    /// Returns the first key of a stretch, and the key right behind its last.
    pub(crate) fn bounds(&self, nth: usize) -> (&[u8], Vec<u8>) {
        let places = self.stretch(nth);
        (self.keys.get(places.start), [self.keys.get(places.end - 1), &[0]].concat())
    }
}

#[cfg(test)]
mod tests;
