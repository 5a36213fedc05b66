//! A figure: the rule that turns rows into points of curves, and its result.
//! ```text
//! rows --where--> rows --y: one field, or several with a name each--> points (x, y)
//!                                                   |  panel: a picture for each value
//!                                                   |  series: a curve for each value
//!                                                   v
//!                       points of one x (or `order`) in one curve: their median
//! ```
//! Invariant: panels, curves and names on the x axis keep the order in which rows first have them.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use crate::experiment::claim::{Wanted, has};
use crate::experiment::law::Law;
use crate::experiment::number::readable;
use crate::experiment::plan::Scale;
use crate::experiment::rows::{Row, Scalar};
use crate::median::median;

/// What to draw.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigurePlan {
    title: String,
    /// The only scale at which it can be drawn.
    pub(crate) scale: Option<Scale>,
    #[serde(default)]
    mark: Mark,
    x: String,
    x_label: String,
    #[serde(default)]
    x_scale: AxisScale,
    y: Measures,
    y_label: String,
    #[serde(default)]
    y_scale: AxisScale,
    /// The factor of y, such as 0.001 from ns to µs.
    #[serde(default = "one")]
    y_times: f64,
    /// The factor of x.
    #[serde(default = "one")]
    x_times: f64,
    /// The fields whose values name a curve. The field `measure` is the name of one of several `y`.
    #[serde(default)]
    series: Vec<String>,
    /// The field by whose order points are joined, for an x that was measured, too. None: the order
    /// of x.
    order: Option<String>,
    panel: Option<String>,
    /// Whether to state each curve's law: how y grows with x.
    #[serde(default)]
    law: bool,
    #[serde(default, rename = "where")]
    wanted: Wanted,
}

/// The way points are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Joined by lines.
    #[default]
    Lines,
    /// A bar for each point.
    Bars,
    /// Separate marks.
    Points,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisScale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic.
    Log,
}

/// The fields to draw; several have a name each.
#[derive(Clone, Debug)]
enum Measures {
    One(String),
    Named(Vec<(String, String)>),
}

fn one() -> f64 {
    1.0
}

impl<'de> Deserialize<'de> for Measures {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(source)? {
            toml::Value::String(field) => Ok(Measures::One(field)),
            toml::Value::Table(named) => {
                let text = |(name, field): (String, toml::Value)| match field {
                    toml::Value::String(field) => Ok((name, field)),
                    other => Err(D::Error::custom(format!(
                        "y.{name}: a field's name, not a {}",
                        other.type_str()
                    ))),
                };
                named.into_iter().map(text).collect::<Result<_, _>>().map(Measures::Named)
            }
            other => Err(D::Error::custom(format!(
                "y: a field's name, or {{ name = field }}, not a {}",
                other.type_str()
            ))),
        }
    }
}

/// A figure with its points.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The title.
    pub title: String,
    /// The way points are drawn.
    pub mark: Mark,
    /// The label of the x axis, with the unit.
    pub x_label: String,
    /// The scale of the x axis.
    pub x_scale: AxisScale,
    /// The label of the y axis, with the unit.
    pub y_label: String,
    /// The scale of the y axis.
    pub y_scale: AxisScale,
    /// The names on the x axis, which x counts from 0. None: x is a number.
    pub x_names: Option<Vec<String>>,
    /// The names of all curves, in order.
    pub curve_names: Vec<String>,
    /// The pictures. Empty: no row belongs to the figure.
    pub panels: Vec<Panel>,
    /// The power law of each curve. Empty: none is asked for.
    pub laws: Vec<CurveLaw>,
}

/// The power law of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveLaw {
    /// The title of its panel; empty if there is only one.
    pub panel: String,
    /// The name of the curve; empty if it is the only one.
    pub curve: String,
    pub(crate) law: Law,
}

impl CurveLaw {
    /// Formats the law with the names of panel and curve. `x` is the name of x.
    pub(crate) fn describe(&self, x: &str) -> String {
        let names = [&self.panel, &self.curve].map(String::as_str);
        let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
        match names.is_empty() {
            true => self.law.describe(x),
            false => format!("{}: {}", names.join(", "), self.law.describe(x)),
        }
    }
}

/// One picture of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What distinguishes the panel; empty if it is the only one.
    pub title: String,
    /// Its curves.
    pub curves: Vec<Curve>,
}

/// Points that are drawn together.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The index of its name in `Figure::curve_names`.
    pub name: usize,
    /// Points in the order in which they are joined: by x, or by the plan's `order`.
    pub points: Vec<(f64, f64)>,
}

/// A point of a row, before points are grouped.
struct RawPoint {
    panel: String,
    curve: String,
    x: Scalar,
    y: f64,
    /// Its position along the curve. None: its x.
    order: Option<f64>,
}

impl Figure {
    /// Whether a point is zero on a logarithmic axis, and so drawn at the lower end.
    pub fn has_zeros_at_the_edge(&self) -> bool {
        let mut points =
            self.panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points);
        self.y_scale == AxisScale::Log && points.any(|point| point.1 <= 0.0)
    }

    /// Returns the laws of the curves, with the curves' names. Curves without a law are left out.
    /// If x is a name, there are no laws.
    fn laws_of_curves(&self) -> Vec<CurveLaw> {
        if self.x_names.is_some() {
            return Vec::new();
        }
        let curves =
            self.panels.iter().flat_map(|panel| panel.curves.iter().map(move |one| (panel, one)));
        let laws = curves.filter_map(|(panel, curve)| {
            let law = Law::of(&curve.points)?;
            let curve = self.curve_names[curve.name].clone();
            Some(CurveLaw { panel: panel.title.clone(), curve, law })
        });
        laws.collect()
    }

    /// Returns the points of a panel as a table: x, then a column for each curve. The first row has
    /// the headings.
    pub fn table(&self, panel: &Panel) -> Vec<Vec<String>> {
        let x_text = |x: f64| match &self.x_names {
            Some(names) => names.get(x as usize).cloned().unwrap_or_default(),
            None => readable(x),
        };
        let name = |curve: &Curve| self.curve_names[curve.name].clone();
        let heading = std::iter::once(self.x_label.clone()).chain(panel.curves.iter().map(name));
        let mut places: Vec<f64> =
            panel.curves.iter().flat_map(|curve| &curve.points).map(|point| point.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let row = |x: f64| {
            let of = panel.curves.iter().map(move |curve| {
                let found = curve.points.iter().find(|point| point.0 == x);
                found.map_or("-".to_string(), |point| readable(point.1))
            });
            std::iter::once(x_text(x)).chain(of).collect()
        };
        std::iter::once(heading.collect()).chain(places.into_iter().map(row)).collect()
    }
}

impl FigurePlan {
    /// Returns what is wrong with the plan of the figure.
    pub(crate) fn check(&self) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("figure \"{}\": {what}", self.title));
        match (self.mark, self.y_scale, self.law) {
            (Mark::Bars, AxisScale::Log, _) => {
                wrong("a bar begins at zero, which a log axis has not: mark = \"points\"")
            }
            (Mark::Bars, _, true) => wrong("bars have names on the x axis, and no law"),
            _ => Ok(()),
        }
    }

    /// Builds the figure from rows.
    pub(crate) fn figure(&self, rows: &[Row]) -> Figure {
        let drawn: Vec<RawPoint> = rows
            .iter()
            .filter(|row| has(row, &self.wanted))
            .flat_map(|row| self.drawn(row))
            .collect();
        let has_names = self.mark == Mark::Bars || drawn.iter().any(|one| one.x.number().is_none());
        let x_names = has_names.then(|| in_order(drawn.iter().map(|one| one.x.shown())));
        let x_of = |x: &Scalar| match (&x_names, x.number()) {
            (Some(names), _) => place(names, &x.shown()) as f64,
            (None, Some(number)) => number * self.x_times,
            (None, None) => unreachable!("without names every x is a number"),
        };
        let curve_names = in_order(drawn.iter().map(|one| one.curve.clone()));
        let panels = in_order(drawn.iter().map(|one| one.panel.clone())).into_iter().map(|title| {
            let own: Vec<&RawPoint> = drawn.iter().filter(|one| one.panel == title).collect();
            let curves = (0..curve_names.len()).map(|name| {
                let points = own.iter().filter(|one| one.curve == curve_names[name]);
                let points = points.map(|one| {
                    let x = x_of(&one.x);
                    (one.order.unwrap_or(x), x, one.y)
                });
                Curve { name, points: medians(points.collect()) }
            });
            Panel { curves: curves.filter(|curve| !curve.points.is_empty()).collect(), title }
        });
        let mut figure = Figure {
            title: self.title.clone(),
            mark: self.mark,
            x_label: self.x_label.clone(),
            x_scale: self.x_scale,
            y_label: self.y_label.clone(),
            y_scale: self.y_scale,
            panels: panels.collect(),
            x_names,
            curve_names,
            laws: Vec::new(),
        };
        if self.law {
            figure.laws = figure.laws_of_curves();
        }
        figure
    }

    /// Returns the points of one row: one for each measure that the row has.
    fn drawn(&self, row: &Row) -> Vec<RawPoint> {
        let measures = match &self.y {
            Measures::One(field) => vec![(String::new(), field.clone())],
            Measures::Named(named) => named.clone(),
        };
        let points = measures.into_iter().filter_map(|(measure, field)| {
            let y = row.number(&field)? * self.y_times;
            let mut row = row.clone();
            row.0.insert("measure".into(), Scalar::Text(measure));
            let text = |name: &String| row.get(name).map(|value| words(name, value));
            let named = self.series.iter().filter_map(text).filter(|name| !name.is_empty());
            let curve = named.collect::<Vec<_>>().join(", ");
            let panel = self.panel.as_ref().and_then(text).unwrap_or_default();
            let order = match &self.order {
                Some(name) => Some(row.number(name)?),
                None => None,
            };
            Some(RawPoint { panel, curve, x: row.get(&self.x)?.clone(), y, order })
        });
        points.collect()
    }
}

/// Returns a field in words. Numbers and flags have their names; a false flag is left out.
fn words(name: &str, value: &Scalar) -> String {
    let name = name.rsplit('.').next().unwrap_or(name).replace('_', " ");
    match value {
        Scalar::Text(text) => text.clone(),
        Scalar::Flag(true) => name,
        Scalar::Flag(false) => String::new(),
        Scalar::Number(_) => format!("{name} {}", value.shown()),
    }
}

/// Removes duplicates, in order of first appearance.
fn in_order(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    all.for_each(|one| {
        if !found.contains(&one) {
            found.push(one);
        }
    });
    found
}

fn place(names: &[String], name: &str) -> usize {
    names.iter().position(|known| known == name).expect("the names were made of these rows")
}

/// Takes the median of the points at each position of a curve.
fn medians(mut points: Vec<(f64, f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let same = points.chunk_by(|one, other| one.0 == other.0);
    let median_of = |same: &[(f64, f64, f64)], of: fn(&(f64, f64, f64)) -> f64| {
        median(&mut same.iter().map(of).collect::<Vec<_>>())
    };
    same.map(|same| (median_of(same, |point| point.1), median_of(same, |point| point.2))).collect()
}

#[cfg(test)]
mod tests;
