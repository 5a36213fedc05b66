//! Rebuilds a part of the global filter from the runs, where no image fits, or where flushes are
//! newer than the image.
//! ```text
//! oldest run                   -> base
//! newer runs, from old to new  -> overlay, each key with its own flush as its code
//! ```
//! Invariant: the part has every entry of the runs within its range.

use trommel_filters::{
    EmptyQueries, FlushNumber, GrfOptions, KeyList, Part, PartBuilder, QueryMix, Shape,
};

use crate::entries::key_bounds::KeyBounds;
use crate::error::{Error, Result};
use crate::files::distinct_keys::{Keys, for_each_key, keys_by_flush};
use crate::files::key_sample::sample_of_run;
use crate::files::placed_run::PlacedRun;
use crate::files::run::Run;
use crate::files::run_table::RunTable;
use crate::plan::flush_size::{FlushSize, OverlayShare};
use crate::plan::layout::Layout;
use crate::plan::options::Options;
use crate::sync::Arc;

/// The end of the code [0, 1) of the keys in a part's base. Spans of the oldest run's tables begin
/// at 0 by definition, so all of them contain this code, and no other table's span does. (GRF's
/// design ends the code at B, the largest end of these spans. Where spans of runs overlap, newer
/// tables with an old entry would then be candidates for every key of the base.)
pub(crate) const BASE_CODE_END: FlushNumber = FlushNumber(1);

/// Makes the builder of a part that replaces another one.
pub(crate) fn part_builder(
    options: &GrfOptions,
    overlay_share: Option<OverlayShare>,
) -> PartBuilder {
    match overlay_share {
        Some(OverlayShare { now, full }) => PartBuilder::with_overlay_shares(options, now, full),
        None => PartBuilder::new(options),
    }
}

/// Returns the part with the keys of a run added, for flushes from `from` on. Each key's code is
/// its own flush. Codes are widened as `shape` says. Requires: the run lies in the part's range.
pub(crate) fn insert_run(
    part: &Part,
    run: &Arc<Run>,
    (layout, shape): (&Layout, &Shape),
    from: FlushNumber,
) -> Result<Part> {
    let mut lists = keys_by_flush(run, |sequence| {
        let what = "an entry of a flush that is not on record";
        layout.flush_of(sequence).ok_or_else(|| Error::corrupt(run.path(), 0, what))
    })?;
    let insert = |part: Part, (flush, keys): (FlushNumber, KeyList)| {
        let mut inserter = part.inserter(flush, shape);
        Keys { list: &keys, places: 0..keys.len() }.give_to(&mut inserter);
        inserter.finish()
    };
    Ok(lists.split_off(&from).into_iter().fold(part.clone(), insert))
}

/// Splits the oldest run's tables in a partition into those of the base and the others. There are
/// others if the run became the oldest without a merge, since all older runs were deleted. Their
/// spans do not begin at 0, and their flushes are on record.
fn base_of(oldest: &PlacedRun, bounds: &KeyBounds) -> Result<[Option<Arc<Run>>; 2]> {
    let Some(run) = oldest.run.clip(bounds)? else { return Ok([None, None]) };
    let is_base = |table: &RunTable| table.span.lo() == FlushNumber(0);
    let (base, newer_tables): (Vec<_>, Vec<_>) = run.tables().iter().cloned().partition(is_base);
    Ok([base, newer_tables].map(|tables| Run::new(tables).map(Arc::new)))
}

/// The learned queries that a part is optimized for.
#[derive(Default)]
pub(crate) struct MadeFor {
    pub(crate) query_mix: QueryMix,
    pub(crate) empty_queries: EmptyQueries,
}

/// Rebuilds the part of one partition from the runs. Codes are widened as `shape` says.
pub(crate) fn rebuild_part(
    options: &Options,
    (grf, made_for): (&GrfOptions, &MadeFor),
    (layout, runs): (&Layout, &[PlacedRun]),
    (bounds, shape): (&KeyBounds, &Shape),
) -> Result<Part> {
    let Some((oldest, newer)) = runs.split_last() else { return Ok(Part::empty(grf)) };
    let share = layout.runs.split_last().and_then(|(oldest, newer)| {
        let size = FlushSize::of_tree(layout, newer, options.division().granularity);
        size.overlay_share(oldest.entries(), &options.schedule())
    });
    let mut builder = part_builder(grf, share).query_mix(made_for.query_mix);
    let [base, newer_tables] = base_of(oldest, bounds)?;
    if let Some(run) = base {
        let (sample, keys) = (sample_of_run(&run)?, run.likely_keys());
        builder = builder.with_sample(&sample, keys);
        builder = builder.with_empty_queries(&made_for.empty_queries, &sample, keys);
        for_each_key(&run, |key| builder.push(key))?;
    }
    let newer =
        newer.iter().rev().map(|placed| placed.run.clip(bounds)).filter_map(Result::transpose);
    let overlay = newer_tables.map(Ok).into_iter().chain(newer);
    overlay.into_iter().try_fold(builder.finish(BASE_CODE_END), |part, run| {
        insert_run(&part, &run?, (layout, shape), FlushNumber(0))
    })
}
