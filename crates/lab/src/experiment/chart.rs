//! Draws a figure as a picture (SVG).
//! ```text
//! title                          in a file alone: pages have it above
//! --o-- grf   --^-- bloom        one legend for all panels
//! y                              what is upwards: in words that lie, once
//! |panel      |panel             names beside the first panel of a row: axes are shared
//! +---------  +---------
//!            x
//! ```
//! Numbers on x make lines or points. Names on x make rows (`rows.rs`), because names are long.
//! Invariants: a name has the same colour, mark and line in all panels. The picture is narrow
//! enough that its texts are readable when it is shrunk to `SHOWN_LEAST` pixels.

mod drawing;
mod legend;
mod look;
mod rows;
mod words;

pub use crate::experiment::chart::drawing::escaped;
use crate::experiment::chart::drawing::{Anchor, Area, Drawing, Standing};
use crate::experiment::chart::legend::Legend;
use crate::experiment::chart::look::Look;
use crate::experiment::chart::rows::NameRows;
pub use crate::experiment::chart::words::width_of;
use crate::experiment::figure::{Figure, Mark, Panel};
use crate::experiment::number::tick;
use crate::experiment::palette;
use crate::experiment::ticks::Axis;

const WIDTH: f64 = 680.0;
const MARGIN: f64 = 12.0;
const TEXT: f64 = 13.0;
const TITLE: f64 = 15.0;
/// The height of a line of text.
const LINE: f64 = 20.0;
/// The space between panels, into which labels of ticks extend from both sides.
const GAP: f64 = 28.0;
const COLUMNS_MAX: usize = 3;
/// The heights of a panel with curves, by the number of columns.
const HEIGHTS: [f64; COLUMNS_MAX] = [260.0, 220.0, 190.0];
/// The distance between an axis and its labels.
const TICK_GAP: f64 = 7.0;
/// The narrowest window, and its smallest text, in pixels.
#[cfg(test)]
pub(crate) const SHOWN_LEAST: f64 = 480.0;
#[cfg(test)]
pub(crate) const PIXELS_LEAST: f64 = 9.0;

/// Draws the picture for a page, which has [`style`] and the title. None: there is nothing to draw.
pub(crate) fn svg(figure: &Figure) -> Option<String> {
    draw(figure, false)
}

/// Draws the picture as a file of its own. None: there is nothing to draw.
pub(crate) fn svg_file(figure: &Figure) -> Option<String> {
    draw(figure, true)
}

/// Returns the style sheet of all pictures on a page.
pub(crate) fn style() -> String {
    let fixed = [
        (".chart text", "fill", palette::INK),
        (".chart .quiet", "fill", palette::QUIET),
        (".chart .paper", "fill", palette::PAPER),
        (".chart .grid", "stroke", palette::GRID),
        (".chart .axis", "stroke", palette::AXIS),
    ];
    let fixed = fixed.into_iter().map(|(on, what, colour)| (on.to_string(), what, colour));
    let curves = palette::CURVES.into_iter();
    let curves = curves.map(|colour| (format!(".chart .{}", colour.name), "color", colour));
    palette::rules(fixed.chain(curves))
}

fn draw(figure: &Figure, is_file: bool) -> Option<String> {
    let first = figure.panels.first()?;
    let mut drawing = Drawing::default();
    let mut top = MARGIN;
    if is_file {
        drawing.title((MARGIN, top + TITLE), &figure.title);
        top += TITLE + LINE / 2.0;
    }
    top = Legend::of(figure).draw(&mut drawing, top);
    let scales = Scales::of(figure);
    let (upright, across) = scales.labels(figure);
    drawing.words((MARGIN, top + TEXT), Anchor::Start, &upright);
    top += LINE;
    let columns = figure.panels.len().min(COLUMNS_MAX);
    let columns = if figure.panels.len() == 4 { 2 } else { columns };
    let left = MARGIN + scales.names_width();
    let gaps = GAP * (columns - 1) as f64;
    let width = (WIDTH - left - GAP - gaps) / columns as f64;
    let height = scales.height(columns);
    let caption = if first.title.is_empty() { TICK_GAP } else { LINE + TICK_GAP };
    for (place, panel) in figure.panels.iter().enumerate() {
        let (row, column) = (place / columns, place % columns);
        let area = Area {
            left: left + column as f64 * (width + GAP),
            top: top + row as f64 * (caption + height + LINE) + caption,
            width,
            height,
        };
        let above = (area.left, area.top - TICK_GAP - 2.0);
        drawing.caption(above, &fitting(&panel.title, width));
        scales.draw_panel(&mut drawing, figure, panel, &area, column == 0);
    }
    let rows = figure.panels.len().div_ceil(columns);
    top += rows as f64 * (caption + height + LINE);
    let middle = (left + (WIDTH - GAP - left) / 2.0, top + TEXT + 4.0);
    drawing.words(middle, Anchor::Middle, &across);
    let bottom = top + LINE + MARGIN;
    let title = &figure.title;
    Some(match is_file {
        true => drawing.svg((0.0, WIDTH), bottom, TEXT, &Standing::Alone(&style()), title),
        // On a page, the surroundings provide the margin.
        false => drawing.svg((MARGIN, WIDTH), bottom, TEXT, &Standing::OnPage, title),
    })
}

/// Shortens a text until it fits.
fn fitting(text: &str, room: f64) -> String {
    if width_of(text, TEXT) <= room {
        return text.to_string();
    }
    let mut kept = text.to_string();
    while kept.pop().is_some() && width_of(&kept, TEXT) + TEXT > room {}
    kept + "..."
}

/// The axes that all panels share, so that they are comparable.
enum Scales<'a> {
    /// Numbers on x.
    Numbers { across: Axis, up: Axis },
    /// Names on x, in rows.
    Names { across: Axis, rows: NameRows<'a> },
}

impl<'a> Scales<'a> {
    fn of(figure: &'a Figure) -> Self {
        let points =
            || figure.panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points);
        let ys: Vec<f64> = points().map(|point| point.1).collect();
        let values = Axis::of(figure.y_scale, &ys, true);
        match &figure.x_names {
            Some(names) => Scales::Names { across: values, rows: NameRows::of(figure, names) },
            None => {
                let xs: Vec<f64> = points().map(|point| point.0).collect();
                Scales::Numbers { across: Axis::of(figure.x_scale, &xs, false), up: values }
            }
        }
    }

    /// Returns the labels of the vertical and of the horizontal axis.
    fn labels(&self, figure: &Figure) -> (String, String) {
        let (x, mut y) = (figure.x_label.clone(), figure.y_label.clone());
        if figure.has_zeros_at_the_edge() {
            y.push_str(" (0 is on the edge)");
        }
        match self {
            Scales::Numbers { .. } => (y, x),
            Scales::Names { .. } => (x, y),
        }
    }

    /// Returns the width of the labels left of the first panel.
    fn names_width(&self) -> f64 {
        let widest = |names: &mut dyn Iterator<Item = String>| {
            names.map(|name| width_of(&name, TEXT)).fold(0.0, f64::max)
        };
        let widest = match self {
            Scales::Numbers { up, .. } => widest(&mut up.ticks().iter().map(|at| tick(*at))),
            Scales::Names { rows, .. } => widest(&mut rows.names().iter().cloned()),
        };
        widest + TICK_GAP
    }

    fn height(&self, columns: usize) -> f64 {
        match self {
            Scales::Numbers { .. } => HEIGHTS[columns - 1],
            Scales::Names { rows, .. } => rows.height(),
        }
    }

    fn draw_panel(
        &self,
        drawing: &mut Drawing,
        figure: &Figure,
        panel: &Panel,
        area: &Area,
        is_first: bool,
    ) {
        match self {
            Scales::Names { across, rows } => {
                upright_grid(drawing, across, area);
                rows.draw(drawing, panel, across, area, is_first);
            }
            Scales::Numbers { across, up } => {
                lying_grid(drawing, up, area, is_first);
                ticks_below(drawing, across, area);
                curves(drawing, figure, panel, (across, up), area);
            }
        }
    }
}

/// Draws the curves of a panel with numbers on both axes.
fn curves(
    drawing: &mut Drawing,
    figure: &Figure,
    panel: &Panel,
    (across, up): (&Axis, &Axis),
    area: &Area,
) {
    for curve in &panel.curves {
        let look = Look::of(curve.name);
        let shown = curve.points.iter().filter(|point| across.has(point.0));
        let places: Vec<_> = shown.map(|(x, y)| area.at(across.share(*x), up.share(*y))).collect();
        if figure.mark != Mark::Points {
            look.line(drawing, &places);
        }
        look.marks(drawing, &places);
    }
}

/// Draws grid lines and labels for the ticks of a horizontal axis.
fn upright_grid(drawing: &mut Drawing, axis: &Axis, area: &Area) {
    let places = axis.ticks().iter().map(|value| area.at(axis.share(*value), 0.0).0);
    drawing.lines("grid", places.map(|x| ((x, area.top), (x, area.bottom()))));
    ticks_below(drawing, axis, area);
}

/// Draws labels for the ticks of a horizontal axis, as far as they have room.
fn ticks_below(drawing: &mut Drawing, axis: &Axis, area: &Area) {
    let mut taken = f64::NEG_INFINITY;
    for value in axis.ticks() {
        let (x, y) = area.at(axis.share(*value), 0.0);
        let text = tick(*value);
        let half = width_of(&text, TEXT) / 2.0;
        drawing.lines("axis", std::iter::once(((x, y), (x, y + 4.0))));
        // The last label stays clear of the next panel.
        let is_last = x + half > area.left + area.width + GAP / 2.0 - 2.0;
        let (anchor, from) =
            if is_last { (Anchor::End, x - 2.0 * half) } else { (Anchor::Middle, x - half) };
        if from > taken + TICK_GAP {
            drawing.words((x, y + TEXT + 5.0), anchor, &text);
            taken = from + 2.0 * half;
        }
    }
    drawing.lines("axis", std::iter::once((area.at(0.0, 0.0), area.at(1.0, 0.0))));
}

/// Draws grid lines for the ticks of a vertical axis, with labels at the first panel.
fn lying_grid(drawing: &mut Drawing, axis: &Axis, area: &Area, is_first: bool) {
    let shares = axis.ticks().iter().map(|value| axis.share(*value));
    drawing.lines("grid", shares.map(|share| (area.at(0.0, share), area.at(1.0, share))));
    for value in axis.ticks().iter().filter(|_| is_first) {
        let (x, y) = area.at(0.0, axis.share(*value));
        drawing.words((x - TICK_GAP, y + TEXT / 3.0), Anchor::End, &tick(*value));
    }
}

#[cfg(test)]
mod tests;
