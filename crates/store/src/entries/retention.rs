//! Retention: which entries of a key survive a merge.
//! ```text
//! snapshots      10          20          visible 30
//! stripes   0 |  10] 1  |  20]  2  |  30]
//! key k     put 7, put 9   put 15      delete 22, put 28     keeps 9, 15, 28
//! ```
//! A *stripe* is the interval of sequence numbers from one snapshot to the next. Operands of a
//! stripe become one value once it is known what lies below them (`held_operands.rs`). A range
//! tombstone hides older entries, and the merge drops an entry that is hidden from every reader. Of
//! the tombstones of one range, one is kept for each stripe.
//!
//! Invariant (ordering rule 2): the merge changes nothing for a read at a registered number, or at
//! the visible number or later.

use std::sync::Arc;
use std::time::Duration;

use crate::entries::entry::{Entry, Kind, Sequence};
use crate::entries::held_operands::{Below, HeldOperands, MadeEntry};
use crate::entries::merge_operator::MergeOperator;
use crate::entries::tombstones::RangeTombstones;

/// Returns false only for a key that no run older than the inputs contains.
pub(crate) type AsksOlder = dyn Fn(&[u8]) -> bool + Send;

/// Decides on each entry, in the order of entries.
pub(crate) struct Retention {
    /// Ascending. The last one is the number that was visible when the merge began.
    snapshots: Vec<Sequence>,
    /// Whether nothing older than the inputs exists, so that deletions can be dropped.
    bottom: bool,
    /// The time when the merge began. Entries that had expired then count as deleted.
    now: Duration,
    /// The inputs' range tombstones.
    tombstones: RangeTombstones,
    /// Whether runs older than the inputs may have a key. `None`: they may have any.
    may_be_older: Option<Box<AsksOlder>>,
    key: Vec<u8>,
    has_begun: bool,
    /// The stripe of the entry of `key` that was kept or dropped last. Its readers see no older
    /// entry. Operands do not count, since they leave older entries visible.
    stripe: Option<usize>,
    /// The held operands of `key`, newer than all entries to come.
    held: HeldOperands,
}

/// The decision on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No reader needs the entry, or a combined entry contains it.
    Drop,
    /// The entry is kept unchanged.
    Keep,
    /// The entry is an operand that is kept, by itself or within a later combined entry.
    Hold,
}

impl Retention {
    /// Creates a retention. `now` is the time since the Unix epoch. `tombstones` are those of the
    /// inputs that readers at `snapshots` or later see.
    pub(crate) fn new(
        snapshots: Vec<Sequence>,
        bottom: bool,
        now: Duration,
        tombstones: RangeTombstones,
    ) -> Self {
        let (may_be_older, key, held) = (None, Vec::new(), HeldOperands::default());
        let (has_begun, stripe) = (false, None);
        Retention { snapshots, bottom, now, tombstones, may_be_older, key, has_begun, stripe, held }
    }

    /// Also combines operands into one value or operand, where every reader sees all of them or
    /// none.
    pub(crate) fn merging(self, operator: Option<Arc<dyn MergeOperator>>) -> Self {
        Retention { held: HeldOperands::new(operator), ..self }
    }

    /// Also drops deletions of keys that no older run may have.
    pub(crate) fn asking(self, may_be_older: Box<AsksOlder>) -> Self {
        Retention { may_be_older: Some(may_be_older), ..self }
    }

    /// Whether no run older than the inputs has the key.
    fn is_oldest(&self, key: &[u8]) -> bool {
        self.bottom || self.may_be_older.as_ref().is_some_and(|may_be_older| !may_be_older(key))
    }

    /// Returns the range tombstones that must be kept.
    pub(crate) fn kept_tombstones(&self) -> RangeTombstones {
        self.tombstones.thinned(|in_force| {
            let mut kept = in_force.to_vec();
            kept.dedup_by_key(|sequence| self.stripe_of(*sequence));
            kept.retain(|sequence| !(self.bottom && self.stripe_of(*sequence) == 0));
            kept
        })
    }

    /// Returns the stripe of a number. A reader that sees the older of two writes in one stripe
    /// also sees the newer one.
    fn stripe_of(&self, sequence: Sequence) -> usize {
        self.snapshots.partition_point(|snapshot| *snapshot < sequence)
    }

    /// Whether every reader that sees the entry also sees a newer range tombstone that covers it.
    fn is_hidden(&self, entry: &Entry<'_>, stripe: usize) -> bool {
        let at = self.snapshots.get(stripe).copied().unwrap_or(Sequence::MAX);
        self.tombstones
            .covering_tombstone(entry.key, at)
            .is_some_and(|deleted| deleted > entry.sequence)
    }

    /// Decides on an entry. Entries that are ready afterwards must be written before it. Requires:
    /// entries come in their order.
    pub(crate) fn judge(&mut self, entry: &Entry<'_>) -> Verdict {
        if !self.has_begun || self.key != entry.key {
            if !self.held.is_empty() {
                self.end_operands(true);
            }
            self.key.clear();
            self.key.extend_from_slice(entry.key);
            (self.stripe, self.has_begun) = (None, true);
            self.held.begin_key();
        }
        let stripe = self.stripe_of(entry.sequence);
        if entry.kind == Kind::Merge || !self.held.is_empty() {
            return self.judge_with_operands(entry, stripe);
        }
        let newest_of_stripe = self.stripe != Some(stripe);
        self.stripe = Some(stripe);
        let is_kept = newest_of_stripe
            && !self.is_hidden(entry, stripe)
            && !self.is_needless_deletion(entry, stripe);
        if is_kept { Verdict::Keep } else { Verdict::Drop }
    }

    /// Ends the input.
    pub(crate) fn end(&mut self) {
        if !self.held.is_empty() {
            self.end_operands(true);
        }
    }

    /// Whether there are entries to write.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        self.held.has_ready()
    }

    /// Removes and returns the entries to write before all later ones.
    pub(crate) fn take_ready(&mut self) -> Vec<MadeEntry> {
        self.held.take_ready()
    }

    fn is_needless_deletion(&self, entry: &Entry<'_>, stripe: usize) -> bool {
        let is_gone = || entry.kind == Kind::Delete || entry.has_expired(self.now);
        stripe == 0 && is_gone() && self.is_oldest(entry.key)
    }

    /// Decides on an operand, or on an entry that follows held operands of its key.
    #[cold]
    fn judge_with_operands(&mut self, entry: &Entry<'_>, stripe: usize) -> Verdict {
        if !self.held.is_empty() && self.held.stripe() != stripe {
            self.end_operands(false);
        }
        if self.stripe == Some(stripe) {
            return Verdict::Drop;
        }
        if self.is_hidden(entry, stripe) {
            self.stripe = Some(stripe);
            self.held.end(&self.key, Below::Nothing);
            return Verdict::Drop;
        }
        if entry.kind == Kind::Merge {
            return match self.held.has_come(entry.sequence) {
                true => Verdict::Drop,
                false if self.held.hold(entry, stripe) => Verdict::Hold,
                false => Verdict::Keep,
            };
        }
        self.stripe = Some(stripe);
        let below = match entry.kind {
            Kind::Put => Below::Value(entry.value),
            Kind::Delete => Below::Nothing,
            kind if kind.has_expiry() && entry.has_expired(self.now) => Below::Nothing,
            // A value merged with it would have to change when it expires.
            Kind::PutWithExpiry | Kind::PutApartWithExpiry => Below::Unknown,
            // Merges do not read value files, so the operands stay operands.
            Kind::PutApart => Below::Unknown,
            Kind::DeleteRange | Kind::Merge => Below::Unknown,
        };
        if self.held.end(&self.key, below) || self.is_needless_deletion(entry, stripe) {
            return Verdict::Drop;
        }
        Verdict::Keep
    }

    /// Releases the held operands when no entry below them in their stripe is known. `is_last`: no
    /// more entries of their key come.
    fn end_operands(&mut self, is_last: bool) {
        let stripe = self.held.stripe();
        let at = self.snapshots.get(stripe).copied().unwrap_or(Sequence::MAX);
        let deleted = self.tombstones.covering_tombstone(&self.key, at);
        // If the tombstone is in an older stripe, a snapshot may see entries between.
        let is_deleted = deleted.is_some_and(|deleted| self.stripe_of(deleted) == stripe);
        let is_nothing = is_deleted || is_last && self.is_oldest(&self.key);
        self.held.end(&self.key, if is_nothing { Below::Nothing } else { Below::Unknown });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::merge_operator::{Add, Concat, MergeError};
    use crate::entries::tombstones::RangeDelete;

    fn kept(snapshots: &[u64], bottom: bool, entries: &[(u64, Kind)]) -> Vec<u64> {
        let snapshots = snapshots.iter().map(|&number| Sequence(number)).collect();
        let mut retention =
            Retention::new(snapshots, bottom, Duration::from_millis(5), RangeTombstones::default());
        let entry =
            |&(number, kind)| Entry { key: b"k", sequence: Sequence(number), kind, value: b"" };
        let entries = entries.iter().map(entry);
        entries
            .filter(|entry| retention.judge(entry) == Verdict::Keep)
            .map(|entry| entry.sequence.0)
            .collect()
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
            entries.map(|entry| retention.judge(&entry) == Verdict::Keep).collect::<Vec<_>>()
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
            [expiring, older].map(|entry| retention.judge(&entry) == Verdict::Keep)
        };
        assert_eq!(kept(&[30], true, 5), [false, false], "it hides what is older");
        assert_eq!(kept(&[30], true, 6), [true, false], "its time has not come");
        assert_eq!(kept(&[30], false, 5), [true, false], "there may be something older below");
        assert_eq!(kept(&[10, 30], true, 5), [true, true], "a snapshot sees the older one");
    }

    /// Merges entries of one key with an operator that concatenates.
    struct Folded {
        snapshots: &'static [u64],
        bottom: bool,
        /// Sequence numbers of range tombstones that cover the key.
        deleted: &'static [u64],
        operator: Option<Arc<dyn MergeOperator>>,
    }

    impl Folded {
        fn new(snapshots: &'static [u64], bottom: bool) -> Folded {
            Folded { snapshots, bottom, deleted: &[], operator: Some(Arc::new(Concat::new("+"))) }
        }

        fn of(&self, entries: &[(u64, Kind, &str)]) -> String {
            let snapshots: Vec<_> = self.snapshots.iter().map(|&it| Sequence(it)).collect();
            let deletes = self.deleted.iter().map(|&number| RangeDelete {
                from: b"a",
                to: b"z",
                sequence: Sequence(number),
            });
            let ranges = RangeTombstones::visible_at(deletes, &snapshots);
            let now = Duration::from_millis(5);
            let retention = Retention::new(snapshots, self.bottom, now, ranges);
            let mut retention = retention.merging(self.operator.clone());
            let mut out = Vec::new();
            let said = |entry: &Entry<'_>| {
                let value = String::from_utf8_lossy(entry.value).into_owned();
                let mark = match entry.kind {
                    Kind::Put => "=",
                    Kind::Merge => "+",
                    Kind::Delete => "-",
                    _ => "?",
                };
                format!("{}{mark}{}", entry.sequence.0, value.trim_start_matches('\0'))
            };
            for &(number, kind, value) in entries {
                let stored = match kind {
                    Kind::PutWithExpiry => {
                        [&value.len().to_le_bytes()[..], value.as_bytes()].concat()
                    }
                    _ => value.as_bytes().to_vec(),
                };
                let entry = Entry { key: b"k", sequence: Sequence(number), kind, value: &stored };
                let verdict = retention.judge(&entry);
                out.extend(retention.take_ready().iter().map(|made| said(&made.entry())));
                out.extend((verdict == Verdict::Keep).then(|| said(&entry)));
            }
            retention.end();
            out.extend(retention.take_ready().iter().map(|made| said(&made.entry())));
            out.join(" ")
        }
    }

    const A: (u64, Kind, &str) = (28, Kind::Merge, "a");
    const B: (u64, Kind, &str) = (22, Kind::Merge, "b");
    const C: (u64, Kind, &str) = (15, Kind::Merge, "c");
    const VALUE: (u64, Kind, &str) = (9, Kind::Put, "v");
    const OLDER: (u64, Kind, &str) = (7, Kind::Put, "o");

    #[test]
    fn operands_become_a_value_with_the_number_of_the_newest() {
        assert_eq!(Folded::new(&[30], false).of(&[A, B, VALUE, OLDER]), "28=v+b+a");
        assert_eq!(Folded::new(&[30], true).of(&[A, B]), "28=b+a", "nothing can be below");
        let deletion = (9, Kind::Delete, "");
        assert_eq!(Folded::new(&[30], false).of(&[A, deletion, OLDER]), "28=a");
        assert_eq!(Folded::new(&[30], false).of(&[(40, Kind::Put, "n"), A, B]), "40=n 28+b+a");
        assert_eq!(Folded::new(&[40], false).of(&[(40, Kind::Put, "n"), A, B]), "40=n");
    }

    #[test]
    fn what_may_have_something_below_becomes_one_operand() {
        assert_eq!(Folded::new(&[30], false).of(&[A, B, C]), "28+c+b+a");
    }

    #[test]
    fn operands_are_not_merged_across_a_snapshot() {
        let folded = Folded::new(&[20, 30], false);
        assert_eq!(folded.of(&[A, B, C, VALUE, OLDER]), "28+b+a 15=v+c");
        assert_eq!(folded.of(&[A, B, VALUE]), "28+b+a 9=v");
        assert_eq!(Folded::new(&[20, 30], true).of(&[A, B, C]), "28+b+a 15=c");
        assert_eq!(Folded::new(&[20, 30], true).of(&[A, B, (9, Kind::Delete, "")]), "28+b+a");
        assert_eq!(Folded::new(&[10, 30], true).of(&[A, B]), "28=b+a", "the snapshot sees nothing");
    }

    #[test]
    fn a_deleted_range_is_below_what_is_newer_and_hides_what_is_older() {
        let folded = Folded { deleted: &[18], ..Folded::new(&[30], false) };
        assert_eq!(folded.of(&[A, B, C, VALUE]), "28=b+a");
        assert_eq!(folded.of(&[A, B]), "28=b+a");
        assert_eq!(folded.of(&[C, VALUE]), "");
        let between = Folded { deleted: &[18], ..Folded::new(&[20, 30], false) };
        assert_eq!(between.of(&[A, C]), "28+a", "a snapshot may see something between");
        let older = Folded { deleted: &[18], ..Folded::new(&[16, 30], false) };
        assert_eq!(older.of(&[A, C, VALUE]), "28=a 15=v+c");
    }

    #[test]
    fn a_value_that_expires_stays_below_until_it_has() {
        let expiring = (9, Kind::PutWithExpiry, "sixsix");
        assert_eq!(
            Folded::new(&[30], true).of(&[A, B, expiring]),
            "28+b+a 9?\u{6}\0\0\0\0\0\0\0sixsix"
        );
        let expired = (9, Kind::PutWithExpiry, "five5");
        assert_eq!(Folded::new(&[30], false).of(&[A, B, expired, OLDER]), "28=b+a");
    }

    #[test]
    fn without_an_operator_or_one_that_fails_all_stay_as_they_are() {
        let none = Folded { operator: None, ..Folded::new(&[30], true) };
        let fails = Folded { operator: Some(Arc::new(Add::LITTLE_ENDIAN)), ..none };
        for folded in [Folded { operator: None, ..Folded::new(&[30], true) }, fails] {
            assert_eq!(folded.of(&[A, B, VALUE, OLDER]), "28+a 22+b 9=v");
            assert_eq!(folded.of(&[A, B]), "28+a 22+b");
        }
    }

    #[test]
    fn an_operand_that_is_there_twice_counts_once() {
        assert_eq!(Folded::new(&[30], true).of(&[A, A, VALUE]), "28=v+a");
    }

    #[test]
    fn the_newest_operands_beyond_the_memory_for_them_stay_as_they_are() {
        /// An operator that cannot combine operands.
        struct Length;
        impl MergeOperator for Length {
            fn name(&self) -> &str {
                "length"
            }
            fn merge(
                &self,
                _key: &[u8],
                existing: Option<&[u8]>,
                operands: &[&[u8]],
            ) -> std::result::Result<Vec<u8>, MergeError> {
                let all = existing.into_iter().chain(operands.iter().copied());
                Ok(all.map(<[u8]>::len).sum::<usize>().to_string().into_bytes())
            }
        }
        let folded = Folded { operator: Some(Arc::new(Length)), ..Folded::new(&[30], true) };
        assert_eq!(folded.of(&[A, B, C, VALUE]), "28=4");
        let long = "x".repeat(17 << 20);
        let [a, b] = [A, B].map(|(number, kind, _)| (number, kind, &*long));
        let kept = folded.of(&[a, b, C, VALUE]);
        let kept: Vec<&str> = kept.split(' ').map(|entry| &entry[..3]).collect();
        assert_eq!(kept, ["28+", "22+", "15="]);
    }
}
