//! The laws of numbers.
//! ```text
//! uniform      0 ------------------------------- 2^50
//! normal                  ...:::|||:::...               mean 100, deviation 20, scaled to 2^50
//! lognormal    |||::......                              log: mean 0, deviation 2, scaled to 2^50
//! clustered    |  :|:    .|.   :        |:   .|         1000 clusters of very different density
//! timestamps   .:|:. .:|:. .:|:. .:|:.                  days and bursts (bursts.rs)
//! borders      lines on a map (borders.rs)
//! networks     address ranges (networks.rs)
//! ```

use super::borders::Borders;
use super::bursts::Bursts;
use super::networks::Networks;
use super::weights::Weights;
use crate::keys::rng::Rng;

/// A law of numbers.
#[derive(Clone, Debug)]
pub(crate) enum NumberLaw {
    Uniform,
    Uniform64,
    Normal,
    Lognormal,
    Clustered(Clusters),
    Timestamps(Bursts),
    Borders(Borders),
    Networks(Networks),
}

pub(super) const KEY_BITS: u32 = 50;

pub(super) const SPACE: f64 = (1u64 << KEY_BITS) as f64;

const NORMAL_MEAN: f64 = 100.0;

const NORMAL_DEVIATION: f64 = 20.0;

/// Draws beyond this many standard deviations are repeated, so that the scale is fixed.
const DEVIATIONS_MAX: f64 = 6.0;

const LOGNORMAL_DEVIATION: f64 = 2.0;

impl NumberLaw {
    pub(super) fn clustered() -> Self {
        NumberLaw::Clustered(Clusters::new())
    }

    pub(super) fn timestamps() -> Self {
        NumberLaw::Timestamps(Bursts::new())
    }

    pub(super) fn borders() -> Self {
        NumberLaw::Borders(Borders::of_countries())
    }

    pub(super) fn coasts() -> Self {
        NumberLaw::Borders(Borders::of_coasts())
    }

    pub(super) fn networks() -> Self {
        NumberLaw::Networks(Networks::new())
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            NumberLaw::Uniform => rng.next_u64() >> (64 - KEY_BITS),
            NumberLaw::Uniform64 => rng.next_u64(),
            NumberLaw::Normal => {
                let drawn = NORMAL_MEAN + NORMAL_DEVIATION * bounded_normal(rng);
                let reach = NORMAL_DEVIATION * DEVIATIONS_MAX;
                ((drawn - (NORMAL_MEAN - reach)) / (2.0 * reach) * SPACE) as u64
            }
            NumberLaw::Lognormal => {
                let below_most = bounded_normal(rng) - DEVIATIONS_MAX;
                ((LOGNORMAL_DEVIATION * below_most).exp() * SPACE) as u64
            }
            NumberLaw::Clustered(clusters) => clusters.draw(rng),
            NumberLaw::Timestamps(bursts) => bursts.draw(rng),
            NumberLaw::Borders(borders) => borders.draw(rng),
            NumberLaw::Networks(networks) => networks.draw(rng),
        }
    }
}

fn bounded_normal(rng: &mut Rng) -> f64 {
    loop {
        let drawn = rng.normal();
        if drawn.abs() <= DEVIATIONS_MAX {
            return drawn;
        }
    }
}

/// A thousand clusters, each with a centre, a width and a share of the keys.
#[derive(Clone, Debug)]
pub(crate) struct Clusters {
    centres: Vec<u64>,
    scales: Vec<f64>,
    shares: Weights,
}

impl Clusters {
    const COUNT: usize = 1000;
    const SEED: u64 = 7;

    fn new() -> Self {
        let mut rng = Rng::new(Self::SEED);
        let mut clusters = Clusters { centres: vec![], scales: vec![], shares: Weights::default() };
        for _ in 0..Self::COUNT {
            clusters.centres.push(rng.next_u64() >> (64 - KEY_BITS));
            clusters.scales.push((18.0 + 20.0 * rng.unit()).exp2());
            clusters.shares.push(-(1.0 - rng.unit()).ln());
        }
        clusters
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let place = self.shares.draw(rng);
        let distance = (self.scales[place] * rng.normal().exp()) as u64;
        self.centres[place].saturating_add(distance)
    }
}
