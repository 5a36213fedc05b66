//! Learns a model from a sample of keys.
//! ```text
//! counts of each byte after each byte -> slots: bytes that occur, and stretches of others
//!                                     -> rows for the bytes that save most
//! ```
//! A row costs memory, which all keys pay for, so it must save more than it costs.
//!
//! Invariant: the sums ascend as a model requires.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::model::{CODE_BITS_MAX, SHARES, TextModel};
use super::sample::KeySample;
use crate::base::real::log2;

/// The smallest share of a slot, so that codes of atypical keys stay short.
const SHARE_LEAST: u32 = 16;
/// The weight of the overall distribution as a prior: as if so many bytes had followed each byte.
const PRIOR: f64 = 4.0;
/// Rows take at most this many bits per key, and this many in all.
const ROWS_BITS_PER_KEY: f64 = 0.25;
const ROWS_BITS_MAX: usize = 8 * (8 << 10);
/// A row number is one byte.
const ROWS_MAX: usize = 255;
/// Keys with more slots than this count as numbers, which stay as they are; text has fewer.
const SLOTS_OF_TEXT: usize = 192;
/// The longest prefix that codes leave out.
const PREFIX_MAX: usize = 64;

/// Symbols: the bytes, and the end of the key.
const END: usize = 256;
const SYMBOLS: usize = 257;

/// How often each symbol follows each byte, and begins a key (row [`END`]).
struct Counts(Vec<[u32; SYMBOLS]>);

impl Counts {
    fn of(sample: &KeySample, prefix: &[u8]) -> Counts {
        let mut counts = vec![[0; SYMBOLS]; SYMBOLS];
        for key in sample.keys().iter() {
            let mut before = END;
            for &byte in &key[prefix.len()..] {
                counts[before][usize::from(byte)] += 1;
                before = usize::from(byte);
            }
            counts[before][END] += 1;
        }
        Counts(counts)
    }

    /// The total count of each symbol.
    fn sums(&self) -> [u64; SYMBOLS] {
        let mut sums = [0; SYMBOLS];
        for counts in &self.0 {
            sums.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += u64::from(count));
        }
        sums
    }
}

/// Sums over the symbols of the end of key, then of each slot.
fn by_slot(of: impl Fn(usize) -> f64, firsts: &[u8]) -> Vec<f64> {
    let ends = firsts.iter().skip(1).map(|&first| usize::from(first)).chain([END]);
    let slots = firsts.iter().map(|&first| usize::from(first)).zip(ends);
    let sums = slots.map(|(first, end)| (first..end).map(&of).sum());
    core::iter::once(of(END)).chain(sums).collect()
}

/// Returns the first byte of each slot.
fn slots_of(occurs: impl Fn(usize) -> bool) -> Vec<u8> {
    let begins = |byte: &usize| *byte == 0 || occurs(*byte) || occurs(*byte - 1);
    (0..256).filter(begins).map(|byte| byte as u8).collect()
}

/// The sums of a row for symbols with these counts.
fn sums_of(counts: &[f64], least: &[u32]) -> Vec<u16> {
    let free = f64::from(SHARES - least.iter().sum::<u32>());
    let all: f64 = counts.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let (mut floor, mut before) = (0, 0.0);
    let sums = counts.iter().zip(least).map(|(count, least)| {
        (floor, before) = (floor + least, before + count);
        floor + (free * (before / all).min(1.0)) as u32
    });
    sums.map(|sum| sum as u16).collect()
}

/// The bits that shares `own` save over `others`, for symbols with these counts.
fn saved_bits(counts: &[f64], own: &[u16], others: &[u16]) -> f64 {
    let share = |sums: &[u16], at: usize| {
        f64::from(sums[at] - at.checked_sub(1).map_or(0, |before| sums[before]))
    };
    let counts = counts.iter().enumerate();
    counts.map(|(at, count)| count * log2(share(own, at) / share(others, at))).sum()
}

/// The common prefix of all keys of the sample, at most `PREFIX_MAX` bytes.
fn prefix_of(sample: &KeySample) -> Vec<u8> {
    let mut keys = sample.keys().iter();
    let mut prefix = keys.next().unwrap_or_default().to_vec();
    prefix.truncate(PREFIX_MAX);
    for key in keys {
        let shared = prefix.iter().zip(key).take_while(|(a, b)| a == b).count();
        prefix.truncate(shared);
    }
    prefix
}

impl KeySample {
    /// Whether the keys look like text: few distinct byte values after the common prefix.
    pub fn is_text(&self) -> bool {
        let (behind, mut occurs) = (prefix_of(self).len(), [false; END]);
        let bytes = self.keys().iter().flat_map(|key| &key[behind..]);
        bytes.for_each(|&byte| occurs[usize::from(byte)] = true);
        slots_of(|byte| occurs[byte]).len() <= SLOTS_OF_TEXT
    }
}

/// A row and what it saves.
struct Row {
    /// The byte that it follows, or [`END`] for the prefix.
    before: usize,
    sums: Vec<u16>,
    saved_bits: f64,
}

/// What all rows share.
struct Common {
    firsts: Vec<u8>,
    /// The smallest share of the end of key and of each slot.
    least: Vec<u32>,
    /// The frequency of each, whatever comes before; the sum is 1.
    shares: Vec<f64>,
    sums: Vec<u16>,
}

impl Common {
    fn of(counts: &Counts) -> Common {
        let all = counts.sums();
        let firsts = slots_of(|byte| all[byte] > 0);
        let widths = by_slot(|_| 1.0, &firsts);
        let least = widths.iter().map(|&width| SHARE_LEAST.max(width as u32));
        let least: Vec<u32> = least.collect();
        let shares = by_slot(|symbol| all[symbol] as f64, &firsts);
        let total: f64 = shares.iter().sum::<f64>().max(1.0);
        let shares: Vec<f64> = shares.iter().map(|share| share / total).collect();
        let sums = sums_of(&shares, &least);
        Common { firsts, least, shares, sums }
    }

    /// The row for what follows a byte. None: nothing does.
    fn row(&self, before: usize, counts: &[u32; SYMBOLS]) -> Option<Row> {
        let own = by_slot(|symbol| f64::from(counts[symbol]), &self.firsts);
        if own.iter().all(|count| *count == 0.0) {
            return None;
        }
        let smooth = own.iter().zip(&self.shares).map(|(own, share)| own + PRIOR * share);
        let sums = sums_of(&smooth.collect::<Vec<f64>>(), &self.least);
        let saved_bits = saved_bits(&own, &sums, &self.sums);
        Some(Row { before, sums, saved_bits })
    }
}

impl TextModel {
    /// Learns a model from a sample of about `keys` keys, without asking whether it pays.
    pub fn of(sample: &KeySample, keys: u64) -> TextModel {
        let prefix = prefix_of(sample);
        let counts = Counts::of(sample, &prefix);
        let common = Common::of(&counts);
        let rows = (0..).zip(&counts.0).filter_map(|(before, counts)| common.row(before, counts));
        let mut rows: Vec<Row> = rows.collect();
        rows.sort_by(|a, b| b.saved_bits.total_cmp(&a.saved_bits));
        let row_bits = u16::BITS as usize * common.sums.len();
        let sampled = sample.len().max(1) as f64 / keys as f64;
        rows.retain(|row| row.saved_bits / sampled > row_bits as f64);
        let room = ((keys as f64 * ROWS_BITS_PER_KEY) as usize).min(ROWS_BITS_MAX);
        rows.truncate((room / row_bits).clamp(1, ROWS_MAX) - 1);
        Self::with_rows(prefix, common, &rows)
    }

    fn with_rows(prefix: Vec<u8>, common: Common, rows: &[Row]) -> TextModel {
        let Common { firsts, mut sums, .. } = common;
        let slots = slot_of_each(&firsts);
        let (mut first_row, mut row_of) = (0, vec![0; firsts.len()]);
        for (number, row) in (1..).zip(rows) {
            sums.extend(&row.sums);
            match slots.get(row.before) {
                Some(&slot) => row_of[usize::from(slot)] = number,
                None => first_row = number,
            }
        }
        TextModel {
            code_bits: CODE_BITS_MAX,
            prefix: prefix.into(),
            slots,
            firsts: firsts.into(),
            row_of: row_of.into(),
            first_row,
            sums: sums.into_iter().map(u16::to_le_bytes).collect(),
        }
    }
}

/// Returns the slot of each byte.
pub(super) fn slot_of_each(firsts: &[u8]) -> Box<[u8; 256]> {
    let mut slots = Box::new([0; 256]);
    for (slot, &first) in firsts.iter().enumerate() {
        slots[usize::from(first)..].fill(slot as u8);
    }
    slots
}
