//! Builds an adaptive range filter: collects keys and queries, grows the tree, writes it level by
//! level.
//! ```text
//! keys ──────────> numbers ─┐
//! queries ────────> ranges ─┴─> wanted leaves ──> tree ──> nodes and leaves, breadth first
//! ```
//! Invariant: a leaf is "empty" only if it covers no number of a key.

use trommel_filters::{KeyRange, OutOfOrder, Reader, Signature, TableFilterBuilder, Writer};

use super::grow::{Tree, grow_trained, grow_untrained, needed};
use super::{LINE_BYTES, LINE_NODES, TAG, VERSION};
use crate::range::base::number::{NumberCollector, Numbers};
use crate::range::base::tail;

/// A query that needs more leaves than this is not worth them.
const LEAVES_MAX: usize = 32;
/// The cost of an inner node: two nodes with their share of a line's rank, and one leaf.
const INNER_NODE_BITS: f64 = 2.0 * (LINE_BYTES * 8) as f64 / LINE_NODES as f64 + 1.0;

/// Builds an adaptive range filter.
#[derive(Clone, Debug)]
pub struct ArfBuilder {
    keys: NumberCollector,
    bits_per_key: f64,
    /// For each query: its lower bound, whether it has an upper one, and the upper bound.
    questions: Writer,
}

impl ArfBuilder {
    /// A builder without keys and queries.
    ///
    /// # Panics
    /// `bits_per_key` is not a number.
    pub fn new(bits_per_key: f64) -> Self {
        assert!(!bits_per_key.is_nan(), "bits per key is not a number");
        ArfBuilder { keys: NumberCollector::default(), bits_per_key, questions: Writer::new() }
    }

    /// Trains with a range query, before or after keys are added, so that queries like it will be
    /// answered well. A query whose range holds a key teaches nothing.
    pub fn train(&mut self, range: &KeyRange<'_>) {
        self.questions.string(range.lower());
        self.questions.u8(u8::from(range.upper().is_some()));
        self.questions.string(range.upper().unwrap_or_default());
    }
}

impl TableFilterBuilder for ArfBuilder {
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        self.keys.add(key)
    }

    fn finish(self) -> Vec<u8> {
        let key_count = self.keys.len();
        let signature = Signature { tag: TAG, version: VERSION, parameter: 0 };
        let Some(keys) = self.keys.finish() else {
            return tail::seal(signature, vec![], &[]);
        };
        let mut fields = Writer::new();
        keys.space.write(&mut fields);
        let asked = key_count as f64 * self.bits_per_key.clamp(0.0, 1000.0);
        // On average half of the last line is unused; even a tree without inner nodes has a line.
        let overhead = ((tail::FIXED_BYTES + fields.len() + 4 + LINE_BYTES / 2) * 8) as f64;
        let inner_max = ((asked - overhead) / INNER_NODE_BITS).max(0.0) as usize;
        let mut tree = Tree::new(keys.space.bits(), inner_max);
        grow_trained(&mut tree, trained(&keys, self.questions.as_slice()));
        grow_untrained(&mut tree, &keys.numbers);
        fields.u32(tree.nodes() as u32);
        tail::seal(signature, encode(&tree, &keys), fields.as_slice())
    }
}

/// Returns the leaves that queries need, one for each query that needs it.
fn trained(keys: &Numbers, questions: &[u8]) -> Vec<super::grow::NodePrefix> {
    let mut input = Reader::new(questions);
    let mut places = Vec::new();
    while let Some((lower, upper)) = next_question(&mut input) {
        let range = KeyRange::new(lower, upper).and_then(|range| keys.space.of_range(&range));
        let bits = keys.space.bits();
        let found = range.and_then(|range| needed(&keys.numbers, bits, range, LEAVES_MAX));
        places.extend(found.into_iter().flatten());
    }
    places
}

fn next_question<'a>(input: &mut Reader<'a>) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let lower = input.string().ok()?;
    let bounded = input.u8().ok()? == 1;
    let upper = input.string().ok()?;
    Some((lower, bounded.then_some(upper)))
}

/// A node to be written, and the keys below it.
#[derive(Clone, Copy)]
struct Waiting {
    node: u32,
    prefix: u64,
    keys: (usize, usize),
}

/// Writes nodes in lines, then leaves, level by level.
fn encode(tree: &Tree, keys: &Numbers) -> Vec<u8> {
    let (mut is_inner, mut may_have) = (Vec::new(), Vec::new());
    let mut level = keys.space.bits();
    let mut row = vec![Waiting { node: 0, prefix: 0, keys: (0, keys.numbers.len()) }];
    while !row.is_empty() {
        let mut below = Vec::new();
        for waiting in row {
            let child = tree.first_child(waiting.node);
            is_inner.push(child.is_some());
            let (from, to) = waiting.keys;
            let Some(node) = child else {
                may_have.push(from < to);
                continue;
            };
            let right = waiting.prefix << 1 | 1;
            let is_left = |number: &u64| number >> (level - 1) < right;
            let middle = from + keys.numbers[from..to].partition_point(is_left);
            below.push(Waiting { node, prefix: right - 1, keys: (from, middle) });
            below.push(Waiting { node: node + 1, prefix: right, keys: (middle, to) });
        }
        row = below;
        level = level.saturating_sub(1);
    }
    let mut bytes = lines_of(&is_inner);
    bytes.extend(packed(&may_have));
    bytes
}

/// Writes lines: a rank, then nodes.
fn lines_of(is_inner: &[bool]) -> Vec<u8> {
    let (mut lines, mut inner) = (Vec::new(), 0u32);
    for nodes in is_inner.chunks(LINE_NODES) {
        lines.extend(inner.to_le_bytes());
        lines.extend(packed(nodes));
        lines.resize(lines.len().next_multiple_of(LINE_BYTES), 0);
        inner += nodes.iter().map(|&is_inner| u32::from(is_inner)).sum::<u32>();
    }
    lines
}

/// Packs eight bits per byte, least significant bit first.
fn packed(bits: &[bool]) -> impl Iterator<Item = u8> {
    bits.chunks(8).map(|eight| eight.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit)))
}
