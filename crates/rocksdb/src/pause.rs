//! Places where threads may overtake each other. In tests they wait there, since what is wrong with
//! an order shows too rarely by itself. And rules that a test breaks, to see that another test
//! notices it.

/// Where to wait.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Point {
    /// A writer has noted its keys, and has not written them yet.
    Noted,
    /// A writer has entered, and has not noted its keys yet.
    Entered,
    /// The worker has opened another list of recent keys, and has not taken its snapshot yet.
    Rolled,
    /// The worker has scanned some keys, and goes on.
    Scanning,
    /// The worker has scanned, and has not published yet.
    Scanned,
    /// A reader knows the view, and has not asked it yet.
    Looked,
    /// An iterator knows the view, and has not pinned its state yet.
    Pinning,
    /// Many keys were asked for, and RocksDB has not been asked for those that may be there.
    Asked,
}

/// What keeps answers right.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// A scan waits for writes whose keys are in lists that it does not keep.
    Landing,
    /// Keys that are noted during a scan go into its filter.
    Keeping,
    /// No snapshot asks a filter of a later scan.
    Since,
    /// Nothing is denied from before unknown keys are written, until a scan after that.
    Lapses,
    /// A file is taken only where the folder is as it was left.
    Folder,
    /// No filter is kept for the next opening once a write has failed: the log may have it.
    Failing,
    /// A key is noted before it is written.
    Noting,
    /// What a transaction has written is noted before it is committed.
    Committing,
    /// What was noted since is not denied.
    Recents,
    /// An iterator asks a view only if it was current when its state was pinned.
    Current,
    /// The answers for many keys are of one moment.
    OneMoment,
}

/// Whether a test has broken the rule.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn is_broken(_rule: Rule) -> bool {
    false
}

/// Waits, if a test wants it.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn at(_point: Point) {}

#[cfg(test)]
pub(crate) use in_tests::{BROKEN, at, is_broken, set, then};

#[cfg(test)]
mod in_tests {
    use std::cell::{Cell, RefCell};
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use std::time::Duration;

    use super::{Point, Rule};

    static POINTS: AtomicU32 = AtomicU32::new(0);
    static MICROS: AtomicU64 = AtomicU64::new(0);
    /// What a thread does when it comes to a point.
    type Act = (Point, Box<dyn FnOnce()>);
    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(1) };
        static NEXT: RefCell<Option<Act>> = const { RefCell::new(None) };
    }

    /// When this thread comes to a point the next time, it does this there.
    pub(crate) fn then(point: Point, act: impl FnOnce() + 'static) {
        NEXT.set(Some((point, Box::new(act))));
    }

    pub(crate) fn at(point: Point) {
        let is_due = |next: &mut Act| next.0 as u32 == point as u32;
        if let Some((_, act)) = NEXT.with_borrow_mut(|next| next.take_if(is_due)) {
            act();
        }
        if POINTS.load(Ordering::Relaxed) & 1 << point as u32 != 0 {
            // Not always: orders differ from one time to the next.
            let step = STEPS.get().wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            STEPS.set(step);
            if step >> 62 == 0 {
                std::thread::sleep(Duration::from_micros(MICROS.load(Ordering::Relaxed)));
            }
        }
    }

    /// From now on threads wait so long at these points, one time in four.
    pub(crate) fn set(points: &[Point], wait: Duration) {
        MICROS.store(wait.as_micros() as u64, Ordering::Relaxed);
        let mask = points.iter().fold(0, |mask, point| mask | 1 << *point as u32);
        POINTS.store(mask, Ordering::Relaxed);
    }

    /// The rule that this process breaks.
    pub(crate) const BROKEN: &str = "TROMMEL_BROKEN_RULE";

    pub(crate) fn is_broken(rule: Rule) -> bool {
        std::env::var(BROKEN).is_ok_and(|name| name == format!("{rule:?}"))
    }
}
