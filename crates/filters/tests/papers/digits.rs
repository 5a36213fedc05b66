//! Shape encodings as the GRF paper has them (section 4.2): positions of a key in every level, and
//! the rule that finds the one that counts.
//! ```text
//! positions        1 2 1 1      level 0 first; the last level's is 1 for every key
//! key    KSE       1 2 1 1  the runs of each level when the key is flushed: where it will be there
//! version VSE      3 3 1 1      the runs of each level of the version
//!                      ~~~      m = 2: the longest common suffix
//! place              2          in level L - m - 1 = 1, as run KSE[1] = 2, counted from the oldest
//! ```
//! Invariant: KSE and VSE are the flush number in this round, written in base T; the digit of the
//! last inner level has no bound.

/// The levels of a tree, the last one included, and the runs that make a merge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    pub(crate) size_ratio: u64,
    pub(crate) levels: usize,
}

/// Where a key is: a run, counted from the oldest of its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) level: usize,
    pub(crate) run: u64,
}

impl Tree {
    /// The shape after so many flushes of a round: what a key has that is flushed then, and what a
    /// version has.
    pub(crate) fn encoding(&self, flushes: u64) -> Vec<u64> {
        let mut rest = flushes;
        let mut positions = Vec::new();
        for _ in 0..self.levels - 2 {
            positions.push(rest % self.size_ratio);
            rest /= self.size_ratio;
        }
        positions.extend([rest, 1]);
        positions
    }
}

/// "1211" for [1, 2, 1, 1].
pub(crate) fn positions(text: &str) -> Vec<u64> {
    text.bytes().map(|digit| u64::from(digit - b'0')).collect()
}

/// The paper's m. A key's encoding may have lost positions in front.
pub(crate) fn common_suffix(kse: &[u64], vse: &[u64]) -> usize {
    kse.iter().rev().zip(vse.iter().rev()).take_while(|(key, version)| key == version).count()
}

/// Where a version has the key. None: nowhere yet, as the key was flushed at this shape. Requires:
/// not a key that was flushed later.
pub(crate) fn place(kse: &[u64], vse: &[u64]) -> Option<Place> {
    // The single indicator that every key of the last level has.
    if kse.len() == 1 {
        return Some(Place { level: vse.len() - 1, run: 0 });
    }
    let m = common_suffix(kse, vse);
    let at = kse.len().checked_sub(m + 1)?;
    Some(Place { level: vse.len() - m - 1, run: kse[at] })
}

/// Section 4.2, garbage collection: the last m + 1 positions, m by the oldest version in use.
/// Requires: as for [`place`].
pub(crate) fn collected<'a>(kse: &'a [u64], oldest_vse: &[u64]) -> &'a [u64] {
    let kept = (common_suffix(kse, oldest_vse) + 1).min(kse.len());
    &kse[kse.len() - kept..]
}

/// Section 4.2: an encoding is larger that has more runs in larger levels. Requires: both whole.
pub(crate) fn is_larger(one: &[u64], other: &[u64]) -> bool {
    one.iter().rev().gt(other.iter().rev())
}

/// Section 5, generalization 1: as [`place`], in a version that `waiting` runs were flushed into
/// since the merge began that its shape does not show yet; larger keys are in these.
pub(crate) fn place_beside_a_merge(
    tree: Tree,
    flush: u64,
    merged: u64,
    waiting: u64,
) -> Option<Place> {
    let (kse, vse) = (tree.encoding(flush), tree.encoding(merged));
    if kse == vse || is_larger(&kse, &vse) {
        let since = flush - merged;
        return (since < waiting).then_some(Place { level: 0, run: vse[0] + since });
    }
    place(&kse, &vse)
}

/// Counted from the newest of all runs, as `RunIndex` does.
pub(crate) fn run_index(place: Place, vse: &[u64]) -> usize {
    let newer: u64 = vse[..place.level].iter().sum();
    (newer + vse[place.level] - 1 - place.run) as usize
}

// GRF, Figure 8: 1211 is the shape when k is flushed; after that there are two runs in level 0, and
// k is run 1.
#[test]
fn figure_8_k_is_run_1_of_level_0_once_it_is_flushed() {
    let k = positions("1211");
    assert_eq!(common_suffix(&k, &positions("1211")), 4);
    assert_eq!(place(&k, &positions("1211")), None, "all levels as before the flush");
    assert_eq!(common_suffix(&k, &positions("2211")), 3);
    assert_eq!(place(&k, &positions("2211")), Some(Place { level: 0, run: 1 }));
}

// GRF, Figure 8, and the example in section 4.2: version 2 is 3311, m = 2, so k is in level 1 as
// run 2.
#[test]
fn figure_8_k_is_run_2_of_level_1_in_3311() {
    let (k, version) = (positions("1211"), positions("3311"));
    assert_eq!(common_suffix(&k, &version), 2);
    assert_eq!(place(&k, &version), Some(Place { level: 1, run: 2 }));
}

// GRF, section 4.2, garbage collection: with version 2 the oldest, 1211 becomes 211; the answer
// stays.
#[test]
fn section_4_2_garbage_collection_makes_211_of_1211() {
    let (k, oldest) = (positions("1211"), positions("3311"));
    let kept = collected(&k, &oldest);
    assert_eq!(kept, positions("211"));
    for version in ["3311", "0021", "1021", "0321"].map(positions) {
        assert_eq!(place(kept, &version), place(&k, &version), "{version:?}");
    }
    assert_eq!(place(kept, &positions("0321")), Some(Place { level: 2, run: 1 }));
}

// GRF, section 4.2: after a merge into the last level every key has the one indicator, and is
// there.
#[test]
fn section_4_2_keys_of_the_last_level_have_a_single_bit() {
    for version in ["0001", "1211", "3331"].map(positions) {
        assert_eq!(place(&[1], &version), Some(Place { level: 3, run: 0 }));
    }
}

#[test] // GRF, section 4.2: "1211 is larger than 3301".
fn section_4_2_larger_levels_decide() {
    assert!(is_larger(&positions("1211"), &positions("3301")));
    assert!(!is_larger(&positions("3301"), &positions("1211")));
    assert!(!is_larger(&positions("1211"), &positions("1211")));
}

// GRF, section 5, generalization 1: while 3311 is merged, keys flushed as x021 are run T + x of
// level 0.
#[test]
fn generalization_1_keys_that_are_flushed_beside_a_merge() {
    let tree = Tree { size_ratio: 4, levels: 4 };
    let merged = 3 + 4 * 3 + 16; // 3311, counted from the round's origin
    assert_eq!(tree.encoding(merged), positions("3311"));
    for x in 0..3 {
        let flush = merged + 1 + x;
        assert_eq!(tree.encoding(flush)[1..], positions("021"));
        let found = place_beside_a_merge(tree, flush, merged, 1 + x + 1);
        assert_eq!(found, Some(Place { level: 0, run: 4 + x }));
    }
}
