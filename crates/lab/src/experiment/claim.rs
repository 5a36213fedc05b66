//! Claims: what a source says, computed from rows.
//! ```text
//! of = { guard = "grf" }   than = { guard = "bloom" }   each = ["bits_per_key"]
//! value = "point_miss.ns_per_op"   at_most = 0.5
//!
//! for every bits_per_key that both sides have:   median of one side / median of the other <= 0.5 ?
//! ```
//! Invariant: a claim holds if all of its pairs do, and there is one. Without a pair nothing is
//! said.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::bench::rounds::median;
use crate::experiment::number::readable;
use crate::experiment::rows::{Row, Scalar};

/// Fields that rows must have.
pub(crate) type Wanted = BTreeMap<String, Scalar>;

/// What is claimed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in words.
    pub says: String,
    /// Its source: a paper and its section, or this project.
    pub source: String,
    /// What to say if it does not hold: why.
    pub otherwise: Option<String>,
    value: String,
    #[serde(default, rename = "where")]
    wanted: Wanted,
    #[serde(default)]
    of: Wanted,
    /// None: the value itself is compared with the bound, not a ratio.
    than: Option<Wanted>,
    #[serde(default)]
    each: Vec<String>,
    at_most: Option<f64>,
    at_least: Option<f64>,
}

/// What the rows say about a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimOutcome {
    /// None: there are no rows to compute it from.
    pub holds: Option<bool>,
    /// What was compared.
    pub pairs: Vec<ClaimPair>,
    /// The bound, as in "at most 0.5".
    pub bound: String,
    /// Whether ratios were compared, not values.
    pub is_ratio: bool,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimPair {
    /// The fields that it is for, as in "bits_per_key 10".
    pub label: String,
    /// The ratio, or the value.
    pub found: f64,
    /// Whether it is within the bound.
    pub holds: bool,
}

impl Claim {
    /// Whether it says what it compares with.
    pub(crate) fn check(&self) -> Result<(), String> {
        match (self.at_most, self.at_least) {
            (None, None) => Err(format!("claim \"{}\": at_most or at_least is missing", self.says)),
            _ => Ok(()),
        }
    }

    /// What rows say about it.
    pub fn outcome(&self, rows: &[Row]) -> ClaimOutcome {
        let of = self.side(rows, &self.of);
        let pairs: Vec<ClaimPair> = match &self.than {
            None => of.into_iter().map(|(label, value)| self.pair(label, value)).collect(),
            Some(than) => {
                let than = self.side(rows, than);
                let both = of.into_iter().filter_map(|(label, value)| {
                    let other = *than.get(&label)?;
                    let is_ratio = other != 0.0 || value != 0.0;
                    is_ratio.then(|| self.pair(label, value / other))
                });
                both.collect()
            }
        };
        ClaimOutcome {
            holds: (!pairs.is_empty()).then(|| pairs.iter().all(|pair| pair.holds)),
            pairs,
            bound: self.bound(),
            is_ratio: self.than.is_some(),
        }
    }

    /// The medians of one side, by the fields that both sides share.
    fn side(&self, rows: &[Row], of: &Wanted) -> BTreeMap<String, f64> {
        let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for row in rows.iter().filter(|row| has(row, &self.wanted) && has(row, of)) {
            if let (Some(label), Some(value)) = (self.label(row), row.number(&self.value)) {
                found.entry(label).or_default().push(value);
            }
        }
        found.into_iter().map(|(label, mut values)| (label, median(&mut values))).collect()
    }

    fn label(&self, row: &Row) -> Option<String> {
        let fields = self.each.iter().map(|name| Some(format!("{name} {}", row.get(name)?)));
        fields.collect::<Option<Vec<_>>>().map(|fields| fields.join(", "))
    }

    fn pair(&self, label: String, found: f64) -> ClaimPair {
        let holds = self.at_most.is_none_or(|bound| found <= bound)
            && self.at_least.is_none_or(|bound| found >= bound);
        ClaimPair { label, found, holds }
    }

    fn bound(&self) -> String {
        let bounds = [("at most", self.at_most), ("at least", self.at_least)];
        let told = bounds.iter().filter_map(|(word, bound)| Some(format!("{word} {}", (*bound)?)));
        told.collect::<Vec<_>>().join(", ")
    }
}

/// Whether a row has these fields.
pub(crate) fn has(row: &Row, wanted: &Wanted) -> bool {
    wanted.iter().all(|(name, value)| row.get(name) == Some(value))
}

impl ClaimOutcome {
    /// In a word: whether it holds.
    pub fn verdict(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not measured",
        }
    }

    /// What was found, and what was claimed, in a few words.
    pub fn told(&self) -> String {
        let Some((least, most, count)) = self.found() else {
            return format!("{}; there are no measurements", self.bound);
        };
        let what = if self.is_ratio { "ratio" } else { "value" };
        let found = match readable(least) == readable(most) {
            true => readable(least),
            false => format!("{} to {}", readable(least), readable(most)),
        };
        let within = self.pairs.iter().filter(|pair| pair.holds).count();
        let of =
            if count == 1 { String::new() } else { format!(", in {within} of {count} within it") };
        format!("{what} {found}; claimed {}{of}", self.bound)
    }

    /// What was found, and what was claimed, for a table: ratios have a sign behind them.
    pub fn cells(&self) -> [String; 2] {
        let sign = if self.is_ratio { "×" } else { "" };
        let bound = self.bound.replace("at most ", "≤ ").replace("at least ", "≥ ");
        let bound = bound.replace(", ", " and ");
        let Some((least, most, count)) = self.found() else {
            return ["-".into(), format!("{bound}{sign}")];
        };
        let (least, most) = (readable(least), readable(most));
        let found = match least == most {
            true => format!("{least}{sign}"),
            false => format!("{least} to {most}{sign}"),
        };
        let within = self.pairs.iter().filter(|pair| pair.holds).count();
        let of = if within == count { String::new() } else { format!(", {within} of {count}") };
        [found, format!("{bound}{sign}{of}")]
    }

    /// The smallest and the largest of what was found, and how many comparisons there were.
    pub fn found(&self) -> Option<(f64, f64, usize)> {
        let found = self.pairs.iter().map(|pair| pair.found);
        let least = found.clone().fold(f64::INFINITY, f64::min);
        let most = found.fold(f64::NEG_INFINITY, f64::max);
        (!self.pairs.is_empty()).then_some((least, most, self.pairs.len()))
    }

    /// The labels of what is not within the bound.
    pub fn outside(&self) -> Vec<&str> {
        let outside = BTreeSet::from_iter(
            self.pairs.iter().filter(|pair| !pair.holds).map(|pair| pair.label.as_str()),
        );
        outside.into_iter().collect()
    }
}
