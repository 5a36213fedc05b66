//! How the store is called from Python.
//! ```text
//! attached       the call: it waits for nothing
//! detached       lock of the interpreter given away -> the call -> taken back
//! computing      as detached, but for the exit: it waits for nobody
//! write          as detached; signals are looked for each 20 ms while it waits for a lock, for
//!                flushes and merges, or behind other writes
//! scan           as detached; signals are looked for while it passes over what was deleted
//! interruptible  the call, on a thread of its own    this thread: signals, each 20 ms
//! at exit        ending = true -> stores closed -> no thread is in a call any more -> exit;
//!                other threads than the one that exits get an error, and long calls end
//! ```
//! Invariants: no lock of this crate is waited for while the interpreter's is held. A panic is an
//! exception. At its exit the interpreter ends threads that want its lock. None of them is in these
//! calls then, for it would leave frames of Rust that have not ended. No object of Python is let go
//! by a thread that has given the lock away: nobody would free it (`pyproject.toml`). All of it
//! holds where the interpreter has no lock, too: a thread then gives away that it may be stopped.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use trommel::Error;
use trommel::tools::Progress;

use crate::errors;

/// The interpreter is about to exit.
static ENDING: AtomicBool = AtomicBool::new(false);
thread_local! {
    /// This thread ends the interpreter, which lets it have its lock at any time.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}
/// Threads that have given the interpreter's lock away here. (A thread that was away at a fork, and
/// comes back in the child, makes it negative there.)
static AWAY: AtomicIsize = AtomicIsize::new(0);
/// Those of them that run code which was given to a call, such as an iterator.
static CALLED_BACK: AtomicIsize = AtomicIsize::new(0);
/// How often the process has been forked, as its children count.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// How often a waiting thread looks for signals.
const LOOK: Duration = Duration::from_millis(20);
/// How long a call that was interrupted is waited for.
const PATIENCE: Duration = Duration::from_millis(50);
/// Rows that a bulk load takes between two looks.
pub(crate) const LOOK_ROWS: usize = 512;
/// How long the exit waits for threads that are in calls, and for code that these have called back.
const EXIT_PATIENCE: Duration = Duration::from_secs(10);

/// Which process made a handle.
#[derive(Clone, Copy)]
pub(crate) struct Process(u32);

impl Process {
    /// The present one.
    pub(crate) fn current() -> Process {
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// An error in a child: what other threads held at the fork is held there for ever.
    pub(crate) fn check(self, py: Python<'_>) -> PyResult<()> {
        if self.0 == FORKS.load(Ordering::Relaxed) { Ok(()) } else { Err(errors::forked(py)) }
    }
}

/// A thread that is counted while this lives.
struct Counted(&'static AtomicIsize);

impl Counted {
    fn among(threads: &'static AtomicIsize) -> Counted {
        threads.fetch_add(1, Ordering::SeqCst);
        Counted(threads)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Makes a call without the interpreter's lock. Gives it back at the exit: the thread might not get
/// the lock back.
fn try_detached<T: Send, C: FnOnce() -> T + Send>(
    py: Python<'_>,
    call: C,
) -> Result<PyResult<T>, C> {
    // Counted first: either this thread sees the exit, or the exit sees this thread.
    let _away = Counted::among(&AWAY);
    if is_refused() {
        return Err(call);
    }
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(call)));
    Ok(done.map_err(|_| errors::panicked(py)))
}

/// Makes a call that may wait, without the interpreter's lock. The exit refuses it: it would wait
/// with the lock, which may be needed where it is waited for.
pub(crate) fn detached<T: Send>(py: Python<'_>, call: impl FnOnce() -> T + Send) -> PyResult<T> {
    try_detached(py, call).unwrap_or_else(|_| Err(errors::exiting(py)))
}

/// Makes a call for somebody who may have the interpreter's lock, or not, as callers from C. It is
/// given away if so. An error says why the call was not made, or not to its end.
pub(crate) fn from_anywhere<T: Send>(call: impl FnOnce() -> T + Send) -> Result<T, &'static str> {
    // Counted before the lock is waited for, so that the exit lets this thread have it.
    let _away = Counted::among(&AWAY);
    if is_refused() {
        return Err(errors::EXITING_TEXT);
    }
    // It asks for the exit alone, whatever call of this thread is around it: nobody would take what
    // signals say.
    let call = || trommel::giving_up(is_refused, call);
    let done = Python::try_attach(|py| py.detach(|| catch_unwind(AssertUnwindSafe(call))));
    done.ok_or(errors::EXITING_TEXT)?.map_err(|_| errors::PANICKED_TEXT)
}

/// Makes a call that takes a while, but waits for nobody, without the interpreter's lock. At the
/// exit it keeps the lock.
pub(crate) fn computing<T: Send>(py: Python<'_>, call: impl FnOnce() -> T + Send) -> PyResult<T> {
    try_detached(py, call).unwrap_or_else(|call| attached(py, call))
}

/// Closes a store or a follower. Done at the exit, which closes stores itself.
pub(crate) fn closing(
    py: Python<'_>,
    close: impl FnOnce() -> trommel::Result<()> + Send,
) -> PyResult<()> {
    let closed = try_detached(py, close).unwrap_or_else(|_| Ok(Ok(())))?;
    closed.map_err(|error| errors::of(py, &error))
}

/// Makes a call that waits for nothing, and keeps the interpreter's lock.
pub(crate) fn attached<T>(py: Python<'_>, call: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| errors::panicked(py))
}

/// As `detached`, of the store: its errors are exceptions.
pub(crate) fn store<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> trommel::Result<T> + Send,
) -> PyResult<T> {
    detached(py, call)?.map_err(|error| errors::of(py, &error))
}

thread_local! {
    /// What a signal became while a write of this thread waited.
    static INTERRUPT: Cell<Option<PyErr>> = const { Cell::new(None) };
    /// When this thread last looked for signals amid a call.
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Whether this thread should look for signals. Scans ask far more often than it is worth while.
fn is_time_to_look() -> bool {
    let is_time = LOOKED.get().is_none_or(|looked| looked.elapsed() >= LOOK / 2);
    if is_time {
        LOOKED.set(Some(Instant::now()));
    }
    is_time
}

/// Looks for signals and for the exit, from a call that has given the interpreter's lock away.
fn is_interrupted() -> bool {
    if is_exiting() {
        return is_refused();
    }
    if !is_time_to_look() {
        return false;
    }
    Python::attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(interrupt) => {
            INTERRUPT.set(Some(interrupt));
            true
        }
    })
}

/// As `store`, of a write, or of a read that locks or counts. A signal of which Python makes an
/// exception ends it while it waits; then nothing was written.
pub(crate) fn write<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> trommel::Result<T> + Send,
) -> PyResult<T> {
    let done = detached(py, || trommel::giving_up(is_interrupted, call));
    // Writes nest in handlers of signals and in `update`. Each of them ends before the one around
    // it is given up, and so takes its own.
    if let Some(interrupt) = INTERRUPT.take() {
        return Err(interrupt);
    }
    match done? {
        Err(Error::Cancelled) if is_refused() => Err(errors::exiting(py)),
        done => done.map_err(|error| errors::of(py, &error)),
    }
}

/// As `detached`, of a part of a scan. It ends with `Cancelled` if it passes over what was deleted
/// and signals should be looked for, which is left to the caller: handlers may use the scan.
pub(crate) fn part_of_scan<T: Send>(
    py: Python<'_>,
    part: impl FnOnce() -> trommel::Result<T> + Send,
) -> PyResult<trommel::Result<T>> {
    detached(py, || trommel::giving_up(is_time_to_look, part))
}

/// As `store`, of a scan that no handler of a signal can use. After a look for signals, `go_on` is
/// called again.
pub(crate) fn scan<T: Send>(
    py: Python<'_>,
    mut go_on: impl FnMut() -> trommel::Result<T> + Send,
) -> PyResult<T> {
    loop {
        match part_of_scan(py, &mut go_on)? {
            Err(Error::Cancelled) => py.check_signals()?,
            done => return done.map_err(|error| errors::of(py, &error)),
        }
    }
}

/// Tells a call that its caller was interrupted.
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    fn tell(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// For calls that tell their progress: they end where it breaks.
    pub(crate) fn hear(&self, _: Progress) -> std::ops::ControlFlow<()> {
        match self.0.load(Ordering::Relaxed) {
            true => std::ops::ControlFlow::Break(()),
            false => std::ops::ControlFlow::Continue(()),
        }
    }
}

/// Makes a long call of the store. A signal of which Python makes an exception, as Ctrl-C, ends it:
/// the call is told, and is waited for a moment; what cannot be stopped ends later by itself. The
/// exit, which waits for the call when it closes the store, ends it, too.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce(&Cancel) -> trommel::Result<T> + Send + 'static,
) -> PyResult<T> {
    check_exit(py)?;
    let cancel = Cancel::default();
    let (done, result) = sync_channel(1);
    let heard = cancel.clone();
    let work = move || {
        // Nobody listens any more if its caller was interrupted.
        let _ = done.send(catch_unwind(AssertUnwindSafe(|| call(&heard))));
    };
    let named = std::thread::Builder::new().name("trommel-call".into());
    named.spawn(work).map_err(PyErr::from)?;
    let result = Mutex::new(result);
    let wait = |time| detached(py, || lock(&result).recv_timeout(time));
    loop {
        let waited = wait(LOOK).inspect_err(|_| cancel.tell());
        match waited? {
            Ok(Ok(done)) => return done.map_err(|error| errors::of(py, &error)),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(errors::panicked(py)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(interrupt) = py.check_signals() {
            cancel.tell();
            let late = wait(PATIENCE).ok();
            // It may be an open store, which takes a while to be closed.
            let named = std::thread::Builder::new().name("trommel-late".into());
            let _ = named.spawn(move || drop((late, result)));
            return Err(interrupt);
        }
    }
}

/// Locks what is never held while the interpreter's lock is waited for.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks what another thread may hold in a call. Requires: the process was checked.
pub(crate) fn lock_attached<'m, T>(py: Python<'_>, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
    if let Ok(locked) = mutex.try_lock() {
        return locked;
    }
    let _away = Counted::among(&AWAY);
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// Runs code that was given to a call, amid it: of Python, or of a library that makes tables.
/// Nobody can end it, and it may wait for ever: the exit waits for it a while only.
pub(crate) fn called_back<T>(code: impl FnOnce() -> T) -> T {
    let _counted = Counted::among(&CALLED_BACK);
    code()
}

/// Whether the exit has begun.
pub(crate) fn is_exiting() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// Whether the exit has begun on another thread: then this one must not wait.
fn is_refused() -> bool {
    is_exiting() && !ENDS.get()
}

/// Looks for the exit, from what the store has called: it ends it.
pub(crate) fn check_exit(py: Python<'_>) -> PyResult<()> {
    if is_refused() { Err(errors::exiting(py)) } else { Ok(()) }
}

/// Looks for signals and for the exit, from what the store has called: both end it.
pub(crate) fn check_signals(py: Python<'_>) -> PyResult<()> {
    check_exit(py)?;
    py.check_signals()
}

/// Closes all stores, and waits until no thread is in a call. From here on calls of other threads
/// are refused, so that none waits for the interpreter's lock.
///
/// A closing waits for the store's calls, and so for code that they have called back. If that takes
/// too long, the store is left as a crash would leave it: nothing that was acknowledged is lost.
pub(crate) fn exit(py: Python<'_>, close_all: fn()) {
    ENDS.set(true);
    ENDING.store(true, Ordering::SeqCst);
    let (done, closed) = sync_channel::<()>(0);
    let close = move || {
        close_all();
        drop(done);
    };
    py.detach(move || {
        if std::thread::Builder::new().name("trommel-exit".into()).spawn(close).is_err() {
            close_all();
        }
        let begun = Instant::now();
        while closed.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if CALLED_BACK.load(Ordering::SeqCst) > 0 && begun.elapsed() >= EXIT_PATIENCE {
                return;
            }
        }
        let begun = Instant::now();
        while AWAY.load(Ordering::SeqCst) > 0 && begun.elapsed() < EXIT_PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// In a child: what was made before is another process's, and its threads are not here.
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    AWAY.store(0, Ordering::Relaxed);
    CALLED_BACK.store(0, Ordering::Relaxed);
}
