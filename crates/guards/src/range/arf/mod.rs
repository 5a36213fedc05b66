//! Adaptive range filter: a binary tree over numbers whose leaves say "empty" or "maybe" (Alexiou
//! et al., VLDB 2013).
//! ```text
//! numbers 0 to 15, keys 1 and 9            (·)               nodes, by level  1  11  1010 ..
//!                                   (·)           (·)        leaves           maybe or empty
//!                                (·)   empty   (·)   empty
//!                            maybe empty   maybe empty
//!
//! line    | inner nodes before it u32 | 480 nodes |
//!           the inner node with r inner ones before it has the children 2r + 1 and 2r + 2
//! bytes   | line 0 | line 1 | ... | leaves | fields | tail |
//! ```
//! The tree is as fine as its training queries need and its budget allows. A query that meets only
//! empty leaves is answered with "no". Keys are the numbers of [`NumberSpace`]: eight bytes after
//! the table's common prefix. Keys with equal numbers are not told apart.
//!
//! Invariant: no key lies in an empty leaf. One empty leaf: no keys.

mod build;
mod grow;
mod kind;

pub use build::ArfBuilder;
pub use kind::{ARF, ArfOptions};

use trommel_filters::{Corrupt, FilterKind, HashedKey, KeyRange, Reader, TableFilter, Trace};

use crate::range::base::number::NumberSpace;
use crate::range::base::tail;

const VERSION: u8 = 1;
const TAG: u16 = 16;
const LINE_BYTES: usize = 64;
/// The bytes before the nodes of a line: the number of inner nodes in earlier lines.
const RANK_BYTES: usize = 4;
const LINE_NODES: usize = (LINE_BYTES - RANK_BYTES) * 8;
/// A query that meets more nodes than this is answered with "maybe". In a built tree, a query meets
/// at most some 64 nodes on its way down, and twice as many leaves between two keys.
const VISITS_MAX: u32 = 1024;

/// The parameters of a filter with keys.
#[derive(Clone, Debug)]
struct Parameters {
    space: NumberSpace,
    /// The number of nodes, leaves included.
    nodes: usize,
}

impl Parameters {
    fn lines(&self) -> usize {
        self.nodes.div_ceil(LINE_NODES)
    }

    /// A tree has one leaf more than inner nodes.
    fn leaf_bytes(&self) -> usize {
        self.nodes.div_ceil(2).div_ceil(8)
    }
}

fn decode_fields(fields: &[u8], payload_len: usize) -> Result<Option<Parameters>, Corrupt> {
    if fields.is_empty() && payload_len == 0 {
        return Ok(None);
    }
    let mut input = Reader::new(fields);
    let space = NumberSpace::read(&mut input)?;
    let parameters = Parameters { space, nodes: input.u32()? as usize };
    input.end()?;
    if parameters.nodes % 2 != 1 {
        return Err(input.corrupt("a tree in which each inner node has two children"));
    }
    if parameters.lines() * LINE_BYTES + parameters.leaf_bytes() != payload_len {
        return Err(input.corrupt("as many bytes as the tree takes"));
    }
    Ok(Some(parameters))
}

/// An adaptive range filter over checked bytes.
#[derive(Clone, Debug)]
pub struct Arf<B> {
    bytes: B,
    /// None: the filter has no keys.
    parameters: Option<Parameters>,
}

impl<B: AsRef<[u8]>> Arf<B> {
    /// Checks bytes that [`ArfBuilder`] made.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let parts = tail::open(bytes.as_ref(), TAG, VERSION)?;
        let parameters = decode_fields(parts.fields, parts.payload.len())?;
        Ok(Arf { bytes, parameters })
    }

    /// The number of nodes in the tree, leaves included.
    pub fn nodes(&self) -> usize {
        self.parameters.as_ref().map_or(1, |parameters| parameters.nodes)
    }

    fn may_have<T: Trace>(
        &self,
        parameters: &Parameters,
        range: (u64, u64),
        trace: &mut T,
    ) -> bool {
        let (nodes, leaves) = self.bytes.as_ref().split_at(parameters.lines() * LINE_BYTES);
        let (lines, _) = nodes.as_chunks::<LINE_BYTES>();
        let leaves = &leaves[..parameters.leaf_bytes()];
        Walk { lines, leaves, range, visits: VISITS_MAX }.visit(
            0,
            parameters.space.bits(),
            0,
            trace,
        )
    }
}

/// The walk of one query through the tree.
struct Walk<'a> {
    lines: &'a [[u8; LINE_BYTES]],
    leaves: &'a [u8],
    range: (u64, u64),
    visits: u32,
}

enum Node {
    /// With its first child.
    Inner(usize),
    Leaf {
        may_have: bool,
    },
}

impl Walk<'_> {
    /// Whether the leaves below a node may have a number of the range. `prefix`: the numbers below
    /// the node without their last `level` bits.
    fn visit<T: Trace>(&mut self, node: usize, level: u32, prefix: u64, trace: &mut T) -> bool {
        if self.visits == 0 {
            return true;
        }
        self.visits -= 1;
        match self.node(node, trace) {
            Some(Node::Leaf { may_have }) => may_have,
            Some(Node::Inner(child)) if level > 0 => {
                let below = level - 1;
                let met = (self.range.0 >> below)..=(self.range.1 >> below);
                (0..2).any(|side| {
                    let prefix = prefix << 1 | side;
                    met.contains(&prefix) && self.visit(child + side as usize, below, prefix, trace)
                })
            }
            // Not a tree that was built: nothing is known.
            Some(Node::Inner(_)) | None => true,
        }
    }

    #[inline]
    fn node<T: Trace>(&self, node: usize, trace: &mut T) -> Option<Node> {
        let line = self.lines.get(node / LINE_NODES)?;
        trace.touch_bytes(line);
        let (at, place) = (node % LINE_NODES / 8, node % 8);
        let rank = *line.first_chunk::<RANK_BYTES>()?;
        let nodes = &line[RANK_BYTES..];
        let inner = u32::from_le_bytes(rank) as usize + ones_before(nodes, at, place);
        if nodes[at] >> place & 1 == 1 {
            return Some(Node::Inner(2 * inner + 1));
        }
        let leaf = node.checked_sub(inner)?;
        let byte = self.leaves.get(leaf / 8)?;
        trace.touch_bytes(std::slice::from_ref(byte));
        Some(Node::Leaf { may_have: byte >> (leaf % 8) & 1 == 1 })
    }
}

/// Returns the number of ones in the first `at` bytes and in the lowest `place` bits of the next
/// byte.
#[inline]
fn ones_before(bytes: &[u8], at: usize, place: usize) -> usize {
    let (words, rest) = bytes[..at].as_chunks::<8>();
    let whole: u32 = words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum();
    let single: u32 = rest.iter().map(|byte| byte.count_ones()).sum();
    (whole + single + (bytes[at] & ((1 << place) - 1)).count_ones()) as usize
}

impl<B: AsRef<[u8]>> TableFilter for Arf<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        ARF
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        let Some(parameters) = &self.parameters else { return false };
        let number = parameters.space.of_key(key.key());
        number.is_some_and(|number| self.may_have(parameters, (number, number), trace))
    }

    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        let Some(parameters) = &self.parameters else { return false };
        parameters
            .space
            .of_range(range)
            .is_some_and(|range| self.may_have(parameters, range, trace))
    }
}

#[cfg(test)]
mod tests;
