//! A persistent interval tree: the newest range tombstone at each key, after each deletion.
//! ```text
//! deletions    0: [a ......... k)      1: [c ... e)
//! state 0      a -> 0   k -> none
//! state 1      a -> 0   c -> 1   e -> 0   k -> none          from each bound up to the next
//! ```
//! A later deletion is the newest in all of its range, so it replaces the bounds within. Each state
//! is an AVL tree. It shares all nodes with the previous state except those on the paths to the two
//! new bounds.
//!
//! The interval from a bound to the next one may *show* something: it is not deleted, or has an
//! entry newer than the deletion. Each node *marks* this for its own bound, and for all bounds of
//! its subtree together. So a search passes any number of neighbouring bounds that show nothing at
//! once.
//!
//! Invariants:
//! - The bounds of a tree ascend, and neighbours have different deletions.
//! - A published node never changes, except that marks are added.
//! - A bound is an end of a deletion, named by that deletion's number. While it is a bound, the
//!   newest deletion from there on never changes either.
//! - Nodes of the last state have exact marks. Nodes of an earlier state may have too many. They
//!   never lack one where a reader of that state sees an entry. Later entries are newer than the
//!   deletion that led to the next state.

use std::cmp::Ordering as Order;

use crate::cost;
use crate::entries::append_list::AppendList;
use crate::sync::{AtomicU64, Ordering};

/// A node's index in the list of nodes, plus 1. `NONE`: no node.
pub(crate) type NodeId = u64;
pub(crate) const NONE: NodeId = 0;

/// An end of a deletion: twice the deletion's number, plus 1 for the upper end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound(u64);

impl Bound {
    pub(crate) fn from_of(delete: usize) -> Bound {
        Bound(2 * delete as u64)
    }

    pub(crate) fn to_of(delete: usize) -> Bound {
        Bound(2 * delete as u64 + 1)
    }

    pub(crate) fn delete(self) -> usize {
        (self.0 / 2) as usize
    }

    pub(crate) fn is_to(self) -> bool {
        self.0 % 2 == 1
    }
}

/// Bits of a node's id, and of a bound.
const ID_BITS: u32 = 40;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
const REST_BITS: u32 = u64::BITS - ID_BITS;

/// Layout of a node's second word: offset and mask of the height, then the two marks.
const HEIGHT_AT: u32 = 56;
const HEIGHT_MASK: u64 = (1 << 6) - 1;
const SHOWS: u64 = 1 << 62;
const ANY_SHOWS: u64 = 1 << 63;

/// A node in two words. First: left child, low bits of the bound. Second: right child, high bits of
/// the bound, height, marks.
#[derive(Default)]
pub(crate) struct Packed([AtomicU64; 2]);

/// A bound, and whether its interval shows something.
#[derive(Clone, Copy, Debug)]
struct Start {
    bound: Bound,
    shows: bool,
}

/// The sides of a node: the bounds before its own, and those behind.
pub(crate) const BEFORE: usize = 0;
pub(crate) const BEHIND: usize = 1;
type Sides = [NodeId; 2];

#[derive(Clone, Copy, Debug)]
struct Node {
    sides: Sides,
    start: Start,
    height: u8,
    /// Whether the node's bound, or any in its subtree, shows something.
    any_shows: bool,
}

impl Packed {
    fn store(&self, node: &Node) {
        let ([left, right], Bound(bound)) = (node.sides, node.start.bound);
        assert!(left.max(right).max(bound) <= ID_MASK, "a memtable beyond all memory");
        let low = left | bound << ID_BITS;
        let flags =
            if node.start.shows { SHOWS } else { 0 } | if node.any_shows { ANY_SHOWS } else { 0 };
        let high =
            right | (bound >> REST_BITS) << ID_BITS | u64::from(node.height) << HEIGHT_AT | flags;
        self.0[0].store(low, Ordering::Relaxed);
        self.0[1].store(high, Ordering::Relaxed);
    }

    #[inline]
    fn load(&self) -> Node {
        let [low, high] = [0, 1].map(|word| self.0[word].load(Ordering::Relaxed));
        let bound = Bound(low >> ID_BITS | (high >> ID_BITS & 0xffff) << REST_BITS);
        Node {
            sides: [low & ID_MASK, high & ID_MASK],
            start: Start { bound, shows: high & SHOWS != 0 },
            height: (high >> HEIGHT_AT & HEIGHT_MASK) as u8,
            any_shows: high & ANY_SHOWS != 0,
        }
    }

    /// Adds marks to a node. The entry's sequence number publishes them to readers.
    fn mark(&self, flags: u64) {
        self.0[1].fetch_or(flags, Ordering::Relaxed);
    }
}

/// The nodes of all states.
pub(crate) type Nodes = AppendList<Packed>;

/// The last bound at or before a key, and the first one behind it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    pub(crate) at_or_before: Option<Bound>,
    pub(crate) behind: Option<Bound>,
    /// Whether the interval between the two shows nothing.
    pub(crate) shows_nothing: bool,
}

#[inline]
fn node_of(nodes: &Nodes, id: NodeId) -> Node {
    nodes.get(id as usize - 1).load()
}

fn any_shows(nodes: &Nodes, id: NodeId) -> bool {
    id != NONE && node_of(nodes, id).any_shows
}

/// Finds the bounds around a key in the state with this root, in O(log n). `compare` orders a
/// bound's key relative to that key.
#[inline]
pub(crate) fn around(nodes: &Nodes, root: NodeId, compare: impl Fn(Bound) -> Order) -> Around {
    let (mut around, mut at) = (Around::default(), root);
    while at != NONE {
        cost::step();
        let node = node_of(nodes, at);
        let Start { bound, shows } = node.start;
        if compare(bound) == Order::Greater {
            (around.behind, at) = (Some(bound), node.sides[BEFORE]);
        } else {
            (around.at_or_before, around.shows_nothing) = (Some(bound), !shows);
            at = node.sides[BEHIND];
        }
    }
    around
}

/// Finds the bound nearest to a key that shows something, in the state with this root. On the side
/// `BEHIND` it lies behind the key; on the side `BEFORE`, at or before it. `compare` is as for
/// `around`.
pub(crate) fn shown(
    nodes: &Nodes,
    root: NodeId,
    side: usize,
    compare: impl Fn(Bound) -> Order,
) -> Option<Bound> {
    let (mut nearest, mut at) = (None, root);
    while at != NONE {
        cost::step();
        let node = node_of(nodes, at);
        let is_behind = compare(node.start.bound) == Order::Greater;
        if is_behind != (side == BEHIND) {
            at = node.sides[side];
            continue;
        }
        if node.start.shows || any_shows(nodes, node.sides[side]) {
            nearest = Some(node);
        }
        at = node.sides[1 - side];
    }
    let Node { start, sides, .. } = nearest?;
    Some(if start.shows { start.bound } else { nearest_shown(nodes, sides[side], side) })
}

/// Returns the bound nearest to a key that shows something, of a subtree on one side of the key.
/// Requires: there is one. (While a mark is being added, a node may have it before its children do.
/// Even then no bound before the answer shows anything to this reader.)
fn nearest_shown(nodes: &Nodes, mut id: NodeId, side: usize) -> Bound {
    loop {
        cost::step();
        let Node { sides, start, .. } = node_of(nodes, id);
        id = if any_shows(nodes, sides[1 - side]) {
            sides[1 - side]
        } else if !start.shows && any_shows(nodes, sides[side]) {
            sides[side]
        } else {
            return start.bound;
        };
    }
}

/// Returns the first bound of the state with this root.
pub(crate) fn first(nodes: &Nodes, root: NodeId) -> Option<Bound> {
    let (mut first, mut at) = (None, root);
    while at != NONE {
        cost::step();
        let node = node_of(nodes, at);
        (first, at) = (Some(node.start.bound), node.sides[BEFORE]);
    }
    first
}

/// Marks the bound `target`, the last one at or before a key, as showing something. Requires: it is
/// a bound of the last state, whose root this is. `compare` is as for `around`.
pub(crate) fn mark(nodes: &Nodes, root: NodeId, target: Bound, compare: impl Fn(Bound) -> Order) {
    let mut at = root;
    loop {
        cost::step();
        let packed = nodes.get(at as usize - 1);
        let Node { sides, start, .. } = packed.load();
        if start.bound == target {
            return packed.mark(SHOWS | ANY_SHOWS);
        }
        packed.mark(ANY_SHOWS);
        at = sides[if compare(start.bound) == Order::Greater { BEFORE } else { BEHIND }];
        assert!(at != NONE, "{target:?} is not in the tree");
    }
}

/// The next state under construction: the nodes so far, and new ones.
pub(crate) struct Change<'a, 'k, B> {
    nodes: &'a Nodes,
    /// The number of nodes of all states so far.
    old_count: usize,
    made: &'a mut Vec<Node>,
    bounds: &'k B,
}

/// Memory that successive changes reuse.
#[derive(Default)]
pub(crate) struct Scratch(Vec<Node>);

/// Resolves bounds to keys and to what shows.
pub(crate) trait Bounds {
    fn key(&self, bound: Bound) -> &[u8];

    /// Whether [from, until) shows something. Requires: the newest deletion there is that from
    /// `bound` on.
    fn shows(&self, bound: Bound, from: &[u8], until: &[u8]) -> bool;

    /// Does the same for [from, key of `until`). Without `until`, the keys to the end always show
    /// something.
    fn shows_up_to(&self, bound: Bound, from: &[u8], until: Option<Bound>) -> bool {
        until.is_none_or(|until| self.shows(bound, from, self.key(until)))
    }
}

/// A state, and the number of nodes up to it.
pub(crate) struct State {
    pub(crate) root: NodeId,
    pub(crate) node_count: usize,
    /// The bound whose deletion is the newest from the end of the new one on.
    pub(crate) under: Option<Bound>,
}

/// Builds the state in which deletion number `delete`, of [from, to), is the newest in its range.
/// Takes O(log n). Requires: from < to; no other thread builds a state or adds marks.
pub(crate) fn assign<B: Bounds>(
    nodes: &Nodes,
    (root, old_count): (NodeId, usize),
    scratch: &mut Scratch,
    (delete, from, to): (usize, &[u8], &[u8]),
    bounds: &B,
) -> State {
    scratch.0.clear();
    let mut change = Change { nodes, old_count, made: &mut scratch.0, bounds };
    let (before, rest) = change.split(root, from);
    let (within, mut behind) = change.split(rest, to);
    let under = change.end(within, BEHIND).or_else(|| change.end(before, BEHIND));
    let before = change.cut_last(before, rest, from);
    let next = change.first(behind);
    if next.is_none_or(|next| bounds.key(next) != to) {
        let bound = Bound::to_of(delete);
        let shows = under.is_none_or(|last| last.shows && bounds.shows_up_to(last.bound, to, next));
        behind = change.join([NONE, behind], Start { bound, shows });
    }
    // Entries newer than the new deletion come later.
    let start = Start { bound: Bound::from_of(delete), shows: false };
    let root = change.join([before, behind], start);
    let mut node_count = old_count;
    let root = change.keep(root, &mut node_count);
    State { root, node_count, under: under.map(|last| last.bound) }
}

/// Returns the sides with one replaced.
fn with(mut sides: Sides, side: usize, id: NodeId) -> Sides {
    sides[side] = id;
    sides
}

impl<B: Bounds> Change<'_, '_, B> {
    fn node(&self, id: NodeId) -> Node {
        match (id as usize).checked_sub(self.old_count + 1) {
            Some(made) => self.made[made],
            None => node_of(self.nodes, id),
        }
    }

    fn height(&self, id: NodeId) -> u8 {
        if id == NONE { 0 } else { self.node(id).height }
    }

    fn make(&mut self, sides: Sides, start: Start) -> NodeId {
        cost::step();
        let (mut height, mut any_shows) = (1, start.shows);
        for side in sides.into_iter().filter(|side| *side != NONE) {
            let node = self.node(side);
            height = height.max(node.height + 1);
            any_shows |= node.any_shows;
        }
        self.made.push(Node { sides, start, height, any_shows });
        (self.old_count + self.made.len()) as NodeId
    }

    /// Ends the interval of the last bound before `key` at that key, unless a bound is there
    /// already. If what the interval showed lies behind the key, the last bound loses its mark.
    /// Returns the bounds before `key`.
    fn cut_last(&mut self, before: NodeId, rest: NodeId, key: &[u8]) -> NodeId {
        let is_cut = self.first(rest).is_none_or(|next| self.bounds.key(next) != key);
        let Some(last) = self.end(before, BEHIND).filter(|last| last.shows && is_cut) else {
            return before;
        };
        match self.bounds.shows(last.bound, self.bounds.key(last.bound), key) {
            true => before,
            false => self.hide_last(before),
        }
    }

    /// Returns the same bounds, without the mark of the last one. Requires: there is a bound.
    fn hide_last(&mut self, id: NodeId) -> NodeId {
        let Node { sides: [left, right], start, .. } = self.node(id);
        if right == NONE {
            return self.make([left, NONE], Start { shows: false, ..start });
        }
        let right = self.hide_last(right);
        self.make([left, right], start)
    }

    /// Joins two trees with a bound between them. Requires: the bounds ascend.
    fn join(&mut self, sides: Sides, start: Start) -> NodeId {
        let Some(high) = self.too_high(sides) else { return self.make(sides, start) };
        let (node, low) = (self.node(sides[high]), 1 - high);
        let joined = self.join(with(sides, high, node.sides[low]), start);
        self.balance(with(node.sides, low, joined), node.start)
    }

    /// Makes a balanced tree of sides whose heights differ by at most two.
    fn balance(&mut self, sides: Sides, start: Start) -> NodeId {
        let Some(high) = self.too_high(sides) else { return self.make(sides, start) };
        let (node, low) = (self.node(sides[high]), 1 - high);
        let inner = node.sides[low];
        if self.height(inner) <= self.height(node.sides[high]) {
            let lower = self.make(with(sides, high, inner), start);
            return self.make(with(node.sides, low, lower), node.start);
        }
        let middle = self.node(inner);
        let outer = self.make(with(node.sides, low, middle.sides[high]), node.start);
        let other = self.make(with(sides, high, middle.sides[low]), start);
        self.make(with([other; 2], high, outer), middle.start)
    }

    /// Returns the side that is higher than the other by two or more.
    fn too_high(&self, sides: Sides) -> Option<usize> {
        let heights = sides.map(|side| self.height(side));
        [BEFORE, BEHIND].into_iter().find(|&side| heights[side] > heights[1 - side] + 1)
    }

    /// Splits a tree into the bounds before a key, and the others.
    fn split(&mut self, id: NodeId, key: &[u8]) -> (NodeId, NodeId) {
        if id == NONE {
            return (NONE, NONE);
        }
        let node = self.node(id);
        if self.bounds.key(node.start.bound) < key {
            let (before, others) = self.split(node.sides[BEHIND], key);
            return (self.join(with(node.sides, BEHIND, before), node.start), others);
        }
        let (before, others) = self.split(node.sides[BEFORE], key);
        (before, self.join(with(node.sides, BEFORE, others), node.start))
    }

    fn first(&self, id: NodeId) -> Option<Bound> {
        self.end(id, BEFORE).map(|first| first.bound)
    }

    /// Returns the first or the last bound of a tree.
    fn end(&self, mut id: NodeId, side: usize) -> Option<Start> {
        let mut end = None;
        while id != NONE {
            let node = self.node(id);
            (end, id) = (Some(node.start), node.sides[side]);
        }
        end
    }

    /// Appends the new nodes of a tree to the list. Other nodes that the change made are discarded.
    fn keep(&mut self, id: NodeId, count: &mut usize) -> NodeId {
        if id as usize <= self.old_count {
            return id;
        }
        let node = self.node(id);
        let sides = node.sides.map(|side| self.keep(side, count));
        self.nodes.make(*count).store(&Node { sides, ..node });
        *count += 1;
        *count as NodeId
    }
}
