//! Claims: what a source says, computed from rows.
//! ```text
//! of = { guard = "grf" }   than = { guard = "bloom" }   each = ["bits_per_key"]
//! value = "point_miss.ns_per_op"   at_most = 0.5
//!
//! for every bits_per_key that both sides have:   median of one side / median of the other
//!   interval   |--[==x==]------| 0.5               holds: all of it is within the bound
//!              |--------[==x=|==]                  tie: it has the bound in it
//!              |-------------| [==x==]             does not hold
//! ```
//! Invariant: a claim holds if all of its pairs do, and there is one. One pair beyond the bound is
//! enough that it does not. Without a pair nothing is said.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::experiment::interval::{Measured, measured, ratio};
use crate::experiment::number::{exact, readable};
use crate::experiment::plan::Scale;
use crate::experiment::rows::{Row, Scalar};
use crate::median::median;

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
    /// What may be why, if it does not hold or is a tie, where no run without that cause was made.
    pub otherwise: Option<String>,
    /// Why it does not hold, if it holds without that.
    cause: Option<Cause>,
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
    /// It can be shown at this scale alone.
    pub(crate) scale: Option<Scale>,
    /// Filters that cannot take what was asked for count, too: they have one size, or it is what is
    /// claimed of them.
    #[serde(default)]
    unfit: bool,
}

/// A cause, and the rows that were measured without it. What it does not name is the claim's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cause {
    says: String,
    value: Option<String>,
    #[serde(rename = "where")]
    wanted: Option<Wanted>,
    of: Option<Wanted>,
    than: Option<Wanted>,
    each: Option<Vec<String>>,
}

/// What rows say about a claim, or a pair of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Whatever is within the intervals is within the bound.
    Holds,
    /// Of some pair nothing is.
    DoesNotHold,
    /// The intervals overlap the bound.
    Tie,
    /// There are no rows to compute it from.
    NotMeasured,
}

/// What the rows say about a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimOutcome {
    /// Whether it holds.
    pub verdict: Verdict,
    /// What was compared.
    pub pairs: Vec<ClaimPair>,
    /// The bound, as in "at most 0.5".
    pub bound: String,
    /// Whether ratios were compared, not values.
    pub is_ratio: bool,
    /// Of a claim that does not hold: why, or what is thought of it, as of a tie. Empty: nothing.
    pub why: String,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimPair {
    /// The fields that it is for, as in "bits_per_key 10".
    pub label: String,
    /// The ratio, or the value.
    pub found: f64,
    /// Where the true one is, as good as surely.
    pub interval: [f64; 2],
    /// Whether the interval is all that there is to be known: false if a time has no rounds.
    pub is_known: bool,
    /// Whether it is within the bound.
    pub verdict: Verdict,
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
        let pairs = self.pairs(rows);
        let verdict = verdict_of(&pairs);
        let why = match verdict {
            Verdict::DoesNotHold => self.why(rows),
            Verdict::Tie => self.otherwise.clone().unwrap_or_default(),
            Verdict::Holds | Verdict::NotMeasured => String::new(),
        };
        ClaimOutcome { verdict, pairs, bound: self.bound(), is_ratio: self.than.is_some(), why }
    }

    /// Why it does not hold: a cause counts if the claim holds without it.
    fn why(&self, rows: &[Row]) -> String {
        let untested = || match &self.otherwise {
            Some(otherwise) => format!("Untested: {otherwise}"),
            None => "Unexplained.".into(),
        };
        let Some(cause) = &self.cause else { return untested() };
        match verdict_of(&self.without(cause).pairs(rows)) {
            Verdict::Holds => format!("{} Without that it holds.", cause.says),
            Verdict::NotMeasured => untested(),
            Verdict::Tie => format!("Unexplained; without this it is a tie: {}", cause.says),
            Verdict::DoesNotHold => {
                format!("Unexplained; it does not hold without this either: {}", cause.says)
            }
        }
    }

    /// The claim over the rows that were measured without its cause.
    fn without(&self, cause: &Cause) -> Claim {
        Claim {
            value: cause.value.clone().unwrap_or_else(|| self.value.clone()),
            wanted: cause.wanted.clone().unwrap_or_else(|| self.wanted.clone()),
            of: cause.of.clone().unwrap_or_else(|| self.of.clone()),
            than: cause.than.clone().or_else(|| self.than.clone()),
            each: cause.each.clone().unwrap_or_else(|| self.each.clone()),
            ..self.clone()
        }
    }

    fn pairs(&self, rows: &[Row]) -> Vec<ClaimPair> {
        let of = self.side(rows, &self.of);
        let Some(than) = &self.than else {
            return of.into_iter().map(|(label, value)| self.pair(label, value)).collect();
        };
        let than = self.side(rows, than);
        let both = of.into_iter().filter_map(|(label, value)| {
            let other = than.get(&label)?;
            Some(self.pair(label, ratio(&value, other)?))
        });
        both.collect()
    }

    /// The medians of one side, by the fields that both sides share.
    fn side(&self, rows: &[Row], of: &Wanted) -> BTreeMap<String, Measured> {
        let mut found: BTreeMap<String, Vec<Measured>> = BTreeMap::new();
        let is_fit = |row: &Row| self.unfit || row.get("unfit") != Some(&Scalar::Flag(true));
        let of_side = |row: &&Row| has(row, &self.wanted) && has(row, of) && is_fit(row);
        for row in rows.iter().filter(of_side) {
            if let (Some(label), Some(value)) = (self.label(row), measured(row, &self.value)) {
                found.entry(label).or_default().push(value);
            }
        }
        found.into_iter().map(|(label, values)| (label, middle(values))).collect()
    }

    fn label(&self, row: &Row) -> Option<String> {
        let fields =
            self.each.iter().map(|name| Some(format!("{name} {}", row.get(name)?.shown())));
        fields.collect::<Option<Vec<_>>>().map(|fields| fields.join(", "))
    }

    fn pair(&self, label: String, measured: Measured) -> ClaimPair {
        let Measured { value, interval: [low, high], is_known, .. } = measured;
        let (most, least) =
            (self.at_most.unwrap_or(f64::INFINITY), self.at_least.unwrap_or(f64::NEG_INFINITY));
        let verdict = match () {
            () if least <= low && high <= most => Verdict::Holds,
            () if high < least || most < low => Verdict::DoesNotHold,
            () => Verdict::Tie,
        };
        ClaimPair { label, found: value, interval: [low, high], is_known, verdict }
    }

    fn bound(&self) -> String {
        let bounds = [("at most", self.at_most), ("at least", self.at_least)];
        let told =
            bounds.iter().filter_map(|(word, bound)| Some(format!("{word} {}", exact((*bound)?))));
        told.collect::<Vec<_>>().join(", ")
    }
}

fn verdict_of(pairs: &[ClaimPair]) -> Verdict {
    let any = |verdict| pairs.iter().any(|pair| pair.verdict == verdict);
    match () {
        () if pairs.is_empty() => Verdict::NotMeasured,
        () if any(Verdict::DoesNotHold) => Verdict::DoesNotHold,
        () if any(Verdict::Tie) => Verdict::Tie,
        () => Verdict::Holds,
    }
}

/// One for all: the median, and the medians of the intervals' ends.
fn middle(mut values: Vec<Measured>) -> Measured {
    if values.len() == 1 {
        return values.remove(0);
    }
    let middle = |of: fn(&Measured) -> f64| median(&mut values.iter().map(of).collect::<Vec<_>>());
    Measured {
        value: middle(|one| one.value),
        interval: [middle(|one| one.interval[0]), middle(|one| one.interval[1])],
        is_known: values.iter().all(|one| one.is_known),
        rounds: None,
    }
}

/// Whether a row has these fields.
pub(crate) fn has(row: &Row, wanted: &Wanted) -> bool {
    wanted.iter().all(|(name, value)| row.get(name) == Some(value))
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::Tie => "tie",
            Verdict::NotMeasured => "not measured",
        }
    }
}

impl ClaimOutcome {
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
        let within = self.pairs.iter().filter(|pair| pair.verdict == Verdict::Holds).count();
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
        let within = self.pairs.iter().filter(|pair| pair.verdict == Verdict::Holds).count();
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
            self.pairs
                .iter()
                .filter(|pair| pair.verdict != Verdict::Holds)
                .map(|pair| pair.label.as_str()),
        );
        outside.into_iter().collect()
    }
}
