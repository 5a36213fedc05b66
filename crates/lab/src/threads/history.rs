//! One history: a store that is opened, written, read and closed, and reopened with other options.
//! ```text
//! round: open -> compare all -> lanes, readers, keeper -> rest: its laws, compare all
//!             -> close or drop: its laws
//! ```
//! Invariant: a lane's state carries over from round to round; nothing is lost between rounds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel::{Db, SyncPolicy};

use super::keeper::{contents, keep, verify};
use super::lane_thread::LaneThread;
use super::posts::{Doing, Post};
use super::reader::Reader;
use super::rest::{check_closed, check_rest};
use super::setup::Theme;
use super::shared::{Sabotage, Shared, Whole};
use crate::keys::rng::{Rng, scramble};
use crate::stress::keys::KeyIndex;
use crate::stress::model::shown_at;
use crate::stress::operation::key_text;
use crate::stress::panics::caught;
use crate::stress::world::Checked;

/// The most extra time of a round in which enough must pile up.
const PILING_MAX: Duration = Duration::from_secs(40);
/// The time between two looks while waiting for a round to end.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Runs the history of a seed, in an empty folder.
pub(super) fn run(whole: &Arc<Whole>, seed: u64, post: &Post) -> Checked<()> {
    let (theme, mut rng) = (Theme::of(seed), Rng::new(scramble(seed)));
    let shares = theme.shares(whole.plan.threads, &mut rng);
    let keys = shares.lanes.clone();
    let has_large = theme == Theme::Churn && rng.below(4) == 0;
    let shared = Shared::new(whole, seed, shares, has_large);
    let new_lane =
        |(index, keys)| LaneThread::new(index, keys, (theme, has_large), Rng::new(rng.next_u64()));
    let mut lanes: Vec<LaneThread> = keys.into_iter().enumerate().map(new_lane).collect();
    for round in 0..theme.rounds(&mut rng) {
        let round = Round { theme: theme.of_round(round), seed: rng.next_u64() };
        lanes = round.run(&shared, lanes, post)?;
        if shared.history_is_over() {
            break;
        }
    }
    post.set(Doing::Said("removes the store"));
    std::fs::remove_dir_all(&shared.store).map_err(|error| format!("the store stays: {error}"))?;
    whole.counts.histories.add(1);
    Ok(())
}

struct Round {
    theme: Theme,
    seed: u64,
}

impl Round {
    fn run(
        &self,
        shared: &Arc<Shared>,
        lanes: Vec<LaneThread>,
        post: &Post,
    ) -> Checked<Vec<LaneThread>> {
        let mut rng = Rng::new(self.seed);
        let options = self.theme.options(&mut rng);
        let time = self.theme.round_time(&mut rng);
        let (rests, drops) = (rng.below(3) != 0, rng.below(3) == 0);
        shared.begin_round(options.clone());
        post.set(Doing::Said("opens the store"));
        let sync =
            if shared.lies(Sabotage::NeverSynced) { SyncPolicy::Never } else { options.sync };
        let opened = Db::open_with(&shared.store, options.sync(sync), shared.environment());
        let db = Arc::new(opened.map_err(|error| format!("open: {error}"))?);
        shared.counts.openings.add(1);
        compare(&db, shared, &lanes, post)?;
        if shared.lies(Sabotage::Hoard) {
            let hoard = std::fs::File::create(shared.store.join("999999.table"));
            hoard.and_then(|file| file.set_len(1 << 40)).map_err(|error| error.to_string())?;
        }
        shared.disk.slow_down(self.theme.disk_delay());
        let lanes = self.work(shared, &db, lanes, Instant::now() + time, post, &mut rng);
        shared.disk.slow_down(Duration::ZERO);
        let lanes = lanes?;
        if rests {
            post.set(Doing::Said("waits for the store to come to rest"));
            check_rest(&db, shared)?;
            compare(&db, shared, &lanes, post)?;
            post.set(Doing::Said("verifies a store at rest"));
            verify(&db, shared)?;
        }
        let stats = db.stats().map_err(|error| format!("stats: {error}"))?;
        shared.counts.flushes.add(stats.flushes);
        shared.counts.merges.add(stats.merges);
        drop(stats);
        post.set(Doing::Said("closes the store"));
        let db = Arc::into_inner(db).ok_or("a thread that has ended holds the store")?;
        match drops {
            true => drop(db),
            false => {
                db.close().map_err(|error| format!("close: {error}"))?;
                drop(db);
            }
        }
        shared.disk.forget();
        check_closed(shared)?;
        Ok(lanes)
    }

    /// Lets all threads work until the round is over.
    fn work(
        &self,
        shared: &Arc<Shared>,
        db: &Arc<Db>,
        lanes: Vec<LaneThread>,
        until: Instant,
        post: &Post,
        rng: &mut Rng,
    ) -> Checked<Vec<LaneThread>> {
        let readers = shared.plan.threads.div_ceil(2);
        let writers: Vec<_> = lanes
            .into_iter()
            .map(|mut lane| {
                let name = format!("lane {}", lane.index);
                Worker::begin(shared, db, name, move |db, shared, post| {
                    lane.work(db, shared, post).map(|()| lane)
                })
            })
            .collect();
        let mut others: Vec<_> = (0..readers)
            .map(|index| {
                let rng = Rng::new(rng.next_u64());
                Worker::begin(shared, db, format!("reader {index}"), move |db, shared, post| {
                    Reader::new(db, shared, rng).work(post)
                })
            })
            .collect();
        let (theme, rng) = (self.theme, Rng::new(rng.next_u64()));
        others.push(Worker::begin(shared, db, "keeper".into(), move |db, shared, post| {
            keep(db, shared, theme, rng, post)
        }));
        post.set(Doing::Rest);
        let is_small = || shared.ledger.begun()[0] < self.theme.pile();
        let latest = until + PILING_MAX;
        let goes_on = |now: Instant| now < until || is_small() && now < latest;
        while goes_on(Instant::now()) && !shared.is_over() && !shared.is_late() {
            std::thread::sleep(LOOK_AGAIN);
        }
        shared.end_round();
        // The watchdog reports a thread that hangs; the rest of the history then waits for ever.
        let lanes: Vec<Option<LaneThread>> = writers.into_iter().map(Worker::end).collect();
        for other in others {
            other.end();
        }
        lanes
            .into_iter()
            .collect::<Option<Vec<LaneThread>>>()
            .ok_or_else(|| "a lane has failed".into())
    }
}

/// A thread and its post.
struct Worker<T>(std::thread::JoinHandle<Option<T>>);

impl<T: Send + 'static> Worker<T> {
    fn begin(
        shared: &Arc<Shared>,
        db: &Arc<Db>,
        name: String,
        work: impl FnOnce(&Db, &Shared, &Post) -> Checked<T> + Send + 'static,
    ) -> Self {
        let (shared, db) = (Arc::clone(shared), Arc::clone(db));
        Worker(std::thread::spawn(move || {
            let post = shared.posts.add(name.clone());
            let done = caught(|| work(&db, &shared, &post));
            let done = done.map_err(|wrong| shared.fail(format!("{name}: {wrong}"))).ok();
            shared.posts.remove(&post);
            done
        }))
    }

    /// Waits for the thread to end. None: it failed.
    fn end(self) -> Option<T> {
        self.0.join().ok().flatten()
    }
}

/// Compares every key with the lanes' states, by scans in both directions and some gets. Requires:
/// no thread writes.
fn compare(db: &Db, shared: &Shared, lanes: &[LaneThread], post: &Post) -> Checked<()> {
    post.set(Doing::Said("compares everything"));
    let (_gate, tick) = shared.clock.hold();
    for (lane, found) in lanes.iter().zip(contents(db, shared)?) {
        for (place, (expected, found)) in lane.state.0.iter().zip(found).enumerate() {
            let expected = shown_at(*expected, tick);
            if expected != found {
                let key = key_text(lane.keys.get(place as KeyIndex));
                let index = lane.index;
                return Err(format!("{key} of lane {index} has #{found}, expected #{expected}"));
            }
            let asked = place.is_multiple_of(lane.keys.len() / GETS + 1);
            if asked && lane.tick == tick {
                lane.check_get(db, shared, place as KeyIndex)?;
            }
        }
        shared.counts.answers.add(lane.keys.len() as u64);
    }
    Ok(())
}

/// Keys of a lane that are read by single gets.
const GETS: usize = 200;
