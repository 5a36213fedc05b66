//! The prefix levels of a filter, and the division of memory among them.
//! ```text
//! 12+21+all     first 12 bytes, first 21 bytes, whole keys
//! sep:/+all     everything up to the first slash, whole keys
//! ```
//! Invariant: equal levels have equal texts, which read back as these levels.

use std::fmt;
use std::str::FromStr;

use trommel_filters::Tuning;

use crate::range::base::prefix_rule::PrefixRule;

/// The maximum number of levels: with more, each would have too little memory.
pub(super) const LEVELS_MAX: usize = 8;
/// The bits per item that a level gets above the next level. Every run is probed for an absent
/// prefix, but only the runs with a present prefix for what follows it.
const BITS_ABOVE_NEXT: f64 = 1.0;
/// Fewer columns refute too little for their price.
const COLUMNS_MIN: f64 = 1.0;
/// The encoding of whole keys in files, next to those of rules.
const WHOLE_KEY: [u8; 2] = [2, 0];

/// A part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixLevel {
    /// The prefix, by a rule.
    Prefix(PrefixRule),
    /// The whole key.
    WholeKey,
}

impl PrefixLevel {
    /// Returns this part of a key. None: the key has no such prefix.
    pub fn of<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            PrefixLevel::Prefix(rule) => rule.prefix_of(key),
            PrefixLevel::WholeKey => Some(key),
        }
    }

    /// Whether `start` is the prefix of each key that begins with it.
    pub(super) fn is_prefix(&self, start: &[u8]) -> bool {
        match self {
            PrefixLevel::Prefix(rule) => rule.prefix_of(start) == Some(start),
            PrefixLevel::WholeKey => false,
        }
    }

    /// Whether keys that begin with `start` may have a longer prefix.
    pub(super) fn goes_beyond(&self, start: &[u8]) -> bool {
        match self {
            PrefixLevel::Prefix(rule) => rule.prefix_of(start).is_none(),
            PrefixLevel::WholeKey => false,
        }
    }

    fn write_text(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Levels are separated by `+`.
            PrefixLevel::Prefix(PrefixRule::Separator(b'+')) => out.write_str("sep:0x2b"),
            PrefixLevel::Prefix(rule) => write!(out, "{rule}"),
            PrefixLevel::WholeKey => out.write_str("all"),
        }
    }

    pub(super) fn encode(self) -> [u8; 2] {
        match self {
            PrefixLevel::Prefix(rule) => rule.encode(),
            PrefixLevel::WholeKey => WHOLE_KEY,
        }
    }

    /// Decodes a level. None: the bytes encode no level.
    pub(super) fn decode(encoded: [u8; 2]) -> Option<Self> {
        match encoded {
            WHOLE_KEY => Some(PrefixLevel::WholeKey),
            rule => PrefixRule::decode(rule).map(PrefixLevel::Prefix),
        }
    }
}

/// The parts of keys that have a filter each, shortest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixLevels(Vec<PrefixLevel>);

impl PrefixLevels {
    /// The given levels. None: there are none or more than 8, one occurs twice, fixed lengths do
    /// not ascend, or whole keys are not last.
    pub fn new(levels: Vec<PrefixLevel>) -> Option<PrefixLevels> {
        let lens = levels.iter().filter_map(|level| match level {
            PrefixLevel::Prefix(PrefixRule::Fixed(len)) => Some(*len),
            _ => None,
        });
        let do_lens_grow = [0].into_iter().chain(lens).is_sorted_by(|one, next| one < next);
        let is_new = |nth: usize| !levels[..nth].contains(&levels[nth]);
        let is_each_new = (0..levels.len()).all(is_new);
        let is_whole_last = !levels.iter().rev().skip(1).any(|it| *it == PrefixLevel::WholeKey);
        let is_few = (1..=LEVELS_MAX).contains(&levels.len());
        let is_right = do_lens_grow && is_each_new && is_whole_last && is_few;
        is_right.then_some(PrefixLevels(levels))
    }

    /// Returns all levels, shortest first.
    pub fn as_slice(&self) -> &[PrefixLevel] {
        &self.0
    }
}

impl Default for PrefixLevels {
    /// Whole keys, and six bytes: for eight-byte numbers, this suits ranges that do not cross a
    /// multiple of 65,536.
    fn default() -> Self {
        PrefixLevels(vec![PrefixLevel::Prefix(PrefixRule::Fixed(6)), PrefixLevel::WholeKey])
    }
}

impl Tuning for PrefixLevels {}

impl fmt::Display for PrefixLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, level) in self.0.iter().enumerate() {
            f.write_str(if nth == 0 { "" } else { "+" })?;
            level.write_text(f)?;
        }
        Ok(())
    }
}

impl FromStr for PrefixLevels {
    /// The error lists the allowed values.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = |text: &str| match text {
            "all" => Ok(PrefixLevel::WholeKey),
            rule => rule.parse().map(PrefixLevel::Prefix),
        };
        let levels = text.split('+').map(level).collect::<Result<Vec<_>, String>>()?;
        let wrong =
            || "1 to 8 levels, each longer than the one before it, as 12+21+all".to_string();
        PrefixLevels::new(levels).ok_or_else(wrong)
    }
}

/// Returns the bits per item of each level that minimize the false positives, given `bits` in all.
/// `items`: the number of items per level. 0: the level is better not stored.
pub(super) fn divide(items: &[u64], bits: f64) -> Vec<f64> {
    let mut is_kept: Vec<bool> = items.iter().map(|&count| count > 0).collect();
    loop {
        let columns = divide_among(items, &is_kept, bits);
        let kept = columns.iter().zip(&is_kept).enumerate().filter(|(_, (_, is_kept))| **is_kept);
        let least = kept.min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b));
        match least {
            Some((level, (columns, _))) if *columns < COLUMNS_MIN => is_kept[level] = false,
            _ => return columns,
        }
    }
}

/// By Lagrange multipliers: the rate 2^-r of a level falls as it has fewer items and a greater
/// weight.
fn divide_among(items: &[u64], is_kept: &[bool], bits: f64) -> Vec<f64> {
    let above = |level: usize| {
        let weight = BITS_ABOVE_NEXT * (items.len() - 1 - level) as f64;
        weight - (items[level] as f64).log2()
    };
    let kept = || (0..items.len()).filter(|&level| is_kept[level]);
    let total: f64 = kept().map(|level| items[level] as f64).sum();
    let spent: f64 = kept().map(|level| items[level] as f64 * above(level)).sum();
    let even = (bits - spent) / total;
    let columns = |level| if is_kept[level] { even + above(level) } else { 0.0 };
    (0..items.len()).map(columns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_as_they_are_written() {
        for text in ["6+all", "12+21", "all", "sep:/+20+all", "sep:0x2b", "sep:+", "1+255"] {
            let Ok(levels) = text.parse::<PrefixLevels>() else {
                assert_eq!(text, "sep:+", "it stands between levels");
                continue;
            };
            assert_eq!(levels.to_string(), text);
            for level in levels.as_slice() {
                assert_eq!(PrefixLevel::decode(level.encode()).as_ref(), Some(level));
            }
        }
        assert_eq!(PrefixLevel::decode([3, 0]), None);
        assert_eq!(PrefixLevels::default().to_string(), "6+all");
        for text in [
            "",
            "+",
            "0",
            "21+12",
            "12+12",
            "all+12",
            "x",
            "1+2+3+4+5+6+7+8+9",
            "256",
            "21+sep:/+12",
            "5+sep:/+5",
            "sep:/+sep:/",
        ] {
            assert!(text.parse::<PrefixLevels>().is_err(), "{text}");
        }
    }

    #[test]
    fn all_bits_are_divided_and_fewer_items_get_more() {
        let items = [100, 40_000, 50_000];
        let columns = divide(&items, 700_000.0);
        let bits: f64 = items.iter().zip(&columns).map(|(&count, bits)| count as f64 * bits).sum();
        assert!((bits - 700_000.0).abs() < 1.0);
        assert!(columns[0] > columns[1] && columns[1] > columns[2], "{columns:?}");
        // Any other division lets more through.
        let through = |columns: &[f64]| {
            let weights = [4.0, 2.0, 1.0];
            columns.iter().zip(weights).map(|(bits, weight)| weight * 2f64.powf(-bits)).sum::<f64>()
        };
        for (from, to) in [(1, 2), (2, 1), (1, 0), (0, 1)] {
            let mut other = columns.clone();
            other[from] -= 0.1;
            other[to] += 0.1 * items[from] as f64 / items[to] as f64;
            assert!(through(&other) > through(&columns), "{from} to {to}");
        }
    }

    #[test]
    fn levels_that_would_get_next_to_nothing_are_not_kept() {
        assert_eq!(divide(&[50_000, 50_000], 50_000.0 * 1.5), [1.5, 0.0]);
        assert_eq!(divide(&[50_000], 50_000.0 * 0.5), [0.0]);
        assert_eq!(divide(&[0, 16], 64.0), [0.0, 4.0]);
        assert_eq!(divide(&[0, 0], 0.0), [0.0, 0.0]);
    }
}
