//! What the backups of a history must lead to.
//! ```text
//! generation 1   changes   generation 2      a state is remembered for each end, and for snapshots
//!     41          -> 57         60           between them
//! ```
//! Invariant: what it remembers was said to be there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trommel::backup::Generation;
use trommel::storage::{Memory, Storage};

use super::model::State;

/// Moments that are remembered at most, of each kind.
const MOMENTS_MAX: usize = 6;

/// What the backups must lead to.
#[derive(Default)]
pub(crate) struct BackupBook {
    /// Folders that were given up before this one.
    given_up: u32,
    /// By their numbers.
    pub(crate) generations: BTreeMap<u64, KnownMoment>,
    /// Those that changes lead to.
    pub(crate) shipped: Vec<KnownMoment>,
    /// Those that the next changes may lead to.
    coming: Vec<KnownMoment>,
    /// A generation may have writes that the store itself may lose.
    pub(crate) is_ahead: bool,
}

/// A state of the store, and its number.
pub(crate) struct KnownMoment {
    pub(crate) sequence: u64,
    pub(crate) state: State,
}

impl BackupBook {
    pub(crate) fn folder(&self) -> PathBuf {
        PathBuf::from(format!("backups-{}", self.given_up))
    }

    /// Somebody has taken a snapshot.
    pub(crate) fn note(&mut self, sequence: u64, state: &State) {
        if !self.generations.is_empty() {
            push(&mut self.coming, KnownMoment { sequence, state: state.clone() });
        }
    }

    /// All that the store shows is durable.
    pub(crate) fn store_is_durable(&mut self) {
        self.is_ahead = false;
    }

    /// The store was opened, and may be older than before. If a generation has writes that it has
    /// lost, others now get their numbers: changes would not follow that generation.
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

    /// Changes behind one write and up to another are there, and so is what lies between.
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

    /// No other generations are there any more.
    pub(crate) fn keep(&mut self, kept: &[Generation]) {
        self.generations.retain(|number, _| kept.iter().any(|it| it.number == *number));
        let oldest = kept.iter().map(|it| it.sequence).min();
        self.shipped.retain(|moment| oldest.is_some_and(|oldest| moment.sequence >= oldest));
    }

    /// Every generation that was made is there.
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

/// The oldest ones are forgotten.
fn push(moments: &mut Vec<KnownMoment>, moment: KnownMoment) {
    moments.push(moment);
    if moments.len() > MOMENTS_MAX {
        moments.remove(0);
    }
}
