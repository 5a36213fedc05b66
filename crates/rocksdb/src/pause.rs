//! Points where threads may overtake each other, and rules that keep answers right.
//!
//! Tests make threads wait at the points, since wrong orders are too rare otherwise. Tests also
//! break each rule, to see that another test notices it.

/// A point where a thread may wait.
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
    /// A reader has loaded the view, and has not queried it yet.
    Looked,
    /// An iterator has loaded the view, and has not pinned its state yet.
    Pinning,
    /// A read of many keys has queried the door, and has not asked RocksDB for the others yet.
    Asked,
    /// An opening has read the filter files, and has not opened the database yet.
    Read,
    /// A closing has closed the database, and has not written the filter files yet.
    Closed,
}

/// A rule that keeps answers right.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// A scan waits for writes whose keys are in lists that it does not keep.
    Landing,
    /// Keys noted during a scan are added to its filter.
    Keeping,
    /// A snapshot never queries the filter of a later scan.
    Since,
    /// From the begin of writes of unknown keys, nothing is denied until a scan after them.
    Lapses,
    /// A filter file is used only if the folder is as its writer left it.
    Folder,
    /// After a failed write, closing writes no filter: the log may have the write.
    Failing,
    /// A key is noted before it is written.
    Noting,
    /// The keys of a transaction are noted before it is committed.
    Committing,
    /// Recent keys are not denied.
    Recents,
    /// An iterator queries a view only if the view was current when the state was pinned.
    Current,
    /// The answers for many keys belong to one moment.
    OneMoment,
}

/// Whether a test has broken the rule.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn is_broken(_rule: Rule) -> bool {
    false
}

/// Waits, if a test asks for it.
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
    /// What a thread does at a point.
    type Act = (Point, Box<dyn FnOnce()>);
    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(1) };
        static NEXT: RefCell<Option<Act>> = const { RefCell::new(None) };
    }

    /// Makes this thread do this when it next comes to the point.
    pub(crate) fn then(point: Point, act: impl FnOnce() + 'static) {
        NEXT.set(Some((point, Box::new(act))));
    }

    pub(crate) fn at(point: Point) {
        let is_due = |next: &mut Act| next.0 as u32 == point as u32;
        if let Some((_, act)) = NEXT.with_borrow_mut(|next| next.take_if(is_due)) {
            act();
        }
        if POINTS.load(Ordering::Relaxed) & 1 << point as u32 != 0 {
            // Only sometimes, so that orders vary.
            let step = STEPS.get().wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            STEPS.set(step);
            if step >> 62 == 0 {
                std::thread::sleep(Duration::from_micros(MICROS.load(Ordering::Relaxed)));
            }
        }
    }

    /// From now on, threads wait this long at these points, one time in four.
    pub(crate) fn set(points: &[Point], wait: Duration) {
        MICROS.store(wait.as_micros() as u64, Ordering::Relaxed);
        let mask = points.iter().fold(0, |mask, point| mask | 1 << *point as u32);
        POINTS.store(mask, Ordering::Relaxed);
    }

    /// The environment variable that names the rule to break in this process.
    pub(crate) const BROKEN: &str = "TROMMEL_BROKEN_RULE";

    pub(crate) fn is_broken(rule: Rule) -> bool {
        std::env::var(BROKEN).is_ok_and(|name| name == format!("{rule:?}"))
    }
}
