//! The legend: names of curves, in lines as wide as the picture.

use crate::experiment::chart::drawing::{Anchor, Drawing, Spot};
use crate::experiment::chart::look::Look;
use crate::experiment::chart::words::width_of;
use crate::experiment::chart::{LINE, MARGIN, TEXT, WIDTH};
use crate::experiment::figure::{Figure, Mark};

/// The width of the sample before a name, and of the space behind the sample.
const SAMPLE: f64 = 32.0;
const SAMPLE_GAP: f64 = 7.0;
/// The width of a sample that is only a mark.
const MARK_SAMPLE: f64 = 18.0;
/// The space behind a name.
const GAP: f64 = 20.0;

/// The names with their positions.
pub(crate) struct Legend<'a> {
    /// Each name with its index among all, and its offset to the right and down.
    names: Vec<(&'a str, usize, Spot)>,
    lines: usize,
    mark: Mark,
    sample: f64,
}

impl<'a> Legend<'a> {
    pub(crate) fn of(figure: &'a Figure) -> Self {
        let mark = match (figure.mark, &figure.x_names) {
            (Mark::Lines, Some(_)) => Mark::Points,
            (mark, _) => mark,
        };
        let sample = if mark == Mark::Lines { SAMPLE } else { MARK_SAMPLE };
        let (mut x, mut line) = (MARGIN, 0);
        let mut names = Vec::new();
        // A single curve without a name needs no legend.
        for (place, name) in figure.curve_names.iter().enumerate().filter(|one| !one.1.is_empty()) {
            let own = sample + SAMPLE_GAP + width_of(name, TEXT);
            if x > MARGIN && x + own > WIDTH - MARGIN {
                (x, line) = (MARGIN, line + 1);
            }
            names.push((name.as_str(), place, (x, line as f64 * LINE)));
            x += own + GAP;
        }
        let lines = if names.is_empty() { 0 } else { line + 1 };
        Legend { names, lines, mark, sample }
    }

    /// Draws the legend below `top`. Returns its lower end.
    pub(crate) fn draw(&self, drawing: &mut Drawing, top: f64) -> f64 {
        for (name, place, (x, down)) in &self.names {
            let (look, y) = (Look::of(*place), top + down + LINE / 2.0);
            let end = x + self.sample;
            match self.mark {
                Mark::Bars => look.boxes(drawing, std::iter::once(((*x, y - 6.0), (end, y + 6.0)))),
                Mark::Points => look.marks(drawing, &[(x + self.sample / 2.0, y)]),
                Mark::Lines => {
                    look.line(drawing, &[(*x, y), (end, y)]);
                    look.marks(drawing, &[(x + self.sample / 2.0, y)]);
                }
            }
            let at = (end + SAMPLE_GAP, y + TEXT / 3.0);
            drawing.words(at, Anchor::Start, name);
        }
        let after = if self.lines == 0 { 0.0 } else { LINE / 2.0 };
        top + self.lines as f64 * LINE + after
    }
}
