//! The colour, mark and line of a curve.
//!
//! Invariant: curves that are drawn together differ in colour and mark. With more curves than
//! colours, the further ones have dashed lines.

use crate::experiment::chart::drawing::{Drawing, Spot, number, path_of};
use crate::experiment::palette::CURVES;

/// Half the size of a mark.
const HALF: f64 = 4.5;
const LINE: &str = " fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"";
const DASHED: &str =
    " fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\" stroke-dasharray=\"6 4\"";
const FILLED: &str = " fill=\"currentColor\"";

/// The look of a curve.
pub(crate) struct Look {
    class: &'static str,
    mark: usize,
    is_dashed: bool,
}

impl Look {
    /// Returns the look of the curve with this index.
    pub(crate) fn of(name: usize) -> Self {
        let mark = name % CURVES.len();
        let is_dashed = !(name / CURVES.len()).is_multiple_of(2);
        Look { class: CURVES[mark].name, mark, is_dashed }
    }

    /// Draws a line from position to position.
    pub(crate) fn line(&self, drawing: &mut Drawing, spots: &[Spot]) {
        if spots.len() > 1 {
            let style = if self.is_dashed { DASHED } else { LINE };
            drawing.path(self.class, style, &path_of(spots));
        }
    }

    /// Draws a mark at each position.
    pub(crate) fn marks(&self, drawing: &mut Drawing, spots: &[Spot]) {
        let path: String = spots.iter().map(|spot| mark(self.mark, *spot)).collect();
        let style = if self.is_hollow() { LINE } else { FILLED };
        drawing.path(self.class, style, &path);
    }

    /// Draws filled boxes, given by opposite corners.
    pub(crate) fn boxes(&self, drawing: &mut Drawing, corners: impl Iterator<Item = (Spot, Spot)>) {
        let path: String = corners.map(rectangle).collect();
        drawing.path(self.class, FILLED, &path);
    }

    fn is_hollow(&self) -> bool {
        self.mark >= 5
    }
}

fn rectangle(((left, top), (right, bottom)): (Spot, Spot)) -> String {
    format!(
        "M{} {}H{}V{}H{}z",
        number(left),
        number(top),
        number(right),
        number(bottom),
        number(left)
    )
}

/// Returns the path of a mark: circle, triangle, square, diamond, inverted triangle, ring, cross.
fn mark(kind: usize, (x, y): Spot) -> String {
    let closed = |corners: &[Spot]| path_of(corners) + "z";
    let (wide, low) = (HALF + 0.8, HALF - 0.6);
    match kind {
        0 | 5 => {
            let size = number(if kind == 0 { HALF } else { HALF - 0.8 });
            let (from, to) = (number(x - HALF), number(x + HALF));
            let y = number(y);
            format!("M{from} {y}A{size} {size} 0 1 0 {to} {y}A{size} {size} 0 1 0 {from} {y}z")
        }
        1 => closed(&[(x - wide, y + low), (x, y - wide), (x + wide, y + low)]),
        2 => rectangle(((x - low, y - low), (x + low, y + low))),
        3 => closed(&[(x - wide, y), (x, y - wide), (x + wide, y), (x, y + wide)]),
        4 => closed(&[(x - wide, y - low), (x, y + wide), (x + wide, y - low)]),
        _ => {
            let down = path_of(&[(x - low, y - low), (x + low, y + low)]);
            down + &path_of(&[(x - low, y + low), (x + low, y - low)])
        }
    }
}
