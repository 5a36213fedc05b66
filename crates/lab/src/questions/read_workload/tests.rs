//! Tests of workloads: the keys that are written, and those that remain.

use trommel::Policy;
use trommel::options::FilterTuning;
use trommel_guards::ElasticOptions;

use super::*;
use crate::tree_plan::PartsPlan;

fn tree() -> TreePlan {
    TreePlan {
        size_ratio: 10,
        policy: Policy::default(),
        levels: 3,
        fill: 9,
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

fn stored(workload: &ReadWorkload, dist: &Dist) -> Stored {
    workload.check().expect("sensible");
    Stored::draw(workload, (dist, FileFormat::Lines), Some(10_000), &tree()).expect("drawn")
}

#[test]
fn a_stretch_of_each_stripe_is_deleted() {
    let deletion = Deletion { share: 0.3, by: DeletedBy::Range };
    let workload = ReadWorkload { deleted: Some(deletion), ..ReadWorkload::default() };
    let stored = stored(&workload, &Dist::Uniform);
    let (content, kept) = (stored.content(), stored.keys.stored());
    let deleted = content.deleted.expect("some are");
    assert_eq!((content.keys.len(), kept.len(), deleted.keys.len()), (10_000, 7000, 3000));
    assert!(deleted.keys.iter().all(|key| content.keys.holds(key) && !kept.holds(key)));
    let mut gone = 0;
    for (from, to) in (0..deleted.ends.len()).map(|nth| deleted.bounds(nth)) {
        assert!(kept.first_from(from).is_none_or(|next| next >= &to[..]), "no other key is in it");
        gone += content.keys.place_from(&to) - content.keys.place_from(from);
    }
    assert_eq!((gone, deleted.ends.len()), (3000, 100));
}

#[test]
fn newer_runs_have_the_keys_of_the_other_law() {
    let workload = ReadWorkload { inserts: Some(Dist::Timestamps), ..ReadWorkload::default() };
    let stored = stored(&workload, &Dist::Uniform);
    let (content, keys) = (stored.content(), &stored.keys);
    let newer = content.newer.expect("there are newer ones");
    // 900 of 999 flushes form the last level.
    assert_eq!((content.keys.len(), newer.len(), keys.stored().len()), (9009, 991, 10_000));
    let is_newer = |key: &[u8]| key >= &(1u64 << 50).to_be_bytes()[..];
    assert!(newer.iter().all(is_newer) && !content.keys.iter().any(is_newer));
    let mut rng = Rng::new(2);
    let drawn = (0..10_000).filter(|_| is_newer(&keys.draw(&mut rng))).count();
    assert!((900..1100).contains(&drawn), "one draw in ten is like them: {drawn}");
}

#[test]
fn ways_to_delete_are_read_back() {
    for by in [DeletedBy::Key, DeletedBy::Range] {
        assert_eq!(by.to_string().parse::<DeletedBy>().expect("known"), by);
    }
    let message = "hand".parse::<DeletedBy>().expect_err("unknown").to_string();
    assert!(message.contains("key, range"), "{message}");
}
