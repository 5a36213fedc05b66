//! The door of one column family: writers note keys, readers ask, the worker keeps the filter.
//! ```text
//! writer   enter ── note keys ── write to RocksDB ── leave          a ticket
//! reader   look at the view ── ask ── denied: done; else RocksDB
//! worker   close the last list ── open the next one ── give its keys to the filter ── publish
//!          close, open ── wait for tickets of closed lists ── snapshot ── scan ── publish
//!
//! phase    Wanted ── Building ── Live ── Asleep (nobody asks: writers note nothing) ── Wanted
//! ```
//! A rebuilt filter has what its snapshot shows. A key that was noted before the last list was
//! opened is either seen by the snapshot, as its write was waited for, or was deleted. One that was
//! noted later stays: the worker keeps those lists until the new filter has them.
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

/// The first list of recent keys, and one after a quiet time.
const ROOM_LEAST: usize = in_tests(1 << 6, 1 << 13);
/// A full list has at most such a part of the filter's keys, or this many.
const ROOM_PART: u64 = 16;
const ROOM_SMALL: usize = in_tests(1 << 7, 1 << 14);
/// Longer ones would not stay near the processor, and would take more memory.
const ROOM_MOST: usize = 1 << 15;
/// Bytes of a key, as long as none has come.
const KEY_BYTES: usize = 16;
/// Full lists that wait for the worker. More: it cannot keep up.
const LISTS_MAX: usize = 20;
/// Full lists that wait for each other, as the filter is written anew whatever it is given.
const LISTS_WAITING: usize = 8;
/// Fewer do if they have such a part of its keys, or if so many questions came since, as a part of
/// its keys: one of thirty ranges meets a full list for nothing, which costs as much by then.
const GIVEN_PART: u64 = 8;
const ASKED_PART: u64 = 128;
/// Keys that are kept for the filter that is being built.
const KEPT_MAX: usize = 1 << 24;
/// Full lists in which nobody asked, before the door falls asleep.
const LISTS_UNASKED: u32 = 2;
/// Places of keys take longer to find than their hashes. Those of so many are found for one range
/// that is asked for: at fewer ranges, to pass them on takes less.
const KEYS_PER_RANGE: u64 = 256;
/// And some ranges more, as a few may come close behind each other.
const RANGES_MORE: u64 = in_tests(0, 4) as u64;
/// Lists that answer ranges after one with as many of them.
const LISTS_WITH_LINE: u32 = 4;
/// Questions that wake it: a part of the keys, so that a scan costs about what they did.
const WAKE_PART: u64 = 64;
const WAKE_LEAST: u64 = 256;
/// The filter is built anew when its overlay has so many times the keys of its base. It errs little
/// more often by then; that of text errs more the less of its keys the base has.
const OVERLAY_TIMES: u64 = 15;
const OVERLAY_TIMES_OF_TEXT: u64 = 7;
const OVERLAY_LEAST: u64 = in_tests(1 << 8, 1 << 14) as u64;
/// Or when so many questions were passed on for nothing, as a part of its keys.
const WASTE_PART: u64 = 4;
const WASTE_LEAST: u64 = in_tests(500, 20_000) as u64;
/// How long the worker waits after a scan that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// Tests come by often where others come by seldom.
const fn in_tests(small: usize, usual: usize) -> usize {
    if cfg!(test) { small } else { usual }
}

/// The door of one column family.
pub(crate) struct Door {
    pub(crate) name: String,
    /// RocksDB's number of the family.
    pub(crate) id: u32,
    pub(crate) rules: Rules,
    pub(crate) options: DoorOptions,
    view: ArcSwap<View>,
    state: Mutex<State>,
    bell: Arc<Bell>,
    /// Whether anybody asked since the last list was opened.
    is_asked: AtomicBool,
    /// Ranges asked for before then.
    ranges_before: AtomicU64,
    /// Whether keys were deleted since the last scan.
    has_deletes: AtomicBool,
    /// Questions that found it asleep, and how many wake it.
    unanswered: AtomicU64,
    wake_at: AtomicU64,
    pub(crate) counts: Counts,
}

/// What a door is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    /// It is to be scanned, not before the time.
    Wanted(Option<Instant>),
    Building,
    Live,
    Asleep,
    /// Its family is gone, or bytes do not order its keys.
    Shut,
}

struct State {
    phase: Phase,
    next_age: u64,
    /// Raised whenever writes may have gone unnoted: a scan that began before is worth nothing.
    lapses: u64,
    /// Of closed lists, with writes that may be on their way.
    flights: Vec<Arc<Flight>>,
    /// Lists for the filter that is being built.
    kept: Option<Kept>,
    kept_keys: usize,
    unasked: u32,
    /// Lists from now on that answer ranges.
    with_line: u32,
    /// Keys noted when the worker came by.
    seen: (u64, usize),
    /// Questions before the filter was given keys.
    answered: u64,
}

struct Kept {
    from_age: u64,
    lists: Vec<SortedKeys>,
}

/// What a scan has to know.
pub(crate) struct Plan {
    lapses: u64,
    flights: Vec<Arc<Flight>>,
    /// The filter so far.
    pub(crate) old: Option<Arc<Filter>>,
}

/// A write on its way: its keys stay noted until a scan has surely seen them.
pub(crate) struct Ticket<D: Deref<Target = Door>> {
    door: D,
    /// The view in whose current list it noted last.
    now: Option<Guard<Arc<View>>>,
    /// Those whose lists were full.
    before: Vec<Guard<Arc<View>>>,
}

impl Door {
    /// Asked from now on, if there is a filter; else from the first scan on.
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
        // What panicked has left a state that denies nothing wrongly: views are published whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().phase
    }
}

/// For those who read.
impl Door {
    /// The view of this moment.
    pub(crate) fn look(&self) -> Guard<Arc<View>> {
        self.view.load()
    }

    /// Whether the view is that of this moment.
    pub(crate) fn is_current(&self, view: &Arc<View>) -> bool {
        Arc::ptr_eq(&self.view.load(), view)
    }

    /// Whether there is surely no such key, for a reader at this snapshot, or now.
    #[inline]
    pub(crate) fn denies_key(&self, key: &[u8], snapshot: Option<u64>) -> bool {
        let view = self.look();
        pause::at(Point::Looked);
        self.is_in(&view) && self.counts.count(view.denies_key(key, snapshot))
    }

    /// Whether there is surely no key in the range, for a reader at this snapshot, or now.
    pub(crate) fn denies_range(&self, asked: &Asked<'_>, snapshot: Option<u64>) -> bool {
        let view = self.look();
        pause::at(Point::Looked);
        self.denies_range_in(&view, asked, snapshot)
    }

    /// The same, by a view of before.
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

    /// Whether a view can deny anything. Remembers that somebody asked.
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

    /// Ranges are asked for and not answered: the lists from now on answer them, if that pays.
    #[cold]
    fn miss_line(&self, view: &View) {
        // Whose view is an old one has missed that it is done.
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

    /// Whether so many ranges were asked for since the current list was opened that its keys had
    /// better had their places.
    fn is_worth_a_line(&self, view: &View) -> bool {
        let before = self.ranges_before.load(Ordering::Relaxed);
        let asked = self.counts.ranges().saturating_sub(before);
        asked > RANGES_MORE + view.current().len() as u64 / KEYS_PER_RANGE
    }

    /// A key was passed on to RocksDB, which did not have it.
    pub(crate) fn note_waste(&self) {
        self.counts.waste();
    }
}

/// For those who write.
impl Door {
    /// Keys are deleted: the filter denies fewer than it could.
    pub(crate) fn note_deletes(&self) {
        if !self.has_deletes.load(Ordering::Relaxed) {
            self.has_deletes.store(true, Ordering::Relaxed);
        }
    }

    /// Opens the next list, unless another writer has: this one is full or closed.
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

    /// Room for a list after the current one, of so many times its keys.
    fn room_after(&self, view: &View, times: usize) -> Room {
        let keys = view.filter.as_ref().map_or(0, |filter| filter.keys());
        let most = ((keys / ROOM_PART) as usize).clamp(ROOM_SMALL, ROOM_MOST);
        let current = view.current();
        let keys = (current.room() * times).clamp(ROOM_LEAST, most);
        Room { keys, key_bytes: current.key_bytes(KEY_BYTES) }
    }

    /// Closes the current list and opens one behind it.
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

    /// Publishes a view whose current list is a new one.
    fn open(&self, state: &mut State, view: &View, next: View) {
        state.next_age += 1;
        view.current().close();
        state.flights.retain(|flight| !flight.has_landed());
        state.flights.push(Arc::clone(view.current().flight()));
        self.view.store(Arc::new(next));
    }

    /// From now on writers note nothing, and nothing is denied.
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
    /// A write begins.
    pub(crate) fn enter(door: D) -> Ticket<D> {
        let is_bytewise = door.rules.is_bytewise;
        let mut ticket = Ticket { door, now: None, before: Vec::new() };
        if is_bytewise {
            ticket.enter_current();
            pause::at(Point::Entered);
        }
        ticket
    }

    /// Writes of unknown keys begin. Nothing is denied until all of them are done and a scan has
    /// seen them.
    pub(crate) fn lapse(door: D) -> Ticket<D> {
        let mut ticket = Ticket { door, now: None, before: Vec::new() };
        let view = {
            let mut state = ticket.door.state();
            if state.phase != Phase::Shut && !pause::is_broken(Rule::Lapses) {
                ticket.door.forget(&mut state, Phase::Wanted(None));
            }
            // Under the lock: no scan begins before the ticket is counted.
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
            // The old list stays entered: keys that it has are on their way, too.
            self.enter_current();
        }
    }
}

impl<D: Deref<Target = Door>> Drop for Ticket<D> {
    fn drop(&mut self) {
        self.now.iter().chain(&self.before).for_each(|view| view.current().leave());
    }
}

/// For the worker.
impl Door {
    /// A scan is wanted.
    pub(crate) fn wake(&self) {
        let mut state = self.state();
        if state.phase == Phase::Asleep {
            state.phase = Phase::Wanted(None);
            self.wake_at.store(u64::MAX, Ordering::Relaxed);
        }
        drop(state);
        self.bell.ring();
    }

    /// Nothing is denied, and nothing is kept any more.
    pub(crate) fn shut(&self) {
        let mut state = self.state();
        self.forget(&mut state, Phase::Shut);
    }

    /// Closes a list that gets no keys any more, or any list with keys. Whether none came since the
    /// worker was here.
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

    /// Gives the keys of closed lists to the filter, and to the one that is being built: at once,
    /// or when that is worth writing the filter anew.
    pub(crate) fn absorb(&self, at_once: bool) {
        loop {
            let view = self.view.load_full();
            let [closed @ .., _] = &view.recents[..] else { return };
            if closed.is_empty() || !at_once && !self.is_worth_giving(&view, closed) {
                return;
            }
            let from_age = self.state().kept.as_ref().map(|kept| kept.from_age);
            // A scan sees what older lists have.
            let is_kept = |list: &Recent| from_age.is_some_and(|from| from <= list.age);
            let mut given = closed.chunk_by(|one, next| is_kept(one) == is_kept(next));
            let given = given.next().expect("one is closed");
            let keys = Recent::sorted(given);
            let filter = view.filter.as_ref().map(|filter| Arc::new(filter.with(&keys)));
            let mut state = self.state();
            let now = self.view.load_full();
            if now.recents.first().is_none_or(|first| !Arc::ptr_eq(first, &given[0])) {
                continue; // All was forgotten meanwhile.
            }
            state.answered = self.counts.answered();
            if let Some(kept) = state.kept.as_mut().filter(|_| is_kept(&given[0])) {
                let more = keys.len();
                kept.lists.push(keys);
                state.kept_keys += more;
            }
            // None takes the filter away but `forget`, which takes the lists, too.
            let recents = now.recents[given.len()..].to_vec();
            self.view.store(Arc::new(View { filter, recents }));
        }
    }

    /// Whether writing the filter anew costs less than what closed lists pass on for nothing.
    fn is_worth_giving(&self, view: &View, closed: &[Arc<Recent>]) -> bool {
        let keys: usize = closed.iter().map(|list| list.len()).sum();
        let all = view.filter.as_ref().map_or(0, |filter| filter.keys());
        // Of what ranges there are, such a list answers none.
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

    /// Whether a scan would make the filter better by more than it costs.
    fn is_worn(&self, view: &View) -> bool {
        let Some(filter) = &view.filter else { return false };
        let times = if filter.is_of_text() { OVERLAY_TIMES_OF_TEXT } else { OVERLAY_TIMES };
        let is_full = filter.added >= (times * filter.scanned).max(OVERLAY_LEAST);
        let waste_max = (filter.keys() / WASTE_PART).max(WASTE_LEAST);
        let has_deletes = self.has_deletes.load(Ordering::Relaxed);
        is_full || has_deletes && self.counts.wasted() >= waste_max
    }

    /// Whether the writes are done that began before the scan.
    pub(crate) fn has_landed(&self, plan: &Plan) -> bool {
        plan.flights.iter().all(|flight| flight.has_landed()) || pause::is_broken(Rule::Landing)
    }

    /// Whether the scan is worth nothing any more.
    pub(crate) fn is_void(&self, plan: &Plan) -> bool {
        self.state().lapses != plan.lapses
    }

    /// Puts the filter of a scan in the place of the old one.
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
        // What closed meanwhile is still in the view: only this thread takes lists out of it.
        (state.phase, state.kept, state.kept_keys, state.unasked) = (Phase::Live, None, 0, 0);
        let view = self.view.load_full();
        let next = View { filter: Some(Arc::new(filter)), recents: view.recents.clone() };
        self.view.store(Arc::new(next));
        self.is_asked.store(true, Ordering::Relaxed);
        drop(state);
        // Keys of the current list may have their places by an older filter.
        self.close_quiet(true);
        self.absorb(true);
    }

    /// The scan failed: another one is made later.
    pub(crate) fn fail(&self, plan: &Plan) {
        let mut state = self.state();
        if state.lapses == plan.lapses {
            self.forget(&mut state, Phase::Wanted(Some(Instant::now() + AFTER_FAILURE)));
        }
    }

    /// The filter with all keys that were noted, if there is one. Requires: nobody writes.
    pub(crate) fn whole(&self) -> Option<Arc<Filter>> {
        self.close_quiet(true);
        self.absorb(true);
        self.look().filter.clone()
    }

    /// Scans anew as soon as the worker comes by.
    #[cfg(test)]
    pub(crate) fn want_scan(&self) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Live | Phase::Asleep) {
            state.phase = Phase::Wanted(None);
        }
        drop(state);
        self.bell.ring();
    }

    /// Notes nothing more, until it is woken.
    #[cfg(test)]
    pub(crate) fn put_to_sleep(&self) {
        let view = self.view.load_full();
        self.fall_asleep(&mut self.state(), &view);
    }
}
