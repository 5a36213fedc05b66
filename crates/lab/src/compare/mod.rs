//! `bench compare`: this store and other engines, with the same keys and questions, in rounds that
//! take turns.
//! ```text
//! shape `default`   each fills its store in random order and merges as it likes, in turns
//! shape `runs`      each is given the same keys in the same sorted runs
//!
//! fill -> check every answer (and warm the caches) -> timed rounds -> p99 pass -> report
//! ```
//! Invariant: a store is timed after every answer was checked. The report has the number of wrong
//! answers.

mod asking;
mod folders;
mod history;
mod large_value;
mod own_tree;
mod packed_data;
mod packing;
mod peer;
mod peer_packing;
mod stores_plan;
mod transactional;
mod trommel;
mod trommel_transactions;
mod values;

pub(crate) use folders::{make_empty, remove};
pub use history::check_peer;
pub use own_tree::OwnTree;
pub use packed_data::PackedData;
pub use packing::{CompressionPlan, CompressionReport, bench_compression};
pub(crate) use peer::find_all;
pub use peer::{Contender, Engine, Peer, PeerCounts, PeerSettings, PeerShape, RunLoad, WriteEntry};
pub use peer_packing::PeerPacking;
pub use stores_plan::StoresPlan;
pub use transactional::{Attempt, OpenTransaction, Space, TransactionWork, TransactionalStore};
pub use trommel::Trommel;
pub use values::{ValuesPlan, ValuesReport, ValuesStep, bench_values};

use std::path::{Path, PathBuf};
use std::time::Instant;

use ::trommel::options::FilterTuning;
use ::trommel::{Options, Policy};
use ::trommel_guards::ElasticOptions;
use serde::{Deserialize, Serialize};

use crate::bench::readers::cpu_time;
use crate::bench::rounds::{ROUNDS, medians_ns};
use crate::compare::asking::{PeerQueries, count_wrong_entries};
use crate::error::{LabError, Result};
use crate::keys::dist::FileFormat;
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::KeySet;
use crate::keys::rng::{Rng, random_order, scramble};
use crate::keys::values::fill_value;
use crate::median::median;
use crate::progress::Progress;
use crate::questions::queries::{Kind, Queries};
use crate::questions::unanswered::Ask;
use crate::tree_plan::{PartsPlan, TreePlan};

/// What to compare. Field names are an interface: the process with other engines receives this as
/// JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComparePlan {
    /// The stores; times are given relative to the first one.
    pub contenders: Vec<Contender>,
    /// The shape of the trees: `default` or `runs`.
    pub shape: ShapeName,
    /// How many keys; None: 1,000,000, or all of a set.
    pub keys: Option<usize>,
    /// Where they come from.
    pub dist: String,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Memory of filters, in bits per key.
    pub bits_per_key: f64,
    /// Capacity of the block cache; None: more than the data takes.
    pub block_cache_bytes: Option<usize>,
    /// T of shape `runs`: the tree has three levels, with T - 1 runs in each but the last.
    pub size_ratio: u32,
    /// Further questions that no stored key answers.
    pub asks: Vec<Ask>,
    /// Questions of each kind per round.
    pub queries: usize,
    /// How many neighbouring keys a range spans.
    pub range_width: u64,
    /// How often each store of shape `default` is filled, in turns; the last one is asked.
    pub loads: usize,
    /// Seed of keys and questions.
    pub seed: u64,
    /// The folder of the stores: each store has a folder in it.
    pub folder: PathBuf,
}

/// The shape of the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShapeName {
    /// Each engine's default.
    Default,
    /// The same keys in the same sorted runs.
    Runs,
}

/// What was measured of one store. Fields that `bench read` has, too, have the same names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompareReport {
    /// The engine.
    pub engine: String,
    /// Its filter.
    pub guard: String,
    /// All settings, and the engine's version.
    pub settings: String,
    /// The shape of the tree.
    pub shape: ShapeName,
    /// How many keys the store holds.
    pub keys: u64,
    /// How many sorted runs there are; None: the engine has none.
    pub runs: Option<u64>,
    /// How many runs are planned; None: as many as the engine likes.
    pub runs_planned: Option<u64>,
    /// The filters' memory in bits per key.
    pub guard_bits_per_key: Option<f64>,
    /// Where the keys come from.
    pub dist: String,
    /// The seed of keys and questions.
    pub seed: u64,
    /// How many neighbouring keys a range spans.
    pub range_width: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// The cost of filling the store.
    pub load: FillReport,
    /// Wrong answers. Must be 0.
    pub false_negatives: u64,
    /// Gets of keys that are not stored.
    pub point_miss: AnswerReport,
    /// Gets of stored keys.
    pub point_hit: AnswerReport,
    /// Ranges without a stored key; each asks for the first key.
    pub empty_range: AnswerReport,
    /// Seeks: the first key at or after a key.
    pub seek: AnswerReport,
    /// Seeks, each followed by fifty more keys.
    pub seek_next_50: AnswerReport,
    /// Further questions that no stored key answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<EmptyQueryAnswer>,
}

/// The cost of one kind of question that no stored key answers. A prefix is asked for as a
/// half-open range, up to the least string above all strings that begin with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EmptyQueryAnswer {
    /// The kind of question.
    pub question: String,
    /// The cost of one question.
    #[serde(flatten)]
    pub answer: AnswerReport,
}

impl CompareReport {
    /// Returns the kinds with their names, in the order of the fields.
    pub fn kinds(&self) -> [(&'static str, &AnswerReport); 5] {
        [
            ("point_miss", &self.point_miss),
            ("point_hit", &self.point_hit),
            ("empty_range", &self.empty_range),
            ("seek", &self.seek),
            ("seek_next_50", &self.seek_next_50),
        ]
    }
}

/// The cost of filling a store in random order, put by put. Of several fills, the medians.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FillReport {
    /// Time until no background work was left.
    pub seconds: f64,
    /// Puts per second, until the last put returned.
    pub ops_per_s: f64,
    /// The same as nanoseconds per put.
    pub ns_per_op: f64,
    /// `seconds` of all fills, in the order of the fills.
    pub seconds_of_all: Vec<f64>,
    /// `ns_per_op` of all fills.
    pub ns_per_op_of_all: Vec<f64>,
}

/// The cost of one kind of question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AnswerReport {
    /// Questions per round.
    pub ops: u64,
    /// Time per question: the median of the rounds.
    pub ns_per_op: f64,
    /// CPU time per question of the asking thread. If everything is cached and the machine is idle,
    /// it equals `ns_per_op`.
    pub cpu_ns_per_op: f64,
    /// The 99th percentile, from a pass that reads the clock around each question.
    pub ns_p99: f64,
}

/// The kinds of questions, in the order of the report's fields.
const KINDS: [Kind; 5] =
    [Kind::PointMiss, Kind::PointHit, Kind::EmptyRange, Kind::Seek, Kind::SeekNext50];

/// Levels of a tree of shape `runs`.
const LEVELS: u32 = 3;
/// An upper bound of the memory of an entry in a cached block, beside key and value.
const ENTRY_OVERHEAD: usize = 128;

/// A filled store, and its results so far.
struct FilledPeer {
    contender: Contender,
    peer: Box<dyn Peer>,
    load: FillReport,
    wrong: u64,
    answers: Vec<AnswerReport>,
}

/// Runs the comparison. The stores stay in `plan.folder`.
pub fn bench_compare(
    plan: &ComparePlan,
    engines: &[Box<dyn Engine>],
    progress: &mut dyn Progress,
) -> Result<Vec<CompareReport>> {
    let (openers, contenders) = find_all(&plan.contenders, engines)?;
    let plan = &ComparePlan { contenders, ..plan.clone() };
    check(plan)?;
    progress.stage("drawing keys and queries", 1);
    let keys = KeySet::new(&plan.dist.parse()?, FileFormat::Lines, plan.keys, plan.seed)?;
    if plan.shape == ShapeName::Runs {
        plan.tree().check(keys.stored().len())?;
    }
    let queries = draw(plan, &keys)?;
    progress.advance(1);
    let mut sides = fill_sides(plan, &openers, keys.stored(), progress)?;
    progress.stage("checking answers", (sides.len() * (queries.len() + 1)) as u64);
    for side in &mut sides {
        side.wrong += count_wrong_entries(side.peer.as_ref(), keys.stored(), plan.value_bytes)?;
        progress.advance(1);
        for queries in &queries {
            side.wrong +=
                queries.count_wrong(side.peer.as_ref(), keys.stored(), plan.value_bytes)?;
            progress.advance(1);
        }
    }
    measure(&mut sides, &queries, progress)?;
    sides.into_iter().map(|side| report(side, plan, &keys)).collect()
}

/// Draws the questions of each kind.
fn draw(plan: &ComparePlan, keys: &KeySet) -> Result<Vec<PeerQueries>> {
    Ask::check(&plan.asks, keys.dist())?;
    let (count, width) = (plan.queries, plan.range_width);
    let mut rng = Rng::new(scramble(plan.seed ^ 1));
    let kinds = KINDS.into_iter().map(|kind| Queries::draw(kind, keys, count, width, &mut rng));
    // Each further kind has its own generator, so its questions do not depend on the others.
    let rng = || Rng::new(scramble(plan.seed ^ 9));
    let asks = plan.asks.iter().map(|ask| ask.draw_some(keys, count, width, &mut rng()));
    kinds.chain(asks).map(|drawn| Ok(PeerQueries::new(drawn?, keys.stored()))).collect()
}

fn check(plan: &ComparePlan) -> Result<()> {
    let wrong = |problem: &str| Err(LabError::Plan(problem.to_string()));
    if plan.queries == 0 || plan.loads == 0 || plan.keys == Some(0) {
        return wrong("a key, a question and a load are the least to measure");
    }
    Ok(())
}

impl ComparePlan {
    /// Returns the tree of shape `runs`, just before a merge into its last level.
    fn tree(&self) -> TreePlan {
        TreePlan {
            size_ratio: self.size_ratio,
            policy: Policy::lazy_leveling(),
            levels: LEVELS,
            fill: self.size_ratio.saturating_sub(1),
            value_bytes: self.value_bytes,
            bits_per_key: self.bits_per_key,
            monkey: false,
            point_bits: 0,
            filter: FilterTuning::default(),
            elastic: ElasticOptions::default(),
            block_cache_bytes: self.block_cache_bytes,
            table_bytes: None,
            parts: PartsPlan::default(),
            seed: self.seed,
            synced: true,
            direct: false,
        }
    }

    fn settings(&self, keys: &SortedKeys) -> PeerSettings {
        let data_bytes = keys.size_bytes() + keys.len() * (self.value_bytes + ENTRY_OVERHEAD);
        PeerSettings {
            bits_per_key: self.bits_per_key,
            block_cache_bytes: self.block_cache_bytes.unwrap_or(2 * data_bytes),
            write_buffer_bytes: Options::default().write_buffer_bytes,
            merge_threads: 1,
            direct: false,
            synced: true,
            packing: PeerPacking::NONE,
            values_apart_from: None,
            value_garbage_share: None,
            shape: match self.shape {
                ShapeName::Default => PeerShape::Default(OwnTree::default()),
                ShapeName::Runs => PeerShape::Runs(self.tree()),
            },
        }
    }
}

/// Fills all stores in turns, `plan.loads` times if filling is compared. The last fill's stores
/// stay open.
fn fill_sides(
    plan: &ComparePlan,
    openers: &[&dyn Engine],
    keys: &SortedKeys,
    progress: &mut dyn Progress,
) -> Result<Vec<FilledPeer>> {
    let loads = if plan.shape == ShapeName::Default { plan.loads } else { 1 };
    let order = random_order(keys.len(), plan.seed);
    let mut filled: Vec<Vec<Filled>> = openers.iter().map(|_| Vec::new()).collect();
    for _ in 0..loads {
        for (place, one) in plan.contenders.iter().enumerate() {
            let folder = plan.folder.join(one.folder_name());
            if let Some(before) = filled[place].last_mut().and_then(|last| last.peer.take()) {
                before.close()?;
                remove(&folder)?;
            }
            progress.stage(&format!("filling {} with {}", one.engine, one.filter), 1);
            let peer = open_new(openers[place], &folder, &one.filter, &plan.settings(keys))?;
            filled[place].push(fill(peer, plan, keys, &order)?);
            progress.advance(1);
        }
    }
    let sides = plan.contenders.iter().zip(filled);
    Ok(sides.map(|(one, filled)| side(one.clone(), filled)).collect())
}

/// A filled store, until it is closed, and the times of filling it.
struct Filled {
    peer: Option<Box<dyn Peer>>,
    seconds: f64,
    ns_per_op: f64,
}

fn fill(
    peer: Box<dyn Peer>,
    plan: &ComparePlan,
    keys: &SortedKeys,
    order: &[u32],
) -> Result<Filled> {
    let start = Instant::now();
    match plan.shape {
        ShapeName::Runs => {
            peer.load_runs(&RunLoad { keys, order, tree: &plan.tree() })?;
        }
        ShapeName::Default => {
            let mut value = Vec::new();
            for &place in order {
                let key = keys.get(place as usize);
                fill_value(&mut value, key, plan.value_bytes);
                peer.put(key, &value)?;
            }
        }
    }
    let ns_per_op = start.elapsed().as_nanos() as f64 / keys.len() as f64;
    if plan.shape == ShapeName::Default {
        peer.flush()?;
        peer.settle()?;
    }
    Ok(Filled { peer: Some(peer), seconds: start.elapsed().as_secs_f64(), ns_per_op })
}

fn side(contender: Contender, mut filled: Vec<Filled>) -> FilledPeer {
    let peer = filled.last_mut().and_then(|last| last.peer.take()).expect("the last one is open");
    let seconds: Vec<f64> = filled.iter().map(|filled| filled.seconds).collect();
    let times: Vec<f64> = filled.iter().map(|filled| filled.ns_per_op).collect();
    let ns_per_op = median(&mut times.clone());
    let load = FillReport {
        seconds: median(&mut seconds.clone()),
        ops_per_s: 1e9 / ns_per_op,
        ns_per_op,
        seconds_of_all: seconds,
        ns_per_op_of_all: times,
    };
    FilledPeer { contender, peer, load, wrong: 0, answers: Vec::new() }
}

pub(crate) fn open_new(
    engine: &dyn Engine,
    folder: &Path,
    filter: &str,
    settings: &PeerSettings,
) -> Result<Box<dyn Peer>> {
    make_empty(folder)?;
    engine.open(folder, filter, settings)
}

fn measure(
    sides: &mut [FilledPeer],
    queries: &[PeerQueries],
    progress: &mut dyn Progress,
) -> Result<()> {
    progress.stage("measuring", (sides.len() * queries.len() * (ROUNDS + 1)) as u64);
    for queries in queries {
        let mut cpu_times = vec![Vec::with_capacity(ROUNDS); sides.len()];
        let medians = medians_ns(sides.len(), |side| {
            let start = cpu_time();
            let count = queries.ask_all(sides[side].peer.as_ref())?;
            cpu_times[side].push((cpu_time() - start).as_nanos() as f64 / count as f64);
            progress.advance(1);
            Ok::<_, LabError>(count)
        })?;
        for ((side, ns_per_op), mut cpu_times) in sides.iter_mut().zip(medians).zip(cpu_times) {
            let ns_p99 = queries.time_each(side.peer.as_ref())?;
            progress.advance(1);
            side.answers.push(AnswerReport {
                ops: queries.queries.len() as u64,
                ns_per_op,
                cpu_ns_per_op: median(&mut cpu_times),
                ns_p99,
            });
        }
    }
    Ok(())
}

fn report(side: FilledPeer, plan: &ComparePlan, keys: &KeySet) -> Result<CompareReport> {
    let FilledPeer { contender, peer, load, wrong, mut answers } = side;
    let asked = answers.split_off(KINDS.len());
    let asked = plan.asks.iter().zip(asked);
    let asked = asked.map(|(ask, answer)| EmptyQueryAnswer { question: ask.to_string(), answer });
    let key_count = keys.stored().len();
    let [point_miss, point_hit, empty_range, seek, seek_next_50] =
        <[AnswerReport; 5]>::try_from(answers).expect("one report for each kind");
    let runs = peer.runs()?;
    let filter_bytes = peer.filter_bytes()?;
    let settings = peer.settings();
    peer.close()?;
    Ok(CompareReport {
        engine: contender.engine,
        guard: contender.filter,
        settings,
        shape: plan.shape,
        keys: key_count as u64,
        runs,
        runs_planned: (plan.shape == ShapeName::Runs && runs.is_some())
            .then(|| plan.tree().run_count()),
        guard_bits_per_key: filter_bytes.map(|bytes| bytes as f64 * 8.0 / key_count as f64),
        dist: keys.dist().to_string(),
        seed: plan.seed,
        range_width: plan.range_width,
        value_bytes: plan.value_bytes as u64,
        load,
        false_negatives: wrong,
        point_miss,
        point_hit,
        empty_range,
        seek,
        seek_next_50,
        asked: asked.collect(),
    })
}

#[cfg(test)]
mod tests;
