//! A tree that grows only to be recorded, in its own store whose background work runs step by step.

use std::path::PathBuf;
use std::sync::mpsc;
use trommel::research::Research as _;

use trommel::{Background, Db, GuardKind, Options, Policy, SyncPolicy};
use trommel_filters::Query;

use crate::error::{LabError, Result};
use crate::keys::rng::scramble;
use crate::progress::Progress;
use crate::replay::recorder::Recorder;
use crate::replay::recording::{Recording, RecordingHead};

/// What to record.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// The guard, which must answer with codes.
    pub guard: GuardKind,
    /// Memory of the guard, in bits per key.
    pub bits_per_key: f64,
    /// T, the size ratio.
    pub size_ratio: u32,
    /// The merge policy.
    pub policy: Policy,
    /// The number of flushes.
    pub flushes: u64,
    /// Keys that each flush writes.
    pub keys_per_flush: u64,
    /// How many followed keys are written once. Two more keys are followed: one that is written
    /// again and again, and one that is never written.
    pub followed: u64,
    /// Seed of the keys.
    pub seed: u64,
    /// The store's folder: a new one.
    pub folder: PathBuf,
}

/// Grows a tree, and records it.
pub fn record_replay(plan: &ReplayPlan, progress: &mut dyn Progress) -> Result<Recording> {
    check(plan)?;
    let options = Options::new()
        .guard(plan.guard)
        .bits_per_key(plan.bits_per_key)
        .size_ratio(plan.size_ratio)
        .policy(plan.policy.clone())
        .background(Background::Stepped)
        .sync(SyncPolicy::Never);
    let db = Db::open(&plan.folder, options)?;
    if db.pinned_tree().guard_codes(&Query::Point(b"")).is_none() {
        let problem = format!("{} answers with no codes: grf does, and its kin", plan.guard);
        return Err(LabError::Plan(problem));
    }
    let keys = followed(plan);
    let bytes = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
    let mut recorder = Recorder::new(bytes, &plan.policy, plan.size_ratio);
    let (hand_on, trees) = mpsc::channel();
    // If recording ends early, trees still come but have no receiver.
    db.follow_tree(move |tree| drop(hand_on.send(tree)))?;
    let mut steps = Vec::new();
    progress.stage("growing a tree", plan.flushes);
    for flush in 0..plan.flushes {
        write_flush(&db, plan, flush)?;
        while db.step()? {}
        for tree in trees.try_iter() {
            steps.extend(recorder.step(&tree)?);
        }
        progress.advance(1);
    }
    let head = RecordingHead {
        guard: plan.guard.name().to_string(),
        policy: plan.policy.name().to_string(),
        size_ratio: plan.size_ratio,
        bits_per_key: plan.bits_per_key,
        keys_per_flush: Some(plan.keys_per_flush),
        keys,
    };
    Ok(Recording::new(head, steps))
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

/// The numbers of the key that is written again and again, and of the key that is never written.
const UPDATED: u64 = u64::MAX;
const ABSENT: u64 = u64::MAX - 1;
/// The flushes between two writes of `UPDATED`.
const UPDATED_EVERY: u64 = 7;

/// Returns the name of the key with this number: eight pseudo-random hexadecimal digits.
fn key(plan: &ReplayPlan, number: u64) -> String {
    format!("{:08x}", scramble(number ^ scramble(plan.seed)) >> 32)
}

/// Returns one key each of some flushes, and the two other followed keys.
fn followed(plan: &ReplayPlan) -> Vec<String> {
    let count = plan.followed.min(plan.flushes);
    let flushes = (0..count).map(|place| place * plan.flushes / count);
    let once = flushes.map(|flush| {
        let at = scramble(flush) % plan.keys_per_flush;
        key(plan, flush * plan.keys_per_flush + at)
    });
    once.chain([key(plan, UPDATED), key(plan, ABSENT)]).collect()
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

#[cfg(test)]
mod tests;
