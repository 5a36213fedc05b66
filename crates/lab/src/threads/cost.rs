//! The cost limit of a scan's step. Cost is CPU time of the thread, so a busy machine does not
//! matter.
//! ```text
//! limit = floor + each key once in each run and in memory
//! a step passes keys that are deleted or have expired
//! ```
//! Invariant: however many versions a key has, and however many range deletions overlap, a step
//! costs no more. A step over the limit is repeated from the start; it fails only if every
//! repetition is over the limit.

use std::time::Duration;

use trommel::{Db, KeyValue, Scan};

use super::process::cpu_time;
use super::shared::{Sabotage, Shared};
use crate::stress::keys::Edges;
use crate::stress::operation::{range_text, way};
use crate::stress::world::Checked;

/// Steps that are timed together, since the step after the one that returns a key skips the key's
/// versions.
const STEPS: u32 = 3;
/// A cost that is always within the limit.
const FLOOR: Duration = Duration::from_millis(20);
/// The cost to skip a key in one run.
const PER_KEY: Duration = Duration::from_micros(1);
/// The cost to read a value of several MiB.
const PER_LARGE_VALUE: Duration = Duration::from_millis(20);
/// The slowness without optimization of everything that grows with the store. The floor is far
/// above a step even then.
const SLOWNESS: u32 = if cfg!(debug_assertions) { 8 } else { 1 };
/// How often steps over the limit are tried.
const TRIES: usize = 3;

/// Returns a scan after its first step. The cost of the first steps is tested with further scans.
pub(super) fn first_step(
    shared: &Shared,
    db: &Db,
    edges: &Edges,
    back: bool,
) -> Checked<(Scan, Option<KeyValue>)> {
    let mut scan = db.range(edges.clone());
    let first = step(&mut scan, back)?;
    let mut least = Duration::MAX;
    for _ in 0..TRIES {
        let mut tried = db.range(edges.clone());
        let start = cpu_time();
        for _ in 0..STEPS {
            step(&mut tried, back)?;
        }
        if shared.lies(Sabotage::SlowScan) {
            while cpu_time() - start <= limit(shared, db) {}
        }
        let cost = cpu_time() - start;
        least = least.min(cost);
        if cost <= FLOOR || cost <= limit(shared, db) {
            shared.counts.step_cpu_us.rise_to(least.as_micros() as u64);
            return Ok((scan, first));
        }
    }
    Err(format!(
        "the first steps of a scan {}{} take {:.1} ms of a processor at least, {:.1} may they take; {} bytes in memory",
        range_text(edges),
        way(back),
        least.as_secs_f64() * 1e3,
        limit(shared, db).as_secs_f64() * 1e3,
        db.stats().map_or(0, |stats| stats.memtable_bytes),
    ))
}

fn step(scan: &mut Scan, back: bool) -> Checked<Option<KeyValue>> {
    let found = if back { scan.next_back() } else { scan.next() };
    found.transpose().map_err(|error| format!("scan: {error}"))
}

fn limit(shared: &Shared, db: &Db) -> Duration {
    let places = 1 + db.stats().map_or(0, |stats| stats.run_count()) as u32;
    let keys = shared.shares.all.len() as u32;
    let of_values = if shared.has_large { PER_LARGE_VALUE * places } else { Duration::ZERO };
    FLOOR + (PER_KEY * keys.saturating_mul(places) + of_values) * SLOWNESS
}
