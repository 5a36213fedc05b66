//! Figures 1 to 3 of the paper (SIGMOD 2018), bit by bit.
//! ```text
//! Figure 1   an ordinal tree in LOUDS, and how to walk through it
//! Figure 2   eleven keys in LOUDS-DS, two levels of it dense
//! Figure 3   rank with blocks of five bits, select with every third one
//! ```
//! The paper counts set bits from one: its `rank(i)` includes bit i, its `select(i)` is the i-th
//! one. Invariant: the expected values are the paper's, and the code under test reproduces them.

use crate::base::filter::{TableFilter, TableFilterBuilder, Untraced};
use crate::bits::rank_select::{
    Bits, Ranked, Selected, ranks_len, samples_len, write_ranks, write_samples,
};
use crate::range::surf::encode::encode_at;
use crate::range::surf::layout::{FANOUT, Section};
use crate::range::surf::suffix::SurfKind;
use crate::range::surf::trie::{FULL, Trie};
use crate::range::surf::{Surf, SurfBuilder, SurfOptions};

/// A bit vector with its tables, in the paper's counting.
struct PaperBits {
    bytes: Vec<u8>,
    ranks: Vec<u8>,
    samples: Vec<u8>,
}

impl PaperBits {
    fn new(bits: &[bool]) -> Self {
        let mut bytes = vec![0; bits.len().div_ceil(64) * 8];
        let ones = bits.iter().enumerate().filter(|(_, bit)| **bit);
        ones.for_each(|(at, _)| bytes[at / 8] |= 1 << (at % 8));
        let ones = bits.iter().filter(|bit| **bit).count();
        let mut ranks = vec![0; 4 * ranks_len(bits.len(), 64)];
        let mut samples = vec![0; 4 * samples_len(ones)];
        write_ranks(&bytes, 64, &mut ranks);
        write_samples(&bytes, &mut samples);
        PaperBits { bytes, ranks, samples }
    }

    fn rank(&self, at: usize) -> usize {
        Ranked::new(&self.bytes, &self.ranks).rank_in_word(at + 1)
    }

    fn select(&self, nth: usize) -> usize {
        let selected = Selected::new(Bits::new(&self.bytes), &self.samples);
        selected.select::<1>(nth - 1, 9).expect("so many ones")
    }
}

fn bits(text: &str) -> Vec<bool> {
    text.chars().filter(|bit| *bit != ' ').map(|bit| bit == '1').collect()
}

#[test]
fn figure_1_louds() {
    let louds = bits("110 10 110 1110 110 110 0 10 0 0 0 10 0 0 0");
    let ones = PaperBits::new(&louds);
    let zeros = PaperBits::new(&louds.iter().map(|bit| !bit).collect::<Vec<_>>());
    let children: [&[usize]; 15] = [
        &[1, 2],
        &[3],
        &[4, 5],
        &[6, 7, 8],
        &[9, 10],
        &[11, 12],
        &[],
        &[13],
        &[],
        &[],
        &[],
        &[14],
        &[],
        &[],
        &[],
    ];
    let position = |node: usize| if node == 0 { 0 } else { zeros.select(node) + 1 };
    assert_eq!(louds[position(3)..][..4], bits("1110"), "node 3 has three children");
    for (node, children) in children.iter().enumerate() {
        let from = position(node);
        assert_eq!(louds[from..].iter().take_while(|bit| **bit).count(), children.len());
        for (k, &child) in children.iter().enumerate() {
            // The paper prints select0(rank0(p + k)) + 1, which leads from a node to itself.
            // Counting ones gives the children.
            assert_eq!(zeros.select(ones.rank(from + k)) + 1, position(child));
            let up = ones.select(zeros.rank(position(child) - 1));
            assert_eq!(up, from + k, "the parent's bit");
        }
    }
}

const KEYS: [&str; 11] =
    ["f", "far", "fas", "fast", "fat", "s", "top", "toy", "trie", "trip", "try"];

/// The figure's trie: levels 0 and 1 dense.
fn figure_2() -> Surf<Vec<u8>> {
    let mut builder = SurfBuilder::new(SurfKind::Base, 0.0, &SurfOptions::default());
    KEYS.iter().for_each(|key| builder.add(key.as_bytes()).expect("in order"));
    let (shape, levels) = builder.into_levels();
    Surf::read(encode_at(&shape, levels, 2)).expect("whole")
}

fn text_of(bits: Bits<'_>, len: usize) -> String {
    (0..len).map(|at| if bits.get(at) { '1' } else { '0' }).collect()
}

fn labels_of(bits: Bits<'_>, node: usize) -> String {
    let labels = (0..FANOUT).filter(|label| bits.get(node * FANOUT + label));
    labels.map(|label| label as u8 as char).collect()
}

#[test]
fn figure_2_louds_ds() {
    let surf = figure_2();
    let trie: Trie<'_, Untraced, FULL> = surf.trie(Untraced);
    let dense = |section| [0, 1, 2].map(|node| labels_of(trie.bits(section), node));
    assert_eq!(dense(Section::DenseLabels), ["fst", "a", "or"]);
    assert_eq!(dense(Section::DenseHasChild), ["ft", "a", "or"]);
    assert_eq!(text_of(trie.bits(Section::DensePrefix), 3), "010");
    assert_eq!(trie.section(Section::SparseLabels), b"rstpyiy\xfftep");
    assert_eq!(text_of(trie.bits(Section::SparseHasChild), 11), "01000100000");
    assert_eq!(text_of(trie.bits(Section::SparseLouds), 11), "10010101010");
    assert_eq!((surf.edges(), surf.levels()), (18, (4, 2)));
}

#[test]
fn figure_2_walks() {
    let surf = figure_2();
    let trie = || surf.trie::<_, FULL>(Untraced);
    let find = |level, node, label| trie().at_least(level, node, label).expect("a label").slot;
    // The values are in level order: s, f; then far, fat, top, toy, try; then fas, fast, trie,
    // trip.
    let root = trie().root().expect("keys");
    let f = trie().child(0, find(0, root, b'f')).expect("a node");
    let fa = trie().child(1, find(1, f, b'a')).expect("a node");
    let fas = trie().child(2, find(2, fa, b's')).expect("a node");
    assert_eq!(trie().dense_leaves_before(find(0, root, b's')), 0);
    assert_eq!((trie().first(1, f), trie().label(1, f)), (Some(f), None));
    assert_eq!(trie().dense_leaves_before(f), 1);
    let leaves = [b'r', b't'].map(|label| trie().sparse_leaf(find(2, fa, label)));
    assert_eq!(leaves, [2, 3]);
    assert_eq!((trie().label(3, fas), trie().sparse_leaf(fas)), (None, 7));
    assert_eq!(trie().sparse_leaf(find(3, fas, b't')), 8);
    for key in KEYS {
        assert!(surf.may_contain(key.as_bytes()), "{key}");
    }
    for key in ["", "fa", "fb", "t", "to", "tr", "tri", "u", "e", "fas\u{ff}"] {
        assert!(!surf.may_contain(key.as_bytes()), "{key}");
    }
}

#[test]
fn figure_3_rank_and_select() {
    // The text fixes seven ones in the first two blocks of five. It also fixes the sixth one at 8,
    // the eighth at 10, and nine ones up to 12.
    let vector = bits("11011 01011 101");
    let plain = |at: usize| vector[..=at].iter().filter(|bit| **bit).count();
    let rank_table: Vec<usize> =
        (0..3).map(|block| if block == 0 { 0 } else { plain(block * 5 - 1) }).collect();
    assert_eq!(rank_table[2], 7);
    let place = |nth| (0..vector.len()).find(|&at| plain(at) == nth).expect("so many ones");
    assert_eq!(place(6), 8);
    let ours = PaperBits::new(&vector);
    let by_table =
        |at: usize| rank_table[at / 5] + (at / 5 * 5..=at).filter(|&at| vector[at]).count();
    assert_eq!((by_table(12), ours.rank(12)), (9, 9));
    let after_sample = (place(6) + 1..).filter(|&at| vector[at]).nth(1);
    assert_eq!((after_sample, ours.select(8)), (Some(10), 10));
    for at in 0..vector.len() {
        assert_eq!((by_table(at), plain(at)), (ours.rank(at), ours.rank(at)));
    }
    (1..=9).for_each(|nth| assert_eq!(ours.select(nth), place(nth)));
}
