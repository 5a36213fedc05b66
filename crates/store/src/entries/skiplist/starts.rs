//! Where the writer's search for the nodes before an entry begins: a B-tree over tall nodes.
//! ```text
//! page          [ -   g   p ]             separators: each the first node of a page below
//!              /      |      \
//! pages   [a c f]  [g j m]  [p s]         nodes that have links above level 0, in order
//! list    a-b-c-d-e-f-g-h-i-j-k-l-...     from there it walks a few nodes on level 0
//! ```
//! A descent through the list waits for memory at each node that it looks at, and looks at some
//! thirty. A page tells as much of thirty-two nodes from a few lines of memory: four bytes of each
//! key, behind what all keys that belong in the page have in common.
//!
//! Invariants: all nodes with links above level 0 are in it, by key and then newest first. Only the
//! writer uses it, so readers need know nothing of it. A list of few entries has none.

use std::ptr;

use smallvec::SmallVec;
use trommel_filters::prefetch_at;

use super::{HEIGHT_MAX, Node, SkipList, Splice};
use crate::cost;
use crate::entries::entry::{Entry, Sequence};
use crate::entries::keys::{common_prefix, key_head};
use crate::sync::Ordering as Memory;

/// Nodes of a page at most.
const PAGE_LEN: usize = 32;

/// A list of so many entries has one: a few pages are little beside them.
pub(super) const ENTRIES_MIN: usize = 256;

/// What a page takes of memory, and of the processor's cache.
const PAGE_BYTES: usize = size_of::<Page>();
const PAGE_LINES: usize = PAGE_BYTES.div_ceil(64);

/// Some nodes in order.
struct Page {
    len: usize,
    /// So many bytes all keys have in common that belong here.
    common: usize,
    /// The bytes behind these, as numbers in their order; the greatest, where there is no node.
    heads: [i32; PAGE_LEN],
    /// Null: the first of an upper page, where all keys up to the second node belong below it.
    nodes: [*mut Node; PAGE_LEN],
    /// Of the lowest pages: how tall the nodes are. Else: the pages below.
    below: [u32; PAGE_LEN],
}

/// A page on the way to a key.
struct Step {
    page: usize,
    /// So many of its nodes are before the key.
    place: usize,
    /// The keys that belong in the page are at or behind this one's, and before that one's, if
    /// there are any.
    low: *mut Node,
    high: *mut Node,
}

type Path = SmallVec<[Step; 8]>;

/// The tall nodes of one list.
pub(super) struct Starts {
    /// The first one has the first nodes.
    #[expect(clippy::vec_box, reason = "what grows moves pointers, not pages")]
    pages: Vec<Box<Page>>,
    root: usize,
    /// Levels of pages above the lowest.
    depth: usize,
    /// Any node of the list.
    any: *mut Node,
    /// So many bytes all keys have in common that were added or searched for.
    common: usize,
}

/// Four bytes of a key as a number in their order; zeros follow a key that is shorter.
#[inline]
fn head_behind(key: &[u8], common: usize) -> i32 {
    let rest = key.get(common..).unwrap_or_default();
    let head = match rest.first_chunk::<4>() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            let mut head = [0; 4];
            head[..rest.len()].copy_from_slice(rest);
            u32::from_be_bytes(head)
        }
    };
    // Numbers with signs are compared many at once on every processor.
    (head ^ 1 << 31).cast_signed()
}

impl Page {
    /// An empty one, for keys that have so many bytes in common.
    fn new(common: usize) -> Box<Page> {
        let (heads, nodes) = ([i32::MAX; PAGE_LEN], [ptr::null_mut(); PAGE_LEN]);
        Box::new(Page { len: 0, common, heads, nodes, below: [0; PAGE_LEN] })
    }

    /// How many nodes are before (key, at).
    #[inline]
    fn place_of(&self, list: &SkipList, key: &[u8], at: Sequence) -> usize {
        cost::step();
        let head = head_behind(key, self.common);
        let first = self.heads.iter().map(|&other| u32::from(other < head)).sum::<u32>() as usize;
        match self.heads.get(first) {
            Some(&other) if other == head => self.place_among(list, first, (head, key, at)),
            _ => first,
        }
    }

    /// The same; nodes from `first` on have the key's head.
    fn place_among(
        &self,
        list: &SkipList,
        first: usize,
        (head, key, at): (i32, &[u8], Sequence),
    ) -> usize {
        let same = self.heads[first..self.len].partition_point(|&other| other == head);
        let key_head = key_head(key);
        let is_before =
            |&node: &*mut Node| node.is_null() || list.is_before(node, key_head, key, at);
        first + self.nodes[first..first + same].partition_point(is_before)
    }

    /// Requires: there is room.
    fn put(&mut self, list: &SkipList, place: usize, (node, below): (*mut Node, u32)) {
        let len = self.len;
        self.heads.copy_within(place..len, place + 1);
        self.nodes.copy_within(place..len, place + 1);
        self.below.copy_within(place..len, place + 1);
        self.heads[place] = self.head_of(list, node);
        (self.nodes[place], self.below[place]) = (node, below);
        self.len += 1;
    }

    /// Takes all nodes from this place on.
    fn split_off(&mut self, place: usize) -> Box<Page> {
        let (mut page, count) = (Page::new(self.common), self.len - place);
        page.heads[..count].copy_from_slice(&self.heads[place..self.len]);
        page.nodes[..count].copy_from_slice(&self.nodes[place..self.len]);
        page.below[..count].copy_from_slice(&self.below[place..self.len]);
        self.heads[place..].fill(i32::MAX);
        (page.len, self.len) = (count, place);
        page
    }

    /// All keys that belong here have so many bytes in common from now on.
    fn rebase(&mut self, list: &SkipList, common: usize) {
        if common == self.common {
            return;
        }
        self.common = common;
        for place in 0..self.len {
            self.heads[place] = self.head_of(list, self.nodes[place]);
        }
    }

    fn head_of(&self, list: &SkipList, node: *mut Node) -> i32 {
        list.entry_at(node).map_or(i32::MIN, |entry| head_behind(entry.key, self.common))
    }
}

impl Starts {
    /// Of a list that has none yet. None: it has no tall nodes.
    pub(super) fn of(list: &SkipList) -> Option<Starts> {
        let next = |node: *mut Node| list.link(node, 1).load(Memory::Relaxed);
        let tall = std::iter::successors(Some(next(ptr::null_mut())), |&node| Some(next(node)));
        let mut tall = tall.take_while(|node| !node.is_null()).peekable();
        let any = *tall.peek()?;
        let common = list.entry_at(any)?.key.len();
        let mut starts = Starts { pages: vec![Page::new(common)], root: 0, depth: 0, any, common };
        tall.for_each(|node| starts.add(list, node));
        Some(starts)
    }

    /// The memory that it takes.
    pub(super) fn size_bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// Nodes before an entry on so many of the lowest levels, or on some of them: the last ones but
    /// for level 0. Requires: it belongs in the page `at`.
    #[inline]
    pub(super) fn before(
        &self,
        list: &SkipList,
        at: usize,
        entry: &Entry<'_>,
        levels: usize,
    ) -> Splice {
        let page = &self.pages[at];
        let mut place = page.place_of(list, entry.key, entry.sequence);
        let mut splice = Splice::default();
        while splice.known < levels {
            if place == 0 {
                // What is before the first page's nodes is the list's own tower.
                splice.known = if at == 0 { HEIGHT_MAX } else { splice.known };
                break;
            }
            place -= 1;
            splice.reach(page.nodes[place], page.below[place] as usize);
        }
        splice
    }

    /// The lowest page in which an entry belongs, which the processor is to load.
    #[inline]
    pub(super) fn page_of(&mut self, list: &SkipList, entry: &Entry<'_>) -> usize {
        self.expect(list, entry.key);
        let mut at = self.root;
        for _ in 0..self.depth {
            let page = &self.pages[at];
            // An upper page's first node is before all that belongs there.
            at = page.below[page.place_of(list, entry.key, entry.sequence) - 1] as usize;
            prefetch_at(ptr::from_ref(&*self.pages[at]).cast(), PAGE_LINES);
        }
        at
    }

    /// Adds a node. Requires: it has links above level 0.
    pub(super) fn add(&mut self, list: &SkipList, node: *mut Node) {
        let entry = list.entry_at(node).expect("a node of the list is not null");
        self.expect(list, entry.key);
        let mut path = self.path_to(list, &entry);
        let mut new = (node, list.height_of(node) as u32);
        while let Some(step) = path.pop() {
            let page = &mut self.pages[step.page];
            if page.len < PAGE_LEN {
                return page.put(list, step.place, new);
            }
            new = self.split(list, &step, new);
        }
        let mut root = Page::new(self.common);
        root.put(list, 0, (ptr::null_mut(), self.root as u32));
        root.put(list, 1, new);
        (self.root, self.depth) = (self.pages.len(), self.depth + 1);
        self.pages.push(root);
    }

    /// Notes a key: what all keys have in common bounds the first page and the last one of each
    /// level.
    #[inline]
    fn expect(&mut self, list: &SkipList, key: &[u8]) {
        let any = list.entry_at(self.any).expect("a node of the list is not null").key;
        if !key.starts_with(&any[..self.common]) {
            self.common = common_prefix(&any[..self.common], key);
            self.rebase_edge(list, |_| 0);
            self.rebase_edge(list, |page| page.len - 1);
        }
    }

    #[cold]
    fn rebase_edge(&mut self, list: &SkipList, edge: fn(&Page) -> usize) {
        let mut at = self.root;
        for _ in 0..self.depth {
            let page = &mut self.pages[at];
            page.rebase(list, self.common);
            at = page.below[edge(page)] as usize;
        }
        self.pages[at].rebase(list, self.common);
    }

    fn path_to(&self, list: &SkipList, entry: &Entry<'_>) -> Path {
        let mut path = Path::new();
        let (mut page, mut low, mut high) = (self.root, ptr::null_mut(), ptr::null_mut());
        loop {
            let here = &self.pages[page];
            let place = here.place_of(list, entry.key, entry.sequence);
            path.push(Step { page, place, low, high });
            if path.len() > self.depth {
                return path;
            }
            let nodes = &here.nodes[..here.len];
            low = if place == 1 { low } else { nodes[place - 1] };
            high = nodes.get(place).copied().unwrap_or(high);
            page = here.below[place - 1] as usize;
        }
    }

    /// Parts a full page in two and adds what it had no room for. Gives the new page with its first
    /// node.
    fn split(&mut self, list: &SkipList, step: &Step, new: (*mut Node, u32)) -> (*mut Node, u32) {
        // Keys that ascend leave full pages behind.
        let is_last = step.place == PAGE_LEN && step.high.is_null();
        let cut = if is_last { PAGE_LEN } else { PAGE_LEN / 2 };
        let page = &mut self.pages[step.page];
        let mut other = page.split_off(cut);
        match step.place.checked_sub(cut).filter(|place| *place > 0 || is_last) {
            Some(place) => other.put(list, place, new),
            None => page.put(list, step.place, new),
        }
        let first = other.nodes[0];
        other.rebase(list, self.common_between(list, first, step.high));
        self.pages.push(other);
        let common = self.common_between(list, step.low, first);
        self.pages[step.page].rebase(list, common);
        (first, (self.pages.len() - 1) as u32)
    }

    /// So many bytes all keys between those of two nodes have in common.
    fn common_between(&self, list: &SkipList, low: *mut Node, high: *mut Node) -> usize {
        let both = list.entry_at(low).zip(list.entry_at(high));
        both.map_or(self.common, |(low, high)| common_prefix(low.key, high.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::entry::Kind;
    use crate::sync::{Arc, lock};
    use proptest::prelude::*;
    use std::ops::Range;

    const KEYS: Range<usize> = if cfg!(miri) { ENTRIES_MIN..300 } else { 1..3_000 };

    impl Starts {
        /// Panics unless it has all nodes with links above level 0, in order and by their bounds.
        pub(in crate::entries::skiplist) fn check(&self, list: &SkipList) {
            let mut tall = Vec::new();
            let mut node = list.link(ptr::null_mut(), 1).load(Memory::Relaxed);
            while !node.is_null() {
                tall.push((node, list.height_of(node)));
                node = list.link(node, 1).load(Memory::Relaxed);
            }
            let (bounds, mut found) = ((ptr::null_mut(), ptr::null_mut()), Vec::new());
            self.check_page(list, self.root, self.depth, bounds, &mut found);
            assert_eq!(found, tall);
        }

        fn check_page(
            &self,
            list: &SkipList,
            at: usize,
            depth: usize,
            (low, high): (*mut Node, *mut Node),
            found: &mut Vec<(*mut Node, usize)>,
        ) {
            let page = &self.pages[at];
            assert_eq!(page.common, self.common_between(list, low, high));
            assert!(page.heads[page.len..].iter().all(|&head| head == i32::MAX));
            let nodes = &page.nodes[..page.len];
            for (place, (&node, &below)) in nodes.iter().zip(&page.below).enumerate() {
                assert_eq!(page.heads[place], page.head_of(list, node));
                if depth == 0 {
                    found.push((node, below as usize));
                    continue;
                }
                assert_eq!(node.is_null(), place == 0 && low.is_null());
                assert!(place > 0 || node == low);
                let end = nodes.get(place + 1).copied().unwrap_or(high);
                self.check_page(list, below as usize, depth - 1, (node, end), found);
            }
        }
    }

    /// A number for each entry that no other has; in no order, unless they ascend.
    fn number(place: usize, ascends: bool) -> Sequence {
        let mixed = (place as u32).wrapping_mul(0x9e37_79b1);
        Sequence(1 + if ascends { place as u64 } else { u64::from(mixed) })
    }

    /// Adds entries one by one, and compares what is known before each with what a descent finds.
    fn fill(keys: &[Vec<u8>], ascends: bool) -> Arc<SkipList> {
        let list = Arc::new(SkipList::new(0));
        for (place, key) in keys.iter().enumerate() {
            let sequence = number(place, ascends);
            let entry = Entry { key, sequence, kind: Kind::Put, value: b"" };
            let mut all = Splice::default();
            list.around(key, entry.sequence, 0, |level, node| all.before[level] = node);
            for levels in [1, 2, 4, HEIGHT_MAX] {
                let mut arena = lock(&list.arena);
                let Some(starts) = arena.starts() else { continue };
                let page = starts.page_of(&list, &entry);
                let known = starts.before(&list, page, &entry, levels);
                let upper = 1..known.known.max(1);
                assert_eq!(known.before[upper.clone()], all.before[upper]);
                let [start, last] = [known, all].map(|splice| list.entry_at(splice.before[0]));
                let is_before =
                    |start: Entry<'_>| last.is_some_and(|last| start.order(&last).is_le());
                assert!(start.is_none_or(is_before));
            }
            list.insert(&entry);
        }
        lock(&list.arena).starts().into_iter().for_each(|starts| starts.check(&list));
        list
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 40 }))]

        /// Keys with much in common, short ones, equal ones, and one that has nothing in common.
        #[test]
        fn the_last_tall_nodes_before_an_entry_are_known(
            numbers in prop::collection::vec(0u32..5_000, KEYS),
            prefixes in prop::collection::vec("(user:)?(ab|abc|\u{0})?", 1..4),
            order in 0u8..4,
            ascends in prop::bool::ANY,
        ) {
            let mut keys: Vec<Vec<u8>> = numbers
                .iter()
                .map(|n| format!("{}{n:05}", prefixes[*n as usize % prefixes.len()]).into_bytes())
                .collect();
            match order {
                0 => keys.sort_unstable(),
                1 => keys.sort_unstable_by(|a, b| b.cmp(a)),
                _ => {}
            }
            let middle = keys.len() / 2;
            keys.insert(middle, vec![0xff; 9]);
            keys.insert(middle, Vec::new());
            keys.extend([vec![0; 5], vec![0; 4], b"user:".to_vec()]);
            fill(&keys, ascends);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of entries")]
    fn an_entry_that_leads_to_others_cannot_be_added_again() {
        let key = |number: u32| number.wrapping_mul(0x9e37_79b1).to_be_bytes().to_vec();
        let list = fill(&(0..5_000).map(key).collect::<Vec<_>>(), true);
        let first_of = |starts: &mut Starts| {
            let root = &starts.pages[starts.root];
            root.nodes[1..root.len].to_vec()
        };
        let nodes = lock(&list.arena).starts().map(first_of).expect("a long list");
        assert!(nodes.len() > 1);
        for node in nodes {
            let entry = list.entry_at(node).expect("a node");
            let again = std::panic::AssertUnwindSafe(|| list.insert(&entry));
            assert!(std::panic::catch_unwind(again).is_err());
            assert_eq!(list.len(), 5_000);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of entries")]
    fn ascending_keys_leave_full_pages_and_descending_ones_at_least_half_full() {
        let key = |number: u32| number.to_be_bytes().to_vec();
        let pages_of = |list: Arc<SkipList>| {
            let mut arena = lock(&list.arena);
            let lowest = list.len() / 3 / PAGE_LEN;
            (arena.starts().map_or(0, |starts| starts.pages.len()), lowest)
        };
        let (pages, lowest) = pages_of(fill(&(0..20_000).map(key).collect::<Vec<_>>(), true));
        assert!((lowest..=lowest * 11 / 10 + 4).contains(&pages), "{pages} of {lowest}");
        let (pages, lowest) = pages_of(fill(&(0..20_000).rev().map(key).collect::<Vec<_>>(), true));
        assert!((lowest..=lowest * 22 / 10 + 4).contains(&pages), "{pages} of {lowest}");
    }
}
