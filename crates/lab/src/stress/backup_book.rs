//! The expected contents of a history's backups.
//! ```text
//! generation 1   changes   generation 2      a state is remembered for each end, and for snapshots
//!     41          -> 57         60           between them
//! ```
//! Invariant: the book has only states that a call reported as backed up.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trommel::backup::Generation;
use trommel::storage::{Memory, Storage};

use super::model::State;

/// The most moments that are remembered of each kind.
const MOMENTS_MAX: usize = 6;

/// The expected contents of the backups.
#[derive(Default)]
pub(crate) struct BackupBook {
    /// Folders that were abandoned before the current one.
    given_up: u32,
    /// The state of each generation, by number.
    pub(crate) generations: BTreeMap<u64, KnownMoment>,
    /// States that shipped changes lead to.
    pub(crate) shipped: Vec<KnownMoment>,
    /// States that the next changes may lead to.
    coming: Vec<KnownMoment>,
    /// Whether a generation may have writes that the store itself may lose.
    pub(crate) is_ahead: bool,
}

/// A state of the store, and its sequence number.
pub(crate) struct KnownMoment {
    pub(crate) sequence: u64,
    pub(crate) state: State,
}

impl BackupBook {
    pub(crate) fn folder(&self) -> PathBuf {
        PathBuf::from(format!("backups-{}", self.given_up))
    }

    /// Notes that a snapshot was taken.
    pub(crate) fn note(&mut self, sequence: u64, state: &State) {
        if !self.generations.is_empty() {
            push(&mut self.coming, KnownMoment { sequence, state: state.clone() });
        }
    }

    /// Notes that everything visible in the store is durable.
    pub(crate) fn store_is_durable(&mut self) {
        self.is_ahead = false;
    }

    /// Notes that the store was opened, and may be older than before. If a generation has writes
    /// that the store has lost, new writes reuse their numbers. Changes could not follow that
    /// generation, so the folder is abandoned.
    pub(crate) fn store_may_be_older(&mut self, disk: &Memory) {
        self.coming.clear();
        if !self.is_ahead {
            return;
        }
        let folder = self.folder();
        for name in disk.list(&folder).unwrap_or_default() {
            let _ = disk.remove(&folder.join(name));
        }
        *self = BackupBook { given_up: self.given_up + 1, ..BackupBook::default() };
    }

    /// Notes that changes from one write up to another were shipped, with all states between.
    pub(crate) fn lead_to(&mut self, from: u64, end: KnownMoment) {
        let (to, coming) = (end.sequence, std::mem::take(&mut self.coming));
        for moment in coming {
            match moment.sequence {
                sequence if sequence > to => self.coming.push(moment),
                sequence if sequence >= from => push(&mut self.shipped, moment),
                _ => {}
            }
        }
        push(&mut self.shipped, end);
    }

    /// Notes which generations remain.
    pub(crate) fn keep(&mut self, kept: &[Generation]) {
        self.generations.retain(|number, _| kept.iter().any(|it| it.number == *number));
        let oldest = kept.iter().map(|it| it.sequence).min();
        self.shipped.retain(|moment| oldest.is_some_and(|oldest| moment.sequence >= oldest));
    }

    /// Checks that all known generations are listed.
    pub(crate) fn check(&self, listed: &[Generation]) -> Result<(), String> {
        for (number, moment) in &self.generations {
            let found = listed.iter().find(|it| it.number == *number).map(|it| it.sequence);
            if found != Some(moment.sequence) {
                let expected = moment.sequence;
                return Err(format!("generation {number} of {expected} is there as of {found:?}"));
            }
        }
        Ok(())
    }
}

/// Appends a moment; forgets the oldest if there are too many.
fn push(moments: &mut Vec<KnownMoment>, moment: KnownMoment) {
    moments.push(moment);
    if moments.len() > MOMENTS_MAX {
        moments.remove(0);
    }
}
