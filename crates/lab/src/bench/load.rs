//! Loads a store so that its tree has the shape of a plan.
//! ```text
//! keys in random order: put ... flush, merge, put ... flush, merge, ...    the plan's flushes
//! ```
//! Invariant: a flush happens where the plan says and nowhere else. The same seed gives the same
//! tree.

use std::path::Path;
use std::time::Instant;

use trommel::options::DirectIo;
use trommel::{Background, Batch, Db, GuardKind, Options, SyncPolicy};

use crate::bench::unsynced::environment;
use crate::error::{LabError, Result};
use crate::keys::key_list::SortedKeys;
use crate::keys::rng::random_order;
use crate::keys::values::fill_value;
use crate::progress::Progress;
use crate::questions::deletions::Deletions;
use crate::questions::read_workload::{Content, Deleted};
use crate::report::LoadReport;
use crate::tree_plan::TreePlan;

/// An upper bound of the memory of an entry beside its key and value, in bytes.
const ENTRY_OVERHEAD: usize = 160;

/// Keys in one batch. Batches keep the cost of system calls small, so loading measures flushes and
/// merges.
const BATCH_KEYS: usize = 100;

const WRITE_BUFFER_LEAST: usize = 64 << 20;

/// A loaded store, and the cost of loading it.
pub(crate) struct Loaded {
    pub(crate) db: Db,
    pub(crate) report: LoadReport,
}

/// Returns the options with which a store takes the planned shape.
fn options(plan: &TreePlan, guard: GuardKind, content: &Content<'_>, flushes: u64) -> Options {
    let keys = content.keys;
    let entry_bytes = plan.value_bytes + keys.size_bytes() / keys.len() + ENTRY_OVERHEAD;
    let key_count = keys.len() + content.newer.map_or(0, SortedKeys::len);
    let deleted = content.deleted.map_or(0, |deleted| deleted.keys.len());
    let flush_bytes = (key_count / flushes as usize + 1 + deleted) * entry_bytes;
    let defaults = Options::default();
    let table_bytes = plan.table_bytes.unwrap_or(defaults.table_bytes);
    Options::default()
        .size_ratio(plan.size_ratio)
        .policy(plan.policy.clone())
        .write_buffer_bytes((2 * flush_bytes).max(WRITE_BUFFER_LEAST))
        .guard(guard)
        .bits_per_key(plan.bits_per_key)
        .monkey(plan.monkey && guard.rate_law().is_some())
        .point_bits(plan.point_bits)
        .block_cache_bytes(plan.block_cache_bytes.unwrap_or(2 * key_count * entry_bytes))
        .direct(if plan.direct { DirectIo::ALL } else { DirectIo::default() })
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
        .filter(plan.filter.clone().with(plan.elastic.clone()))
        .table_bytes(table_bytes)
        .partition_bytes(plan.parts.partition_bytes.unwrap_or(defaults.partition_bytes))
        .learn_questions(false)
}

/// Loads a new store. If newer runs have keys of their own, `loaded_base` sees the store when its
/// last level is complete.
/// Requires: the plan was checked.
pub(crate) fn load(
    folder: &Path,
    plan: &TreePlan,
    guard: GuardKind,
    content: Content<'_>,
    loaded_base: &mut dyn FnMut(&Db) -> Result<()>,
    progress: &mut dyn Progress,
) -> Result<Loaded> {
    let flushes = plan.flush_count().ok_or_else(|| LabError::Plan("too many flushes".into()))?;
    let options = options(plan, guard, &content, flushes);
    let db = open(folder, plan, options.clone())?;
    let key_count = content.keys.len() + content.newer.map_or(0, SortedKeys::len);
    progress.stage(&format!("loading, {guard}"), key_count as u64);
    let seconds = match content.newer {
        None => write(&db, plan, content.keys, flushes, content.deleted, progress)?,
        Some(newer) => {
            let base = plan.base_flushes();
            let before = write(&db, plan, content.keys, base, None, progress)?;
            loaded_base(&db)?;
            before + write(&db, plan, newer, flushes - base, None, progress)?
        }
    };
    let stats = db.stats()?;
    let report = LoadReport {
        seconds,
        ops_per_s: key_count as f64 / seconds,
        write_amplification: stats.write_amplification(),
        guard_seconds: stats.guard.seconds,
        seconds_of_all: vec![seconds],
        ops_per_s_rounds: vec![key_count as f64 / seconds],
    };
    let Some(memory) = plan.parts.filter_memory else { return Ok(Loaded { db, report }) };
    db.close()?;
    let limit = memory.bytes(stats.guard.memory_bytes);
    let db = open(folder, plan, options.filter_memory(limit))?;
    Ok(Loaded { db, report })
}

/// Writes keys in random order, in `flushes` flushes, of which newer ones delete some keys. Returns
/// the time in seconds.
fn write(
    db: &Db,
    plan: &TreePlan,
    keys: &SortedKeys,
    flushes: u64,
    deleted: Option<&Deleted>,
    progress: &mut dyn Progress,
) -> Result<f64> {
    let deletions =
        deleted.map(|deleted| Deletions::new(deleted, keys, flushes, plan.base_flushes()));
    let mut order = random_order(keys.len(), plan.seed);
    if let Some(deletions) = &deletions {
        order = deletions.first_in(order, keys);
    }
    let (mut value, mut written) = (Vec::new(), 0);
    let start = Instant::now();
    for flush in 1..=flushes {
        let end = (u128::from(flush) * keys.len() as u128 / u128::from(flushes)) as usize;
        for places in order[written..end].chunks(BATCH_KEYS) {
            let mut batch = Batch::new();
            for &place in places {
                let key = keys.get(place as usize);
                fill_value(&mut value, key, plan.value_bytes);
                batch.put(key, &value);
            }
            db.write(batch)?;
        }
        deletions.as_ref().map_or(Ok(()), |deletions| deletions.delete(db, flush - 1))?;
        db.flush()?;
        db.settle()?;
        progress.advance((end - written) as u64);
        progress.look(db);
        written = end;
    }
    Ok(start.elapsed().as_secs_f64())
}

fn open(folder: &Path, plan: &TreePlan, options: Options) -> trommel::Result<Db> {
    Db::open_with(folder, options, environment(plan.synced))
}
