//! Names in rows: a bar or a point for each curve of a name, one below the other.
//! ```text
//! grf    | #######
//!        | o                     points where the axis has no zero
//!        +---------
//! bloom  | ###############
//!        |      ^
//! ```
//! Invariant: a bar begins at zero. A logarithmic axis has no zero, and so no bars.

use crate::experiment::chart::drawing::{Anchor, Area, Drawing, Spot};
use crate::experiment::chart::look::Look;
use crate::experiment::chart::{TEXT, TICK_GAP};
use crate::experiment::figure::{AxisScale, Figure, Mark, Panel};
use crate::experiment::ticks::Axis;

/// The height of a bar and of a point, with the space below.
const BAR: f64 = 13.0;
const POINT: f64 = 11.0;
/// The space between rows.
const GAP: f64 = 12.0;
/// The least height of a row.
const ROW_LEAST: f64 = 30.0;

/// The rows of all panels.
pub(crate) struct NameRows<'a> {
    names: &'a [String],
    /// The curves of each name.
    curves: usize,
    has_bars: bool,
}

impl<'a> NameRows<'a> {
    pub(crate) fn of(figure: &Figure, names: &'a [String]) -> Self {
        let has_bars = figure.mark == Mark::Bars && figure.y_scale == AxisScale::Linear;
        NameRows { names, curves: figure.curve_names.len(), has_bars }
    }

    pub(crate) fn names(&self) -> &[String] {
        self.names
    }

    pub(crate) fn height(&self) -> f64 {
        self.row() * self.names.len() as f64
    }

    /// Returns the height of one bar or point.
    fn pitch(&self) -> f64 {
        if self.has_bars { BAR } else { POINT }
    }

    fn row(&self) -> f64 {
        (self.pitch() * self.curves as f64 + GAP).max(ROW_LEAST)
    }

    /// Draws the bars or points of a panel, with the names if it is the first of its line.
    pub(crate) fn draw(
        &self,
        drawing: &mut Drawing,
        panel: &Panel,
        across: &Axis,
        area: &Area,
        is_first: bool,
    ) {
        let tops = (0..self.names.len()).map(|place| area.top + self.row() * place as f64);
        drawing.lines("grid", tops.clone().map(|y| ((area.left, y), (area.left + area.width, y))));
        for (name, top) in self.names.iter().zip(tops).filter(|_| is_first) {
            let middle = top + self.row() / 2.0 + TEXT / 3.0;
            drawing.words((area.left - TICK_GAP, middle), Anchor::End, name);
        }
        for curve in &panel.curves {
            let look = Look::of(curve.name);
            let ends: Vec<Spot> = curve
                .points
                .iter()
                .map(|(name, value)| {
                    let x = area.at(across.share(*value), 0.0).0;
                    (x, area.top + self.middle(*name, curve.name))
                })
                .collect();
            if self.has_bars {
                let half = self.pitch() / 2.0 - 1.0;
                let zero = area.at(across.share(0.0), 0.0).0;
                let corners = ends.into_iter().map(|(x, y)| ((zero, y - half), (x, y + half)));
                look.boxes(drawing, corners);
            } else {
                look.marks(drawing, &ends);
            }
        }
    }

    /// Returns how far down the middle of a curve's bar or point is.
    fn middle(&self, name: f64, curve: usize) -> f64 {
        let from_middle = curve as f64 - (self.curves as f64 - 1.0) / 2.0;
        self.row() * (name + 0.5) + self.pitch() * from_middle
    }
}
