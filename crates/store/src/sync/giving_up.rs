//! Waits and scans that the caller may give up: for the duration of a call, a thread sets a
//! function that decides.
//! ```text
//! giving_up(asked, || db.put(..))    waits: 20 ms, asked? no -> 20 ms, asked? yes -> Cancelled
//! giving_up(asked, || scan.next())   keys:  4096,  asked? no -> 4096,  asked? yes -> Cancelled
//! ```
//! Invariant: the function runs while its thread holds no lock of the store, and is not in a call
//! that closing waits for. So it may close the store itself. (But it must not use a transaction
//! that waits.)

use std::cell::Cell;
use std::time::Duration;

/// The longest that a wait goes on without asking.
pub(crate) const STEP: Duration = Duration::from_millis(20);
/// The number of entries that a scan or a count passes over without asking.
pub(crate) const ENTRIES: u32 = 4096;

thread_local! {
    static ASKED: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
}

/// Runs `call`, whose waits can be given up: waits for the lock of a key, until flushes and merges
/// have caught up, and behind the writes of other threads. During such a wait, `asked` is called
/// every 20 ms. Once it returns true, the call ends with
/// [`Error::Cancelled`](crate::Error::Cancelled), and has written nothing. `asked` runs on this
/// thread, and may take its time. It must not use a transaction that waits.
///
/// Scans ask after every 4096 deleted or expired keys that they pass over, and
/// [`approximate_count`](crate::Keyspace::approximate_count) after as many entries in memory. A
/// [`Scan`](crate::Scan) that was given up can continue where it was.
///
/// This is meant for programs that handle signals, such as those in Python. Waits for the disk
/// cannot be given up, nor a write that another thread has begun to write together with its own.
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
    /// Restores the previous function, even after a panic.
    struct Before(Option<fn() -> bool>);

    impl Drop for Before {
        fn drop(&mut self) {
            ASKED.set(self.0);
        }
    }

    let _before = Before(ASKED.replace(Some(asked)));
    call()
}

/// Whether this thread may give up waits.
#[inline]
pub(crate) fn is_possible() -> bool {
    ASKED.get().is_some()
}

/// Returns how long a wait of up to `left` goes on before it asks.
pub(crate) fn step(left: Duration) -> Duration {
    if is_possible() { left.min(STEP) } else { left }
}

/// Whether this thread gives up its wait. Requires: the thread holds no lock of the store.
pub(crate) fn is_given_up() -> bool {
    ASKED.get().is_some_and(|asked| asked())
}

/// Whether this thread gives up a call that has passed over so many entries. Requires: the thread
/// holds no lock of the store.
#[inline]
pub(crate) fn is_given_up_after(entries: u32) -> bool {
    entries.is_multiple_of(ENTRIES) && is_given_up()
}
