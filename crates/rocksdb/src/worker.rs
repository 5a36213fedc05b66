//! The thread that maintains the filters of a database.
//! ```text
//! when the bell rings, or after some time:
//!   each door: close a quiet list, absorb closed lists, put recent keys on the line, scan if due
//! ```
//! Invariant: only this thread takes lists out of views, and only it publishes filters.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::base::Base;
use crate::bell::Bell;
use crate::db::Shared;
use crate::door::{Door, Plan};
use crate::pause::{self, Point};
use crate::scan;

/// The longest pause of the worker.
const PERIOD: Duration = Duration::from_millis(if cfg!(test) { 5 } else { 200 });
/// Pause between two checks whether writes in flight are done.
const LANDING: Duration = Duration::from_micros(100);

/// Starts the thread.
pub(crate) struct Worker;

/// Why a scan ended without a filter.
pub(crate) enum Stop {
    /// The filter is no longer needed.
    Void,
    /// The family was dropped. Another one may have its name.
    Gone,
    /// RocksDB could not read.
    Failed,
}

impl From<rocksdb::Error> for Stop {
    fn from(_: rocksdb::Error) -> Stop {
        Stop::Failed
    }
}

impl Worker {
    /// Starts the thread, which ends after [`stop`].
    pub(crate) fn start<B: Base>(shared: &Arc<Shared<B>>) -> JoinHandle<()> {
        let (bell, weak) = (Arc::clone(&shared.bell), Arc::downgrade(shared));
        std::thread::Builder::new()
            .name("trommel-door".into())
            .spawn(move || work(&bell, &weak))
            .expect("the system has a thread more")
    }
}

/// Makes the worker of a database end.
pub(crate) fn stop<B>(shared: &Shared<B>) {
    shared.is_stopped.store(true, Ordering::SeqCst);
    shared.bell.ring();
}

fn work<B: Base>(bell: &Bell, shared: &Weak<Shared<B>>) {
    let mut quiet_since = Instant::now();
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let is_time = quiet_since.elapsed() >= PERIOD;
        if is_time {
            quiet_since = Instant::now();
        }
        for door in shared.doors() {
            if is_stopped(&shared.is_stopped) {
                return;
            }
            let is_quiet = is_time && door.close_quiet(false);
            door.absorb(is_quiet);
            door.put_on_line();
            if let Some(plan) = door.begin() {
                rebuild(&shared, &door, &plan);
            }
        }
        if is_stopped(&shared.is_stopped) {
            return;
        }
        drop(shared);
        bell.wait(PERIOD);
    }
}

fn is_stopped(flag: &AtomicBool) -> bool {
    flag.load(Ordering::SeqCst)
}

/// Scans a family, and replaces its filter.
fn rebuild<B: Base>(shared: &Shared<B>, door: &Door, plan: &Plan) {
    pause::at(Point::Rolled);
    let check = || {
        door.absorb(false);
        door.put_on_line();
        let is_void = is_stopped(&shared.is_stopped) || door.is_void(plan);
        if is_void { Err(Stop::Void) } else { Ok(()) }
    };
    match scanned(shared, door, plan, &check) {
        Ok(filter) => {
            door.counts.count_scan(filter.keys());
            door.finish(plan, filter);
        }
        Err(Stop::Failed) => door.fail(plan),
        Err(Stop::Gone) => door.shut(),
        Err(Stop::Void) => {}
    }
}

fn scanned<B: Base>(
    shared: &Shared<B>,
    door: &Door,
    plan: &Plan,
    check: &dyn Fn() -> Result<(), Stop>,
) -> Result<crate::filter::Filter, Stop> {
    // The snapshot must show writes that noted keys in lists that the scan does not keep.
    while !door.has_landed(plan) {
        check()?;
        std::thread::sleep(LANDING);
    }
    scan::all_keys(&shared.db, door, plan, check)
}
