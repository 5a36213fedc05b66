//! All keys of a family at one moment, on their way to a filter.
//! ```text
//! snapshot ── first keys gathered ── all there? ── sample of them ── filter
//!                                    more ──────── sample by seeks ── filter of those and the rest
//!                                                   (of the gathered, if nobody knows where to)
//! ```
//! Invariant: a filter is made of every key that the snapshot shows, or there is none.

use rocksdb::DBRawIteratorWithThreadMode;
use trommel_filters::KeySample;

use crate::db::RocksDb;
use crate::door::{Door, Plan};
use crate::filter::{Building, Filter};
use crate::keys::{SortedKeys, cut};
use crate::pause::{self, Point};
use crate::worker::Stop;

/// Bytes of keys that are held in memory, so that one reading serves the sample, too.
const GATHERED_MAX: usize = if cfg!(test) { 1 << 15 } else { 96 << 20 };
/// Stretches of a sample that is taken by seeks, and the keys of each.
const STRETCHES: usize = 64;
const STRETCH_KEYS: usize = 256;
/// Keys between two looks at what else is to be done.
const KEYS_BETWEEN: usize = 4096;
/// Bytes that RocksDB reads ahead.
const READAHEAD: usize = 2 << 20;

type Rows<'a> = DBRawIteratorWithThreadMode<'a, RocksDb>;

/// The filter of all keys of a family. An error: `check` gave one, or RocksDB did.
pub(crate) fn all_keys(
    db: &RocksDb,
    door: &Door,
    plan: &Plan,
    check: &dyn Fn() -> Result<(), Stop>,
) -> Result<Filter, Stop> {
    let family = db.cf_handle(&door.name).ok_or(Stop::Void)?;
    let snapshot = db.snapshot();
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
    let places = places(db, door, plan);
    let sample = if places.len() < STRETCHES {
        KeySample::evenly(gathered.len(), |place| gathered.get(place))
    } else {
        sample(&mut rows(), &places)?
    };
    let expected = expected(db, door).max(gathered.len() as u64);
    let mut building = Building::new(&sample, expected, bits);
    gathered.iter().for_each(|key| building.push(key));
    drop(gathered);
    take(&mut walk, check, |key| {
        building.push(cut(key));
        true
    })?;
    Ok(building.finish(since))
}

/// Gives keys to `each`, until it has enough or there are no more: whether that is so.
fn take(
    rows: &mut Rows<'_>,
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

/// Keys that lie far apart: marks of the last filter, or where files begin.
fn places(db: &RocksDb, door: &Door, plan: &Plan) -> Vec<Vec<u8>> {
    if let Some(old) = plan.old.as_ref().filter(|old| old.marks().len() >= STRETCHES) {
        return old.marks().iter().map(<[u8]>::to_vec).collect();
    }
    let files = db.live_files().unwrap_or_default();
    let of_family = files.into_iter().filter(|file| file.column_family_name == door.name);
    let mut places: Vec<Vec<u8>> =
        of_family.flat_map(|file| [file.start_key, file.end_key]).flatten().collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Some keys behind each of some of the places.
fn sample(rows: &mut Rows<'_>, places: &[Vec<u8>]) -> Result<KeySample, Stop> {
    let mut sample = KeySample::default();
    let mut last = Vec::new();
    for place in places.iter().step_by((places.len() / STRETCHES).max(1)) {
        rows.seek(place);
        let mut is_new = false;
        for _ in 0..STRETCH_KEYS {
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

/// The keys of the family, as RocksDB estimates.
fn expected(db: &RocksDb, door: &Door) -> u64 {
    let family = db.cf_handle(&door.name);
    let count = family.and_then(|family| {
        db.property_int_value_cf(&family, rocksdb::properties::ESTIMATE_NUM_KEYS).ok().flatten()
    });
    count.unwrap_or(0)
}
