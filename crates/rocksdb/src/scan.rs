//! Scans all keys of a family at one snapshot, and builds a filter.
//! ```text
//! snapshot ── first keys gathered ── all keys? ── sample of them ── filter
//!                                    more ─────── sample by seeks ── filter of those and the rest
//!                                                 (if no places are known, a walk finds some)
//! ```
//! Invariant: a filter has every key of the snapshot, or there is none.

use rocksdb::{DBRawIteratorWithThreadMode, SnapshotWithThreadMode};
use trommel_filters::KeySample;

use crate::base::Base;
use crate::door::{Door, Plan};
use crate::family::id_of;
use crate::filter::{Building, Filter};
use crate::keys::{SortedKeys, cut};
use crate::pause::{self, Point};
use crate::worker::Stop;

/// Bytes of keys that are held in memory, so that a single read of them also serves the sample.
const GATHERED_MAX: usize = if cfg!(test) { 1 << 15 } else { 96 << 20 };
/// Stretches of a sample that is taken by seeks, and the keys of all stretches.
const STRETCHES: usize = 64;
const SAMPLE_KEYS: usize = 1 << 14;
/// If fewer places are known, a walk along all keys finds more.
const PLACES_LEAST: usize = 8;
/// Keys between two calls of `check`.
const KEYS_BETWEEN: usize = 4096;
/// RocksDB's readahead in bytes.
const READAHEAD: usize = 2 << 20;

type Rows<'a, B> = DBRawIteratorWithThreadMode<'a, B>;

/// Builds the filter of all keys of a family. An error is that of `check`, or of RocksDB.
pub(crate) fn all_keys<B: Base>(
    db: &B,
    door: &Door,
    plan: &Plan,
    check: &dyn Fn() -> Result<(), Stop>,
) -> Result<Filter, Stop> {
    let family = db.cf_handle(&door.name).filter(|family| id_of(family) == door.id);
    let family = family.ok_or(Stop::Gone)?;
    let snapshot = SnapshotWithThreadMode::new(db);
    let rows = || {
        let mut options = rocksdb::ReadOptions::default();
        options.fill_cache(false);
        options.set_total_order_seek(true);
        options.set_readahead_size(READAHEAD);
        snapshot.raw_iterator_cf_opt(&family, options)
    };
    let (since, bits) = (snapshot.sequence_number(), door.options.bits_per_key);
    let mut walk = rows();
    walk.seek_to_first();
    let mut gathered = SortedKeys::default();
    let is_whole = take(&mut walk, check, |key| {
        gathered.push(key);
        gathered.bytes() < GATHERED_MAX
    })?;
    if is_whole {
        return Ok(Filter::of(&gathered, bits, since));
    }
    let (mut places, mut expected) = known(db, door, plan);
    if places.len() < PLACES_LEAST {
        (places, expected) = walked(&mut rows(), check)?;
    }
    let sample = sample(&mut rows(), &places)?;
    let expected = expected.max(gathered.len() as u64);
    let mut building = Building::new(&sample, expected, bits);
    gathered.iter().for_each(|key| building.push(key));
    drop(gathered);
    take(&mut walk, check, |key| {
        building.push(cut(key));
        true
    })?;
    Ok(building.finish(since))
}

/// Passes keys to `each` until it returns false. True: there are no more keys.
fn take<B: Base>(
    rows: &mut Rows<'_, B>,
    check: &dyn Fn() -> Result<(), Stop>,
    mut each: impl FnMut(&[u8]) -> bool,
) -> Result<bool, Stop> {
    let mut count = 0_usize;
    while let Some(key) = rows.key() {
        let goes_on = each(key);
        rows.next();
        count += 1;
        if count.is_multiple_of(KEYS_BETWEEN) {
            pause::at(Point::Scanning);
            check()?;
        }
        if !goes_on {
            return Ok(false);
        }
    }
    rows.status()?;
    Ok(true)
}

/// Returns keys that lie far apart, and an estimated number of all keys. The keys are marks of the
/// last filter, or first and last keys of files.
fn known<B: Base>(db: &B, door: &Door, plan: &Plan) -> (Vec<Vec<u8>>, u64) {
    let old = plan.old.as_ref().filter(|old| old.marks().len() >= STRETCHES);
    let estimated = db.estimated_keys(&door.name);
    match old {
        Some(old) => {
            let marks = old.marks().iter().map(<[u8]>::to_vec).collect();
            (marks, estimated.unwrap_or(old.keys()))
        }
        None => (db.places(&door.name), estimated.unwrap_or(0)),
    }
}

/// Walks along all keys. Returns evenly spread ones, and the number of all.
fn walked<B: Base>(
    rows: &mut Rows<'_, B>,
    check: &dyn Fn() -> Result<(), Stop>,
) -> Result<(Vec<Vec<u8>>, u64), Stop> {
    let (mut places, mut apart, mut count) = (Vec::new(), 1, 0_u64);
    rows.seek_to_first();
    take(rows, check, |key| {
        if count.is_multiple_of(apart) {
            places.push(cut(key).to_vec());
        }
        count += 1;
        if places.len() == 4 * STRETCHES {
            let mut place = 0;
            places.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            apart *= 2;
        }
        true
    })?;
    Ok((places, count))
}

/// Takes a sample: some keys behind each of some places.
fn sample<B: Base>(rows: &mut Rows<'_, B>, places: &[Vec<u8>]) -> Result<KeySample, Stop> {
    let mut sample = KeySample::default();
    let mut last = Vec::new();
    let stretches = places.iter().step_by((places.len() / STRETCHES).max(1));
    let keys_of_each = SAMPLE_KEYS / stretches.len().max(1);
    for place in stretches {
        rows.seek(place);
        let mut is_new = false;
        for _ in 0..keys_of_each {
            let Some(key) = rows.key().map(cut) else { break };
            if key > &last[..] {
                sample.push(key);
                last = key.to_vec();
                is_new = true;
            }
            rows.next();
        }
        if is_new {
            sample.end_stretch();
        }
        rows.status()?;
    }
    Ok(sample)
}
