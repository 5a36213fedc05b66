//! Which deletion of a range is the newest where: a tree of bounds for each state that there was.
//! ```text
//! deletions    0: [a ......... k)      1: [c ... e)
//! state 0      a -> 0   k -> none
//! state 1      a -> 0   c -> 1   e -> 0   k -> none          from each bound up to the next
//! ```
//! A later deletion is the newest in all of its range: it takes the place of the bounds within. Each state is a balanced tree (AVL)
//! that shares all nodes with the state before but those on the way to the two new bounds.
//!
//! Invariants: bounds of a tree ascend, and neighbours have different deletions. A node never changes once it is told of. A bound
//! is an end of a deletion, by the number of that: what is the newest from there on never changes either, while it is a bound.

use std::cmp::Ordering as Order;

use crate::append_list::AppendList;
use crate::cost;
use crate::sync::{AtomicU64, Ordering};

/// A node, by its place in the list of nodes and 1. No node: `NONE`.
pub(crate) type NodeId = u64;
pub(crate) const NONE: NodeId = 0;

/// One end of a deletion: twice its number, and 1 if it is the second one.
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

/// Bits of what names a node or a bound.
const ID_BITS: u32 = 40;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
const REST_BITS: u32 = u64::BITS - ID_BITS;

/// A node in two words: left, low bits of the bound; right, high bits of the bound, height.
#[derive(Default)]
pub(crate) struct Packed([AtomicU64; 2]);

#[derive(Clone, Copy, Debug)]
struct Node {
    left: NodeId,
    right: NodeId,
    bound: Bound,
    height: u8,
}

impl Packed {
    fn store(&self, node: &Node) {
        let (left, right, Bound(bound)) = (node.left, node.right, node.bound);
        assert!(left.max(right).max(bound) <= ID_MASK, "a memtable beyond all memory");
        let low = left | bound << ID_BITS;
        let high = right | (bound >> REST_BITS) << ID_BITS | u64::from(node.height) << 56;
        self.0[0].store(low, Ordering::Relaxed);
        self.0[1].store(high, Ordering::Relaxed);
    }

    #[inline]
    fn load(&self) -> Node {
        let [low, high] = [0, 1].map(|word| self.0[word].load(Ordering::Relaxed));
        let bound = low >> ID_BITS | (high >> ID_BITS & 0xffff) << REST_BITS;
        let (left, right) = (low & ID_MASK, high & ID_MASK);
        Node { left, right, bound: Bound(bound), height: (high >> 56) as u8 }
    }
}

/// The nodes of all states.
pub(crate) type Nodes = AppendList<Packed>;

/// The last bound at or before a key, and the first one behind it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    pub(crate) at_or_before: Option<Bound>,
    pub(crate) behind: Option<Bound>,
}

/// What is around a key in the state of this root. `compare` tells how a bound's key lies to it.
#[inline]
pub(crate) fn around(nodes: &Nodes, root: NodeId, compare: impl Fn(Bound) -> Order) -> Around {
    let (mut around, mut at) = (Around::default(), root);
    while at != NONE {
        cost::step();
        let node = nodes.get(at as usize - 1).load();
        if compare(node.bound) == Order::Greater {
            (around.behind, at) = (Some(node.bound), node.left);
        } else {
            (around.at_or_before, at) = (Some(node.bound), node.right);
        }
    }
    around
}

/// The next state on its way: nodes of states so far, and new ones.
pub(crate) struct Change<'a, C> {
    nodes: &'a Nodes,
    /// Nodes of the states so far.
    old_count: usize,
    made: &'a mut Vec<Node>,
    /// How the key of a bound lies to a key.
    compare: C,
}

/// Memory for changes, one after the other.
#[derive(Default)]
pub(crate) struct Scratch(Vec<Node>);

/// A state, and how many nodes there are with it.
pub(crate) struct State {
    pub(crate) root: NodeId,
    pub(crate) node_count: usize,
    /// The bound whose deletion was the newest at the end of the new one.
    pub(crate) under: Option<Bound>,
}

/// The state in which the deletion of [from, to) with this number is the newest. Requires: from < to; nobody else makes one.
pub(crate) fn assign<C: Fn(Bound, &[u8]) -> Order>(
    nodes: &Nodes,
    (root, old_count): (NodeId, usize),
    scratch: &mut Scratch,
    (delete, from, to): (usize, &[u8], &[u8]),
    compare: C,
) -> State {
    scratch.0.clear();
    let mut change = Change { nodes, old_count, made: &mut scratch.0, compare };
    let (before, rest) = change.split(root, from);
    let (within, mut behind) = change.split(rest, to);
    let under = change.last(within).or_else(|| change.last(before));
    let ends_at_bound = change.first(behind);
    if ends_at_bound.is_none_or(|bound| (change.compare)(bound, to) != Order::Equal) {
        behind = change.join(NONE, Bound::to_of(delete), behind);
    }
    let root = change.join(before, Bound::from_of(delete), behind);
    let mut node_count = old_count;
    let root = change.keep(root, &mut node_count);
    State { root, node_count, under }
}

impl<C: Fn(Bound, &[u8]) -> Order> Change<'_, C> {
    fn node(&self, id: NodeId) -> Node {
        match (id as usize).checked_sub(self.old_count + 1) {
            Some(made) => self.made[made],
            None => self.nodes.get(id as usize - 1).load(),
        }
    }

    fn height(&self, id: NodeId) -> u8 {
        if id == NONE { 0 } else { self.node(id).height }
    }

    fn make(&mut self, left: NodeId, bound: Bound, right: NodeId) -> NodeId {
        cost::step();
        let height = 1 + self.height(left).max(self.height(right));
        self.made.push(Node { left, right, bound, height });
        (self.old_count + self.made.len()) as NodeId
    }

    /// The bounds of both sides, and one between them, as a tree. Requires: they ascend.
    fn join(&mut self, left: NodeId, bound: Bound, right: NodeId) -> NodeId {
        let (high, low) = (self.height(left), self.height(right));
        if high > low + 1 {
            let node = self.node(left);
            let joined = self.join(node.right, bound, right);
            return self.balance(node.left, node.bound, joined);
        }
        if low > high + 1 {
            let node = self.node(right);
            let joined = self.join(left, bound, node.left);
            return self.balance(joined, node.bound, node.right);
        }
        self.make(left, bound, right)
    }

    /// A node whose sides differ by two at most in height.
    fn balance(&mut self, left: NodeId, bound: Bound, right: NodeId) -> NodeId {
        let (left_height, right_height) = (self.height(left), self.height(right));
        if left_height > right_height + 1 {
            let Node { left: outer, bound: top, right: inner, .. } = self.node(left);
            if self.height(inner) <= self.height(outer) {
                let lower = self.make(inner, bound, right);
                return self.make(outer, top, lower);
            }
            let middle = self.node(inner);
            let lower = self.make(outer, top, middle.left);
            let upper = self.make(middle.right, bound, right);
            return self.make(lower, middle.bound, upper);
        }
        if right_height > left_height + 1 {
            let Node { left: inner, bound: top, right: outer, .. } = self.node(right);
            if self.height(inner) <= self.height(outer) {
                let lower = self.make(left, bound, inner);
                return self.make(lower, top, outer);
            }
            let middle = self.node(inner);
            let lower = self.make(left, bound, middle.left);
            let upper = self.make(middle.right, top, outer);
            return self.make(lower, middle.bound, upper);
        }
        self.make(left, bound, right)
    }

    /// The bounds before a key, and the others.
    fn split(&mut self, id: NodeId, key: &[u8]) -> (NodeId, NodeId) {
        if id == NONE {
            return (NONE, NONE);
        }
        let node = self.node(id);
        if (self.compare)(node.bound, key) == Order::Less {
            let (before, others) = self.split(node.right, key);
            return (self.join(node.left, node.bound, before), others);
        }
        let (before, others) = self.split(node.left, key);
        (before, self.join(others, node.bound, node.right))
    }

    fn first(&self, mut id: NodeId) -> Option<Bound> {
        let mut first = None;
        while id != NONE {
            let node = self.node(id);
            (first, id) = (Some(node.bound), node.left);
        }
        first
    }

    fn last(&self, mut id: NodeId) -> Option<Bound> {
        let mut last = None;
        while id != NONE {
            let node = self.node(id);
            (last, id) = (Some(node.bound), node.right);
        }
        last
    }

    /// Adds the new nodes of a tree to the list; others that were made on the way are forgotten.
    fn keep(&mut self, id: NodeId, count: &mut usize) -> NodeId {
        if id as usize <= self.old_count {
            return id;
        }
        let node = self.node(id);
        let left = self.keep(node.left, count);
        let right = self.keep(node.right, count);
        self.nodes.make(*count).store(&Node { left, right, ..node });
        *count += 1;
        *count as NodeId
    }
}
