//! Tests of the pool, with clients whose next results are given.

use std::collections::VecDeque;

use super::*;
use crate::cost::steps_of;
use crate::sync::{AtomicUsize, Ordering};

/// A client with a list of the results of its pieces of work. After these it has no work.
#[derive(Default)]
struct Scripted {
    nexts: Mutex<VecDeque<Step>>,
    looks: Mutex<usize>,
    looked: Condvar,
    panics: AtomicUsize,
    begun_anew: AtomicUsize,
}

enum Step {
    Reschedule(Reschedule),
    Panic,
    /// Waits until the test allows it.
    Wait(Arc<Gate>),
}

#[derive(Default)]
struct Gate {
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut state = lock(&self.state);
        state.0 = true;
        self.changed.notify_all();
        while !state.1 {
            state = wait(&self.changed, state);
        }
    }

    fn wait_until_reached(&self) {
        let mut state = lock(&self.state);
        while !state.0 {
            state = wait(&self.changed, state);
        }
    }

    fn open(&self) {
        lock(&self.state).1 = true;
        self.changed.notify_all();
    }
}

impl Scripted {
    fn new(steps: impl IntoIterator<Item = Step>) -> Arc<Self> {
        let nexts = Mutex::new(steps.into_iter().collect());
        Arc::new(Scripted { nexts, ..Scripted::default() })
    }

    fn wait_for_looks(&self, count: usize) {
        let mut looks = lock(&self.looks);
        while *looks < count {
            looks = wait(&self.looked, looks);
        }
    }

    fn looks(&self) -> usize {
        *lock(&self.looks)
    }
}

impl Client for Scripted {
    fn work(&self, kind: WorkKind) -> Reschedule {
        if kind != WorkKind::Flush {
            return Reschedule::WhenCalled;
        }
        let step = lock(&self.nexts).pop_front();
        let next = match step {
            Some(Step::Reschedule(next)) => next,
            Some(Step::Panic) => panic!("as the test wants it"),
            Some(Step::Wait(gate)) => {
                gate.pass();
                Reschedule::WhenCalled
            }
            None => Reschedule::WhenCalled,
        };
        *lock(&self.looks) += 1;
        self.looked.notify_all();
        next
    }

    fn note_panic(&self, _: WorkKind) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    fn begin_anew(&self) {
        self.begun_anew.fetch_add(1, Ordering::Relaxed);
    }
}

fn pool() -> WorkerPool {
    WorkerPool::new(PoolSize::of_one_store(1))
}

fn join(pool: &WorkerPool, client: &Arc<Scripted>) -> Workers {
    let place = pool.place(Arc::new(Life::new("store".as_ref())));
    pool.join(&place, Arc::clone(client) as _).expect("threads start");
    place
}

#[test]
fn work_goes_round_all_stores() {
    let pool = pool();
    let endless = Scripted::new((0..1_000_000).map(|_| Step::Reschedule(Reschedule::Now)));
    let busy = join(&pool, &endless);
    endless.wait_for_looks(10);
    let (other, before) = (Scripted::new([]), endless.looks());
    let place = join(&pool, &other);
    other.wait_for_looks(1);
    assert!(endless.looks() < 1_000_000, "from {before} on it had its turn between others");
    busy.leave();
    let left = endless.looks();
    place.call(&[WorkKind::Flush]);
    other.wait_for_looks(2);
    assert_eq!(endless.looks(), left, "no work for a store that has left");
}

#[test]
fn a_call_while_a_thread_is_at_work_is_not_lost() {
    let (pool, gate) = (pool(), Arc::new(Gate::default()));
    let client = Scripted::new([Step::Wait(Arc::clone(&gate))]);
    let place = join(&pool, &client);
    gate.wait_until_reached();
    place.call(&[WorkKind::Flush]);
    gate.open();
    client.wait_for_looks(2);
}

#[test]
fn a_store_leaves_when_no_thread_is_at_work_for_it() {
    let (pool, gate) = (pool(), Arc::new(Gate::default()));
    let client = Scripted::new([Step::Wait(Arc::clone(&gate))]);
    let place = join(&pool, &client);
    gate.wait_until_reached();
    let opener = std::thread::spawn({
        let gate = Arc::clone(&gate);
        move || {
            std::thread::sleep(Duration::from_millis(20));
            gate.open();
        }
    });
    place.leave();
    assert_eq!(client.looks(), 1, "the work was done");
    place.leave();
    opener.join().expect("opens");
    assert_eq!(pool.counts().0, 0);
}

#[test]
fn work_is_due_again_after_its_time_without_a_call() {
    let pool = pool();
    let soon = Reschedule::After(Duration::from_millis(5));
    let client = Scripted::new([Step::Reschedule(soon), Step::Reschedule(soon)]);
    let place = join(&pool, &client);
    client.wait_for_looks(3);
    place.leave();
}

/// A time that no clock can show.
#[test]
fn what_is_never_due_is_done_when_it_is_called() {
    let pool = pool();
    let never = Reschedule::After(Duration::MAX);
    let client = Scripted::new([Step::Reschedule(never), Step::Reschedule(never)]);
    let place = join(&pool, &client);
    client.wait_for_looks(1);
    place.call(&[WorkKind::Flush]);
    client.wait_for_looks(2);
    let panics = [&client.panics, &client.begun_anew].map(|it| it.load(Ordering::Relaxed));
    assert_eq!(panics, [0, 0]);
    place.leave();
}

#[test]
fn a_panic_stops_one_store_for_a_while_and_no_other() {
    let pool = pool();
    let (bad, good) = (Scripted::new([Step::Panic]), Scripted::new([]));
    let place = join(&pool, &bad);
    join(&pool, &good);
    good.wait_for_looks(1);
    place.call(&[WorkKind::Flush]);
    bad.wait_for_looks(1);
    let counts = (&bad.panics, &bad.begun_anew, &good.panics);
    let counts = [counts.0, counts.1, counts.2].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [1, 1, 0]);
}

#[test]
fn pauses_grow_while_panics_follow_each_other() {
    let soon = Duration::from_millis(1);
    let first = pause_after(Duration::ZERO, soon);
    assert_eq!(first, RETRY_FIRST);
    assert_eq!(pause_after(first, soon), 2 * first);
    assert_eq!(pause_after(RETRY_LONGEST, soon), RETRY_LONGEST);
    assert_eq!(pause_after(RETRY_LONGEST, 2 * RETRY_LONGEST), RETRY_FIRST);
}

#[test]
fn the_threads_end_with_their_pool() {
    let pool = pool();
    let client = Scripted::new([]);
    let place = join(&pool, &client);
    assert_eq!(pool.counts(), (1, 3));
    client.wait_for_looks(1);
    let tasks = Arc::downgrade(&pool.tasks);
    place.leave();
    drop((pool, place));
    assert!(tasks.upgrade().is_none(), "each thread held it");
}

#[test]
fn the_sooner_time_counts() {
    let (one, two) = (Duration::from_secs(1), Duration::from_secs(2));
    assert_eq!(Reschedule::After(two).at_latest(Some(one)), Reschedule::After(one));
    assert_eq!(Reschedule::After(one).at_latest(Some(two)), Reschedule::After(one));
    assert_eq!(Reschedule::WhenCalled.at_latest(Some(one)), Reschedule::After(one));
    assert_eq!(Reschedule::WhenCalled.at_latest(None), Reschedule::WhenCalled);
    assert_eq!(Reschedule::Now.at_latest(Some(one)), Reschedule::Now);
}

/// Makes stores without work, and no threads.
fn idle(count: u64) -> State {
    let mut state = State::default();
    for id in 1..=count {
        let mut tasks = KINDS.map(|_| Task::new());
        tasks.iter_mut().for_each(|task| task.seen = 0);
        let client = Scripted::new([]) as _;
        state.clients.insert(id, Box::new(Joined { client, is_leaving: false, tasks }));
        KINDS.into_iter().for_each(|kind| state.changed(id, kind));
    }
    state
}

#[test] // Once, each look went over all stores.
fn stores_without_work_cost_nothing() {
    const FLUSH: WorkKind = WorkKind::Flush;
    for count in [10, 1000] {
        let mut state = idle(count);
        let (none, looks) = steps_of(|| state.take(FLUSH).is_none());
        assert!(none && looks <= 1, "{looks} looks at {count}");
        for called in [count / 2, count] {
            let joined = state.clients.get_mut(&called).expect("it has joined");
            joined.tasks[FLUSH as usize].calls += 1;
            state.changed(called, FLUSH);
        }
        for called in [count / 2, count] {
            let (taken, looks) = steps_of(|| state.take(FLUSH).map(|taken| taken.id));
            assert_eq!(taken, Some(called), "the turns go round");
            assert!(looks <= 2, "{looks} looks at {count}");
        }
        assert!(state.take(FLUSH).is_none(), "a thread is at each");
    }
}

#[test]
fn a_time_that_is_to_come_is_waited_for() {
    const KEEP: WorkKind = WorkKind::Keep;
    let (mut state, begun) = (idle(3), Instant::now());
    for (id, seconds) in [(1, 50), (2, 70), (3, 60)] {
        let joined = state.clients.get_mut(&id).expect("it has joined");
        joined.tasks[KEEP as usize].due = Some(begun + Duration::from_secs(seconds));
        state.changed(id, KEEP);
    }
    let turns = &mut state.turns[KEEP as usize];
    let after = |seconds| begun + Duration::from_secs(seconds);
    assert_eq!((turns.next(after(49)), turns.next_due()), (None, Some(after(50))));
    assert_eq!((turns.next(after(60)), turns.next_due()), (Some(1), Some(after(70))));
    turns.set(1, (false, None));
    assert_eq!(turns.next(after(60)), Some(3), "it was ready, and still is");
    turns.set(3, (false, Some(after(90))));
    turns.set(2, (false, None));
    assert_eq!((turns.next(after(89)), turns.next_due()), (None, Some(after(90))));
    turns.set(3, (true, Some(after(90))));
    assert_eq!((turns.next(after(89)), turns.next_due()), (Some(3), None), "it was called");
}
