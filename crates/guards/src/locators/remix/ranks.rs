//! The number of entries of each run before each segment.
//! ```text
//! group of 64 segments    a full count per run, and one for all runs
//! segment                 differences to these, in as few bits as the largest needs
//! ```
//! Invariant: segments are those of the anchors. The first is below all entries and has none; the
//! one after the last counts all entries.

use trommel_filters::Trace;
use trommel_filters::bits::packed::{packed, read};

/// Segments per group. More: fewer full counts, longer differences.
const GROUP_SEGMENTS: usize = 64;

/// The counts of each segment.
pub(super) struct Ranks {
    /// For each group, a count per run and one for all runs.
    wholes: Box<[u64]>,
    /// For each segment, as many differences.
    steps: Box<[u8]>,
    step_bits: usize,
    columns: usize,
    /// The number of rows; the last one counts all entries.
    rows: usize,
}

/// Bits per segment, if it has at most some dozen entries.
pub(super) fn rank_bits(slots: usize) -> f64 {
    const STEP_BITS: f64 = 13.0;
    (slots + 1) as f64 * (STEP_BITS + 64.0 / GROUP_SEGMENTS as f64)
}

impl Ranks {
    /// The number of a run's entries before a segment.
    #[inline(always)]
    pub(super) fn of(&self, segment: usize, slot: usize) -> u64 {
        // The lowest segment has no entries, so there are none before the next one either.
        let row = segment.saturating_sub(1).min(self.rows - 1);
        let step = read(&self.steps, (row * self.columns + slot) * self.step_bits, self.step_bits);
        self.wholes[row / GROUP_SEGMENTS * self.columns + slot] + step
    }

    /// The number of all runs' entries before a segment.
    #[inline(always)]
    pub(super) fn total(&self, segment: usize) -> u64 {
        self.of(segment, self.columns - 1)
    }

    /// Reports to `trace` what reading all counts of a segment reads.
    pub(super) fn touch<T: Trace>(&self, segment: usize, trace: &mut T) {
        let row = segment.saturating_sub(1).min(self.rows - 1);
        let whole = row / GROUP_SEGMENTS * self.columns;
        trace.touch(&raw const self.wholes[whole] as usize, self.columns * size_of::<u64>());
        let bits = self.columns * self.step_bits;
        trace.touch(&raw const self.steps[row * bits / 8] as usize, bits.div_ceil(8));
    }

    /// Reports to `trace` what reading the number of a segment's entries reads.
    pub(super) fn touch_total<T: Trace>(&self, segment: usize, trace: &mut T) {
        for segment in [segment, segment + 1] {
            let row = segment.saturating_sub(1).min(self.rows - 1);
            let whole = (row / GROUP_SEGMENTS + 1) * self.columns - 1;
            trace.touch(&raw const self.wholes[whole] as usize, size_of::<u64>());
            let step = ((row + 1) * self.columns - 1) * self.step_bits / 8;
            trace.touch(&raw const self.steps[step] as usize, size_of::<u64>());
        }
    }

    /// Returns the size of each allocation, in bytes.
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

    /// Begins the next segment.
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
