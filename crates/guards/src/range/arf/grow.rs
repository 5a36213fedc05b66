//! Grows the tree of an adaptive range filter: selects the leaves that are worth their bits.
//! ```text
//! keys 1, 9       gap 2..8 between them     possible empty leaves there: 2-3, 4-7, 8
//! query 5-6       needs 4-7                 escalate: split the nodes above 4-7 until it is a leaf
//! ```
//! Training counts queries by the leaf that they need. The leaves that most queries need come
//! first, among these the largest, as long as the budget lasts. The paper splits after each false
//! positive, and merges what was not used for a while. Here one choice suffices, since all queries
//! are known.
//!
//! The rest of the budget serves queries that fall evenly into the gaps between keys, all gaps
//! alike. Each gap first gets the leaves of about its own size, then those of half that size, and
//! so on.
//!
//! Invariant: a leaf that was wanted covers no key. There are never more inner nodes than allowed.

/// A node: numbers without their last `level` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodePrefix {
    pub(super) level: u32,
    pub(super) prefix: u64,
}

/// A tree that grows at its leaves.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// The first of each node's two children; 0: the node is a leaf. The root is node 0.
    children: Vec<u32>,
    bits: u32,
    inner_max: usize,
}

impl Tree {
    /// A tree of one leaf.
    pub(super) fn new(bits: u32, inner_max: usize) -> Self {
        // Children are numbered in 32 bits.
        Tree { children: vec![0], bits, inner_max: inner_max.min(u32::MAX as usize / 4) }
    }

    /// The number of nodes, leaves included.
    pub(super) fn nodes(&self) -> usize {
        self.children.len()
    }

    /// Returns the first child of a node. None: the node is a leaf.
    pub(super) fn first_child(&self, node: u32) -> Option<u32> {
        Some(self.children[node as usize]).filter(|&child| child != 0)
    }

    /// Splits nodes until `place` is a node. Returns false if the budget does not allow it.
    pub(super) fn escalate(&mut self, place: NodePrefix) -> bool {
        let depth = self.bits - place.level;
        let (mut node, mut at) = (0u32, 0);
        while let Some(child) = self.first_child(node).filter(|_| at < depth) {
            (node, at) = (child + side(place, depth, at), at + 1);
        }
        let inner = self.children.len() / 2;
        if inner + (depth - at) as usize > self.inner_max {
            return false;
        }
        while at < depth {
            let child = self.children.len() as u32;
            self.children[node as usize] = child;
            self.children.extend([0, 0]);
            (node, at) = (child + side(place, depth, at), at + 1);
        }
        true
    }
}

/// Returns the child towards a node at `depth`, below its first `at` bits.
fn side(place: NodePrefix, depth: u32, at: u32) -> u32 {
    (place.prefix >> (depth - at - 1) & 1) as u32
}

/// Returns the largest node that covers `number` and no key. Requires: `number` is no key, and
/// `numbers` ascend.
pub(super) fn largest_empty(numbers: &[u64], bits: u32, number: u64) -> NodePrefix {
    let after = numbers.partition_point(|&key| key < number);
    let neighbours =
        [after.checked_sub(1).map(|before| numbers[before]), numbers.get(after).copied()];
    let apart = |key: u64| (key ^ number).ilog2();
    let level = neighbours.into_iter().flatten().map(apart).min().unwrap_or(bits);
    NodePrefix { level, prefix: number.checked_shr(level).unwrap_or(0) }
}

/// Returns the leaves that a query from `low` to `high` needs. None: the range holds a key, or
/// needs more than `max` leaves.
pub(super) fn needed(
    numbers: &[u64],
    bits: u32,
    (low, high): (u64, u64),
    max: usize,
) -> Option<Vec<NodePrefix>> {
    let after = numbers.partition_point(|&key| key < low);
    if numbers.get(after).is_some_and(|&key| key <= high) {
        return None;
    }
    let mut places = Vec::new();
    let mut number = low;
    while places.len() < max {
        let place = largest_empty(numbers, bits, number);
        places.push(place);
        let last = number | 1u64.checked_shl(place.level).unwrap_or(0).wrapping_sub(1);
        if last >= high {
            return Some(places);
        }
        number = last + 1;
    }
    None
}

/// Escalates for trained leaves: the most needed first, then the largest.
pub(super) fn grow_trained(tree: &mut Tree, mut places: Vec<NodePrefix>) {
    places.sort_unstable();
    let runs = places.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0]));
    let mut counted: Vec<(usize, NodePrefix)> = runs.collect();
    counted.sort_by_key(|&(count, place)| (std::cmp::Reverse(count), std::cmp::Reverse(place)));
    for (_, place) in counted {
        tree.escalate(place);
    }
}

/// Neighbouring gaps that are processed in order, as their nodes are close in memory.
const BLOCK_GAPS: usize = 64;

/// Spends the rest of the budget on gaps, one class of leaves after the other, until a leaf finds
/// no room. The order of blocks spreads what fits over all keys.
pub(super) fn grow_untrained(tree: &mut Tree, numbers: &[u64]) {
    let gaps = numbers.len() + 1;
    let blocks = gaps.div_ceil(BLOCK_GAPS) as u64;
    let step = coprime_step(blocks);
    for class in 0..tree.bits {
        let mut all_fit = true;
        let mut block = 0;
        for _ in 0..blocks {
            let from = block as usize * BLOCK_GAPS;
            for gap in from..(from + BLOCK_GAPS).min(gaps) {
                let leaves = leaves_of(numbers, tree.bits, gap, class);
                leaves.into_iter().flatten().for_each(|place| all_fit &= tree.escalate(place));
            }
            block = (block + step) % blocks;
        }
        if !all_fit {
            return;
        }
    }
}

/// Returns a step that visits all of `0..count`, with distant successors: about the golden section.
fn coprime_step(count: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let golden = (count as f64 * 0.618_033_988_75) as u64;
    (golden.max(1)..).find(|&step| gcd(step, count) == 1).unwrap_or(1)
}

/// Returns the largest empty nodes, right of one key and left of the next, of about the gap's size
/// halved `class` times. Gap i ends at key i.
fn leaves_of(numbers: &[u64], bits: u32, gap: usize, class: u32) -> [Option<NodePrefix>; 2] {
    let before = gap.checked_sub(1).map(|at| numbers[at]);
    let after = numbers.get(gap).copied();
    let last = u64::MAX >> (u64::BITS - bits);
    let (from, to) = (before.unwrap_or(0), after.unwrap_or(last));
    // Below the node that has both keys; at the ends of the number range, below the root.
    let below = match (before, after) {
        (Some(before), Some(after)) => (before ^ after).ilog2(),
        _ => bits,
    };
    let level = (to - from).checked_ilog2().and_then(|size| size.checked_sub(class));
    let Some(level) = level.filter(|&level| level < below) else { return [None, None] };
    let right = before.map(|key| key >> level).filter(|prefix| prefix & 1 == 0);
    let left = after.map(|key| key >> level).filter(|prefix| prefix & 1 == 1);
    [right.map(|prefix| prefix + 1), left.map(|prefix| prefix - 1)]
        .map(|prefix| prefix.map(|prefix| NodePrefix { level, prefix }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_empty(numbers: &[u64], place: NodePrefix) -> bool {
        numbers.iter().all(|number| number >> place.level != place.prefix)
    }

    #[test]
    fn the_largest_empty_node_has_no_key_and_its_parent_has() {
        let numbers = [1u64, 9, 200];
        for number in (0..256).filter(|number| !numbers.contains(number)) {
            let place = largest_empty(&numbers, 8, number);
            assert!(is_empty(&numbers, place), "{number}: {place:?}");
            assert_eq!(number >> place.level, place.prefix);
            let parent = NodePrefix { level: place.level + 1, prefix: place.prefix >> 1 };
            assert!(!is_empty(&numbers, parent), "{number}: {place:?}");
        }
        assert_eq!(largest_empty(&[], 64, 7), NodePrefix { level: 64, prefix: 0 });
    }

    #[test]
    fn a_question_needs_leaves_that_cover_it() {
        let numbers = [1u64, 9];
        let place = |level, prefix| NodePrefix { level, prefix };
        assert_eq!(needed(&numbers, 4, (5, 6), 9), Some(vec![place(2, 1)]));
        assert_eq!(
            needed(&numbers, 4, (2, 8), 9),
            Some(vec![place(1, 1), place(2, 1), place(0, 8)])
        );
        assert_eq!(needed(&numbers, 4, (2, 8), 2), None, "three leaves");
        assert_eq!(needed(&numbers, 4, (2, 9), 9), None, "a key");
        assert_eq!(
            needed(&[u64::MAX], 64, (1 << 63, u64::MAX - 1), 99).map(|all| all.len()),
            Some(63)
        );
    }

    #[test]
    fn the_tree_never_outgrows_its_budget() {
        let numbers: Vec<u64> = (0..100).map(|n| n * n * 7).collect();
        for inner_max in [0, 1, 10, 300, 5000] {
            let mut tree = Tree::new(24, inner_max);
            grow_untrained(&mut tree, &numbers);
            assert!(tree.nodes() <= 2 * inner_max + 1, "{inner_max}");
            let all_but_a_path = inner_max < tree.nodes() / 2 + 24;
            assert!(all_but_a_path || inner_max == 5000, "{inner_max}: {}", tree.nodes());
        }
    }

    #[test]
    fn classes_of_leaves_are_empty_nodes_of_their_size() {
        let numbers = [3u64, 40, 41, 190];
        for (gap, class) in (0..5).flat_map(|gap| (0..8).map(move |class| (gap, class))) {
            for place in leaves_of(&numbers, 8, gap, class).into_iter().flatten() {
                assert!(is_empty(&numbers, place), "{gap} {class}: {place:?}");
            }
        }
        assert_eq!(leaves_of(&numbers, 8, 2, 0), [None, None], "no number between 40 and 41");
        let sixteen_to_31 = NodePrefix { level: 4, prefix: 1 };
        assert_eq!(leaves_of(&numbers, 8, 1, 1), [Some(sixteen_to_31), None]);
    }

    #[test]
    fn all_gaps_are_met() {
        for count in [1u64, 2, 3, 10, 97, 1000] {
            let step = coprime_step(count);
            let mut met: Vec<u64> = (0..count).map(|n| n * step % count).collect();
            met.sort_unstable();
            assert!(met.into_iter().eq(0..count), "{count}");
        }
    }
}
