//! The runs that a scan has not read yet, each with a bound on its next key that costs no read.
//! ```text
//! run          [a ... f]   [h ... k]   [m ... z]
//! from g on    the next table's first key: h, for sure
//! from i on    the second table's filter: "from j on", or unknown: i
//! ```
//! Invariant: a waiting run has no key between the scan's position and its bound (backward: none at
//! or behind its bound). So a run may wait as long as its bound lies behind the current key.

use trommel_filters::{Codes, KeyRange, LowerBound, UpperBound};

use crate::entries::key_bounds::KeyBounds;
use crate::entries::keys::successor;
use crate::files::placed_run::PlacedRun;
use crate::files::run::Run;
use crate::files::run_table::RunTable;
use crate::files::table::TableFilter;
use crate::guard::locator::LocatorGuard;
use crate::read::scan_direction::Direction;

/// Where a run continues.
#[derive(Debug, PartialEq, Eq)]
enum Continuation {
    /// It has no key within the bounds.
    Nowhere,
    /// Unknown: the run must be positioned.
    Unknown,
    /// Forward: at this key or later. Backward: before this key.
    At(Vec<u8>),
}

/// Runs that wait to be positioned.
pub(crate) struct WaitingRuns {
    direction: Direction,
    /// Bounds, and places in the version's runs. The run that is due first comes last.
    runs: Vec<(Vec<u8>, usize)>,
}

/// What is known about runs before any of them is read.
pub(crate) struct Sorted {
    /// Places of the runs that must be positioned.
    pub(crate) unknown: Vec<usize>,
    pub(crate) waiting: WaitingRuns,
    /// The number of filter probes.
    pub(crate) probes: u64,
}

/// What knows where runs continue.
pub(crate) enum PositionSource<'a> {
    /// The filters of their tables.
    Tables,
    /// One filter that knows each key's run. Its answer for the range is `codes`.
    Locator { guard: &'a LocatorGuard, codes: Codes },
}

/// Separates the runs that can wait from those that must be positioned. `range`: the bounds in the
/// form that filters take.
pub(crate) fn sort(
    source: &PositionSource<'_>,
    runs: &[PlacedRun],
    direction: Direction,
    bounds: &KeyBounds,
    range: &KeyRange<'_>,
) -> Sorted {
    let mut question = Question { source, direction, bounds, range, probes: 0 };
    let (mut unknown, mut waiting) = (Vec::new(), Vec::new());
    for (place, placed) in runs.iter().enumerate() {
        match question.next_of(placed) {
            Continuation::Nowhere => {}
            Continuation::Unknown => unknown.push(place),
            Continuation::At(bound) => waiting.push((bound, place)),
        }
    }
    waiting.sort_unstable();
    if direction == Direction::Forward {
        waiting.reverse();
    }
    let waiting = WaitingRuns { direction, runs: waiting };
    Sorted { unknown, waiting, probes: question.probes }
}

impl WaitingRuns {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the bounds of the runs, and their places in the version's runs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.runs.iter().map(|(bound, place)| (bound.as_slice(), *place))
    }

    /// Takes out a run that may have a key within the bounds, at or before the current key. Returns
    /// its place and its bound. None: no run is due.
    pub(crate) fn take_due(
        &mut self,
        current: Option<&[u8]>,
        bounds: &KeyBounds,
    ) -> Option<(usize, Vec<u8>)> {
        let bound = self.runs.last()?.0.as_slice();
        let is_near = |key: &[u8]| (bound <= key) == (self.direction == Direction::Forward);
        let is_due = !self.direction.ends_before(bound, bounds) && current.is_none_or(is_near);
        let (bound, place) = if is_due { self.runs.pop()? } else { return None };
        Some((place, bound))
    }
}

/// The query that is put to every run.
struct Question<'a> {
    source: &'a PositionSource<'a>,
    direction: Direction,
    bounds: &'a KeyBounds,
    range: &'a KeyRange<'a>,
    probes: u64,
}

impl Question<'_> {
    fn next_of(&mut self, placed: &PlacedRun) -> Continuation {
        if let PositionSource::Locator { codes, .. } = self.source
            && !codes.may_meet(placed.span())
        {
            return Continuation::Nowhere;
        }
        self.next_in(placed.id, &placed.run)
    }

    fn next_in(&mut self, id: u64, run: &Run) -> Continuation {
        let tables = run.within(self.bounds);
        let nearest = match self.direction {
            Direction::Forward => tables.first(),
            Direction::Backward => tables.last(),
        };
        let Some(table) = nearest else { return Continuation::Nowhere };
        let begins_within = table.first_key() >= self.bounds.from.as_slice();
        let ends_within = self.bounds.ends_after(table.last_key());
        match (self.direction, self.source) {
            (Direction::Forward, _) if begins_within => {
                Continuation::At(table.first_key().to_vec())
            }
            (Direction::Backward, _) if ends_within => {
                Continuation::At(successor(table.last_key()))
            }
            // The near end of the range lies between the table's first and last key. Unless the far
            // end does too, one of its keys is in the range.
            (_, PositionSource::Tables) => self.ask_table(table, begins_within || ends_within),
            (_, PositionSource::Locator { guard, .. }) => self.ask_guard(guard, id),
        }
    }

    /// Asks the filter over all runs.
    fn ask_guard(&self, guard: &LocatorGuard, run: u64) -> Continuation {
        let KeyBounds { from: lower, to: end } = self.bounds;
        let bound = match (self.direction, end) {
            (Direction::Forward, _) => {
                guard.lower_bound(run, lower).map(|bound| (bound > *lower, bound))
            }
            (Direction::Backward, Some(end)) => {
                guard.upper_bound(run, end).map(|bound| (bound < *end, bound))
            }
            (Direction::Backward, None) => return Continuation::Unknown,
        };
        match bound {
            None => Continuation::Nowhere,
            Some((true, bound)) => at(self.direction, bound, self.bounds),
            Some((false, _)) => Continuation::Unknown,
        }
    }

    /// Asks the filter of the table in which the scan begins. No other table of the run has an
    /// earlier key for the scan.
    fn ask_table(&mut self, table: &RunTable, surely: bool) -> Continuation {
        let is_one_key = self.range.upper() == Some(self.range.lower());
        let knows = |filter: &&TableFilter| is_one_key || filter.kind().knows_ranges();
        let Some(filter) = table.table.filter().filter(knows) else { return Continuation::Unknown };
        self.probes += 1;
        if !surely && !filter.may_overlap(self.range) {
            return Continuation::Nowhere;
        }
        if table.is_trimmed() {
            // The file's next key may no longer belong to the tree. It may lie behind keys of the
            // run's other tables.
            return Continuation::Unknown;
        }
        match (self.direction, self.range.upper()) {
            (Direction::Forward, _) => forward(filter.lower_bound(self.range.lower()), self.bounds),
            (Direction::Backward, Some(upper)) => backward(filter.upper_bound(upper), self.bounds),
            (Direction::Backward, None) => Continuation::Unknown,
        }
    }
}

/// Interprets a filter's answer within the bounds. "No key at all" tells nothing, since the table
/// has keys there.
fn forward(answer: Option<LowerBound>, bounds: &KeyBounds) -> Continuation {
    match answer {
        Some(LowerBound::From { key, unsure: false }) => at(Direction::Forward, key, bounds),
        None | Some(LowerBound::End | LowerBound::From { unsure: true, .. }) => {
            Continuation::Unknown
        }
    }
}

/// As `forward`, from the other end.
fn backward(answer: Option<UpperBound>, bounds: &KeyBounds) -> Continuation {
    match answer {
        // The filter was asked with the end included, but a key at the end does not belong to the
        // scan.
        Some(UpperBound::Before { end, unsure: false }) => match &bounds.to {
            Some(most) if *most < end => at(Direction::Backward, most.clone(), bounds),
            _ => at(Direction::Backward, end, bounds),
        },
        None | Some(UpperBound::Start | UpperBound::Before { unsure: true, .. }) => {
            Continuation::Unknown
        }
    }
}

/// Returns the bound of a run, if it lies within the bounds of the scan.
fn at(direction: Direction, bound: Vec<u8>, bounds: &KeyBounds) -> Continuation {
    if direction.ends_before(&bound, bounds) {
        Continuation::Nowhere
    } else {
        Continuation::At(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::cursor::checks::Owned;
    use crate::entries::key_bounds::KeyBounds;
    use crate::files::table::Table;
    use crate::files::table::tests::{TableFiles, options};
    use crate::files::table::writer::TableOptions;
    use crate::sync::Arc;
    use trommel_filters::kinds;
    use trommel_filters::{FilterOptions, FlushNumber, Span};

    /// A run of tables with these keys.
    fn run(table_files: &TableFiles, tables: &[&[&str]]) -> Run {
        let table = |keys: &&[&str]| {
            let list: Vec<Owned> =
                keys.iter().map(|key| TableFiles::put(key.as_bytes(), 1, b"")).collect();
            RunTable::whole(table_files.table(&list, &options()), Span::of_flush(FlushNumber(1)))
        };
        Run::new(tables.iter().map(table).collect()).expect("in order")
    }

    /// A run of one table whose filter knows bounds on the next key.
    fn surf_run(table_files: &TableFiles, keys: &[&str]) -> Run {
        let list: Vec<Owned> =
            keys.iter().map(|key| TableFiles::put(key.as_bytes(), 1, b"")).collect();
        let filter = Some(FilterOptions::new(kinds::SURF_REAL, 30.0));
        let table = table_files.table(&list, &TableOptions { filter, ..options() });
        let (kind, cache) = (Some(kinds::SURF_REAL), Arc::clone(&table_files.cache));
        let table = Table::open(&table_files.files(), table.file(), cache, kind).expect("opens");
        let span = Span::of_flush(FlushNumber(1));
        Run::new(vec![RunTable::whole(table, span)]).expect("one table")
    }

    fn bounds(lower: &str, end: Option<&str>) -> KeyBounds {
        KeyBounds { from: lower.into(), to: end.map(|end| end.into()) }
    }

    fn next(run: &Run, direction: Direction, bounds: &KeyBounds) -> Continuation {
        let range = bounds.closed().expect("not empty");
        let source = &PositionSource::Tables;
        let mut question = Question { source, direction, bounds, range: &range, probes: 0 };
        question.next_in(0, run)
    }

    fn at(key: &str) -> Continuation {
        Continuation::At(key.into())
    }

    #[test]
    fn the_ends_of_tables_are_bounds_that_cost_nothing() {
        let table_files = TableFiles::new(0);
        let run = run(&table_files, &[&["b", "d"], &["f", "h"]]);
        let forward = |from, to| next(&run, Direction::Forward, &bounds(from, to));
        assert_eq!(forward("", None), at("b"));
        assert_eq!(forward("b", None), at("b"));
        assert_eq!(forward("e", None), at("f"));
        assert_eq!(forward("i", None), Continuation::Nowhere);
        assert_eq!(forward("c", None), Continuation::Unknown);
        assert_eq!(forward("", Some("b")), Continuation::Nowhere);
        assert_eq!(forward("d\0", Some("f")), Continuation::Nowhere);
        let backward = |from, to| next(&run, Direction::Backward, &bounds(from, to));
        assert_eq!(backward("", None), at("h\0"));
        assert_eq!(backward("", Some("h\0")), at("h\0"));
        assert_eq!(backward("", Some("f")), at("d\0"));
        assert_eq!(backward("", Some("b")), Continuation::Nowhere);
        assert_eq!(backward("", Some("g")), Continuation::Unknown);
        assert_eq!(backward("h\0", None), Continuation::Nowhere);
        assert_eq!(backward("d\0", Some("f")), Continuation::Nowhere);
    }

    // The filter's next key, x, was merged elsewhere; the run continues with n. A scan from c once
    // skipped n.
    #[test]
    fn what_the_filter_of_a_trimmed_table_says_is_no_bound() {
        let table_files = TableFiles::new(0);
        let whole = Arc::new(surf_run(&table_files, &["b", "x"]));
        assert_eq!(next(&whole, Direction::Forward, &bounds("c", None)), at("x"));
        let range = KeyBounds { from: Vec::new(), to: Some(b"m".to_vec()) };
        let trimmed = whole.clip(&range).expect("reads").expect("b is in it");
        let other = run(&table_files, &[&["n"]]);
        let both = [trimmed.tables(), other.tables()].concat();
        let both = Run::new(both).expect("in order");
        assert_eq!(next(&both, Direction::Forward, &bounds("c", None)), Continuation::Unknown);
        assert_eq!(next(&both, Direction::Forward, &bounds("m", None)), at("n"));
        assert_eq!(next(&both, Direction::Backward, &bounds("", Some("d"))), Continuation::Unknown);
        assert_eq!(next(&both, Direction::Forward, &bounds("c", Some("d"))), Continuation::Nowhere);
    }

    #[test]
    fn what_a_filter_says_is_taken_within_the_bounds() {
        let from = |key: &str, unsure| Some(LowerBound::From { key: key.into(), unsure });
        let open = bounds("c", None);
        assert_eq!(forward(from("e", false), &open), at("e"));
        assert_eq!(forward(from("c", true), &open), Continuation::Unknown);
        assert_eq!(forward(None, &open), Continuation::Unknown);
        assert_eq!(forward(Some(LowerBound::End), &open), Continuation::Unknown);
        assert_eq!(forward(from("e", false), &bounds("c", Some("e"))), Continuation::Nowhere);
        assert_eq!(forward(from("e", false), &bounds("c", Some("e\0"))), at("e"));
        let before = |end: &str, unsure| Some(UpperBound::Before { end: end.into(), unsure });
        assert_eq!(backward(before("e", false), &open), at("e"));
        assert_eq!(backward(before("c\0", false), &open), at("c\0"));
        assert_eq!(backward(before("c", false), &open), Continuation::Nowhere);
        assert_eq!(backward(before("e", true), &open), Continuation::Unknown);
        assert_eq!(backward(before("e\0", false), &bounds("c", Some("e"))), at("e"));
        assert_eq!(backward(before("d", false), &bounds("c", Some("e"))), at("d"));
        assert_eq!(backward(Some(UpperBound::Start), &open), Continuation::Unknown);
        assert_eq!(backward(None, &open), Continuation::Unknown);
    }

    #[test]
    fn runs_leave_in_the_order_of_their_bounds_and_ties_leave_together() {
        let all = bounds("", None);
        let waiting = |direction, bounds: &[&str]| WaitingRuns {
            direction,
            runs: bounds
                .iter()
                .zip(0..)
                .map(|(bound, place)| (bound.as_bytes().to_vec(), place))
                .collect(),
        };
        let mut forward = waiting(Direction::Forward, &["z", "f", "f", "b"]);
        let mut take = |key: Option<&str>, bounds: &KeyBounds| {
            forward.take_due(key.map(str::as_bytes), bounds).map(|(place, _)| place)
        };
        assert_eq!(take(None, &bounds("", Some("b"))), None, "behind the end");
        assert_eq!(take(None, &all), Some(3), "with no key in hand");
        assert_eq!(take(Some("e"), &all), None);
        assert_eq!((take(Some("f"), &all), take(Some("f"), &all)), (Some(2), Some(1)), "ties");
        assert_eq!(take(Some("f"), &all), None);
        let mut backward = waiting(Direction::Backward, &["b", "f", "f", "z"]);
        let mut take = |key: Option<&str>, bounds: &KeyBounds| {
            backward.take_due(key.map(str::as_bytes), bounds).map(|(place, _)| place)
        };
        assert_eq!(take(None, &bounds("z", None)), None, "before the range");
        assert_eq!(take(None, &all), Some(3));
        assert_eq!(take(Some("f"), &all), None, "every key of it is before f");
        assert_eq!((take(Some("e"), &all), take(Some("e"), &all)), (Some(2), Some(1)), "ties");
        assert_eq!(take(Some("c"), &all), None);
    }
}
