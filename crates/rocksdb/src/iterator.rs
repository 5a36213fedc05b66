//! Iterators that query the door before RocksDB.
//! ```text
//! made    both bounds, or a place and the bound behind it, are known: denied ── RocksDB makes none
//!         (unless a snapshot may end before it is needed)
//!         else: load the view, let RocksDB pin its state, check that the view is still current
//! sought  from the place to the bound: denied by that view ── RocksDB does not seek
//! ```
//! Invariant: an iterator queries only the view that was current when its state was pinned.

use std::sync::Arc;

use rocksdb::{DBRawIteratorWithThreadMode, Direction, Error, IteratorMode};

use crate::base::{Base, RocksDb};
use crate::db::DoorDb;
use crate::door::Door;
use crate::family::ColumnFamily;
use crate::habit::Habit;
use crate::pause::{self, Point, Rule};
use crate::read_options::ReadOptions;
use crate::view::{Asked, View};

/// An iterator over keys and values, positioned by hand: see
/// [`rocksdb::DBRawIteratorWithThreadMode`].
///
/// If the door denies the whole range, RocksDB makes no iterator, unless a snapshot is set that
/// may end before.
pub struct DbRawIterator<'a, B: Base = RocksDb> {
    db: &'a DoorDb<B>,
    family: Option<ColumnFamily<'a>>,
    /// None once RocksDB's iterator has taken them.
    options: Option<ReadOptions>,
    inner: Option<DBRawIteratorWithThreadMode<'a, B>>,
    bounds: Bounds,
    /// The view to query. None: no view is known to match the pinned state.
    view: Option<Arc<View>>,
    /// Whether nothing lies where the iterator was moved last.
    is_denied: bool,
}

/// What an iterator may show.
struct Bounds {
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    snapshot: Option<u64>,
    may_ask: bool,
    /// Bytes of the prefix of the key sought, if the iterator stays within it.
    prefix_bytes: Option<usize>,
    /// A range that was denied before RocksDB has made an iterator: the first key, and the key
    /// behind the range.
    denied: (Vec<u8>, Vec<u8>),
}

/// The end of a range of keys.
#[derive(Clone, Copy)]
enum To<'k> {
    Before(&'k [u8]),
    Through(&'k [u8]),
}

impl To<'_> {
    fn asked<'k>(from: &'k [u8], to: To<'_>) -> Option<Asked<'k>> {
        match to {
            To::Before(end) => Asked::before(from, end),
            To::Through(last) => Asked::through(from, last),
        }
    }

    fn is_within(self, end: &[u8]) -> bool {
        match self {
            To::Before(own) => own <= end,
            To::Through(last) => last < end,
        }
    }
}

impl Bounds {
    fn of(options: &ReadOptions, door: &Door) -> Bounds {
        let prefix_bytes = door.rules.prefix_bytes().filter(|_| options.is_one_prefix);
        Bounds {
            lower: options.lower.clone(),
            upper: options.upper.clone(),
            snapshot: options.snapshot,
            may_ask: options.may_ask(),
            prefix_bytes,
            denied: Default::default(),
        }
    }

    /// The exclusive end of a seek to `key`: the upper bound, or the end of the prefix if that
    /// comes first.
    fn end(&self, key: &[u8]) -> Option<Vec<u8>> {
        let of_prefix = self.prefix_bytes.and_then(|bytes| after_prefix(key.get(..bytes)?));
        match (of_prefix, &self.upper) {
            (Some(end), Some(upper)) => Some(end.min(upper.clone())),
            (end, upper) => end.or_else(|| upper.clone()),
        }
    }

    fn lower(&self) -> &[u8] {
        self.lower.as_deref().unwrap_or_default()
    }

    /// Where a seek to `key` begins: there, or at the lower bound.
    fn from<'k>(&'k self, key: &'k [u8]) -> &'k [u8] {
        key.max(self.lower())
    }
}

/// Returns the first key behind all keys with the prefix.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

impl<'a, B: Base> DbRawIterator<'a, B> {
    pub(crate) fn new(
        db: &'a DoorDb<B>,
        family: Option<ColumnFamily<'a>>,
        options: ReadOptions,
        mode: Option<IteratorMode<'_>>,
    ) -> DbRawIterator<'a, B> {
        let bounds = Bounds::of(&options, db.door_of(family.as_ref()));
        let snapshot_may_end = options.snapshot_may_end;
        let mut iterator = DbRawIterator {
            db,
            family,
            options: Some(options),
            inner: None,
            bounds,
            view: None,
            is_denied: true,
        };
        let denied = iterator.denied_at_first(mode);
        let is_denied = denied.is_some();
        iterator.bounds.denied = denied.unwrap_or_default();
        if !is_denied || snapshot_may_end {
            iterator.pin();
        }
        iterator.is_denied = is_denied;
        iterator
    }

    fn door(&self) -> &Door {
        self.db.door_of(self.family.as_ref())
    }

    /// Returns a denied range, if the door can deny one before RocksDB makes an iterator.
    fn denied_at_first(&self, mode: Option<IteratorMode<'_>>) -> Option<(Vec<u8>, Vec<u8>)> {
        let bounds = &self.bounds;
        if !bounds.may_ask {
            return None;
        }
        let from = match mode {
            None | Some(IteratorMode::Start | IteratorMode::End) => bounds.lower.as_deref()?,
            Some(IteratorMode::From(key, Direction::Forward)) => bounds.from(key),
            Some(IteratorMode::From(_, Direction::Reverse)) => bounds.lower.as_deref()?,
        };
        let end = match mode {
            Some(IteratorMode::From(_, Direction::Forward)) => bounds.end(from)?,
            _ => bounds.upper.clone()?,
        };
        let asked = Asked::before(from, &end)?;
        let is_denied = self.asks(|door| door.denies_range(&asked, bounds.snapshot));
        is_denied.then(|| (from.to_vec(), end))
    }

    fn asks(&self, ask: impl FnOnce(&Door) -> bool) -> bool {
        let door = self.door();
        let habit = Habit::of_ranges(door.id);
        if !habit.is_worth_it() {
            return false;
        }
        let is_denied = ask(door);
        habit.learn(is_denied);
        is_denied
    }

    /// Lets RocksDB pin the state, and keeps the door's view if it matches.
    fn pin(&mut self) {
        let Some(options) = self.options.take() else { return };
        let view = Arc::clone(&self.door().look());
        pause::at(Point::Pinning);
        let db = self.db.inner();
        self.inner = Some(match &self.family {
            Some(family) => db.raw_iterator_cf_opt(family, options.inner),
            None => db.raw_iterator_opt(options.inner),
        });
        self.see(view);
        self.is_denied = false;
    }

    /// Keeps a view that was loaded before the state was pinned, if it is still current.
    fn see(&mut self, view: Arc<View>) {
        let is_current = self.door().is_current(&view) || pause::is_broken(Rule::Current);
        let is_known = self.bounds.may_ask && is_current;
        self.view = (is_known && view.filter.is_some()).then_some(view);
    }

    /// Whether the door denies the range. If not, RocksDB's iterator exists when this returns.
    fn is_nothing(&mut self, from: &[u8], to: Option<To<'_>>) -> bool {
        if self.inner.is_none() {
            let (first, end) = &self.bounds.denied;
            if from >= &first[..] && to.is_some_and(|to| to.is_within(end)) {
                return true;
            }
            self.pin();
        }
        let Some(view) = &self.view else { return false };
        let Some(asked) = to.and_then(|to| To::asked(from, to)) else { return false };
        let snapshot = self.bounds.snapshot;
        self.asks(|door| door.denies_range_in(view, &asked, snapshot))
    }

    /// Moves RocksDB's iterator, unless the range was denied.
    fn go(&mut self, is_nothing: bool, go: impl FnOnce(&mut DBRawIteratorWithThreadMode<'a, B>)) {
        self.is_denied = is_nothing;
        if let (false, Some(inner)) = (is_nothing, &mut self.inner) {
            go(inner);
        }
    }

    /// Moves to the first key that is not below `key`.
    pub fn seek<K: AsRef<[u8]>>(&mut self, key: K) {
        let key = key.as_ref();
        let from = self.bounds.from(key).to_vec();
        let end = self.bounds.end(&from);
        let is_nothing = self.is_nothing(&from, end.as_deref().map(To::Before));
        self.go(is_nothing, |inner| inner.seek(key));
    }

    /// Moves to the last key that is not above `key`.
    pub fn seek_for_prev<K: AsRef<[u8]>>(&mut self, key: K) {
        let key = key.as_ref();
        let (from, upper) = (self.bounds.lower().to_vec(), self.bounds.upper.clone());
        let to = match &upper {
            Some(upper) if &upper[..] <= key => To::Before(upper),
            _ => To::Through(key),
        };
        let is_nothing = self.is_nothing(&from, Some(to));
        self.go(is_nothing, |inner| inner.seek_for_prev(key));
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        let is_nothing = self.is_nothing_at_all();
        self.go(is_nothing, DBRawIteratorWithThreadMode::seek_to_first);
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        let is_nothing = self.is_nothing_at_all();
        self.go(is_nothing, DBRawIteratorWithThreadMode::seek_to_last);
    }

    fn is_nothing_at_all(&mut self) -> bool {
        let (lower, upper) = (self.bounds.lower().to_vec(), self.bounds.upper.clone());
        self.is_nothing(&lower, upper.as_deref().map(To::Before))
    }

    /// Moves to the next key.
    pub fn next(&mut self) {
        self.go(self.is_denied, DBRawIteratorWithThreadMode::next);
    }

    /// Moves to the previous key.
    pub fn prev(&mut self) {
        self.go(self.is_denied, DBRawIteratorWithThreadMode::prev);
    }

    fn placed(&self) -> Option<&DBRawIteratorWithThreadMode<'a, B>> {
        self.inner.as_ref().filter(|_| !self.is_denied)
    }

    /// Whether the iterator is at a key.
    pub fn valid(&self) -> bool {
        self.placed().is_some_and(DBRawIteratorWithThreadMode::valid)
    }

    /// Returns RocksDB's error, if it met one.
    pub fn status(&self) -> Result<(), Error> {
        self.placed().map_or(Ok(()), DBRawIteratorWithThreadMode::status)
    }

    /// The current key.
    pub fn key(&self) -> Option<&[u8]> {
        self.placed()?.key()
    }

    /// The current value.
    pub fn value(&self) -> Option<&[u8]> {
        self.placed()?.value()
    }

    /// The current key and value.
    pub fn item(&self) -> Option<(&[u8], &[u8])> {
        self.placed()?.item()
    }

    /// The current key's timestamp, if keys have timestamps.
    pub fn timestamp(&self) -> Option<&[u8]> {
        self.placed()?.timestamp()
    }

    /// Shows the newest state from now on, even if the iterator was made with a snapshot. It is at
    /// no key.
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.pin();
        let view = Arc::clone(&self.door().look());
        pause::at(Point::Pinning);
        if let Some(inner) = &mut self.inner {
            inner.refresh()?;
        }
        self.bounds.snapshot = None;
        self.see(view);
        self.is_denied = true;
        Ok(())
    }
}

/// An iterator over keys and values: see [`rocksdb::DBIteratorWithThreadMode`].
///
/// A denied iterator pins no state. If [`DbIterator::set_mode`] moves it to a place before the
/// denied range, it shows the state of that moment.
pub struct DbIterator<'a, B: Base = RocksDb> {
    raw: DbRawIterator<'a, B>,
    direction: Direction,
    is_done: bool,
}

impl<'a, B: Base> DbIterator<'a, B> {
    pub(crate) fn new(
        db: &'a DoorDb<B>,
        family: Option<ColumnFamily<'a>>,
        options: ReadOptions,
        mode: IteratorMode<'_>,
    ) -> DbIterator<'a, B> {
        let raw = DbRawIterator::new(db, family, options, Some(mode));
        let mut iterator = DbIterator { raw, direction: Direction::Forward, is_done: false };
        if iterator.raw.is_denied {
            iterator.is_done = true;
        } else {
            iterator.place(mode);
        }
        iterator
    }

    /// Starts again from another place.
    pub fn set_mode(&mut self, mode: IteratorMode<'_>) {
        self.is_done = false;
        self.direction = direction_of(mode);
        match mode {
            IteratorMode::Start => self.raw.seek_to_first(),
            IteratorMode::End => self.raw.seek_to_last(),
            IteratorMode::From(key, Direction::Forward) => self.raw.seek(key),
            IteratorMode::From(key, Direction::Reverse) => self.raw.seek_for_prev(key),
        }
    }

    /// Like `set_mode`, without a query, since there was one when the iterator was made.
    fn place(&mut self, mode: IteratorMode<'_>) {
        self.direction = direction_of(mode);
        self.raw.go(false, |inner| match mode {
            IteratorMode::Start => inner.seek_to_first(),
            IteratorMode::End => inner.seek_to_last(),
            IteratorMode::From(key, Direction::Forward) => inner.seek(key),
            IteratorMode::From(key, Direction::Reverse) => inner.seek_for_prev(key),
        });
    }

    /// Shows the newest state from now on, starting at this place.
    pub fn refresh(&mut self, mode: IteratorMode<'_>) -> Result<(), Error> {
        self.raw.refresh()?;
        self.set_mode(mode);
        Ok(())
    }
}

fn direction_of(mode: IteratorMode<'_>) -> Direction {
    match mode {
        IteratorMode::Start => Direction::Forward,
        IteratorMode::End => Direction::Reverse,
        IteratorMode::From(_, direction) => direction,
    }
}

impl<B: Base> Iterator for DbIterator<'_, B> {
    type Item = Result<(Box<[u8]>, Box<[u8]>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let Some((key, value)) = self.raw.item() else {
            self.is_done = true;
            return self.raw.status().err().map(Err);
        };
        let item = (Box::from(key), Box::from(value));
        match self.direction {
            Direction::Forward => self.raw.next(),
            Direction::Reverse => self.raw.prev(),
        }
        Some(Ok(item))
    }
}

impl<B: Base> std::iter::FusedIterator for DbIterator<'_, B> {}
