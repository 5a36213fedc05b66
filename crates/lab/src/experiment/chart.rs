//! A figure as a picture (SVG).
//! ```text
//! --o-- grf   --^-- bloom        one legend for all panels
//! +---------+ +---------+
//! | panel   | | panel   |        three in a row at most
//! +---------+ +---------+
//! ```
//! Invariants: a name has the same colour, mark and line in all panels. Colours are those of Okabe
//! and Ito, which colour-blind readers can tell apart; marks differ, too.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::experiment::figure::{Figure, Mark, Panel};
use crate::experiment::number::tick;
use crate::experiment::ticks::Axis;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Of the whole picture, in pixels.
type Pixel = (i32, i32);
type DrawResult = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const FONT: &str = "sans-serif";
const TEXT: i32 = 13;
const PANEL_HEIGHT: u32 = 320;
const COLUMNS_MAX: usize = 3;
const LEGEND_LINE: u32 = 22;
/// Of a letter in the legend, and of the mark before a name.
const LETTER: u32 = 8;
const SAMPLE: u32 = 42;
const LEGEND_LEFT: u32 = 24;
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];
/// Of a name's place on the x axis, by all bars together.
const BARS_WIDTH: f64 = 0.8;

/// The picture. None: there is nothing to draw.
pub(crate) fn svg(figure: &Figure) -> Option<String> {
    if figure.panels.is_empty() {
        return None;
    }
    let mut out = String::new();
    draw(figure, &mut out).expect("a string takes everything that is drawn");
    Some(out)
}

fn draw(figure: &Figure, out: &mut String) -> DrawResult {
    let columns = figure.panels.len().min(COLUMNS_MAX);
    let rows = figure.panels.len().div_ceil(columns);
    let panel_width = [700, 480, 400][columns - 1];
    let width = columns as u32 * panel_width;
    let legend = Legend::of(figure, width);
    let height = legend.height() + rows as u32 * PANEL_HEIGHT;
    let root = SVGBackend::with_string(out, (width, height)).into_drawing_area();
    root.fill(&WHITE)?;
    legend.draw(&root, &figure.curve_names)?;
    let (_, body) = root.split_vertically(legend.height());
    let axes = Axes::of(figure);
    for (panel, area) in figure.panels.iter().zip(body.split_evenly((rows, columns))) {
        draw_panel(figure, panel, &axes, &area, &root)?;
    }
    root.present()
}

/// The axes that all panels share, so that they can be compared.
struct Axes {
    x: Axis,
    y: Axis,
    turned: bool,
}

impl Axes {
    fn of(figure: &Figure) -> Self {
        let points =
            || figure.panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points);
        let ys: Vec<f64> = points().map(|point| point.1).collect();
        let y = Axis::of(figure.y_scale, &ys, true);
        let Some(names) = &figure.x_names else {
            let xs: Vec<f64> = points().map(|point| point.0).collect();
            return Axes { x: Axis::of(figure.x_scale, &xs, false), y, turned: false };
        };
        let x = Axis::of_names(names.len());
        let letters: usize = names.iter().map(|name| name.len() + 2).sum();
        Axes { x, y, turned: letters > 48 }
    }
}

fn draw_panel(
    figure: &Figure,
    panel: &Panel,
    axes: &Axes,
    area: &Area<'_>,
    root: &Area<'_>,
) -> DrawResult {
    let Axes { x, y, turned } = axes;
    let names = figure.x_names.as_deref();
    let longest = names.unwrap_or_default().iter().map(String::len).max().unwrap_or(0) as u32;
    let below = if *turned { 34 + longest * 7 } else { 46 };
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, (FONT, TEXT + 2))
        .margin(10)
        .x_label_area_size(below.min(PANEL_HEIGHT / 2))
        .y_label_area_size(68)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let name = |place: &f64| {
        if *turned {
            return String::new(); // see `draw_turned`
        }
        names.map_or_else(
            || tick(*place),
            |names| names.get(place.round() as usize).cloned().unwrap_or_default(),
        )
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(RGBColor(205, 205, 205))
        .light_line_style(TRANSPARENT)
        .axis_style(RGBColor(90, 90, 90))
        .x_desc(&figure.x_label)
        .y_desc(&figure.y_label)
        .axis_desc_style((FONT, TEXT))
        .x_label_style((FONT, TEXT))
        .y_label_style((FONT, TEXT))
        .x_label_formatter(&name)
        .draw()?;
    let at = |point: (f64, f64)| chart.backend_coord(&point);
    if *turned {
        let bottom = chart.plotting_area().get_pixel_range().1.end;
        let places = (0..).map(|place: u32| (at((f64::from(place), 0.0)).0, bottom));
        draw_turned(names.unwrap_or_default(), places, root)?;
    }
    for curve in &panel.curves {
        let look = Look::of(curve.name);
        let shown = curve.points.iter().filter(|point| axes.x.has(point.0));
        match figure.mark {
            Mark::Bars => {
                let of = figure.curve_names.len() as f64;
                let width = BARS_WIDTH / of;
                for (x, y) in shown {
                    let left = x - BARS_WIDTH / 2.0 + width * curve.name as f64;
                    let (low, high) = (at((left, 0.0)), at((left + width * 0.92, *y)));
                    root.draw(&Rectangle::new([low, high], look.colour.filled()))?;
                }
            }
            Mark::Lines | Mark::Points => {
                let places: Vec<Pixel> = shown.map(|point| at(*point)).collect();
                if figure.mark == Mark::Lines {
                    look.line(root, places.clone())?;
                }
                places.into_iter().try_for_each(|place| look.mark(root, place))?;
            }
        }
    }
    Ok(())
}

/// Names below an axis, from it downwards: the axis itself would put the middle of each on it.
fn draw_turned(
    names: &[String],
    places: impl Iterator<Item = Pixel>,
    root: &Area<'_>,
) -> DrawResult {
    const GAP: i32 = 8;
    let font = (FONT, TEXT).into_font().transform(FontTransform::Rotate90);
    let style = TextStyle::from(font).pos(Pos::new(HPos::Left, VPos::Center));
    names.iter().zip(places).try_for_each(|(name, (x, y))| {
        root.draw(&Text::new(name.as_str(), (x, y + GAP), style.clone()))
    })
}

/// The colour, mark and line of a name.
struct Look {
    colour: RGBColor,
    mark: usize,
    is_dashed: bool,
}

impl Look {
    fn of(name: usize) -> Self {
        let is_dashed = !(name / COLOURS.len()).is_multiple_of(2);
        Look { colour: COLOURS[name % COLOURS.len()], mark: name % 4, is_dashed }
    }

    fn line(&self, root: &Area<'_>, places: Vec<Pixel>) -> DrawResult {
        let style = self.colour.stroke_width(2);
        match self.is_dashed {
            false => root.draw(&PathElement::new(places, style)),
            true => root.draw(&DashedPathElement::new(places, 6, 4, style)),
        }
    }

    fn mark(&self, root: &Area<'_>, (x, y): Pixel) -> DrawResult {
        let filled = self.colour.filled();
        match self.mark {
            0 => root.draw(&Circle::new((x, y), 4, filled)),
            1 => root.draw(&TriangleMarker::new((x, y), 6, filled)),
            2 => root.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], filled)),
            _ => root.draw(&Cross::new((x, y), 4, self.colour.stroke_width(2))),
        }
    }
}

/// The names of curves, in lines as wide as the picture.
struct Legend<'a> {
    names: Vec<(&'a str, Pixel)>,
    lines: u32,
    is_bars: bool,
}

impl<'a> Legend<'a> {
    fn of(figure: &'a Figure, width: u32) -> Self {
        let (mut x, mut line) = (LEGEND_LEFT, 0);
        let mut names = Vec::new();
        // One curve without a name needs no legend.
        for name in figure.curve_names.iter().filter(|name| !name.is_empty()) {
            let own = SAMPLE + LETTER * name.chars().count() as u32 + LETTER * 2;
            if x > LEGEND_LEFT && x + own > width {
                (x, line) = (LEGEND_LEFT, line + 1);
            }
            names.push((name.as_str(), (x as i32, (line * LEGEND_LINE + LEGEND_LINE / 2) as i32)));
            x += own;
        }
        let lines = if names.is_empty() { 0 } else { line + 1 };
        Legend { names, lines, is_bars: figure.mark == Mark::Bars }
    }

    fn height(&self) -> u32 {
        self.lines * LEGEND_LINE + LEGEND_LINE / 2
    }

    fn draw(&self, root: &Area<'_>, all: &[String]) -> DrawResult {
        for (name, (x, y)) in &self.names {
            let place = all.iter().position(|known| known == name).unwrap_or(0);
            let (look, half) = (Look::of(place), SAMPLE as i32 / 2);
            if self.is_bars {
                let corners = [(x + half - 10, y - 6), (x + half + 8, y + 6)];
                root.draw(&Rectangle::new(corners, look.colour.filled()))?;
            } else {
                look.line(root, vec![(*x, *y), (x + SAMPLE as i32 - 8, *y)])?;
                look.mark(root, (x + half - 4, *y))?;
            }
            let style =
                (FONT, TEXT).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
            root.draw(&Text::new(name.to_string(), (x + SAMPLE as i32, *y), style))?;
        }
        Ok(())
    }
}
