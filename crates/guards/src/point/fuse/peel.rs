//! Fills the cells so that the exclusive or of each key's three is its fingerprint.
//! ```text
//! cells   count of keys, xor of their mixes   a cell with a single key: the key gets this cell
//!                                             and leaves its other two
//!           1 ──> key k takes it ──> others: count - 1 ──> another cell with a single key ...
//! then, from the last key to the first: its own cell = fingerprint ^ the two others,
//! which no later step changes
//! ```
//! Invariant: a key's own cell is not a cell of any key that left later.

use super::cells::Cells;

use super::fingerprint;
use super::graph::Graph;

/// Tells a key's three cells apart. The low bits of a cell's state are the xor of these numbers.
const WHICH_BITS: u32 = 2;
const ONE_KEY: u8 = 1 << WHICH_BITS;
const WHICH: u8 = ONE_KEY - 1;

/// The keys in the order in which they left, and each one's own cell.
pub(super) struct Peeled {
    mixes: Vec<u64>,
    own: Vec<u8>,
}

/// The cells and the keys that have not left yet.
struct Left {
    /// For each cell, the number of its keys, and the xor of which of their cells it is.
    states: Vec<u8>,
    /// For each cell, the xor of its keys.
    sums: Vec<u64>,
}

impl Left {
    /// None: a cell has more keys than can be counted.
    fn of<G: Graph>(graph: &G, mixes: &[u64]) -> Option<Self> {
        let mut states = vec![0u8; graph.cell_count()];
        let mut sums = vec![0; graph.cell_count()];
        let mut overflown = false;
        for &mix in mixes {
            let mut add = |place: usize, which: u8| {
                let state = states[place].wrapping_add(ONE_KEY) ^ which;
                overflown |= state < ONE_KEY;
                states[place] = state;
                sums[place] ^= mix;
            };
            let [a, b, c] = graph.places(mix);
            add(a, 0);
            add(b, 1);
            add(c, 2);
        }
        (!overflown).then_some(Left { states, sums })
    }

    fn is_alone(&self, place: usize) -> bool {
        self.states[place] >> WHICH_BITS == 1
    }
}

/// Peels all keys. None: some keys are left, and none of them has a cell to itself. Requires: there
/// are cells if there are keys.
pub(super) fn peel<G: Graph>(graph: &G, mut mixes: Vec<u64>) -> Option<Peeled> {
    let keys = mixes.len();
    let mut left = Left::of(graph, &mixes)?;
    // Each cell gets down to a single key at most once. One extra place takes writes that are not
    // kept.
    let mut alone = vec![0u32; graph.cell_count() + 1];
    let mut waiting = 0;
    for place in 0..graph.cell_count() {
        alone[waiting] = place as u32;
        waiting += usize::from(left.is_alone(place));
    }
    let mut own = Vec::with_capacity(keys);
    // The keys are in the sums; `mixes` now collects the keys that left.
    mixes.clear();
    while waiting > 0 {
        waiting -= 1;
        let place = alone[waiting] as usize;
        let state = left.states[place];
        if state >> WHICH_BITS != 1 {
            continue; // its key has left by another cell
        }
        let (mix, which) = (left.sums[place], state & WHICH);
        mixes.push(mix);
        own.push(which);
        let places = graph.places(mix);
        for other in OTHERS[usize::from(which)] {
            let place = places[usize::from(other)];
            left.states[place] = left.states[place].wrapping_sub(ONE_KEY) ^ other;
            left.sums[place] ^= mix;
            alone[waiting] = place as u32;
            waiting += usize::from(left.is_alone(place));
        }
    }
    (mixes.len() == keys).then_some(Peeled { mixes, own })
}

const OTHERS: [[u8; 2]; 4] = [[1, 2], [0, 2], [0, 1], [0, 0]];

impl Peeled {
    /// Fills the cells. Requires: they are zero.
    pub(super) fn fill<G: Graph>(&self, graph: &G, cells: &Cells, bytes: &mut [u8]) {
        for (&mix, &which) in self.mixes.iter().zip(&self.own).rev() {
            let places = graph.places(mix);
            let own = places[usize::from(which)];
            cells.complete(bytes, places, own, fingerprint(mix));
        }
    }
}
