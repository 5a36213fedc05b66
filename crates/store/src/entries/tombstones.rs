//! Range tombstones: which are in force for which keys.
//! ```text
//! deletions    [a .............. k) 9
//!                   [c ... e) 12
//! bounds        a    c      e    k
//! in force      9    12 9   9    none        from each bound up to the next, newest first
//! ```
//! Invariant: bounds ascend, and what is in force changes at each bound. Nothing is in force before
//! the first bound and from the last one on. A lookup of a key is one binary search, however many
//! deletions there are.

use std::collections::BTreeMap;

use trommel_filters::{Corrupt, Reader, Writer};

use crate::cost;
use crate::entries::entry::{KEY_BYTES_MAX, NUMBER_MAX, Sequence};

/// A deletion of the keys in [from, to).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeDelete<'a> {
    pub(crate) from: &'a [u8],
    pub(crate) to: &'a [u8],
    pub(crate) sequence: Sequence,
}

/// An interval of keys for which the same deletions are in force, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch<'a> {
    /// The newest deletion in force.
    pub(crate) newest: Option<Sequence>,
    /// The first of these keys. `None`: no change is known before.
    pub(crate) from: Option<&'a [u8]>,
    /// The first key behind them. `None`: no change is known behind.
    pub(crate) until: Option<&'a [u8]>,
}

impl<'a> Stretch<'a> {
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.from.is_none_or(|from| from <= key) && self.until.is_none_or(|until| key < until)
    }

    /// Combines what two sources know of the same key.
    pub(crate) fn and(self, other: Stretch<'a>) -> Stretch<'a> {
        let until = match (self.until, other.until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let newest = self.newest.max(other.newest);
        Stretch { newest, from: self.from.max(other.from), until }
    }
}

/// Range tombstones, cut where others begin or end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeTombstones {
    bounds: Vec<Box<[u8]>>,
    /// For each bound, the end of its tombstones in `sequences`.
    ends: Vec<usize>,
    sequences: Vec<Sequence>,
    /// Total length of all bounds in bytes.
    key_bytes: usize,
}

impl RangeTombstones {
    /// Builds the tombstones that readers at one of these ascending sequence numbers or later see,
    /// from deletions in any order. For each key that is at most one for each number, and the
    /// newest. Empty ranges delete nothing.
    pub(crate) fn visible_at<'a>(
        deletes: impl IntoIterator<Item = RangeDelete<'a>>,
        snapshots: &[Sequence],
    ) -> Self {
        let mut edges: Vec<(&[u8], Sequence, bool)> = Vec::new();
        for RangeDelete { from, to, sequence } in deletes {
            if from < to {
                edges.extend([(from, sequence, true), (to, sequence, false)]);
            }
        }
        edges.sort_unstable_by_key(|(key, ..)| *key);
        let mut made = RangeTombstones::default();
        // A deletion that was cut may come in overlapping pieces. It is in force while any piece
        // is.
        let mut in_force: BTreeMap<Sequence, isize> = BTreeMap::new();
        for edges in edges.chunk_by(|one, next| one.0 == next.0) {
            cost::step();
            for (_, sequence, begins) in edges {
                *in_force.entry(*sequence).or_default() += if *begins { 1 } else { -1 };
            }
            for (_, sequence, _) in edges {
                if in_force.get(sequence) == Some(&0) {
                    in_force.remove(sequence);
                }
            }
            let newest = in_force.last_key_value().map(|(sequence, _)| *sequence);
            let seen = std::iter::successors(newest, |newer| {
                let before = snapshots.partition_point(|snapshot| snapshot < newer);
                let snapshot = snapshots[..before].last()?;
                in_force.range(..=*snapshot).next_back().map(|(sequence, _)| *sequence)
            });
            made.push(edges[0].0, seen);
        }
        made
    }

    /// Appends a bound from which on these are in force, newest first. Requires: it is behind all
    /// bounds so far.
    fn push(&mut self, bound: &[u8], sequences: impl Iterator<Item = Sequence>) {
        let start = self.sequences.len();
        self.sequences.extend(sequences);
        let before = self.bounds.len().checked_sub(1).map_or(&[][..], |last| self.in_force(last));
        let as_before = *before == self.sequences[start..];
        if as_before {
            self.sequences.truncate(start);
            return;
        }
        self.bounds.push(bound.into());
        self.key_bytes += bound.len();
        self.ends.push(self.sequences.len());
    }

    /// Whether nothing is deleted.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bounds.is_empty()
    }

    /// The first deleted key. `None`: nothing is deleted.
    pub(crate) fn begin(&self) -> Option<&[u8]> {
        self.bounds.first().map(|bound| &**bound)
    }

    /// The first key behind all deleted keys.
    pub(crate) fn end(&self) -> Option<&[u8]> {
        self.bounds.last().map(|bound| &**bound)
    }

    /// The least and the greatest sequence number.
    pub(crate) fn sequences(&self) -> Option<(Sequence, Sequence)> {
        let all = || self.sequences.iter().copied();
        all().min().zip(all().max())
    }

    /// The number of pieces: a deletion counts once for each interval in which it is in force.
    pub(crate) fn len(&self) -> usize {
        self.sequences.len()
    }

    /// Returns the newest deletion that covers a key, of those with a sequence number of at most
    /// `at`.
    #[inline]
    pub(crate) fn covering_tombstone(&self, key: &[u8], at: Sequence) -> Option<Sequence> {
        if self.is_empty() { None } else { self.stretch(key, at).newest }
    }

    /// Returns the keys around one for which the same tombstones are in force, and the newest one
    /// with a number of at most `at`.
    pub(crate) fn stretch(&self, key: &[u8], at: Sequence) -> Stretch<'_> {
        let after = self.bounds.partition_point(|bound| {
            cost::step();
            **bound <= *key
        });
        let until = self.bounds.get(after).map(|bound| &**bound);
        let Some(place) = after.checked_sub(1) else {
            return Stretch { newest: None, from: None, until };
        };
        let in_force = self.in_force(place);
        let newest = in_force.get(in_force.partition_point(|sequence| *sequence > at)).copied();
        Stretch { newest, from: Some(&self.bounds[place]), until }
    }

    /// Returns what is in force from a bound on, newest first.
    fn in_force(&self, place: usize) -> &[Sequence] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.sequences[start..self.ends[place]]
    }

    /// Returns each deletion, cut where others begin or end.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = RangeDelete<'_>> {
        self.bounds.windows(2).enumerate().flat_map(|(place, pair)| {
            let (from, to) = (&*pair[0], &*pair[1]);
            self.in_force(place).iter().map(move |&sequence| RangeDelete { from, to, sequence })
        })
    }

    /// Returns the tombstones of keys in [from, to), cut at these bounds. `None`: not cut.
    pub(crate) fn cut(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> RangeTombstones {
        let mut cut = RangeTombstones::default();
        if from.zip(to).is_some_and(|(from, to)| to <= from) {
            return cut;
        }
        let after = |key: &[u8]| self.bounds.partition_point(|bound| **bound <= *key);
        let first = from.map_or(0, after);
        // The first key gets a bound with what is in force there.
        if let (Some(from), Some(before)) = (from, first.checked_sub(1)) {
            cut.push(from, self.in_force(before).iter().copied());
        }
        for place in first..self.bounds.len() {
            if to.is_some_and(|to| to <= &*self.bounds[place]) {
                break;
            }
            cut.push(&self.bounds[place], self.in_force(place).iter().copied());
        }
        if let Some(to) = to {
            cut.push(to, std::iter::empty());
        }
        cut
    }

    /// Keeps only the tombstones of each interval that `keeps` selects. It gets them newest first.
    pub(crate) fn thinned(&self, keeps: impl Fn(&[Sequence]) -> Vec<Sequence>) -> RangeTombstones {
        let mut thinned = RangeTombstones::default();
        for (place, bound) in self.bounds.iter().enumerate() {
            thinned.push(bound, keeps(self.in_force(place)).into_iter());
        }
        thinned
    }

    /// The heap memory, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let bounds = self.bounds.capacity() * size_of::<Box<[u8]>>();
        let sequences = self.sequences.capacity() * size_of::<Sequence>();
        self.key_bytes + bounds + sequences + self.ends.capacity() * size_of::<usize>()
    }

    /// Encodes the tombstones: docs/format.md.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.varint(self.bounds.len() as u64);
        for (place, bound) in self.bounds.iter().enumerate() {
            out.string(bound);
            let in_force = self.in_force(place);
            out.varint(in_force.len() as u64);
            let mut newer = None;
            for &Sequence(sequence) in in_force {
                out.varint(newer.map_or(sequence, |newer: u64| newer - sequence));
                newer = Some(sequence);
            }
        }
        out.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<RangeTombstones, Corrupt> {
        let mut input = Reader::new(bytes);
        let mut read = RangeTombstones::default();
        for place in 0..input.varint()? {
            let wrong = input.corrupt("bounds of deleted ranges that cannot be");
            let bound = input.string()?;
            let in_force = decode_sequences(&mut input)?;
            read.push(bound, in_force.into_iter());
            // A bound that was pushed is there, unless it changed nothing.
            let is_there = read.bounds.len() as u64 == place + 1;
            let ascends = read.bounds.windows(2).last().is_none_or(|pair| pair[0] < pair[1]);
            if !is_there || !ascends || bound.len() > KEY_BYTES_MAX {
                return Err(wrong);
            }
        }
        if !read.is_empty() && !read.in_force(read.bounds.len() - 1).is_empty() {
            return Err(input.corrupt("a deleted range without an end"));
        }
        input.end()?;
        Ok(read)
    }
}

/// Decodes sequence numbers, newest first: the greatest, then each one's difference to the one
/// before.
fn decode_sequences(input: &mut Reader<'_>) -> Result<Vec<Sequence>, Corrupt> {
    let count = input.varint()?;
    // Each number takes at least a byte, so a greater count is false and allocates nothing.
    if count > input.left() as u64 {
        return Err(input.corrupt("more deletions than there can be"));
    }
    let mut sequences: Vec<Sequence> = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let wrong = input.corrupt("sequence numbers that do not descend");
        let number = input.varint()?;
        let sequence = match sequences.last() {
            None => Some(number).filter(|&number| number <= NUMBER_MAX),
            Some(newer) => newer.0.checked_sub(number).filter(|_| number > 0),
        };
        sequences.push(Sequence(sequence.ok_or(wrong)?));
    }
    Ok(sequences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds the tombstones of all deletions. Requires: their numbers are less than 20.
    fn of_all<'a>(deletes: impl IntoIterator<Item = RangeDelete<'a>>) -> RangeTombstones {
        let snapshots: Vec<Sequence> = (0..20).map(Sequence).collect();
        RangeTombstones::visible_at(deletes, &snapshots)
    }

    type Owned = (Vec<u8>, Vec<u8>, u64);

    fn of(list: &[Owned]) -> RangeTombstones {
        let deletes = list.iter().map(|(from, to, sequence)| RangeDelete {
            from,
            to,
            sequence: Sequence(*sequence),
        });
        of_all(deletes)
    }

    /// The naive way.
    fn covering_tombstone(list: &[Owned], key: &[u8], at: u64) -> Option<Sequence> {
        let in_force = list
            .iter()
            .filter(|(from, to, sequence)| &from[..] <= key && key < &to[..] && *sequence <= at);
        in_force.map(|(.., sequence)| Sequence(*sequence)).max()
    }

    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, b'a', 0xff]), 0..3)
    }

    fn any_deletes() -> impl Strategy<Value = Vec<Owned>> {
        prop::collection::vec((any_key(), any_key(), 0u64..12), 0..12)
    }

    proptest! {
        #[test]
        fn the_newest_of_those_in_force_is_found(
            list in any_deletes(),
            keys in prop::collection::vec(any_key(), 1..20),
        ) {
            let made = of(&list);
            let again = of_all(made.pieces());
            prop_assert_eq!(&again, &made);
            let decoded = RangeTombstones::decode(&made.encode());
            prop_assert_eq!(decoded.as_ref(), Ok(&made));
            for key in &keys {
                for at in [0, 3, 7, 20] {
                    let expected = covering_tombstone(&list, key, at);
                    prop_assert_eq!(made.covering_tombstone(key, Sequence(at)), expected);
                    let stretch = made.stretch(key, Sequence(at));
                    for other in &keys {
                        let within = stretch.contains(other);
                        prop_assert!(!within || covering_tombstone(&list, other, at) == expected);
                    }
                }
            }
        }

        #[test]
        fn who_reads_at_a_snapshot_or_later_sees_the_same(
            list in any_deletes(),
            snapshots in prop::collection::btree_set(0u64..14, 0..4),
            keys in prop::collection::vec(any_key(), 1..20),
        ) {
            let numbers: Vec<Sequence> = snapshots.iter().map(|&number| Sequence(number)).collect();
            let all = of(&list);
            let made = RangeTombstones::visible_at(all.pieces(), &numbers);
            for key in &keys {
                for at in snapshots.iter().copied().chain([20]) {
                    prop_assert_eq!(made.covering_tombstone(key, Sequence(at)), covering_tombstone(&list, key, at));
                }
            }
            prop_assert!(made.len() <= (numbers.len() + 1) * made.bounds.len());
        }

        #[test]
        fn what_is_cut_is_the_same_between_the_cuts(
            list in any_deletes(),
            from in any_key(),
            to in any_key(),
            key in any_key(),
        ) {
            let cut = of(&list).cut(Some(&from), Some(&to));
            let within = from <= key && key < to;
            let expected = covering_tombstone(&list, &key, 20).filter(|_| within);
            prop_assert_eq!(cut.covering_tombstone(&key, Sequence(20)), expected);
        }

        #[test]
        fn bytes_of_strangers_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(read) = RangeTombstones::decode(&bytes) {
                prop_assert_eq!(read.encode(), bytes);
            }
        }
    }

    #[test]
    fn every_cut_and_every_flip_is_damage_or_another_list() {
        let made = of(&[(b"a".into(), b"k".into(), 9), (b"c".into(), b"e".into(), 12)]);
        let golden = [
            4, // bounds
            1, b'a', 1, 9, // 9 from a on
            1, b'c', 2, 12, 3, // 12 and 9 from c on
            1, b'e', 1, 9, // 9 from e on
            1, b'k', 0, // nothing from k on
        ];
        assert_eq!(made.encode(), golden);
        for len in 0..golden.len() {
            assert!(RangeTombstones::decode(&golden[..len]).is_err(), "cut at {len}");
        }
        for (at, bit) in (0..golden.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut flipped = golden;
            flipped[at] ^= 1 << bit;
            assert_ne!(RangeTombstones::decode(&flipped).ok(), Some(made.clone()));
        }
    }

    // They used to take memory quadratic in their number: each interval had all that were ever in
    // force there.
    #[test]
    fn ranges_within_ranges_are_no_more_than_are_seen() {
        let nested: Vec<Owned> = (0..20_000u64)
            .map(|n| (n.to_be_bytes().to_vec(), (100_000 - n).to_be_bytes().to_vec(), n + 1))
            .collect();
        let deletes = nested.iter().map(|(from, to, sequence)| RangeDelete {
            from,
            to,
            sequence: Sequence(*sequence),
        });
        let made = RangeTombstones::visible_at(deletes, &[Sequence(700), Sequence(30_000)]);
        assert!(made.len() <= 2 * made.bounds.len(), "{} of 20000", made.len());
        let covering = |key: u64, at| made.covering_tombstone(&key.to_be_bytes(), Sequence(at));
        assert_eq!(covering(50_000, 30_000), Some(Sequence(20_000)));
        assert_eq!(covering(50_000, 700), Some(Sequence(700)));
        assert_eq!(covering(5, 30_000), Some(Sequence(6)));
        assert_eq!(covering(100_000, 30_000), None);
    }

    #[test]
    fn one_deletion_in_overlapping_pieces_is_one() {
        let pieces = [(b"a".into(), b"e".into(), 9), (b"c".into(), b"k".into(), 9)];
        assert_eq!(of(&pieces), of(&[(b"a".into(), b"k".into(), 9)]));
        assert_eq!(of(&pieces).len(), 1);
    }
}
