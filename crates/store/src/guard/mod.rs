//! The question: which runs may hold this key or this key range? It is asked once per query, before
//! any file is opened.
//! ```text
//! Open      every run may
//! PerTable  each table's own filter answers, some filters for points only
//! Global    one filter answers with codes; a table may hold the key if its span meets a code
//! Locator   one filter knows which run each key is in; its codes are these runs' spans
//! ```
//! Invariant: a table that the answer leaves out holds no entry for the query. The guard is part of
//! the version that it describes.

pub(crate) mod allotment;
pub(crate) mod base_ages;
pub(crate) mod elastic;
pub(crate) mod elastic_stats;
pub(crate) mod empty_ranges;
pub(crate) mod filter_recovery;
pub(crate) mod locator;
pub(crate) mod monkey;
pub(crate) mod parts;
pub(crate) mod rebuild;
pub(crate) mod view_cursor;

use trommel_filters::{Codes, GrfOptions, HashedKey, KeyRange, LineCounter, Query, Span, Untraced};

use crate::files::run_table::RunTable;
use crate::guard::locator::LocatorGuard;
use crate::guard::parts::{PartChange, Parts};
use crate::plan::guard_kind::GuardKind;
use crate::plan::options::{OptionValues, Options};
use crate::sync::Arc;

/// The guard of a version.
#[derive(Clone)]
pub(crate) enum Guard {
    Open,
    PerTable,
    Global(Parts),
    Locator(Arc<LocatorGuard>),
}

/// A new guard, or new parts of one, prepared outside of the installer's lock.
pub(crate) enum Change {
    /// A whole guard. It fits as long as the old guard is still the same.
    Whole(Guard),
    /// New parts of a global filter.
    Parts(Vec<PartChange>),
}

/// The guard's answer to one query.
pub(crate) enum Answer<'q> {
    /// Every table may hold it: nothing is known.
    All,
    /// Ask each table's own filter for this key.
    Point(HashedKey<'q>),
    /// Ask each table's own filter for this range.
    Range(KeyRange<'q>),
    /// Tables whose span meets a code may hold it.
    Codes(Codes),
}

impl Guard {
    /// Returns the guard of a tree without runs. `cuts` are the partition boundaries of its last
    /// level.
    pub(crate) fn empty(options: &Options, cuts: &[Vec<u8>]) -> Guard {
        match (options.guard, grf_options(options)) {
            (_, Some(grf)) => Guard::Global(Parts::empty(&grf, cuts)),
            (GuardKind::Locator(kind), _) => {
                Guard::Locator(Arc::new(LocatorGuard::empty(kind, options)))
            }
            (GuardKind::Open, None) => Guard::Open,
            (_, None) => Guard::PerTable,
        }
    }

    /// Asks the guard once. The caller counts the probes of a global filter, one per call.
    #[inline]
    pub(crate) fn ask<'q>(&self, query: &Query<'q>) -> Answer<'q> {
        match self {
            Guard::Open => Answer::All,
            Guard::PerTable => match query {
                Query::Point(key) => Answer::Point(HashedKey::new(key)),
                Query::Range(range) => Answer::Range(*range),
            },
            Guard::Global(parts) => {
                let mut codes = Codes::new();
                parts.collect(query, &mut codes, &mut Untraced);
                Answer::Codes(codes)
            }
            Guard::Locator(guard) => {
                let mut codes = Codes::new();
                guard.ask(query, &mut codes);
                Answer::Codes(codes)
            }
        }
    }

    /// Asks for each of these keys, in order. A global filter is probed for all of them together.
    pub(crate) fn ask_many<'k>(
        &self,
        keys: &[&'k [u8]],
        mut answer: impl FnMut(usize, Answer<'k>),
    ) {
        let Some(parts) = self.parts() else {
            let queries = keys.iter().map(|key| Query::Point(key));
            return queries.enumerate().for_each(|(place, query)| answer(place, self.ask(&query)));
        };
        parts.collect_many(keys, |place, codes| answer(place, Answer::Codes(codes.clone())));
    }

    /// Like `ask_many`, for ranges.
    pub(crate) fn ask_many_ranges<'k>(
        &self,
        ranges: &[KeyRange<'k>],
        mut answer: impl FnMut(usize, Answer<'k>),
    ) {
        let Some(parts) = self.parts() else {
            let queries = ranges.iter().map(|range| Query::Range(*range));
            return queries.enumerate().for_each(|(place, query)| answer(place, self.ask(&query)));
        };
        parts.collect_many_ranges(ranges, |place, codes| {
            answer(place, Answer::Codes(codes.clone()))
        });
    }

    /// Returns the parts, which flushes extend and merges into the last level replace. None: not a
    /// global filter.
    pub(crate) fn parts(&self) -> Option<&Parts> {
        match self {
            Guard::Open | Guard::PerTable | Guard::Locator(_) => None,
            Guard::Global(parts) => Some(parts),
        }
    }

    /// Whether the guard takes the keys of each flush.
    pub(crate) fn takes_flushed_keys(&self) -> bool {
        matches!(self, Guard::Global(_) | Guard::Locator(_))
    }

    /// Applies a change that was prepared for another guard to this one, the newest. None: the
    /// change no longer fits.
    pub(crate) fn with(&self, change: &Change, prepared_for: &Guard) -> Option<Guard> {
        match (self, change) {
            (Guard::Global(parts), Change::Parts(changes)) => {
                parts.all_fit(changes).then(|| Guard::Global(parts.with_fitting(changes)))
            }
            (_, Change::Whole(guard)) => self.is_same(prepared_for).then(|| guard.clone()),
            (_, Change::Parts(_)) => None,
        }
    }

    /// Whether a whole guard that was prepared against one of these guards can replace the other.
    pub(crate) fn is_same(&self, other: &Guard) -> bool {
        match (self, other) {
            (Guard::Locator(one), Guard::Locator(other)) => Arc::ptr_eq(one, other),
            _ => true,
        }
    }

    /// Counts the cache lines of filter memory that answering `query` over `tables` touches.
    pub(crate) fn lines<'a>(
        &self,
        query: &Query<'_>,
        tables: impl Iterator<Item = &'a RunTable>,
    ) -> usize {
        let mut counter = LineCounter::default();
        match self {
            Guard::Open => {}
            Guard::PerTable => {
                for table in tables.map(|table| &table.table) {
                    match (query, table.filter()) {
                        (Query::Point(key), _) => {
                            table.trace_filter(&HashedKey::new(key), &mut counter);
                        }
                        (Query::Range(range), Some(filter)) => {
                            filter.may_overlap_traced(range, &mut counter);
                        }
                        (Query::Range(_), None) => {}
                    }
                }
            }
            Guard::Global(parts) => parts.collect(query, &mut Codes::new(), &mut counter),
            Guard::Locator(guard) => guard.ask_traced(query, &mut Codes::new(), &mut counter),
        }
        counter.take()
    }
}

impl Answer<'_> {
    /// False: the table surely has no entry for the query.
    #[inline]
    pub(crate) fn may_hold(&self, candidate: &RunTable) -> bool {
        match self {
            Answer::All => true,
            Answer::Point(key) => candidate.table.may_contain(key),
            Answer::Range(range) => candidate.table.may_overlap(range),
            Answer::Codes(codes) => codes.may_meet(candidate.span),
        }
    }

    /// False: the table has no entry for the query that came with one of these flushes. `flushes`
    /// None means no flush at all.
    pub(crate) fn may_hold_within(&self, candidate: &RunTable, flushes: Option<Span>) -> bool {
        match (self, flushes) {
            (_, None) => false,
            (Answer::Codes(codes), Some(span)) => codes.may_meet(span),
            (_, Some(_)) => self.may_hold(candidate),
        }
    }

    /// False: no table of a run with this span holds an entry for the query.
    #[inline]
    pub(crate) fn may_be_in(&self, run: Span) -> bool {
        match self {
            Answer::All | Answer::Point(_) | Answer::Range(_) => true,
            Answer::Codes(codes) => codes.may_meet(run),
        }
    }

    /// True: no table holds an entry for the query, so none needs to be looked at.
    #[inline]
    pub(crate) fn is_nowhere(&self) -> bool {
        matches!(self, Answer::Codes(codes) if codes.is_empty())
    }

    /// Returns the number of filter probes that the answer costs for this many tables.
    pub(crate) fn probes(&self, tables: u64) -> u64 {
        match self {
            Answer::All => 0,
            Answer::Point(_) | Answer::Range(_) => tables,
            Answer::Codes(_) => 1,
        }
    }
}

/// Returns the options of the global filter. None: the store has another guard.
fn grf_options(options: &Options) -> Option<GrfOptions> {
    let fingerprints = options.guard.fingerprints()?;
    let OptionValues { bits_per_key, point_bits, size_ratio, .. } = **options;
    let run_codes = options.guard.run_codes();
    Some(GrfOptions { bits_per_key, size_ratio, run_codes, fingerprints, point_bits })
}
