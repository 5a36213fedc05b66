//! Claims: statements of a source, checked against rows.
//! ```text
//! of = { guard = "grf" }   than = { guard = "bloom" }   each = ["bits_per_key"]
//! value = "point_miss.ns_per_op"   at_most = 0.5
//!
//! for every bits_per_key that both sides have:   median of one side / median of the other
//!   interval   |--[==x==]------| 0.5               holds: all of it is within the bound
//!              |--------[==x=|==]                  tie: it has the bound in it
//!              |-------------| [==x==]             does not hold
//! ```
//! Invariant: a claim holds if it has a pair and all its pairs hold. It does not hold if one pair
//! is beyond the bound. Without a pair it is not measured.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::experiment::interval::{Measured, measured, ratio};
use crate::experiment::number::{exact, readable};
use crate::experiment::plan::Scale;
use crate::experiment::rows::{Row, Scalar};
use crate::median::median;

/// The fields that rows must have, with their values.
pub(crate) type Wanted = BTreeMap<String, Scalar>;

/// A claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in words.
    pub says: String,
    /// The source: a paper and its section, or this project.
    pub source: String,
    /// A possible reason for a claim that does not hold or is a tie, if no run tested that reason.
    pub otherwise: Option<String>,
    /// The reason why it does not hold; it counts only if the claim holds without it.
    cause: Option<Cause>,
    value: String,
    #[serde(default, rename = "where")]
    wanted: Wanted,
    #[serde(default)]
    of: Wanted,
    /// The fields of the other side. None: the value itself, not a ratio, is compared with the
    /// bound.
    than: Option<Wanted>,
    #[serde(default)]
    each: Vec<String>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    /// The only scale at which it can be shown.
    pub(crate) scale: Option<Scale>,
    /// Whether filters that cannot take the requested memory count, too: because they have one
    /// size, or because the claim is about that.
    #[serde(default)]
    unfit: bool,
}

/// A cause, and the rows that were measured without it. Fields that it does not name are those of
/// the claim.
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

/// The verdict on a claim or on a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All intervals lie within the bound.
    Holds,
    /// The interval of some pair lies beyond the bound.
    DoesNotHold,
    /// The intervals overlap the bound.
    Tie,
    /// No rows belong to it.
    NotMeasured,
}

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimOutcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The comparisons.
    pub pairs: Vec<ClaimPair>,
    /// The bound, as in "at most 0.5".
    pub bound: String,
    /// Whether ratios were compared, not values.
    pub is_ratio: bool,
    /// The reason of a claim that does not hold, or the assumed reason of a tie. Empty: none.
    pub why: String,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimPair {
    /// The fields that it applies to, as in "bits_per_key 10".
    pub label: String,
    /// The ratio, or the value.
    pub found: f64,
    /// The interval that contains the true value with near certainty.
    pub interval: [f64; 2],
    /// Whether the spread is known: false if a time has no rounds.
    pub is_known: bool,
    /// Its verdict.
    pub verdict: Verdict,
}

impl Claim {
    /// Checks that the claim has a bound.
    pub(crate) fn check(&self) -> Result<(), String> {
        match (self.at_most, self.at_least) {
            (None, None) => Err(format!("claim \"{}\": at_most or at_least is missing", self.says)),
            _ => Ok(()),
        }
    }

    /// Evaluates the claim over rows.
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

    /// Returns why it does not hold. A cause counts if the claim holds without it.
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

    /// Returns the claim over the rows that were measured without its cause.
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

    /// Returns the medians of one side, by the fields that both sides share.
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
        let named =
            bounds.iter().filter_map(|(word, bound)| Some(format!("{word} {}", exact((*bound)?))));
        named.collect::<Vec<_>>().join(", ")
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

/// Combines several values: the median value, and the medians of the intervals' ends.
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

/// Whether a row has these fields with these values.
pub(crate) fn has(row: &Row, wanted: &Wanted) -> bool {
    wanted.iter().all(|(name, value)| row.get(name) == Some(value))
}

impl Verdict {
    /// Returns the verdict in words.
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
    /// Returns the findings and the bound, in a few words.
    pub fn describe(&self) -> String {
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

    /// Returns the findings and the bound for a table; ratios end in a sign.
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

    /// Returns the least and the greatest value found, and the number of comparisons. None: there
    /// is no comparison.
    pub fn found(&self) -> Option<(f64, f64, usize)> {
        let found = self.pairs.iter().map(|pair| pair.found);
        let least = found.clone().fold(f64::INFINITY, f64::min);
        let most = found.fold(f64::NEG_INFINITY, f64::max);
        (!self.pairs.is_empty()).then_some((least, most, self.pairs.len()))
    }

    /// Returns the labels of the pairs that do not hold.
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
