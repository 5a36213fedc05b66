//! Gets of stored keys through a queue, compared with the same gets one after the other.
//! ```text
//! round   get get get ...      submit x depth, then: an answer, the next get, ...      in turns
//! ```
//! Invariant: both sides ask for the same keys in the same order, and every answer was checked
//! before timing.

use std::hint::black_box;

use trommel::{Answer, Answered, Db, Queue};
use trommel_filters::Query;

use crate::bench::rounds::rounds_ns;
use crate::error::{LabError, Result};
use crate::keys::key_list::SortedKeys;
use crate::keys::values::fill_value;
use crate::median::median;
use crate::questions::queries::Queries;
use crate::report::PipelinedReport;

/// Measures gets of stored keys.
pub(crate) fn measure(
    db: &Db,
    hits: &Queries,
    stored: &SortedKeys,
    depth: usize,
    value_bytes: usize,
) -> Result<PipelinedReport> {
    let keys: Vec<&[u8]> = (0..hits.len()).map(|place| point(hits, place, stored)).collect();
    let (mut wrong, mut expected) = (0, Vec::new());
    ask(db, &keys, depth, |place, answer| {
        fill_value(&mut expected, keys[place], value_bytes);
        let is_right = matches!(&answer, Answer::Value(Ok(Some(value))) if **value == *expected);
        wrong += u64::from(!is_right);
        Ok(())
    })?;
    let rounds = rounds_ns(2, |side| {
        match side {
            0 => keys.iter().try_for_each(|key| db.get(key).map(|value| drop(black_box(value))))?,
            _ => ask(db, &keys, depth, |_, answer| {
                match answer {
                    Answer::Value(value) => drop(black_box(value?)),
                    Answer::Entries(entries) => drop(black_box(entries?)),
                }
                Ok(())
            })?,
        }
        Ok::<_, LabError>(keys.len() as u64)
    })?;
    let [one_by_one, queued] = [&rounds[0], &rounds[1]];
    let times_as_fast = one_by_one.iter().zip(queued).map(|(one, queued)| one / queued);
    let times_as_fast: Vec<f64> = times_as_fast.collect();
    let io = db.stats()?.io;
    Ok(PipelinedReport {
        depth: depth as u64,
        overlap: io.overlap.name(),
        direct: io.direct.reads,
        ops: keys.len() as u64,
        one_by_one_ns: median(&mut one_by_one.clone()),
        queue_ns: median(&mut queued.clone()),
        times_as_fast: median(&mut times_as_fast.clone()),
        one_by_one_ns_rounds: one_by_one.clone(),
        queue_ns_rounds: queued.clone(),
        times_as_fast_rounds: times_as_fast,
        wrong,
    })
}

/// Returns the key of a point query.
/// Requires: the queries are gets.
fn point<'k>(queries: &'k Queries, place: usize, stored: &'k SortedKeys) -> &'k [u8] {
    match queries.query(place, stored) {
        Query::Point(key) => key,
        Query::Range(_) => unreachable!("gets are for points"),
    }
}

/// Asks for all keys, with `depth` gets in flight.
fn ask(
    db: &Db,
    keys: &[&[u8]],
    depth: usize,
    mut answered: impl FnMut(usize, Answer) -> Result<()>,
) -> Result<()> {
    let mut queue = db.queue(depth);
    let mut next = |queue: &mut Queue| match queue.wait() {
        Some(Answered { tag, answer }) => answered(tag as usize, answer),
        None => unreachable!("a get is under way"),
    };
    for (tag, key) in (0..).zip(keys) {
        if queue.under_way() >= depth {
            next(&mut queue)?;
        }
        queue.submit_get(key, tag);
    }
    while queue.under_way() > 0 {
        next(&mut queue)?;
    }
    Ok(())
}
