//! How the skip list finds the next entry newer than a number, past any number of older ones.
//! ```text
//! level 1   o ------ 7 ------> [d 7] ------ 9 ------> null      the newest that a link skips
//! level 0   o -> [a 3] -> [c 5] -> [d 7] -> [e 9] -> null       or leads to
//! newer than 7, from a on: one step passes the first link
//! ```
//! A memtable marks the entries that come after its first range tombstone. Unmarked entries are
//! older than every range tombstone of the memtable, so a search for newer entries does not need
//! them. A memtable without range tombstones marks none.
//!
//! Invariant: for every reader, no marked entry that it sees is newer than the number of a link
//! that skips or leads to the entry. (A number may briefly be too great: the reader then searches
//! behind the link in vain.) A link is loaded before its number. So a reader that sees the first
//! link of a level also sees the number that was stored before it.

use std::ptr;

use super::{HEIGHT_MAX, Node, SkipList};
use crate::cost;
use crate::entries::entry::Sequence;
use crate::entries::keys::key_head;
use crate::sync::Ordering as Memory;

impl SkipList {
    /// Initializes the number of a link that is not stored yet, from the nodes between its node and
    /// `next`. Requires: the node has its links and numbers on the levels below.
    pub(super) fn part_newest(&self, node: *mut Node, next: *mut Node, level: usize) {
        let (mut newest, mut at) = (0, node);
        loop {
            let (after, newest_of_link) = self.link_behind(at, level - 1);
            newest = newest.max(newest_of_link);
            at = after;
            if at == next || at.is_null() {
                break;
            }
        }
        // The link is stored after this number (Release).
        self.newest_slot(node, level).store(newest, Memory::Relaxed);
    }

    /// Raises the numbers of the links that skip or lead to a new node. On each level these are the
    /// links of the nodes before it. Requires: the node is linked.
    pub(super) fn mark(
        &self,
        before: &[*mut Node; HEIGHT_MAX],
        Sequence(sequence): Sequence,
        changed: impl Fn(),
    ) {
        let height = self.height.load(Memory::Relaxed);
        for (level, node) in before.iter().enumerate().take(height).skip(1) {
            self.newest_slot(*node, level).fetch_max(sequence, Memory::Release);
            changed();
        }
    }

    /// Returns a link's target, and the greatest number of the nodes that it skips or leads to; 0
    /// if it leads nowhere.
    #[inline]
    fn link_behind(&self, node: *mut Node, level: usize) -> (*mut Node, u64) {
        cost::step();
        let next = self.link(node, level).load(Memory::Acquire);
        if level > 0 {
            return (next, self.newest_slot(node, level).load(Memory::Acquire));
        }
        (next, self.entry_at(next).map_or(0, |entry| entry.sequence.0))
    }

    /// Returns the first node behind `node` that is newer than `than`, or null. Climbs while links
    /// skip only older nodes, and descends at the first link that does not.
    pub(super) fn newer_behind(&self, mut node: *mut Node, Sequence(than): Sequence) -> *mut Node {
        let mut level = self.height_of(node) - 1;
        loop {
            let (next, newest) = self.link_behind(node, level);
            if newest > than && level > 0 {
                level -= 1;
                continue;
            }
            if newest > than || next.is_null() {
                return next;
            }
            node = next;
            level = self.height_of(node) - 1;
        }
    }

    /// Returns whether an entry with a key in [from, until) is newer than `than`. Requires: such
    /// entries are marked.
    pub(crate) fn has_newer(&self, from: &[u8], until: &[u8], than: Sequence) -> bool {
        let (_, first) = self.around(from, Sequence::MAX, 0, |_, _| {});
        let Some(entry) = self.entry_at(first) else { return false };
        let newer = if entry.sequence > than { first } else { self.newer_behind(first, than) };
        self.entry_at(newer).is_some_and(|entry| entry.key < until)
    }

    /// Returns the last node before `node` that is newer than `than`, or null.
    pub(super) fn newer_before(&self, node: *mut Node, than: Sequence) -> *mut Node {
        let mut end = node;
        while let Some(entry) = self.entry_at(end) {
            let (key, sequence) = (entry.key, entry.sequence);
            let Some((start, level, stop)) = self.last_link_to_newer(key, sequence, than) else {
                return ptr::null_mut();
            };
            match self.last_newer_within(start, level, stop, than) {
                Ok(found) => return found,
                Err(at) if self.entry_at(at).is_some_and(|entry| entry.sequence > than) => {
                    return at;
                }
                // The entry that raised the link's number lies behind a node that was inserted
                // meanwhile.
                Err(at) => end = at,
            }
        }
        ptr::null_mut()
    }

    /// Descends to the last node before (key, at). Returns the last link on the way that skips or
    /// leads to a newer node: its start, its level and its end.
    fn last_link_to_newer(
        &self,
        key: &[u8],
        at: Sequence,
        Sequence(than): Sequence,
    ) -> Option<(*mut Node, usize, *mut Node)> {
        let head = key_head(key);
        let (mut found, mut before) = (None, ptr::null_mut());
        for level in (0..self.height.load(Memory::Relaxed)).rev() {
            loop {
                let (after, newest) = self.link_behind(before, level);
                if after.is_null() || !self.is_before(after, head, key, at) {
                    break;
                }
                if newest > than {
                    found = Some((before, level, after));
                }
                before = after;
            }
        }
        found
    }

    /// Returns the last newer node behind `start` and up to `stop`. Requires: a link at `level` has
    /// led from one to the other. `Err(node)`: no newer node lies behind `node`, but there may be
    /// some up to it.
    fn last_newer_within(
        &self,
        mut start: *mut Node,
        level: usize,
        mut stop: *mut Node,
        Sequence(than): Sequence,
    ) -> Result<*mut Node, *mut Node> {
        for level in (0..level).rev() {
            let (mut at, mut last) = (start, None);
            while at != stop {
                let (next, newest) = self.link_behind(at, level);
                if newest > than {
                    last = Some((at, next));
                }
                at = next;
            }
            (start, stop) = last.ok_or(start)?;
        }
        let is_newer = self.entry_at(stop).is_some_and(|entry| entry.sequence.0 > than);
        if is_newer { Ok(stop) } else { Err(start) }
    }
}

#[cfg(test)]
mod tests {
    use crate::cost;
    use crate::entries::cursor::Cursor;
    use crate::entries::entry::{Entry, Kind, Sequence};
    use crate::entries::skiplist::{ListCursor, SkipList};
    use crate::sync::Arc;
    use proptest::prelude::*;

    fn put(list: &SkipList, key: &[u8], sequence: u64, marked_from: u64) {
        let entry = Entry { key, sequence: Sequence(sequence), kind: Kind::Put, value: b"" };
        if sequence >= marked_from { list.insert_marked(&entry) } else { list.insert(&entry) }
    }

    fn found(cursor: &ListCursor) -> Option<(Vec<u8>, u64)> {
        cursor.entry().map(|entry| (entry.key.to_vec(), entry.sequence.0))
    }

    proptest! {
        #[test]
        fn the_next_newer_entry_is_found_from_everywhere(
            keys in prop::collection::vec(prop::collection::vec(0u8..4, 0..4), 1..120),
            marked_from in 0u64..60,
            thans in prop::collection::vec(0u64..120, 1..5),
        ) {
            let list = Arc::new(SkipList::new(0));
            keys.iter().zip(1..).for_each(|(key, number)| put(&list, key, number, marked_from));
            let mut order: Vec<(Vec<u8>, u64)> = keys.iter().cloned().zip(1..).collect();
            order.sort_by(|a, b| (&a.0, b.1).cmp(&(&b.0, a.1)));
            for than in thans.into_iter().map(|than| than.max(marked_from)) {
                for (place, (key, number)) in order.iter().enumerate() {
                    let mut cursor = ListCursor::new(Arc::clone(&list));
                    cursor.seek_version(key, Sequence(*number)).unwrap();
                    cursor.next_newer(Sequence(than)).unwrap();
                    let newer = |owned: &&(Vec<u8>, u64)| owned.1 > than;
                    let expected = order[place + 1..].iter().find(newer).cloned();
                    prop_assert_eq!(found(&cursor), expected);
                    cursor.seek_version(key, Sequence(*number)).unwrap();
                    cursor.prev_newer(Sequence(than)).unwrap();
                    let expected = order[..place].iter().rev().find(newer).cloned();
                    prop_assert_eq!(found(&cursor), expected);
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a thousand entries are looked for from everywhere")]
    fn what_is_newer_is_found_in_a_long_list() {
        let list = Arc::new(SkipList::new(0));
        let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        (1..=1_000).for_each(|n| put(&list, &key(n), n, 400));
        for than in [400, 401, 650, 998, 999, 1_000] {
            let expected: Vec<u64> = (than + 1..=1_000).collect();
            assert_eq!(all_newer(&list, than, false), expected);
            assert_eq!(all_newer(&list, than, true), expected);
        }
    }

    /// Returns the numbers of all entries that are found to be newer.
    fn all_newer(list: &Arc<SkipList>, than: u64, backward: bool) -> Vec<u64> {
        let (mut cursor, mut numbers) = (ListCursor::new(Arc::clone(list)), Vec::new());
        if backward {
            cursor.seek_last().unwrap()
        } else {
            cursor.seek_first().unwrap()
        }
        while let Some(number) = cursor.entry().map(|entry| entry.sequence.0) {
            numbers.extend((number > than).then_some(number));
            let than = Sequence(than);
            if backward {
                cursor.prev_newer(than).unwrap()
            } else {
                cursor.next_newer(than).unwrap()
            }
        }
        numbers.sort_unstable();
        numbers
    }

    // Three errors of earlier versions. A tall node was reachable before its upper links were set.
    // The first link of a level had no number for what lay before it. The start of a link was
    // skipped if the entry that raised the link's number lay behind a new node.
    #[test]
    #[cfg_attr(miri, ignore = "one thread does all of it: long, and nothing for Miri")]
    fn what_was_there_is_found_in_the_midst_of_an_insert() {
        for seed in 1..200u64 {
            let list = Arc::new(SkipList::with_random(1 << 12, seed.wrapping_mul(0x9e37_79b9)));
            for number in 1..20u64 {
                let key = [(number * seed % 23) as u8, number as u8];
                let entry =
                    Entry { key: &key, sequence: Sequence(number), kind: Kind::Put, value: b"" };
                list.add(&entry, true, || {
                    for (than, backward) in (0..number).flat_map(|n| [(n, false), (n, true)]) {
                        let mut found = all_newer(&list, than, backward);
                        found.retain(|&found| found < number);
                        let expected: Vec<u64> = (than + 1..number).collect();
                        assert_eq!(found, expected, "seed {seed}, backward: {backward}");
                    }
                });
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "steps in lists that are too long for Miri are counted")]
    fn any_number_of_older_ones_takes_the_logarithm() {
        for count in [1_000u64, 10_000, 100_000] {
            let list = Arc::new(SkipList::new(0));
            let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            (0..count).for_each(|n| put(&list, &key(n), n + 1, 10));
            let most = 12 * u64::from(count.ilog2());
            for than in [count / 2, count - 50, count - 1, count] {
                let mut cursor = ListCursor::new(Arc::clone(&list));
                cursor.seek_first().unwrap();
                let ((), steps) = cost::steps_of(|| cursor.next_newer(Sequence(than)).unwrap());
                assert!(steps <= most, "{steps} forward past {than} of {count}");
                assert!(cursor.entry().is_none_or(|entry| entry.sequence.0 > than));
                assert_eq!(cursor.entry().is_none(), than == count);
                cursor.seek_last().unwrap();
                let ((), steps) = cost::steps_of(|| cursor.prev_newer(Sequence(than)).unwrap());
                assert!(steps <= most, "{steps} backward past {than} of {count}");
                assert_eq!(cursor.entry().is_none(), than == count);
            }
        }
    }

    #[test]
    fn what_is_published_is_found_while_a_writer_adds() {
        use std::sync::atomic::{AtomicU64, Ordering};
        let count = if cfg!(miri) { 60 } else { 20_000u64 };
        let list = Arc::new(SkipList::new(1 << 16));
        let published = AtomicU64::new(0);
        let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        put(&list, &[0], 1, 1);
        put(&list, &[0xff; 9], 2, 1);
        published.store(2, Ordering::Release);
        std::thread::scope(|scope| {
            for backward in [false, true] {
                let (list, published) = (&list, &published);
                scope.spawn(move || {
                    let mut seen = 0;
                    while seen < count {
                        seen = published.load(Ordering::Acquire);
                        let than = seen.saturating_sub(5).max(2);
                        let mut cursor = ListCursor::new(Arc::clone(list));
                        if backward {
                            cursor.seek_last().unwrap()
                        } else {
                            cursor.seek_first().unwrap()
                        }
                        let mut found = 0;
                        while cursor.entry().is_some() {
                            let number = cursor.entry().map_or(0, |entry| entry.sequence.0);
                            found += u64::from(than < number && number <= seen);
                            let than = Sequence(than);
                            if backward {
                                cursor.prev_newer(than).unwrap()
                            } else {
                                cursor.next_newer(than).unwrap()
                            }
                        }
                        assert_eq!(found, seen - than.min(seen), "of {seen}, backward: {backward}");
                    }
                });
            }
            for n in 3..=count {
                put(&list, &key(n), n, 1);
                published.store(n, Ordering::Release);
            }
        });
    }
}
