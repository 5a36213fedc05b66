//! Fills stores: by all clients at once, or up to the planned tree of a workload.
//! ```text
//! planned    put .. flush, settle, put .. flush, settle, ...          by one client
//!                      copy for A, F ^    for B, D, E ^   for C ^ the next merge is into the last
//!                                                                 level
//! ```
//! A workload that needs more flushes gets an earlier copy, so that it ends just before that merge.
//! Invariant: a planned tree follows from the plan alone, whatever the filter is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use trommel::options::FilterTuning;
use trommel_guards::ElasticOptions;

use crate::bench::fit_bits::{self, Fit};
use crate::compare::{Contender, Engine, Peer, PeerSettings, open_new, remove};
use crate::error::{LabError, Result};
use crate::progress::Progress;
use crate::tree_plan::{PartsPlan, TreePlan};
use crate::ycsb::YcsbPlan;
use crate::ycsb::records::{Records, set_stamp};
use crate::ycsb::stamps::Stamps;
use crate::ycsb::workload::{Operation, Workload};

/// The planned tree of each workload. Its last level has `fill` units. All other levels are full,
/// except for room for the flushes of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct YcsbTree {
    /// L, the number of levels.
    pub levels: u32,
    /// Z, how full the last level is: 1 to T - 1.
    pub fill: u32,
}

/// An open store, and what is known about it.
pub(crate) struct FilledStore {
    pub(crate) contender: Contender,
    pub(crate) folder: PathBuf,
    pub(crate) peer: Box<dyn Peer>,
    pub(crate) records: Records,
    /// The number of keys that it was filled with.
    pub(crate) keys: u64,
    pub(crate) filling: Filling,
}

/// The cost of filling a store.
#[derive(Clone, Copy)]
pub(crate) struct Filling {
    pub(crate) seconds: f64,
    /// The part of these after the last put.
    pub(crate) settle_seconds: f64,
    pub(crate) ops_per_s: f64,
    pub(crate) bits_setting: f64,
    pub(crate) unfit: bool,
}

/// Opens a store, and writes every key once in random order, by all clients.
pub(crate) fn fill(
    engine: &dyn Engine,
    contender: &Contender,
    plan: &YcsbPlan,
    progress: &mut dyn Progress,
) -> Result<FilledStore> {
    let folder = plan.stores.folder.join(contender.folder_name());
    progress.stage(&format!("filling {contender}"), 1);
    let peer =
        open_new(engine, &folder, &contender.filter, &plan.settings(plan.stores.bits_per_key))?;
    let records = Records::new(plan.keys, plan.value_bytes, plan.stores.seed);
    let (start, threads) = (Instant::now(), plan.threads[0]);
    std::thread::scope(|scope| {
        let (peer, records) = (peer.as_ref(), &records);
        let fill = |client: usize| {
            let places = (client as u64..plan.keys).step_by(threads);
            scope.spawn(move || put_all(peer, records, places))
        };
        let clients: Vec<_> = (0..threads).map(fill).collect();
        clients.into_iter().try_for_each(|client| client.join().expect("no client panics"))
    })?;
    let put = start.elapsed().as_secs_f64();
    peer.flush()?;
    peer.settle()?;
    let seconds = start.elapsed().as_secs_f64();
    progress.advance(1);
    let filling = Filling {
        seconds,
        settle_seconds: seconds - put,
        ops_per_s: plan.keys as f64 / put,
        bits_setting: plan.stores.bits_per_key,
        unfit: false,
    };
    let (contender, keys) = (contender.clone(), plan.keys);
    Ok(FilledStore { contender, folder, peer, records, keys, filling })
}

fn put_all(peer: &dyn Peer, records: &Records, places: impl Iterator<Item = u64>) -> Result<()> {
    let mut value = Vec::new();
    for place in places {
        records.fill(&mut value, place);
        set_stamp(&mut value, Stamps::LOADED);
        peer.put(&records.key(place), &value)?;
    }
    Ok(())
}

/// An upper bound of the memory of a memtable's entry beside its key and value.
const ENTRY_OVERHEAD: u64 = 72;

/// The planned trees of all workloads.
pub(crate) struct PlannedTrees<'p> {
    plan: &'p YcsbPlan,
    tree: TreePlan,
}

impl<'p> PlannedTrees<'p> {
    /// Plans the trees. An error if the keys do not allow such a tree.
    pub(crate) fn new(plan: &'p YcsbPlan, tree: YcsbTree) -> Result<Self> {
        let tree = TreePlan {
            size_ratio: plan.tree.size_ratio,
            policy: plan.tree.policy.clone(),
            levels: tree.levels,
            fill: tree.fill,
            value_bytes: plan.value_bytes,
            bits_per_key: plan.stores.bits_per_key,
            monkey: plan.tree.monkey,
            point_bits: plan.tree.point_bits,
            filter: FilterTuning::default(),
            elastic: ElasticOptions::default(),
            block_cache_bytes: None,
            table_bytes: None,
            parts: PartsPlan::default(),
            seed: plan.stores.seed,
            synced: true,
            direct: plan.direct,
        };
        tree.check(plan.keys as usize)?;
        let planned = PlannedTrees { plan, tree };
        let room = planned.flushes_in_all() - planned.tree.base_flushes();
        match plan.workloads.iter().find(|workload| planned.needs(**workload) > room) {
            None => Ok(planned),
            Some(workload) => Err(LabError::Plan(format!(
                "workload {workload} needs {} flushes, and the levels above the last take {room}: \
                 fewer operations, or a larger write buffer",
                planned.needs(*workload)
            ))),
        }
    }

    fn flushes_in_all(&self) -> u64 {
        self.tree.flush_count().expect("the plan was checked")
    }

    /// Returns the most flushes that a workload needs.
    fn needs(&self, workload: Workload) -> u64 {
        let writes = [Operation::Update, Operation::Insert, Operation::ReadModifyWrite];
        let share: u64 = writes.into_iter().map(|kind| workload.share(kind)).sum();
        let entry = self.plan.value_bytes as u64 + size_of::<u64>() as u64 + ENTRY_OVERHEAD;
        let bytes = self.plan.operations() * share / 100 * entry;
        bytes.div_ceil(self.plan.stores.write_buffer_bytes as u64)
    }

    /// Returns the flushes before a workload.
    fn flushes_before(&self, workload: Workload) -> u64 {
        self.flushes_in_all() - self.needs(workload)
    }

    /// Returns the keys of the first `flushes` flushes.
    fn keys_of(&self, flushes: u64) -> u64 {
        let (keys, all) = (u128::from(self.plan.keys), u128::from(self.flushes_in_all()));
        (u128::from(flushes) * keys / all) as u64
    }

    /// Returns how many keys a workload begins with.
    pub(crate) fn keys_before(&self, workload: Workload) -> u64 {
        self.keys_of(self.flushes_before(workload))
    }

    /// Returns the folder of the store that a workload begins with.
    pub(crate) fn folder(&self, of: &Contender, workload: Workload, threads: usize) -> PathBuf {
        self.plan.stores.folder.join(format!("{}-{workload}-{threads}", of.folder_name()))
    }

    /// Returns the folders of all workloads, by the flushes before them.
    fn folders(&self, contender: &Contender) -> BTreeMap<u64, Vec<PathBuf>> {
        let mut folders: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
        for workload in &self.plan.workloads {
            let of = |threads: &usize| self.folder(contender, *workload, *threads);
            let all = folders.entry(self.flushes_before(*workload)).or_default();
            all.extend(self.plan.threads.iter().map(of));
        }
        folders
    }

    /// Makes the stores of one contender. To fit bits, repeats that until the filter takes the
    /// requested memory in the fullest of its trees.
    pub(crate) fn fill(
        &self,
        engine: &dyn Engine,
        contender: &Contender,
        progress: &mut dyn Progress,
    ) -> Result<Filling> {
        let mut built: Vec<Filling> = Vec::new();
        let build = |setting: f64| {
            let (taken, filling) = self.fill_once(engine, contender, setting, progress)?;
            built.push(filling);
            // Without a filter, there is no setting to search for.
            let as_it_is = !self.plan.fit_bits || taken == 0.0;
            Ok::<_, LabError>(if as_it_is { self.plan.stores.bits_per_key } else { taken })
        };
        let Fit { setting, unfit, .. } = fit_bits::search(self.plan.stores.bits_per_key, build)?;
        // The existing stores are those of the last setting.
        let last = built.pop().filter(|last| last.bits_setting == setting);
        let filling = match last {
            Some(last) => last,
            None => self.fill_once(engine, contender, setting, progress)?.1,
        };
        Ok(Filling { unfit, ..filling })
    }

    /// Fills a store, copies it before each workload, and removes it. Returns the filter's bits per
    /// key in the last copy.
    fn fill_once(
        &self,
        engine: &dyn Engine,
        contender: &Contender,
        bits_setting: f64,
        progress: &mut dyn Progress,
    ) -> Result<(f64, Filling)> {
        let folder = self.plan.stores.folder.join(contender.folder_name());
        let folders = self.folders(contender);
        for old in folders.values().flatten().filter(|old| old.exists()) {
            remove(old)?;
        }
        let settings = PeerSettings { synced: false, ..self.plan.settings(bits_setting) };
        let peer = open_new(engine, &folder, &contender.filter, &settings)?;
        let records = Records::new(self.plan.keys, self.plan.value_bytes, self.plan.stores.seed);
        let last = folders.keys().max().copied().unwrap_or(0);
        progress.stage(&format!("filling {contender}"), last);
        let (start, mut puts) = (Instant::now(), 0.0);
        for flush in 0..last {
            let from = Instant::now();
            put_all(peer.as_ref(), &records, self.keys_of(flush)..self.keys_of(flush + 1))?;
            puts += from.elapsed().as_secs_f64();
            peer.flush()?;
            peer.settle()?;
            let now = folders.get(&(flush + 1)).into_iter().flatten();
            now.into_iter().try_for_each(|folder| copy(peer.as_ref(), contender, folder))?;
            progress.advance(1);
        }
        let (seconds, keys) = (start.elapsed().as_secs_f64(), self.keys_of(last) as f64);
        let taken = peer.filter_bytes()?.unwrap_or(0) as f64 * 8.0 / keys;
        peer.close()?;
        remove(&folder)?;
        let (settle_seconds, ops_per_s) = (seconds - puts, keys / puts);
        Ok((taken, Filling { seconds, settle_seconds, ops_per_s, bits_setting, unfit: false }))
    }
}

fn copy(peer: &dyn Peer, contender: &Contender, folder: &Path) -> Result<()> {
    if peer.copy_to(folder)? {
        return Ok(());
    }
    Err(LabError::Plan(format!(
        "{contender} cannot be filled to a planned tree: its own is as it likes"
    )))
}
