//! The length of Chucky's codes of level ids, and how well they fill buckets. These are the data of
//! the paper's Figures 5, 6, 8, 9 and 12.
//! ```text
//! figure 5    by levels          bits of an id: whole numbers, Huffman, its bound, entropy
//! figure 6    by size ratio      bits of an id: Huffman of one, two and three in a row, entropy
//! figure 8    by ids in a group  bits of an id: Huffman of lists, of combinations; both entropies
//! figure 9    by overflow        bits of a fingerprint, three ways to fill a bucket
//! figure 12   by levels          bytes of the tables beside the filter
//! ```
//! The trees use lazy leveling: T - 1 runs in each inner level, one in the last. Invariant:
//! everything is computed and nothing measured, so a plan gives the same numbers on every machine.

use serde::Serialize;
use trommel_filters::TreePlan;
use trommel_guards::{Alignment, ChuckyTables, LevelModel};

use crate::error::{LabError, Result};

/// The trees to compute codes for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChuckyCodesPlan {
    /// T, 2 to 16. Figure 6 covers all of them.
    pub size_ratio: u32,
    /// L, the levels of Figures 6 and 8, 1 to 8; at most 40 runs.
    pub levels: u32,
    /// L, the levels of Figure 9, 1 to 12; at most 40 runs.
    pub bucket_levels: u32,
    /// M of Figure 9, the bits of a bucket's entry, 6 to 30.
    pub bits_per_key: f64,
}

impl Default for ChuckyCodesPlan {
    /// Returns the trees of the paper: three levels in its examples, six in its measurements.
    fn default() -> Self {
        ChuckyCodesPlan { size_ratio: 5, levels: 3, bucket_levels: 6, bits_per_key: 10.0 }
    }
}

const RATIOS: std::ops::RangeInclusive<u32> = 2..=16;
const FIGURE_5_LEVELS: u32 = 10;
const FIGURE_12_LEVELS: u32 = 10;
const GROUP_MAX: usize = 6;
const FIGURE_6_GROUPS: [usize; 3] = [1, 2, 3];
const BUCKET_SLOTS: u32 = 4;
const SLOTS_MAX: usize = 40;
/// The most lists for which a code is computed.
const LISTS_MAX: f64 = 1e6;
const FINGERPRINT_BITS_MIN: u32 = 5;
/// The shares of buckets that should fit.
const FITTING: [f64; 7] = [0.5, 0.8, 0.9, 0.99, 0.999, 0.9999, 0.99999];

/// The data of the figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChuckyCodesReport {
    /// T, the size ratio of Figures 5, 8 and 9.
    pub size_ratio: u32,
    /// Bits of level ids, by levels.
    pub figure_5: Vec<LevelsRow>,
    /// Bits of level ids, by size ratio.
    pub figure_6: Vec<RatioRow>,
    /// Bits of level ids, by how many are coded together.
    pub figure_8: Vec<GroupRow>,
    /// Lengths of fingerprints, by the way buckets are filled.
    pub figure_9: Vec<AlignmentRow>,
    /// The bits that the entropy of combinations leaves for a fingerprint of Figure 9.
    pub figure_9_bound: f64,
    /// Sizes of the tables, by levels.
    pub figure_12: Vec<TablesRow>,
}

/// The sizes of the tables beside the filter, in a tree of `levels` levels. They are those of this
/// implementation, not of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TablesRow {
    /// L, the levels.
    pub levels: u32,
    /// Combinations that have a Huffman code.
    pub frequent_combinations: u64,
    /// Bytes of the Huffman codes.
    pub huffman_bytes: u64,
    /// Bytes of the decoding table.
    pub decoding_bytes: u64,
    /// Bytes of the recoding table.
    pub recoding_bytes: u64,
}

/// Bits of a level id in a tree of `levels` levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LevelsRow {
    /// L, the levels.
    pub levels: u32,
    /// A, the runs.
    pub runs: u64,
    /// Bits of a whole number.
    pub integer_bits: u32,
    /// The mean length of Huffman codes.
    pub huffman_bits: f64,
    /// The upper bound of the mean (Equation 11), for infinitely many levels.
    pub bound_bits: f64,
    /// The entropy (the sum of Equation 9).
    pub entropy_bits: f64,
}

/// Bits of a level id in a tree of this size ratio.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatioRow {
    /// T, the size ratio.
    pub size_ratio: u32,
    /// The mean length of Huffman codes for lists of one, two and three ids. Null: there are too
    /// many lists.
    pub huffman_bits: Vec<Option<f64>>,
    /// The entropy.
    pub entropy_bits: f64,
}

/// Bits of a level id if `group` ids are coded together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GroupRow {
    /// S, the ids of a group.
    pub group: usize,
    /// The mean length of Huffman codes for lists. Null: there are too many lists.
    pub permutation_bits: Option<f64>,
    /// The mean length of Huffman codes for combinations.
    pub combination_bits: f64,
    /// The entropy of a list.
    pub entropy_bits: f64,
    /// The entropy of a combination (Equation 13).
    pub combination_entropy_bits: f64,
}

/// The fingerprints that one way of filling buckets leaves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AlignmentRow {
    /// "uniform", "malleable" or "fluid".
    pub way: &'static str,
    /// The share of buckets that should fit; null: the lengths were given.
    pub fitting: Option<f64>,
    /// The share of buckets that overflow.
    pub overflow_share: f64,
    /// The mean length of a fingerprint.
    pub mean_print_bits: f64,
    /// The lengths by level, newest level first.
    pub print_bits: Vec<u32>,
}

/// Computes the data.
pub fn chucky_codes(plan: &ChuckyCodesPlan) -> Result<ChuckyCodesReport> {
    check(plan)?;
    let bits = (plan.bits_per_key * f64::from(BUCKET_SLOTS)).floor() as u32;
    let bucket_model = lazy(plan.size_ratio, plan.bucket_levels);
    Ok(ChuckyCodesReport {
        size_ratio: plan.size_ratio,
        figure_5: (1..=FIGURE_5_LEVELS).map(|levels| figure_5(plan.size_ratio, levels)).collect(),
        figure_6: RATIOS.map(|size_ratio| figure_6(size_ratio, plan.levels)).collect(),
        figure_8: (1..=GROUP_MAX).map(|group| figure_8(plan, group)).collect(),
        figure_9: figure_9(&bucket_model, bits),
        figure_9_bound: Alignment::bound(&bucket_model, bits),
        figure_12: (1..=FIGURE_12_LEVELS)
            .filter(|&levels| lazy(plan.size_ratio, levels).slots() <= SLOTS_MAX)
            .map(|levels| figure_12(plan, levels))
            .collect(),
    })
}

fn lazy(size_ratio: u32, levels: u32) -> LevelModel {
    LevelModel { size_ratio, levels, runs: size_ratio - 1, last_runs: 1 }
}

fn check(plan: &ChuckyCodesPlan) -> Result<()> {
    let wrong = |what: String| Err(LabError::Plan(what));
    if !RATIOS.contains(&plan.size_ratio) {
        return wrong(format!("a size ratio of {}; there are 2 to 16", plan.size_ratio));
    }
    for (levels, most) in [(plan.levels, 8), (plan.bucket_levels, 12)] {
        if !(1..=most).contains(&levels) {
            return wrong(format!("{levels} levels; there are 1 to {most}"));
        }
        let runs = lazy(plan.size_ratio, levels).slots();
        if runs > SLOTS_MAX {
            return wrong(format!("{levels} levels have {runs} runs; at most {SLOTS_MAX}, please"));
        }
    }
    if !(6.0..=30.0).contains(&plan.bits_per_key) {
        return wrong(format!("{} bits per key; there are 6 to 30", plan.bits_per_key));
    }
    Ok(())
}

fn figure_5(size_ratio: u32, levels: u32) -> LevelsRow {
    let model = lazy(size_ratio, levels);
    let runs = model.slots();
    LevelsRow {
        levels,
        runs: runs as u64,
        integer_bits: usize::BITS - (runs - 1).leading_zeros(),
        huffman_bits: model.code_length(),
        bound_bits: model.code_length_bound(),
        entropy_bits: model.entropy(),
    }
}

/// None: there are too many lists.
fn permutation_bits(model: &LevelModel, group: usize) -> Option<f64> {
    let lists = (model.slots() as f64).powi(group as i32);
    (lists <= LISTS_MAX).then(|| model.permutation_code_length(group))
}

fn figure_6(size_ratio: u32, levels: u32) -> RatioRow {
    let model = lazy(size_ratio, levels);
    RatioRow {
        size_ratio,
        huffman_bits: FIGURE_6_GROUPS.map(|group| permutation_bits(&model, group)).to_vec(),
        entropy_bits: model.entropy(),
    }
}

fn figure_8(plan: &ChuckyCodesPlan, group: usize) -> GroupRow {
    let model = lazy(plan.size_ratio, plan.levels);
    GroupRow {
        group,
        permutation_bits: permutation_bits(&model, group),
        combination_bits: model.combination_code_length(group),
        entropy_bits: model.entropy(),
        combination_entropy_bits: model.combination_entropy(group),
    }
}

fn figure_9(model: &LevelModel, bucket_bits: u32) -> Vec<AlignmentRow> {
    let row = |way, fitting, alignment: Alignment| AlignmentRow {
        way,
        fitting,
        overflow_share: alignment.overflow_share,
        mean_print_bits: alignment.mean_fingerprint_bits,
        print_bits: alignment.fingerprint_bits,
    };
    let lengths = FINGERPRINT_BITS_MIN..=bucket_bits / BUCKET_SLOTS;
    let uniform =
        lengths.map(|bits| row("uniform", None, Alignment::uniform(model, bucket_bits, bits)));
    let malleable = FITTING.into_iter().filter_map(|share| {
        Some(row("malleable", Some(share), Alignment::malleable(model, bucket_bits, share)?))
    });
    let fluid = FITTING.into_iter().filter_map(|share| {
        Some(row("fluid", Some(share), Alignment::fluid(model, bucket_bits, share)?))
    });
    uniform.chain(malleable).chain(fluid).collect()
}

fn figure_12(plan: &ChuckyCodesPlan, levels: u32) -> TablesRow {
    let runs = lazy(plan.size_ratio, levels).runs_of_levels();
    let tables = ChuckyTables::of(&TreePlan {
        runs_of_levels: runs.iter().map(|&runs| runs as u8).collect(),
        waiting_runs: 0,
        size_ratio: plan.size_ratio,
        entries: 1_000_000_000,
        bits_per_key: plan.bits_per_key,
    });
    TablesRow {
        levels,
        frequent_combinations: tables.frequent_combinations as u64,
        huffman_bytes: tables.huffman_bytes as u64,
        decoding_bytes: tables.decoding_bytes as u64,
        recoding_bytes: tables.recoding_bytes as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_say_what_the_paper_says() {
        let report = chucky_codes(&ChuckyCodesPlan::default()).expect("the paper's trees");
        // Figure 5: Huffman codes converge, whole numbers grow.
        let [three, six, ten] = [2, 5, 9].map(|nth| report.figure_5[nth]);
        assert!((1.52..1.53).contains(&three.huffman_bits) && three.integer_bits == 4);
        assert!((ten.huffman_bits - six.huffman_bits).abs() < 0.01 && ten.integer_bits == 6);
        for row in &report.figure_5[1..] {
            assert!(row.entropy_bits <= row.huffman_bits && row.huffman_bits <= row.bound_bits);
        }
        // Figure 6: a code of one id takes at least a bit; the entropy of large ratios is below
        // that.
        let largest = report.figure_6.last().expect("there are ratios");
        let [one, two, three] = [0, 1, 2].map(|nth| largest.huffman_bits[nth].expect("few lists"));
        assert!(one >= 1.0 && one > two && two > three && three > largest.entropy_bits);
        assert!(largest.entropy_bits < 1.0);
        // Figure 8: combinations take fewer bits than lists, and ever fewer in larger groups.
        for pair in report.figure_8.windows(2) {
            assert!(pair[1].combination_entropy_bits < pair[0].combination_entropy_bits);
            let lists = pair[1].permutation_bits.expect("few lists");
            assert!(pair[1].combination_bits < lists && lists >= pair[1].entropy_bits);
        }
        // Figure 9: fluid codes have the longest fingerprints for their overflow.
        let of = |way: &'static str| report.figure_9.iter().filter(move |row| row.way == way);
        let longest = |way: &'static str| {
            let rows = of(way).filter(|row| row.overflow_share < 0.02);
            rows.map(|row| row.mean_print_bits).fold(0.0, f64::max)
        };
        let [uniform, malleable, fluid] = ["uniform", "malleable", "fluid"].map(longest);
        assert!(uniform > 5.0 && malleable > 5.0, "{uniform} {malleable}");
        assert!(fluid > uniform + 1.0 && fluid > malleable + 1.0, "{uniform} {malleable} {fluid}");
        assert!(fluid < report.figure_9_bound, "{fluid}");
        assert!(of("fluid").any(|row| row.overflow_share < 1.001e-4 && row.mean_print_bits > 8.5));
        // Figure 12: the Huffman codes converge, the tables grow slowly and stay small.
        let [six, ten] = [5, 9].map(|nth| report.figure_12[nth]);
        let growth = |of: fn(&TablesRow) -> u64| of(&ten) as f64 / of(&six) as f64;
        assert_eq!((six.levels, ten.levels), (6, 10));
        assert!(
            growth(|row| row.huffman_bytes) < growth(|row| row.decoding_bytes),
            "{six:?} {ten:?}"
        );
        assert!(report.figure_12.iter().all(|row| row.decoding_bytes < 1 << 20), "{ten:?}");
    }

    #[test]
    fn plans_that_cannot_be_computed_are_refused() {
        let plan = ChuckyCodesPlan::default();
        for wrong in [
            ChuckyCodesPlan { size_ratio: 1, ..plan },
            ChuckyCodesPlan { size_ratio: 17, ..plan },
            ChuckyCodesPlan { levels: 0, ..plan },
            ChuckyCodesPlan { size_ratio: 16, levels: 4, ..plan },
            ChuckyCodesPlan { bucket_levels: 13, ..plan },
            ChuckyCodesPlan { bits_per_key: 5.9, ..plan },
            ChuckyCodesPlan { bits_per_key: f64::NAN, ..plan },
        ] {
            assert!(matches!(chucky_codes(&wrong), Err(LabError::Plan(_))), "{wrong:?}");
        }
    }
}
