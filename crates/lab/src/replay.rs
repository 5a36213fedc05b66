//! Records how a tree grows, flush by flush and merge by merge, and what its filter says of some keys at every step.
//! ```text
//! step 9   flush 5           level 0  [5,6) [4,5)                       key "0b": codes [2,3)  -> run 2    digits 2 1
//!                            last     [0,4)
//! step 10  merge [5,6)[4,5) ...
//! ```
//! The store is a real one, whose background work is done step by step (`Background::Stepped`), so that no change of the tree is
//! passed over; codes are those that its guard answers with, and runs those that `Shape::resolve` finds for them. Codes are spans of
//! flush numbers; the GRF paper (section 4.2) writes them as positions, which are the digits of a flush number: `Shape::of_round`
//! gives these. Invariant: a run that holds a followed key is among those that its codes name.

use std::path::PathBuf;

use serde::Serialize;
use trommel::{Background, Db, GuardKind, Options, Policy, Sync};
use trommel_filters::{Codes, FlushNumber, Query, Shape, Span};

use crate::error::{LabError, Result};
use crate::progress::Progress;
use crate::rng::scramble;

/// What is to be recorded.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// The guard: one that answers with codes.
    pub guard: GuardKind,
    /// Its memory, in bits per key.
    pub bits_per_key: f64,
    /// T.
    pub size_ratio: u32,
    /// When runs merge.
    pub policy: Policy,
    /// Flushes.
    pub flushes: u64,
    /// Keys that each of them writes.
    pub keys_per_flush: u64,
    /// How many keys are followed that are written once. (One that is written again and again is, too, and one that is not there.)
    pub followed: u64,
    /// Seed of the keys.
    pub seed: u64,
    /// Where the store is made: a new folder.
    pub folder: PathBuf,
}

/// The life of a tree. The field names are an interface.
#[derive(Clone, Debug, Serialize)]
pub struct Recording {
    /// Who guards the store.
    pub guard: &'static str,
    /// When runs merge.
    pub policy: &'static str,
    /// T.
    pub size_ratio: u32,
    /// Memory of the guard.
    pub bits_per_key: f64,
    /// Keys that each flush wrote, beside the one that is written again and again.
    pub keys_per_flush: u64,
    /// The followed keys.
    pub keys: Vec<String>,
    /// The flushes that wrote each of them.
    pub written: Vec<Vec<u64>>,
    /// What happened.
    pub steps: Vec<ReplayStep>,
}

/// A change of the tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ReplayEvent {
    /// The store is new.
    Begin,
    /// A memtable became a run.
    Flush {
        /// Its span.
        span: (u64, u64),
    },
    /// Runs became one.
    Merge {
        /// Their spans, newest first.
        inputs: Vec<(u64, u64)>,
        /// The span of what they became.
        output: (u64, u64),
        /// And its level.
        level: usize,
    },
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayRun {
    /// Its flushes, [lo, hi).
    pub span: (u64, u64),
    /// Its entries.
    pub entries: u64,
}

/// The tree after a change.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayStep {
    /// The change.
    pub event: ReplayEvent,
    /// The levels, newest first, each with its runs, newest first.
    pub levels: Vec<Vec<ReplayRun>>,
    /// How many runs each level has: the version's shape encoding, where no merge is due.
    pub shape: Vec<usize>,
    /// Whether it is one, in this round: the flushes since the round's beginning, written in base T.
    pub is_encoding: bool,
    /// Memory of the filter, in bytes: of its base, of its overlay.
    pub filter_bytes: (u64, u64),
    /// What the filter says of each followed key.
    pub answers: Vec<ReplayAnswer>,
}

/// What the filter says of a key.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayAnswer {
    /// Every run may have it: too many codes to list.
    pub is_all: bool,
    /// The codes of the entries that match.
    pub codes: Vec<ReplayCode>,
    /// The runs that hold the key, counted from the newest of all, newest first.
    pub holds: Vec<usize>,
}

/// A code.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayCode {
    /// The flushes that the entry may be from, [lo, hi).
    pub span: (u64, u64),
    /// The runs that this names, counted from the newest of all.
    pub runs: Vec<usize>,
    /// As the paper writes it. None: the tree has another shape than a lazily levelled one with all merges done.
    pub digits: Option<ReplayDigits>,
}

/// A code as positions of shapes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayDigits {
    /// A position for each level, newest first: the shape before the flush.
    pub positions: Vec<usize>,
    /// How many of the last of them the code still has.
    pub kept: usize,
    /// An indicator for each of these: 1 ends them.
    pub unary: String,
    /// How many positions at the end are as the version has them (the paper's m).
    pub common_suffix: usize,
}

/// Lets a tree grow, and records it.
pub fn record_replay(plan: &ReplayPlan, progress: &mut dyn Progress) -> Result<Recording> {
    check(plan)?;
    let options = Options {
        guard: plan.guard,
        bits_per_key: plan.bits_per_key,
        size_ratio: plan.size_ratio,
        policy: plan.policy.clone(),
        background: Background::Stepped,
        sync: Sync::Never,
        ..Options::default()
    };
    let db = Db::open(&plan.folder, options)?;
    let mut recorder = Recorder::new(plan, &db);
    if recorder.codes(b"").is_none() {
        let problem = format!("{} answers with no codes: grf does, and its kin", plan.guard);
        return Err(LabError::Plan(problem));
    }
    progress.stage("growing a tree", plan.flushes);
    recorder.note(ReplayEvent::Begin);
    for flush in 0..plan.flushes {
        write_flush(&db, plan, flush)?;
        recorder.note_change();
        while db.step()? {
            recorder.note_change();
        }
        progress.advance(1);
    }
    Ok(recorder.finish())
}

fn check(plan: &ReplayPlan) -> Result<()> {
    let wrong = |problem: &str| Err(LabError::Plan(problem.to_string()));
    match plan {
        ReplayPlan { flushes: 0 | 10_001.., .. } => wrong("1 to 10000 flushes"),
        ReplayPlan { keys_per_flush: 0 | 100_001.., .. } => wrong("1 to 100000 keys per flush"),
        ReplayPlan { followed: 0 | 1001.., .. } => wrong("1 to 1000 keys to follow"),
        _ => Ok(()),
    }
}

/// The key that is written again and again, and the one that never is.
const UPDATED: u64 = u64::MAX;
const ABSENT: u64 = u64::MAX - 1;
/// Between two writes of the one that is.
const UPDATED_EVERY: u64 = 7;

/// The name of the key with a number: eight letters that tell nothing of it.
fn key(plan: &ReplayPlan, number: u64) -> String {
    format!("{:08x}", scramble(number ^ scramble(plan.seed)) >> 32)
}

fn write_flush(db: &Db, plan: &ReplayPlan, flush: u64) -> Result<()> {
    let first = flush * plan.keys_per_flush;
    for number in first..first + plan.keys_per_flush {
        db.put(key(plan, number), flush.to_string())?;
    }
    if flush.is_multiple_of(UPDATED_EVERY) {
        db.put(key(plan, UPDATED), flush.to_string())?;
    }
    Ok(db.flush()?)
}

struct Recorder<'a> {
    plan: &'a ReplayPlan,
    db: &'a Db,
    keys: Vec<String>,
    written: Vec<Vec<u64>>,
    steps: Vec<ReplayStep>,
}

impl<'a> Recorder<'a> {
    fn new(plan: &'a ReplayPlan, db: &'a Db) -> Self {
        let followed = plan.followed.min(plan.flushes);
        // One of each of so many flushes.
        let flushes = (0..followed).map(|place| place * plan.flushes / followed);
        let once = flushes.map(|flush| {
            let at = scramble(flush) % plan.keys_per_flush;
            (key(plan, flush * plan.keys_per_flush + at), vec![flush])
        });
        let updates = (0..plan.flushes).step_by(UPDATED_EVERY as usize).collect();
        let others = [(key(plan, UPDATED), updates), (key(plan, ABSENT), Vec::new())];
        let (keys, written) = once.chain(others).unzip();
        Recorder { plan, db, keys, written, steps: Vec::new() }
    }

    fn codes(&self, key: &[u8]) -> Option<Codes> {
        self.db.guard_codes(&Query::Point(key))
    }

    /// Records the tree, if it is not what it was at the last step.
    fn note_change(&mut self) {
        let now = levels(self.db);
        let before = self.steps.last().map_or(&[][..], |step| &step.levels);
        if let Some(event) = event(before, &now) {
            self.note(event);
        }
    }

    fn note(&mut self, event: ReplayEvent) {
        let stats = self.db.stats();
        let levels = levels(self.db);
        let tree = Tree::new(&levels, self.plan);
        let answer = |(key, written): (&String, &Vec<u64>)| {
            let codes = self.codes(key.as_bytes()).unwrap_or_default();
            tree.answer(&codes, written)
        };
        let answers = self.keys.iter().zip(&self.written).map(answer).collect();
        let (base, overlay) = (stats.guard.base_bytes, stats.guard.overlay_bytes);
        let (shape, is_encoding) = (tree.shape.digits(), tree.is_encoding());
        let filter_bytes = (base, overlay);
        self.steps.push(ReplayStep { event, levels, shape, is_encoding, filter_bytes, answers });
    }

    fn finish(self) -> Recording {
        let Recorder { plan, keys, written, steps, .. } = self;
        Recording {
            guard: plan.guard.name(),
            policy: plan.policy.name(),
            size_ratio: plan.size_ratio,
            bits_per_key: plan.bits_per_key,
            keys_per_flush: plan.keys_per_flush,
            keys,
            written,
            steps,
        }
    }
}

fn levels(db: &Db) -> Vec<Vec<ReplayRun>> {
    let of_run = |run: &trommel::RunStats| ReplayRun { span: run.span, entries: run.entries };
    let levels = db.stats().levels.into_iter();
    levels.map(|level| level.runs.iter().map(of_run).collect()).collect()
}

/// What made `now` out of `before`. None: nothing has changed.
fn event(before: &[Vec<ReplayRun>], now: &[Vec<ReplayRun>]) -> Option<ReplayEvent> {
    let placed = |levels: &[Vec<ReplayRun>]| -> Vec<(usize, ReplayRun)> {
        let runs = levels.iter().enumerate();
        runs.flat_map(|(level, runs)| runs.iter().map(move |run| (level, *run))).collect()
    };
    let (before, now) = (placed(before), placed(now));
    let spans = |runs: &[(usize, ReplayRun)], others: &[(usize, ReplayRun)]| {
        let gone = runs.iter().filter(|(_, run)| others.iter().all(|(_, other)| other != run));
        gone.map(|(level, run)| (*level, run.span)).collect::<Vec<_>>()
    };
    let (gone, come) = (spans(&before, &now), spans(&now, &before));
    let inputs = gone.into_iter().map(|(_, span)| span).collect::<Vec<_>>();
    match (&inputs[..], come.first()) {
        (_, None) => None,
        ([], Some(&(_, span))) => Some(ReplayEvent::Flush { span }),
        (_, Some(&(level, output))) => Some(ReplayEvent::Merge { inputs, output, level }),
    }
}

/// A version, as the filter's crate has it.
struct Tree {
    shape: Shape,
    /// The end of the oldest run, where the round begins.
    origin: FlushNumber,
    /// The next flush.
    next: FlushNumber,
    size_ratio: u32,
    /// Whether levels merge so that positions mean something: many runs in each, one in the last.
    is_lazy: bool,
}

impl Tree {
    fn new(levels: &[Vec<ReplayRun>], plan: &ReplayPlan) -> Self {
        let span = |run: &ReplayRun| Span::new(FlushNumber(run.span.0), FlushNumber(run.span.1));
        let spans = |runs: &Vec<ReplayRun>| runs.iter().filter_map(span).collect();
        let shape = Shape { levels: levels.iter().map(spans).collect() };
        let origin = shape.runs().last().map_or(FlushNumber(0), Span::hi);
        let next = shape.runs().next().map_or(FlushNumber(0), Span::hi);
        let is_lazy = plan.policy == Policy::default();
        Tree { shape, origin, next, size_ratio: plan.size_ratio, is_lazy }
    }

    /// The shape of this round after the flushes below `next`, with a position for each level of this tree.
    fn positions(&self, next: FlushNumber) -> Vec<usize> {
        let mut positions = Shape::of_round(self.origin, next, self.size_ratio).digits();
        let missing = self.shape.levels.len().saturating_sub(positions.len());
        let last = positions.len().saturating_sub(1);
        positions.splice(last..last, std::iter::repeat_n(0, missing));
        positions
    }

    /// Whether the shape is an encoding: all merges are done.
    fn is_encoding(&self) -> bool {
        self.is_lazy && self.origin.0 > 0 && self.positions(self.next) == self.shape.digits()
    }

    fn answer(&self, codes: &Codes, written: &[u64]) -> ReplayAnswer {
        let has = |span: &Span| {
            written.iter().any(|&flush| span.meets(Span::of_flush(FlushNumber(flush))))
        };
        let runs = self.shape.runs().enumerate();
        let holds = runs.filter(|(_, span)| has(span)).map(|(place, _)| place).collect();
        let codes_shown = codes.as_slice().iter().map(|&code| self.code(code)).collect();
        ReplayAnswer { is_all: codes.is_all(), codes: codes_shown, holds }
    }

    fn code(&self, code: Span) -> ReplayCode {
        let mut alone = Codes::new();
        alone.push(code);
        let runs = self.shape.resolve(&alone).map(|run| usize::from(run.0)).collect();
        ReplayCode { span: (code.lo().0, code.hi().0), runs, digits: self.digits(code) }
    }

    /// A code as the paper has it: what is left of a flush number when so many low digits are dropped.
    fn digits(&self, code: Span) -> Option<ReplayDigits> {
        if !self.is_encoding() {
            return None;
        }
        let levels = self.shape.levels.len();
        let version = self.shape.digits();
        let (positions, kept) = if code.hi() <= self.origin {
            // The last level: every key of it has the one indicator.
            (self.positions(self.origin), 1)
        } else {
            let (from, width) =
                (code.lo().0.checked_sub(self.origin.0)?, code.hi().0 - code.lo().0);
            let dropped = width.checked_ilog(u64::from(self.size_ratio))? as usize;
            let is_block = u64::from(self.size_ratio).pow(dropped as u32) == width
                && from.is_multiple_of(width)
                && dropped + 1 < levels;
            (is_block.then(|| self.positions(code.lo()))?, levels - dropped)
        };
        if positions.len() != levels {
            return None;
        }
        let pairs = positions.iter().rev().zip(version.iter().rev());
        let common_suffix = pairs.take_while(|(key, version)| key == version).count();
        let unary = "0".repeat(kept - 1) + "1";
        Some(ReplayDigits { positions, kept, unary, common_suffix: common_suffix.min(kept) })
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
