//! Tests that deletions are spread over the newer runs, and follow the writes of their keys.

use trommel::options::FilterTuning;
use trommel::{GuardKind, Policy};
use trommel_guards::ElasticOptions;

use super::*;
use crate::bench::load::load;
use crate::keys::dist::{Dist, FileFormat};
use crate::progress::Silent;
use crate::questions::read_workload::{Deletion, ReadWorkload, Stored};
use crate::tree_plan::{PartsPlan, TreePlan};

fn tree(size_ratio: u32, levels: u32) -> TreePlan {
    TreePlan {
        size_ratio,
        policy: Policy::default(),
        levels,
        fill: size_ratio - 1,
        value_bytes: 20,
        bits_per_key: 12.0,
        monkey: false,
        point_bits: 0,
        filter: FilterTuning::default(),
        elastic: ElasticOptions::default(),
        block_cache_bytes: None,
        direct: false,
        table_bytes: None,
        parts: PartsPlan::default(),
        seed: 1,
        synced: false,
    }
}

fn stored(share: f64, by: DeletedBy, tree: &TreePlan) -> Stored {
    let deleted = Some(Deletion { share, by });
    let workload = ReadWorkload { deleted, ..ReadWorkload::default() };
    Stored::draw(&workload, (&Dist::Uniform, FileFormat::Lines), Some(5000), tree).expect("drawn")
}

/// Returns the entries of each run, newest first, and how many ranges each deletes.
fn loaded(stored: &Stored, tree: &TreePlan) -> Vec<(u64, u64)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = &mut |_: &Db| Ok(());
    let (path, guard) = (folder.path().join("s"), GuardKind::Grf);
    let loaded = load(&path, tree, guard, stored.content(), base, &mut Silent).expect("loads");
    let kept = stored.keys.stored();
    let found: Vec<_> = loaded.db.range(..).map(|entry| entry.expect("reads").0).collect();
    assert!(found.iter().map(|key| &key[..]).eq(kept.iter()), "what is left is what is stored");
    let stats = loaded.db.stats().expect("open");
    assert_eq!(stats.run_count() as u64, tree.run_count());
    let runs = stats.levels.iter().flat_map(|level| &level.runs);
    runs.map(|run| (run.entries, run.range_deletes)).collect()
}

#[test]
fn newer_runs_have_the_deletions_and_the_last_flush_has_none() {
    let tree = tree(4, 3);
    for by in [DeletedBy::Key, DeletedBy::Range] {
        let of_share = |share| loaded(&stored(share, by, &tree), &tree);
        // 48 of 63 flushes form the last level. There are six newer runs; the newest is the last
        // flush.
        let runs = of_share(0.3);
        assert_eq!(runs.len(), 7);
        match by {
            DeletedBy::Range => {
                assert_eq!((runs[0].1, runs[6].1), (0, 0), "{runs:?}");
                assert!(runs[1..6].iter().all(|run| run.1 > 0), "{runs:?}");
                assert!(runs[1..6].iter().map(|run| run.1).sum::<u64>() >= 100, "{runs:?}");
            }
            DeletedBy::Key => {
                let newest = 5000 / 63 + 1;
                assert!(runs[0].0 <= newest && runs[1].0 > newest + 50, "{runs:?}");
                let entries: u64 = runs.iter().map(|run| run.0).sum();
                assert_eq!(entries, 5000 + 1500, "each is there, and its deletion");
            }
        }
        // Nearly all keys are deleted, and writing them takes more flushes than the last level has.
        of_share(0.95);
    }
}

#[test]
fn trees_of_one_run_and_of_one_flush_are_deleted_from_too() {
    for tree in [tree(4, 1), TreePlan { fill: 1, ..tree(2, 1) }] {
        for by in [DeletedBy::Key, DeletedBy::Range] {
            loaded(&stored(0.5, by, &tree), &tree);
        }
    }
}
