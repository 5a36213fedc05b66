//! `bench compression`: the gain and the cost of packing, in this store and others, with the same
//! entries and settings.
//! ```text
//! each kind of data, each way to pack:
//!     put in random order, compact -> the folder's bytes -> every value checked
//!     rounds that take turns: gets of present keys, a part of a scan -> medians
//! ```
//! Invariant: a store is timed after every answer was checked. The report has the number of wrong
//! answers.

use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::bench::folder_size;
use crate::bench::rounds::turns;
use crate::compare::folders::{make_empty, remove};
use crate::compare::packed_data::{PackedData, PackedEntries};
use crate::compare::peer::{Contender, Engine, Peer, PeerSettings, find_all};
use crate::compare::peer_packing::PeerPacking;
use crate::compare::stores_plan::StoresPlan;
use crate::error::{LabError, Result};
use crate::keys::rng::Rng;
use crate::median::median;
use crate::progress::Progress;

/// What to measure. Field names are an interface: the process with other engines receives this as
/// JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompressionPlan {
    /// The stores, and the settings that they share.
    #[serde(flatten)]
    pub stores: StoresPlan,
    /// The kinds of values.
    pub data: Vec<PackedData>,
    /// The packings of blocks.
    pub packings: Vec<PeerPacking>,
    /// Entries of a store.
    pub entries: usize,
    /// Gets of a round.
    pub gets: usize,
    /// Entries that the scan of a round reads.
    pub scan_entries: usize,
    /// How many rounds there are.
    pub rounds: usize,
}

/// What was measured of one store, with one kind of data and one packing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompressionReport {
    /// The engine's name.
    pub engine: String,
    /// Its filter.
    pub guard: String,
    /// All its settings, as text.
    pub settings: String,
    /// The kind of values.
    pub data: PackedData,
    /// The packing of blocks.
    pub packing: PeerPacking,
    /// How many entries there are.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub raw_bytes: u64,
    /// Bytes of the folder after everything was merged into one run.
    pub folder_bytes: u64,
    /// Time to put all entries and to merge them.
    pub load_seconds: f64,
    /// Nanoseconds per get of a stored key.
    pub get_ns: f64,
    /// Nanoseconds per entry of a scan.
    pub scan_ns: f64,
    /// Keys whose value was wrong or missing.
    pub wrong: u64,
}

/// Measures each kind of data and each packing, in each store.
///
/// # Errors
/// `Plan` if the plan makes no sense; others as the stores and the disk fail.
pub fn bench_compression(
    plan: &CompressionPlan,
    engines: &[Box<dyn Engine>],
    progress: &mut dyn Progress,
) -> Result<Vec<CompressionReport>> {
    check(plan)?;
    let (found, named) = find_all(&plan.stores.contenders, engines)?;
    let stores: Vec<(&dyn Engine, Contender)> = found.into_iter().zip(named).collect();
    let mut reports = Vec::new();
    for data in &plan.data {
        let entries = PackedEntries::new(*data, plan.entries, plan.stores.seed)?;
        for packing in &plan.packings {
            reports.extend(measure(plan, &stores, &entries, (*data, packing), progress)?);
        }
    }
    Ok(reports)
}

fn check(plan: &CompressionPlan) -> Result<()> {
    let is_built_in = plan.packings.iter().all(|packing| packing.compression.is_built_in());
    let rules = [
        (!plan.data.is_empty(), "one kind of data at least"),
        (!plan.packings.is_empty(), "one way to pack at least"),
        (is_built_in, "zstd is for programs that were built with the feature `zstd`"),
        (plan.gets > 0 && plan.scan_entries > 0, "one get and one entry of a scan at least"),
        ((1..=1000).contains(&plan.rounds), "1 to 1000 rounds"),
        (plan.stores.merge_threads > 0, "one thread at least that merges"),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, problem)) => Err(LabError::Plan(problem.into())),
        None => Ok(()),
    }
}

/// A filled store and its report.
struct Side {
    peer: Box<dyn Peer>,
    folder: PathBuf,
    report: CompressionReport,
    /// One for each round.
    get_ns: Vec<f64>,
    scan_ns: Vec<f64>,
}

fn measure(
    plan: &CompressionPlan,
    stores: &[(&dyn Engine, Contender)],
    entries: &PackedEntries,
    (data, packing): (PackedData, &PeerPacking),
    progress: &mut dyn Progress,
) -> Result<Vec<CompressionReport>> {
    let mut sides = Vec::new();
    for (engine, contender) in stores {
        progress.stage(&format!("{data}, {packing}: filling {contender}"), 1);
        sides.push(fill(plan, (*engine, contender), entries, (data, packing))?);
        progress.advance(1);
    }
    progress.stage(&format!("{data}, {packing}: reading"), (plan.rounds * sides.len()) as u64);
    for (round, side) in turns(sides.len(), plan.rounds) {
        take_turn(&mut sides[side], plan, entries, round)?;
        progress.advance(1);
    }
    let end = |mut side: Side| {
        side.peer.close()?;
        remove(&side.folder)?;
        side.report.get_ns = median(&mut side.get_ns);
        side.report.scan_ns = median(&mut side.scan_ns);
        Ok(side.report)
    };
    sides.into_iter().map(end).collect()
}

/// Fills a store, reopens it, and checks every value.
fn fill(
    plan: &CompressionPlan,
    (engine, contender): (&dyn Engine, &Contender),
    entries: &PackedEntries,
    (data, packing): (PackedData, &PeerPacking),
) -> Result<Side> {
    let name = format!("{}-{data}-{packing}", contender.folder_name());
    let folder = plan.stores.folder.join(name.replace(':', "-"));
    make_empty(&folder)?;
    let settings = PeerSettings { packing: packing.clone(), ..plan.stores.settings() };
    let (mut value, mut raw_bytes) = (Vec::new(), 0);
    let peer = engine.open(&folder, &contender.filter, &settings)?;
    let mut seconds = 0.0;
    for number in 0..entries.count() {
        let key = entries.key(number);
        entries.fill_value(&mut value, number);
        raw_bytes += (key.len() + value.len()) as u64;
        let start = Instant::now();
        peer.put(&key, &value)?;
        seconds += start.elapsed().as_secs_f64();
    }
    let start = Instant::now();
    peer.flush()?;
    peer.settle()?;
    peer.compact()?;
    peer.settle()?;
    let load_seconds = seconds + start.elapsed().as_secs_f64();
    peer.close()?;
    let folder_bytes = folder_size::bytes(&folder);
    let peer = engine.open(&folder, &contender.filter, &settings)?;
    let wrong = count_wrong(peer.as_ref(), entries)?;
    let report = CompressionReport {
        engine: contender.engine.clone(),
        guard: contender.filter.clone(),
        settings: peer.settings(),
        data,
        packing: packing.clone(),
        entries: entries.count() as u64,
        raw_bytes,
        folder_bytes,
        load_seconds,
        get_ns: 0.0,
        scan_ns: 0.0,
        wrong,
    };
    Ok(Side { peer, folder, report, get_ns: Vec::new(), scan_ns: Vec::new() })
}

fn count_wrong(peer: &dyn Peer, entries: &PackedEntries) -> Result<u64> {
    let (mut value, mut wrong) = (Vec::new(), 0);
    for number in 0..entries.count() {
        entries.fill_value(&mut value, number);
        let mut is_right = false;
        peer.get(&entries.key(number), &mut |found| is_right = found == &value[..])?;
        wrong += u64::from(!is_right);
    }
    Ok(wrong)
}

fn take_turn(
    side: &mut Side,
    plan: &CompressionPlan,
    entries: &PackedEntries,
    round: usize,
) -> Result<()> {
    let mut rng = Rng::new(plan.stores.seed ^ (round as u64) << 32);
    let keys: Vec<Vec<u8>> =
        (0..plan.gets).map(|_| entries.key(rng.place(entries.count()))).collect();
    let mut seen = 0;
    let start = Instant::now();
    for key in &keys {
        side.peer.get(key, &mut |value| seen += value.len())?;
    }
    side.get_ns.push(start.elapsed().as_nanos() as f64 / keys.len() as f64);
    // This key is random: on average, half of the entries lie ahead of it.
    let from = &keys[0];
    let start = Instant::now();
    let mut shown = side.peer.scan(from, None, plan.scan_entries, &mut |_, value| {
        seen += value.len();
    })?;
    if shown < plan.scan_entries {
        shown += side.peer.scan(&[], None, plan.scan_entries - shown, &mut |_, value| {
            seen += value.len();
        })?;
    }
    side.scan_ns.push(start.elapsed().as_nanos() as f64 / shown.max(1) as f64);
    std::hint::black_box(seen);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Trommel;
    use crate::progress::Silent;

    #[test]
    fn stronger_packing_makes_smaller_folders_with_the_same_answers() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let plan = CompressionPlan {
            stores: StoresPlan {
                contenders: vec!["trommel".parse().expect("any name is one")],
                bits_per_key: 12.0,
                block_cache_bytes: 1 << 16,
                write_buffer_bytes: 1 << 19,
                merge_threads: 1,
                seed: 5,
                folder: folder.path().join("stores"),
            },
            data: vec![PackedData::Json, PackedData::Osm],
            packings: PeerPacking::usual(),
            entries: 6000,
            gets: 100,
            scan_entries: 7000,
            rounds: 2,
        };
        let engines: Vec<Box<dyn Engine>> = vec![Box::new(Trommel)];
        let reports = bench_compression(&plan, &engines, &mut Silent).expect("measured");
        assert_eq!(reports.len(), 2 * plan.packings.len());
        for of_data in reports.chunks(plan.packings.len()) {
            let bytes: Vec<u64> = of_data.iter().map(|report| report.folder_bytes).collect();
            assert!(of_data.iter().all(|report| report.wrong == 0 && report.get_ns > 0.0));
            assert!(bytes[1] < bytes[0] && bytes[2] < bytes[1], "{bytes:?}");
            // So few entries hardly pay for a dictionary, and one that does not pay is not made.
            assert!(bytes[3] < bytes[1] && bytes[4] < bytes[3] + 1000, "{bytes:?}");
            assert!(of_data[0].raw_bytes < bytes[0], "{bytes:?}");
        }
        let none = CompressionPlan { packings: vec![], ..plan };
        assert!(bench_compression(&none, &engines, &mut Silent).is_err());
    }
}
