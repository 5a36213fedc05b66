//! A B-tree over the tall nodes of the skip list, where the writer's searches begin.
//! ```text
//! page          [ -   g   p ]             separators: each the first node of a page below
//!              /      |      \
//! pages   [a c f]  [g j m]  [p s]         nodes with links above level 0, in order
//! list    a-b-c-d-e-f-g-h-i-j-k-l-...     from there a search walks a few nodes on level 0
//! ```
//! A descent through the list visits about thirty nodes, and waits for memory at each. A page
//! covers thirty-two nodes in a few cache lines. It has four bytes of each key, those behind the
//! prefix that all keys of the page share.
//!
//! Invariants: the tree contains all nodes with links above level 0, by key and then newest first.
//! Only the writer uses it, so it needs no synchronization with readers. A short list has no tree.

use std::ptr;

use smallvec::SmallVec;
use trommel_filters::prefetch_at;

use crate::cost;
use crate::entries::entry::{Entry, Sequence};
use crate::entries::keys::{common_prefix, key_head};

/// Maximum number of nodes in a page.
const PAGE_LEN: usize = 32;

/// Minimum number of entries in a list with a tree. A few pages are small beside that many entries.
pub(super) const ENTRIES_MIN: usize = 256;

/// The size of a cache line.
const LINE_BYTES: usize = 64;

/// A list with ordered nodes. All nodes passed to it are its own.
pub(super) trait Nodes {
    /// Identifies a node.
    type Node: Copy;

    /// Returns the entry of a node.
    fn entry(&self, node: Self::Node) -> Entry<'_>;

    /// Whether a node is before (key, at). `head` is the key's head.
    fn is_before(&self, node: Self::Node, head: u64, key: &[u8], at: Sequence) -> bool;
}

/// Some nodes in order.
struct Page<N> {
    len: usize,
    /// The length of the prefix that all keys belonging here share.
    common: usize,
    /// The four bytes behind the prefix, as numbers in key order. Free slots have the greatest
    /// number.
    heads: [i32; PAGE_LEN],
    /// `None`: the first slot of an upper page. It stands for all keys before the second node.
    nodes: [Option<N>; PAGE_LEN],
    /// In the lowest pages: the heights of the nodes. Above: the pages below.
    below: [u32; PAGE_LEN],
}

/// A page on the path to a key.
struct Step<N> {
    page: usize,
    /// The number of its nodes that are before the key.
    place: usize,
    /// The bounds of the keys that belong in the page: at or behind `low`, and before `high`, where
    /// given.
    low: Option<N>,
    high: Option<N>,
}

type Path<N> = SmallVec<[Step<N>; 8]>;

/// The tree over the tall nodes of one list.
pub(super) struct Starts<N> {
    /// The first page has the first nodes. (Boxed, so that growth moves only pointers.)
    pages: Vec<Box<Page<N>>>,
    root: usize,
    /// Number of levels above the lowest pages.
    depth: usize,
    /// Any node of the list.
    any: N,
    /// The length of the prefix shared by all keys that were added or searched for.
    common: usize,
}

/// Returns four bytes of a key behind its first `common` bytes, as a number in key order. Shorter
/// keys are padded with zeros.
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
    // Every processor can compare many signed numbers at once.
    (head ^ 1 << 31).cast_signed()
}

impl<N: Copy> Page<N> {
    /// Creates an empty page for keys that share a prefix of `common` bytes.
    fn new(common: usize) -> Box<Page<N>> {
        let (heads, nodes) = ([i32::MAX; PAGE_LEN], [None; PAGE_LEN]);
        Box::new(Page { len: 0, common, heads, nodes, below: [0; PAGE_LEN] })
    }

    /// Returns the number of nodes that are before (key, at).
    #[inline]
    fn place_of(&self, list: &impl Nodes<Node = N>, key: &[u8], at: Sequence) -> usize {
        cost::step();
        let head = head_behind(key, self.common);
        let first = self.heads.iter().map(|&other| u32::from(other < head)).sum::<u32>() as usize;
        match self.heads.get(first) {
            Some(&other) if other == head => self.place_among(list, first, (head, key, at)),
            _ => first,
        }
    }

    /// Does the same when the nodes from `first` on have the key's head.
    fn place_among(
        &self,
        list: &impl Nodes<Node = N>,
        first: usize,
        (head, key, at): (i32, &[u8], Sequence),
    ) -> usize {
        let same = self.heads[first..self.len].partition_point(|&other| other == head);
        let key_head = key_head(key);
        let is_before =
            |node: &Option<N>| node.is_none_or(|node| list.is_before(node, key_head, key, at));
        first + self.nodes[first..first + same].partition_point(is_before)
    }

    /// Inserts a node at `place`. Requires: the page is not full.
    fn put(&mut self, list: &impl Nodes<Node = N>, place: usize, (node, below): (Option<N>, u32)) {
        let len = self.len;
        self.heads.copy_within(place..len, place + 1);
        self.nodes.copy_within(place..len, place + 1);
        self.below.copy_within(place..len, place + 1);
        self.heads[place] = self.head_of(list, node);
        (self.nodes[place], self.below[place]) = (node, below);
        self.len += 1;
    }

    /// Moves all nodes from `place` on to a new page.
    fn split_off(&mut self, place: usize) -> Box<Page<N>> {
        let (mut page, count) = (Page::new(self.common), self.len - place);
        page.heads[..count].copy_from_slice(&self.heads[place..self.len]);
        page.nodes[..count].copy_from_slice(&self.nodes[place..self.len]);
        page.below[..count].copy_from_slice(&self.below[place..self.len]);
        self.heads[place..].fill(i32::MAX);
        (page.len, self.len) = (count, place);
        page
    }

    /// Changes the length of the shared prefix, and recomputes the heads.
    fn rebase(&mut self, list: &impl Nodes<Node = N>, common: usize) {
        if common == self.common {
            return;
        }
        self.common = common;
        for place in 0..self.len {
            self.heads[place] = self.head_of(list, self.nodes[place]);
        }
    }

    fn head_of(&self, list: &impl Nodes<Node = N>, node: Option<N>) -> i32 {
        node.map_or(i32::MIN, |node| head_behind(list.entry(node).key, self.common))
    }
}

impl<N: Copy> Starts<N> {
    /// Builds the tree over nodes in order, each with its height. `None`: there are none.
    pub(super) fn of(
        list: &impl Nodes<Node = N>,
        nodes: impl Iterator<Item = (N, usize)>,
    ) -> Option<Self> {
        let mut nodes = nodes.peekable();
        let &(any, _) = nodes.peek()?;
        let common = list.entry(any).key.len();
        let mut starts = Starts { pages: vec![Page::new(common)], root: 0, depth: 0, any, common };
        nodes.for_each(|(node, height)| starts.add(list, node, height));
        Some(starts)
    }

    /// The memory of the tree, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        self.pages.len() * size_of::<Page<N>>()
    }

    /// Calls `wants_more` with nodes before an entry and their heights, the last node first, until
    /// it returns false. Returns false if the page ends first and more nodes precede it. Requires:
    /// the entry belongs in this page.
    #[inline]
    pub(super) fn before(
        &self,
        list: &impl Nodes<Node = N>,
        page: usize,
        entry: &Entry<'_>,
        mut wants_more: impl FnMut(N, usize) -> bool,
    ) -> bool {
        let here = &self.pages[page];
        let place = here.place_of(list, entry.key, entry.sequence);
        for (node, height) in here.nodes[..place].iter().zip(&here.below).rev() {
            let node = node.expect("the lowest pages have nodes alone");
            if !wants_more(node, *height as usize) {
                return true;
            }
        }
        page == 0
    }

    /// Finds the lowest page in which an entry belongs, and prefetches it.
    #[inline]
    pub(super) fn page_of(&mut self, list: &impl Nodes<Node = N>, entry: &Entry<'_>) -> usize {
        self.expect(list, entry.key);
        let mut at = self.root;
        for _ in 0..self.depth {
            let page = &self.pages[at];
            // The first node of an upper page is before all keys that belong there.
            at = page.below[page.place_of(list, entry.key, entry.sequence) - 1] as usize;
            let page = &*self.pages[at];
            prefetch_at(ptr::from_ref(page).cast(), size_of_val(page).div_ceil(LINE_BYTES));
        }
        at
    }

    /// Adds a node with its height.
    pub(super) fn add(&mut self, list: &impl Nodes<Node = N>, node: N, height: usize) {
        let entry = list.entry(node);
        self.expect(list, entry.key);
        let mut path = self.path_to(list, &entry);
        let mut new = (Some(node), height as u32);
        while let Some(step) = path.pop() {
            let page = &mut self.pages[step.page];
            if page.len < PAGE_LEN {
                return page.put(list, step.place, new);
            }
            new = self.split(list, &step, new);
        }
        let mut root = Page::new(self.common);
        root.put(list, 0, (None, self.root as u32));
        root.put(list, 1, new);
        (self.root, self.depth) = (self.pages.len(), self.depth + 1);
        self.pages.push(root);
    }

    /// Accounts for a key. The common prefix of all keys bounds the first and the last page of each
    /// level.
    #[inline]
    fn expect(&mut self, list: &impl Nodes<Node = N>, key: &[u8]) {
        let any = list.entry(self.any).key;
        if !key.starts_with(&any[..self.common]) {
            self.common = common_prefix(&any[..self.common], key);
            self.rebase_edge(list, |_| 0);
            self.rebase_edge(list, |page| page.len - 1);
        }
    }

    #[cold]
    fn rebase_edge(&mut self, list: &impl Nodes<Node = N>, edge: fn(&Page<N>) -> usize) {
        let mut at = self.root;
        for _ in 0..self.depth {
            let page = &mut self.pages[at];
            page.rebase(list, self.common);
            at = page.below[edge(page)] as usize;
        }
        self.pages[at].rebase(list, self.common);
    }

    fn path_to(&self, list: &impl Nodes<Node = N>, entry: &Entry<'_>) -> Path<N> {
        let (mut path, mut page, mut low, mut high) = (Path::new(), self.root, None, None);
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

    /// Splits a full page in two, and adds the node that did not fit. Returns the new page with its
    /// first node.
    fn split(
        &mut self,
        list: &impl Nodes<Node = N>,
        step: &Step<N>,
        new: (Option<N>, u32),
    ) -> (Option<N>, u32) {
        // Ascending keys leave full pages behind.
        let is_last = step.place == PAGE_LEN && step.high.is_none();
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

    /// Returns the length of the prefix that all keys between two nodes share.
    fn common_between(
        &self,
        list: &impl Nodes<Node = N>,
        low: Option<N>,
        high: Option<N>,
    ) -> usize {
        let both = low.zip(high).map(|(low, high)| (list.entry(low), list.entry(high)));
        both.map_or(self.common, |(low, high)| common_prefix(low.key, high.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::entry::Kind;
    use crate::entries::skiplist::SkipList;
    use crate::sync::{Arc, lock};
    use proptest::prelude::*;
    use std::ops::Range;

    const KEYS: Range<usize> = if cfg!(miri) { ENTRIES_MIN..300 } else { 1..3_000 };

    type Node = <SkipList as Nodes>::Node;

    impl Starts<Node> {
        /// Panics unless the tree has exactly the nodes with links above level 0, in order, within
        /// their bounds.
        pub(in crate::entries::skiplist) fn check(&self, list: &SkipList) {
            let mut found = Vec::new();
            self.check_page(list, self.root, self.depth, (None, None), &mut found);
            assert_eq!(found, list.tall_nodes().collect::<Vec<_>>());
        }

        fn check_page(
            &self,
            list: &SkipList,
            at: usize,
            depth: usize,
            (low, high): (Option<Node>, Option<Node>),
            found: &mut Vec<(Node, usize)>,
        ) {
            let page = &self.pages[at];
            assert_eq!(page.common, self.common_between(list, low, high));
            assert!(page.heads[page.len..].iter().all(|&head| head == i32::MAX));
            let nodes = &page.nodes[..page.len];
            for (place, (&node, &below)) in nodes.iter().zip(&page.below).enumerate() {
                assert_eq!(page.heads[place], page.head_of(list, node));
                if depth == 0 {
                    found.push((node.expect("a node"), below as usize));
                    continue;
                }
                assert!(if place == 0 { node == low } else { node.is_some() });
                let end = nodes.get(place + 1).copied().unwrap_or(high);
                self.check_page(list, below as usize, depth - 1, (node, end), found);
            }
        }
    }

    /// Returns a distinct number for each entry, in mixed order unless `ascends`.
    fn number(place: usize, ascends: bool) -> Sequence {
        let mixed = (place as u32).wrapping_mul(0x9e37_79b1);
        Sequence(1 + if ascends { place as u64 } else { u64::from(mixed) })
    }

    /// Adds entries one by one, and compares what the tree knows before each with a descent.
    fn fill(keys: &[Vec<u8>], ascends: bool) -> Arc<SkipList> {
        let list = Arc::new(SkipList::new(0));
        for (place, key) in keys.iter().enumerate() {
            let sequence = number(place, ascends);
            let entry = Entry { key, sequence, kind: Kind::Put, value: b"" };
            let mut all = Vec::new();
            list.around(key, entry.sequence, 0, |_, node| all.insert(0, node));
            let mut arena = lock(&list.arena);
            if let Some(starts) = arena.starts() {
                let (page, mut known) = (starts.page_of(&*list, &entry), Vec::new());
                let is_all = starts.before(&*list, page, &entry, |node, height| {
                    known.resize(known.len().max(height), node.as_ptr());
                    true
                });
                let is_last = |(node, last): (&_, &_)| node == last;
                assert!(known.iter().zip(&all).skip(1).all(is_last));
                let mut others = all.iter().skip(known.len().max(1));
                assert!(!is_all || others.all(|node| node.is_null()));
                let start = known.first().and_then(|&node| list.entry_at(node));
                let last = list.entry_at(all[0]);
                let is_before =
                    |start: Entry<'_>| last.is_some_and(|last| start.order(&last).is_le());
                assert!(start.is_none_or(is_before));
            }
            drop(arena);
            list.insert(&entry);
        }
        lock(&list.arena).starts().into_iter().for_each(|starts| starts.check(&list));
        list
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 40 }))]

        /// Keys with long common prefixes, short keys, equal keys, and one that shares nothing.
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
        let first_of = |starts: &mut Starts<Node>| {
            let root = &starts.pages[starts.root];
            root.nodes[1..root.len].to_vec()
        };
        let nodes = lock(&list.arena).starts().map(first_of).expect("a long list");
        assert!(nodes.len() > 1);
        for node in nodes {
            let entry = list.entry(node.expect("a node"));
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
