//! `bench read --by-level`: the cost of gets by the level of their key, and how often each table is
//! asked.
//! ```text
//! gets of keys in level 0, level 1, ..., none    needless runs, blocks, cache lines of the filter
//!                                                (Chucky, Figures 11 and 13)
//! tables, newest level first                     gets that would search them without a filter
//!                                                (ElasticBF, Figure 2)
//! ```
//! Invariant: the runs, not the filter, say where a key is. Only counts are taken, no times.

use trommel::Db;
use trommel::research::PinnedTree;
use trommel::research::Research as _;
use trommel_filters::Query;

use crate::error::Result;
use crate::keys::key_list::SortedKeys;
use crate::keys::rng::random_order;
use crate::questions::queries::Queries;
use crate::report::{LevelCost, TableAsks};

/// The most keys examined for each key that is used, since the newest levels have few keys.
const LOOKED_AT: usize = 20;

/// Returns the cost of gets of stored keys (at most `most` over all levels) and of absent ones.
pub(crate) fn costs_by_level(
    db: &Db,
    stored: &SortedKeys,
    misses: Option<&Queries>,
    (most, seed): (usize, u64),
) -> Result<Vec<LevelCost>> {
    let tree = db.pinned_tree();
    let levels: Vec<usize> = tree.peek().runs.iter().map(|run| run.level).collect();
    let count = levels.last().map_or(0, |last| last + 1);
    let most_each = most.div_ceil(count.max(1));
    let mut of_level: Vec<Vec<&[u8]>> = vec![Vec::new(); count];
    for &place in random_order(stored.len(), seed).iter().take(most * LOOKED_AT) {
        let key = stored.get(place as usize);
        if let Some(&run) = tree.holders(key)?.first()
            && of_level[levels[run]].len() < most_each
        {
            of_level[levels[run]].push(key);
        }
        if of_level.iter().all(|keys| keys.len() == most_each) {
            break;
        }
    }
    let named = of_level.into_iter().enumerate();
    let missing = misses.map(|queries| {
        let keys = (0..queries.len().min(most)).map(|place| queries.lower(place));
        ("none".to_string(), keys.collect::<Vec<_>>())
    });
    let groups = named.map(|(level, keys)| (format!("level {level}"), keys)).chain(missing);
    let groups = groups.filter(|(_, keys)| !keys.is_empty());
    groups.map(|(place, keys)| cost(db, place, &keys)).collect()
}

fn cost(db: &Db, place: String, keys: &[&[u8]]) -> Result<LevelCost> {
    let before = db.stats()?.point;
    for key in keys {
        db.get(key)?;
    }
    let cost = db.stats()?.point.since(&before);
    let lines: usize = keys.iter().map(|key| db.trace_guard(&Query::Point(key))).sum();
    let each = |count: u64| count as f64 / keys.len() as f64;
    Ok(LevelCost {
        place,
        gets: keys.len() as u64,
        needless_runs_per_op: each(cost.false_positives),
        blocks_read_per_op: each(cost.blocks_read),
        guard_lines_per_op: each(lines as u64),
    })
}

/// Counts how often point queries ask each table.
pub(crate) fn asks_by_table(tree: &PinnedTree, queries: &Queries) -> Result<Vec<TableAsks>> {
    let levels = tree.table_levels();
    let mut asked = vec![0; levels.len()];
    for place in 0..queries.len() {
        for table in tree.asked_tables(queries.lower(place))? {
            asked[table] += 1;
        }
    }
    let tables = levels.into_iter().zip(asked).zip(0..);
    Ok(tables
        .map(|((level, asked), table)| TableAsks { table, level: level as u64, asked })
        .collect())
}
