//! A cursor over the keys of a SuRF in order, with one slot per level.
//! ```text
//! level 0    f [t]           at an edge of the path
//! level 1      a  o [r]      at an edge of the path
//! level 2      s  p  y [i]   at the leaf: key "tri.."
//! level 3    . . . |         boundary: nodes left of it come before the key, others after it
//! ```
//! Moving on needs no rank and no select on a level that the cursor has visited. Nodes are in order
//! on every level, so the next node begins at the boundary.
//!
//! Invariant: the levels down to the leaf are at edges; visited levels below it are at boundaries,
//! where nodes begin. While keys move in one direction, so does the slot of every level.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::base::filter::Untraced;
use crate::bits::simd::fastest;
use crate::range::surf::layout::EDGES_MAX;
use crate::range::surf::trie::{FULL, Trie};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeafPosition {
    BeforeAll,
    AfterAll,
    /// At the leaf that is an edge of this level.
    At(usize),
    /// At the empty key, which is the only key.
    Alone,
}

/// A position among the keys of a [`Surf`](crate::Surf).
pub struct SurfCursor<'a> {
    trie: Trie<'a, Untraced, FULL>,
    /// The slot of each visited level.
    slots: Vec<usize>,
    /// The labels down to the leaf.
    path: Vec<u8>,
    place: LeafPosition,
}

impl<'a> SurfCursor<'a> {
    pub(super) fn new(trie: Trie<'a, Untraced, FULL>) -> Self {
        SurfCursor { trie, slots: Vec::new(), path: Vec::new(), place: LeafPosition::BeforeAll }
    }

    #[inline(always)]
    fn trie(&self) -> Trie<'a, Untraced, FULL> {
        self.trie
    }

    /// Returns the known part of the key: its shortest prefix that no other key has. None: the
    /// cursor is at no key.
    pub fn prefix(&self) -> Option<&[u8]> {
        matches!(self.place, LeafPosition::At(_) | LeafPosition::Alone).then_some(&self.path[..])
    }

    /// Whether the prefix is certainly the whole key, because another key continues it.
    pub fn is_whole(&self) -> bool {
        match self.place {
            LeafPosition::At(level) => self.trie().label(level, self.slots[level]).is_none(),
            LeafPosition::Alone => true,
            LeafPosition::BeforeAll | LeafPosition::AfterAll => false,
        }
    }

    /// Returns the smallest possible key here: the prefix and its real suffix bits. None: the
    /// cursor is at no key.
    pub fn key(&self) -> Option<Vec<u8>> {
        let mut key = self.prefix()?.to_vec();
        if let LeafPosition::At(level) = self.place
            && !self.is_whole()
        {
            let suffix = self.trie().suffix(level, self.slots[level]);
            key.extend(self.trie.layout.suffix.least_rest(suffix));
        }
        Some(key)
    }

    /// Returns the suffix stored at the leaf or mark here. None: the cursor is at none.
    pub(super) fn stored_suffix(&self) -> Option<u64> {
        match self.place {
            LeafPosition::At(level) => Some(self.trie().suffix(level, self.slots[level])),
            LeafPosition::Alone | LeafPosition::BeforeAll | LeafPosition::AfterAll => None,
        }
    }

    /// Returns the real suffix bits, as the lowest bits, and their number.
    pub(super) fn real_suffix(&self) -> (u64, u32) {
        match self.place {
            LeafPosition::At(level) if !self.is_whole() => {
                let suffix = self.trie.layout.suffix;
                let stored = self.trie().suffix(level, self.slots[level]);
                (stored.checked_shr(suffix.hash).unwrap_or(0), suffix.real)
            }
            LeafPosition::At(_)
            | LeafPosition::Alone
            | LeafPosition::BeforeAll
            | LeafPosition::AfterAll => (0, 0),
        }
    }

    /// Moves to the first key at or after `key`, as far as is known. Returns true if that key may
    /// also be below `key`, because `key` begins with all that is known of it.
    pub fn seek(&mut self, key: &[u8]) -> bool {
        fastest(
            #[inline(always)]
            move || self.seek_now(key),
        )
    }

    #[inline(always)]
    fn seek_now(&mut self, key: &[u8]) -> bool {
        self.forget();
        if self.trie.height() == 0 {
            self.place = if key.is_empty() { self.alone() } else { LeafPosition::AfterAll };
            return false;
        }
        let mut node = self.trie.root();
        for depth in 0..self.trie.height() {
            let Some(start) = node else { break };
            let Some(&byte) = key.get(depth) else {
                self.go_first(depth, start);
                return false;
            };
            let Some(found) = self.trie.at_least(depth, start, byte) else {
                self.slots.push(self.trie.end_of(depth, start));
                self.leave_forward(depth);
                return false;
            };
            if found.label > byte {
                self.go_below_first(depth, found.slot);
                return false;
            }
            if !self.step_to(depth, found.slot) {
                return self.decide(depth, found.slot, &key[depth + 1..]);
            }
            node = self.trie.child(depth, found.slot);
        }
        self.lose(LeafPosition::AfterAll);
        false
    }

    /// Resolves a leaf whose prefix begins the query key, given the `rest` of that key.
    fn decide(&mut self, depth: usize, slot: usize, rest: &[u8]) -> bool {
        match self.trie.order(depth, slot, rest) {
            Ordering::Less => {
                self.next();
                false
            }
            Ordering::Equal => !rest.is_empty(),
            Ordering::Greater => false,
        }
    }

    /// Moves to the first key.
    pub fn seek_first(&mut self) {
        self.forget();
        self.place = LeafPosition::BeforeAll;
        self.next();
    }

    /// Moves to the last key.
    pub fn seek_last(&mut self) {
        self.forget();
        self.place = LeafPosition::AfterAll;
        self.prev();
    }

    /// Moves to the next key: from the start to the first key, from the last key to the end.
    pub fn next(&mut self) {
        match self.place {
            LeafPosition::At(level) => self.go_right(level),
            LeafPosition::BeforeAll if self.trie.height() == 0 => self.place = self.alone(),
            LeafPosition::BeforeAll => match self.boundary(0) {
                Some(root) => self.go_first(0, root),
                None => self.lose(LeafPosition::AfterAll),
            },
            LeafPosition::AfterAll | LeafPosition::Alone => self.place = LeafPosition::AfterAll,
        }
    }

    /// Moves to the previous key: from the end to the last key, from the first key to the start.
    pub fn prev(&mut self) {
        match self.place {
            LeafPosition::At(level) => self.go_left(level),
            LeafPosition::AfterAll if self.trie.height() == 0 => {
                self.place = match self.alone() {
                    LeafPosition::Alone => LeafPosition::Alone,
                    _ => LeafPosition::BeforeAll,
                };
            }
            LeafPosition::AfterAll => self.go_below_last(0, None),
            LeafPosition::BeforeAll | LeafPosition::Alone => self.place = LeafPosition::BeforeAll,
        }
    }

    fn forget(&mut self) {
        self.slots.clear();
        self.path.clear();
    }

    /// Returns the position of the empty key if it is the only key. Otherwise there is none, or
    /// nothing is known.
    fn alone(&self) -> LeafPosition {
        if self.trie.layout.counts.keys == 1 { LeafPosition::Alone } else { LeafPosition::AfterAll }
    }

    /// Gives up, as the bytes are not those of a trie.
    fn lose(&mut self, place: LeafPosition) {
        self.forget();
        self.place = place;
    }

    /// Returns the boundary of a level. If level 0 was not visited yet, this is the root.
    fn boundary(&self, level: usize) -> Option<usize> {
        match self.slots.get(level) {
            Some(&slot) => Some(slot),
            None if level == 0 => self.trie().root(),
            None => None,
        }
    }

    /// Puts an edge on the path. Returns true if it leads to a node; false if it is a leaf, where
    /// the cursor now is.
    #[inline(always)]
    fn step_to(&mut self, level: usize, slot: usize) -> bool {
        match self.slots.get_mut(level) {
            Some(known) => *known = slot,
            None => self.slots.push(slot),
        }
        self.path.truncate(level);
        self.path.extend(self.trie.label(level, slot));
        let goes_on = self.trie.has_child(level, slot);
        if !goes_on {
            self.place = LeafPosition::At(level);
        }
        goes_on
    }

    /// Moves to the first leaf below a node.
    #[inline(always)]
    fn go_first(&mut self, level: usize, node: usize) {
        match self.trie.first(level, node) {
            Some(slot) => self.go_below_first(level, slot),
            None => self.lose(LeafPosition::AfterAll),
        }
    }

    /// Moves to the first leaf at or below an edge.
    #[inline(always)]
    fn go_below_first(&mut self, level: usize, slot: usize) {
        let (mut level, mut slot) = (level, slot);
        while self.step_to(level, slot) {
            let known = self.slots.get(level + 1).copied();
            let node = known.or_else(|| self.trie.child(level, slot));
            let first = node.and_then(|node| self.trie.first(level + 1, node));
            let Some(first) = first else {
                return self.lose(LeafPosition::AfterAll);
            };
            (level, slot) = (level + 1, first);
        }
    }

    /// Moves to the last leaf below an edge of the level above. None: below the root.
    fn go_below_last(&mut self, level: usize, edge: Option<usize>) {
        let (mut level, mut edge) = (level, edge);
        loop {
            let Some(slot) = self.last_slot(level, edge) else {
                return self.lose(LeafPosition::BeforeAll);
            };
            if !self.step_to(level, slot) {
                return;
            }
            (level, edge) = (level + 1, Some(slot));
        }
    }

    /// Returns the last edge before a level's boundary. If the level was not visited yet: the last
    /// edge of the node that `edge` leads to.
    fn last_slot(&self, level: usize, edge: Option<usize>) -> Option<usize> {
        if let Some(&boundary) = self.slots.get(level) {
            return match self.trie.is_dense(level) {
                true => self.trie().dense_before(boundary),
                false => boundary.checked_sub(1),
            };
        }
        let node = match edge {
            Some(slot) => self.trie().child(level - 1, slot)?,
            None => self.trie().root()?,
        };
        self.trie().last(level, node)
    }

    /// Moves to the next leaf.
    fn go_right(&mut self, level: usize) {
        match self.trie.after(level, self.slots[level]) {
            Some(slot) => self.go_below_first(level, slot),
            None => {
                self.slots[level] = self.trie.end_of(level, self.slots[level]);
                self.leave_forward(level);
            }
        }
    }

    /// Leaves a level at the end of its node, and moves up to where the walk continues.
    #[inline(always)]
    fn leave_forward(&mut self, level: usize) {
        for level in (0..level).rev() {
            if let Some(slot) = self.trie.after(level, self.slots[level]) {
                return self.go_below_first(level, slot);
            }
            self.slots[level] = self.trie.end_of(level, self.slots[level]);
        }
        self.path.clear();
        self.place = LeafPosition::AfterAll;
    }

    /// Moves to the previous leaf.
    fn go_left(&mut self, level: usize) {
        for level in (0..=level).rev() {
            let slot = self.slots[level];
            if let Some(slot) = self.trie.before(level, slot) {
                if self.step_to(level, slot) {
                    self.go_below_last(level + 1, Some(slot));
                }
                return;
            }
            self.slots[level] = match self.trie.is_dense(level) {
                true => slot - slot % EDGES_MAX,
                false => slot,
            };
        }
        self.path.clear();
        self.place = LeafPosition::BeforeAll;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::filter::TableFilterBuilder;
    use crate::range::surf::suffix::SurfKind;
    use crate::range::surf::{Surf, SurfBuilder, SurfOptions, SurfSuffix};

    fn surf(keys: &[Vec<u8>], size_ratio: u32) -> Surf<Vec<u8>> {
        let suffix = SurfSuffix::Bits { hash: 3, real: 20 };
        let options = SurfOptions { suffix, size_ratio };
        let mut builder = SurfBuilder::new(SurfKind::Mixed, 0.0, &options);
        keys.iter().for_each(|key| builder.add(key).expect("sorted"));
        Surf::read(builder.finish()).expect("whole")
    }

    /// Keys of few letters, so that many are prefixes of others, and marks occur next to real
    /// labels 0xff.
    fn crowded(count: u64) -> Vec<Vec<u8>> {
        let letters = [0, b'a', b'b', 0xfe, 0xff];
        let key = |n: u64| {
            let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let len = mixed % 9;
            (0..len).map(|at| letters[(mixed >> (8 + 5 * at)) as usize % 5]).collect()
        };
        let mut keys: Vec<Vec<u8>> = (0..count).map(key).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    fn assert_at(cursor: &SurfCursor<'_>, key: Option<&Vec<u8>>) {
        let prefix = cursor.prefix().map(<[u8]>::to_vec);
        let (Some(prefix), Some(key)) = (&prefix, key) else {
            assert_eq!(prefix.is_some(), key.is_some());
            return;
        };
        assert!(key.starts_with(prefix), "{key:?}, not {prefix:?}");
        assert!(cursor.key().expect("at a key") <= *key);
        assert!(!cursor.is_whole() || prefix == key);
    }

    #[test]
    fn keys_come_in_order_both_ways() {
        for (count, ratio) in [(0, 64), (1, 64), (2, 0), (40, 64), (3000, 0), (3000, 64), (900, 7)]
        {
            let keys = crowded(count);
            let surf = surf(&keys, ratio);
            let mut cursor = surf.cursor();
            assert_at(&cursor, None);
            cursor.seek_first();
            for key in &keys {
                assert_at(&cursor, Some(key));
                cursor.next();
            }
            assert_at(&cursor, None);
            for key in keys.iter().rev() {
                cursor.prev();
                assert_at(&cursor, Some(key));
            }
            cursor.prev();
            assert_at(&cursor, None);
            cursor.seek_last();
            assert_at(&cursor, keys.last());
        }
    }

    #[test]
    fn a_cursor_turns_anywhere() {
        for ratio in [0, 20, 64, u32::MAX] {
            let keys = crowded(2000);
            let surf = surf(&keys, ratio);
            let mut cursor = surf.cursor();
            let (mut at, mut seed) = (0isize, 1u64);
            cursor.seek_first();
            for _ in 0..4000 {
                seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let (back, steps) = (seed >> 63 == 1, (seed >> 33) % 40);
                for _ in 0..steps {
                    at = (at + if back { -1 } else { 1 }).clamp(-1, keys.len() as isize);
                    if back { cursor.prev() } else { cursor.next() }
                }
                assert_at(&cursor, usize::try_from(at).ok().and_then(|at| keys.get(at)));
            }
        }
    }

    #[test]
    fn a_seek_finds_the_first_key_that_may_be_there() {
        let keys = crowded(1500);
        let (stored, asked) = (keys.iter().step_by(3).cloned().collect::<Vec<_>>(), &keys);
        for ratio in [0, 64, u32::MAX] {
            let surf = surf(&stored, ratio);
            let mut cursor = surf.cursor();
            for key in asked {
                let unsure = cursor.seek(key);
                let next = stored.partition_point(|other| other < key);
                // Unsure: the previous key has the same known prefix as the query key.
                let found = cursor.prefix().map(<[u8]>::to_vec);
                let is_before = unsure
                    && !stored.get(next).is_some_and(|next| {
                        next.starts_with(found.as_deref().expect("unsure of a key"))
                    });
                let place = next - usize::from(is_before);
                assert_at(&cursor, stored.get(place));
                // From there, both directions, on all levels.
                cursor.next();
                assert_at(&cursor, stored.get(place + 1));
                cursor.seek(key);
                cursor.prev();
                assert_at(&cursor, place.checked_sub(1).map(|place| &stored[place]));
            }
        }
    }
}
