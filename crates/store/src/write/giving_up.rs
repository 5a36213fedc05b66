//! Waits that their caller may give up: for one call a thread says how it learns of that.
//! ```text
//! giving_up(asked, || db.put(..))     waits: 20 ms, asked? no -> 20 ms, asked? yes -> Cancelled
//! ```
//! Invariant: it is asked while this thread holds no lock of the store, and is in no call that
//! closing waits for: it may close the store itself. (Of a transaction: it must not use that one.)

use std::cell::Cell;
use std::time::Duration;

/// How long a wait goes on without asking.
pub(crate) const STEP: Duration = Duration::from_millis(20);

thread_local! {
    static ASKED: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
}

/// Makes a call that may wait for the lock of a key, or until flushes and merges have caught up,
/// and asks every 20 ms of such a wait whether to give it up. Then the call ends with
/// [`Error::Cancelled`](crate::Error::Cancelled), and has written nothing. `asked` is asked on this
/// thread, and may take its time; it must not use a transaction that waits.
///
/// For programs that get signals, such as those in Python. Waits for the disk are not given up, nor
/// those behind writes of other threads, which may be stopped.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// # let folder = tempfile::tempdir()?;
/// # let db = trommel::Db::open(folder.path(), trommel::Options::new())?;
/// trommel::giving_up(|| INTERRUPTED.load(Ordering::Relaxed), || db.put("drum", "turns"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn giving_up<T>(asked: fn() -> bool, call: impl FnOnce() -> T) -> T {
    /// Whoever was asked before is asked again, after a panic, too.
    struct Before(Option<fn() -> bool>);

    impl Drop for Before {
        fn drop(&mut self) {
            ASKED.set(self.0);
        }
    }

    let _before = Before(ASKED.replace(Some(asked)));
    call()
}

/// Whether this thread may give waits up.
#[inline]
pub(crate) fn is_possible() -> bool {
    ASKED.get().is_some()
}

/// How long a wait that may last so long goes on before it asks.
pub(crate) fn step(left: Duration) -> Duration {
    if is_possible() { left.min(STEP) } else { left }
}

/// Whether this thread's wait is given up. Requires: the thread holds no lock of the store.
pub(crate) fn is_given_up() -> bool {
    ASKED.get().is_some_and(|asked| asked())
}
