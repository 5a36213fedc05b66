//! An axis: its ends, and its ticks.
//!
//! Invariant: a number that the axis cannot show, such as zero on a logarithmic one, is drawn at
//! the lower end.

use crate::experiment::figure::AxisScale;

/// An axis of a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    scale: AxisScale,
    from: f64,
    to: f64,
    ticks: Vec<f64>,
}

/// The desired number of ticks.
const TICKS: f64 = 6.0;
/// A share of a step, or a factor beside 1, that rounding may cause.
const NOTHING: f64 = 1e-9;

impl Axis {
    /// Chooses the axis for these numbers. `from_zero`: a linear axis begins at zero or below.
    pub(crate) fn of(scale: AxisScale, numbers: &[f64], from_zero: bool) -> Self {
        let usable =
            |number: &&f64| number.is_finite() && (scale == AxisScale::Linear || **number > 0.0);
        let least = numbers.iter().filter(usable).copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().filter(usable).copied().fold(f64::NEG_INFINITY, f64::max);
        let (least, most) = if least > most { (1.0, 10.0) } else { (least, most) };
        match scale {
            AxisScale::Linear => Self::even(if from_zero { least.min(0.0) } else { least }, most),
            AxisScale::Log => Self::by_tens(least, most),
        }
    }

    fn even(least: f64, most: f64) -> Self {
        let span = if most > least { most - least } else { most.abs().max(1.0) };
        let step = round_step(span / TICKS);
        let first = (least / step + NOTHING).floor() as i64;
        let last = ((least + span) / step - NOTHING).ceil() as i64;
        let ticks: Vec<f64> = (first..=last).map(|nth| nth as f64 * step).collect();
        Axis { scale: AxisScale::Linear, from: first as f64 * step, to: last as f64 * step, ticks }
    }

    /// A logarithmic axis, from the tick at or below all numbers to the one at or above them.
    fn by_tens(least: f64, most: f64) -> Self {
        let factors: &[f64] = match (most / least).log10() {
            tens if tens < 1.0 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            tens if tens < 2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let powers = least.log10().floor() as i32..=most.log10().ceil() as i32 + 1;
        let places: Vec<f64> =
            powers.flat_map(|power| factors.iter().map(move |by| by * 10f64.powi(power))).collect();
        let below = places.iter().rposition(|place| *place <= least * (1.0 + NOTHING));
        let above = places.iter().position(|place| *place >= most * (1.0 - NOTHING));
        let first = below.unwrap_or(0);
        let last = above.unwrap_or(places.len() - 1).max(first + 1);
        let shown = &places[first..=last];
        let every = (shown.len() as f64 / (TICKS + 2.0)).ceil() as usize;
        let ticks = shown.iter().copied().step_by(every.max(1)).collect();
        Axis { scale: AxisScale::Log, from: shown[0], to: shown[shown.len() - 1], ticks }
    }

    /// Returns the ticks.
    pub(crate) fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    /// Whether the axis can show a number.
    pub(crate) fn has(&self, number: f64) -> bool {
        self.scale == AxisScale::Linear || number > 0.0
    }

    /// Returns the position of a number: 0 at the lower end, 1 at the upper end.
    pub(crate) fn share(&self, number: f64) -> f64 {
        let place = |number: f64| match self.scale {
            AxisScale::Linear => number,
            AxisScale::Log => number.max(self.from).log10(),
        };
        (place(number) - place(self.from)) / (place(self.to) - place(self.from))
    }
}

/// Returns the least of 1, 2 or 5 times a power of ten that is at least `at_least`.
fn round_step(at_least: f64) -> f64 {
    let power = 10f64.powf(at_least.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let fits = factors.into_iter().find(|by| by * power >= at_least * (1.0 - 1e-9));
    power * fits.unwrap_or(10.0)
}
