//! Where keys come from: distributions by name, and how a draw is made.
//! ```text
//! uniform      0 ------------------------------- 2^50
//! normal                  ...:::|||:::...               mean 100, deviation 20, scaled to 2^50
//! lognormal    |||::......                              logarithm: mean 0, deviation 2, scaled to 2^50
//! clustered    |  :|:    .|.   :        |:   .|         1000 clusters of very different density
//! ids          ||||||||.||||||.|||                       0, 1, 2, ... without one in eleven
//! ```
//! Invariant: the clusters are the same for every seed; a seed changes the draws alone.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::LabError;
use crate::rng::Rng;

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dist {
    /// 50 random bits.
    Uniform,
    /// A normal distribution over 2^50 (GRF paper, section 6.1).
    Normal,
    /// A lognormal distribution over 2^50 (as in SOSD).
    Lognormal,
    /// A thousand clusters; their widths span six orders of magnitude.
    Clustered,
    /// Numbers from 0 on; one in eleven, at random, is not stored.
    Ids,
    /// The keys that ship with Trommel: vertices of borders and coasts.
    NaturalEarth,
    /// The keys of a file; every eighth is held out.
    File(PathBuf),
}

const NAMED: [(&str, Dist); 6] = [
    ("uniform", Dist::Uniform),
    ("normal", Dist::Normal),
    ("lognormal", Dist::Lognormal),
    ("clustered", Dist::Clustered),
    ("ids", Dist::Ids),
    ("natural-earth", Dist::NaturalEarth),
];

impl fmt::Display for Dist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dist::File(path) => write!(f, "file:{}", path.display()),
            named => {
                let known = NAMED.iter().find(|(_, dist)| dist == named);
                f.write_str(known.map_or("", |(name, _)| name))
            }
        }
    }
}

impl FromStr for Dist {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        if let Some(path) = name.strip_prefix("file:").filter(|path| !path.is_empty()) {
            return Ok(Dist::File(path.into()));
        }
        let found = NAMED.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, dist)| dist).ok_or_else(|| {
            let known = NAMED.map(|(name, _)| name).join(", ");
            LabError::Plan(format!(
                "there is no distribution '{name}'; there are: {known}, file:PATH"
            ))
        })
    }
}

/// How a file of keys is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// One key per line.
    Lines,
    /// Numbers of eight bytes, little-endian.
    U64le,
}

impl FileFormat {
    /// Every format there is.
    pub const ALL: [FileFormat; 2] = [FileFormat::Lines, FileFormat::U64le];

    /// The name that people write.
    pub fn name(self) -> &'static str {
        match self {
            FileFormat::Lines => "lines",
            FileFormat::U64le => "u64le",
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FileFormat {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(FileFormat::name).join(", ");
            LabError::Plan(format!("there is no file format '{name}'; there are: {known}"))
        })
    }
}

/// Draws numbers from a generated distribution.
#[derive(Clone, Debug)]
pub(crate) enum Sampler {
    Uniform,
    Normal,
    Lognormal,
    Clustered(Clusters),
}

const KEY_BITS: u32 = 50;
const SPACE: f64 = (1u64 << KEY_BITS) as f64;
const NORMAL_MEAN: f64 = 100.0;
const NORMAL_DEVIATION: f64 = 20.0;
/// Draws further out than this many deviations are drawn again, so that the scale is fixed.
const DEVIATIONS_MAX: f64 = 6.0;
const LOGNORMAL_DEVIATION: f64 = 2.0;

impl Sampler {
    /// None: the distribution is a set of keys, not a rule.
    pub(crate) fn of(dist: &Dist) -> Option<Self> {
        match dist {
            Dist::Uniform => Some(Sampler::Uniform),
            Dist::Normal => Some(Sampler::Normal),
            Dist::Lognormal => Some(Sampler::Lognormal),
            Dist::Clustered => Some(Sampler::Clustered(Clusters::new())),
            Dist::Ids | Dist::NaturalEarth | Dist::File(_) => None,
        }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Sampler::Uniform => rng.next_u64() >> (64 - KEY_BITS),
            Sampler::Normal => {
                let drawn = NORMAL_MEAN + NORMAL_DEVIATION * bounded_normal(rng);
                let reach = NORMAL_DEVIATION * DEVIATIONS_MAX;
                ((drawn - (NORMAL_MEAN - reach)) / (2.0 * reach) * SPACE) as u64
            }
            Sampler::Lognormal => {
                let below_most = bounded_normal(rng) - DEVIATIONS_MAX;
                ((LOGNORMAL_DEVIATION * below_most).exp() * SPACE) as u64
            }
            Sampler::Clustered(clusters) => clusters.draw(rng),
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

/// A thousand places, each with a width and a share of the keys.
#[derive(Clone, Debug)]
pub(crate) struct Clusters {
    centres: Vec<u64>,
    scales: Vec<f64>,
    /// Sum of the weights up to and including each cluster.
    weights: Vec<f64>,
}

impl Clusters {
    const COUNT: usize = 1000;
    const SEED: u64 = 7;

    fn new() -> Self {
        let mut rng = Rng::new(Self::SEED);
        let mut clusters = Clusters { centres: vec![], scales: vec![], weights: vec![] };
        let mut weight_sum = 0.0;
        for _ in 0..Self::COUNT {
            clusters.centres.push(rng.next_u64() >> (64 - KEY_BITS));
            clusters.scales.push((18.0 + 20.0 * rng.unit()).exp2());
            weight_sum += -(1.0 - rng.unit()).ln();
            clusters.weights.push(weight_sum);
        }
        clusters
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let share = rng.unit() * self.weights[Self::COUNT - 1];
        let place = self.weights.partition_point(|sum| *sum <= share).min(Self::COUNT - 1);
        let distance = (self.scales[place] * rng.normal().exp()) as u64;
        self.centres[place].saturating_add(distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_unknown_ones_list_the_known() {
        for name in NAMED.map(|(name, _)| name).into_iter().chain(["file:a/b"]) {
            assert_eq!(name.parse::<Dist>().expect("known").to_string(), name);
        }
        for unknown in ["zipf", "file:", ""] {
            let message = unknown.parse::<Dist>().expect_err("unknown").to_string();
            assert!(message.contains("uniform, normal, lognormal, clustered"), "{message}");
        }
        let message = "u32".parse::<FileFormat>().expect_err("unknown").to_string();
        assert!(message.contains("lines, u64le"), "{message}");
    }

    fn draws(dist: Dist, count: usize) -> Vec<u64> {
        let (sampler, mut rng) = (Sampler::of(&dist).expect("a rule"), Rng::new(1));
        let mut drawn: Vec<u64> = (0..count).map(|_| sampler.draw(&mut rng)).collect();
        drawn.sort_unstable();
        drawn
    }

    #[test]
    fn draws_have_their_shape() {
        let uniform = draws(Dist::Uniform, 10_001);
        assert!((uniform[5000] as f64 / SPACE - 0.5).abs() < 0.03);
        let normal = draws(Dist::Normal, 10_001);
        assert!((normal[5000] as f64 / SPACE - 0.5).abs() < 0.01);
        assert!((normal[8413] as f64 / SPACE - (0.5 + 1.0 / 12.0)).abs() < 0.01);
        let lognormal = draws(Dist::Lognormal, 10_001);
        let median = lognormal[5000] as f64 / SPACE;
        assert!((median.ln() + 12.0).abs() < 0.1, "{median}");
        assert!(lognormal[10_000] < 1 << KEY_BITS);
    }

    #[test]
    fn gaps_of_clustered_keys_span_orders_of_magnitude() {
        let drawn = draws(Dist::Clustered, 200_000);
        let mut gaps: Vec<u64> = drawn.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        let (low, high) = (gaps[gaps.len() / 10].max(1), gaps[gaps.len() * 9 / 10]);
        assert!(high / low > 10_000, "{low} to {high}");
    }
}
