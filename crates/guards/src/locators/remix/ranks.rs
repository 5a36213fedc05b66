//! How many entries each run has before each segment.
//! ```text
//! group of 64 segments    a whole number per run, and one for all runs
//! segment                 for each of these, how many more, in as few bits as the largest takes
//! ```
//! Invariant: segments are those of the anchors: the first is below all entries, and has none; one
//! after the last counts everything.

use trommel_filters::Trace;
use trommel_filters::bits::packed::{packed, read};

/// Segments of a group. More: fewer whole numbers, longer differences.
const GROUP_SEGMENTS: usize = 64;

/// Counts of each segment.
pub(super) struct Ranks {
    /// Of each group, a number for each run and one for all.
    wholes: Box<[u64]>,
    /// Of each segment, as many.
    steps: Box<[u8]>,
    step_bits: usize,
    columns: usize,
    /// Rows; the last one counts everything.
    rows: usize,
}

/// The bits that a segment takes, if it has no more than some dozen entries.
pub(super) fn rank_bits(slots: usize) -> f64 {
    const STEP_BITS: f64 = 13.0;
    (slots + 1) as f64 * (STEP_BITS + 64.0 / GROUP_SEGMENTS as f64)
}

impl Ranks {
    /// The entries of a run before a segment.
    #[inline(always)]
    pub(super) fn of(&self, segment: usize, slot: usize) -> u64 {
        // The segment below all has none, the one after it none before it.
        let row = segment.saturating_sub(1).min(self.rows - 1);
        let step = read(&self.steps, (row * self.columns + slot) * self.step_bits, self.step_bits);
        self.wholes[row / GROUP_SEGMENTS * self.columns + slot] + step
    }

    /// The entries of all runs before a segment.
    #[inline(always)]
    pub(super) fn total(&self, segment: usize) -> u64 {
        self.of(segment, self.columns - 1)
    }

    /// Tells `trace` what reading all of a segment's numbers reads.
    pub(super) fn touch<T: Trace>(&self, segment: usize, trace: &mut T) {
        let row = segment.saturating_sub(1).min(self.rows - 1);
        let whole = row / GROUP_SEGMENTS * self.columns;
        trace.touch(&raw const self.wholes[whole] as usize, self.columns * size_of::<u64>());
        let bits = self.columns * self.step_bits;
        trace.touch(&raw const self.steps[row * bits / 8] as usize, bits.div_ceil(8));
    }

    /// Tells `trace` what the number of a segment's entries reads.
    pub(super) fn touch_total<T: Trace>(&self, segment: usize, trace: &mut T) {
        for segment in [segment, segment + 1] {
            let row = segment.saturating_sub(1).min(self.rows - 1);
            let whole = (row / GROUP_SEGMENTS + 1) * self.columns - 1;
            trace.touch(&raw const self.wholes[whole] as usize, size_of::<u64>());
            let step = ((row + 1) * self.columns - 1) * self.step_bits / 8;
            trace.touch(&raw const self.steps[step] as usize, size_of::<u64>());
        }
    }

    /// The sizes of all allocations.
    pub(super) fn allocations(&self) -> [usize; 2] {
        [size_of_val(&*self.wholes), self.steps.len()]
    }
}

/// Counts entries segment by segment.
pub(super) struct RanksBuilder {
    counts: Vec<u64>,
    wholes: Vec<u64>,
    steps: Vec<u32>,
    most: u32,
}

impl RanksBuilder {
    pub(super) fn new(slots: usize) -> Self {
        RanksBuilder { counts: vec![0; slots + 1], wholes: Vec::new(), steps: Vec::new(), most: 0 }
    }

    /// What is counted from here on is in the next segment.
    pub(super) fn begin_segment(&mut self) {
        let columns = self.counts.len();
        let rows = self.steps.len() / columns;
        if rows.is_multiple_of(GROUP_SEGMENTS) {
            self.wholes.extend_from_slice(&self.counts);
        }
        let wholes = &self.wholes[self.wholes.len() - columns..];
        for (count, whole) in self.counts.iter().zip(wholes) {
            let step = u32::try_from(count - whole).expect("the entries of a group are in memory");
            self.most = self.most.max(step);
            self.steps.push(step);
        }
    }

    /// Counts an entry of a run.
    #[inline(always)]
    pub(super) fn count(&mut self, slot: usize) {
        self.counts[slot] += 1;
        let all = self.counts.len() - 1;
        self.counts[all] += 1;
    }

    pub(super) fn finish(mut self) -> Ranks {
        self.begin_segment();
        let step_bits = (u32::BITS - self.most.leading_zeros()) as usize;
        let columns = self.counts.len();
        Ranks {
            wholes: self.wholes.into_boxed_slice(),
            steps: packed(self.steps.iter().map(|&step| u64::from(step)), step_bits),
            step_bits,
            columns,
            rows: self.steps.len() / columns,
        }
    }
}
