//! Cells of numbers: each is as wide as the smaller gap beside it, divided by 2^(spare bits).
//! ```text
//! keys          v0         v1  v2                        v3        as numbers
//! exponents   e0        e1   e2            e3                 e4   floor(log2(distance))
//! cell i      [S_i, S_i + 2^r_i)
//!             with r_i = max(min(e_i, e_i+1) - s, u),  S_i = S_i-1 + D_i * 2^r_i <= v_i
//! ```
//! Distances are measured from the start of the previous cell, not from its key. So D_i has exactly
//! the bits that e_i implies, and starts need no common grid.
//!
//! Invariant: a key lies in its cell; cells ascend and are disjoint.

/// The maximum number of keys in a block.
pub const KEYS_MAX: usize = 64;

/// The largest exponent between two numbers; before the first number it may be one more.
const BETWEEN_MAX: u32 = 62;

/// The contents of a block. Numbers have at most 63 bits.
#[derive(Clone, Copy)]
pub struct Numbers<'a> {
    /// The keys as ascending numbers; equal ones share a cell.
    pub numbers: &'a [u64],
    /// The lower end of the block, at or below its first key.
    pub anchor: u64,
    /// The key after the block, if known.
    pub next: Option<u64>,
    /// A cell is at most 2^-spare times as wide as the gaps around it, or 2^unit wide.
    pub spare: usize,
    /// Keys are at least 2^unit apart, so no cell is narrower.
    pub unit: u32,
}

/// Returns the exponent of the distance between two neighbours. None: they are equal.
#[inline(always)]
pub fn exponent(before: u64, number: u64) -> Option<u32> {
    number.wrapping_sub(before).checked_ilog2()
}

/// A cell to write: its exponent, and the bits of D below the highest one.
#[derive(Clone, Copy, Default)]
pub(super) struct Code {
    pub(super) exponent: u32,
    pub(super) bits: u64,
    pub(super) len: usize,
}

/// The cells of a block.
pub(super) struct Settled {
    /// The cells, followed by the exponent of the next block's first one.
    pub(super) codes: [Code; KEYS_MAX + 1],
    /// The number of codes.
    pub(super) len: usize,
    /// For each key, and for the key after the block, whether it begins a cell.
    pub(super) begins: [bool; KEYS_MAX + 1],
}

impl Settled {
    /// Requires: 1 to [`KEYS_MAX`] keys.
    #[inline(always)]
    pub(super) fn new(block: &Numbers<'_>) -> Settled {
        let count = block.numbers.len();
        assert!((1..=KEYS_MAX).contains(&count), "{count} keys in a block");
        let (mut codes, mut begins) = ([Code::default(); KEYS_MAX + 1], [true; KEYS_MAX + 1]);
        let mut start = block.anchor.wrapping_sub(1);
        let mut number = block.numbers[0];
        codes[0].exponent = exponent(start, number).expect("a key not below its block");
        let mut cell = 0;
        for (place, &next) in block.numbers.iter().enumerate().skip(1) {
            let Some(apart) = exponent(number, next) else {
                begins[place] = false;
                continue;
            };
            let of = codes[cell].exponent;
            let (mut width, mut at) = settle(start, number, of, apart, block);
            let mut after = apart;
            if exponent(at, next) != Some(apart) {
                after += 1;
                (width, at) = settle(start, number, of, after, block);
            }
            codes[cell].finish(at.wrapping_sub(start), width);
            cell += 1;
            codes[cell].exponent = after;
            (start, number) = (at, next);
        }
        let last = codes[cell].exponent;
        let after = block.next.and_then(|next| exponent(number, next));
        let after = after.unwrap_or(last.min(BETWEEN_MAX));
        let (width, at) = settle(start, number, last, after, block);
        codes[cell].finish(at.wrapping_sub(start), width);
        codes[cell + 1].exponent = after;
        Settled { codes, len: cell + 2, begins }
    }
}

impl Code {
    #[inline(always)]
    fn finish(&mut self, distance: u64, width: u32) {
        self.len = (self.exponent - width) as usize;
        let multiple = distance >> width;
        debug_assert_eq!(multiple.checked_ilog2(), Some(self.len as u32), "the highest bit");
        self.bits = multiple ^ 1 << self.len;
    }
}

/// Returns the width of a cell as a power of two. `lesser`: the exponent of the smaller gap.
#[inline(always)]
pub fn width(lesser: u32, spare: u32, unit: u32) -> u32 {
    lesser.saturating_sub(spare).max(unit.min(lesser))
}

/// Returns the width (as a power of two) and the start of a number's cell, given its exponents.
#[inline(always)]
fn settle(
    start: u64,
    number: u64,
    exponent: u32,
    after: u32,
    Numbers { spare, unit, .. }: &Numbers<'_>,
) -> (u32, u64) {
    let width = width(exponent.min(after), *spare as u32, *unit);
    (width, start.wrapping_add(number.wrapping_sub(start) >> width << width))
}
