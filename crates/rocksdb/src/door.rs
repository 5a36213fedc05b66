//! The door of one column family: writers note keys, readers query, the worker maintains the
//! filter.
//! ```text
//! writer   enter ── note keys ── write to RocksDB ── leave          a ticket
//! reader   load the view ── query ── denied: done; else RocksDB
//! worker   close the last list ── open the next one ── add its keys to the filter ── publish
//!          close, open ── wait for tickets of closed lists ── snapshot ── scan ── publish
//!
//! phase    Wanted ── Building ── Live ── Asleep (no queries: writers note nothing) ── Wanted
//! ```
//! A rebuilt filter has all keys of its snapshot. Take a key that was noted before the last list
//! was opened. Either the snapshot shows it, since the scan waited for its write, or it was
//! deleted. A key noted later stays: the worker keeps those lists until the new filter has them.
//!
//! Invariant: views change under the lock of the state, and a view without a filter denies nothing.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};

use crate::bell::Bell;
use crate::counts::Counts;
use crate::filter::Filter;
use crate::keys::{SortedKeys, cut};
use crate::options::DoorOptions;
use crate::options_file::Rules;
use crate::pause::{self, Point, Rule};
use crate::recent::{Flight, Noted, Recent, Room};
use crate::view::{Asked, View};

/// Keys of the first list of recent keys, and of one after a quiet time.
const ROOM_LEAST: usize = in_tests(1 << 6, 1 << 13);
/// A list holds at most a 16th of the filter's keys, or `ROOM_SMALL` keys if that is more.
const ROOM_PART: u64 = 16;
const ROOM_SMALL: usize = in_tests(1 << 7, 1 << 14);
/// The most keys of a list. A longer one would leave the processor's caches, and take more memory.
const ROOM_MOST: usize = 1 << 15;
/// Assumed bytes of a key until the first one is noted.
const KEY_BYTES: usize = 16;
/// Lists of a view. With this many, the worker cannot keep up, and the door falls asleep.
const LISTS_MAX: usize = 20;
/// Closed lists that wait to be absorbed together: each absorption writes the whole filter anew.
const LISTS_WAITING: usize = 8;
/// Fewer are absorbed if they hold an 8th of the filter's keys, or after queries for a 128th of
/// them. By then false positives cost as much: a full list passes on one range of thirty.
const GIVEN_PART: u64 = 8;
const ASKED_PART: u64 = 128;
/// Keys kept for the filter that is being built. With more, the door falls asleep.
const KEPT_MAX: usize = 1 << 24;
/// Full lists in a row without a query before the door falls asleep.
const LISTS_UNASKED: u32 = 2;
/// Finding a key's position takes longer than hashing it. Lists find positions if there is a range
/// query for this many keys. With fewer queries, passing ranges on costs less.
const KEYS_PER_RANGE: u64 = 256;
/// Range queries that must come in addition, since a few may come in quick succession.
const RANGES_MORE: u64 = in_tests(0, 4) as u64;
/// How many lists answer ranges after a list with enough range queries.
const LISTS_WITH_LINE: u32 = 4;
/// Queries for a 64th of its keys wake the door, but not fewer than `WAKE_LEAST`. By then they have
/// cost about as much as a scan.
const WAKE_PART: u64 = 64;
const WAKE_LEAST: u64 = 256;
/// The filter is rebuilt when its overlay has this many times the keys of its base. It has few more
/// false positives by then. A filter of text has more, the smaller the base's share of keys is.
const OVERLAY_TIMES: u64 = 15;
const OVERLAY_TIMES_OF_TEXT: u64 = 7;
const OVERLAY_LEAST: u64 = in_tests(1 << 8, 1 << 14) as u64;
/// If keys were deleted, it is also rebuilt after wasted queries for a 4th of its keys, but not
/// after fewer than `WASTE_LEAST`.
const WASTE_PART: u64 = 4;
const WASTE_LEAST: u64 = in_tests(500, 20_000) as u64;
/// How long the worker waits after a failed scan.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// In tests, rare events are frequent.
const fn in_tests(small: usize, usual: usize) -> usize {
    if cfg!(test) { small } else { usual }
}

/// The door of one column family.
pub(crate) struct Door {
    pub(crate) name: String,
    /// RocksDB's id of the family.
    pub(crate) id: u32,
    pub(crate) rules: Rules,
    pub(crate) options: DoorOptions,
    view: ArcSwap<View>,
    state: Mutex<State>,
    bell: Arc<Bell>,
    /// Whether there was a query since the last list was opened.
    is_asked: AtomicBool,
    /// Range queries before that.
    ranges_before: AtomicU64,
    /// Whether keys were deleted since the last scan.
    has_deletes: AtomicBool,
    /// Queries that found the door asleep, and how many of them wake it.
    unanswered: AtomicU64,
    wake_at: AtomicU64,
    pub(crate) counts: Counts,
}

/// What a door is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    /// A scan is due, from this time on.
    Wanted(Option<Instant>),
    Building,
    Live,
    Asleep,
    /// The family was dropped, or its keys are not ordered bytewise. There is never a filter.
    Shut,
}

struct State {
    phase: Phase,
    next_age: u64,
    /// Grows whenever writes may have gone unnoted: a scan that began before is then void.
    lapses: u64,
    /// Counters of writes in flight, one for each closed list with such writes.
    flights: Vec<Arc<Flight>>,
    /// The lists that the filter being built lacks.
    kept: Option<Kept>,
    kept_keys: usize,
    unasked: u32,
    /// How many of the next lists answer ranges.
    with_line: u32,
    /// Age and length of the current list when the worker last looked.
    seen: (u64, usize),
    /// Queries answered before the filter last absorbed keys.
    answered: u64,
}

struct Kept {
    from_age: u64,
    lists: Vec<SortedKeys>,
}

/// What a scan needs to know.
pub(crate) struct Plan {
    lapses: u64,
    flights: Vec<Arc<Flight>>,
    /// The filter before the scan.
    pub(crate) old: Option<Arc<Filter>>,
}

/// A write in flight: its keys stay noted until a scan has certainly seen them.
pub(crate) struct Ticket<D: Deref<Target = Door>> {
    door: D,
    /// The view in whose current list the write noted its last key.
    now: Option<Guard<Arc<View>>>,
    /// The views whose current lists became full before.
    before: Vec<Guard<Arc<View>>>,
}

impl Door {
    /// Creates a door: it answers at once if there is a filter, or else after the first scan.
    pub(crate) fn new(
        (name, id): (String, u32),
        rules: Rules,
        (options, bell): (DoorOptions, Arc<Bell>),
        filter: Option<Filter>,
    ) -> Door {
        let phase = match (rules.is_bytewise, &filter) {
            (false, _) => Phase::Shut,
            (true, None) => Phase::Wanted(None),
            (true, Some(_)) => Phase::Live,
        };
        let room = Room { keys: ROOM_LEAST, key_bytes: KEY_BYTES };
        let recent = match &filter {
            Some(filter) => Recent::new(0, room, Some(Arc::clone(&filter.positions))),
            None => Recent::asleep(0),
        };
        let view = View { filter: filter.map(Arc::new), recents: vec![Arc::new(recent)] };
        let state = State {
            phase,
            next_age: 1,
            lapses: 0,
            flights: Vec::new(),
            kept: None,
            kept_keys: 0,
            unasked: 0,
            with_line: 0,
            seen: (0, 0),
            answered: 0,
        };
        Door {
            name,
            id,
            rules,
            options,
            view: ArcSwap::from_pointee(view),
            state: Mutex::new(state),
            bell,
            is_asked: AtomicBool::new(false),
            ranges_before: AtomicU64::new(0),
            has_deletes: AtomicBool::new(false),
            unanswered: AtomicU64::new(0),
            wake_at: AtomicU64::new(u64::MAX),
            counts: Counts::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves a state that denies nothing wrongly: views are published as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().phase
    }
}

/// The readers' part.
impl Door {
    /// Returns the current view.
    pub(crate) fn look(&self) -> Guard<Arc<View>> {
        self.view.load()
    }

    /// Whether the view is still the current one.
    pub(crate) fn is_current(&self, view: &Arc<View>) -> bool {
        Arc::ptr_eq(&self.view.load(), view)
    }

    /// True proves that the key does not exist, for a reader at this snapshot. None: for a reader
    /// now.
    #[inline]
    pub(crate) fn denies_key(&self, key: &[u8], snapshot: Option<u64>) -> bool {
        let view = self.look();
        pause::at(Point::Looked);
        self.is_in(&view) && self.counts.count(view.denies_key(key, snapshot))
    }

    /// True proves that the range is empty, for a reader at this snapshot. None: for a reader now.
    pub(crate) fn denies_range(&self, asked: &Asked<'_>, snapshot: Option<u64>) -> bool {
        let view = self.look();
        pause::at(Point::Looked);
        self.denies_range_in(&view, asked, snapshot)
    }

    /// Like [`Door::denies_range`], by a view that was loaded before.
    pub(crate) fn denies_range_in(
        &self,
        view: &View,
        asked: &Asked<'_>,
        snapshot: Option<u64>,
    ) -> bool {
        if !self.is_in(view) {
            return false;
        }
        self.counts.count_range();
        if !view.current().has_line() {
            self.miss_line(view);
        }
        self.counts.count(view.denies_range(asked, snapshot))
    }

    /// Whether the view can deny anything. Also notes that there was a query.
    #[inline]
    pub(crate) fn is_in(&self, view: &View) -> bool {
        if view.filter.is_none() {
            self.miss();
            return false;
        }
        if !self.is_asked.load(Ordering::Relaxed) {
            self.is_asked.store(true, Ordering::Relaxed);
        }
        true
    }

    #[cold]
    fn miss(&self) {
        let wake_at = self.wake_at.load(Ordering::Relaxed);
        if wake_at != u64::MAX && self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= wake_at {
            self.wake();
        }
    }

    /// Opens a list with a line, if that pays: ranges are queried, and the current list has none.
    #[cold]
    fn miss_line(&self, view: &View) {
        // With an old view, the reader may have missed that a list with a line was opened.
        if self.look().current().has_line() || !self.is_worth_a_line(view) {
            return;
        }
        let mut state = self.state();
        let view = self.view.load_full();
        let is_due = view.filter.is_some() && !view.current().has_line();
        if is_due && self.is_worth_a_line(&view) && view.recents.len() < LISTS_MAX {
            let room = self.room_after(&view, 1);
            state.with_line = LISTS_WITH_LINE;
            self.open_list(&mut state, &view, room);
            drop(state);
            self.bell.ring();
        }
    }

    /// Whether there were so many range queries since the current list was opened that a line would
    /// have paid off.
    fn is_worth_a_line(&self, view: &View) -> bool {
        let before = self.ranges_before.load(Ordering::Relaxed);
        let asked = self.counts.ranges().saturating_sub(before);
        asked > RANGES_MORE + view.current().len() as u64 / KEYS_PER_RANGE
    }

    /// Notes that a key was passed on although RocksDB does not have it.
    pub(crate) fn note_waste(&self) {
        self.counts.waste();
    }
}

/// The writers' part.
impl Door {
    /// Notes that keys were deleted, so that the filter denies less than it could.
    pub(crate) fn note_deletes(&self) {
        if !self.has_deletes.load(Ordering::Relaxed) {
            self.has_deletes.store(true, Ordering::Relaxed);
        }
    }

    /// Replaces a full or closed list by a new one, unless another writer has done so.
    #[cold]
    fn replace(&self, full: &Arc<Recent>) {
        let mut state = self.state();
        let view = self.view.load_full();
        if !Arc::ptr_eq(view.current(), full) {
            return;
        }
        let is_asked = self.is_asked.swap(false, Ordering::Relaxed) || !self.options.may_sleep;
        state.unasked = if is_asked { 0 } else { state.unasked + 1 };
        let is_unasked = state.unasked >= LISTS_UNASKED && state.phase == Phase::Live;
        let is_behind = view.recents.len() >= LISTS_MAX;
        if is_unasked || is_behind || state.kept_keys > KEPT_MAX {
            self.fall_asleep(&mut state, &view);
        } else {
            let room = self.room_after(&view, 2);
            self.open_list(&mut state, &view, room);
        }
        drop(state);
        self.bell.ring();
    }

    fn fall_asleep(&self, state: &mut State, view: &View) {
        let keys = view.filter.as_ref().map_or(0, |filter| filter.keys());
        self.forget(state, Phase::Asleep);
        self.unanswered.store(0, Ordering::Relaxed);
        self.wake_at.store((keys / WAKE_PART).max(WAKE_LEAST), Ordering::Relaxed);
    }

    /// The size of the list after the current one: `times` its keys, within limits.
    fn room_after(&self, view: &View, times: usize) -> Room {
        let keys = view.filter.as_ref().map_or(0, |filter| filter.keys());
        let most = ((keys / ROOM_PART) as usize).clamp(ROOM_SMALL, ROOM_MOST);
        let current = view.current();
        let keys = (current.room() * times).clamp(ROOM_LEAST, most);
        Room { keys, key_bytes: current.key_bytes(KEY_BYTES) }
    }

    /// Closes the current list, and opens the next one.
    fn open_list(&self, state: &mut State, view: &View, room: Room) {
        let pays = self.is_worth_a_line(view);
        state.with_line = if pays { LISTS_WITH_LINE } else { state.with_line.saturating_sub(1) };
        self.ranges_before.store(self.counts.ranges(), Ordering::Relaxed);
        let filter = view.filter.as_ref().filter(|_| state.with_line > 0);
        let positions = filter.map(|filter| Arc::clone(&filter.positions));
        let next = Arc::new(Recent::new(state.next_age, room, positions));
        let recents = view.recents.iter().chain([&next]).map(Arc::clone).collect();
        self.open(state, view, View { filter: view.filter.clone(), recents });
    }

    /// Publishes a view with a new current list, and closes the old one.
    fn open(&self, state: &mut State, view: &View, next: View) {
        state.next_age += 1;
        view.current().close();
        state.flights.retain(|flight| !flight.has_landed());
        state.flights.push(Arc::clone(view.current().flight()));
        self.view.store(Arc::new(next));
    }

    /// From now on writers note nothing, and the door denies nothing.
    fn forget(&self, state: &mut State, phase: Phase) {
        let view = self.view.load_full();
        let asleep = Arc::new(Recent::asleep(state.next_age));
        self.open(state, &view, View { filter: None, recents: vec![asleep] });
        state.lapses += 1;
        (state.phase, state.kept, state.kept_keys) = (phase, None, 0);
        self.wake_at.store(u64::MAX, Ordering::Relaxed);
    }
}

impl<D: Deref<Target = Door>> Ticket<D> {
    /// Begins a write.
    pub(crate) fn enter(door: D) -> Ticket<D> {
        let is_bytewise = door.rules.is_bytewise;
        let mut ticket = Ticket { door, now: None, before: Vec::new() };
        if is_bytewise {
            ticket.enter_current();
            pause::at(Point::Entered);
        }
        ticket
    }

    /// Begins writes of unknown keys. The door denies nothing until they are done and a scan has
    /// seen them.
    pub(crate) fn lapse(door: D) -> Ticket<D> {
        let mut ticket = Ticket { door, now: None, before: Vec::new() };
        let view = {
            let mut state = ticket.door.state();
            if state.phase != Phase::Shut && !pause::is_broken(Rule::Lapses) {
                ticket.door.forget(&mut state, Phase::Wanted(None));
            }
            // Under the lock, so that no scan begins before the ticket is counted.
            let view = ticket.door.look();
            view.current().enter();
            view
        };
        ticket.now = Some(view);
        ticket.door.bell.ring();
        ticket
    }

    fn enter_current(&mut self) {
        let view = self.door.look();
        view.current().enter();
        self.before.extend(self.now.replace(view));
    }

    /// Notes a key that is about to be written.
    pub(crate) fn note(&mut self, key: &[u8]) {
        let key = cut(key);
        while let Some(now) = &self.now {
            match now.current().note(key) {
                Noted::Yes => return,
                Noted::Many => return self.door.bell.ring(),
                Noted::Full => {}
            }
            self.door.replace(now.current());
            // The old list stays entered, since its keys are still in flight, too.
            self.enter_current();
        }
    }
}

impl<D: Deref<Target = Door>> Drop for Ticket<D> {
    fn drop(&mut self) {
        self.now.iter().chain(&self.before).for_each(|view| view.current().leave());
    }
}

/// The worker's part.
impl Door {
    /// Asks for a scan, if the door is asleep.
    pub(crate) fn wake(&self) {
        let mut state = self.state();
        if state.phase == Phase::Asleep {
            state.phase = Phase::Wanted(None);
            self.wake_at.store(u64::MAX, Ordering::Relaxed);
        }
        drop(state);
        self.bell.ring();
    }

    /// Denies and notes nothing any more, for good.
    pub(crate) fn shut(&self) {
        let mut state = self.state();
        self.forget(&mut state, Phase::Shut);
    }

    /// Closes the current list if it has keys and none came since the worker's last look.
    /// `at_once`: even if some came. Returns whether none came; true with `at_once`.
    pub(crate) fn close_quiet(&self, at_once: bool) -> bool {
        let mut state = self.state();
        let view = self.view.load_full();
        let current = view.current();
        let now = (current.age, current.len());
        let is_quiet = std::mem::replace(&mut state.seen, now) == now || at_once;
        let is_due = is_quiet && now.1 > 0 && view.filter.is_some();
        if is_due {
            let room = Room { keys: ROOM_LEAST, ..self.room_after(&view, 1) };
            self.open_list(&mut state, &view, room);
        }
        is_quiet
    }

    /// Puts recent keys on the line, so that readers need not.
    pub(crate) fn put_on_line(&self) {
        let view = self.view.load_full();
        view.recents.iter().for_each(|recent| {
            recent.put_on_line(usize::MAX);
        });
    }

    /// Adds the keys of closed lists to the filter, and to the one being built. `at_once`: even if
    /// writing the filter anew does not pay yet.
    pub(crate) fn absorb(&self, at_once: bool) {
        loop {
            let view = self.view.load_full();
            let [closed @ .., _] = &view.recents[..] else { return };
            if closed.is_empty() || !at_once && !self.is_worth_giving(&view, closed) {
                return;
            }
            let from_age = self.state().kept.as_ref().map(|kept| kept.from_age);
            // The scan sees the keys of older lists.
            let is_kept = |list: &Recent| from_age.is_some_and(|from| from <= list.age);
            let mut given = closed.chunk_by(|one, next| is_kept(one) == is_kept(next));
            let given = given.next().expect("one is closed");
            let keys = Recent::sorted(given);
            let filter = view.filter.as_ref().map(|filter| Arc::new(filter.with(&keys)));
            let mut state = self.state();
            let now = self.view.load_full();
            if now.recents.first().is_none_or(|first| !Arc::ptr_eq(first, &given[0])) {
                continue; // The lists were forgotten meanwhile.
            }
            state.answered = self.counts.answered();
            if let Some(kept) = state.kept.as_mut().filter(|_| is_kept(&given[0])) {
                let more = keys.len();
                kept.lists.push(keys);
                state.kept_keys += more;
            }
            // Only `forget` takes the filter away, and it takes the lists, too.
            let recents = now.recents[given.len()..].to_vec();
            self.view.store(Arc::new(View { filter, recents }));
        }
    }

    /// Whether writing the filter anew costs less than the queries that closed lists pass on for
    /// nothing.
    fn is_worth_giving(&self, view: &View, closed: &[Arc<Recent>]) -> bool {
        let keys: usize = closed.iter().map(|list| list.len()).sum();
        let all = view.filter.as_ref().map_or(0, |filter| filter.keys());
        // If there are range queries, a list without a line passes on all of them.
        let is_in_the_way = view.current().has_line() && closed.iter().any(|list| !list.has_line());
        let is_enough = closed.len() >= LISTS_WAITING || keys as u64 >= all / GIVEN_PART;
        is_enough
            || is_in_the_way
            || self.counts.answered() - self.state().answered >= all / ASKED_PART
    }

    /// Begins a scan, if one is due.
    pub(crate) fn begin(&self) -> Option<Plan> {
        let mut state = self.state();
        let view = self.view.load_full();
        let is_due = match state.phase {
            Phase::Wanted(not_before) => not_before.is_none_or(|time| time <= Instant::now()),
            Phase::Live => self.is_worn(&view),
            Phase::Building | Phase::Asleep | Phase::Shut => false,
        };
        if !is_due {
            return None;
        }
        self.has_deletes.store(false, Ordering::Relaxed);
        self.counts.forget_waste();
        state.phase = Phase::Building;
        (state.kept, state.kept_keys) =
            (Some(Kept { from_age: state.next_age, lists: Vec::new() }), 0);
        let room = self.room_after(&view, 2);
        self.open_list(&mut state, &view, room);
        let flights = std::mem::take(&mut state.flights);
        state.flights = flights.clone();
        Some(Plan { lapses: state.lapses, flights, old: view.filter.clone() })
    }

    /// Whether a scan would improve the filter by more than it costs.
    fn is_worn(&self, view: &View) -> bool {
        let Some(filter) = &view.filter else { return false };
        let times = if filter.is_of_text() { OVERLAY_TIMES_OF_TEXT } else { OVERLAY_TIMES };
        let is_full = filter.added >= (times * filter.scanned).max(OVERLAY_LEAST);
        let waste_max = (filter.keys() / WASTE_PART).max(WASTE_LEAST);
        let has_deletes = self.has_deletes.load(Ordering::Relaxed);
        is_full || has_deletes && self.counts.wasted() >= waste_max
    }

    /// Whether the writes that began before the scan are done.
    pub(crate) fn has_landed(&self, plan: &Plan) -> bool {
        plan.flights.iter().all(|flight| flight.has_landed()) || pause::is_broken(Rule::Landing)
    }

    /// Whether the scan's result can no longer be used.
    pub(crate) fn is_void(&self, plan: &Plan) -> bool {
        self.state().lapses != plan.lapses
    }

    /// Replaces the old filter by that of a scan.
    pub(crate) fn finish(&self, plan: &Plan, mut filter: Filter) {
        self.absorb(true);
        let lists = match &mut self.state().kept {
            Some(kept) => std::mem::take(&mut kept.lists),
            None => return,
        };
        let lists = lists.iter().filter(|_| !pause::is_broken(Rule::Keeping));
        lists.for_each(|keys| filter = filter.with(keys));
        pause::at(Point::Scanned);
        let mut state = self.state();
        if state.lapses != plan.lapses {
            return;
        }
        // Lists closed meanwhile are still in the view: only this thread takes lists out of it.
        (state.phase, state.kept, state.kept_keys, state.unasked) = (Phase::Live, None, 0, 0);
        let view = self.view.load_full();
        let next = View { filter: Some(Arc::new(filter)), recents: view.recents.clone() };
        self.view.store(Arc::new(next));
        self.is_asked.store(true, Ordering::Relaxed);
        drop(state);
        // The line of the current list may use positions of an older filter.
        self.close_quiet(true);
        self.absorb(true);
    }

    /// The scan failed. Another one will be due later.
    pub(crate) fn fail(&self, plan: &Plan) {
        let mut state = self.state();
        if state.lapses == plan.lapses {
            self.forget(&mut state, Phase::Wanted(Some(Instant::now() + AFTER_FAILURE)));
        }
    }

    /// Returns the filter with all noted keys, if there is one. Requires: nobody writes.
    pub(crate) fn whole(&self) -> Option<Arc<Filter>> {
        self.close_quiet(true);
        self.absorb(true);
        self.look().filter.clone()
    }

    /// Makes the worker scan as soon as possible.
    #[cfg(test)]
    pub(crate) fn want_scan(&self) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Live | Phase::Asleep) {
            state.phase = Phase::Wanted(None);
        }
        drop(state);
        self.bell.ring();
    }

    /// Makes the door note nothing until it is woken.
    #[cfg(test)]
    pub(crate) fn put_to_sleep(&self) {
        let view = self.view.load_full();
        self.fall_asleep(&mut self.state(), &view);
    }
}
