//! Estimates for a range: a count within bounds, or the proof that the range is empty.
//! ```text
//! memtables     entry by entry
//! runs          global guard: ranks in the filter
//!               else    entries of the blocks between the ends, by the tables' indexes; or keys,
//!                       by a table's own filter, if that is more precise
//! ```
//! No block is read. Invariant: the range has at most `most` keys, since every key has an entry.

use trommel_filters::{CountBounds, KeyRange, Query, RankBounds};

use crate::entries::cursor::Cursor;
use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::memtable::Memtable;
use crate::error::{Error, Result};
use crate::files::run_table::RunTable;
use crate::guard::{Answer, Guard};
use crate::sync::{Arc, giving_up};
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;

/// Counts the entries of a range at a registered sequence number. If a run has newer entries,
/// `least` ignores all runs, since they do not tell which of their entries are newer.
pub(crate) fn approximate_count(
    tree: &OpenTree,
    bounds: &KeyBounds,
    at: Sequence,
) -> Result<CountBounds> {
    let Some(range) = bounds.closed() else { return Ok(CountBounds::default()) };
    let version = tree.current.hold();
    tree.check_open()?;
    let mut total = count_in_runs(&version, bounds, &range);
    if version.runs.iter().any(|placed| placed.run.greatest() > at) {
        total.least = 0;
    }
    for memtable in memtables(&version) {
        total += CountBounds::exact(count_in_memtable(memtable, bounds, at)?);
    }
    Ok(total)
}

fn count_in_runs(version: &Version, bounds: &KeyBounds, range: &KeyRange<'_>) -> CountBounds {
    let mut total = CountBounds::default();
    match &version.guard {
        Guard::Global(parts) => parts.overlapping(range).for_each(|part| {
            total += part.approximate_count(range);
        }),
        Guard::Open | Guard::PerTable | Guard::Locator(_) => {
            tables(version, bounds).for_each(|table| total += count_in_table(table, bounds, range));
        }
    }
    total
}

/// Counts by the index, unless the table's filter is more precise.
fn count_in_table(table: &RunTable, bounds: &KeyBounds, range: &KeyRange<'_>) -> CountBounds {
    if table.is_trimmed() {
        // Some of the file's keys in the range may no longer belong to the tree.
        return count_by_index(table, bounds);
    }
    let slack = |count: &CountBounds| count.most - count.least;
    let by_index = count_by_index(table, bounds);
    if slack(&by_index) == 0 {
        return by_index;
    }
    let by_filter = table.table.filter().and_then(|filter| filter.count(range));
    // The filter was asked with the end included. A key there may be in the table, but not in the
    // range.
    let end_is_in = bounds.to.is_some() && bounds.to.as_deref() == range.upper();
    let by_filter = by_filter.map(|count| CountBounds {
        least: count.least.saturating_sub(u64::from(end_is_in)),
        ..count
    });
    by_filter.filter(|count| slack(count) < slack(&by_index)).unwrap_or(by_index)
}

/// Counts by the block index. It is off by at most the blocks at the two ends.
fn count_by_index(table: &RunTable, bounds: &KeyBounds) -> CountBounds {
    let all = RankBounds::exact(table.entry_count());
    let low = table.rank_bounds(&bounds.from);
    let high = bounds.to.as_ref().map_or(all, |end| table.rank_bounds(end));
    CountBounds {
        least: high.least.saturating_sub(low.most),
        estimate: high.middle().saturating_sub(low.middle()),
        most: high.most.saturating_sub(low.least),
    }
}

fn count_in_memtable(memtable: &Arc<Memtable>, bounds: &KeyBounds, at: Sequence) -> Result<u64> {
    let mut cursor = memtable.cursor();
    cursor.seek(&bounds.from)?;
    let (mut count, mut passed) = (0, 0u32);
    while let Some(entry) = cursor.entry().filter(|entry| bounds.ends_after(entry.key)) {
        count += u64::from(entry.sequence <= at);
        passed = passed.wrapping_add(1);
        if giving_up::is_given_up_after(passed) {
            return Err(Error::Cancelled);
        }
        cursor.next()?;
    }
    Ok(count)
}

/// Whether a range may contain a key. False proves that it contains none.
pub(crate) fn may_contain_range(tree: &OpenTree, bounds: &KeyBounds) -> Result<bool> {
    let Some(range) = bounds.closed() else { return Ok(false) };
    let version = tree.current.hold();
    tree.check_open()?;
    if is_in_memory(&version, bounds)? {
        return Ok(true);
    }
    let answer = version.guard.ask(&Query::Range(range));
    Ok(may_be_in_runs(tree, &version, bounds, &answer))
}

/// As `may_contain_range`, for each of the ranges.
pub(crate) fn multi_may_contain(tree: &OpenTree, all: &[KeyBounds]) -> Result<Vec<bool>> {
    let version = tree.current.hold();
    tree.check_open()?;
    let mut answers = vec![false; all.len()];
    let (mut places, mut ranges) = (Vec::new(), Vec::new());
    for (place, bounds) in all.iter().enumerate() {
        let Some(range) = bounds.closed() else { continue };
        answers[place] = is_in_memory(&version, bounds)?;
        if !answers[place] {
            places.push(place);
            ranges.push(range);
        }
    }
    version.guard.ask_many_ranges(&ranges, |number, answer| {
        let place = places[number];
        answers[place] = may_be_in_runs(tree, &version, &all[place], &answer);
    });
    Ok(answers)
}

fn is_in_memory(version: &Version, bounds: &KeyBounds) -> Result<bool> {
    for memtable in memtables(version).filter(|memtable| !memtable.is_empty()) {
        let mut cursor = memtable.cursor();
        cursor.seek(&bounds.from)?;
        if cursor.entry().is_some_and(|entry| bounds.ends_after(entry.key)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Interprets the guard's answer. Notes an empty range, from which the filter learns, as a scan
/// does.
fn may_be_in_runs(
    tree: &OpenTree,
    version: &Version,
    bounds: &KeyBounds,
    answer: &Answer<'_>,
) -> bool {
    let is_there =
        !answer.is_nowhere() && tables(version, bounds).any(|table| answer.may_hold(table));
    if !is_there {
        tree.empty_query_sample.note_range(bounds);
    }
    is_there
}

fn memtables(version: &Version) -> impl Iterator<Item = &Arc<Memtable>> {
    let sealed = version.sealed.iter().map(|sealed| &sealed.memtable);
    std::iter::once(&version.active.memtable).chain(sealed)
}

/// Iterates over the tables whose key ranges meet the bounds.
fn tables<'v>(version: &'v Version, bounds: &'v KeyBounds) -> impl Iterator<Item = &'v RunTable> {
    version.runs.iter().flat_map(|placed| placed.run.within(bounds))
}

#[cfg(test)]
mod tests {
    use crate::shared::environment::Environment;
    use crate::storage::memory::Memory;
    use crate::sync::Arc;
    use crate::{Background, Db, KeyBounds, Options};

    #[test] // They were not sampled: such a store never learnt where it is asked.
    fn ranges_that_have_nothing_are_learnt_from() {
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let options = Options::new().background(Background::Stepped);
        let db = Db::open_with("db", options, environment).expect("opens");
        db.put("a", "1").and_then(|()| db.put("z", "1")).expect("puts");
        db.compact().expect("merges");
        assert!(!db.may_contain_range("b".."c").expect("asks"));
        assert_eq!(db.multi_may_contain(["d".."e", "z".."zz"]).expect("asks"), [false, true]);
        let version = db.engine.current.hold();
        let parts = version.guard.parts().expect("a global filter");
        let queries = db.engine.empty_query_sample.take(parts, &KeyBounds::all());
        let keys: Vec<_> = queries.iter().map(|query| query.key.to_vec()).collect();
        assert_eq!(keys, [b"b", b"d"]);
    }
}
