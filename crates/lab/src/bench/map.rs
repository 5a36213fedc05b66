//! `bench map`: the succinct trie as an index in memory, compared with other ordered maps (SuRF,
//! Figures 5 and 6).
//! ```text
//! sorted keys -> each map (ordered_maps.rs) -- the same gets and short scans, in turns --> times
//! ```
//! Keys are drawn as in YCSB: by Zipf's law, with hot keys scattered. Invariant: every answer of a
//! map is right, or the report counts it.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;

use crate::bench::caches::largest_cache;
use crate::bench::ordered_maps::{LookupKey, OrderedMap, builders, ended};
use crate::bench::rounds::rounds_ns;
use crate::error::{LabError, Result};
use crate::keys::dist::{Dist, FileFormat};
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, scramble};
use crate::keys::skew::{Places, Skew};
use crate::median::median;
use crate::progress::Progress;

/// Entries that a scan reads at least, and how many more at most.
const SCAN: (usize, u64) = (50, 51);
/// Gets per scan in a round, since a scan takes as long as many gets.
const GETS_PER_SCAN: usize = 10;

/// The keys, and the number of questions.
#[derive(Clone, Debug)]
pub struct MapPlan {
    /// Where the keys come from.
    pub dist: Dist,
    /// The format of a file of keys.
    pub file_format: FileFormat,
    /// How many keys; None: 1,000,000, or all of a file.
    pub keys: Option<usize>,
    /// Gets in a round. The number of scans is a tenth of it.
    pub queries: usize,
    /// The seed of keys and questions.
    pub seed: u64,
}

/// What `bench map` measured for one map. Field names are an interface.
#[derive(Clone, Debug, Serialize)]
pub struct MapReport {
    /// The map.
    pub map: &'static str,
    /// Where the keys come from.
    pub dist: String,
    /// How many there are.
    pub keys: u64,
    /// The mean length of a key, in bytes.
    pub key_bytes_mean: f64,
    /// Memory in bytes per key, without values.
    pub bytes_per_key: f64,
    /// The processor's largest cache. None: the system does not report it.
    pub cache_bytes: Option<u64>,
    /// Time to build the map, per key.
    pub build_ns_per_key: f64,
    /// Gets of stored keys.
    pub get: MapTimes,
    /// Scans: the first entry at or after a stored key, and 49 to 99 more.
    pub scan: MapTimes,
    /// Wrong answers. Must be 0.
    pub wrong_answers: u64,
}

/// Times of one kind of question.
#[derive(Clone, Debug, Serialize)]
pub struct MapTimes {
    /// Time of one question.
    pub ns_per_op: f64,
    /// The time in each round; maps take turns within a round.
    pub ns_per_op_rounds: Vec<f64>,
    /// Time multiplied by memory: the paper's cost, which weighs both equally.
    pub cost_ns_bytes: f64,
    /// The cost in each round.
    pub cost_ns_bytes_rounds: Vec<f64>,
}

impl MapTimes {
    fn of(rounds: Vec<f64>, bytes_per_key: f64) -> Self {
        let ns_per_op = median(&mut rounds.clone());
        let cost = |ns: f64| ns * bytes_per_key;
        MapTimes {
            ns_per_op,
            cost_ns_bytes: cost(ns_per_op),
            cost_ns_bytes_rounds: rounds.iter().copied().map(cost).collect(),
            ns_per_op_rounds: rounds,
        }
    }
}

/// A key to look up, its place, and how many entries a scan from there reads.
struct Question<'k> {
    place: usize,
    key: &'k [u8],
    ended: Box<[u8]>,
    count: usize,
}

impl Question<'_> {
    fn lookup_key(&self) -> LookupKey<'_> {
        LookupKey { key: self.key, ended: &self.ended }
    }
}

struct Built {
    name: &'static str,
    map: Box<dyn OrderedMap>,
    build_ns_per_key: f64,
}

/// Runs the benchmark; returns a row for each map.
pub fn bench_map(plan: &MapPlan, progress: &mut dyn Progress) -> Result<Vec<MapReport>> {
    if plan.queries < GETS_PER_SCAN {
        return Err(LabError::Plan(format!("--queries: at least {GETS_PER_SCAN}")));
    }
    let keys = KeySet::new(&plan.dist, plan.file_format, plan.keys, plan.seed)?;
    let (stored, count) = (keys.stored(), keys.stored().len());
    let is_numbers = stored.iter().all(|key| key.len() == size_of::<u64>());
    let makers = builders(is_numbers);
    progress.stage("building maps", makers.len() as u64);
    let mut maps = Vec::new();
    for (name, build) in makers {
        let start = Instant::now();
        let map = build(stored)?;
        let build_ns_per_key = start.elapsed().as_nanos() as f64 / count as f64;
        maps.push(Built { name, map, build_ns_per_key });
        progress.advance(1);
    }
    let mut rng = Rng::new(scramble(plan.seed ^ 1));
    let places = Places::new(Skew::YCSB, count);
    let draw = |_| {
        let place = places.draw(&mut rng);
        let key = stored.get(place);
        let ended = if is_numbers { key.into() } else { ended(key) };
        Question { place, key, ended, count: SCAN.0 + rng.below(SCAN.1) as usize }
    };
    let questions: Vec<Question<'_>> = (0..plan.queries).map(draw).collect();
    progress.stage("measuring", 2);
    let gets = rounds(&maps, &questions, |map, question| {
        black_box(map.get(question.lookup_key()));
    });
    progress.advance(1);
    let scans = &questions[..plan.queries / GETS_PER_SCAN];
    let scanned = rounds(&maps, scans, |map, question| {
        black_box(map.scan(question.lookup_key(), question.count));
    });
    progress.advance(1);
    let row = |(built, (gets, scanned)): (Built, (Vec<f64>, Vec<f64>))| {
        let bytes_per_key = built.map.key_bytes() as f64 / count as f64;
        let is_wrong = |question: &&Question<'_>| {
            let last = (question.place + question.count).min(count);
            let sum = (question.place as u64..last as u64).sum::<u64>();
            built.map.get(question.lookup_key()) != Some(question.place as u64)
                || built.map.scan(question.lookup_key(), question.count) != sum
        };
        MapReport {
            map: built.name,
            dist: keys.dist().to_string(),
            keys: count as u64,
            key_bytes_mean: stored.size_bytes() as f64 / count as f64,
            bytes_per_key,
            cache_bytes: largest_cache(),
            build_ns_per_key: built.build_ns_per_key,
            get: MapTimes::of(gets, bytes_per_key),
            scan: MapTimes::of(scanned, bytes_per_key),
            wrong_answers: scans.iter().filter(is_wrong).count() as u64,
        }
    };
    Ok(maps.into_iter().zip(gets.into_iter().zip(scanned)).map(row).collect())
}

/// Returns, for each map, the time of all questions in each round.
fn rounds(
    maps: &[Built],
    questions: &[Question<'_>],
    ask: impl Fn(&dyn OrderedMap, &Question<'_>),
) -> Vec<Vec<f64>> {
    let times = rounds_ns(maps.len(), |side| {
        questions.iter().for_each(|question| ask(&*maps[side].map, question));
        Ok::<_, Infallible>(questions.len() as u64)
    });
    times.unwrap_or_else(|never| match never {})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn every_map_gives_every_answer() {
        for dist in [Dist::Uniform64, Dist::Emails] {
            let plan = MapPlan {
                dist,
                file_format: FileFormat::Lines,
                keys: Some(5000),
                queries: 1000,
                seed: 3,
            };
            let reports = bench_map(&plan, &mut Silent).expect("measures");
            let bytes = |name: &str| {
                let report = reports.iter().find(|report| report.map == name);
                report.expect("it was measured").bytes_per_key
            };
            for report in &reports {
                assert_eq!(report.wrong_answers, 0, "{}, {}", report.map, report.dist);
                assert_eq!(report.get.ns_per_op_rounds.len(), 7, "{}", report.map);
                assert!(report.scan.ns_per_op > 0.0 && report.bytes_per_key > 0.0);
            }
            assert!(bytes("fst-prefixes") < bytes("fst").min(bytes("art")));
            assert!(bytes("sorted-array") < bytes("btree"));
            assert!(bench_map(&MapPlan { queries: 9, ..plan }, &mut Silent).is_err());
        }
    }
}
