//! Whether an open store may still be used.
//! ```text
//! OPEN --close()--> CLOSING --calls and threads have ended--> CLOSED   (others may use its files)
//!    \------------------+------------------------------------/------> 0, in every forked child
//! ```
//! Reads check the state once, after they have pinned a version. So a reader that sees the empty
//! version of a closed store also sees that the store is closed. Writes check it under the writer's
//! lock, which closing takes. All other calls that touch files are counted, and closing waits for
//! them.
//!
//! Invariant: in a closed store, or in a child, nothing opens, creates, writes, removes or unlocks
//! a file.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::storage::fork_word::ForkWord;
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};

const FORKED: usize = 0;
const OPEN: usize = 1;
const CLOSING: usize = 2;
const CLOSED: usize = 3;

/// The state of an open store, and the calls that closing waits for.
pub(crate) struct Life {
    dir: PathBuf,
    state: ForkWord,
    calls: Mutex<Calls>,
    /// Signalled when the last call has ended, and when the store is closed.
    changed: Condvar,
}

#[derive(Default)]
struct Calls {
    under_way: usize,
    /// Whether the store is closed, and its lock is released.
    have_ended: bool,
}

impl Life {
    /// Makes the state of an open store.
    pub(crate) fn new(dir: &Path) -> Self {
        let (calls, changed) = (Mutex::default(), Condvar::new());
        Life { dir: dir.to_path_buf(), state: ForkWord::new(OPEN), calls, changed }
    }

    /// Fails if callers may not use the store any more. Takes no lock.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.state.is_surely(OPEN) { Ok(()) } else { self.look_closely() }
    }

    #[cold]
    fn look_closely(&self) -> Result<()> {
        match self.state.value() {
            OPEN => Ok(()),
            FORKED => Err(Error::Forked { path: self.dir.clone() }),
            _ => Err(Error::Closed { path: self.dir.clone() }),
        }
    }

    /// Fails if files may no longer be touched, not even by the calls that closing waits for.
    pub(crate) fn check_files(&self) -> Result<()> {
        if self.state.value() == CLOSING { Ok(()) } else { self.check() }
    }

    /// Whether this process is a forked child of the one that opened the store. In a child, locks
    /// may be held for ever by threads that do not exist.
    pub(crate) fn is_forked(&self) -> bool {
        self.state.value() == FORKED
    }

    /// Begins a call that closing waits for.
    pub(crate) fn enter(&self) -> Result<Call<'_>> {
        self.enter_if(Life::check)
    }

    /// Begins to reopen a file, which closing waits for. A read, which is not counted, may reopen
    /// one while the store is being closed.
    pub(crate) fn enter_files(&self) -> Result<Call<'_>> {
        self.enter_if(Life::check_files)
    }

    fn enter_if(&self, check: impl Fn(&Life) -> Result<()>) -> Result<Call<'_>> {
        check(self)?;
        let mut calls = lock(&self.calls);
        // Closing changes the state under this lock.
        check(self)?;
        calls.under_way += 1;
        Ok(Call(self))
    }

    /// Waits until no call is in progress.
    fn without_calls(&self) -> MutexGuard<'_, Calls> {
        let mut calls = lock(&self.calls);
        while calls.under_way > 0 {
            calls = wait(&self.changed, calls);
        }
        calls
    }

    /// Begins to close the store: from now on calls are refused. None: the store is closed, or
    /// another thread has just finished closing it.
    pub(crate) fn begin_close(&self) -> Result<Option<Closing<'_>>> {
        if self.is_forked() {
            return self.check().map(|()| None);
        }
        let mut calls = lock(&self.calls);
        if self.state.value() == OPEN {
            self.state.store(CLOSING);
            return Ok(Some(Closing(self)));
        }
        while !calls.have_ended {
            calls = wait(&self.changed, calls);
        }
        Ok(None)
    }
}

/// A call in progress.
pub(crate) struct Call<'l>(&'l Life);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut calls = lock(&self.0.calls);
        calls.under_way -= 1;
        if calls.under_way == 0 {
            self.0.changed.notify_all();
        }
    }
}

/// The right to close the store. Dropping it tells all waiting threads that the store is closed.
pub(crate) struct Closing<'l>(&'l Life);

impl Closing<'_> {
    /// Waits until no call is in progress.
    pub(crate) fn wait_for_calls(&self) {
        drop(self.0.without_calls());
    }

    /// Ends all access to files, after waiting for files that are being opened.
    pub(crate) fn shut(&self) {
        let _calls = self.0.without_calls();
        self.0.state.store(CLOSED);
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.shut();
        lock(&self.0.calls).have_ended = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Arc;

    // Once, a get that had checked the state just before reopened its table's file in a folder that
    // belonged to another store by then.
    #[test]
    fn what_opens_a_file_is_waited_for_until_the_store_is_shut() {
        let life = Arc::new(Life::new("store".as_ref()));
        let closing = life.begin_close().expect("not a child").expect("the first");
        closing.wait_for_calls();
        let opening = life.enter_files().expect("not shut yet");
        let is_open = std::sync::atomic::AtomicBool::new(true);
        std::thread::scope(|scope| {
            let shuts = scope.spawn(|| {
                closing.shut();
                assert!(!is_open.load(std::sync::atomic::Ordering::SeqCst), "shut too early");
            });
            std::thread::yield_now();
            is_open.store(false, std::sync::atomic::Ordering::SeqCst);
            drop(opening);
            shuts.join().expect("no panic");
        });
        assert!(matches!(life.enter_files(), Err(Error::Closed { .. })));
    }

    #[test]
    fn closing_refuses_callers_at_once_and_waits_for_those_before() {
        let life = Arc::new(Life::new("store".as_ref()));
        let call = life.enter().expect("open");
        let closing = life.begin_close().expect("not a child").expect("the first");
        assert!(matches!(life.check(), Err(Error::Closed { .. })));
        assert!(life.enter().is_err() && life.check_files().is_ok());
        let second = std::thread::spawn({
            let life = Arc::clone(&life);
            move || life.begin_close().expect("not a child").is_none()
        });
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| closing.wait_for_calls());
            drop(call);
            waits.join().expect("no panic");
        });
        drop(closing);
        assert!(second.join().expect("no panic"), "the second one finds it closed");
        assert!(life.check_files().is_err());
    }
}
