//! Which entries of a key outlive a merge.
//! ```text
//! snapshots      10          20          visible 30
//! stripes   0 |  10] 1  |  20]  2  |  30]
//! key k     put 7, put 9   put 15      delete 22, put 28     keeps 9, 15, 28
//! ```
//! A deletion of a range hides what is older, and what it hides from every reader is dropped. Of
//! the deletions of one range one is kept for each stripe. Invariant (ordering rule 2): a read at a
//! registered number, or at the visible one or later, sees the same before and after the merge.

use std::time::Duration;

use crate::entries::entry::{Entry, Kind, Sequence};
use crate::entries::tombstones::RangeTombstones;

/// Says false only of a key that no run older than the inputs has.
pub(crate) type AsksOlder = dyn Fn(&[u8]) -> bool + Send;

/// Decides entry by entry, in the order of entries.
pub(crate) struct Retention {
    /// Ascending; the last is the number that was visible when the merge began.
    snapshots: Vec<Sequence>,
    /// Whether nothing older than the inputs exists, so that a deletion need not be kept.
    bottom: bool,
    /// By the clock, when the merge began: what has expired then is as good as deleted.
    now: Duration,
    /// The ranges that the inputs delete.
    tombstones: RangeTombstones,
    /// Whether runs older than the inputs may have a key. None: they may have any.
    may_be_older: Option<Box<AsksOlder>>,
    key: Vec<u8>,
    /// The stripe of the entry of `key` that was kept or dropped last.
    stripe: Option<usize>,
}

impl Retention {
    /// `now`: time since the start of 1970. `tombstones`: the ranges that the inputs delete, as far
    /// as they are seen at `snapshots` and later.
    pub(crate) fn new(
        snapshots: Vec<Sequence>,
        bottom: bool,
        now: Duration,
        tombstones: RangeTombstones,
    ) -> Self {
        let (may_be_older, key) = (None, Vec::new());
        Retention { snapshots, bottom, now, tombstones, may_be_older, key, stripe: None }
    }

    /// The same; a deletion goes where no older run may have its key, too.
    pub(crate) fn asking(self, may_be_older: Box<AsksOlder>) -> Self {
        Retention { may_be_older: Some(may_be_older), ..self }
    }

    /// Whether no run older than the inputs has the key.
    fn is_oldest(&self, key: &[u8]) -> bool {
        self.bottom || self.may_be_older.as_ref().is_some_and(|may_be_older| !may_be_older(key))
    }

    /// The deletions of ranges that must be kept.
    pub(crate) fn kept_tombstones(&self) -> RangeTombstones {
        self.tombstones.thinned(|in_force| {
            let mut kept = in_force.to_vec();
            kept.dedup_by_key(|sequence| self.stripe_of(*sequence));
            kept.retain(|sequence| !(self.bottom && self.stripe_of(*sequence) == 0));
            kept
        })
    }

    /// Of two writes in one stripe no reader sees the older one without the newer one.
    fn stripe_of(&self, sequence: Sequence) -> usize {
        self.snapshots.partition_point(|snapshot| *snapshot < sequence)
    }

    /// Whether every reader that sees the entry sees a newer deletion of a range around it.
    fn is_hidden(&self, entry: &Entry<'_>, stripe: usize) -> bool {
        let at = self.snapshots.get(stripe).copied().unwrap_or(Sequence::MAX);
        self.tombstones
            .covering_tombstone(entry.key, at)
            .is_some_and(|deleted| deleted > entry.sequence)
    }

    /// Whether the entry must be kept. Requires: entries come in their order.
    pub(crate) fn keeps(&mut self, entry: &Entry<'_>) -> bool {
        if self.stripe.is_none() || self.key != entry.key {
            self.key.clear();
            self.key.extend_from_slice(entry.key);
            self.stripe = None;
        }
        let stripe = self.stripe_of(entry.sequence);
        let newest_of_stripe = self.stripe != Some(stripe);
        self.stripe = Some(stripe);
        let is_gone = || entry.kind == Kind::Delete || entry.has_expired(self.now);
        let needless_deletion = || stripe == 0 && is_gone() && self.is_oldest(entry.key);
        newest_of_stripe && !self.is_hidden(entry, stripe) && !needless_deletion()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(snapshots: &[u64], bottom: bool, entries: &[(u64, Kind)]) -> Vec<u64> {
        let snapshots = snapshots.iter().map(|&number| Sequence(number)).collect();
        let mut retention =
            Retention::new(snapshots, bottom, Duration::from_millis(5), RangeTombstones::default());
        let entry =
            |&(number, kind)| Entry { key: b"k", sequence: Sequence(number), kind, value: b"" };
        let entries = entries.iter().map(entry);
        entries.filter(|entry| retention.keeps(entry)).map(|entry| entry.sequence.0).collect()
    }

    #[test]
    fn every_snapshot_keeps_what_it_sees() {
        let entries =
            [28, 22, 15, 9, 7].map(|n| (n, if n == 22 { Kind::Delete } else { Kind::Put }));
        assert_eq!(kept(&[10, 20, 30], true, &entries), [28, 15, 9]);
        assert_eq!(kept(&[30], true, &entries), [28]);
    }

    #[test]
    fn a_deletion_goes_only_at_the_bottom_and_only_when_no_one_older_reads() {
        let entries = [(22, Kind::Delete), (9, Kind::Put)];
        assert_eq!(kept(&[30], true, &entries), [0u64; 0]);
        assert_eq!(kept(&[30], false, &entries), [22]);
        assert_eq!(kept(&[10, 30], true, &entries), [22, 9]);
    }

    #[test]
    fn a_deletion_goes_where_no_older_run_may_have_its_key() {
        let entry = |key: &'static [u8], number, kind| Entry {
            key,
            sequence: Sequence(number),
            kind,
            value: b"",
        };
        let kept = |snapshots: &[u64]| {
            let snapshots = snapshots.iter().map(|&number| Sequence(number)).collect();
            let retention =
                Retention::new(snapshots, false, Duration::ZERO, RangeTombstones::default());
            let mut retention = retention.asking(Box::new(|key| key == b"below"));
            let entries = [b"above", b"below"].into_iter().flat_map(|key| {
                [(22, Kind::Delete), (9, Kind::Put)].map(|(number, kind)| entry(key, number, kind))
            });
            entries.map(|entry| retention.keeps(&entry)).collect::<Vec<_>>()
        };
        assert_eq!(kept(&[30]), [false, false, true, false]);
        assert_eq!(kept(&[10, 30]), [true, true, true, true], "a snapshot sees the older ones");
    }

    #[test]
    fn what_has_expired_goes_where_a_deletion_may() {
        let kept = |snapshots: &[u64], bottom, expiry: u64| {
            let snapshots = snapshots.iter().map(|&number| Sequence(number)).collect();
            let now = Duration::from_millis(5);
            let mut retention = Retention::new(snapshots, bottom, now, RangeTombstones::default());
            let stored = expiry.to_le_bytes();
            let (kind, value) = (Kind::PutWithExpiry, &stored[..]);
            let expiring = Entry { key: b"k", sequence: Sequence(22), kind, value };
            let older = Entry { sequence: Sequence(9), kind: Kind::Put, ..expiring };
            [expiring, older].map(|entry| retention.keeps(&entry))
        };
        assert_eq!(kept(&[30], true, 5), [false, false], "it hides what is older");
        assert_eq!(kept(&[30], true, 6), [true, false], "its time has not come");
        assert_eq!(kept(&[30], false, 5), [true, false], "there may be something older below");
        assert_eq!(kept(&[10, 30], true, 5), [true, true], "a snapshot sees the older one");
    }
}
