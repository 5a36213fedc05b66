//! Draws operations beside the store: followers and backups, in place of some reads.
//! ```text
//! read of the store -> nearly always the same read
//!                   -> now and then a follower opens, catches up, is read; a backup is made, read
//! ```
//! Invariant: these draws change no other draw of a history, so all its writes stay.

use super::draw::draw_failure;
use super::keys::Keys;
use super::operation::{BackupOperation, FollowerOperation, StressOperation};
use crate::keys::rng::Rng;

/// The mean share of replaceable reads that become operations of followers. Of all steps this is
/// about a fourth.
const FOLLOWER_SHARE: f64 = 0.07;
/// The same share for backups, which cost more.
const BACKUP_SHARE: f64 = 0.018;

/// Draws followers and backups.
pub(crate) struct BesideDrawer {
    rng: Rng,
    followers: f64,
    backups: f64,
}

impl BesideDrawer {
    /// Creates the drawer of a history. Some histories have no followers, or no backups.
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0be5_1de5);
        let mut factor = || [0.0, 1.0, 1.0, 2.0][rng.place(4)];
        let (followers, backups) = (FOLLOWER_SHARE * factor(), BACKUP_SHARE * factor());
        BesideDrawer { rng, followers, backups }
    }

    /// Creates a drawer without followers and backups.
    pub(crate) fn none() -> Self {
        BesideDrawer { rng: Rng::new(0), followers: 0.0, backups: 0.0 }
    }

    /// Replaces some reads by other operations.
    pub(crate) fn instead_of(
        &mut self,
        operation: StressOperation,
        keys: &Keys,
    ) -> StressOperation {
        if !is_read(&operation) {
            return operation;
        }
        let drawn = self.rng.unit();
        if drawn < self.backups {
            return StressOperation::Backup(self.of_backups());
        }
        if drawn < self.backups + self.followers {
            return StressOperation::Follower(self.of_followers(keys));
        }
        operation
    }

    fn of_followers(&mut self, keys: &Keys) -> FollowerOperation {
        let rng = &mut self.rng;
        let which = rng.place(8);
        match rng.below(12) {
            0..2 => FollowerOperation::Open(rng.next_u64()),
            2..6 => FollowerOperation::CatchUp { which, keeps: rng.below(3) == 0 },
            6..11 => FollowerOperation::Read {
                which,
                old: rng.below(3) == 0,
                place: keys.draw(rng),
                edges: keys.draw_edges(rng),
            },
            _ => FollowerOperation::Drop(which),
        }
    }

    fn of_backups(&mut self) -> BackupOperation {
        let rng = &mut self.rng;
        let failure = (rng.below(4) == 0).then(|| draw_failure(rng));
        match rng.below(12) {
            0..4 => BackupOperation::BackUp(failure),
            4..8 => BackupOperation::Ship(failure),
            8..11 => BackupOperation::Restore(rng.next_u64()),
            _ => BackupOperation::Prune(1 + rng.place(2)),
        }
    }
}

/// Whether an operation changes nothing, and costs about as much as a replacement.
fn is_read(operation: &StressOperation) -> bool {
    matches!(
        operation,
        StressOperation::Get(_)
            | StressOperation::Scan { .. }
            | StressOperation::Count(_)
            | StressOperation::ReadSnapshot { .. }
            | StressOperation::MoveScan { .. }
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::draw::history;
    use super::*;

    #[test]
    fn all_kinds_come_and_few_of_each() {
        let (mut followers, mut backups) = (0, 0);
        let (mut of_followers, mut of_backups) = (HashSet::new(), HashSet::new());
        for step in (0..80).flat_map(|seed| history(seed, 1000).steps) {
            match &step.operation {
                StressOperation::Follower(operation) => {
                    followers += 1;
                    of_followers.insert(std::mem::discriminant(operation));
                }
                StressOperation::Backup(operation) => {
                    backups += 1;
                    of_backups.insert(std::mem::discriminant(operation));
                }
                _ => {}
            }
        }
        assert!((400..2400).contains(&followers), "{followers} of 80000");
        assert!((100..700).contains(&backups), "{backups} of 80000");
        assert_eq!((of_followers.len(), of_backups.len()), (4, 4));
    }
}
