//! A figure: which rows become which points of which curves.
//! ```text
//! rows --where--> rows --y: one field, or several with a name each--> points (x, y)
//!                                                   |  panel: a picture for each value
//!                                                   |  series: a curve for each value
//!                                                   v
//!                       points of one x (or `order`) in one curve: their median
//! ```
//! Invariant: panels, curves and names on the x axis stand in the order in which rows bring them.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use crate::experiment::claim::{Wanted, has};
use crate::experiment::law::Law;
use crate::experiment::number::readable;
use crate::experiment::rows::{Row, Scalar};
use crate::median::median;

/// What to draw.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigurePlan {
    title: String,
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
    /// What y is multiplied with, as in 0.001 from ns to µs.
    #[serde(default = "one")]
    y_times: f64,
    /// What x is multiplied with.
    #[serde(default = "one")]
    x_times: f64,
    /// The field `measure` is the name of one of several `y`.
    #[serde(default)]
    series: Vec<String>,
    /// The field in whose order points are joined, where x was measured, too. None: in the order of
    /// x.
    order: Option<String>,
    panel: Option<String>,
    /// Whether a law is told of each curve: how y grows with x.
    #[serde(default)]
    law: bool,
    #[serde(default, rename = "where")]
    wanted: Wanted,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Joined by lines.
    #[default]
    Lines,
    /// A bar for each.
    Bars,
    /// By themselves.
    Points,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisScale {
    /// Evenly.
    #[default]
    Linear,
    /// By powers of ten.
    Log,
}

/// Fields that are drawn, with a name each if there are several.
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
    /// What it shows.
    pub title: String,
    /// How.
    pub mark: Mark,
    /// What x is, with its unit.
    pub x_label: String,
    /// How the x axis is divided.
    pub x_scale: AxisScale,
    /// What y is, with its unit.
    pub y_label: String,
    /// How the y axis is divided.
    pub y_scale: AxisScale,
    /// Names on the x axis: x counts them from 0. None: x is a number.
    pub x_names: Option<Vec<String>>,
    /// The names of all curves, in order.
    pub curve_names: Vec<String>,
    /// The pictures. Empty: there are no rows for it.
    pub panels: Vec<Panel>,
    /// Of each curve, how it grows: the power law nearest to its points. Empty: none is asked for.
    pub laws: Vec<String>,
}

/// One picture of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What sets the panel apart; empty if it is the only one.
    pub title: String,
    /// Its curves.
    pub curves: Vec<Curve>,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its place in `Figure::curve_names`.
    pub name: usize,
    /// Points in the order in which they are joined: by x, or as the plan says.
    pub points: Vec<(f64, f64)>,
}

/// A point before points are put together.
struct RawPoint {
    panel: String,
    curve: String,
    x: Scalar,
    y: f64,
    /// Where the curve comes to it. None: at its x.
    order: Option<f64>,
}

impl Figure {
    /// Whether a point is zero where the axis has no zero: it is drawn at its lower end.
    pub fn has_zeros_at_the_edge(&self) -> bool {
        let mut points =
            self.panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points);
        self.y_scale == AxisScale::Log && points.any(|point| point.1 <= 0.0)
    }

    /// The laws of its curves, with their names; of curves that have none, nothing. Where x is a
    /// name there are none.
    fn laws_of_curves(&self) -> Vec<String> {
        if self.x_names.is_some() {
            return Vec::new();
        }
        let curves =
            self.panels.iter().flat_map(|panel| panel.curves.iter().map(move |one| (panel, one)));
        let told = curves.filter_map(|(panel, curve)| {
            let law = Law::of(&curve.points)?.told(&self.x_label);
            let names = [&panel.title, &self.curve_names[curve.name]].map(String::as_str);
            let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            Some(match names.is_empty() {
                true => law,
                false => format!("{}: {law}", names.join(", ")),
            })
        });
        told.collect()
    }

    /// The points of a panel as a table: x, then a column for each curve. The first row is the
    /// heading.
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
    /// What is wrong with it.
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

    /// The figure that rows give.
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

    /// The points of one row: one for each measure that it has.
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

/// A field in words. Numbers and flags have their names; a false flag is left out.
fn words(name: &str, value: &Scalar) -> String {
    let name = name.rsplit('.').next().unwrap_or(name).replace('_', " ");
    match value {
        Scalar::Text(text) => text.clone(),
        Scalar::Flag(true) => name,
        Scalar::Flag(false) => String::new(),
        Scalar::Number(_) => format!("{name} {}", value.shown()),
    }
}

/// Each once, in order of first appearance.
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

/// Points by their place in the curve; of several at one place, the median.
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
